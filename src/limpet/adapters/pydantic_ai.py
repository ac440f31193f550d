"""Limpet for Pydantic AI: a capability, which is a toolset, a history processor and hooks in one.

    agent = Agent("openai:gpt-5", capabilities=[LimpetMemory(limpet.open())])

Every model request gets the window of the conversation's session: handoff, memory, notepad and pins around a history
that is compacted when necessary. The run's message history keeps everything; the capability changes what is sent. Each
conversation of Pydantic AI is a session of the same name.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from limpet import errors
from limpet.adapters.bridge import AdapterOptions, Bridge, BridgedSession, Sent
from limpet.api import Limpet, Session
from limpet.errors import LimpetError
from limpet.record import NamedTuple
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
    system,
)
from limpet.window.step import Summarise

try:
    from pydantic_ai import RunContext, ToolDefinition
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import RetryModelRequest, ToolFailed
    from pydantic_ai.messages import (
        BinaryContent,
        InstructionPart,
        ModelMessage,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextContent,
        TextPart,
        ThinkingPart,
        ToolCallPart,
        ToolReturn,
        ToolReturnPart,
        UserPromptPart,
        is_multi_modal_content,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import Tool
    from pydantic_ai.toolsets import FunctionToolset
except ImportError as problem:
    raise errors.not_installed("the adapter for Pydantic AI", "pydantic-ai") from problem

FORM = "pydantic_ai"
FAILED = ("failed", "retried", "denied", "interrupted")


class _Calling(NamedTuple):
    """The tool call that is under way."""

    session: str
    run: str | None
    caller: str  # the speaker who made it
    speaker: str  # the name of agents that it runs


CALLING: ContextVar[_Calling | None] = ContextVar("limpet_calling", default=None)
ASKING: ContextVar[Sequence[ModelMessage]] = ContextVar(
    "limpet_asking", default=()
)  # the messages of the run's request


class LimpetMemory(AbstractCapability[Any]):
    """Working memory for an agent of Pydantic AI.

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
        options = AdapterOptions(profile, limit, summarise)
        self._bridge: Bridge[ModelMessage] = Bridge(memory, read, options, by="agent/pydantic-ai")
        tools = [self._tool(tool.name, tool.description, tool.parameters) for tool in self._bridge.tools]
        self._toolset: FunctionToolset[Any] = FunctionToolset(tools, id="limpet")

    @classmethod
    def get_serialization_name(cls) -> str | None:
        return None  # an open store cannot be serialised

    def get_toolset(self) -> FunctionToolset[Any]:
        return self._toolset

    # --- model requests -----------------------------------------------------------------------------------------------

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        bridged = self._talk(ctx)
        # What the model said to a warning is no message of the run, and comes before the attempt that follows.
        talk = [*request_context.messages, *(bridged.warning_reply if request_context.attempt > 1 else ())]
        bridged.warning_reply = []
        ASKING.set(talk)
        return await asyncio.to_thread(self._request, bridged, request_context, talk)

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        bridged = self._talk(ctx)
        await self._bridge.asent(bridged, response.usage.input_tokens)
        if bridged.warned and not response.tool_calls and not request_context.streaming:
            # That turn was for saving; the next attempt, after the compaction, answers the request.
            bridged.warning_reply = [response]
            raise RetryModelRequest
        # A run that ends in a call, and its process, may forget that it was called.
        if response.tool_calls and (talk := ASKING.get()):
            await asyncio.to_thread(self._bridge.keep, bridged, [*talk, response])
        return response

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        await asyncio.to_thread(self._bridge.keep, self._talk(ctx), result.all_messages())
        return result

    def _request(
        self, bridged: BridgedSession[ModelMessage], request: ModelRequestContext, talk: Sequence[ModelMessage]
    ) -> ModelRequestContext:
        parameters = request.model_request_parameters
        own = parameters.instruction_parts or []
        prompt = [system("\n\n".join(part.content for part in own))] if own else []
        tools = self._bridge.definitions((*parameters.function_tools, *parameters.output_tools), _definition)
        sent = self._bridge.next(bridged, prompt, talk, continues=not request.streaming, tools=tools)
        origins = bridged.native_map.origins([*sent.prompt, *sent.talk])
        parts: list[InstructionPart] = []
        for message, origin in zip(sent.prompt, origins, strict=False):
            if prompt and message is prompt[0]:
                parts += own
            elif origin is None:  # the framework's own system prompt stays among the messages
                parts.append(InstructionPart(message.text(), dynamic=True))
        return replace(
            request,
            messages=written(sent, origins),
            model_request_parameters=replace(parameters, instruction_parts=parts or None),
        )

    # --- tools --------------------------------------------------------------------------------------------------------

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        speaker = f"{call.tool_name}:{call.tool_call_id}"
        calling = _Calling(self._session(ctx).session.id, ctx.run_id, self._speaker(ctx), speaker)
        before = CALLING.set(calling)
        try:
            return await handler(args)
        finally:
            CALLING.reset(before)

    async def before_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        try:
            expanded: dict[str, Any] = await self._bridge.aexpand(self._session(ctx).session, call.tool_name, args)
        except LimpetError as problem:
            raise ToolFailed(problem.message) from problem
        return args if expanded == args else expanded

    async def after_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any], result: Any
    ) -> Any:
        """The result, or a reference if it is big. The parts for the application stay as they are."""
        value = result.return_value if isinstance(result, ToolReturn) else result
        session, arguments = self._session(ctx).session, call.args_as_json_str()

        async def replaced(content: Any) -> Any:
            text = _as_shown(call, content)
            return await self._bridge.akeep_result(session, call.tool_name, text, arguments) or content

        if isinstance(value, list) and any(map(is_multi_modal_content, value)):
            after: Any = [piece if is_multi_modal_content(piece) else await replaced(piece) for piece in value]
        else:
            after = await replaced(value)
        return replace(result, return_value=after) if isinstance(result, ToolReturn) else after

    def _tool(self, name: str, description: str, parameters: dict[str, Any]) -> Tool[Any]:
        async def run(ctx: RunContext[Any], **arguments: Any) -> str:
            try:
                session, speaker = self._session(ctx).session, self._speaker(ctx)
                return await asyncio.to_thread(self._bridge.call, session, name, arguments, speaker)
            except LimpetError as problem:
                raise ToolFailed(problem.message) from problem

        return Tool.from_schema(run, name, description, parameters, takes_ctx=True)

    def _session(self, ctx: RunContext[Any]) -> BridgedSession[ModelMessage]:
        return self._bridge.session(ctx.conversation_id)

    def _talk(self, ctx: RunContext[Any]) -> BridgedSession[ModelMessage]:
        """The talk of a run. An agent that a tool of the same conversation runs has one of its own."""
        return self._bridge.session(ctx.conversation_id, self._speaker(ctx))

    def _speaker(self, ctx: RunContext[Any]) -> str:
        calling = CALLING.get()
        if calling is None or calling.session != self._session(ctx).session.id:
            return ""
        return calling.caller if calling.run == ctx.run_id else calling.speaker


def _definition(tool: ToolDefinition) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema}


def _as_shown(call: ToolCallPart, value: Any) -> str:
    """A result as the model would read it; empty for a picture and for what the framework cannot show."""
    if is_multi_modal_content(value):
        return ""
    try:
        return ToolReturnPart(call.tool_name, value, call.tool_call_id).model_response_str()
    except ValueError:
        return ""  # the framework will say so itself


# --- messages ---------------------------------------------------------------------------------------------------------


def read(native: ModelMessage) -> list[Message]:
    """A Pydantic AI message, converted; a request becomes one message per part."""
    if isinstance(native, ModelResponse):
        return [Message(ASSISTANT, tuple(map(_response_part, native.parts)))]
    return [_request_part(part) for part in native.parts]


def _response_part(part: Any) -> Part:
    match part:
        case TextPart():
            return Text(part.content)
        case ThinkingPart():
            return Thinking(part.content)
        case ToolCallPart():
            return Call(part.tool_call_id, part.tool_name, part.args_as_json_str())
    return Other({FORM: {"kind": part.part_kind, "content": str(getattr(part, "content", ""))}})


def _request_part(part: Any) -> Message:
    match part:
        case SystemPromptPart():
            return system(part.content)
        case UserPromptPart():
            return Message(USER, _content(part.content))
        case ToolReturnPart():
            own = {FORM: {"name": part.tool_name}}
            text = part.model_response_str(wrap_if_error=False)
            return Message(TOOL, (Result(part.tool_call_id, (Text(text),), part.outcome in FAILED, own),))
    content = getattr(part, "content", "")
    return Message(USER, (Text(content if isinstance(content, str) else json.dumps(content, default=str)),))


def _content(content: str | Sequence[Any]) -> tuple[Part, ...]:
    return (Text(content),) if isinstance(content, str) else tuple(map(_piece, content))


def _piece(piece: Any) -> Part:
    match piece:
        case str():
            return Text(piece)
        case TextContent():
            return Text(str(piece.content))
        case BinaryContent():
            return Media(piece.media_type, {"data": base64.b64encode(piece.data).decode()})
    if url := getattr(piece, "url", None):
        return Media("image/*" if "image" in piece.kind else f"{FORM}/{piece.kind}", {"url": url})
    return Other({FORM: str(piece)})


def written(sent: Sent, origins: Sequence[tuple[ModelMessage, int] | None]) -> list[ModelMessage]:
    """The request in the framework's form. Unchanged messages of the framework are reused."""
    out: list[ModelMessage] = []
    pending: list[tuple[Any, ModelMessage | None]] = []  # parts of consecutive requests, with their messages
    for at, (message, origin) in enumerate(zip([*sent.prompt, *sent.talk], origins, strict=True)):
        if at < len(sent.prompt) and origin is None:
            continue  # an instruction
        if message.role == ASSISTANT:
            out += _joined(pending)
            pending = []
            out.append(_response(message) if origin is None else origin[0])
        elif origin is None:
            pending += [(part, None) for part in _request_parts(message)]
        else:
            pending.append((origin[0].parts[origin[1]], origin[0]))
    return out + _joined(pending)


def _joined(pending: Sequence[tuple[Any, ModelMessage | None]]) -> list[ModelMessage]:
    """Consecutive requests: the original ones if all of them are complete, else one request with all parts."""
    if len(pending) == 1 and (single := pending[0][1]) is not None and len(single.parts) == 1:
        return [single]  # the usual case
    natives = list({id(native): native for _, native in pending}.values())
    parts = [part for native in natives if native is not None for part in native.parts]
    if None not in natives and len(parts) == len(pending):
        return [native for native in natives if native is not None]
    return [ModelRequest(parts=[part for part, _ in pending])] if pending else []


def _response(message: Message) -> ModelResponse:
    parts: list[Any] = []
    for part in message.parts:
        if isinstance(part, Text):
            parts.append(TextPart(part.text))
        elif isinstance(part, Call):
            parts.append(ToolCallPart(part.name, part.arguments, part.id))
    return ModelResponse(parts=parts)


def _request_parts(message: Message) -> list[Any]:
    if message.role == SYSTEM:
        return [SystemPromptPart(message.text())]
    parts: list[Any] = [_return(result) for result in message.results()]
    pieces = [_written_piece(part) for part in message.parts if not isinstance(part, Result)]
    if len(pieces) == 1 and isinstance(pieces[0], str):
        return [*parts, UserPromptPart(pieces[0])]
    return [*parts, UserPromptPart(pieces)] if pieces else parts


def _return(result: Result) -> ToolReturnPart:
    name = result.raw.get(FORM, {}).get("name", "tool")
    text = "\n".join(part.text for part in result.parts if isinstance(part, Text))
    return ToolReturnPart(name, text, result.call_id, outcome="failed" if result.error else "success")


def _written_piece(part: Part) -> Any:
    if isinstance(part, Media) and "data" in part.raw:
        return BinaryContent(base64.b64decode(part.raw["data"]), media_type=part.kind)
    return part.text if isinstance(part, Text) else f"[{getattr(part, 'kind', 'part')}: not shown]"
