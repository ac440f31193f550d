"""Which action an event calls for: pure decisions that need neither the store nor any module that uses it.

An agent waits for every hook, and most hooks have nothing to do. An action is a function of `actions`; its outcome may
name another action to go on with.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from limpet import limits
from limpet.clients.base import HookAnswer, HookEvent, a_text
from limpet.errors import LimpetError
from limpet.home.folders import Home, write_private
from limpet.home.place import read_small
from limpet.light import TYPE_CHECKING
from limpet.outputs.policy import matches, policy
from limpet.platform import sha256
from limpet.record import NamedTuple
from limpet.settings import data_folder

if TYPE_CHECKING:
    from limpet.catalogue.operation import Context
    from limpet.settings import Settings

MARKS = "shown"  # the folder of marks, in the data folder
PROMPTS, PROMPTS_BYTES = "prompts", 48 << 10  # the folder of hashes of prompts, and of each session's file there
SHOWN, PROMPTED = "shown", "prompted"  # what a mark says: handoffs were shown; and the session was asked something
OUTPUT_MARK = "📁 Output cached: "  # begins a result that is already a reference
# Tools whose results are in a file anyway and are needed word for word for an edit; and tools that run other agents or
# control the client.
UNTOUCHED_TOOLS = (
    *("read", "edit", "write", "multiedit", "notebook*", "*read_file*", "*write_file*", "*edit_file*"),
    *("read_many_files", "view*", "create", "replace", "apply_patch", "str_replace*", "*patch*"),
    *("task*", "agent*", "*subagent*", "spawn_agent*", "skill", "toolsearch", "todo*", "update_plan", "exitplanmode"),
)
# Limpet's own tools, with any prefix that the agent gives them.
OWN_TOOLS = (
    *("*limpet*", "*_notepad", "*recall", "*search_notes", "*list_notes", "*search_memory", "*read_output"),
    *("*list_outputs", "*scratchpad_*"),
)
READING = "output read"  # of the command that prints a stored result, which is not kept again
OWN_PREFIXES = ("limpet_", "limpet-")  # of Limpet's tools: agents join server and tool in their own way


class Outcome(NamedTuple):
    """The result of an action."""

    answer: HookAnswer = HookAnswer()
    after: Callable[[], None] | None = None  # called when the agent has the answer
    next_action: str = ""


class ShownMark:
    """Whether a session was shown handoffs and has not worked since: a small file, so that a hook need not open the
    store to know. Without it, handoffs are used up by later events, or shown again."""

    def __init__(self, event: HookEvent, settings: Settings) -> None:
        name = sha256(f"{settings.store}\0{settings.project}\0{event.session}".encode(errors="replace"))
        self.home = Home(data_folder())
        self.path = os.path.join(self.home.path, MARKS, name.hexdigest()[:32])

    def read(self) -> str:
        return read_small(self.path) or ""

    def set(self, state: str) -> None:
        with suppress(OSError, LimpetError):
            if state:
                self.home.make(MARKS)
                write_private(self.path, state)
            else:
                os.unlink(self.path)


class TypedPrompts:
    """Which prompts the agent said that a person typed in this session, by their hashes in a small file. A transcript
    also has texts in the user's role that programs put there, so it alone does not tell whose words they are."""

    def __init__(self, mark: ShownMark) -> None:
        self._home = mark.home
        self._path = os.path.join(self._home.path, PROMPTS, os.path.basename(mark.path))

    def add(self, prompt: str) -> None:
        """Where there is no data folder, nothing is kept, and a prompt makes none."""
        with suppress(OSError, LimpetError):
            if not prompt.strip() or not os.path.isdir(self._home.path):
                return
            self._home.make(PROMPTS)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(self._path, flags, 0o600)
            try:
                if os.fstat(handle).st_size < PROMPTS_BYTES:
                    os.write(handle, _mark_of(prompt))
            finally:
                os.close(handle)

    def read(self) -> Callable[[str], bool]:
        """What tells whether a text is one of them."""
        marks = (read_small(self._path) or "").encode()
        return lambda text: not text.lstrip().startswith("<") and _mark_of(text) in marks

    def forget(self) -> None:
        with suppress(OSError):
            os.unlink(self._path)


def _mark_of(prompt: str) -> bytes:
    return f"{sha256(' '.join(prompt.split()).encode(errors='replace')).hexdigest()[:32]}\n".encode()


class Hook:
    """One run of a hook."""

    def __init__(self, event: HookEvent, settings: Settings) -> None:
        self.event = event
        self.settings = settings
        self.context: Context | None = None  # set when the store is first opened
        self.handoff_mark = ShownMark(event, settings)
        self.prompts = TypedPrompts(self.handoff_mark)

    def store_exists(self) -> bool:
        """A hook that only reads does not create a store."""
        return "://" in self.settings.store or os.path.exists(self.settings.store)


def worked(hook: Hook) -> bool:
    """Whether this event shows that a session has worked since it was shown a handoff."""
    state = hook.handoff_mark.read()
    match hook.event.name:
        case "after-tool" | "stop":
            return bool(state)
        case "prompt":
            if state == SHOWN:
                hook.handoff_mark.set(PROMPTED)
            return state == PROMPTED  # the one before was answered
        case "session-end":
            if state == PROMPTED and not hook.event.client.announces_turns:
                return True
            if state:
                hook.handoff_mark.set("")
    return False


def chosen_action(hook: Hook) -> str:
    """The first action for an event."""
    if hook.event.name == "prompt" and not hook.event.subagent:
        hook.prompts.add(a_text(hook.event.payload.get("prompt")))
    return "work" if hook.store_exists() and worked(hook) else after_work(hook)


def after_work(hook: Hook) -> str:
    return TRIAGE[hook.event.name](hook)


def after_tool(hook: Hook) -> str:
    event = hook.event
    if event.subagent:
        return "keep_for_subagent" if hook.store_exists() and keep_action(hook) else ""
    if event.client.silent_compaction and hook.store_exists():
        return "restore_late"
    return keep_action(hook)


def keep_action(hook: Hook) -> str:
    event, rules = hook.event, hook.settings.bounds.outputs
    if event.result is None or not rules.enabled or not _replaceable(event, hook.settings):
        return ""
    threshold = policy(rules, event.tool).threshold
    size = len(event.result.encode("utf-8", "surrogatepass"))
    return "" if threshold is None or not threshold <= size <= limits.OUTPUT_MAX_BYTES else "keep"


def before_tool(hook: Hook) -> str:
    event = hook.event
    if not own_tool(event.tool) or not event.session:
        return ""
    return "" if event.client.tells_session and not event.subagent else "name_session"


def own_tool(name: str) -> str:
    """The name that Limpet has for a tool of its server; empty for the tools of others."""
    prefix = next((prefix for prefix in OWN_PREFIXES if prefix in name), "")
    return name.rpartition(prefix)[2].lstrip("_") if prefix else ""


def before_model(hook: Hook) -> str:
    """Some agents announce no compaction; their summary in a request shows it."""
    return "restore" if hook.event.client.was_compacted(hook.event.payload) and hook.store_exists() else ""


def stop(hook: Hook) -> str:
    event = hook.event
    if event.subagent or not (hook.store_exists() or event.transcript):
        return end_action(hook)
    return "stop"


def end_action(hook: Hook) -> str:
    """What is left to do after a handoff was drafted, or was not needed."""
    ends = hook.event.name == "session-end" and not hook.event.subagent
    return "archive" if ends and hook.store_exists() else ""


TRIAGE: dict[str, Callable[[Hook], str]] = {
    "session-start": lambda hook: "restore" if hook.store_exists() else "",
    "prompt": lambda hook: "prompt" if hook.store_exists() else "",
    "before-tool": before_tool,
    "after-tool": after_tool,
    "before-compact": lambda hook: "checkpoint",
    "before-model": before_model,
    "stop": stop,
    "session-end": stop,
}


def _replaceable(event: HookEvent, settings: Settings) -> bool:
    name = event.tool
    if any(matches(name, pattern) for pattern in settings.bounds.hooks.off_tools):
        return False
    if event.result is not None and event.result.startswith(OUTPUT_MARK):
        return False
    if f"limpet {READING} " in event.arguments:
        return False
    plain_name = name.rpartition(":")[2].lower()
    if any(matches(plain_name, pattern) for pattern in (*UNTOUCHED_TOOLS, *OWN_TOOLS)):
        return False
    return any(matches(name, pattern) for pattern in event.client.replaceable_tools)
