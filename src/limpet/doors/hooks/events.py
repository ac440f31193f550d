"""What is done about an event: the memory given back at a start and after a compaction, big results kept aside.

A hook may be one of many at once, and the client waits for it. So each does one thing, with as few writes as it takes,
and says nothing unless there is something to say. What it remembers for later ones is in session/hook_state.py. What
only some events need is imported by them: most hooks find nothing to do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from limpet import limits
from limpet.clients.dialects import BYTES, LATE, NAMELESS, SNAPSHOT, Answer, Event, messages_of

if TYPE_CHECKING:  # what a small result needs is read in a few milliseconds
    from limpet.catalogue.operation import Context
    from limpet.model import Entry
    from limpet.settings import Settings

BY = "agent/hook"
NEW = ("startup", "clear", "new", "")  # sources of a session that begins; "" where the client does not say
# Tools whose results lie in a file anyway, and are asked for because an edit needs them word for word; and those that
# run other agents or steer the client.
LEFT_ALONE = (
    *(
        "read",
        "edit",
        "write",
        "multiedit",
        "notebook*",
        "*read_file*",
        "*write_file*",
        "*edit_file*",
        "read_many_files",
    ),
    *("view*", "create", "replace", "apply_patch", "str_replace*", "*patch*"),
    *("task*", "agent*", "*subagent*", "spawn_agent*", "skill", "toolsearch", "todo*", "update_plan", "exitplanmode"),
)
# Our own tools, whatever the client puts before their names.
OURS = ("*limpet*", "*scratchpad_*", "*_notepad", "*recall", "*search_notes", "*list_notes", "*search_memory")
SERVED = "limpet_"  # stands before the names of our tools in the clients that name no session
REPLACEABLE = {  # where only some tools can be replaced, which
    "claude-code": ("Bash", "BashOutput", "Grep", "WebFetch", "mcp__*"),
    "cursor": ("MCP:*",),
}


class Done(NamedTuple):
    """An answer, and what is to be done once the client has it."""

    answer: Answer = Answer()
    after: Callable[[], None] | None = None


class Call(NamedTuple):
    """One hook. The store is opened by those who need it; `known` says whether there is one to read."""

    event: Event
    chosen: Settings
    opened: Callable[[], Context]
    known: Callable[[], bool]


NOTHING = Done()


def session_start(call: Call) -> Done:
    """Handoff, notepad and memory. Also after a compaction, when nothing of the earlier context is left.

    A sub-agent is no new session of anybody's work: the handoff is not for it.
    """
    new = call.event.source in NEW and not call.event.subagent
    return _restored(call, call.opened(), new=new) if call.known() else NOTHING


def prompt(call: Call) -> Done:
    """The context once more where a compaction took it away unnoticed; the notepad where somebody else changed it."""
    if not call.known():
        return NOTHING
    from limpet.model import NOTEPAD
    from limpet.session import hook_state

    ctx = call.opened()
    if hook_state.take(ctx):
        return _restored(call, ctx, new=False)
    pad = ctx.store.read(ctx.scope, NOTEPAD, ctx.session)
    if pad is None or pad.version <= hook_state.read(ctx).pad or _by_agent(ctx, pad):
        return NOTHING
    from limpet.doors.hooks.fitting import Section, fitted
    from limpet.session import notepad

    told = f"The notepad was changed by somebody else.\n\n{notepad.section(notepad.read_notepad(ctx))}"
    text = fitted([Section(told, 9_000, "read_notepad gives all of it")], limits.HOOK_CONTEXT_CHARS, _measure(call))
    return Done(Answer(text), lambda: hook_state.mark_shown(ctx, pad.version))


def after_tool(call: Call) -> Done:
    """A big result becomes a preview and a reference. A sub-agent may not have the tool that reads references."""
    event = call.event
    if event.subagent:
        return NOTHING
    if event.client in LATE and call.known():
        from limpet.session import hook_state

        ctx = call.opened()
        if hook_state.take(ctx):
            return _restored(call, ctx, new=False)
    if event.result is None or not _replaceable(event, call.chosen):
        return NOTHING
    from limpet.outputs.policy import policy

    least = policy(call.chosen.bounds.outputs, event.tool).threshold
    size = len(event.result.encode("utf-8", "surrogatepass"))
    if not call.chosen.bounds.outputs.enabled or least is None or not least <= size <= limits.OUTPUT_MAX_BYTES:
        return NOTHING
    from limpet.outputs.outputs import keep_output

    kept = keep_output(call.opened(), event.tool or "tool", event.result, event.arguments)
    return NOTHING if kept.output is None else Done(Answer(output=kept.text))


def before_tool(call: Call) -> Done:
    """For clients that do not tell a server whose session it serves: our own tools are told it in their arguments."""
    event = call.event
    from limpet.catalogue.table import find
    from limpet.errors import LimpetError

    given = json.loads(event.arguments or "{}")
    try:
        operation = find(event.tool.rpartition(SERVED)[2])
    except LimpetError:
        return NOTHING  # a tool of somebody else
    if SERVED not in event.tool or not operation.in_session or not event.session or given.get("session_id"):
        return NOTHING
    return Done(Answer(arguments={**given, "session_id": event.session}))


def before_compact(call: Call) -> Done:
    """Keep what the conversation said, and note that the context has to come back."""
    from limpet.doors.hooks.checkpoint import checkpoint
    from limpet.session import hook_state

    said, source = checkpoint(call.event.transcript)
    if said or call.known():
        hook_state.before_compact(call.opened(), said, source)
    return NOTHING


def before_model(call: Call) -> Done:
    """For a client that says nothing at all about a compaction: its own summary in a request gives it away."""
    sent = json.dumps(messages_of(call.event.raw))
    if SNAPSHOT not in sent or not call.known():
        return NOTHING
    return _restored(call, call.opened(), new=False)


def stop(call: Call) -> Done:
    """A session that worked and left no handoff leaves a draft: the next end may be one that nobody is told of."""
    if call.event.subagent or not (call.known() or call.event.transcript):
        return NOTHING
    from limpet.session import hook_state

    ctx = call.opened() if call.known() else None
    if ctx is None or hook_state.can_draft(ctx):
        from limpet.doors.hooks.checkpoint import draft

        ctx = ctx or call.opened()
        text, source = draft(ctx, call.event.transcript)
        if text:
            hook_state.draft_handoff(ctx, text, source)
    return NOTHING


def session_end(call: Call) -> Done:
    from limpet.model import SESSION
    from limpet.session.sessions import archive_session

    stop(call)
    if not call.event.subagent and call.known():
        ctx = call.opened()
        if ctx.store.read(ctx.scope, SESSION, ctx.session) is not None:
            archive_session(ctx, ctx.session)
    return NOTHING


EVENTS: dict[str, Callable[[Call], Done]] = {
    "session-start": session_start,
    "prompt": prompt,
    "before-tool": before_tool,
    "after-tool": after_tool,
    "before-compact": before_compact,
    "before-model": before_model,
    "stop": stop,
    "session-end": session_end,
}


# --- how --------------------------------------------------------------------------------------------------------------


def _replaceable(event: Event, chosen: Settings) -> bool:
    from fnmatch import fnmatchcase

    name = event.tool
    if any(fnmatchcase(name, pattern) for pattern in chosen.bounds.hooks.off_tools):
        return False
    if event.result is not None and event.result.startswith("📁 Output cached: "):
        return False
    low = name.rpartition(":")[2].lower()
    if any(fnmatchcase(low, pattern) for pattern in (*LEFT_ALONE, *OURS)):
        return False
    return any(fnmatchcase(name, pattern) for pattern in REPLACEABLE.get(event.client, ("*",)))


def _restored(call: Call, ctx: Context, *, new: bool) -> Done:
    """What the session has to know, within the cap. The handoff is used up when the client has got it."""
    from limpet.doors.hooks.fitting import Section, fitted
    from limpet.memory import digest, handoff
    from limpet.model import AGENT
    from limpet.session import hook_state, notepad, pins, tasks
    from limpet.text.quote import as_data

    waiting = hook_state.handoff_for(ctx, new=new)
    pad = notepad.read_notepad(ctx)
    open_tasks = [f"Open task: {task.content}" for task in tasks.open_tasks(ctx)]
    pinned = [*pins.pinned_memory(ctx), *(entry.content for entry in pins.pins(ctx))]
    before = hook_state.read(ctx)
    said = "" if new else as_data(before.checkpoint, before.source or AGENT)
    sections = (
        Section(handoff.section(waiting), 2_600, "`limpet handoff show` prints all of it"),
        Section(pins.section(pinned), 1_600, "`limpet window pins` and search_memory give all of it"),
        Section(notepad.section(pad) if pad.content.strip() else "", 2_400, "read_notepad gives all of it"),
        Section("\n".join(open_tasks), 400, "`limpet task list` prints all of it"),
        Section(said, 1_000, "recall and the transcript have the rest"),
        Section(_journal(ctx), 500, "`limpet journal recover --level 3` prints all of it"),
        Section(digest.digest(ctx).text, 700, "search_memory reads the rest"),
        Section(_name(call, ctx), 300, ""),
    )
    text = fitted(sections, limits.HOOK_CONTEXT_CHARS, _measure(call))

    def after() -> None:
        if new and waiting is not None:
            handoff.use_handoff(ctx, waiting)
        hook_state.mark_shown(ctx, pad.version)

    return Done(Answer(text), after)


def _name(call: Call, ctx: Context) -> str:
    """Some clients do not tell a server which session it serves; there the agent has to."""
    if call.event.client not in NAMELESS or not call.event.session:
        return ""
    return f'This session is "{ctx.session}": give it as session_id to the tools of Limpet.'


def _journal(ctx: Context) -> str:
    """Level 1 of the journal, where there is one. Trouble with it must not keep the rest away."""
    if not os.path.isfile(os.path.join(ctx.root, ctx.bounds.journal.file)):
        return ""
    from limpet.errors import LimpetError
    from limpet.journal.recover import recover_notes
    from limpet.model import FILE
    from limpet.text.quote import quoted

    try:
        return quoted(recover_notes(ctx, 1).text, FILE)
    except LimpetError:
        return ""


def _by_agent(ctx: Context, pad: Entry) -> bool:
    """Whether the agent wrote this version, itself or by code it ran."""
    from limpet.store import EventQuery

    events = ctx.store.events(ctx.scope, EventQuery(pad.kind, pad.key, limit=1))
    return not events or events[0].by.startswith("agent") or events[0].by.endswith("/sandbox")


def _measure(call: Call) -> Callable[[str], int]:
    return _utf8 if call.event.client in BYTES else len


def _utf8(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
