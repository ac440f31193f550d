"""What the hooks of a coding agent remember from one process to the next.

A coding agent manages and compacts its own window; each of its hooks is a short-lived process. What one hook leaves for
a later one is stored in the session's entry: that the context must be restored, the checkpoint written before a
compaction, and which version of the notepad the model has seen.
"""

from __future__ import annotations

from collections.abc import Callable

from limpet import limits
from limpet.catalogue.operation import Context
from limpet.memory import handoff
from limpet.model import HANDOFF, NOTEPAD, SESSION, TYPED, Draft, Entry, derived, lowest
from limpet.session.records import HookState, SessionRecord
from limpet.store import EventQuery


def read(ctx: Context) -> HookState:
    return _state(ctx.store.entries.read(ctx.scope, SESSION, ctx.session))


def before_compact(ctx: Context, checkpoint: str, source: str) -> None:
    """Record that the context is about to be compacted away. An earlier checkpoint stays if there is no new one."""

    def change(before: HookState) -> HookState:
        state = before._replace(restore=True, standing=False, memory=())
        if not checkpoint:
            return state
        return state._replace(checkpoint=checkpoint, source=lowest(ctx.who, source), at=ctx.now)

    _edit(ctx, change, "before_compact")


def take(ctx: Context) -> bool:
    """Whether to restore the context now. If several processes ask at once, one of them gets True."""
    if not read(ctx).restore:
        return False
    taken: list[bool] = []

    def change(before: HookState) -> HookState:
        taken[:] = [before.restore]  # read inside the transaction
        return before._replace(restore=False)

    _edit(ctx, change, "take_restore")
    return taken == [True]


def mark_shown(ctx: Context, pad: int, *, standing: bool = False, memory: tuple[str, ...] = ()) -> None:
    """Record that the context was shown, with this version of the notepad and this memory. An archived session becomes
    active."""
    entry = ctx.store.entries.read(ctx.scope, SESSION, ctx.session)
    before = _state(entry)

    def change(state: HookState) -> HookState:
        names = tuple(dict.fromkeys((*state.memory, *memory)))
        return state._replace(restore=False, pad=pad, standing=standing or state.standing, memory=names)

    if change(before) != before or (entry is not None and entry.done):
        _edit(ctx, change, "show_context", activate=True)


def memory_name(entry: Entry) -> str:
    """What tells this version of an entry of memory from others."""
    return f"{entry.version} {entry.key}"


def mark_greeted(ctx: Context, pad: int) -> None:
    """Record that the first result of a tool showed this version of the notepad."""
    if read(ctx).greeted != pad:
        _edit(ctx, lambda state: state._replace(greeted=pad), "show_context", activate=True)


def can_draft(ctx: Context) -> bool:
    """Whether a draft would be stored; asked before making one."""
    return _free(_own_handoff(ctx))


def draft_handoff(ctx: Context, content: str, source: str, typed: int = 0) -> None:
    """Write a handoff for a session that wrote none. One that it wrote itself stays. `typed` is how many characters at
    its beginning are what a person typed."""
    text = content.strip()[: limits.HANDOFF_MAX_CHARS]
    line = handoff.line_of(ctx, None)

    def decide(before: Entry | None) -> Draft | None:
        # The same text again says nothing new, also if it was read since.
        if not _free(before) or (before is not None and before.content == text):
            return None
        extra = {"line": line, "written_at": ctx.now, "draft": True, **derived(ctx.who, source)}
        if typed:
            extra[TYPED] = handoff.typed_mark(text, str(min(typed, len(text))))
        return Draft(text, ctx.session, extra=extra, origin=lowest(ctx.who, source))

    ctx.store.entries.edit(ctx.scope, HANDOFF, handoff.own_key(ctx, line), decide, ctx.stamp("draft_handoff"))


def _own_handoff(ctx: Context) -> Entry | None:
    return ctx.store.entries.read(ctx.scope, HANDOFF, handoff.own_key(ctx, handoff.line_of(ctx, None)))


def _free(before: Entry | None) -> bool:
    return before is None or bool(before.extra.get("draft"))


def handoffs_for(ctx: Context, *, new: bool) -> handoff.Waiting:
    """The handoffs to show: those that wait to a new session, to a resumed session those that it has seen."""
    waiting = handoff.waiting(ctx)
    if new:
        return waiting
    return handoff.Waiting(tuple(item for item in waiting.own if handoff.was_seen(ctx, item)))


def unseen_notepad(ctx: Context) -> int | None:
    """The version of the notepad, if it is newer than the one the model has seen and the agent did not write it."""
    pad = ctx.store.entries.read(ctx.scope, NOTEPAD, ctx.session)
    if pad is None or pad.version <= read(ctx).pad:
        return None
    events = ctx.store.entries.events(ctx.scope, EventQuery(pad.kind, pad.key, limit=1))
    by_agent = not events or events[0].by.startswith("agent") or events[0].by.endswith("/sandbox")
    return None if by_agent else pad.version


# --- the session's entry ----------------------------------------------------------------------------------------------


def _state(entry: Entry | None) -> HookState:
    record = None if entry is None else SessionRecord.from_json(entry.extra).hosted
    return record or HookState()


def _edit(ctx: Context, change: Callable[[HookState], HookState], operation: str, *, activate: bool = False) -> None:
    def decide(before: Entry | None) -> Draft:
        state = change(_state(before))
        if before is None:
            return Draft("", extra=SessionRecord(hosted=state).to_json())
        record = SessionRecord.from_json(before.extra)._replace(hosted=state)
        archived = before.done and not activate
        if not archived:
            record = record._replace(archived_at=None)
        return before.revised(done=archived or (before.done and bool(record.outcome)), extra=record.to_json())

    ctx.store.entries.edit(ctx.scope, SESSION, ctx.session, decide, ctx.stamp(operation))
