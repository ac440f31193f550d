"""The library's face: `Limpet` (a project's memory) and `Session` (one piece of work in it).

Every method goes through `Limpet.run`, the same way a tool call does, so that checks, answers and errors are the same
behind every door. `call` gives the answer as JSON, the methods give values.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from limpet import errors
from limpet.catalogue.check import checked
from limpet.catalogue.operation import EVERY, Context, Operation
from limpet.catalogue.table import WITH_WINDOW, find, guidance, profile, resolve
from limpet.memory import handoff, memory
from limpet.model import Entry, Event, Folder, Handoff, Scope, SessionInfo
from limpet.session import sessions
from limpet.session.methods import (
    HandoffFace,
    JournalFace,
    MemoryFace,
    NotepadFace,
    NotesFace,
    OutputsFace,
    PromptFace,
    SandboxFace,
    SkillsFace,
    StateFace,
    plain,
)
from limpet.settings import Bounds
from limpet.store import Finding, Store

if TYPE_CHECKING:
    # What only some calls need is imported by them: every server starts with this module.
    from limpet.outputs import savings
    from limpet.recall import recall
    from limpet.recall.semantics import Semantics
    from limpet.session import tree
    from limpet.stores.shared import backup as whole
    from limpet.upkeep import history, tool_pins
    from limpet.window.messages import Message
    from limpet.window.window import Window

Clock = Callable[[], int]
Watch = Callable[[str, str, str, Callable[[], Any]], Any]  # operation, by whom, project, and the work, which it must do
NO_FOLDER = os.path.join(os.devnull, "none")  # no file can ever be there


def wall_clock() -> int:
    """Milliseconds since 1970. Stores never let a project's time stamps go back, whatever this says."""
    return time.time_ns() // 1_000_000


class Tool(NamedTuple):
    """A tool for people who call a model's API themselves, in the form that each API takes."""

    name: str
    description: str
    parameters: dict[str, Any]  # JSON schema
    handler: Callable[[Mapping[str, Any]], Any]  # what it gives is shown as text, or as JSON

    def anthropic(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "input_schema": self.parameters}

    def openai_chat(self) -> dict[str, Any]:
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    def openai_responses(self) -> dict[str, Any]:
        said = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", **said, "strict": False}


class Instructions(NamedTuple):
    """A text for a new session, and what to call once the session has really made use of it."""

    text: str
    used: Callable[[], None]


class Limpet:
    """A project's memory. Close it, or use it in a `with` statement."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        *,
        session: str | None = None,
        bounds: Bounds | None = None,
        clock: Clock = wall_clock,
        skills: tuple[Folder, ...] = (),
        root: str = ".",
        semantics: Semantics | None = None,
    ) -> None:
        self.root = root
        self._semantics = semantics
        self.store = store
        self.scope = scope
        if session == EVERY:
            raise _only_for_reading()
        self.default_session = sessions.session_name(session) if session else f"s-{os.urandom(6).hex()}"
        self._bounds = bounds or Bounds()
        self.clock = clock
        self._skills = skills
        self.watch: Watch | None = None  # stands around every operation: telemetry.py

    def __enter__(self) -> Limpet:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self.store.close()

    @property
    def bounds(self) -> Bounds:
        return self._bounds

    def elsewhere(self, scope: Scope) -> Limpet:
        """The memory of another project in the same store. Its folder is not here: it has no journal and no skills."""
        known = self._semantics
        there = Limpet(self.store, scope, bounds=self._bounds, clock=self.clock, root=NO_FOLDER, semantics=known)
        there.watch = self.watch
        return there

    # --- the one way in -----------------------------------------------------------------------------------------------

    def run(self, operation: Operation, arguments: Mapping[str, Any], session: str | None, by: str) -> Any:
        if self.watch is None:
            return self._run(operation, arguments, session, by)
        return self.watch(operation.name, by, self.scope.project, lambda: self._run(operation, arguments, session, by))

    def _run(self, operation: Operation, arguments: Mapping[str, Any], session: str | None, by: str) -> Any:
        given = checked(operation, arguments)
        named = given.pop("session_id", None) or session
        if named == EVERY and not operation.every_session:
            raise _only_for_reading()
        return resolve(operation.run)(self.context(named, by), **given)

    def call(
        self, name: str, arguments: Mapping[str, Any], *, session: str | None = None, by: str = "agent/library"
    ) -> dict[str, Any]:
        """Do an operation by name, as a tool call does; the answer is ready for JSON."""
        operation = find(name)
        reply: dict[str, Any] = resolve(operation.show)(self.run(operation, arguments, session, by))
        return reply

    def context(self, session: str | None = None, by: str = "agent/library") -> Context:
        name = self.default_session if session is None else sessions.session_name(session)
        now = self.clock()
        return Context(self.store, self.scope, name, by, now, self._bounds, self._skills, self.root, self._semantics)

    # --- sessions and memory ------------------------------------------------------------------------------------------

    def session(self, id: str | None = None, *, by: str = "agent/library") -> Session:
        """The session of that name: resumed if it exists, begun with its first write if not."""
        return Session(self, self.default_session if id is None else sessions.session_name(id), by)

    @property
    def memory(self) -> MemoryFace:
        return self.session().memory

    def see_tools(
        self, server: str, tools: Mapping[str, Mapping[str, Any]], *, complete: bool = True
    ) -> tuple[tool_pins.Seal, ...]:
        """Compare the tools another MCP server lists with those sealed. A server seen for the first time is sealed."""
        ctx = self.context(by="agent/wrap")._replace(session="")
        from limpet.upkeep import tool_pins

        return tool_pins.see_tools(ctx, server, tools, complete=complete)

    @property
    def journal(self) -> JournalFace:
        return self.session().journal

    def sessions(self, *, include_archived: bool = False, limit: int = 50) -> tuple[SessionInfo, ...]:
        arguments = {"include_archived": include_archived, "limit": limit}
        return cast(sessions.Sessions, self._do("list_sessions", arguments)).sessions

    def archive(self, id: str) -> SessionInfo:
        return cast(SessionInfo, self._do("archive_session", {"id": id}))

    def wait(self, ids: Sequence[str], seconds: int = 0) -> tree.Waited:
        """How these sub-sessions ended, waiting a while for those that have not."""
        return cast("tree.Waited", self._do("wait_for_sessions", {"ids": plain(ids), "seconds": seconds}))

    def end(self, id: str, outcome: str, result: str = "") -> tree.Outcome:
        """Say how a sub-session ended that did not report."""
        return cast("tree.Outcome", self._do("end_session", {"id": id, "outcome": outcome, "result": result}))

    def history(self, *, kind: str | None = None, key: str | None = None, limit: int = 50) -> tuple[Event, ...]:
        return cast("history.History", self._do("history", {"kind": kind, "key": key, "limit": limit})).events

    def savings(self, session: str | None = None) -> savings.Saved:
        """What kept outputs saved, in tokens, by session and tool."""
        return cast("savings.Saved", self._do("savings", {"session": session}))

    def recall(self, query: str, **options: Any) -> recall.Recalled:
        """Search everything kept in the project. Options: kinds, tags, session, since, until, key_prefix, limit …"""
        given = {name: plain(value) if name in ("kinds", "tags") else value for name, value in options.items()}
        return cast("recall.Recalled", self._do("recall", {"query": query, **given}))

    def undo(self, seq: int | None = None) -> Event:
        """Take the last change back, or the one named. The change that was undone."""
        return cast("history.Undone", self._do("undo", {"seq": seq})).event

    def _do(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return self.run(find(name), arguments, None, "agent/library")

    # --- for people who build agents ----------------------------------------------------------------------------------

    def tools(self, profile_name: str = "core", *, session: str | None = None, also: Sequence[str] = ()) -> list[Tool]:
        """Tools with JSON schemas and handlers, for a model's API. Handlers raise LimpetError with a text to show.

        `also` names operations to add to those of the profile.
        """

        def handler(operation: Operation) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
            return lambda arguments: self.call(operation.name, arguments, session=session, by="agent/tools")

        given = {op.name: op for op in (*profile(profile_name), *map(find, also))}
        return [Tool(op.name, op.description(), op.input_schema(), handler(op)) for op in given.values()]

    def guidance(self, profile_name: str = "core") -> str:
        """The prompt section that teaches these tools. Give it to the model only together with them."""
        return guidance(operation.name for operation in profile(profile_name))

    def instructions(
        self, profile_name: str = "core", session: str | None = None, *, guide: bool = True
    ) -> Instructions:
        """What an agent should know first: the waiting handoff, if any, then how to use the tools."""
        ctx = self.context(session)
        seen = handoff.waiting(ctx)
        first = handoff.section(seen, handoff.other_lines(ctx))
        text = "\n\n".join(part for part in (first, self.guidance(profile_name) if guide else "") if part)

        def used() -> None:
            if seen is not None:
                handoff.use_handoff(self.context(ctx.session), seen)

        return Instructions(text, used)

    # --- for people who look after it ---------------------------------------------------------------------------------

    def export_lines(self, *, outputs: bool = True) -> Iterator[str]:
        from limpet.upkeep import export

        return export.export_lines(self.context(), outputs=outputs)

    def import_lines(self, lines: Iterable[str], *, merge: bool = False) -> int:
        from limpet.upkeep import export

        return export.import_lines(self.context(by="import/file"), lines, merge=merge)

    def backup(self, target: str, told: whole.Told = lambda count: None) -> tuple[Finding, ...]:
        """The whole store, every project of it, as a file that is a store. What was found on reading it again."""
        from limpet.stores.shared import backup as whole

        return whole.backup(self.store, target, told)

    def restore(self, source: str, told: whole.Told = lambda count: None) -> whole.Copied:
        """Put a backup of any store into this one, which must be empty. All of it, or nothing."""
        from limpet.stores.shared import backup as whole

        return whole.restore(self.store, source, told)

    def check(self) -> tuple[Finding, ...]:
        return self.store.check()


class Session:
    """One piece of work: its notes, notepad and scratchpad, and the project's memory seen from it."""

    def __init__(self, hold: Limpet, id: str, by: str) -> None:
        self.hold = hold
        self.id = id
        self.by = by
        self.notes = NotesFace(self)
        self.notepad = NotepadFace(self)
        self.memory = MemoryFace(self)
        self.handoff = HandoffFace(self)
        self.outputs = OutputsFace(self)
        self.sandbox = SandboxFace(self)
        self.prompt = PromptFace(self)
        self.skills = SkillsFace(self)
        self.state = StateFace(self)
        self.journal = JournalFace(self)
        self._seen: Handoff | None = None  # in the context given out last
        self._window: Window | None = None

    def do(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return self.hold.run(find(name), arguments, self.id, self.by)

    def ctx(self) -> Context:
        """For what is no operation of its own."""
        return self.hold.context(self.id, self.by)

    def begin(self, task: str = "") -> SessionInfo:
        return cast(SessionInfo, self.do("begin_session", {"task": task}))

    def spawn(self, task: str, **given: Any) -> Session:
        """A sub-session with a task: copy_notepad=, notes=, references=, token_limit= and model= say what it gets."""
        made = cast("tree.Spawned", self.do("spawn_session", {"task": task, **given}))
        return Session(self.hold, made.id, self.by)

    def fork(self, task: str, **given: Any) -> Session:
        """A sub-session that goes on from here: it has this session's notepad and history."""
        made = cast("tree.Spawned", self.do("fork_session", {"task": task, **given}))
        return Session(self.hold, made.id, self.by)

    def report(self, result: str) -> tree.Outcome:
        """End this sub-session with its result."""
        return cast("tree.Outcome", self.do("report_result", {"result": result}))

    def context(self, line: str = handoff.MAIN) -> str:
        """What the session starts with: handoff, notepad, scratchpad and memory, in this order.

        The handoff is that of the line of work named; those that wait for other lines are mentioned.
        """
        ctx = self.ctx()
        self._seen = handoff.waiting(ctx, line)
        return sessions.context(ctx, self._seen, line)

    def used(self) -> None:
        """Say that the last context of this session served a model call; the handoff in it is now used up."""
        if self._seen is not None:
            handoff.use_handoff(self.ctx(), self._seen)

    @property
    def window(self) -> Window:
        """The window of a loop that calls a model: `next`, `sent` and `uncompact`."""
        if self._window is None:
            from limpet.window.window import Window

            self._window = Window(self.ctx)
        return self._window

    def tools(self, profile_name: str = "core", *, also: Sequence[str] = WITH_WINDOW) -> list[Tool]:
        """The tools of a profile for this session, and those that read back what its window left out."""
        return self.hold.tools(profile_name, session=self.id, also=also)

    def answer(self, reply: Message, tools: Sequence[Tool]) -> list[Message]:
        """Do what a model's reply calls for, with these tools: ours and your own. A message for each call.

        What goes wrong is a result too, so that the model can act on it; big results of your tools become references.
        """
        from limpet.window import answers
        from limpet.window.messages import TOOL, Message

        known = {tool.name: tool.handler for tool in tools}
        return [Message(TOOL, (answers.run_handler(self.ctx(), call, known),)) for call in reply.calls()]

    def pin(self, content: str) -> str:
        """A text that every window of this session holds from now on. The id it is unpinned by."""
        return cast(Entry, self.do("pin_text", {"content": content})).key

    def unpin(self, id: str) -> None:
        self.do("unpin_text", {"id": id})

    def scratch(self, content: str | None = None, mode: str = "read") -> str:
        """The scratchpad of the task at hand: read, replace, append or clear. Its content afterwards."""
        return cast(memory.Scratch, self.do("scratch_note", {"content": content, "mode": mode})).content


def _only_for_reading() -> errors.BadInput:
    return errors.bad_name("session_id", EVERY, "it stands for every session and can only list and search notes")
