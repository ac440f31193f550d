"""Purge: take out what came from an origin that is no longer trusted, everywhere at once.

The origin of an entry is who wrote its last version, that of an output the tool that printed it; both are set by us.
What is taken out leaves an event, so that `undo` brings it back. `forever` takes out what the events keep as well, and
every earlier version from that origin.

What was said in a conversation keeps its place, because a provider refuses a call without its result: its texts are
blanked. So are the summaries, folds and tasks that speak of it. Lines of the journal that came from the origin go from
its file, as one edit of it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, TypeVar

from limpet import limits
from limpet.catalogue.check import a_name
from limpet.catalogue.operation import Context, Json
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
    SCRATCHPAD,
    SESSION,
    STATE,
    SYSTEM_PROMPT,
    TASK,
    TOOL,
    Draft,
    Entry,
    Event,
    iso,
)
from limpet.recall.recall import moment_of
from limpet.session.records import SessionRecord
from limpet.store import DELETE, Decide, Delete, EventQuery, Listing, entry_from
from limpet.upkeep import purge_journal
from limpet.window.records import PURGED
from limpet.window.transcript import blanked, message_of, position_of

T = TypeVar("T")
MAKERS = 20  # changes that are looked through for the one that gave an entry its text
TAKEN_OUT = (NOTE, NOTEPAD, SCRATCHPAD, MEMORY, HANDOFF, STATE, SYSTEM_PROMPT, PIN, JOURNAL)
OUTPUTS_STAY_GONE = "Outputs cannot be brought back; each leaves a tombstone that says what it was."
REWORDED = "{count} entries of the journal no longer stand in its file as they were added: look there by hand."
JOURNAL_OPEN = (
    "Whoever has the journal open and saves it as it was brings its lines back; so does an older commit of it."
)
NO_NAMES = "Summaries, notepads and handoffs made of results do not say of which tool: tool alone finds those too."
COPIES = "Exports and backups made before still hold it."
LEFTOVERS = "Unused parts of the store's files may still hold it until they are written anew."


class Origin(NamedTuple):
    """What is looked for: a who (`agent`, `person`, `import`, `tool`) or one with more said (`agent/sandbox`)."""

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
        """Whether the entry itself does not speak against it."""
        result = entry.kind == MESSAGE and entry.extra.get("role") == TOOL  # kept before messages had origins
        origins = (TOOL if result else entry.origin, *entry.extra.get("sources", ()))
        return self.who in origins and entry.updated_at >= self.since

    def is_of(self, entry: Entry, maker: Event | None) -> bool:
        """… and whether the change that made it, where there is one, says the same."""
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
    purge: str  # what the events of this purge have in common; empty when there are none
    erased: int  # changes whose text is gone for good
    remarks: tuple[str, ...]


def purge(
    ctx: Context,
    origin: str,
    since: str | None = None,
    session: str | None = None,
    dry_run: bool = False,
    forever: bool = False,
) -> Purged:
    sought = Origin(
        a_name("origin", origin, limits.SESSION_MAX_CHARS),
        0 if since is None else moment_of("since", since, ctx.now),
        None if session is None else a_name("session", session, limits.SESSION_MAX_CHARS),
    )
    known, outputs = _entries(ctx, sought), _outputs(ctx, sought)
    entries = list(dict.fromkeys([*known, *_speaking_of(ctx, known)]))
    names = (*entries, *outputs)
    remarks = _remarks(sought, names)
    if dry_run:
        counts = Counter(name.kind for name in names)
        return Purged(origin, True, names[: limits.HISTORY_SHOWN], counts, "", 0, tuple(remarks))
    id = f"purge-{os.urandom(6).hex()}"
    stamp = ctx.stamp("purge", {"purge": id, "origin": sought.name})
    pieces, notes = _out_of_the_file(ctx, entries)
    remarks += notes
    counts = Counter()
    for batch in _batches(entries):
        edits = [edit for name in batch for edit in _edits(sought, name, pieces.get(name.key, ()))]
        changes = ctx.store.entries.edit_all(ctx.scope, edits, stamp)
        done = {(change.entry.kind, change.entry.key) for change in changes if change.seq}
        counts.update(kind for kind, _ in done)
    for batch in _batches(outputs):
        counts[OUTPUT] += ctx.store.outputs.purge(ctx.scope, [name.key for name in batch], stamp)
    erased = 0
    if forever:
        for seqs in _batches(list(_remembering(ctx, sought, id, entries))):
            erased += ctx.store.entries.erase(ctx.scope, seqs)
        remarks += [COPIES, *([] if ctx.store.scrub() else [LEFTOVERS]), *_out_of_the_states(ctx, pieces)]
    return Purged(origin, False, names[: limits.HISTORY_SHOWN], +counts, id if entries else "", erased, tuple(remarks))


# --- what there is ----------------------------------------------------------------------------------------------------


def _entries(ctx: Context, sought: Origin) -> list[Name]:
    found: list[tuple[Name, Entry | None]] = []  # without an entry where nothing more needs to be asked
    tools = _Tools(sought)
    for what, record in ctx.store.entries.dump(ctx.scope):
        if what != "entry":
            break
        entry = entry_from(record)
        if entry.kind == MESSAGE:
            if tools.said(entry) and sought.may_be(entry) and sought.session in (None, entry.session):
                found.append((_name(entry), None))
        elif entry.kind == SESSION:
            if cleared(sought, entry) is not None and sought.session in (None, entry.key):
                found.append((_name(entry), None))
        elif entry.kind in (*TAKEN_OUT, TASK) and entry.content != PURGED and sought.may_be(entry):
            found.append((_name(entry), entry._replace(content="")))
    return [name for name, entry in found if entry is None or sought.is_of(entry, _maker(ctx, sought, entry))]


class _Tools:
    """Which tool a message is of, where that is asked for: the call before it says so. Messages come in order."""

    def __init__(self, sought: Origin) -> None:
        self.pattern = sought.more if sought.who == TOOL else ""
        self.calls: dict[tuple[str, str], str] = {}

    def said(self, entry: Entry) -> bool:
        if not self.pattern:
            return True
        message = message_of(entry)
        self.calls |= {(entry.session, call.id): call.name for call in message.calls()}
        names = [self.calls.get((entry.session, result.call_id), "") for result in message.results()]
        return any(fnmatchcase(name, self.pattern) for name in names)


def cleared(sought: Origin, entry: Entry) -> Draft | None:
    """A session without what it says from this origin: its task, its result, and what was said before a compaction."""
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
    """The change that gave it its text, looked up only where it matters."""
    if not sought.more and sought.session is None:
        return None
    events = ctx.store.entries.events(ctx.scope, EventQuery(entry.kind, entry.key, before_seq=before_seq, limit=MAKERS))
    for event in events:
        if event.before is None or event.after is None or event.before.content != event.after.content:
            return event
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


def _speaking_of(ctx: Context, entries: list[Name]) -> list[Name]:
    """Folds and tasks that stand for messages among these: what they say was taken from them."""
    said: dict[str, set[int]] = {}
    for name in entries:
        if name.kind == MESSAGE:
            said.setdefault(name.session, set()).add(position_of(name.key))
    found = []
    for session, places in said.items():
        page = ctx.store.entries.list(
            ctx.scope, Listing((FOLD, TASK), session, include_done=True, limit=limits.FOLDS_READ)
        )
        for entry in page.entries:
            first, last = entry.extra.get("first", 0), entry.extra.get("last", -1)
            if any(first <= place <= last for place in places):
                found.append(_name(entry))
    return found


def _remembering(ctx: Context, sought: Origin, id: str, entries: Sequence[Name]) -> Iterator[int]:
    """The changes that keep a text from this origin, or one that was just taken out."""
    summaries = {(name.kind, name.key) for name in entries if name.kind in (FOLD, TASK)}
    before_seq: int | None = None
    while events := ctx.store.entries.events(ctx.scope, EventQuery(before_seq=before_seq, limit=limits.LIST_MAX)):
        for event in events:
            if event.before is None:
                continue
            told = event.kind == SESSION and sought.session in (None, event.key) and cleared(sought, event.before)
            if (
                told
                or event.detail.get("purge") == id
                or (event.kind, event.key) in summaries
                or (
                    event.kind in (*TAKEN_OUT, MESSAGE)
                    and sought.may_be(event.before)
                    and sought.is_of(event.before, _maker(ctx, sought, event.before, event.seq))
                )
            ):
                yield event.seq
        before_seq = events[-1].seq


def _batches(names: Sequence[T]) -> Iterator[Sequence[T]]:
    for at in range(0, len(names), limits.PURGE_BATCH):
        yield names[at : at + limits.PURGE_BATCH]


# --- taking it out ----------------------------------------------------------------------------------------------------


def _edits(sought: Origin, name: Name, pieces: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, Decide]]:
    if pieces:  # noted first, so that the event of the deletion knows what went from the file
        yield name.kind, name.key, _noting(name, pieces)
        name = name._replace(version=name.version + 1)
    yield name.kind, name.key, _taking_out(sought, name)


def _noting(name: Name, pieces: Sequence[Mapping[str, Any]]) -> Decide:
    def decide(before: Entry | None) -> Draft | None:
        if before is None or before.version != name.version:
            return None
        extra = {**before.extra, "taken": [dict(piece) for piece in pieces]}
        return Draft(before.content, before.session, before.tags, before.done, before.pinned, extra)

    return decide


def _taking_out(sought: Origin, name: Name) -> Decide:
    def decide(before: Entry | None) -> Draft | Delete | None:
        if before is None or before.version != name.version:
            return None  # somebody else was faster, and it is no longer what was looked at
        if before.kind in TAKEN_OUT:
            return DELETE
        if before.kind == SESSION:
            return cleared(sought, before)
        return blanked(before)

    return decide


Pieces = Mapping[str, tuple[Mapping[str, Any], ...]]


def _out_of_the_file(ctx: Context, entries: Sequence[Name]) -> tuple[Pieces, list[str]]:
    """Take the journal's lines out of its file, before their entries go: should that fail, nothing has happened."""
    contents = {}
    for name in entries:
        if name.kind == JOURNAL and (entry := ctx.store.entries.read(ctx.scope, JOURNAL, name.key)):
            contents[name.key] = entry.content
    if not contents:
        return {}, []
    removed = purge_journal.take_out(ctx, contents)
    return removed.pieces, [REWORDED.format(count=removed.missing)] if removed.missing else []


def _out_of_the_states(ctx: Context, pieces: Pieces) -> list[str]:
    """Take the same lines out of what is kept of the file to merge from."""
    if not pieces:
        return []
    purge_journal.forget(ctx, [str(piece["text"]) for some in pieces.values() for piece in some])
    return [JOURNAL_OPEN]


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
