"""History and undo for entries of every kind. Both read events; undo writes a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from limpet import errors, limits
from limpet.catalogue.late import LateModule
from limpet.catalogue.operation import Context, Json
from limpet.memory import layers
from limpet.model import (
    FOLD,
    HANDOFF,
    IMPORT,
    JOURNAL,
    MEMORY,
    NOTE,
    PERSON,
    PROPOSAL,
    SESSION,
    WRITTEN_AT,
    Draft,
    Entry,
    Event,
    iso,
    written_at,
)
from limpet.record import NamedTuple
from limpet.redaction import VERBATIM
from limpet.store import DELETE, Decide, Delete, EventQuery

if TYPE_CHECKING:
    from limpet.journal import write as journal
    from limpet.journal.document import removal
    from limpet.upkeep import purge
else:  # loads the window and redaction, which a history or the undo of one change does not need
    purge, journal, removal = map(LateModule, ("upkeep.purge", "journal.write", "journal.document.removal"))

# Side effects, which are not meant by "the last change".
AUTOMATIC = (
    *("begin_session", "see_tools", "show_handoff", "use_handoff"),
    *("before_compact", "take_restore", "show_context"),
)
EXCERPT = 120  # characters of a content in a listing


class History(NamedTuple):
    events: tuple[Event, ...]


class Undone(NamedTuple):
    event: Event
    seq: int
    restored: int = 0  # entries that are back, when a purge was undone


def history(
    ctx: Context,
    kind: str | None = None,
    key: str | None = None,
    before_seq: int | None = None,
    limit: int = limits.HISTORY_SHOWN,
    layer: str | None = None,
) -> History:
    """Changes of the project, or of another layer of memory, newest first. What waits for a person is shown to one."""
    ctx = layers.named(ctx, layer)
    events = ctx.store.entries.events(ctx.scope, EventQuery(kind, key, before_seq=before_seq, limit=limit))
    if ctx.who == PERSON:
        return History(events)
    return History(tuple(e._replace(before=None, after=None) if e.kind == PROPOSAL else e for e in events))


def undo(ctx: Context, seq: int | None = None, dry_run: bool = False, layer: str | None = None) -> Undone:
    """Undo one change: the given one, or the caller's newest that is neither an undo nor undone."""
    ctx = layers.named(ctx, layer)
    if layer == layers.TEAM:
        raise errors.not_for_files("undone")
    if layer == PERSON and ctx.who != PERSON:
        raise errors.needs_a_person("what is kept for a person", "limpet history --layer person")
    event = _last(ctx) if seq is None else ctx.store.entries.event(ctx.scope, seq)
    if event is None:
        raise errors.no_event(seq) if seq is not None else _nothing_left(ctx)
    if dry_run:
        return Undone(event, 0)

    if problem := _never(event):
        raise problem
    if event.operation == "purge":
        return _unpurge(ctx, event)

    def decide(now: Entry | None) -> Draft | Delete:
        # The content decides, not the version: a later change that was itself undone is no obstacle.
        if _state(now) != _state(event.after):
            raise errors.changed_since(event.seq, event.kind, event.key)
        return _as_it_was(event)

    stamp = ctx.stamp("undo", {"of": event.seq})._replace(masking=VERBATIM)
    if event.kind == JOURNAL:
        _undo_in_file(ctx, event)
    if half := _other_half(ctx, event):
        return _unreplace(ctx, event, half)
    change = ctx.store.entries.edit(ctx.scope, event.kind, event.key, decide, stamp)
    return Undone(event, change.seq)


def _never(event: Event) -> errors.LimpetError | None:
    """Why this change cannot be undone at any time."""
    if event.detail.get("erased"):
        return errors.change_erased(event.seq)
    if event.operation != "purge" and event.kind == SESSION and event.before is None:
        return errors.sessions_stay(event.key)
    return None


def can_undo(ctx: Context, event: Event) -> bool:
    """Whether `undo` would take this change back now."""
    if _never(event):
        return False
    if event.kind == JOURNAL and event.operation != "purge" and not _hunks(ctx, event)[0]:
        return False
    half = None if event.operation == "purge" else _other_half(ctx, event)
    return all(
        _state(ctx.store.entries.read(ctx.scope, change.kind, change.key)) == _state(change.after)
        for change in (event, half)
        if change is not None
    )


def _undo_in_file(ctx: Context, event: Event) -> None:
    """Undo a change of the journal in its file. This comes first: if it fails, nothing has changed."""
    if _state(ctx.store.entries.read(ctx.scope, JOURNAL, event.key)) != _state(event.after):
        raise errors.changed_since(event.seq, event.kind, event.key)
    hunks, again = _hunks(ctx, event)
    if not hunks:
        raise errors.journal_stays(event.seq)
    journal.take_back(ctx, [removal.Hunk(**hunk) for hunk in hunks], event.seq, again=again)


def _hunks(ctx: Context, event: Event) -> tuple[Sequence[Mapping[str, Any]], bool]:
    """What a change of the journal did to its file, and whether undoing it does that again; none if it is not known."""
    source, again = event, False
    while source.operation == "undo":  # back to the change that an undo, or the undo of an undo, is about
        earlier = ctx.store.entries.event(ctx.scope, source.detail["of"])
        if earlier is None:
            return (), again
        source, again = earlier, not again
    return (source.after.extra.get(removal.EDITED, ()) if source.after is not None else ()), again


def _other_half(ctx: Context, event: Event) -> Event | None:
    """A correction makes two changes, one after the other: of the new text, and of what it replaces."""
    if "replaces" not in event.detail or event.kind == PROPOSAL:  # the third of an acceptance stays decided
        return None
    replaced = event.detail["replaces"] == [event.kind, event.key]
    half = ctx.store.entries.event(ctx.scope, event.seq - 1 if replaced else event.seq + 1)
    return half if half is not None and half.detail == event.detail and half.at == event.at else None


def _unreplace(ctx: Context, event: Event, half: Event) -> Undone:
    """Undo both halves of a correction, or neither: the old text holds again, and the new one is gone."""
    halves = sorted((event, half), key=lambda change: change.seq)
    stamp = ctx.stamp("undo", {"of": halves[0].seq, "with": halves[1].seq})._replace(masking=VERBATIM)

    def back(change: Event) -> Decide:
        def decide(now: Entry | None) -> Draft | Delete:
            if _state(now) != _state(change.after):
                raise errors.changed_since(change.seq, change.kind, change.key)
            return _as_it_was(change)

        return decide

    edits = [(half.kind, half.key, back(half)) for half in halves]
    changes = ctx.store.entries.edit_all(ctx.scope, edits, stamp)
    return Undone(halves[0], max(change.seq for change in changes))


def _unpurge(ctx: Context, event: Event) -> Undone:
    """Restore what one purge removed, except entries that were changed since and texts that were erased."""
    purge_id = event.detail["purge"]
    stamp = ctx.stamp("undo", {"of": event.seq, "purge": purge_id})._replace(masking=VERBATIM)
    restored: dict[tuple[str, str], int] = {}
    _journal_back(ctx, purge_id)
    before_seq: int | None = None
    while events := ctx.store.entries.events(
        ctx.scope, EventQuery(operation="purge", before_seq=before_seq, limit=limits.PURGE_BATCH)
    ):
        taken = [purged for purged in events if purged.detail["purge"] == purge_id and not purged.detail.get("erased")]
        changes = ctx.store.entries.edit_all(
            ctx.scope, [(purged.kind, purged.key, _back(purged)) for purged in taken], stamp
        )
        restored |= {(change.entry.kind, change.entry.key): change.seq for change in changes if change.seq}
        before_seq = events[-1].seq
    if not restored:
        raise errors.changed_since(event.seq, event.kind, event.key)
    return Undone(event, max(restored.values()), len(restored))


def _journal_back(ctx: Context, purge_id: str) -> None:
    """Restore the journal's file. This comes first: if it fails, nothing has changed."""
    taken: list[Event] = []
    before_seq: int | None = None
    while events := ctx.store.entries.events(
        ctx.scope, EventQuery(JOURNAL, operation="purge", before_seq=before_seq, limit=limits.PURGE_BATCH)
    ):
        taken += [event for event in events if event.detail["purge"] == purge_id and event.after is None]
        before_seq = events[-1].seq
    if taken:
        purge.restore_lines(ctx, taken)


def _back(event: Event) -> Decide:
    return lambda now: _as_it_was(event) if _state(now) == _state(event.after) else None


def _as_it_was(event: Event) -> Draft | Delete:
    """The entry before the change, with its origin and the time it was written: restoring a text does not make the
    caller its author, nor the text a new one."""
    state = _state(event.before)
    if state is None or event.before is None:
        return DELETE
    extra = state.extra
    if event.kind in (NOTE, MEMORY):
        extra = {**extra, WRITTEN_AT: written_at(event.before)}
    return state._replace(origin=event.before.origin, extra=extra)


def _state(entry: Entry | None) -> Draft | None:
    if entry is None:
        return None
    # That a handoff was shown changes nothing in it; when a fact was written is a time, as that of its last change is.
    besides = ("shown_to", WRITTEN_AT) if entry.kind in (NOTE, MEMORY) else ("shown_to",)
    extra = {name: value for name, value in entry.extra.items() if name not in besides}
    return Draft(entry.content, entry.session, entry.tags, entry.done, entry.pinned, extra)


def _last(ctx: Context) -> Event | None:
    """The newest change of the caller's that can be undone. Undos and what they undid are skipped.

    Folds are skipped too, because they are automatic and not what a caller means by the last change; so are handoffs
    that a session has used since. What others changed is theirs. A deleted output and, for a person, an import
    are not skipped, though they cannot be undone here: otherwise an older change would be undone in their place.
    """
    event = _last_of_caller(ctx)
    gone = ctx.store.outputs.last_deleted(ctx.scope, lambda by: _caller(by) == _caller(ctx.by))
    if gone is not None and gone.gone_at > (event.at if event else 0):
        raise errors.output_stays(gone.id)
    return event


def _nothing_left(ctx: Context) -> errors.NotFound:
    """Why nothing was undone, with the newest change of another if there is one."""
    for event in ctx.store.entries.events(ctx.scope, EventQuery()):
        if event.operation not in (*AUTOMATIC, "undo") and event.kind != FOLD and _caller(event.by) != _caller(ctx.by):
            return errors.nothing_of_yours(event.seq, event.operation, event.by)
    return errors.nothing_to_undo()


def _caller(by: str) -> tuple[str, str]:
    """Who a change is of, through any door: agent/mcp/alice is the agent alice."""
    who, _, rest = by.partition("/")
    return who, rest.partition("/")[2]


def _last_of_caller(ctx: Context) -> Event | None:
    caller = _caller(ctx.by)
    undone: set[int] = set()
    used: set[str] = set()
    purges: set[str] = set()
    before_seq: int | None = None
    while events := ctx.store.entries.events(ctx.scope, EventQuery(before_seq=before_seq)):
        for event in events:
            if event.operation == "undo":
                if event.seq not in undone:
                    undone.update({event.detail["of"], event.detail.get("with", event.detail["of"])})
                    purges.add(event.detail.get("purge", ""))
            elif _caller(event.by) != caller:
                if ctx.who == PERSON and event.by.partition("/")[0] == IMPORT and event.operation not in AUTOMATIC:
                    raise errors.import_stays(event.seq)
            elif event.operation == "purge":
                if event.detail["purge"] not in purges and not event.detail.get("erased"):
                    return event
            elif event.operation == "use_handoff":
                used.add(event.key)
            elif event.operation in AUTOMATIC or event.kind == FOLD or event.seq in undone:
                continue
            elif event.kind != HANDOFF or event.key not in used:
                return event
        before_seq = events[-1].seq
    return None


# --- answers ----------------------------------------------------------------------------------------------------------


def event_json(event: Event) -> Json:
    """A change as JSON, with the beginning of the contents."""

    def excerpt(entry: Entry | None) -> str | None:
        return None if entry is None else entry.content[:EXCERPT]

    return {
        "seq": event.seq,
        "at": iso(event.at),
        "by": event.by,
        "operation": event.operation,
        "session": event.session,
        "kind": event.kind,
        "key": event.key,
        "version": event.version,
        "before": excerpt(event.before),
        "after": excerpt(event.after),
    }


def history_json(value: History) -> Json:
    return {"events": [event_json(event) for event in value.events]}


def undone_json(value: Undone) -> Json:
    answer: Json = {"undone": event_json(value.event), "seq": value.seq}
    return answer | ({"restored": value.restored} if value.restored else {})
