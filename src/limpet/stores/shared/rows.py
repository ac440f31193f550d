"""What every store does alike in Python: rows to entries and back, what is indexed, and which counts change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from limpet import errors
from limpet.model import EMPTY, MEMORY, Entry, Event, Scope
from limpet.store import EventQuery, entry_from, entry_record, fingerprint, to_json
from limpet.text.words import fold

Row = tuple[Any, ...]
FIELDS = "kind, key, session, content, tags, done, pinned, origin, extra, version, created_at, updated_at, hash"
E_FIELDS = ", ".join(f"e.{name}" for name in FIELDS.split(", "))
LAST_KEY = "\U0010ffff"  # no key comes after it
EVENT_FIELDS = ("seq", "at", "by", "operation", "session", "kind", "key", "version")


class Count(NamedTuple):
    """One change of a tally: the empty session is the whole project, the empty tag is every entry."""

    session: str
    tag: str
    label: str
    step: int


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
        pass  # what is not even of the right form is damaged too
    raise errors.store_damaged(place, f"{kind} {key!r}")


@lru_cache(2_000)  # the same few tags stand on many notes
def _tags(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


@lru_cache(500)  # one object for all who read the same: nobody changes what a mapping holds
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


def keep(scope: Scope, entry: Entry | None) -> str | None:
    """An entry as an event keeps it, with the checksum it had."""
    if entry is None:
        return None
    digest = fingerprint(scope, entry, to_json(entry.tags), to_json(dict(entry.extra)))
    return to_json(entry_record(entry) | {"hash": digest.hex()})


def kept(place: str, scope: Scope, text: str | None) -> Entry | None:
    """The inverse of `keep`, checked."""
    if text is None:
        return None
    try:
        record = json.loads(text)
        entry = entry_from(record)
        if fingerprint(scope, entry, to_json(entry.tags), to_json(dict(entry.extra))).hex() == record["hash"]:
            return entry
    except (ValueError, TypeError, KeyError):
        pass  # what is not even of the right form is damaged too
    raise errors.store_damaged(place, "an earlier version of an entry")


def _noted(place: str, detail: str) -> Mapping[str, Any]:
    try:
        return _extra(detail)
    except (ValueError, TypeError):
        raise errors.store_damaged(place, "the detail of a change") from None


def to_event(place: str, scope: Scope, row: Row) -> Event:
    """A row of EVENT_FIELDS, detail, before, the next change's before, and FIELDS of the entry if it is the newest."""
    plain, detail, before, following, entry = row[:8], row[8], row[9], row[10], row[11:]
    after = kept(place, scope, following) if entry[0] is None else to_entry(place, scope, entry)
    noted = _noted(place, detail)
    return Event._make((*plain, noted, kept(place, scope, before), after))


def event_record(place: str, scope: Scope, row: Row) -> dict[str, Any]:
    """A row of EVENT_FIELDS, detail and before, as an export has it."""
    before = kept(place, scope, row[9])
    record = dict(zip(EVENT_FIELDS, row[:8], strict=True)) | {"detail": dict(_noted(place, row[8]))}
    return record | {"before": None if before is None else entry_record(before)}


def event_row(scope: Scope, record: Mapping[str, Any]) -> Row:
    """The inverse of `event_record`."""
    before = record["before"]
    plain = (record[name] for name in EVENT_FIELDS)
    return (*scope, *plain, to_json(record["detail"]), keep(scope, None if before is None else entry_from(before)))


def sought_text(entry: Entry) -> str:
    """What a substring is looked for in: the content, and for memory the key before it."""
    return f"{entry.key}\n{entry.content}" if entry.kind == MEMORY else entry.content


def indexed_text(entry: Entry | None) -> str:
    """What is searched by words: the text above, and the tags."""
    return "" if entry is None else "\n".join([sought_text(entry), *entry.tags]).strip()


def folded_tags(entry: Entry | None) -> list[str]:
    return [fold(tag) for tag in entry.tags] if entry and entry.tags else []


def name_of(before: Entry | None, after: Entry | None) -> tuple[str, str]:
    """Kind and key of an entry of which at least one side is there."""
    entry = before or after
    if entry is None:
        raise LookupError("an entry that neither was nor is has no name")
    return entry.kind, entry.key


def counts(before: Entry | None, after: Entry | None) -> list[Count]:
    """How the tallies change. A total counts every entry, a tag's count only the open ones."""
    steps: dict[tuple[str, str], int] = {}
    labels = {"": ""}
    for entry, step in ((before, -1), (after, 1)):
        if entry is None:
            continue
        named = dict(zip(folded_tags(entry), entry.tags, strict=True))
        labels |= named
        for session in {"", entry.session}:
            for tag in ("",) if entry.done else ("", *named):
                steps[session, tag] = steps.get((session, tag), 0) + step
    return [Count(session, tag, labels[tag], step) for (session, tag), step in sorted(steps.items()) if step]


def event_conditions(scope: Scope, query: EventQuery, mark: str) -> dict[str, Any]:
    """What a query for events asks of `events v`: condition and value. `mark` is how the dialect writes a value."""
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
    return {f"{condition} {mark}": value for condition, value in conditions.items() if value is not None}
