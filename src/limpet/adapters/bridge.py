"""What adapters have in common: sessions by the framework's own names, our tools, results kept aside, the window.

An adapter turns its framework's messages into ours and back, and calls these at the moments the framework gives it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from threading import Lock, RLock
from typing import Any, Generic, NamedTuple, TypeVar

from limpet import prompts
from limpet.api import Limpet, Session, Tool
from limpet.catalogue.table import WITH_WINDOW, guidance
from limpet.errors import LimpetError
from limpet.limits import ADAPTER_SESSIONS, SESSION_MAX_CHARS
from limpet.outputs import outputs, policy
from limpet.window import answers
from limpet.window.messages import SYSTEM, Message, user
from limpet.window.plan.context import is_injected
from limpet.window.plan.controller import Warn
from limpet.window.plan.groups import unpaired
from limpet.window.plan.rules import repair
from limpet.window.sections import CallerSections
from limpet.window.step import Summarise

log = logging.getLogger("limpet")
N = TypeVar("N")  # a message of the framework
Read = Callable[[N], list[Message]]


class Sent(NamedTuple):
    """A request for the framework's model."""

    prompt: tuple[Message, ...]  # system messages at its beginning
    talk: tuple[Message, ...]


class Options(NamedTuple):
    """What people may say about an agent's memory, whichever framework runs it."""

    profile: str = "core"  # the tools the agent gets
    limit: int | None = None  # tokens of the model's window; None: what the settings say
    summarise: Summarise | None = None  # writes the summaries of compactions; whatever it leaves out is added


class Bridge(Generic[N]):
    """Limpet as one agent of a framework uses it.

    `memory` is a project's memory, and each conversation of the framework is a session in it; or it is a session, and
    every conversation is that one.
    """

    def __init__(self, memory: Limpet | Session, read: Read[N], options: Options, *, by: str) -> None:
        self.hold = memory.hold if isinstance(memory, Session) else memory
        self._fixed = memory.id if isinstance(memory, Session) else None
        self._read = read
        self._options = options
        self._by = by
        self._open: OrderedDict[str, Conversation[N]] = OrderedDict()
        self._lock = Lock()
        self.tools: tuple[Tool, ...] = tuple(self.hold.tools(options.profile, also=WITH_WINDOW))
        self.names = frozenset(tool.name for tool in self.tools)
        self.guidance = guidance(self.names)
        # A character takes four bytes at most: no text with fewer of them is big, whichever tool it comes from.
        self.least = -(-policy.least(self.hold.context().bounds.outputs) // 4)

    def conversation(self, name: str | None = None) -> Conversation[N]:
        """The one of that name. Those used last stay open; others are taken up again from the store."""
        key = self._fixed or (self.hold.default_session if name is None else session_name(name))
        with self._lock:
            found = self._open.pop(key, None)
            if found is None:
                found = Conversation(self.hold.session(key, by=self._by), Talk(self._read))
            self._open[key] = found
            while len(self._open) > ADAPTER_SESSIONS:
                self._open.popitem(last=False)
        return found

    def call(self, session: Session, name: str, arguments: Mapping[str, Any]) -> str:
        """Do what one of our tools does. Raises LimpetError with a text for the model."""
        return answers.as_text(self.hold.call(name, arguments, session=session.id, by=self._by))

    def expanded(self, session: Session, tool: str, arguments: Any) -> Any:
        """Arguments for somebody else's tool, each hold:// reference among them replaced by the text it stands for."""
        if isinstance(arguments, Mapping):
            return {name: self.expanded(session, tool, inner) for name, inner in arguments.items()}
        if isinstance(arguments, list):
            return [self.expanded(session, tool, inner) for inner in arguments]
        if isinstance(arguments, str) and arguments.startswith("hold://") and tool not in self.names:
            return session.outputs.expand(arguments)
        return arguments

    async def aexpanded(self, session: Session, tool: str, arguments: Any) -> Any:
        """The same without holding up the loop. A thread costs more than a look, so there is one only where needed."""
        if tool in self.names or not _refers(arguments):
            return arguments
        return await asyncio.to_thread(self.expanded, session, tool, arguments)

    def kept(self, session: Session, tool: str, content: str, call: str) -> str | None:
        """What to show for a tool's result, or None where it stays as it is: it is small, or ours.

        The tool has done its work, so trouble of ours is logged and its result goes through untouched.
        """
        if tool in self.names:
            return None
        try:
            kept = session.outputs.keep(tool, content, call=call)
        except LimpetError as problem:
            log.warning("A result of %s was not kept: %s", tool, problem)
            return None
        return None if kept.output is None else kept.text

    async def akept(self, session: Session, tool: str, content: str, call: str) -> str | None:
        if tool in self.names or not outputs.is_big(session.ctx(), tool, content):
            return None
        return await asyncio.to_thread(self.kept, session, tool, content, call)

    def reference(self, session: Session, tool: str, content: str, call: str) -> str | None:
        """The same where a result is seen again with every request: the answer is always the same one."""
        if tool in self.names or not outputs.is_big(session.ctx(), tool, content):
            return None
        try:
            return outputs.reference(outputs.put_output(session.ctx(), tool, content, call))
        except LimpetError as problem:
            log.warning("A result of %s was not kept: %s", tool, problem)
            return None

    def next(self, line: Conversation[N], prompt: Sequence[Message], natives: Iterable[N], *, goes_on: bool) -> Sent:
        """What to send. `goes_on` says that the framework asks the model again after its answer to a warning."""
        with line.lock:
            talk = line.talk.read(natives)
            if unpaired(talk):  # a run that was cancelled may leave half a pair with the framework, but not with us
                talk = list(repair(talk)[0])
            options, given = self._options, CallerSections(tools=self.guidance)
            step = line.session.window.next(
                [*prompt, *talk], limit=options.limit, given=given, summarise=options.summarise
            )
            line.warned = isinstance(step, Warn)
        first = tuple(takewhile(lambda message: message.role == SYSTEM, step.messages))
        rest = step.messages[len(first) :]
        if line.warned and not goes_on:
            rest = (*rest[:-1], user(f"{rest[-1].text()}\n{prompts.prompt('warning_ends')}"))
        return Sent(first, rest)

    def sent(self, line: Conversation[N], used: int | None = None) -> None:
        """The model has answered; `used` are the tokens of the request, where the provider counted them."""
        with line.lock:
            line.session.window.sent(used or None)

    async def asent(self, line: Conversation[N], used: int | None = None) -> None:
        if line.session.window.shows_handoff:
            await asyncio.to_thread(self.sent, line, used)
        else:
            self.sent(line, used)

    def keep(self, line: Conversation[N], natives: Iterable[N]) -> None:
        """The run is over: what was said last is kept too, but no call that waits for its result."""
        with line.lock:
            talk = line.talk.read(natives)
            if alone := unpaired(talk):
                waits = (at for at, message in enumerate(talk) if any(call.id in alone for call in message.calls()))
                talk = talk[: next(waits, len(talk))]
            line.session.window.keep(talk)


class Conversation(Generic[N]):
    """A session as the framework talks in it. One step at a time."""

    def __init__(self, session: Session, talk: Talk[N]) -> None:
        self.session = session
        self.talk = talk
        self.lock = RLock()
        self.warned = False  # by the last request


class Talk(Generic[N]):
    """A conversation in a framework's form and in is_injected, side by side, so that a step reads only what is new."""

    def __init__(self, read: Read[N]) -> None:
        self._read = read
        self._known: list[tuple[N, list[Message]]] = []
        self._origins: dict[int, tuple[N, int]] = {}

    def read(self, natives: Iterable[N]) -> list[Message]:
        """The conversation in our words. What was read before is not read again."""
        given = list(natives)
        at = 0
        for native, (known, _) in zip(given, self._known, strict=False):
            if native is not known and native != known:
                break
            at += 1
        for _, messages in self._known[at:]:
            for message in messages:
                self._origins.pop(id(message), None)
        self._known[at:] = [(native, self._read(native)) for native in given[at:]]
        for native, messages in self._known[at:]:
            self._origins.update((id(message), (native, part)) for part, message in enumerate(messages))
        return [message for _, messages in self._known for message in messages]

    def origins(self, messages: Sequence[Message]) -> list[tuple[N, int] | None]:
        """For each message the framework's own that it was read from, and which part of it. None for what is new.

        A message that came from the store is another object than the one that was read; both say the same, and come
        in the same order.
        """
        said: list[tuple[Message, N, int]] | None = None
        found: list[tuple[N, int] | None] = []
        at = 0
        for message in messages:
            origin = self._origins.get(id(message))
            if origin is None and not is_injected(message):
                if said is None:
                    said = [(one, native, part) for native, ones in self._known for part, one in enumerate(ones)]
                place = next((place for place in range(at, len(said)) if said[place][0] == message), None)
                if place is not None:
                    origin, at = said[place][1:], place + 1
            found.append(origin)
        return found


def _refers(arguments: Any) -> bool:
    if isinstance(arguments, Mapping):
        return any(map(_refers, arguments.values()))
    if isinstance(arguments, list):
        return any(map(_refers, arguments))
    return isinstance(arguments, str) and arguments.startswith("hold://")


def session_name(name: str) -> str:
    """A framework's name for a conversation as a name that a session may have; different names stay different."""
    shown = "".join(sign if sign.isprintable() else "_" for sign in name).strip()
    if shown == name and len(name) <= SESSION_MAX_CHARS:
        return name
    return f"{shown[: SESSION_MAX_CHARS - 13]}~{hashlib.sha256(name.encode()).hexdigest()[:12]}"
