"""The tree of sessions: work given to sub-sessions, and the one thing that comes back, their result.

A child is a session with a parent; from then on the two are independent. What the child needs is chosen when it is
made (its task, some notes and references, a copy of the notepad if asked), and what comes back is what it reports: its
notepad never does. Nothing here runs anything. `limpet.agent` runs children itself; any other host runs them as it
likes and says how they ended.
"""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

from limpet import errors, limits
from limpet.catalogue.check import bounded
from limpet.catalogue.operation import Context, Json
from limpet.model import NOTE, SESSION, Draft, Entry
from limpet.outputs import outputs
from limpet.session import notepad
from limpet.text.quote import as_data

COMPLETED, FAILED, OUT_OF_TOKENS, CANCELLED = "completed", "error", "token_limit_reached", "cancelled"
OUTCOMES = (COMPLETED, FAILED, OUT_OF_TOKENS, CANCELLED)
HEADING = "## Given by the parent session"
POLL_SECONDS = 0.05  # how often waiting looks again: no model call is that short


class Spawned(NamedTuple):
    id: str
    depth: int


class Outcome(NamedTuple):
    """How a child ended; `status` is "active" while it has not."""

    id: str
    status: str
    result: str  # what it reported, the last it said, or what went wrong


class Waited(NamedTuple):
    results: tuple[Outcome, ...]
    waiting: tuple[str, ...]


def spawn_session(
    ctx: Context,
    task: str,
    copy_notepad: bool = False,
    notes: tuple[str, ...] = (),
    references: tuple[str, ...] = (),
    token_limit: int | None = None,
    model: str = "",
) -> Spawned:
    """A child with a task of its own and nothing of its parent but what is named here."""
    extra = {"notes": list(notes), "references": list(references), "token_limit": token_limit, "model": model}
    for id in notes:
        if ctx.store.read(ctx.scope, NOTE, id) is None:
            raise errors.no_entry("note", id, "list_notes shows those that exist.")
    for id in references:
        outputs.find_output(ctx, id)
    return _make(ctx, task, copy_notepad, {name: value for name, value in extra.items() if value}, "spawn_session")


def fork_session(ctx: Context, task: str, token_limit: int | None = None, model: str = "") -> Spawned:
    """A child that goes on from where its parent is: it has the parent's notepad and its history up to now."""
    extra = {"forked": True, "token_limit": token_limit, "model": model}
    return _make(ctx, task, True, {name: value for name, value in extra.items() if value}, "fork_session")


def report_result(ctx: Context, result: str) -> Outcome:
    """End this session with its result. Only a child has somebody to report to, and only once."""
    bounded("result", result, limits.RESULT_MAX_CHARS, "Keep the long part as an output and name its reference.")
    entry = ctx.store.read(ctx.scope, SESSION, ctx.session)
    if entry is None or not entry.session:
        raise errors.not_a_child(ctx.session)
    return _end(ctx, ctx.session, COMPLETED, result, "report_result")


def end_session(ctx: Context, id: str, outcome: str, result: str = "") -> Outcome:
    """Say how a child ended that did not report: it failed, was cancelled or ran out of tokens."""
    bounded("result", result, limits.RESULT_MAX_CHARS, "Say it shorter.")
    return _end(ctx, id, outcome, result, "end_session")


def wait_for_sessions(ctx: Context, ids: tuple[str, ...], seconds: int = 0) -> Waited:
    """How these children ended. It waits up to `seconds` for those that have not, and names the ones still at work."""
    if not ids:
        raise errors.empty("ids", "Name the sessions that spawn_session gave back.")
    until = time.monotonic() + seconds
    while True:
        found = tuple(_outcome(_session(ctx, id)) for id in ids)
        at_work = tuple(one.id for one in found if one.status not in OUTCOMES)
        if not at_work or time.monotonic() >= until:
            return Waited(tuple(one for one in found if one.id not in at_work), at_work)
        time.sleep(POLL_SECONDS)


def capsule(ctx: Context) -> str:
    """What the parent gave this session besides its task, for its window; empty for a session without a parent."""
    entry = ctx.store.read(ctx.scope, SESSION, ctx.session)
    if entry is None or not entry.session:
        return ""
    lines = [
        f"- {as_data(note.content, note.origin)}"
        for id in entry.extra.get("notes", ())
        if (note := ctx.store.read(ctx.scope, NOTE, id))
    ]
    lines += [
        f"- hold://{output.id} ({output.tool}, {outputs.size(output.size)})"
        for id in entry.extra.get("references", ())
        if (output := ctx.store.output(ctx.scope, id))
    ]
    closing = "When the task is done, call report_result; only what you report reaches the parent."
    return "\n".join([HEADING, f"Task: {entry.content}", *lines, closing])


# --- how -------------------------------------------------------------------------------------------------------------


def _make(ctx: Context, task: str, copy_notepad: bool, extra: dict[str, Any], operation: str) -> Spawned:
    bounded("task", task, limits.NOTE_MAX_CHARS, "Name the work in a few sentences.", blank="Say what it is to do.")
    parent = ctx.store.read(ctx.scope, SESSION, ctx.session)
    depth = 1 + (parent.extra.get("depth", 0) if parent else 0)
    if depth > limits.SESSION_DEPTH_MAX:
        raise errors.tree_too_deep(limits.SESSION_DEPTH_MAX)
    id = f"sub_{os.urandom(6).hex()}"
    draft = Draft(task, ctx.session, extra={"depth": depth, **extra})
    ctx.store.edit(ctx.scope, SESSION, id, lambda before: draft, ctx.stamp(operation))
    try:
        _take_place(ctx, id, parent, operation)
    except errors.Conflict as refused:
        _end(ctx, id, FAILED, refused.message, operation)
        raise
    if copy_notepad:
        notepad.copy_notepad(ctx, id)
    return Spawned(id, depth)


def _take_place(ctx: Context, id: str, parent: Entry | None, operation: str) -> None:
    """Take a place among the parent's children at work.

    It is one edit of the parent, so that two processes cannot both take the last place. Only a child that is known to
    have ended gives its place back; one that another process has just made is not known here and keeps it.
    """
    listed = parent.extra.get("children", ()) if parent else ()
    ended = {child for child in listed if _outcome(_session(ctx, child)).status in OUTCOMES}

    def decide(before: Entry | None) -> Draft:
        was = before or _blank(ctx.session)
        held = [child for child in was.extra.get("children", ()) if child not in ended]
        if len(held) >= limits.SESSION_CHILDREN_MAX:
            raise errors.too_many_children(limits.SESSION_CHILDREN_MAX)
        extra = {**was.extra, "children": [*held, id]}
        return Draft(was.content, was.session, was.tags, was.done, was.pinned, extra)

    ctx.store.edit(ctx.scope, SESSION, ctx.session, decide, ctx.stamp(operation))


def _blank(session: str) -> Entry:
    return Entry(SESSION, session, "", "", (), False, False, "", {}, 0, 0, 0)


def _end(ctx: Context, id: str, outcome: str, result: str, operation: str) -> Outcome:
    def decide(before: Entry | None) -> Draft:
        if before is None:
            raise _unknown(id)
        if already := before.extra.get("outcome"):
            raise errors.session_over(id, already)
        extra = {**before.extra, "outcome": outcome, "result": result, "archived_at": ctx.now}
        return Draft(before.content, before.session, before.tags, True, before.pinned, extra)

    return _outcome(ctx.store.edit(ctx.scope, SESSION, id, decide, ctx.stamp(operation)).entry)


def _outcome(entry: Entry) -> Outcome:
    return Outcome(entry.key, entry.extra.get("outcome", "active"), entry.extra.get("result", ""))


def _session(ctx: Context, id: str) -> Entry:
    entry = ctx.store.read(ctx.scope, SESSION, id)
    if entry is None:
        raise _unknown(id)
    return entry


def _unknown(id: str) -> errors.NotFound:
    return errors.no_entry("session", id, "`limpet session list` shows those that exist.")


# --- answers ----------------------------------------------------------------------------------------------------------


def outcome_json(value: Outcome) -> Json:
    name = "error" if value.status in (FAILED, CANCELLED) else "result"
    return {"id": value.id, "status": value.status, name: value.result}


def waited_json(value: Waited) -> Json:
    answer: Json = {"results": [outcome_json(one) for one in value.results]}
    return answer | ({"waiting": list(value.waiting)} if value.waiting else {})
