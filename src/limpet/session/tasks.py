"""Tasks: a part of the work that becomes one line when it ends, with a ledger of what was done in it.

A task stores the position at which it began. When it ends, everything since then is folded behind
`[Task: description — summary]`; the messages stay in the transcript. A task that is not ended does no harm.
"""

from __future__ import annotations

from limpet import errors, limits
from limpet.catalogue.ids import short_id
from limpet.catalogue.operation import Context, Json, bounded
from limpet.model import TASK, Draft, Entry, iso, lowest
from limpet.record import NamedTuple
from limpet.session.records import CANCELLED, ENDED, OPEN, TaskRecord, open_tasks
from limpet.store import Listing
from limpet.text import brief, safe
from limpet.window import transcript
from limpet.window.messages import ASSISTANT
from limpet.window.plan.actions import ledger, said_by_user

ADVICE = "Say it in a sentence or two."


class Begun(NamedTuple):
    task_id: str
    depth: int


class EndedTask(NamedTuple):
    task_id: str
    messages_collapsed: int


class Tasks(NamedTuple):
    tasks: tuple[Entry, ...]
    left_out: int


def begin_task(ctx: Context, description: str) -> Begun:
    text = _one_line("description", description)
    depth = len(open_tasks(ctx)) + 1
    if depth > limits.TASK_DEPTH_MAX:
        raise errors.tasks_too_deep(limits.TASK_DEPTH_MAX)
    first = _before_call(ctx, transcript.count(ctx), "begin_task")
    draft = Draft(text, ctx.session, extra=TaskRecord(OPEN, depth, first).to_json())
    change = ctx.store.entries.edit(ctx.scope, TASK, None, lambda before: draft, ctx.stamp("begin_task"))
    return Begun(change.entry.key, depth)


def end_task(ctx: Context, summary: str) -> EndedTask:
    return _close(ctx, "end", ENDED, _one_line("summary", summary))


def cancel_task(ctx: Context, reason: str) -> EndedTask:
    """The reason is required, so that the next attempt is not the same."""
    return _close(ctx, "cancel", CANCELLED, _one_line("reason", reason))


def list_tasks(ctx: Context, limit: int = limits.HISTORY_SHOWN) -> Tasks:
    """Tasks of the session, newest first."""
    page = ctx.store.entries.list(ctx.scope, Listing((TASK,), ctx.session, include_done=True, limit=limit))
    return Tasks(page.entries, page.total - len(page.entries))


def _close(ctx: Context, verb: str, state: str, outcome: str) -> EndedTask:
    stack = open_tasks(ctx)
    if not stack:
        raise errors.no_open_task(verb)
    task = stack[-1]
    first, total = TaskRecord.from_json(task.extra).first, _before_call(ctx, transcript.count(ctx), f"{verb}_task")
    messages = [stored.message for stored in transcript.messages(ctx, first, total)]
    parts = (said_by_user(messages, limits.LEDGER_SAID_TOKENS), ledger(messages, limits.LEDGER_TOKENS))
    actions = safe.storable("\n".join(filter(None, parts)))

    def decide(before: Entry | None) -> Draft:
        if before is None or before.done:
            raise errors.no_open_task(verb)  # another process was faster
        record = TaskRecord.from_json(before.extra)
        ended = record._replace(state=state, outcome=outcome, last=total - 1, ledger=actions, ended_at=ctx.now)
        origin = lowest(before.origin, transcript.origin_of(ctx, messages))  # the ledger quotes tools
        return before.revised(done=True, extra=ended.to_json(), origin=origin)

    ctx.store.entries.edit(ctx.scope, TASK, task.key, decide, ctx.stamp(f"{verb}_task"))
    return EndedTask(task.key, total - first)


def _before_call(ctx: Context, total: int, name: str) -> int:
    """How many messages there are without the reply that makes this call, which a loop may have stored already."""
    last = [stored.message for stored in transcript.messages(ctx, total - 1, total)] if total else []
    calls = last[-1].calls() if last and last[-1].role == ASSISTANT else ()
    return total - 1 if len(calls) == 1 and calls[0].name.endswith(name) else total


def _one_line(name: str, text: str) -> str:
    """It is shown in brackets in the window, so it is one line."""
    plain = " ".join(text.split())
    return bounded(name, plain, limits.NOTE_MAX_CHARS, ADVICE, blank=ADVICE)


# --- answers ----------------------------------------------------------------------------------------------------------


def ended_json(value: EndedTask) -> Json:
    return {"ok": True, "messages_collapsed": value.messages_collapsed}


def begun_text(ctx: Context, value: Begun) -> str:
    return f"Task {short_id(ctx, TASK, value.task_id)} begun, depth {value.depth}."


def ended_text(_ctx: Context, value: EndedTask) -> str:
    return f"The task is ended; {brief.counted(value.messages_collapsed, 'message')} folded."


def _task_json(entry: Entry) -> Json:
    task = TaskRecord.from_json(entry.extra)
    return {
        "task_id": entry.key,
        "description": entry.content,
        "state": task.state,
        "depth": task.depth,
        "outcome": task.outcome,
        "ledger": task.ledger,
        "created_at": iso(entry.created_at),
    }


def tasks_json(value: Tasks) -> Json:
    tasks = [_task_json(entry) for entry in value.tasks]
    return {"tasks": tasks} | ({"left_out": value.left_out} if value.left_out else {})
