"""Limpet for OpenAI's Agents SDK: a session, function tools, and a filter that builds the window of each model call.

    memory = LimpetSession(limpet.open(), "support-42")
    agent = Agent(name="Support", tools=[*memory.tools, search])
    result = await Runner.run(agent, "…", session=memory, run_config=memory.run_config())

The session stores the items of the conversation; the filter adds handoff, memory, notepad and pins and compacts when
necessary. A compaction changes what is sent; runs and sessions keep their items.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from threading import RLock
from typing import Any, cast

from limpet import errors
from limpet.adapters.bridge import AdapterOptions, Bridge, session_name
from limpet.api import Limpet, Session
from limpet.errors import LimpetError
from limpet.redaction import redact
from limpet.window.formats import openai_responses
from limpet.window.messages import ASSISTANT, TOOL, Call, Message, Other, Result, Text, system
from limpet.window.step import Summarise
from limpet.window.window import Window

try:
    from agents import FunctionTool, RunConfig, TResponseInputItem
    from agents.memory import SessionABC, SessionSettings
    from agents.run_config import CallModelData, ModelInputData
    from agents.tool_context import ToolContext
except ImportError as problem:
    raise errors.not_installed("the adapter for the OpenAI Agents SDK", "openai-agents") from problem

FORM = openai_responses.FORM
RESULTS = ("_output", "_response")  # suffixes of the types of items that the model did not write
Items = tuple[Any, ...]  # consecutive items that are one message


class LimpetSession(SessionABC):
    """Working memory for an agent of the Agents SDK, and the session of its conversation.

    `memory` is what `limpet.open()` returns, or one session of it, whose name is then the session's. `profile` chooses
    the tools, `limit` is the model's window in tokens, and `summarise` may write the summaries of compactions.
    """

    def __init__(
        self,
        memory: Limpet | Session,
        session_id: str | None = None,
        *,
        profile: str = "core",
        limit: int | None = None,
        summarise: Summarise | None = None,
    ) -> None:
        options = AdapterOptions(profile, limit, summarise)
        self._bridge: Bridge[Items] = Bridge(memory, self._read, options, by="agent/openai-agents")
        self._bridged = self._bridge.session(session_id)
        self.session_id = self._bridged.session.id if session_id is None else session_id
        self.session_settings: SessionSettings | None = None
        self._items = _Items(self._bridge.hold, session_name(f"{self._bridged.session.id}.items"))
        self._calls: dict[str, Call] = {}
        self._written: dict[int, tuple[Message, list[Any]]] = {}
        self._request: list[Any] | None = None  # the last input of the model, and its answer so far

    @property
    def tools(self) -> list[FunctionTool]:
        """The function tools for the agent."""
        return [self._tool(tool.name, tool.description, tool.parameters) for tool in self._bridge.tools]

    def run_config(self, **more: Any) -> RunConfig:
        """A run configuration with the filter that builds the window."""
        return RunConfig(call_model_input_filter=self.call_model_input_filter, **more)

    # --- the window ---------------------------------------------------------------------------------------------------

    async def call_model_input_filter(self, data: CallModelData[Any]) -> ModelInputData:
        """For `RunConfig.call_model_input_filter`: the input of the model."""
        return await asyncio.to_thread(self._filtered, data.model_data)

    def _filtered(self, data: ModelInputData) -> ModelInputData:
        with self._bridged.lock:
            if self._request is not None and _count_by_model(data.input) > _count_by_model(self._request):
                self._bridge.sent(self._bridged)
            self._request = list(data.input)
            prompt = [system(data.instructions)] if data.instructions else []
            sent = self._bridge.next(self._bridged, prompt, _grouped(data.input), continues=False)
            written = {
                id(message): self._written.get(id(message)) or (message, openai_responses.write([message]))
                for message in sent.talk
            }
            self._written = written  # keeps the messages alive, so that no other object gets their ids
        instructions = "\n\n".join(message.text() for message in sent.prompt)
        return ModelInputData([item for _, items in written.values() for item in items], instructions or None)

    def _read(self, items: Items) -> list[Message]:
        """Items as one message; a big output is a reference from its first request on."""
        messages = openai_responses.read(items)
        self._calls.update((call.id, call) for message in messages for call in message.calls())
        return [self._with_references(message) if message.role == TOOL else message for message in messages]

    def _with_references(self, message: Message) -> Message:
        return message._replace(
            parts=tuple(self._with_reference(part) if isinstance(part, Result) else part for part in message.parts)
        )

    def _with_reference(self, result: Result) -> Result:
        call = self._calls.get(result.call_id, Call(result.call_id, "tool", ""))
        parts = []
        for part in result.parts:
            session, reference = self._bridged.session, None
            if isinstance(part, Text):
                reference = self._bridge.reference(session, call.name, part.text, call.arguments)
            parts.append(part if reference is None else Text(reference, part.raw))
        return result if parts == list(result.parts) else result._replace(parts=tuple(parts))

    # --- the session --------------------------------------------------------------------------------------------------

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        items = await asyncio.to_thread(self._items.all)
        return items if limit is None else items[max(0, len(items) - limit) :]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        if items:
            await asyncio.to_thread(self._add, items)

    async def pop_item(self) -> TResponseInputItem | None:
        return await asyncio.to_thread(self._items.pop)

    async def clear_session(self) -> None:
        await asyncio.to_thread(self._items.clear)

    def _add(self, items: Sequence[Any]) -> None:
        self._items.add(items)
        with self._bridged.lock:
            if self._request is not None and _count_by_model(items):
                self._bridge.sent(self._bridged)
                self._request += [item for item in items if item not in self._request]
                if _by_model(items[-1]):  # no later request will store it
                    self._bridge.keep(self._bridged, _grouped(self._request))

    # --- tools --------------------------------------------------------------------------------------------------------

    def _tool(self, name: str, description: str, parameters: dict[str, Any]) -> FunctionTool:
        async def run(_context: ToolContext[Any], arguments: str) -> str:
            try:
                return await asyncio.to_thread(self._call, name, arguments)
            except LimpetError as problem:
                return problem.message  # a result that the model can act on; raising would end the run

        return FunctionTool(name, description, parameters, run, strict_json_schema=False)

    def _call(self, name: str, arguments: str) -> str:
        parsed = json.loads(arguments or "{}")
        if not isinstance(parsed, dict):
            raise errors.wrong_type(name, "arguments", parsed, "an object")
        return self._bridge.call(self._bridged.session, name, parsed)


class _Items:
    """The items of a conversation as the SDK passed them, stored apart from the window built from them.

    A call without its result waits in memory, so that a process that dies or a run that is cancelled leaves no half
    pair in the store.
    """

    def __init__(self, hold: Limpet, session: str) -> None:
        # Tokens are not counted: these messages are in no window.
        self._window = Window(lambda: hold.context(session, "agent/openai-agents"), count=lambda message: 0)
        self._waiting: list[Any] = []
        self._lock = RLock()

    def all(self) -> list[Any]:
        with self._lock:
            return [*map(_item, self._window.messages()), *self._waiting]

    def add(self, items: Sequence[Any]) -> None:
        with self._lock:
            fresh = [*self._waiting, *items]
            count = _complete(fresh)
            if count:
                self._window.add([*map(_as_message, fresh[:count])])
            self._waiting = fresh[count:]

    def pop(self) -> Any | None:
        with self._lock:
            if self._waiting:
                return self._waiting.pop()
            messages = self._window.messages()
            if not messages:
                return None
            self._window.leave(1)
            return _item(messages[-1])

    def clear(self) -> None:
        with self._lock:
            self._waiting = []
            self._window.leave(len(self._window.messages()))


def _as_message(item: Any) -> Message:
    """An item as it is, with the secrets in a tool's output masked."""
    if isinstance(item.get("output"), str):
        item = {**item, "output": redact(item["output"]).text}
    return Message(ASSISTANT, (Other({FORM: item}),))


def _item(message: Message) -> Any:
    return cast(Other, message.parts[0]).raw[FORM]


def _complete(items: Sequence[Any]) -> int:
    """How many items come before the first call without a result."""
    answered = {item["call_id"] for item in items if "call_id" in item and _kind(item).endswith(RESULTS)}
    count = 0
    for group in _grouped(items):
        calls = {item["call_id"] for item in group if "call_id" in item}
        if calls - answered:
            break
        count += len(group)
    return count


def _grouped(items: Sequence[Any]) -> Iterator[Items]:
    """Consecutive items of the model are one message; every other item is one by itself."""
    together: list[Any] = []
    for item in items:
        if _by_model(item):
            together.append(item)
            continue
        if together:
            yield tuple(together)
            together = []
        yield (item,)
    if together:
        yield tuple(together)


def _by_model(item: Any) -> bool:
    kind = _kind(item)
    return bool(item.get("role") == "assistant") if kind == "message" else not kind.endswith(RESULTS)


def _kind(item: Any) -> str:
    return str(item.get("type") or "message")


def _count_by_model(items: Sequence[Any]) -> int:
    return sum(map(_by_model, items))
