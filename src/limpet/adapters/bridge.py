"""What adapters share: sessions by the framework's own names, Limpet's tools, stored results, and the window.

An adapter converts its framework's messages to Limpet's and back, and calls the bridge in the framework's callbacks.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from threading import Lock, RLock
from typing import Any, Generic, TypeVar

from limpet import prompts
from limpet.api import ABOUT_WINDOW, Limpet, Session, Tool
from limpet.catalogue.operation import checked
from limpet.catalogue.table import WITH_WINDOW, find, guidance
from limpet.errors import LimpetError
from limpet.limits import ADAPTER_SESSIONS, SESSION_MAX_CHARS
from limpet.outputs import keep as output_keep
from limpet.outputs import policy
from limpet.record import NamedTuple
from limpet.window import window
from limpet.window.messages import SYSTEM, Message, user
from limpet.window.plan.context import is_injected
from limpet.window.plan.controller import TooBig, Warn
from limpet.window.plan.counts import ToolDefinition
from limpet.window.sections import CallerSections
from limpet.window.step import Summarise

log = logging.getLogger("limpet")
OF_TRANSCRIPT = ("window.", "session.tasks:")  # modules of operations that count the positions of a transcript
DEFINITIONS_CACHED = 1_000  # tools: more than any agent has
N = TypeVar("N")  # a message of the framework
Read = Callable[[N], list[Message]]


class Sent(NamedTuple):
    """A request for the framework's model."""

    prompt: tuple[Message, ...]  # the system messages at its start
    talk: tuple[Message, ...]


class AdapterOptions(NamedTuple):
    """The options of an agent's memory, for any framework."""

    profile: str = "core"  # the tools the agent gets
    limit: int | None = None  # tokens of the model's window; None: as in the settings
    summarise: Summarise | None = None  # writes the summaries of compactions; facts that it leaves out are added


class Bridge(Generic[N]):
    """Limpet for one agent of a framework.

    If `memory` is a project's memory, each conversation of the framework is a session in it; if it is a session, that
    session is every conversation.
    """

    def __init__(self, memory: Limpet | Session, read: Read[N], options: AdapterOptions, *, by: str) -> None:
        self.hold = memory.hold if isinstance(memory, Session) else memory
        self._fixed = memory.id if isinstance(memory, Session) else None
        self._read = read
        self._options = options
        self._by = by
        self._open: OrderedDict[str, BridgedSession[N]] = OrderedDict()
        self._lock = Lock()
        self._definitions: OrderedDict[int, tuple[Any, ToolDefinition]] = OrderedDict()  # by the id of the tool
        self.tools: tuple[Tool, ...] = tuple(self.hold.tools(options.profile, also=WITH_WINDOW))
        self.names = frozenset(tool.name for tool in self.tools)
        self.guidance = guidance(self.names)
        # A character has at most four bytes: a text with fewer characters is not big for any tool.
        self.least = -(-policy.least(self.hold.context().bounds.outputs) // 4)

    def session(self, name: str | None = None, speaker: str = "") -> BridgedSession[N]:
        """The session of a conversation. The last ones used stay open; others are read from the store again.

        `speaker` names one of several agents that talk in it. Each has a transcript and a window of its own,
        since each is sent other messages; notes, notepad, pins and outputs are those of the session.
        """
        id = self._fixed or (self.hold.default_session if name is None else session_name(name))
        key = session_name(f"{id}/{speaker}") if speaker else id
        with self._lock:
            bridged = self._open.pop(key, None)
            if bridged is None:
                session = self.hold.session(id, by=self._by)
                talk = self._speaker_window(session, key) if speaker else session.window
                bridged = BridgedSession(session, talk, NativeMap(self._read))
            self._open[key] = bridged
            while len(self._open) > ADAPTER_SESSIONS:
                self._open.popitem(last=False)
        return bridged

    def _speaker_window(self, session: Session, key: str) -> window.Window:
        return window.Window(lambda: self.hold.context(key, self._by), working=session.ctx)

    def call(self, session: Session, name: str, arguments: Mapping[str, Any], speaker: str = "") -> str:
        """Call one of Limpet's tools. Raises LimpetError with a text for the model."""
        if name in ABOUT_WINDOW:
            checked(find(name), arguments)
            bridged = self.session(session.id, speaker)
            with bridged.lock:
                return window.as_text(window.ABOUT_WINDOW[name](bridged.window))
        of_transcript = speaker and find(name).run.startswith(OF_TRANSCRIPT)
        id = session_name(f"{session.id}/{speaker}") if of_transcript else session.id
        return str(self.hold.answer(find(name), arguments, id, self._by))  # frameworks know plain strings

    def expand(self, session: Session, tool: str, arguments: Any) -> Any:
        """Arguments for the caller's own tool, each hold:// reference replaced by the stored text."""
        return arguments if tool in self.names else session.outputs.expanded(arguments)

    async def aexpand(self, session: Session, tool: str, arguments: Any) -> Any:
        """The same without blocking the event loop. Arguments without a reference need no thread."""
        if tool in self.names or not _refers(arguments):
            return arguments
        return await asyncio.to_thread(self.expand, session, tool, arguments)

    def keep_result(self, session: Session, tool: str, content: str, call: str) -> str | None:
        """Store a big result of a tool and return its reference; None for small results and for Limpet's own tools.

        The tool has already run, so an error of Limpet is logged and the result passes unchanged.
        """
        if tool in self.names:
            return None
        try:
            reply = session.outputs.keep(tool, content, call=call)
        except LimpetError as problem:
            log.warning("A result of %s was not kept: %s", tool, problem)
            return None
        return None if reply.output is None else reply.text

    async def akeep_result(self, session: Session, tool: str, content: str, call: str) -> str | None:
        if tool in self.names or not output_keep.is_big(session.ctx(), tool, content):
            return None
        return await asyncio.to_thread(self.keep_result, session, tool, content, call)

    def reference(self, session: Session, tool: str, content: str, call: str) -> str | None:
        """The same for a framework that sends the result with every request: the reference is stable."""
        if tool in self.names or not output_keep.is_big(session.ctx(), tool, content):
            return None
        try:
            return output_keep.reference(output_keep.put_output(session.ctx(), tool, content, call))
        except LimpetError as problem:
            log.warning("A result of %s was not kept: %s", tool, problem)
            return None

    def next(
        self,
        bridged: BridgedSession[N],
        prompt: Sequence[Message],
        natives: Iterable[N],
        *,
        continues: bool,
        tools: Sequence[ToolDefinition] = (),
    ) -> Sent:
        """What to send. `continues`: the framework calls the model again after its answer to a warning.

        `tools` are those that go with the request, as far as the adapter knows them; their definitions are counted.
        """
        with bridged.lock:
            talk = bridged.native_map.read(natives)
            options, sections = self._options, CallerSections(tools=self.guidance)
            step = bridged.window.next(
                [*prompt, *talk],
                limit=options.limit,
                given=sections,
                summarise=options.summarise,
                shorten=True,
                exact=True,
                tools=tools,
            )
            bridged.warned = isinstance(step, Warn)
        if isinstance(step, TooBig):
            log.warning("The request of %s is sent all the same: %s", bridged.session.id, step.advice)
        first = tuple(takewhile(lambda message: message.role == SYSTEM, step.messages))
        rest = step.messages[len(first) :]
        if bridged.warned and not continues:
            rest = (*rest[:-1], user(f"{rest[-1].text()}\n{prompts.prompt('warning_ends')}"))
        return Sent(first, rest)

    def definitions(self, tools: Iterable[Any], convert: Callable[[Any], ToolDefinition]) -> list[ToolDefinition]:
        """The definitions of a framework's tools, each converted once: some are made from the types of a function."""
        definitions = []
        for tool in tools:
            cached = self._definitions.get(id(tool))
            if cached is None or cached[0] is not tool:
                cached = self._definitions[id(tool)] = (tool, convert(tool))
                while len(self._definitions) > DEFINITIONS_CACHED:
                    self._definitions.popitem(last=False)
            definitions.append(cached[1])
        return definitions

    def sent(self, bridged: BridgedSession[N], used: int | None = None) -> None:
        """The model has answered; `used` is the provider's count of the request's tokens.

        The answer was paid for, so an error of Limpet is logged and the framework gets it. The same in `keep`.
        """
        try:
            with bridged.lock:
                bridged.window.sent(used or None)
        except LimpetError as problem:
            log.warning("The handoff of %s was not marked as used: %s", bridged.session.id, problem)

    async def asent(self, bridged: BridgedSession[N], used: int | None = None) -> None:
        if bridged.window.shows_handoff:
            await asyncio.to_thread(self.sent, bridged, used)
        else:
            self.sent(bridged, used)

    def keep(self, bridged: BridgedSession[N], natives: Iterable[N]) -> None:
        """Store the last messages: at the end of a run, or before the calls in them are carried out.

        If they cannot be stored, the next request brings them again.
        """
        try:
            with bridged.lock:
                bridged.window.keep(bridged.native_map.read(natives), exact=True)
        except LimpetError as problem:
            log.warning("The last messages of %s were not stored: %s", bridged.session.id, problem)


class BridgedSession(Generic[N]):
    """A session as a framework uses it, or one speaker in it. One step at a time."""

    def __init__(self, session: Session, talk: window.Window, native_map: NativeMap[N]) -> None:
        self.session = session
        self.window = talk
        self.native_map = native_map
        self.lock = RLock()
        self.warned = False  # whether the last request contained a warning
        self.warning_reply: list[N] = []  # what the model said to it, where that is no message of the framework


class NativeMap(Generic[N]):
    """A framework's messages and their conversions, cached so that a step converts the new ones."""

    def __init__(self, read: Read[N]) -> None:
        self._read = read
        self._converted: list[tuple[N, list[Message]]] = []
        self._origins: dict[int, tuple[N, int]] = {}

    def read(self, natives: Iterable[N]) -> list[Message]:
        """The converted conversation. Messages that were converted before are reused."""
        current = list(natives)
        at = 0
        for native, (previous, _) in zip(current, self._converted, strict=False):
            if native is not previous and native != previous:
                break
            at += 1
        for _, messages in self._converted[at:]:
            for message in messages:
                self._origins.pop(id(message), None)
        self._converted[at:] = [(native, self._read(native)) for native in current[at:]]
        for native, messages in self._converted[at:]:
            self._origins.update((id(message), (native, part)) for part, message in enumerate(messages))
        return [message for _, messages in self._converted for message in messages]

    def origins(self, messages: Sequence[Message]) -> list[tuple[N, int] | None]:
        """For each message, the framework's message it was converted from, and which part of it. None for new messages.

        A message read from the store is a different object than the converted one; they are equal and in the same
        order.
        """
        candidates: list[tuple[Message, N, int]] | None = None
        origins: list[tuple[N, int] | None] = []
        start = 0
        for message in messages:
            origin = self._origins.get(id(message))
            if origin is None and not is_injected(message):
                if candidates is None:
                    candidates = [
                        (converted, native, part)
                        for native, messages in self._converted
                        for part, converted in enumerate(messages)
                    ]
                indexes = range(start, len(candidates))
                index = next((index for index in indexes if candidates[index][0] == message), None)
                if index is not None:
                    origin, start = candidates[index][1:], index + 1
            origins.append(origin)
        return origins


def _refers(arguments: Any) -> bool:
    if isinstance(arguments, Mapping):
        return any(map(_refers, arguments.values()))
    if isinstance(arguments, list):
        return any(map(_refers, arguments))
    return isinstance(arguments, str) and arguments.startswith("hold://")


def session_name(name: str) -> str:
    """A valid session id for a framework's conversation id; different ids stay different."""
    printable = "".join(char if char.isprintable() else "_" for char in name).strip()
    if printable == name and len(name) <= SESSION_MAX_CHARS:
        return name
    return f"{printable[: SESSION_MAX_CHARS - 13]}~{hashlib.sha256(name.encode()).hexdigest()[:12]}"
