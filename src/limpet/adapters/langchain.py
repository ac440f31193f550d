"""Limpet for LangChain: a middleware for `create_agent`, and for deep agents.

    agent = create_agent(model, tools=[...], middleware=[LimpetMiddleware(limpet.open())])

Every model call gets the window of the conversation's session: handoff, memory, notepad and pins around a history that
is compacted when necessary. The agent's state keeps every message; the middleware changes what is sent. Each LangGraph
thread is a session of the same name.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from limpet import errors
from limpet.adapters.bridge import AdapterOptions, Bridge, BridgedSession, Sent
from limpet.api import Limpet, Session
from limpet.errors import LimpetError
from limpet.window.messages import (
    ASSISTANT,
    SYSTEM,
    TOOL,
    USER,
    Call,
    Media,
    Message,
    Other,
    Part,
    Result,
    Text,
    Thinking,
)
from limpet.window.step import Summarise

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain.tools.tool_node import ToolCallRequest
    from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
    from langchain_core.tools import BaseTool, StructuredTool, ToolException
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.config import get_config
    from langgraph.runtime import Runtime
    from langgraph.types import Command
except ImportError as problem:
    raise errors.not_installed("the adapter for LangChain", "langchain") from problem

FORM = "langchain"
ROLES = {"human": USER, "ai": ASSISTANT, "tool": TOOL, "system": SYSTEM}
CALLS = ("tool_use", "tool_call", "tool_call_chunk", "function_call", "invalid_tool_call")  # `tool_calls` has them

Response = ModelResponse[Any] | AIMessage | Any


class LimpetMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Working memory for an agent of LangChain.

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
    ) -> None:
        super().__init__()
        self._bridge: Bridge[AnyMessage] = Bridge(
            memory, read, AdapterOptions(profile, limit, summarise), by="agent/langchain"
        )
        self.tools: Sequence[BaseTool] = [
            self._tool(tool.name, tool.description, tool.parameters) for tool in self._bridge.tools
        ]

    # --- model calls --------------------------------------------------------------------------------------------------

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Response]) -> Response:
        bridged = self._session()
        response = handler(self._request(bridged, request))
        self._bridge.sent(bridged, _used(response))
        again = _again(bridged, request, response)
        if again is not None:
            return self.wrap_model_call(again, handler)
        if _calls_a_tool(response):
            self._keep_before_calls(bridged, request, response)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Response]]
    ) -> Response:
        bridged = self._session()
        response = await handler(await asyncio.to_thread(self._request, bridged, request))
        await self._bridge.asent(bridged, _used(response))
        again = _again(bridged, request, response)
        if again is not None:
            return await self.awrap_model_call(again, handler)
        if _calls_a_tool(response):
            await asyncio.to_thread(self._keep_before_calls, bridged, request, response)
        return response

    def _keep_before_calls(
        self, bridged: BridgedSession[AnyMessage], request: ModelRequest[Any], response: Response
    ) -> None:
        """Store a reply before its calls run. A graph without a checkpointer forgets it with the process."""
        self._bridge.keep(bridged, [*request.messages, *_messages(response)])

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        self._bridge.keep(self._session(), state["messages"])

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        await asyncio.to_thread(self._bridge.keep, self._session(), state["messages"])

    def _request(self, bridged: BridgedSession[AnyMessage], request: ModelRequest[Any]) -> ModelRequest[Any]:
        own = request.system_message
        prompt = read(own) if own is not None else []
        tools = self._bridge.definitions(request.tools, convert_to_openai_tool)
        sent = self._bridge.next(bridged, prompt, request.messages, continues=True, tools=tools)
        origins = bridged.native_map.origins(sent.talk)
        messages: list[AnyMessage] = []
        for message, origin in zip(sent.talk, origins, strict=True):
            messages += write(message) if origin is None else [origin[0]]
        return request.override(messages=messages, system_message=_prompt(sent, prompt, own))

    # --- tools --------------------------------------------------------------------------------------------------------

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        session = self._session().session
        try:
            call = request.tool_call
            expanded = _with_arguments(request, self._bridge.expand(session, call["name"], call["args"]))
        except LimpetError as problem:
            return _failed(request, problem)
        return self._with_references(session, request, handler(expanded))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        session = self._session().session
        try:
            call = request.tool_call
            expanded = _with_arguments(request, await self._bridge.aexpand(session, call["name"], call["args"]))
        except LimpetError as problem:
            return _failed(request, problem)
        result = await handler(expanded)
        if isinstance(result, ToolMessage) and len(str(result.content)) < self._bridge.least:
            return result  # it is small, and a thread would cost more than it saves
        return await asyncio.to_thread(self._with_references, session, request, result)

    def _with_references(
        self, session: Session, request: ToolCallRequest, result: ToolMessage | Command[Any]
    ) -> ToolMessage | Command[Any]:
        """The result with its big texts replaced by references; its status stays."""
        if isinstance(result, ToolMessage):
            return self._with_reference(session, request, result)
        changes = result.update
        if not isinstance(changes, dict) or not isinstance(changes.get("messages"), list):
            return result
        messages = [
            self._with_reference(session, request, message) if isinstance(message, ToolMessage) else message
            for message in changes["messages"]
        ]
        return replace(result, update={**changes, "messages": messages})

    def _with_reference(self, session: Session, request: ToolCallRequest, message: ToolMessage) -> ToolMessage:
        name, call = request.tool_call["name"], json.dumps(request.tool_call["args"], ensure_ascii=False, default=str)

        def replaced(text: str) -> str:
            return self._bridge.keep_result(session, name, text, call) or text

        if isinstance(message.content, str):
            content: Any = replaced(message.content)
        else:
            content = [_with_text(block, replaced) for block in message.content]
        return message if content == message.content else message.model_copy(update={"content": content})

    def _tool(self, name: str, description: str, parameters: dict[str, Any]) -> BaseTool:
        def run(**arguments: Any) -> str:
            try:
                return self._bridge.call(self._session().session, name, arguments)
            except LimpetError as problem:
                raise ToolException(problem.message) from problem

        async def arun(**arguments: Any) -> str:
            return await asyncio.to_thread(run, **arguments)

        return StructuredTool(
            name=name, description=description, args_schema=parameters, func=run, coroutine=arun, handle_tool_error=True
        )

    def _session(self) -> BridgedSession[AnyMessage]:
        return self._bridge.session(_thread())


def _thread() -> str | None:
    """The current conversation: the thread, and the call if a tool runs an agent of its own."""
    try:
        config = get_config().get("configurable", {})
    except RuntimeError:
        return None  # not inside a graph
    thread = config.get("thread_id")
    if thread is None:
        return None
    outer = str(config.get("checkpoint_ns") or "").split("|")[:-1]
    # The graph of a node is the same conversation in every run; each tool call starts a new one.
    names = [name if name.startswith("tools:") else name.partition(":")[0] for name in outer]
    return "/".join([str(thread), *names])


def _messages(response: Response) -> list[Any]:
    inner = getattr(response, "model_response", response)
    return [inner] if isinstance(inner, AIMessage) else list(inner.result)


def _calls_a_tool(response: Response) -> bool:
    return any(isinstance(message, AIMessage) and message.tool_calls for message in _messages(response))


def _used(response: Response) -> int | None:
    """The provider's count of the request's tokens."""
    replies = (message for message in _messages(response) if isinstance(message, AIMessage))
    usage = next((reply.usage_metadata for reply in replies), None)
    return usage["input_tokens"] if usage else None


def _again(
    bridged: BridgedSession[AnyMessage], request: ModelRequest[Any], response: Response
) -> ModelRequest[Any] | None:
    """The next request if a warning was answered without a tool call.

    That turn was for saving; the user's request is answered after the compaction, in the same step of the graph. What
    the model said to the warning is stored, but is no answer of the thread.
    """
    messages = _messages(response)
    last = messages[-1]
    done = not isinstance(last, AIMessage) or last.tool_calls or last.invalid_tool_calls
    return None if done or not bridged.warned else request.override(messages=[*request.messages, *messages])


def _with_arguments(request: ToolCallRequest, arguments: Any) -> ToolCallRequest:
    call = request.tool_call
    return request if arguments == call["args"] else request.override(tool_call={**call, "args": arguments})


def _failed(request: ToolCallRequest, problem: LimpetError) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(problem.message, tool_call_id=call["id"], name=call["name"], status="error")


def _with_text(block: Any, replaced: Callable[[str], str]) -> Any:
    if isinstance(block, str):
        return replaced(block)
    if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
        return {**block, "text": replaced(block["text"])}
    return block


def _prompt(sent: Sent, own: Sequence[Message], native: SystemMessage | None) -> SystemMessage | None:
    """One system message: Limpet's first sections, the caller's own prompt as it is, and the other sections."""
    if not sent.prompt:
        return None
    blocks: list[Any] = []
    for message in sent.prompt:
        if native is not None and own and message is own[0] and not isinstance(native.content, str):
            blocks += native.content
        else:
            blocks.append({"type": "text", "text": message.text()})
    if native is None or isinstance(native.content, str):
        return SystemMessage("\n\n".join(block["text"] for block in blocks))
    return SystemMessage(content=blocks)


# --- messages ---------------------------------------------------------------------------------------------------------


def read(native: BaseMessage) -> list[Message]:
    """A LangChain message, converted."""
    parts = _parts(native.content)
    if isinstance(native, ToolMessage):
        own = {FORM: {"name": native.name}} if native.name else {}
        content = tuple(part if isinstance(part, Text | Media) else Media(f"{FORM}/part", part.raw) for part in parts)
        return [Message(TOOL, (Result(native.tool_call_id, content, native.status == "error", own),))]
    if isinstance(native, AIMessage):
        calls: list[Part] = [
            Call(call["id"] or "", call["name"], json.dumps(call["args"], ensure_ascii=False, default=str))
            for call in native.tool_calls
        ]
        calls += [Call(bad["id"] or "", bad["name"] or "", bad["args"] or "") for bad in native.invalid_tool_calls]
        return [Message(ASSISTANT, (*parts, *calls))]
    return [Message(ROLES.get(native.type, USER), parts)]


def _parts(content: str | list[Any]) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(content),) if content else ()
    return tuple(part for block in content if (part := _part(block)) is not None)


def _part(block: Any) -> Part | None:
    if isinstance(block, str):
        return Text(block)
    kind = block.get("type")
    if kind in CALLS:
        return None
    if kind == "text" and isinstance(block.get("text"), str):
        return Text(block["text"])
    if kind in ("thinking", "reasoning", "redacted_thinking"):
        return Thinking(str(block.get("thinking") or block.get("reasoning") or ""), {FORM: block})
    if kind in ("image", "image_url"):
        return Media("image/*", {FORM: block})
    return Other({FORM: block})


def write(message: Message) -> list[AnyMessage]:
    """A message without a LangChain original, or one that was changed, in LangChain's form."""
    if message.role == TOOL:
        return [_result(part) if isinstance(part, Result) else HumanMessage(_content([part])) for part in message.parts]
    content = [part for part in message.parts if not isinstance(part, Call | Result)]
    if message.role == ASSISTANT:
        calls = [
            {"name": call.name, "args": _arguments(call), "id": call.id, "type": "tool_call"}
            for call in message.calls()
        ]
        return [AIMessage(_content([part for part in content if not isinstance(part, Thinking)]), tool_calls=calls)]
    return [SystemMessage(_content(content)) if message.role == SYSTEM else HumanMessage(_content(content))]


def _result(result: Result) -> ToolMessage:
    name = result.raw.get(FORM, {}).get("name")
    status = "error" if result.error else "success"
    return ToolMessage(_content(result.parts), tool_call_id=result.call_id, name=name, status=status)


def _content(parts: Sequence[Part]) -> Any:
    if all(isinstance(part, Text) for part in parts):
        return "\n\n".join(part.text for part in parts if isinstance(part, Text))
    return [
        part.raw[FORM] if FORM in part.raw else {"type": "text", "text": str(getattr(part, "text", ""))}
        for part in parts
    ]


def _arguments(call: Call) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        arguments = None
    return arguments if isinstance(arguments, dict) else {"input": call.arguments}
