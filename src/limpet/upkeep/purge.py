"""Purge: remove everything that came from an origin that is no longer trusted.

The origin of an entry is the writer of its last version, and the origin of an output is the tool that produced it.
Limpet sets both. A removal is recorded as an event, so that `undo` can restore the entry. `forever` also erases the
texts that events store, and every earlier version from that origin.

Messages stay in their positions with their texts blanked, because providers refuse a call without its result. The
folds and tasks that summarise them are blanked too. Lines of the journal that came from the origin are removed in one
edit of its file. They are stored with the deleted entry, so that `undo` restores them and `forever` erases them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from limpet import errors, limits
from limpet.catalogue.operation import Context, Json, a_name
from limpet.journal import file as files
from limpet.journal.document import removal
from limpet.journal.document.removal import RemovedPiece
from limpet.journal.recover import journal_of
from limpet.memory import validity
from limpet.model import (
    FOLD,
    HANDOFF,
    JOURNAL,
    MEMORY,
    MESSAGE,
    NOTE,
    NOTEPAD,
    OUTPUT,
    PIN,
    PROPOSAL,
    SCRATCHPAD,
    SESSION,
    STATE,
    SYSTEM_PROMPT,
    TASK,
    TOOL,
    Draft,
    Entry,
    EntryName,
    Event,
    Stamp,
    Validity,
    iso,
)
from limpet.recall.recall import moment_of
from limpet.record import NamedTuple
from limpet.session.records import SessionRecord
from limpet.store import DELETE, Decide, Delete, EventQuery, Listing, entry_from
from limpet.window.transcript import PURGED, blanked, message_of, position_of

T = TypeVar("T")
Pieces = Mapping[str, tuple[Mapping[str, Any], ...]]  # removed from the journal, as JSON, by the key of the entry
MAKERS = 20  # changes that are searched for the one that gave an entry its text
REMOVED = "taken"  # the member of an entry's extra that holds its pieces
JOURNAL_FILES = ("journal", "archive")
DELETED_KINDS = (NOTE, NOTEPAD, SCRATCHPAD, MEMORY, HANDOFF, STATE, SYSTEM_PROMPT, PIN, JOURNAL, PROPOSAL)
OUTPUTS_STAY_GONE = "Outputs cannot be brought back; each leaves a tombstone that says what it was."
REWORDED = "{count} entries of the journal no longer stand in its file as they were added: look there by hand."
JOURNAL_OPEN = (
    "Whoever has the journal open and saves it as it was brings its lines back; so does an older commit of it."
)
NO_NAMES = "Summaries, notepads and handoffs made of results do not say of which tool: tool alone finds those too."
COPIES = "Exports and backups made before still hold it."
LEFTOVERS = "Unused parts of the store's files may still hold it until they are written anew."


class Origin(NamedTuple):
    """The origin to purge: a writer (`agent`, `person`, `import`, `tool`), or one with a detail (`agent/sandbox`)."""

    name: str
    since: int
    session: str | None

    @property
    def who(self) -> str:
        return self.name.partition("/")[0]

    @property
    def more(self) -> str:
        return self.name.partition("/")[2]

    def may_be(self, entry: Entry) -> bool:
        """Whether the fields of the entry allow this origin."""
        result = entry.kind == MESSAGE and entry.extra.get("role") == TOOL  # stored before messages had origins
        origins = (TOOL if result else entry.origin, *entry.extra.get("sources", ()))
        return self.who in origins and entry.updated_at >= self.since

    def is_of(self, entry: Entry, maker: Event | None) -> bool:
        """Whether the change that made the entry, if it is known, has this origin too."""
        by = not self.more or (maker is not None and fnmatchcase(maker.by, self.name))
        sessions = (entry.session, maker.session if maker is not None else entry.session)
        return by and (self.session is None or self.session in sessions)


class Name(NamedTuple):
    kind: str
    key: str
    session: str
    updated_at: int
    version: int


class Purged(NamedTuple):
    origin: str
    dry_run: bool
    names: tuple[Name, ...]  # the first of them
    counts: Mapping[str, int]
    purge: str  # the id that the events of this purge share; empty when there are none
    erased: int  # changes whose text was erased
    remarks: tuple[str, ...]


def purge(
    ctx: Context,
    origin: str | None = None,
    since: str | None = None,
    session: str | None = None,
    dry_run: bool = False,
    forever: bool = False,
    id: str | None = None,
    version: int | None = None,
) -> Purged:
    if id is not None and origin is None:
        return (
            _purge_version(ctx, id, version, dry_run, forever) if version else _purge_entry(ctx, id, dry_run, forever)
        )
    if origin is None:
        raise errors.missing("purge", "origin or id")
    if id is not None or version is not None:
        raise errors.not_used("purge", "an origin", "id and version")
    sought = Origin(
        a_name("origin", origin, limits.SESSION_MAX_CHARS),
        0 if since is None else moment_of("since", since, ctx.now),
        None if session is None else a_name("session", session, limits.SESSION_MAX_CHARS),
    )
    direct, outputs = _entries(ctx, sought), _outputs(ctx, sought)
    entries = list(dict.fromkeys([*direct, *_summaries_of(ctx, direct)]))
    names = (*entries, *outputs)
    remarks = _remarks(sought, names)
    if dry_run:
        counts = Counter(name.kind for name in names)
        return Purged(origin, True, names[: limits.HISTORY_SHOWN], counts, "", 0, tuple(remarks))
    id = f"purge-{os.urandom(6).hex()}"
    stamp = ctx.stamp("purge", {"purge": id, "origin": sought.name})
    pieces, notes = _remove_lines(ctx, entries)
    remarks += notes
    counts = Counter()
    hidden = _replaced_by(ctx, entries)
    for batch in _batches(entries):
        edits = [edit for name in batch for edit in _edits(sought, name, pieces.get(name.key, ()))]
        changes = ctx.store.entries.edit_all(ctx.scope, edits, stamp)
        done = {(change.entry.kind, change.entry.key) for change in changes if change.seq}
        counts.update(kind for kind, _ in done)
    _let_hold(ctx, hidden, stamp, forever=forever)
    for batch in _batches(outputs):
        counts[OUTPUT] += ctx.store.outputs.purge(ctx.scope, [name.key for name in batch], stamp)
    erased = 0
    if forever:
        for seqs in _batches(list(_changes_with_text(ctx, sought, id, entries))):
            erased += ctx.store.entries.erase(ctx.scope, seqs)
        remarks += [COPIES, *([] if ctx.store.scrub() else [LEFTOVERS]), *_forget_lines(ctx, pieces)]
    return Purged(origin, False, names[: limits.HISTORY_SHOWN], +counts, id if entries else "", erased, tuple(remarks))


# --- one entry or one version -----------------------------------------------------------------------------------------


def _purge_entry(ctx: Context, id: str, dry_run: bool, forever: bool) -> Purged:
    entry = _entry_named(ctx, id)
    if entry is None and forever:  # it is gone, and its history is not
        entry = _last_of(ctx, id)
    if entry is None:
        raise errors.no_entry("entry", id, "list_notes and list_memory give those that exist.")
    name = _name(entry)
    if dry_run:
        return Purged(id, True, (name,), {name.kind: 1}, "", 0, ())
    purge_id = f"purge-{os.urandom(6).hex()}"
    pieces, remarks = _remove_lines(ctx, [name])
    stamp = ctx.stamp("purge", {"purge": purge_id, "origin": f"id/{name.key}"})
    edits = list(_edits(Origin("", 0, None), name, pieces.get(name.key, ())))
    hidden = _replaced_by(ctx, [name])
    changes = ctx.store.entries.edit_all(ctx.scope, edits, stamp)
    _let_hold(ctx, hidden, stamp, forever=forever)
    erased = 0
    if forever:
        seqs = [event.seq for event in _events_of(ctx, name) if event.before is not None]
        erased = ctx.store.entries.erase(ctx.scope, seqs)
        remarks += [COPIES, *([] if ctx.store.scrub() else [LEFTOVERS]), *_forget_lines(ctx, pieces)]
    gone = any(change.seq for change in changes)
    counts = {name.kind: 1} if gone or erased else {}
    return Purged(id, False, (name,), counts, purge_id if gone else "", erased, tuple(remarks))


def _purge_version(ctx: Context, id: str, version: int, dry_run: bool, forever: bool) -> Purged:
    """Take one earlier version out of history. Its change stays, without the text."""
    entry = _entry_named(ctx, id) or _last_of(ctx, id)
    if entry is None:
        raise errors.no_entry("entry", id, "list_notes and list_memory give those that exist.")
    if entry.version == version and _entry_named(ctx, id) is not None:
        raise errors.current_version(id, version)
    if not (forever or dry_run):
        raise errors.only_forever(id, version)
    events = [event for event in _events_of(ctx, _name(entry)) if event.before and event.before.version == version]
    if not events:
        raise errors.no_version(f"{entry.kind} {id}", version, entry.version)
    name = _name(entry)._replace(version=version)
    if dry_run:
        return Purged(id, True, (name,), {name.kind: 1}, "", 0, ())
    erased = ctx.store.entries.erase(ctx.scope, [event.seq for event in events])
    remarks = (COPIES, *(() if ctx.store.scrub() else (LEFTOVERS,)))
    return Purged(id, False, (name,), {name.kind: 1}, "", erased, remarks)


def _entry_named(ctx: Context, id: str) -> Entry | None:
    entries = (ctx.store.entries.read(ctx.scope, kind, id) for kind in DELETED_KINDS)
    return next((entry for entry in entries if entry is not None), None)


def _last_of(ctx: Context, id: str) -> Entry | None:
    """The last text of an entry that is gone."""
    for kind in DELETED_KINDS:
        for event in ctx.store.entries.events(ctx.scope, EventQuery(kind, id, limit=1)):
            return event.before
    return None


def _events_of(ctx: Context, name: Name) -> Iterator[Event]:
    before_seq: int | None = None
    query = EventQuery(name.kind, name.key, limit=limits.LIST_MAX)
    while events := ctx.store.entries.events(ctx.scope, query._replace(before_seq=before_seq)):
        yield from events
        before_seq = events[-1].seq


# --- finding ----------------------------------------------------------------------------------------------------------


def _entries(ctx: Context, sought: Origin) -> list[Name]:
    matches: list[tuple[Name, Entry | None]] = []  # the entry is None where the name is enough to decide
    tools = _Tools(sought)
    for what, record in ctx.store.entries.dump(ctx.scope):
        if what != "entry":
            break
        entry = entry_from(record)
        if entry.kind == MESSAGE:
            if tools.match(entry) and sought.may_be(entry) and sought.session in (None, entry.session):
                matches.append((_name(entry), None))
        elif entry.kind == SESSION:
            if cleared(sought, entry) is not None and sought.session in (None, entry.key):
                matches.append((_name(entry), None))
        elif entry.kind in (*DELETED_KINDS, TASK) and entry.content != PURGED and sought.may_be(entry):
            matches.append((_name(entry), entry._replace(content="")))
    return [name for name, entry in matches if entry is None or sought.is_of(entry, _maker(ctx, sought, entry))]


class _Tools:
    """Matches messages to the tool of the origin, if it names one: the preceding call names the tool. Messages come in
    order."""

    def __init__(self, sought: Origin) -> None:
        self.pattern = sought.more if sought.who == TOOL else ""
        self.calls: dict[tuple[str, str], str] = {}

    def match(self, entry: Entry) -> bool:
        if not self.pattern:
            return True
        message = message_of(entry)
        self.calls |= {(entry.session, call.id): call.name for call in message.calls()}
        names = [self.calls.get((entry.session, result.call_id), "") for result in message.results()]
        return any(fnmatchcase(name, self.pattern) for name in names)


def cleared(sought: Origin, entry: Entry) -> Draft | None:
    """A session without the texts from this origin: its task, its result, and the checkpoint of a compaction."""
    record, content = SessionRecord.from_json(entry.extra), entry.content
    if sought.may_be(entry) and not sought.more:
        content = PURGED if content else ""
        record = record._replace(result=record.result and PURGED)
    hosted = record.hosted
    if hosted and hosted.checkpoint not in ("", PURGED):
        source, at = hosted.source or entry.origin, hosted.at or entry.updated_at
        if source == sought.who and at >= sought.since:
            record = record._replace(hosted=hosted._replace(checkpoint=PURGED))
    if (content, record) == (entry.content, SessionRecord.from_json(entry.extra)):
        return None
    return entry.revised(content=content, extra=record.to_json())


def _name(entry: Entry) -> Name:
    return Name(entry.kind, entry.key, entry.session, entry.updated_at, entry.version)


def _maker(ctx: Context, sought: Origin, entry: Entry, before_seq: int | None = None) -> Event | None:
    """The change that gave the entry its text. It is not looked up where the origin does not depend on it."""
    if not sought.more and sought.session is None:
        return None
    events = ctx.store.entries.events(ctx.scope, EventQuery(entry.kind, entry.key, before_seq=before_seq, limit=MAKERS))
    restored: str | None = None  # a text that an undo brought back was made earlier
    for event in events:
        changed = event.before is None or event.after is None or event.before.content != event.after.content
        if not changed or (restored is not None and (event.after is None or event.after.content != restored)):
            continue
        if event.operation != "undo" or event.after is None:
            return event
        restored = event.after.content
    return events[-1] if events else None


def _outputs(ctx: Context, sought: Origin) -> list[Name]:
    if sought.who != TOOL:
        return []
    page = ctx.store.outputs.list(ctx.scope, max(1, ctx.store.outputs.stats(ctx.scope).entries))
    return [
        Name(OUTPUT, output.id, output.session, output.created_at, 1)
        for output in page.outputs
        if fnmatchcase(output.tool, sought.more or "*")
        and output.created_at >= sought.since
        and sought.session in (None, output.session)
    ]


def _summaries_of(ctx: Context, entries: list[Name]) -> list[Name]:
    """The folds and tasks that summarise messages among these."""
    positions: dict[str, set[int]] = {}
    for name in entries:
        if name.kind == MESSAGE:
            positions.setdefault(name.session, set()).add(position_of(name.key))
    summaries = []
    for session, places in positions.items():
        page = ctx.store.entries.list(
            ctx.scope, Listing((FOLD, TASK), session, include_done=True, limit=limits.FOLDS_READ)
        )
        for entry in page.entries:
            first, last = entry.extra.get("first", 0), entry.extra.get("last", -1)
            if any(first <= place <= last for place in places):
                summaries.append(_name(entry))
    return summaries


def _changes_with_text(ctx: Context, sought: Origin, id: str, entries: Sequence[Name]) -> Iterator[int]:
    """The changes that store a text from this origin, or one that was just removed."""
    summaries = {(name.kind, name.key) for name in entries if name.kind in (FOLD, TASK)}
    before_seq: int | None = None
    while events := ctx.store.entries.events(ctx.scope, EventQuery(before_seq=before_seq, limit=limits.LIST_MAX)):
        for event in events:
            if event.before is None:
                continue
            in_session = event.kind == SESSION and sought.session in (None, event.key) and cleared(sought, event.before)
            if (
                in_session
                or event.detail.get("purge") == id
                or (event.kind, event.key) in summaries
                or (
                    event.kind in (*DELETED_KINDS, MESSAGE)
                    and sought.may_be(event.before)
                    and sought.is_of(event.before, _maker(ctx, sought, event.before, event.seq))
                )
            ):
                yield event.seq
        before_seq = events[-1].seq


def _batches(names: Sequence[T]) -> Iterator[Sequence[T]]:
    for at in range(0, len(names), limits.PURGE_BATCH):
        yield names[at : at + limits.PURGE_BATCH]


# --- removing ---------------------------------------------------------------------------------------------------------


def _edits(sought: Origin, name: Name, pieces: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, Decide]]:
    if pieces:  # stored first, so that the event of the deletion holds the lines removed from the file
        yield name.kind, name.key, _storing_pieces(name, pieces)
        name = name._replace(version=name.version + 1)
    yield name.kind, name.key, _removing(sought, name)


def _storing_pieces(name: Name, pieces: Sequence[Mapping[str, Any]]) -> Decide:
    def decide(before: Entry | None) -> Draft | None:
        if before is None or before.version != name.version:
            return None
        extra = {**before.extra, REMOVED: [dict(piece) for piece in pieces]}
        return Draft(before.content, before.session, before.tags, before.done, before.pinned, extra)

    return decide


def _replaced_by(ctx: Context, names: Sequence[Name]) -> list[tuple[EntryName, EntryName]]:
    """The notes and memory that these have replaced, each with the one that did."""
    purged = {(name.kind, name.key) for name in names}
    facts = [entry for kind, key in purged if kind in (NOTE, MEMORY) and (entry := _read(ctx, EntryName(kind, key)))]
    pairs = [(Validity.of(entry.extra).replaces, EntryName(entry.kind, entry.key)) for entry in facts]
    return [(old, by) for old, by in pairs if old is not None and old not in purged]


def _read(ctx: Context, name: EntryName) -> Entry | None:
    return ctx.store.entries.read(ctx.scope, *name)


def _let_hold(ctx: Context, hidden: Sequence[tuple[EntryName, EntryName]], stamp: Stamp, *, forever: bool) -> None:
    """What a purged text had replaced holds again: otherwise a false correction would hide the fact for ever."""

    def back(by: EntryName) -> Decide:
        def decide(before: Entry | None) -> Draft | None:
            if before is None or Validity.of(before.extra).replaced_by != by:
                return None
            return validity.restored(before)

        return decide

    gone = [(old, by) for old, by in hidden if _read(ctx, by) is None]
    if forever:  # as what was erased, it is not undone
        stamp = stamp._replace(detail={**stamp.detail, "erased": True})
    for batch in _batches(gone):
        ctx.store.entries.edit_all(ctx.scope, [(*old, back(by)) for old, by in batch], stamp)


def _removing(sought: Origin, name: Name) -> Decide:
    def decide(before: Entry | None) -> Draft | Delete | None:
        if before is None or before.version != name.version:
            return None  # changed concurrently: this is not the version that was examined
        if before.kind in DELETED_KINDS:
            return DELETE
        if before.kind == SESSION:
            return cleared(sought, before)
        return blanked(before)

    return decide


def _remarks(sought: Origin, names: tuple[Name, ...]) -> list[str]:
    kinds = {name.kind for name in names}
    remarks = [OUTPUTS_STAY_GONE] if OUTPUT in kinds else []
    return remarks + ([NO_NAMES] if sought.who == TOOL and sought.more else [])


def purged_json(value: Purged) -> Json:
    answer: Json = {
        "origin": value.origin,
        "dry_run": value.dry_run,
        "counts": dict(sorted(value.counts.items())),
        "entries": [
            {"kind": name.kind, "id": name.key, "session": name.session, "at": iso(name.updated_at)}
            for name in value.names
        ],
        "remarks": list(value.remarks),
    }
    answer |= {"purge": value.purge} if value.purge else {}
    return answer | ({"erased": value.erased} if value.erased else {})


# --- the journal's file -----------------------------------------------------------------------------------------------


def _remove_lines(ctx: Context, entries: Sequence[Name]) -> tuple[Pieces, list[str]]:
    """Remove the journal's lines from its files, and remark on those that are not found there.

    This comes before the entries are deleted: if it fails, nothing has changed.
    """
    contents = {}
    for name in entries:
        if name.kind == JOURNAL and (entry := ctx.store.entries.read(ctx.scope, JOURNAL, name.key)):
            contents[name.key] = entry.content
    if not contents:
        return {}, []
    pieces = _cut_out(ctx, contents)
    missing = len(contents) - len(pieces)
    return pieces, [REWORDED.format(count=missing)] if missing else []


def _cut_out(ctx: Context, entries: Mapping[str, str]) -> Pieces:
    """Remove entries, by key and content, from the journal and its archive. Each file is written once."""
    keys, contents = list(entries), list(entries.values())
    removed: dict[str, list[Mapping[str, Any]]] = {}
    for name, file in _journal_files(ctx):
        if not (files.read(file) or "").strip():
            continue  # no file, or an empty one
        pieces: list[tuple[int, RemovedPiece]] = []

        def change(text: str, pieces: list[tuple[int, RemovedPiece]] = pieces) -> str:
            rest, pieces[:] = removal.without(text, contents)
            return rest

        files.update(file, change)
        for number, piece in pieces:
            removed.setdefault(keys[number], []).append({"place": name, **piece._asdict()})
    return {key: tuple(parts) for key, parts in removed.items()}


def restore_lines(ctx: Context, events: Iterable[Event]) -> None:
    """Restore the lines of the journal that a purge removed with these deletions."""
    pieces = [piece for event in events if event.before for piece in event.before.extra.get(REMOVED, ())]
    for name, file in _journal_files(ctx):
        own = [removal.from_json(piece) for piece in pieces if piece["place"] == name]
        if own and (files.read(file) or "").strip():
            files.update(file, lambda text, own=own: removal.put_back(text, own))  # type: ignore[misc]


def _forget_lines(ctx: Context, removed: Pieces) -> list[str]:
    """Remove the same lines from the stored earlier versions of the files, which are kept for merging."""
    if not removed:
        return []
    texts = [str(piece["text"]) for pieces in removed.values() for piece in pieces]
    for _, file in _journal_files(ctx):
        with suppress(FileNotFoundError):
            files.forget(file, texts)
    return [JOURNAL_OPEN]


def _journal_files(ctx: Context) -> tuple[tuple[str, files.JournalFile], ...]:
    journal = journal_of(ctx)
    return tuple(zip(JOURNAL_FILES, (journal.place, journal.archive), strict=True))
