"""The tree of sessions: work delegated to sub-sessions, and the result that each reports.

A child is a session with a parent; after its creation the two are independent. The parent chooses what the child gets
(a task, some notes and references, optionally a copy of the notepad), and the child returns a result, not its notepad.
This module runs nothing. `limpet.agent` runs children itself; any other host runs them and reports how they ended.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from limpet import errors, limits
from limpet.catalogue.operation import Context, Json, bounded
from limpet.model import EMPTY, NOTE, SESSION, Draft, Entry
from limpet.outputs import keep as output_keep
from limpet.record import NamedTuple
from limpet.session import notepad
from limpet.session.records import SessionRecord
from limpet.text import brief
from limpet.text.safe import as_data, as_name
from limpet.window import transcript
from limpet.window.messages import Message
from limpet.window.plan.actions import EFFECT, READ, actions
from limpet.window.plan.rules import groups

COMPLETED, FAILED, OUT_OF_TOKENS, CANCELLED = "completed", "error", "token_limit_reached", "cancelled"
OUTCOMES = (COMPLETED, FAILED, OUT_OF_TOKENS, CANCELLED)
HEADING = "## Given by the parent session"
POLL_SECONDS = 0.05  # between two reads while waiting: no model call is that short


class Spawned(NamedTuple):
    id: str
    depth: int


class SessionOutcome(NamedTuple):
    """How a child ended; `status` is "active" until then."""

    id: str
    status: str
    result: str  # what it reported, its last text, or what went wrong
    capsule: Mapping[str, tuple[str, ...]] = EMPTY  # lists besides, by name


class Waited(NamedTuple):
    results: tuple[SessionOutcome, ...]
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
    """A child with its own task, and nothing of its parent but what is passed here."""
    for id in notes:
        if ctx.store.entries.read(ctx.scope, NOTE, id) is None:
            raise errors.no_entry("note", id, "search_notes shows those that exist.")
    for id in references:
        output_keep.find_output(ctx, id)
    record = SessionRecord(notes=tuple(notes), references=tuple(references), token_limit=token_limit, model=model)
    return _make(ctx, task, copy_notepad, record, "spawn_session")


def fork_session(ctx: Context, task: str, token_limit: int | None = None, model: str = "") -> Spawned:
    """A child that continues from where its parent is, with the parent's notepad and its history up to now."""
    record = SessionRecord(forked=True, token_limit=token_limit, model=model)
    forked = _make(ctx, task, True, record, "fork_session")
    transcript.copy_to(ctx, forked.id)
    return forked


def report_result(
    ctx: Context, result: str, references: Sequence[str] = (), files: Sequence[str] = (), failed: Sequence[str] = ()
) -> SessionOutcome:
    """End this session with its result. A session without a parent cannot report, and a child reports once.

    The parent also gets references to outputs, files that were touched and what failed: those that are named, and those
    that the session's outputs and messages show.
    """
    bounded("result", result, limits.RESULT_MAX_CHARS, "Keep the long part as an output and name its reference.")
    entry = ctx.store.entries.read(ctx.scope, SESSION, ctx.session)
    if entry is None or not entry.session:
        raise errors.not_a_child(ctx.session)
    named = {"references": references, "files": files, "failed": failed}
    return _end(ctx, ctx.session, COMPLETED, result, "report_result", named)


def end_session(ctx: Context, id: str, outcome: str, result: str = "") -> SessionOutcome:
    """Record how a child ended that did not report: it failed, was cancelled or ran out of tokens."""
    bounded("result", result, limits.RESULT_MAX_CHARS, "Say it shorter.")
    return _end(ctx, id, outcome, result, "end_session")


def wait_for_sessions(ctx: Context, ids: Sequence[str], seconds: int = 0) -> Waited:
    """How these children ended. Waits up to `seconds` for the others, and names those that are still at work."""
    if not ids:
        raise errors.empty("ids", "Name the sessions that spawn_session gave back.")
    until = time.monotonic() + seconds
    while True:
        outcomes = tuple(_outcome(_session(ctx, id)) for id in ids)
        at_work = tuple(outcome.id for outcome in outcomes if outcome.status not in OUTCOMES)
        if not at_work or time.monotonic() >= until:
            return Waited(tuple(outcome for outcome in outcomes if outcome.id not in at_work), at_work)
        time.sleep(POLL_SECONDS)


def capsule(ctx: Context) -> str:
    """What the parent passed to this session, for its window; empty for a session without a parent."""
    entry = ctx.store.entries.read(ctx.scope, SESSION, ctx.session)
    if entry is None or not entry.session:
        return ""
    record = SessionRecord.from_json(entry.extra)
    lines = [
        f"- {as_data(note.content, note.origin)}"
        for id in record.notes
        if (note := ctx.store.entries.read(ctx.scope, NOTE, id))
    ]
    lines += [
        f"- hold://{output.id} ({as_name(output.tool)}, {output_keep.size(output.size)})"
        for id in record.references
        if (output := ctx.store.outputs.find(ctx.scope, id))
    ]
    closing = "When the task is done, call report_result; only what you report reaches the parent."
    return "\n".join([HEADING, f"Task: {as_data(entry.content, entry.origin)}", *lines, closing])


def attach(ctx: Context, parent: str, task: str) -> None:
    """Record that this session is a child of another one, which its host began by itself."""

    def decide(before: Entry | None) -> Draft | None:
        if before is not None and before.session:
            return None
        entry = before or _blank(ctx.session)
        return entry.revised(content=entry.content or as_name(task), session=parent)

    known_child = ctx.store.entries.read(ctx.scope, SESSION, ctx.session)
    if known_child is None or not known_child.session:
        ctx.store.entries.edit(ctx.scope, SESSION, ctx.session, decide, ctx.stamp("begin_session"))


# --- creating and ending ----------------------------------------------------------------------------------------------


def _make(ctx: Context, task: str, copy_notepad: bool, record: SessionRecord, operation: str) -> Spawned:
    bounded("task", task, limits.NOTE_MAX_CHARS, "Name the work in a few sentences.", blank="Say what it is to do.")
    parent = ctx.store.entries.read(ctx.scope, SESSION, ctx.session)
    depth = 1 + (SessionRecord.from_json(parent.extra).depth if parent else 0)
    if depth > limits.SESSION_DEPTH_MAX:
        raise errors.tree_too_deep(limits.SESSION_DEPTH_MAX)
    id = f"sub_{os.urandom(6).hex()}"
    draft = Draft(task, ctx.session, extra=record._replace(depth=depth).to_json())
    ctx.store.entries.edit(ctx.scope, SESSION, id, lambda before: draft, ctx.stamp(operation))
    try:
        _take_place(ctx, id, parent, operation)
    except errors.Conflict as refused:
        _end(ctx, id, FAILED, refused.message, operation)
        raise
    if copy_notepad:
        notepad.copy_notepad(ctx, id)
    return Spawned(id, depth)


def _take_place(ctx: Context, id: str, parent: Entry | None, operation: str) -> None:
    """Take one of the parent's places for children at work.

    It is a single edit of the parent, so that two processes cannot both take the last place. Children that are known to
    have ended give their places back; one that another process has just created is not known here and keeps its own.
    """
    listed = SessionRecord.from_json(parent.extra).children if parent else ()
    ended = {child for child in listed if _outcome(_session(ctx, child)).status in OUTCOMES}

    def decide(before: Entry | None) -> Draft:
        entry = before or _blank(ctx.session)
        record = SessionRecord.from_json(entry.extra)
        at_work = [child for child in record.children if child not in ended]
        if len(at_work) >= limits.SESSION_CHILDREN_MAX:
            raise errors.too_many_children(limits.SESSION_CHILDREN_MAX)
        return entry.revised(extra=record._replace(children=(*at_work, id)).to_json())

    ctx.store.entries.edit(ctx.scope, SESSION, ctx.session, decide, ctx.stamp(operation))


def _blank(session: str) -> Entry:
    return Entry(SESSION, session, "", "", (), False, False, "", {}, 0, 0, 0)


def _end(
    ctx: Context, id: str, outcome: str, result: str, operation: str, named: Mapping[str, Sequence[str]] = EMPTY
) -> SessionOutcome:
    capsule_lists = _capsule(ctx._replace(session=id), named)

    def decide(before: Entry | None) -> Draft:
        if before is None:
            raise _unknown(id)
        record = SessionRecord.from_json(before.extra)
        if record.outcome:
            raise errors.session_over(id, record.outcome)
        ended = record._replace(outcome=outcome, result=result, archived_at=ctx.now, capsule=capsule_lists)
        return before.revised(done=True, extra=ended.to_json())

    return _outcome(ctx.store.entries.edit(ctx.scope, SESSION, id, decide, ctx.stamp(operation)).entry)


def _capsule(ctx: Context, named: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """What the parent gets besides the result: what was named first, then what the session's own records show."""
    calls = [action for group in _groups(ctx) for action in actions(group)]
    outputs = ctx.store.outputs.list(ctx.scope, limits.LIST_MAX).outputs
    noticed = {
        "references": [f"hold://{output.id}" for output in outputs if output.session == ctx.session],
        "files": [action.target for action in calls if action.kind in (READ, EFFECT) and not action.failure],
        "failed": [f"{action.subject}: {action.failure}" for action in calls if action.failure],
    }
    lists = {
        name: tuple(dict.fromkeys(_one_line(item) for item in (*named.get(name, ()), *items) if item.strip()))
        for name, items in noticed.items()
    }
    return {name: items[: limits.CAPSULE_ITEMS] for name, items in lists.items() if items}


def _groups(ctx: Context) -> list[list[Message]]:
    """The session's messages, each call with its result."""
    messages = [stored.message for stored in transcript.messages(ctx)]
    return [[messages[index] for index in group] for group in groups(messages)]


def _one_line(text: str) -> str:
    return " ".join(text.split())[: limits.CAPSULE_ITEM_CHARS]


def _outcome(entry: Entry) -> SessionOutcome:
    record = SessionRecord.from_json(entry.extra)
    return SessionOutcome(entry.key, record.outcome or "active", record.result or "", record.capsule)


def _session(ctx: Context, id: str) -> Entry:
    entry = ctx.store.entries.read(ctx.scope, SESSION, id)
    if entry is None:
        raise _unknown(id)
    return entry


def _unknown(id: str) -> errors.NotFound:
    return errors.no_entry("session", id, "Give an id that spawn_session or fork_session returned.")


# --- answers ----------------------------------------------------------------------------------------------------------


def outcome_json(value: SessionOutcome) -> Json:
    name = "error" if value.status in (FAILED, CANCELLED) else "result"
    lists = {name: list(items) for name, items in value.capsule.items()}
    return {"id": value.id, "status": value.status, name: value.result, **lists}


def spawned_text(_ctx: Context, value: Spawned) -> str:
    return f"Session {value.id} begun, depth {value.depth}."


def outcome_text(_ctx: Context, value: SessionOutcome) -> str:
    lists = [f"{name}: {', '.join(items)}" for name, items in value.capsule.items() if items]
    return brief.lines((brief.item((as_name(value.id), f"{value.status}:"), value.result or ""), *lists))


def waited_text(ctx: Context, value: Waited) -> str:
    waiting = f"Still at work: {', '.join(value.waiting)}." if value.waiting else ""
    return brief.lines([outcome_text(ctx, outcome) for outcome in value.results], waiting)


def waited_json(value: Waited) -> Json:
    answer: Json = {"results": [outcome_json(outcome) for outcome in value.results]}
    return answer | ({"waiting": list(value.waiting)} if value.waiting else {})
