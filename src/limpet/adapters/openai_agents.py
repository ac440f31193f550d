"""Limpet for OpenAI's Agents SDK: a session, function tools, and a filter that builds the window of each model call.

    memory = LimpetSession(limpet.open(), "support-42")
    agent = Agent(name="Support", tools=[*memory.tools, search])
    result = await Runner.run(agent, "…", session=memory, run_config=memory.run_config(), hooks=memory.hooks)

The session stores the items of the conversation; the filter adds handoff, memory, notepad and pins and compacts when
necessary; the hooks store a reply before its calls run. A compaction changes what is sent; runs and sessions keep their
items.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from copy import copy
from threading import RLock
from typing import Any, cast

from limpet import errors
from limpet.adapters.bridge import AdapterOptions, Bridge, BridgedSession, log, session_name
from limpet.api import Limpet, Session
from limpet.errors import LimpetError
from limpet.limits import ADAPTER_SESSIONS
from limpet.record import NamedTuple
from limpet.redaction import redact
from limpet.window.formats import openai_responses
from limpet.window.messages import ASSISTANT, TOOL, Call, Message, Other, Result, Text, system
from limpet.window.step import Summarise
from limpet.window.window import Window

try:
    from agents import FunctionTool, ModelResponse, RunConfig, RunContextWrapper, RunHooks, TResponseInputItem
    from agents.memory import SessionABC, SessionSettings
    from agents.run_config import CallModelData, ModelInputData
    from agents.tool_context import ToolContext
except ImportError as problem:
    raise errors.not_installed("the adapter for the OpenAI Agents SDK", "openai-agents") from problem

FORM = openai_responses.FORM
ASKING: ContextVar[tuple[LimpetSession, _Talk, list[Any]] | None] = ContextVar("limpet_asking", default=None)
RUN: ContextVar[_Run | None] = ContextVar("limpet_run", default=None)
NO_ID = "__fake_id__"  # what the SDK calls every item of a provider that gives none
RESULTS = ("_output", "_response")  # suffixes of the types of items that the model did not write
OUTPUT_KEYS = ("call_id", "output", "type")
NO_HOOKS = (
    "A call of %s was stored with its result: with hooks=memory.hooks in Runner.run it is stored before it runs, and "
    "is known if its process dies."
)
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
        self._main = _Talk(self._bridge.session(session_id))
        self._session = self._main.bridged.session
        self.session_id = self._session.id if session_id is None else session_id
        self.session_settings: SessionSettings | None = None
        self._items = _Items(self._bridge.hold, session_name(f"{self._session.id}.items"))
        self._calls: dict[str, Call] = {}
        self._talks: OrderedDict[str, _Talk] = OrderedDict()  # of agents that are tools, the last ones used
        self._tool_agents: dict[int, Any] = {}  # agents that an agent of this conversation has as a tool
        self._any_run = _Run(self)  # where the SDK does not say that one begins
        self._omits_reasoning_ids = False
        self._has_hooks = False  # whether the SDK or hooks of the caller's have told of a reply

    @property
    def tools(self) -> list[FunctionTool]:
        """The function tools for the agent. They work in the session of the run that calls them."""
        return [self._tool(tool.name, tool.description, tool.parameters) for tool in self._bridge.tools]

    def with_references(self, *tools: FunctionTool) -> list[FunctionTool]:
        """Your function tools, with each hold:// reference among their arguments replaced by the stored text."""
        return [self._expanding(tool) for tool in tools]

    def run_config(self, **more: Any) -> RunConfig:
        """A run configuration with the filter that builds the window."""
        self._omits_reasoning_ids = more.get("reasoning_item_id_policy") == "omit"
        return RunConfig(call_model_input_filter=self.call_model_input_filter, **more)

    # --- the window ---------------------------------------------------------------------------------------------------

    async def call_model_input_filter(self, data: CallModelData[Any]) -> ModelInputData:
        """For `RunConfig.call_model_input_filter`: the input of the model."""
        talk, request, sent = await asyncio.to_thread(self._filtered, data)
        ASKING.set((self, talk, request))  # the SDK calls the hooks in the same task, or in one that it starts there
        return sent

    @property
    def hooks(self) -> RunHooks[Any]:
        """For `Runner.run(hooks=…)`: stores a reply before its calls run. Hooks of your own call `on_llm_end`."""
        return _StoringHooks(self)

    async def on_llm_end(self, response: ModelResponse) -> None:
        """Store a reply with calls. A run that ends in one of them, and its process, forget that it was called."""
        self._has_hooks = True
        asking = ASKING.get()
        items: list[Any] = [_as_sent_later(item, self._omits_reasoning_ids) for item in response.to_input_items()]
        if asking is not None and asking[0] is self and any(_kind(item).endswith("_call") for item in items):
            await asyncio.to_thread(self._keep_before_calls, *asking[1:], items)

    def _keep_before_calls(self, talk: _Talk, request: Sequence[Any], reply: Sequence[Any]) -> None:
        with talk.bridged.lock:
            self._bridge.keep(talk.bridged, _grouped([*request, *reply]))
            talk.is_reply_stored = True

    def _filtered(self, data: CallModelData[Any]) -> tuple[_Talk, list[Any], ModelInputData]:
        items, own = data.model_data.input, data.model_data.instructions
        talk = self._talk_of(data.agent, items)
        with talk.bridged.lock:
            if talk.request is not None and _count_by_model(items) > _count_by_model(talk.request):
                self._sent(talk)
            request = talk.request = list(items)
            run, talk.usage_mark = self._run(), None
            if talk is self._main:
                run.request = request
                talk.usage_mark = None if run.wrapper is None else _UsageMark.of(run.wrapper)
            prompt = [system(own)] if own else []
            functions = [tool for tool in data.agent.tools if isinstance(tool, FunctionTool)]
            tools = self._bridge.definitions(functions, _definition)
            sent = self._bridge.next(talk.bridged, prompt, _grouped(items), continues=False, tools=tools)
            written = {
                id(message): talk.written.get(id(message)) or (message, openai_responses.write([message]))
                for message in sent.talk
            }
            talk.written = written  # keeps the messages alive, so that no other object gets their ids
        instructions = "\n\n".join(message.text() for message in sent.prompt)
        input = [item for _, group in written.values() for item in group]
        return talk, request, ModelInputData(input, instructions or None)

    def _run(self) -> _Run:
        """The current run. Several may go on at once with one session."""
        run = RUN.get()
        return self._any_run if run is None or run.memory is not self else run

    def _sent(self, talk: _Talk) -> None:
        used = None if talk.usage_mark is None else talk.usage_mark.used()
        self._bridge.sent(talk.bridged, used)

    def _talk_of(self, agent: Any, items: Sequence[Any]) -> _Talk:
        """The conversation, or the talk of an agent that is sent something else: as a tool, it inherits the filter."""
        inner = (getattr(tool, "_agent_instance", None) for tool in agent.tools)
        self._tool_agents.update((id(tool_agent), tool_agent) for tool_agent in inner if tool_agent is not None)
        if id(agent) in self._tool_agents and not self._continues(items):
            # The question tells one call from another, in every process.
            question = json.dumps(items[:1], sort_keys=True, default=str)
            return self._talk_named(f"{agent.name}:{hashlib.sha256(question.encode()).hexdigest()[:12]}")
        talk = self._talks.get(agent.name)
        if talk is not None and talk.request and items[:1] == talk.request[:1]:
            return talk
        # After a nested handoff the input is a summary of the conversation, another one each time.
        foreign = self._run().wrapper is not None and self._items.has_none(items)
        return self._talk_named(agent.name) if foreign else self._main

    def _talk_named(self, name: str) -> _Talk:
        talk = self._talks.pop(name, None) or _Talk(self._bridge.session(self._session.id, name))
        self._talks[name] = talk
        while len(self._talks) > ADAPTER_SESSIONS:
            self._talks.popitem(last=False)
        return talk

    def _continues(self, items: Sequence[Any]) -> bool:
        """Whether the items go on from the input of the session's run: an agent may be a tool and get a handoff too."""
        wrapper = self._run().wrapper
        start = [] if wrapper is None else wrapper.turn_input
        return len(start) > 1 and list(items[: len(start)]) == start

    def _read(self, items: Items) -> list[Message]:
        """Items as one message; a big output is a reference from its first request on."""
        messages = openai_responses.read([*map(_in_usual_order, items)])
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
            reference = None
            if isinstance(part, Text):
                reference = self._bridge.reference(self._session, call.name, part.text, call.arguments)
            parts.append(part if reference is None else Text(reference, part.raw))
        return result if parts == list(result.parts) else result._replace(parts=tuple(parts))

    # --- the session --------------------------------------------------------------------------------------------------
    # With `wrapper` in all four, the SDK says for which run they are called.

    async def get_items(
        self, limit: int | None = None, *, wrapper: RunContextWrapper[Any] | None = None
    ) -> list[TResponseInputItem]:
        if wrapper is not None:
            RUN.set(_Run(self, wrapper))
        items = await asyncio.to_thread(self._items.all)
        return items if limit is None else items[max(0, len(items) - limit) :]

    async def add_items(
        self, items: list[TResponseInputItem], *, wrapper: RunContextWrapper[Any] | None = None
    ) -> None:
        self._run().wrapper = wrapper or self._run().wrapper
        if items:
            await asyncio.to_thread(self._add, items)

    async def pop_item(self, *, wrapper: RunContextWrapper[Any] | None = None) -> TResponseInputItem | None:
        return await asyncio.to_thread(self._items.pop)

    async def clear_session(self, *, wrapper: RunContextWrapper[Any] | None = None) -> None:
        await asyncio.to_thread(self._items.clear)

    def _add(self, items: list[Any]) -> None:
        self._items.add(items)
        talk, request = self._main, self._run().request
        with talk.bridged.lock:
            if request is not None and _count_by_model(items):
                if not self._has_hooks and _by_model(items[0]) and not _by_model(items[-1]):
                    self._has_hooks = True  # said once
                    log.warning(NO_HOOKS, self.session_id)
                self._sent(talk)
                request += _new_items(request, items)
                if _by_model(items[-1]) or talk.is_reply_stored:  # a run may end here, without a later request
                    self._bridge.keep(talk.bridged, _grouped(request))

    # --- tools --------------------------------------------------------------------------------------------------------

    def _tool(self, name: str, description: str, parameters: dict[str, Any]) -> FunctionTool:
        async def run(context: ToolContext[Any], arguments: str) -> str:
            try:
                return await asyncio.to_thread(_session_of(context, self)._call, name, arguments)
            except LimpetError as problem:
                return problem.message  # a result that the model can act on; raising would end the run

        return FunctionTool(name, description, parameters, run, strict_json_schema=False)

    def _expanding(self, tool: FunctionTool) -> FunctionTool:
        async def run(context: ToolContext[Any], arguments: str) -> Any:
            try:
                parsed = json.loads(arguments or "{}")
            except ValueError:
                return await tool.on_invoke_tool(context, arguments)  # the SDK says what is wrong with it
            memory = _session_of(context, self)
            try:
                expanded = await memory._bridge.aexpand(memory._session, tool.name, parsed)
            except LimpetError as problem:
                return problem.message
            return await tool.on_invoke_tool(context, arguments if expanded == parsed else json.dumps(expanded))

        expanding = copy(tool)  # with what the SDK notes on a tool besides its fields
        expanding.on_invoke_tool = run
        return expanding

    def _call(self, name: str, arguments: str) -> str:
        try:
            parsed = json.loads(arguments or "{}")
        except ValueError:
            parsed = arguments
        if not isinstance(parsed, dict):
            raise errors.wrong_type(name, "arguments", parsed, "a JSON object")
        return self._bridge.call(self._session, name, parsed)


def _definition(tool: FunctionTool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.params_json_schema}


def _session_of(context: ToolContext[Any], default: LimpetSession) -> LimpetSession:
    """The session of the run that calls a tool: agents are made once, and their tools serve every session."""
    filter = getattr(context.run_config, "call_model_input_filter", None)
    session = getattr(filter, "__self__", None)
    return session if isinstance(session, LimpetSession) else default


def _new_items(request: list[Any], items: list[Any]) -> list[Any]:
    """The items that are not in the request. One without an id of its own may well be the same twice."""
    most = min(len(request), len(items))
    overlap = next(size for size in range(most, -1, -1) if request[len(request) - size :] == items[:size])
    return [item for item in items[overlap:] if item not in request or not _has_id(item)]


def _has_id(item: Any) -> bool:
    return bool(item.get("call_id")) or item.get("id", NO_ID) != NO_ID


def _in_usual_order(item: Any) -> Any:
    """An output of a tool with its keys as the SDK has them first. After an approval they come in another order, and
    the transcript knows a message by its form."""
    return {**{key: item[key] for key in OUTPUT_KEYS if key in item}, **item} if _kind(item).endswith(RESULTS) else item


def _as_sent_later(item: Any, omits_reasoning_ids: bool) -> Any:
    """An item of a reply as the SDK sends it with the next request."""
    dropped = {"status"} if item.get("status") is None else set()
    dropped |= {"id"} if omits_reasoning_ids and _kind(item) == "reasoning" else set()
    return {key: value for key, value in item.items() if key not in dropped}


class _StoringHooks(RunHooks[Any]):
    def __init__(self, memory: LimpetSession) -> None:
        self._memory = memory

    async def on_llm_end(self, context: Any, agent: Any, response: ModelResponse) -> None:
        await self._memory.on_llm_end(response)


class _Run:
    """A run of the SDK with this session. `get_items` begins it, in the task that later calls `add_items`."""

    def __init__(self, memory: LimpetSession, wrapper: RunContextWrapper[Any] | None = None) -> None:
        self.memory = memory
        self.wrapper = wrapper  # where the SDK passes it
        self.request: list[Any] | None = None  # the last input of the model in the conversation, and its answer so far


class _Talk:
    """What is known of the last request of a conversation, or of an agent that is called as a tool."""

    def __init__(self, bridged: BridgedSession[Items]) -> None:
        self.bridged = bridged
        self.request: list[Any] | None = None  # the last input of the model
        self.written: dict[int, tuple[Message, list[Any]]] = {}
        self.usage_mark: _UsageMark | None = None  # at the last request
        self.is_reply_stored = False  # before its calls, whose results follow as soon as the SDK has them


class _UsageMark(NamedTuple):
    """The place in a run's usage where the next request will be."""

    requests: list[Any]
    at: int

    @classmethod
    def of(cls, run: RunContextWrapper[Any]) -> _UsageMark:
        requests = run.usage.request_usage_entries
        return cls(requests, len(requests))

    def used(self) -> int | None:
        """The provider's count of the tokens of the request that was made then."""
        return int(self.requests[self.at].input_tokens) if self.at < len(self.requests) else None


class _Items:
    """The items of a conversation as the SDK passed them, stored apart from the window built from them."""

    def __init__(self, hold: Limpet, session: str) -> None:
        # Tokens are not counted: these messages are in no window.
        self._window = Window(lambda: hold.context(session, "agent/openai-agents"), count=lambda message: 0)
        self._names: set[str] | None = None  # the items that were ever here, in a form to compare
        self._unsaved: list[Any] = []  # what the store refused: it is stored with the next items
        self._lock = RLock()

    def all(self) -> list[Any]:
        with self._lock:
            items = [*map(_item, self._window.messages()), *self._unsaved]
            self._names = {*(self._names or ()), *map(_name, items)}
            return items

    def has_none(self, items: Sequence[Any]) -> bool:
        """Whether there are items here, and none of these."""
        with self._lock:
            if self._names is None:
                self.all()
            names = self._names or set()
            return bool(names) and not any(_name(item) in names for item in items)

    def add(self, items: Sequence[Any]) -> None:
        """Store the items. The run has its answer already, so an error of Limpet is logged and does not end it."""
        with self._lock:
            fresh = [*self._unsaved, *items]
            if self._names is not None:
                self._names.update(map(_name, items))
            try:
                self._window.add([*map(_as_message, fresh)])
                self._unsaved = []
            except LimpetError as problem:
                self._unsaved = fresh
                log.warning("%d items of a session were not stored yet: %s", len(fresh), problem)

    def pop(self) -> Any | None:
        with self._lock:
            if self._unsaved:
                return self._unsaved.pop()
            messages = self._window.messages()
            if not messages:
                return None
            self._window.leave(1)
            return _item(messages[-1])

    def clear(self) -> None:
        with self._lock:
            self._unsaved = []
            self._window.leave(len(self._window.messages()))


def _as_message(item: Any) -> Message:
    """An item as it is, with the secrets in a tool's output masked."""
    if isinstance(item.get("output"), str):
        item = {**item, "output": redact(item["output"]).text}
    return Message(ASSISTANT, (Other({FORM: item}),))


def _name(item: Any) -> str:
    """What an item is compared by: its call, or its content, which may have been a bare text at first."""
    if item.get("call_id"):
        return f"{_kind(item)} {item['call_id']}"
    return hashlib.sha256(json.dumps([item.get("role"), item.get("content")], default=str).encode()).hexdigest()


def _item(message: Message) -> Any:
    return cast(Other, message.parts[0]).raw[FORM]


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
