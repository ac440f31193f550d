"""Give the model the session's context: handoff, pins, notepad, tasks and memory, at a start and after a compaction."""

from __future__ import annotations

import os
from importlib import import_module

from limpet import limits
from limpet.catalogue.operation import Context
from limpet.clients.base import HookAnswer, HookEvent
from limpet.doors.hooks.context import opened
from limpet.doors.hooks.fitting import Section, fitted, measure_of
from limpet.doors.hooks.triage import Hook, Outcome
from limpet.errors import LimpetError
from limpet.memory import digest, handoff
from limpet.model import AGENT, FILE
from limpet.session import hook_state, notepad, pins
from limpet.session.records import open_tasks
from limpet.text.quote import as_data, quoted

NEW_SESSION = ("startup", "clear", "new", "")  # sources of a session's start; "" where the agent does not name one


def run(hook: Hook) -> Outcome:
    """The handoff is for a new session; it is marked as used when the agent has the answer."""
    event = hook.event
    # A sub-agent is part of a session that goes on: the handoff is not for it.
    new = event.name == "session-start" and event.source in NEW_SESSION and not event.subagent
    ctx = opened(hook)
    waiting = hook_state.handoff_for(ctx, new=new)
    pad = notepad.read_notepad(ctx)
    tasks = [f"Open task: {task.content}" for task in open_tasks(ctx)]
    pinned = [*pins.pinned_memory(ctx), *(entry.content for entry in pins.pins(ctx))]
    state = hook_state.read(ctx)
    checkpoint = "" if new else as_data(state.checkpoint, state.source or AGENT)
    sections = (
        Section(handoff.section(waiting), 2_600, "`limpet handoff show` prints all of it"),
        Section(pins.section(pinned), 1_600, "`limpet window pins` and search_memory give all of it"),
        Section(notepad.section(pad) if pad.content.strip() else "", 2_400, "read_notepad gives all of it"),
        Section("\n".join(tasks), 400, "`limpet task list` prints all of it"),
        Section(checkpoint, 1_000, "recall and the transcript have the rest"),
        Section(_journal(ctx), 500, "`limpet journal recover --level 3` prints all of it"),
        Section(digest.digest(ctx).text, 700, "search_memory reads the rest"),
        Section(_session_name(event, ctx), 300, ""),
    )
    text = fitted(sections, limits.HOOK_CONTEXT_CHARS, measure_of(event.client))

    def after() -> None:
        if new and waiting is not None:
            handoff.use_handoff(ctx, waiting)
        hook_state.mark_shown(ctx, pad.version)

    return Outcome(HookAnswer(text), after)


def _session_name(event: HookEvent, ctx: Context) -> str:
    """For agents that do not give a server the session: the model has to."""
    if not event.client.hides_session or not event.session:
        return ""
    return f'This session is "{ctx.session}": give it as session_id to the tools of Limpet.'


def _journal(ctx: Context) -> str:
    """Level 1 of the journal, if there is one. An unreadable journal must not hold back the rest."""
    if not os.path.isfile(os.path.join(ctx.root, ctx.bounds.journal.file)):
        return ""
    journal = import_module("limpet.journal.recover")  # late: most projects have no journal, and it is slow to import
    try:
        return quoted(journal.at_start(ctx), FILE)
    except LimpetError:
        return ""
