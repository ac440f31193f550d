"""Entries and events as every store handles them: from draft to entry, from rows to values and back. Pure."""

from __future__ import annotations

from binascii import crc32
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from limpet import errors, limits
from limpet.light import Any, json
from limpet.model import (
    EMPTY,
    MEMORY,
    NOTE,
    WRITTEN_AT,
    Change,
    Draft,
    Entry,
    Event,
    Scope,
    Stamp,
    TagCount,
    Tally,
    lowest,
    number_or_none,
    trusted,
    written_at,
)
from limpet.record import NamedTuple
from limpet.store import Decide, Delete, EventQuery, Follow, Listing, entry_from, entry_record, to_json
from limpet.stores.shared.checksums import fingerprint
from limpet.stores.shared.sql import Row
from limpet.text.words import exact, fold, gist

FIELDS = "kind, key, session, content, tags, done, pinned, origin, extra, version, created_at, updated_at, hash"
E_FIELDS = ", ".join(f"e.{name}" for name in FIELDS.split(", "))
DONE = "done "  # before a kind: the tally of those of its entries that are done
LAST_KEY = "\U0010ffff"  # no key comes after it
EVENT_FIELDS = ("seq", "at", "by", "operation", "session", "kind", "key", "version")


class Count(NamedTuple):
    """One change of a tally: the empty session is the whole project, the empty tag is every entry."""

    kind: str  # with DONE before it for entries that are done
    session: str
    tag: str
    label: str
    step: int


# --- drafts -----------------------------------------------------------------------------------------------------------


def next_entry(kind: str, key: str, before: Entry | None, draft: Draft, stamp: Stamp, at: int, version: int) -> Entry:
    """The entry that a draft turns into. Every store computes it the same way.

    Text from outside is never pinned, whatever the draft says. `at` is the time of the change; what is imported was
    written before it.
    """
    if draft.at:
        at = max(1, min(draft.at, at))
    origin = _origin(before, draft, stamp.by.partition("/")[0])
    return Entry(
        kind,
        key,
        draft.session,
        draft.content,
        draft.tags,
        draft.done,
        draft.pinned and trusted(origin),
        origin,
        _extra_of(kind, before, draft),
        version,
        min(before.created_at, at) if before else at,
        at,
    )


def _extra_of(kind: str, before: Entry | None, draft: Draft) -> Mapping[str, Any]:
    """What the draft says beside its text. A note or memory whose text stays keeps the time when it was written, and a
    new text does not take that of the one before."""
    if kind not in (NOTE, MEMORY) or before is None:
        return draft.extra
    if draft.content == before.content:
        return draft.extra if draft.anew else {**draft.extra, WRITTEN_AT: written_at(before)}
    carried = WRITTEN_AT in draft.extra and draft.extra[WRITTEN_AT] == before.extra.get(WRITTEN_AT)
    return _without_time(draft.extra) if carried else draft.extra


def _without_time(extra: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in extra.items() if name != WRITTEN_AT} if WRITTEN_AT in extra else extra


def _origin(before: Entry | None, draft: Draft, by: str) -> str:
    """The provenance of a text. Pinning, tagging and finishing keep it; an edit lowers it to the less trusted one."""
    if draft.origin:
        return draft.origin
    if before is None:
        return by
    if draft.content == before.content:
        return before.origin
    return by if draft.anew else lowest(before.origin, by)


def decided(decide: Decide | Follow, before: Entry | None, changes: Sequence[Change]) -> Draft | Delete | None:
    """What an edit asks for; `changes` are those of the edits before it."""
    if isinstance(decide, Follow):
        return decide.decide(before, changes[-1].entry)
    return decide(before)


def unchanged(before: Entry | None, draft: Draft | Delete) -> bool:
    """Whether the draft asks for nothing new, so that no version and no event is spent on it."""
    if before is None:
        return isinstance(draft, Delete)
    if isinstance(draft, Draft):
        draft = draft._replace(origin="", anew=False)
        if draft.content == before.content and before.kind in (NOTE, MEMORY):
            draft = draft._replace(extra={**draft.extra, WRITTEN_AT: before.extra.get(WRITTEN_AT)})
            before = before._replace(extra={WRITTEN_AT: None, **before.extra})
    return draft == Draft(before.content, before.session, before.tags, before.done, before.pinned, before.extra)


# --- rows -------------------------------------------------------------------------------------------------------------


def to_entry(place: str, scope: Scope, row: Row) -> Entry:
    """The entry of a row, checked against its checksum."""
    (kind, key, session, content, tags, done, pinned, origin, extra, version, created, updated, digest) = row
    try:
        labels, more = _tags(tags), _extra(extra)
        flags = bool(done), bool(pinned)
        entry = Entry(kind, key, session, content, labels, *flags, origin, more, version, created, updated)
        if fingerprint(scope, entry, tags, extra) == digest:
            return entry
    except (ValueError, TypeError):
        pass  # a malformed row is damaged too
    raise errors.store_damaged(place, f"{kind} {key!r}")


@lru_cache(2_000)  # many notes carry the same few tags
def _tags(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


@lru_cache(500)  # callers share the mapping: the type does not let them change it
def _extra(text: str) -> Mapping[str, Any]:
    return EMPTY if text == "{}" else dict(json.loads(text))


def to_row(scope: Scope, entry: Entry) -> Row:
    """The values of a row, in the order of tenant, project and FIELDS."""
    tags, extra = to_json(entry.tags), to_json(dict(entry.extra))
    return (
        *scope,
        *entry[:4],
        tags,
        entry.done,
        entry.pinned,
        entry.origin,
        extra,
        *entry[9:],
        fingerprint(scope, entry, tags, extra),
    )


def expires_at(entry: Entry) -> int | None:
    """When the entry expires, in milliseconds, for the column that repeats it."""
    return number_or_none(entry.extra.get("expires_at"))


def is_replaced(entry: Entry) -> bool:
    """Whether another entry has replaced it, for the column that repeats it."""
    return entry.extra.get("replaced_by") is not None


def version_to_json(scope: Scope, entry: Entry | None) -> str | None:
    """A previous version as an event stores it, with its checksum."""
    if entry is None:
        return None
    digest = fingerprint(scope, entry, to_json(entry.tags), to_json(dict(entry.extra)))
    return to_json(entry_record(entry) | {"hash": digest.hex()})


def version_from_json(place: str, scope: Scope, text: str | None) -> Entry | None:
    """The inverse of `version_to_json`, checked."""
    if text is None:
        return None
    try:
        record = json.loads(text)
        entry = entry_from(record)
        if fingerprint(scope, entry, to_json(entry.tags), to_json(dict(entry.extra))).hex() == record["hash"]:
            return entry
    except (ValueError, TypeError, KeyError):
        pass  # malformed JSON is damage too
    raise errors.store_damaged(place, "an earlier version of an entry")


def _detail(place: str, text: str) -> Mapping[str, Any]:
    try:
        return _extra(text)
    except (ValueError, TypeError):
        raise errors.store_damaged(place, "the detail of a change") from None


def to_event(place: str, scope: Scope, row: Row) -> Event:
    """A row of EVENT_FIELDS, detail, before, the next change's before, and FIELDS of the entry if it is the newest."""
    plain, detail, before, following, entry = row[:8], row[8], row[9], row[10], row[11:]
    after = version_from_json(place, scope, following) if entry[0] is None else to_entry(place, scope, entry)
    return Event._make((*plain, _detail(place, detail), version_from_json(place, scope, before), after))


def replayed(event: Event, tally: Tally) -> Change:
    """A change that an earlier call made. A text that was erased since cannot be given again."""
    if event.before is None and event.after is None:
        raise errors.retry_erased(event.seq)
    return Change(event.seq, event.before, event.after, tally, replayed=True)


def event_record(place: str, scope: Scope, row: Row) -> dict[str, Any]:
    """A row of EVENT_FIELDS, detail and before, as an export has it."""
    before = version_from_json(place, scope, row[9])
    record = dict(zip(EVENT_FIELDS, row[:8], strict=True)) | {"detail": dict(_detail(place, row[8]))}
    return record | {"before": None if before is None else entry_record(before)}


def event_row(scope: Scope, record: Mapping[str, Any]) -> Row:
    """The inverse of `event_record`."""
    before = record["before"]
    plain = (record[name] for name in EVENT_FIELDS)
    previous = version_to_json(scope, None if before is None else entry_from(before))
    return (*scope, *plain, to_json(record["detail"]), previous)


def searched_text(entry: Entry) -> str:
    """The text for substring search: the content, and for memory the key before it."""
    return f"{entry.key}\n{entry.content}" if entry.kind == MEMORY else entry.content


def about_as_long(text: str) -> tuple[int, int]:
    """The lengths of texts, in characters, that are compared with one to see whether they say nearly the same."""
    return len(text) * 4 // 5, len(text) * 5 // 4 + 2


@lru_cache(4)
def marks_of(kind: str, text: str) -> tuple[tuple[int, int], ...]:
    """Numbers for the longest words of a text, and for these with the whole text: beside each other in the table, so
    that both cost one page."""
    if not (longest := gist(text)):
        return ()
    near = _number(" ".join((kind, *longest)))
    return ((near, 0), (near, _number(exact(text)) or 1))


def _number(text: str) -> int:
    encoded = text.encode()
    return crc32(encoded) << 24 | len(encoded) & 0xFFFFFF


def indexed_text(entry: Entry | None) -> str:
    """The text for word search: the text above, and the tags."""
    return "" if entry is None else "\n".join([searched_text(entry), *entry.tags]).strip()


def folded_tags(entry: Entry | None) -> list[str]:
    return [fold(tag) for tag in entry.tags] if entry and entry.tags else []


def name_of(before: Entry | None, after: Entry | None) -> tuple[str, str]:
    """Kind and key of an entry that exists before or after a change."""
    entry = before or after
    if entry is None:
        raise LookupError("there is no entry before or after the change")
    return entry.kind, entry.key


def counts(before: Entry | None, after: Entry | None) -> list[Count]:
    """How the tallies change. A total counts every entry, a tag's count only the open ones; those that are done have a
    tally of their own, so that lists of open ones are counted without reading them."""
    steps: dict[tuple[str, str, str], int] = {}
    labels = {"": ""}
    for entry, step in ((before, -1), (after, 1)):
        if entry is None:
            continue
        named = dict(zip(folded_tags(entry), entry.tags, strict=True))
        labels |= named
        for session in {"", entry.session}:
            for tag in ("",) if entry.done else ("", *named):
                name = (entry.kind, session, tag)
                steps[name] = steps.get(name, 0) + step
            if entry.done:
                name = (DONE + entry.kind, session, "")
                steps[name] = steps.get(name, 0) + step
    return [Count(*name, labels[name[2]], step) for name, step in sorted(steps.items()) if step]


class Sums:
    """The counts of many new entries, each once: ten thousand changes of one row would be slow."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], tuple[str, int]] = {}

    def add(self, entry: Entry) -> None:
        for kind, session, tag, label, step in counts(None, entry):
            name = (kind, session, tag)
            first, before = self._counts.get(name, (label, 0))
            self._counts[name] = (first, before + step)

    def counts(self) -> list[Count]:
        return [Count(*name, *counted) for name, counted in self._counts.items()]


class Tallied(NamedTuple):
    """The tallies that count a listing: of these kinds, less those of others."""

    kinds: tuple[str, ...]
    less: tuple[str, ...]
    session: str
    tag: str


def tallied(query: Listing) -> Tallied | None:
    """None for a listing that no tally counts."""
    kinds, session = query.kinds, query.session or ""
    if query.tags_any or query.pinned or len(query.tags) > 1 or query.session == "":
        return None
    if not query.include_done and not query.include_replaced:
        of_tag = bool(query.tags)  # which counts open ones alone
        return Tallied(kinds, () if of_tag else tuple(DONE + kind for kind in kinds), session, "".join(query.tags))
    never_replaced = {NOTE, MEMORY}.isdisjoint(kinds)
    if query.include_done and not query.tags and (query.include_replaced or never_replaced):
        return Tallied(kinds, (), session, "")
    return None


def counted_at_most(query: Listing) -> int:
    """How many entries of a listing are counted one by one: two pages at least, so that there is a next one."""
    return max(limits.LIST_COUNTED, 2 * query.limit)


def still_listed(count: int, query: Listing, expired: Iterable[str]) -> int:
    """The tally of a listing without what has expired, of which these are the tags, as JSON."""
    return count - sum(_readable(tags).issuperset(query.tags) for tags in expired)


@lru_cache(2_000)
def folded_set(tags: str) -> frozenset[str]:
    """The folded tags of a row."""
    return frozenset(map(fold, _tags(tags)))


def _readable(tags: str) -> frozenset[str]:
    """The folded tags of an entry that is not shown; none where they are damaged, which its reader learns."""
    try:
        return folded_set(tags)
    except (ValueError, TypeError):
        return frozenset()


def open_tags(counted: Iterable[Row], expired: Iterable[str]) -> tuple[TagCount, ...]:
    """Counts by tag and label, without the tags (as JSON) of entries that have expired since they were counted."""
    gone = Counter(tag for tags in expired for tag in _readable(tags))
    left = (TagCount(label, count - gone[tag]) for tag, label, count in counted)
    return tuple(item for item in left if item.notes > 0)


def tally_of(total: int, tags: tuple[TagCount, ...]) -> Tally:
    return Tally(total, len(tags))


def event_conditions(scope: Scope, query: EventQuery, placeholder: str) -> dict[str, Any]:
    """The conditions on `events v` of a query for events, with their values."""
    conditions = {
        "v.tenant =": scope.tenant,
        "v.project =": scope.project,
        "v.kind =": query.kind,
        "v.key =": query.key,
        "v.session =": query.session,
        "v.operation =": query.operation,
        "v.at >=": query.since,
        "v.at <": query.until,
        "v.seq <": query.before_seq,
    }
    return {f"{condition} {placeholder}": value for condition, value in conditions.items() if value is not None}
