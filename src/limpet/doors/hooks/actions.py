"""What hooks do: one function per action. `triage` chooses the first, and an outcome may name the next one.

An action takes the hook and returns an outcome. The modules that some actions need are imported by those actions: an
agent waits for every hook.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from importlib import import_module

from limpet import limits
from limpet.catalogue.late import LateModule
from limpet.catalogue.operation import Context, session_name
from limpet.clients import session_id
from limpet.clients.base import HookAnswer, HookEvent, a_text
from limpet.doors.hooks import triage
from limpet.doors.hooks.triage import SHOWN, Hook, Outcome, end_action, keep_action, own_tool
from limpet.errors import LimpetError, NotFound
from limpet.light import TYPE_CHECKING, json
from limpet.model import AGENT, FILE, MEMORY, SESSION, Entry, Scope

if TYPE_CHECKING:
    from limpet import wiring
    from limpet.catalogue import table
    from limpet.doors.hooks import fitting, summary
    from limpet.importers import conversations
    from limpet.journal import recover
    from limpet.memory import digest, handoff
    from limpet.outputs import keep as outputs
    from limpet.recall import unasked
    from limpet.session import hook_state, notepad, pins, records, sessions, tree
    from limpet.text import safe
else:
    wiring, table = map(LateModule, ("wiring", "catalogue.table"))
    outputs, recover = map(LateModule, ("outputs.keep", "journal.recover"))
    conversations, unasked = map(LateModule, ("importers.conversations", "recall.unasked"))
    fitting, summary = map(LateModule, ("doors.hooks.fitting", "doors.hooks.summary"))
    digest, handoff, safe = map(LateModule, ("memory.digest", "memory.handoff", "text.safe"))
    hook_state, notepad, pins = map(LateModule, ("session.hook_state", "session.notepad", "session.pins"))
    records, sessions, tree = map(LateModule, ("session.records", "session.sessions", "session.tree"))

BY = "agent/hook"
LOCK_SHARE = 0.8  # of the time limit of a hook
NEW_SESSION = ("startup", "clear", "new", "")  # sources of a session's start; "" where the agent does not name one


def opened(hook: Hook) -> Context:
    """The store of the project, opened once for a hook."""
    if hook.context is None:
        chosen = hook.settings
        session = hook.event.own_session[: limits.SESSION_MAX_CHARS] or chosen.session or session_id() or "hooks"
        hook.context = Context(
            wiring.choose_store(
                chosen.store,
                data=chosen.data if chosen.own_store else None,
                # A little less than the hook's own limit, so that it can say what it waited for.
                lock_wait=LOCK_SHARE * chosen.bounds.hooks.seconds,
            ),
            Scope(chosen.tenant, chosen.project),
            session_name(session),
            BY,
            time.time_ns() // 1_000_000,
            chosen.bounds,
            chosen.skills,
            chosen.root,
            data=chosen.data,
        )
    return hook.context


# --- the context of the model -----------------------------------------------------------------------------------------


def restore(hook: Hook) -> Outcome:
    """Give the model the session's context at a start or after a compaction: handoff, pins, notepad, tasks and memory.

    Handoffs are for a new session. When the agent has the answer, they count as shown, and by its work as used.
    """
    event = hook.event
    # A sub-agent is part of a session that goes on: the handoff is not for it.
    new = event.name == "session-start" and event.source in NEW_SESSION and not event.subagent
    ctx = opened(hook)
    first = handoff.section(ctx, hook_state.handoffs_for(ctx, new=new), limits.HANDOFF_SHOWN_CHARS)
    if event.source == "resume" and event.client.keeps_context and hook_state.read(ctx).standing:
        # The conversation has the rest already; another copy would be paid for with every request.
        return Outcome(next_action="" if hook_state.unseen_notepad(ctx) is None else "show_notepad")
    pad = notepad.read_notepad(ctx)
    tasks = list(map(_open_task, records.open_tasks(ctx)))
    pinned = [*pins.pinned_memory(ctx), *(entry.content for entry in pins.pins(ctx))]
    state = hook_state.read(ctx)
    checkpoint = "" if new else safe.as_data(state.checkpoint, state.source or AGENT)
    section = fitting.ContextSection
    sections = (
        section(first.text, 2_600, "read_handoff shows all of it"),
        section(pins.section(pinned), 1_600, "`limpet window pins` and search_memory give all of it"),
        section(notepad.section(pad) if pad.content.strip() else "", 2_400, "read_notepad gives all of it"),
        section("\n".join(tasks), 400, "`limpet task list` prints all of it"),
        section(checkpoint, 1_000, "recall and the transcript have the rest"),
        section(_journal(ctx), 500, "`limpet journal recover --level 3` prints all of it"),
        section(digest.text_and_rest(ctx)[0], 700, "search_memory reads the rest"),
        section(_session_name(event, ctx), 300, ""),
    )
    text = fitting.fitted(sections, limits.HOOK_CONTEXT_CHARS, fitting.measure_of(event.client))

    def after() -> None:
        if new and event.client.passes_context:
            in_full = [item for item in first.in_full if fitting.holds(text, handoff.as_shown(item))]
            handoff.mark_shown(ctx, in_full)
            hook.handoff_mark.set(SHOWN if in_full else "")
        standing = bool(text) and event.client.passes_context
        hook_state.mark_shown(ctx, pad.version, standing=standing, memory=_memory_in(text, ctx) if standing else ())

    return Outcome(HookAnswer(text), after)


def _memory_in(text: str, ctx: Context) -> tuple[str, ...]:
    """The memory that a text for the model holds in full."""
    entries = digest.held_in_full(ctx, lambda part: fitting.holds(text, part)) if digest.HEADING in text else ()
    return tuple(map(hook_state.memory_name, entries))


def _open_task(task: Entry) -> str:
    return safe.as_data(f"Open task: {safe.visible(task.content, keep_newlines=False)}", task.origin)


def _session_name(event: HookEvent, ctx: Context) -> str:
    """For agents that do not give a server the session: the model has to."""
    if not event.client.hides_session or not event.session:
        return ""
    return f'This session is "{ctx.session}": give it as session_id to the tools of Limpet.'


def _journal(ctx: Context) -> str:
    """Level 1 of the journal, if there is one. An unreadable journal must not hold back the rest."""
    text = ""
    with suppress(LimpetError):
        text = recover.at_start(ctx) if _has_journal(ctx) else ""
    return safe.quoted(text, FILE) if text.strip() else ""


def _open_work(ctx: Context) -> recover.OpenWork | None:
    """The open blockers and goals of the journal, if there is one."""
    with suppress(LimpetError):
        return recover.open_work(ctx) if _has_journal(ctx) else None
    return None


def _has_journal(ctx: Context) -> bool:
    return os.path.isfile(os.path.join(ctx.root, ctx.bounds.journal.file))


def work(hook: Hook) -> Outcome:
    """The session, or a sub-agent in it, has done work: the handoffs that it was shown are used up."""
    handoff.use_shown(opened(hook)._replace(session=session_name(hook.event.session)))
    hook.handoff_mark.set("")
    return Outcome(next_action=triage.after_work(hook))


def restore_late(hook: Hook) -> Outcome:
    """For agents that announce no compaction: give the context back with the next result of a tool."""
    return Outcome(next_action="restore" if hook_state.take(opened(hook)) else keep_action(hook))


def prompt(hook: Hook) -> Outcome:
    """Before a prompt: see whether a compaction removed the context, or another writer changed the notepad."""
    ctx = opened(hook)
    sessions.name_session(ctx, a_text(hook.event.payload.get("prompt")))
    if hook_state.take(ctx):
        return Outcome(next_action="restore")
    return Outcome(next_action="recall_unasked" if hook_state.unseen_notepad(ctx) is None else "show_notepad")


def recall_unasked(hook: Hook) -> Outcome:
    """Show what clearly fits the prompt and still holds; mostly nothing. The task of a sub-agent is no prompt."""
    ctx = opened(hook)
    if hook.event.subagent or not hook.event.client.passes_context or not ctx.bounds.recall.unasked:
        return Outcome()
    prompted = a_text(hook.event.payload.get("prompt"))
    recalled = unasked.unasked(ctx, prompted, is_known=lambda entry: _is_before_it(ctx, entry))
    if not recalled.entries:
        return Outcome()
    return Outcome(HookAnswer(recalled.text), lambda: unasked.record_shown(ctx, recalled))


def _is_before_it(ctx: Context, entry: Entry) -> bool:
    """Whether the model has all of an entry from the start of the session."""
    return entry.kind == MEMORY and hook_state.memory_name(entry) in hook_state.read(ctx).memory


def show_notepad(hook: Hook) -> Outcome:
    """Show the model the notepad after another writer changed it."""
    ctx = opened(hook)
    pad = notepad.read_notepad(ctx)
    text = f"The notepad was changed by somebody else.\n\n{notepad.section(pad)}"
    section = fitting.ContextSection(text, 9_000, "read_notepad gives all of it")
    answer = fitting.fitted([section], limits.HOOK_CONTEXT_CHARS, fitting.measure_of(hook.event.client))
    return Outcome(HookAnswer(answer), lambda: hook_state.mark_shown(ctx, pad.version))


# --- calls of tools ---------------------------------------------------------------------------------------------------


def name_session(hook: Hook) -> Outcome:
    """For agents that do not give a server the session: add it to the arguments of a call of Limpet's own tools.

    A sub-agent works in a session of its own. It may read that of its parent, and does not write there.
    """
    event = hook.event
    arguments = json.loads(event.arguments or "{}")
    try:
        operation = table.find(own_tool(event.tool))
    except LimpetError:
        return Outcome()  # another server's tool
    reads_another = operation.read_only and bool(arguments.get("session_id"))
    if not operation.in_session or reads_another or (arguments.get("session_id") and not event.subagent):
        return Outcome()
    if event.parent_session and hook.store_exists():
        kind = event.payload.get("agent_type", event.payload.get("agentType"))
        tree.attach(opened(hook), event.parent_session, a_text(kind))
    return Outcome(HookAnswer(arguments={**arguments, "session_id": event.own_session}))


def keep(hook: Hook) -> Outcome:
    """Keep a big result: the model gets a preview and a reference in its place.

    A client can run the hooks without the server, so the text also says how a shell reads it.
    """
    event = hook.event
    kept = outputs.keep_output(opened(hook), event.tool or "tool", event.result or "", event.arguments)
    if kept.output is None:
        return Outcome()
    start = "limpet"
    if os.path.basename(sys.argv[0]) != start:
        start = f"{import_module('shlex').quote(sys.executable)} -m limpet"
    command = f"{start} {triage.READING} {kept.output.id}"
    return Outcome(HookAnswer(output=f"{kept.text}\nWithout that tool: `{command}`."))


def keep_for_subagent(hook: Hook) -> Outcome:
    """The same for a sub-agent that has used Limpet's tools: others may not have the one that reads references."""
    ctx = opened(hook)
    known_child = ctx.store.entries.read(ctx.scope, SESSION, ctx.session)
    return Outcome(next_action="keep" if known_child is not None and known_child.session else "")


# --- compactions and ends ---------------------------------------------------------------------------------------------


def checkpoint(hook: Hook) -> Outcome:
    """Before a compaction: keep a summary of the conversation, and note that the context has to be given back."""
    talk = summary.summarise(hook.event.transcript, hook.event.client)
    text, source = summary.checkpoint(talk)
    if text or hook.store_exists():
        hook_state.before_compact(opened(hook), text, source)
    if text:  # it says that what it leaves out can be searched for
        conversations.add_messages(opened(hook), talk.messages)
    return Outcome()


def stop(hook: Hook) -> Outcome:
    """After a turn: see whether a handoff must be drafted. Agents do not announce every end of a session."""
    needed = not hook.store_exists() or hook_state.can_draft(opened(hook)) or sessions.is_unnamed(opened(hook))
    return Outcome(next_action="draft" if needed else end_action(hook))


def draft(hook: Hook) -> Outcome:
    """Draft a handoff for a session that did some work and wrote none, and name a session without a task."""
    ctx = opened(hook)
    talk = summary.summarise(hook.event.transcript, hook.event.client, is_typed=hook.prompts.read())
    drafted = summary.draft(ctx, talk, _open_work(ctx))
    if drafted.text:
        hook_state.draft_handoff(ctx, drafted.text, drafted.source, drafted.typed)
    if hook.store_exists():
        sessions.name_session(ctx, talk.name)
    return Outcome(next_action=end_action(hook))


def archive(hook: Hook) -> Outcome:
    """At the end of a session: archive it."""
    hook.prompts.forget()
    ctx = opened(hook)
    with suppress(NotFound):  # a session without a write has no entry
        sessions.archive_session(ctx, ctx.session)
    return Outcome()
