"""`Limpet` (a project's memory) and `Session` (one piece of work in it).

Every call of an operation goes through `Limpet.run`, whether it comes from a method or from a tool call, so checks,
answers and errors are the same at every door. Methods return values; `Limpet.call` returns JSON.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

from limpet import errors
from limpet.catalogue.ids import with_full_ids
from limpet.catalogue.late import LateModule, LatePart, resolve
from limpet.catalogue.operation import EVERY, Context, Operation, checked, retry_of, session_name
from limpet.catalogue.table import (
    SMALL,
    WITH_WINDOW,
    as_meant,
    find,
    guidance,
    operation_of,
    profile,
    reworded,
)
from limpet.light import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from limpet.memory import handoff
from limpet.memory.handoff import ROOM as HANDOFF_ROOM
from limpet.model import DataFolder, Event, Folder, Handoff, Scope, SessionInfo
from limpet.record import NamedTuple
from limpet.redaction import Masking
from limpet.settings import Bounds
from limpet.store import Finding, Progress, Restored, Store, no_progress

if TYPE_CHECKING:
    from limpet.journal.methods import ProjectJournal
    from limpet.memory import digest, memory
    from limpet.memory.handoff import SessionHandoff
    from limpet.memory.layers import LayerStores
    from limpet.memory.memory import SessionMemory
    from limpet.memory.notes import SessionNotes
    from limpet.memory.skills import SessionSkills
    from limpet.memory.state import ProjectState
    from limpet.outputs import savings
    from limpet.outputs.methods import SessionOutputs
    from limpet.recall import recall
    from limpet.recall.embeddings import Embeddings
    from limpet.sandbox.run import SessionSandbox
    from limpet.session import notepad, pins, sessions, tree
    from limpet.session.notepad import SessionNotepad, SystemPrompt
    from limpet.upkeep import export, history, tool_pins
    from limpet.window import messages, window
    from limpet.window.messages import Message
    from limpet.window.window import Window
else:  # every server starts with this module, and few calls need these
    digest, memory, notepad = map(LateModule, ("memory.digest", "memory.memory", "session.notepad"))
    pins, sessions, tree = map(LateModule, ("session.pins", "session.sessions", "session.tree"))
    savings, recall = map(LateModule, ("outputs.savings", "recall.recall"))
    export, history, tool_pins = map(LateModule, ("upkeep.export", "upkeep.history", "upkeep.tool_pins"))
    window, messages = map(LateModule, ("window.window", "window.messages"))

P = ParamSpec("P")
T = TypeVar("T")
Clock = Callable[[], int]
Run = Callable[[Operation, Mapping[str, Any], str | None, str, Masking | None], Any]  # as Limpet.run
ABOUT_WINDOW = ("show_window", "compact_window")  # operations that a session's own window answers
LIBRARY = "agent/library"  # who calls, unless the caller says so
NO_FOLDER = os.path.join(os.devnull, "none")  # a path where no file can be


def wall_clock() -> int:
    """Milliseconds since 1970. A store keeps the time stamps of a project increasing, even if this goes back."""
    return time.time_ns() // 1_000_000


class ToolAnswer(str):
    """What one of Limpet's tools answers a model: short text, and in `values` the same as JSON for the program."""

    values: dict[str, Any]

    def __new__(cls, text: str, values: dict[str, Any]) -> ToolAnswer:
        answer = super().__new__(cls, text)
        answer.values = values
        return answer

    def __reduce__(self) -> tuple[type[ToolAnswer], tuple[str, dict[str, Any]]]:  # for copies and pickles
        return ToolAnswer, (str(self), self.values)


class Tool(NamedTuple):
    """A tool for people who call a model's API themselves, in the form that each API takes."""

    name: str
    description: str
    parameters: dict[str, Any]  # JSON schema
    handler: Callable[[Mapping[str, Any]], Any]  # the model is shown its result as text, or as JSON

    def anthropic(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "input_schema": self.parameters}

    def openai_chat(self) -> dict[str, Any]:
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    def openai_responses(self) -> dict[str, Any]:
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", **function, "strict": False}


class Instructions(NamedTuple):
    """A text for a new session, and what to call once the session has really made use of it."""

    text: str
    used: Callable[[], None]


class Limpet:
    """A project's memory. Close it, or use it in a `with` statement."""

    def __init__(  # noqa: PLR0913 - what wiring chooses
        self,
        store: Store,
        scope: Scope,
        *,
        session: str | None = None,
        bounds: Bounds | None = None,
        clock: Clock = wall_clock,
        skills: tuple[Folder, ...] = (),
        root: str = ".",
        data: DataFolder | None = None,
        embeddings: Embeddings | None = None,
        layers: LayerStores | None = None,
    ) -> None:
        self.root = root
        self.data = data
        self._embeddings = embeddings
        self._layers = layers
        self.store = store
        self.scope = scope
        if session == EVERY:
            raise _only_for_reading()
        self.has_named_session = bool(session)  # otherwise the default session is a new one in each process
        self.default_session = session_name(session) if session else f"s-{os.urandom(6).hex()}"
        self._bounds = bounds or Bounds()
        self.clock = clock
        self._skills = skills
        self._around: Callable[[Limpet, Run], Run] | None = None

    def __enter__(self) -> Limpet:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        if self._embeddings is not None and self._embeddings.indexer is not None:
            self._embeddings.indexer.stop()
        if self._layers is not None:
            self._layers.close()
        self.store.close()

    def index_in_background(self) -> None:
        """Make the vectors of a transformer in a thread from now on, if there is one: for processes that live long."""
        rules = self._bounds.recall
        if self._embeddings is not None and rules.background and resolve("recall.embeddings:has_transformer")(rules):
            self._embeddings.indexer = resolve("recall.embeddings:Indexer")(self.store, self._embeddings.models)

    @property
    def bounds(self) -> Bounds:
        return self._bounds

    def elsewhere(self, scope: Scope) -> Limpet:
        """The memory of another project in the same store. It has no folder, and so no journal and no skills."""
        embeddings = self._embeddings
        options: dict[str, Any] = {"bounds": self._bounds, "clock": self.clock, "layers": self._layers}
        limpet = Limpet(self.store, scope, root=NO_FOLDER, embeddings=embeddings, **options)
        if self._around is not None:
            limpet.observe(self._around)
        return limpet

    def observe(self, around: Callable[[Limpet, Run], Run]) -> None:
        """Replace `run` with what `around` makes of it, here and in every Limpet that `elsewhere` returns later."""
        inner = self._around
        self._around = around if inner is None else lambda limpet, run: around(limpet, inner(limpet, run))
        self.__dict__["run"] = around(self, self.run)

    # --- calling operations -------------------------------------------------------------------------------------------

    def run(
        self,
        operation: Operation,
        arguments: Mapping[str, Any],
        session: str | None,
        by: str,
        masking: Masking | None = None,
    ) -> Any:
        """Check the arguments, call the operation and return its value. `masking` says afterwards what was masked."""
        masking = masking or Masking()
        values = checked(operation, arguments)
        name = values.pop("session_id", None) or session
        if name == EVERY and not operation.every_session:
            raise _only_for_reading()
        retry = retry_of(operation, values.pop("idempotency_key", None), values, name) if operation.retryable else None
        if operation.in_folder and not operation.read_only:  # a store masks what it gets; a file does not
            values = {key: masking.value(value) for key, value in values.items()}
        ctx = self.context(name, by, masking)
        ctx = ctx if retry is None else ctx._replace(retry=retry)
        value = resolve(operation.run)(ctx, **with_full_ids(ctx, operation, values))
        if self._embeddings is not None and not operation.read_only:
            self._embeddings.written(self.scope)
        return value

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        session: str | None = None,
        by: str = LIBRARY,
        keep_secret: bool = False,
    ) -> dict[str, Any]:
        """Call an operation by name, as a tool call does. The answer is ready for JSON.

        `keep_secret` stores what looks like a secret as it is; it is a person's decision, and no argument of a tool.
        """
        operation, masking = find(name), Masking(keep_secret)
        return operation.render(self.run(operation, arguments, session, by, masking), masking)

    def answer(self, operation: Operation, arguments: Mapping[str, Any], session: str | None, by: str) -> ToolAnswer:
        """Call an operation for a model, which reads the text."""
        masking = Masking()
        value = self.run(operation, arguments, session, by, masking)
        text = operation.render_text(self.context(session, by), value, masking)
        return ToolAnswer(text, operation.render(value, masking))

    def do(self, function: Callable[Concatenate[Context, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call an operation by its function, outside of any session. Arguments are given by name."""
        if args:
            raise TypeError(f"{function.__name__} is called here with named arguments only")
        value: T = self.run(operation_of(function), kwargs, None, LIBRARY)
        return value

    def context(self, session: str | None = None, by: str = LIBRARY, masking: Masking | None = None) -> Context:
        name = self.default_session if session is None else session_name(session)
        settings = self._bounds, self._skills, self.root, self._embeddings, self.data
        return Context(
            self.store, self.scope, name, by, self.clock(), *settings, masking or Masking(), None, self._layers
        )

    # --- sessions and memory ------------------------------------------------------------------------------------------

    def session(self, id: str | None = None, *, by: str = LIBRARY, keep_secret: bool = False) -> Session:
        """The session with that name. It is resumed if it exists; otherwise its first write begins it.

        `keep_secret` stores what looks like a secret as it is. Tools of the session mask it all the same.
        """
        return Session(self, self.default_session if id is None else session_name(id), by, keep_secret)

    @property
    def memory(self) -> SessionMemory:
        return self.session().memory

    @property
    def journal(self) -> ProjectJournal:
        return self.session().journal

    def sessions(self, *, include_archived: bool = False, limit: int = 50) -> tuple[SessionInfo, ...]:
        return self.do(sessions.list_sessions, include_archived=include_archived, limit=limit).sessions

    def archive(self, id: str) -> SessionInfo:
        return self.do(sessions.archive_session, id=id)

    def wait(self, ids: Sequence[str], seconds: int = 0) -> tree.Waited:
        """How these sub-sessions ended. Waits up to `seconds` for those that have not."""
        return self.do(tree.wait_for_sessions, ids=ids, seconds=seconds)

    def end(self, id: str, outcome: str, result: str = "") -> tree.SessionOutcome:
        """Record the outcome of a sub-session that did not report."""
        return self.do(tree.end_session, id=id, outcome=outcome, result=result)

    def history(self, *, kind: str | None = None, key: str | None = None, limit: int = 50) -> tuple[Event, ...]:
        return self.do(history.history, kind=kind, key=key, limit=limit).events

    def undo(self, seq: int | None = None) -> Event:
        """Undo the last change, or the one with this number. Returns the change that was undone."""
        return self.do(history.undo, seq=seq).event

    def savings(self, session: str | None = None) -> savings.SavingsReport:
        """What kept outputs saved, in tokens, by session and tool."""
        return self.do(savings.savings, session=session)

    def recall(self, query: str, **options: Any) -> recall.Recalled:
        """Search everything kept in the project. Options: kinds, tags, session, since, until, key_prefix, limit …"""
        return self.do(recall.recall, query=query, **options)

    def see_tools(
        self, server: str, tools: Mapping[str, Mapping[str, Any]], *, complete: bool = True
    ) -> tuple[tool_pins.ToolPin, ...]:
        """Compare the tools another MCP server lists with the pinned ones. The first list of a server is pinned."""
        ctx = self.context(by="agent/wrap")._replace(session="")
        return tool_pins.see_tools(ctx, server, tools, complete=complete)

    # --- for people who build agents ----------------------------------------------------------------------------------

    def tools(self, profile_name: str = "core", *, session: str | None = None, also: Sequence[str] = ()) -> list[Tool]:
        """Tools with JSON schemas and handlers, for a model's API. Handlers raise LimpetError with a text to show.

        A handler returns a `ToolAnswer`, the short text for the model. `also` names operations to add to those of the
        profile.
        """

        def handler(operation: Operation) -> Callable[[Mapping[str, Any]], ToolAnswer]:
            def handle(arguments: Mapping[str, Any]) -> ToolAnswer:
                try:
                    return self.answer(operation, as_meant(operation, arguments), session, "agent/tools")
                except errors.LimpetError as problem:
                    listed = operation.input_schema(**how)["properties"]
                    raise reworded(problem, operation, arguments, listed, names) from problem

            return handle

        operations = {op.name: op for op in (*profile(profile_name), *map(find, also))}.values()
        names = [op.name for op in operations]
        how: dict[str, Any] = {"small": profile_name in SMALL, "bounds": self._bounds, "session": session is None}
        return [Tool(op.name, op.description(), op.input_schema(**how), handler(op)) for op in operations]

    def guidance(self, profile_name: str = "core") -> str:
        """The prompt section that teaches these tools. Give it to the model only together with them."""
        return guidance(operation.name for operation in profile(profile_name))

    def instructions(
        self, profile_name: str = "core", session: str | None = None, *, guide: bool = True
    ) -> Instructions:
        """What an agent should know first: the waiting handoff, if any, then how to use the tools."""
        ctx = self.context(session)
        first = handoff.section(ctx, handoff.waiting(ctx))
        text = "\n\n".join(part for part in (first.text, self.guidance(profile_name) if guide else "") if part)
        return Instructions(text, lambda: handoff.use(self.context(ctx.session), first.in_full))

    # --- for people who look after it ---------------------------------------------------------------------------------

    def export_lines(self, *, outputs: bool = True) -> Generator[str]:
        return export.export_lines(self.context(), outputs=outputs)

    def import_lines(
        self, lines: Iterable[str], *, merge: bool = False, exact: bool = True, masking: Masking | None = None
    ) -> int:
        """Read an export. Not `exact`: as data of somebody else, without pins and seals."""
        return export.import_lines(self.context(by="import/file", masking=masking), lines, merge=merge, exact=exact)

    def backup(self, target: str, progress: Progress = no_progress) -> tuple[Finding, ...]:
        """The whole store, with all its projects, as a file that is itself a store. Returns what its check found."""
        return self.store.backup(target, progress)

    def restore(self, source: str, progress: Progress = no_progress) -> Restored:
        """Put a backup of any store into this one, which must be empty. All of it, or nothing."""
        return self.store.restore(source, progress)

    def check(self) -> tuple[Finding, ...]:
        return self.store.check()


class Session:
    """One piece of work: its notes, notepad and scratchpad, and the project's memory seen from it."""

    notes: LatePart[SessionNotes] = LatePart("memory.notes:SessionNotes")
    notepad: LatePart[SessionNotepad] = LatePart("session.notepad:SessionNotepad")
    memory: LatePart[SessionMemory] = LatePart("memory.memory:SessionMemory")
    handoff: LatePart[SessionHandoff] = LatePart("memory.handoff:SessionHandoff")
    outputs: LatePart[SessionOutputs] = LatePart("outputs.methods:SessionOutputs")
    sandbox: LatePart[SessionSandbox] = LatePart("sandbox.run:SessionSandbox")
    prompt: LatePart[SystemPrompt] = LatePart("session.notepad:SystemPrompt")
    skills: LatePart[SessionSkills] = LatePart("memory.skills:SessionSkills")
    state: LatePart[ProjectState] = LatePart("memory.state:ProjectState")
    journal: LatePart[ProjectJournal] = LatePart("journal.methods:ProjectJournal")

    def __init__(self, hold: Limpet, id: str, by: str, keep_secret: bool = False) -> None:
        self.hold = hold
        self.id = id
        self.by = by
        self.masked = Masking(keep_secret)  # what the last call masked
        self._handoffs: tuple[Handoff, ...] = ()  # in the last context
        self._window: Window | None = None

    def do(self, function: Callable[Concatenate[Context, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call an operation by its function, in this session. Arguments are given by name."""
        if args:
            raise TypeError(f"{function.__name__} is called here with named arguments only")
        self.masked = Masking(self.masked.keep)
        value: T = self.hold.run(operation_of(function), kwargs, self.id, self.by, self.masked)
        return value

    def ctx(self) -> Context:
        """The context of a call that is no operation."""
        self.masked = Masking(self.masked.keep)
        return self.hold.context(self.id, self.by, self.masked)

    def begin(self, task: str = "") -> SessionInfo:
        return self.do(sessions.begin_session, task=task)

    def spawn(self, task: str, **options: Any) -> Session:
        """A sub-session with a task: copy_notepad=, notes=, references=, token_limit= and model= say what it gets."""
        return Session(self.hold, self.do(tree.spawn_session, task=task, **options).id, self.by, self.masked.keep)

    def fork(self, task: str, **options: Any) -> Session:
        """A sub-session that continues from here: it has this session's notepad and history."""
        return Session(self.hold, self.do(tree.fork_session, task=task, **options).id, self.by, self.masked.keep)

    def report(self, result: str) -> tree.SessionOutcome:
        """End this sub-session with its result."""
        return self.do(tree.report_result, result=result)

    def context(self, line: str | None = None, *, room: int = HANDOFF_ROOM) -> str:
        """What the session starts with: handoffs, notepad, scratchpad and memory, in this order.

        The handoffs are those of the line of work, by default that of the folder, within `room` characters; of those of
        other lines the first sentence is given.
        """
        ctx = self.ctx()
        with ctx.store.moment(ctx.scope.tenant):
            first = handoff.section(ctx, handoff.waiting(ctx, line), room)
            self._handoffs = first.in_full
            parts = [first.text, tree.capsule(ctx)]
            parts += [notepad.section(notepad.read_notepad(ctx)), memory.scratch_section(ctx), digest.digest(ctx).text]
        return "\n\n".join(part for part in parts if part)

    def used(self) -> None:
        """Record that a model call used the last context of this session; the handoff in it is used up now."""
        handoff.use(self.ctx(), self._handoffs)

    @property
    def window(self) -> Window:
        """The window of a loop that calls a model: `next`, `sent`, `compact` and `uncompact`."""
        if self._window is None:
            self._window = resolve("window.window:Window")(self.ctx)
        return self._window

    def tools(self, profile_name: str = "core", *, also: Sequence[str] = WITH_WINDOW) -> list[Tool]:
        """The tools of a profile for this session, and those that read back what its window left out."""
        tools = self.hold.tools(profile_name, session=self.id, also=also)
        return [self._with_window(tool) if tool.name in ABOUT_WINDOW else tool for tool in tools]

    def _with_window(self, tool: Tool) -> Tool:
        """A tool about the window, answered by this session's: the store does not know its prompt, tools and limit."""

        def handle(arguments: Mapping[str, Any]) -> dict[str, Any]:
            checked(find(tool.name), arguments)
            return window.ABOUT_WINDOW[tool.name](self.window)

        return tool._replace(handler=handle)

    def answer(self, reply: Message, tools: Sequence[Tool]) -> list[Message]:
        """Run the calls in a model's reply with these tools, Limpet's and your own. Returns a message per call.

        A failure is a result too, so that the model can act on it. Big results of your tools become references.
        """
        handlers = {tool.name: tool.handler for tool in tools}
        results = (window.run_handler(self.ctx(), call, handlers) for call in reply.calls())
        return [messages.Message(messages.TOOL, (result,)) for result in results]

    def pin(self, content: str) -> str:
        """Put a text into every window of this session from now on. Returns the id to unpin it by."""
        return self.do(pins.pin_text, content=content).key

    def unpin(self, id: str) -> None:
        self.do(pins.unpin_text, id=id)

    def scratch(self, content: str | None = None, mode: str = "read") -> str:
        """The scratchpad of the current task: read, replace, append or clear. Returns its content afterwards."""
        answer = self.do(memory.scratch_note, content=content, mode=mode)
        return answer.content if isinstance(answer, memory.Scratch) else ""


def _only_for_reading() -> errors.BadInput:
    return errors.bad_name("session_id", EVERY, "it stands for every session and can only list and search notes")
