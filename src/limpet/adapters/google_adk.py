"""Limpet for Google's ADK: a plugin for its runner, and a memory service.

    app = App(name="porter", root_agent=agent, plugins=[LimpetPlugin(limpet.open())])

Every model call gets the window of the conversation's session: handoff, memory, notepad and pins around a history that
is compacted when necessary. ADK's session keeps every event; the plugin changes what is sent. Each ADK session is a
Limpet session, and each agent that talks in it has a transcript of its own.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from limpet import errors
from limpet.adapters.bridge import AdapterOptions, Bridge, BridgedSession, session_name
from limpet.api import Limpet, Session, Tool
from limpet.errors import LimpetError
from limpet.memory import items
from limpet.memory.items import Put
from limpet.model import iso
from limpet.outputs.methods import result_text
from limpet.window.messages import ASSISTANT, TOOL, USER, Call, Media, Message, Other, Part, Result, Text, Thinking
from limpet.window.messages import system as system_message
from limpet.window.step import Summarise

try:
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.base_tool import BaseTool
    from google.genai import types
except ImportError as problem:
    raise errors.not_installed("the adapter for Google's ADK", "google-adk") from problem

FORM = "google-adk"
REQUESTS = 1_024  # model calls under way; a cancelled one has no end that a plugin hears of
SEARCH_LIMIT = 10  # memories per search, as in ADK's own service
Native = tuple[Any, tuple[str, ...]]  # a content, and the ids of the calls and results in it


class LimpetPlugin(BasePlugin):
    """Working memory for the agents of a runner.

    `memory` is what `limpet.open()` returns, or one session of it. `profile` chooses the tools, `limit` is the model's
    window in tokens, and `summarise` may write the summaries of compactions.
    """

    def __init__(
        self,
        memory: Limpet | Session,
        *,
        profile: str = "core",
        limit: int | None = None,
        summarise: Summarise | None = None,
        name: str = "limpet",
    ) -> None:
        super().__init__(name=name)
        self._bridge: Bridge[Native] = Bridge(
            memory, read, AdapterOptions(profile, limit, summarise), by="agent/google-adk"
        )
        self.tools = [_LimpetTool(self, tool) for tool in self._bridge.tools]
        self._requests: OrderedDict[tuple[str, str], list[Any]] = OrderedDict()  # contents, and the answer so far

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        bridged = self._talk(callback_context)
        llm_request.append_tools([tool for tool in self.tools if tool.name not in llm_request.tools_dict])
        self._requests[_call_key(callback_context)] = list(llm_request.contents)
        while len(self._requests) > REQUESTS:
            self._requests.popitem(last=False)
        own = llm_request.config.system_instruction
        tools = [tool for tool in llm_request.config.tools or () if getattr(tool, "function_declarations", None)]
        pairs = list(paired(llm_request.contents, answered_calls(callback_context)))
        contents, prompt = await asyncio.to_thread(self._sent, bridged, pairs, own, tools)
        llm_request.contents, llm_request.config.system_instruction = contents, prompt

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        if llm_response.partial:
            return
        bridged = self._talk(callback_context)
        usage, content = llm_response.usage_metadata, llm_response.content
        await self._bridge.asent(bridged, usage.prompt_token_count if usage else None)
        request = self._requests.get(_call_key(callback_context))
        if not request or content is None:
            return
        # ADK writes its ids into the calls; what it sends later is without them.
        request.append(content.model_copy(deep=True))
        calls = [part.function_call for part in content.parts or () if part.function_call]
        # The agent's turn is over, so that no later request of it may come to store the answer; or its calls run now,
        # and ADK forgets one that does not come back. A streamed reply may come in two.
        pairs = list(paired(request, [*answered_calls(callback_context), *calls]))
        await asyncio.to_thread(self._bridge.keep, bridged, pairs)

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        for key in list(self._requests):
            if key[0] == invocation_context.invocation_id:
                self._requests.pop(key, None)

    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> None:
        self._requests.pop(_call_key(callback_context), None)

    async def before_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any
    ) -> dict[str, Any] | None:
        session = self._session(tool_context).session
        try:
            tool_args.update(await self._bridge.aexpand(session, tool.name, tool_args))
        except LimpetError as problem:
            return {"error": problem.message}
        return None

    async def after_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> dict[str, Any] | None:
        session = self._session(tool_context).session
        arguments = json.dumps(tool_args, default=str)
        reference = await self._bridge.akeep_result(session, tool.name, _as_text(result), arguments)
        return None if reference is None else {"result": reference}

    async def call(self, tool: str, arguments: Mapping[str, Any], context: Any) -> dict[str, Any]:
        """The answer of one of Limpet's tools, or its error."""
        session, speaker = self._session(context).session, _speaker(context)
        try:
            return {"result": await asyncio.to_thread(self._bridge.call, session, tool, arguments, speaker)}
        except LimpetError as problem:
            return {"error": problem.message}

    def _session(self, context: Any) -> BridgedSession[Native]:
        session = context.session
        return self._bridge.session(session_of(session.app_name, session.user_id, session.id))

    def _talk(self, context: Any) -> BridgedSession[Native]:
        """The talk of an agent. ADK tells each agent what the others said in other words, so each has its own."""
        session = context.session
        return self._bridge.session(session_of(session.app_name, session.user_id, session.id), _speaker(context))

    def _sent(
        self, bridged: BridgedSession[Native], pairs: Sequence[Native], own: Any, tools: Sequence[Any]
    ) -> tuple[list[Any], str | None]:
        prompt = [system_message(_prompt_text(own))] if own else []
        declarations = (declaration for tool in tools for declaration in tool.function_declarations)
        definitions = [declaration.model_dump(mode="json", exclude_none=True) for declaration in declarations]
        sent = self._bridge.next(bridged, prompt, pairs, continues=False, tools=definitions)
        natives: list[Any] = []
        tool_names: dict[str, str] = {}  # by the id of a call
        for message, origin in zip(sent.talk, bridged.native_map.origins(sent.talk), strict=True):
            tool_names.update((call.id, call.name) for call in message.calls())
            if origin is None or len(read(origin[0])) > 1:
                natives.append(write(message, tool_names))
            elif not natives or natives[-1] is not origin[0][0]:
                natives.append(origin[0][0])
        return natives, "\n\n".join(message.text() for message in sent.prompt) or None


def session_of(app: str, user: str, session: str) -> str:
    """The session of an ADK session, which is identified by its app, its user and its id together."""
    return session_name("/".join(name.replace("%", "%25").replace("/", "%2F") for name in (app, user, session)))


def _speaker(context: Any) -> str:
    """The agent that a callback is about, if it is not the root."""
    agent = context._invocation_context.agent
    return "" if agent is None or agent is agent.root_agent else str(agent.name)


def _call_key(context: Any) -> tuple[str, str]:
    """What a model call is known by until its answer comes."""
    return context.invocation_id, context.agent_name


class _LimpetTool(BaseTool):
    def __init__(self, plugin: LimpetPlugin, tool: Tool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._plugin, self._schema = plugin, tool.parameters

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._schema
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        return await self._plugin.call(self.name, args, tool_context)


class LimpetMemoryService(BaseMemoryService):
    """ADK's memory service over a project's memory: entries are stored under the names of the app and the user.

    A search matches words, offline, and returns the best matches.
    """

    def __init__(self, hold: Limpet) -> None:
        self._hold = hold

    async def add_session_to_memory(self, session: Any) -> None:
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        puts = []
        for event in events:
            if words := _words(event.content):
                value = {"content": words, "author": event.author, "timestamp": iso(int(event.timestamp * 1_000))}
                puts.append(Put((app_name, user_id), event.id, value))
        await asyncio.to_thread(items.put_items, self._ctx(), puts)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        puts = []
        for memory in memories:
            value = {"content": _words(memory.content), "author": memory.author, "timestamp": memory.timestamp}
            puts.append(Put((app_name, user_id), memory.id or Event.new_id(), value))
        await asyncio.to_thread(items.put_items, self._ctx(), puts)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        if not query.strip():
            return SearchMemoryResponse()
        scored = await asyncio.to_thread(items.list_items, self._ctx(), (app_name, user_id), query)
        return SearchMemoryResponse(memories=[_entry(item) for _, item in scored[:SEARCH_LIMIT]])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        if memory_id is not None:
            await asyncio.to_thread(items.put_items, self._ctx(), [Put((app_name, user_id), memory_id, None)])

    def _ctx(self) -> Any:
        return self._hold.context(by="agent/google-adk")


def _entry(item: items.MemoryItem) -> MemoryEntry:
    content = types.Content(role="user", parts=[types.Part(text=str(item.value.get("content", "")))])
    author, at = item.value.get("author"), item.value.get("timestamp")
    return MemoryEntry(content=content, id=item.name, author=author, timestamp=at)


# --- contents ---------------------------------------------------------------------------------------------------------


def answered_calls(context: Any) -> list[Any]:
    """The calls of this agent in ADK's session that have a result, which are those that it is sent."""
    parts = [(event, part) for event in context.session.events if event.content for part in event.content.parts or ()]
    answered = {part.function_response.id for _, part in parts if part.function_response is not None}
    return [
        part.function_call
        for event, part in parts
        if part.function_call is not None and event.author == context.agent_name and part.function_call.id in answered
    ]


def paired(contents: Sequence[Any], session_calls: Sequence[Any] = ()) -> Iterator[Native]:
    """Contents with the ids of their calls and results. ADK omits its own ids; then the order decides.

    A call is numbered as the session has it: what is sent may begin later, and the transcript knows it by its number.
    """
    waiting: dict[str, list[str]] = {}
    calls = [part.function_call for content in contents for part in content.parts or () if part.function_call]
    numbers, number = iter(_numbers(calls, session_calls)), 0
    for content in contents:
        ids = []
        for part in content.parts or ():
            if (call := part.function_call) is not None:
                number = next(numbers)
                ids.append(call.id or f"call_{number}")
                waiting.setdefault(call.name, []).append(ids[-1])
            elif (answer := part.function_response) is not None:
                open_calls = waiting.get(answer.name, [])
                ids.append(answer.id or (open_calls[0] if open_calls else f"lost_{number}"))
                if ids[-1] in open_calls:
                    open_calls.remove(ids[-1])
        yield content, tuple(ids)


def _numbers(calls: Sequence[Any], session_calls: Sequence[Any]) -> list[int]:
    """The number of each call among those of the session, which are compared from the end: a list is cut in front.
    Where one is not found there, all are numbered as they are in the list."""
    numbers: list[int] = []
    at = len(session_calls)
    for call in reversed(calls):
        at -= 1
        while at >= 0 and not _is_same_call(call, session_calls[at]):
            at -= 1
        if at < 0:
            return list(range(1, len(calls) + 1))
        numbers.append(at + 1)
    return numbers[::-1]


def _is_same_call(call: Any, earlier: Any) -> bool:
    return bool(call.name == earlier.name and (call.args or {}) == (earlier.args or {}))


def read(native: Native) -> list[Message]:
    """A content as messages: its results become a separate one."""
    content, ids = native
    left = iter(ids)
    results: list[Part] = []
    others: list[Part] = []
    for part in content.parts or ():
        if part.function_response is not None:
            results.append(_result(part.function_response, next(left)))
        elif part.function_call is not None:
            call = part.function_call
            others.append(Call(next(left), call.name, json.dumps(call.args or {}, ensure_ascii=False)))
        else:
            others.append(_part(part))
    role = ASSISTANT if content.role == "model" else USER
    messages = [Message(TOOL, tuple(results))] if results else []
    return [*messages, Message(role, tuple(others))] if others or not results else messages


def _result(answer: Any, call_id: str) -> Result:
    response = answer.response or {}
    raw = {FORM: {"name": answer.name, "response": response}}
    return Result(call_id, (Text(_as_text(response)),), error="error" in response, raw=raw)


def _part(part: Any) -> Part:
    if part.text is not None:
        return Thinking(part.text) if part.thought else Text(part.text)
    if part.inline_data is not None:
        data = base64.b64encode(part.inline_data.data or b"").decode()
        return Media(part.inline_data.mime_type or "application/octet-stream", {"data": data})
    return Other({FORM: part.model_dump(mode="json", exclude_none=True)})


def write(message: Message, tool_names: Mapping[str, str]) -> Any:
    """A message without an ADK content: a summary, the working state, or a message from the store."""
    parts = [_written(part, tool_names) for part in message.parts]
    return types.Content(role="model" if message.role == ASSISTANT else "user", parts=parts)


def _written(part: Part, tool_names: Mapping[str, str]) -> Any:
    match part:
        case Call():
            return types.Part(function_call=types.FunctionCall(name=part.name, args=json.loads(part.arguments or "{}")))
        case Result():
            name = part.raw.get(FORM, {}).get("name") or tool_names.get(part.call_id, "tool")
            text = "\n".join(inner.text for inner in part.parts if isinstance(inner, Text))
            response = {"error" if part.error else "result": text}
            return types.Part(function_response=types.FunctionResponse(name=name, response=response))
        case Media() if "data" in part.raw:
            return types.Part.from_bytes(data=base64.b64decode(part.raw["data"]), mime_type=part.kind)
        case Other() if FORM in part.raw:
            return types.Part.model_validate(part.raw[FORM])
        case Text() | Thinking():
            return types.Part(text=part.text, thought=isinstance(part, Thinking) or None)
    return types.Part(text="[not shown]")


def _as_text(result: Any) -> str:
    if isinstance(result, Mapping) and len(result) == 1:
        (result,) = result.values()
    text = result_text(result)
    return json.dumps(result, ensure_ascii=False, default=str) if text is None else text


def _prompt_text(own: Any) -> str:
    return own if isinstance(own, str) else _words(own)


def _words(content: Any) -> str:
    return "\n".join(part.text for part in getattr(content, "parts", None) or () if part.text)
