"""Pydantic AI's agent with a FunctionModel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage, UsageLimits

from bench.frameworks.script import Do, Model, Shown, Tool, Window, size
from limpet.adapters.pydantic_ai import LimpetMemory
from limpet.api import Limpet

ROLES = {"system-prompt": "system", "user-prompt": "user", "tool-return": "tool", "retry-feedback": "user"}


def shown(message: ModelMessage) -> list[Shown]:
    if isinstance(message, ModelResponse):
        calls = [f"{call.tool_name} {call.args_as_json_str()}" for call in message.tool_calls]
        return [Shown("assistant", "\n".join([message.text or "", *calls]))]
    return [Shown(ROLES[part.part_kind], str(getattr(part, "content", ""))) for part in message.parts]


class PydanticAI:
    def __init__(self, model: Model, tools: Sequence[Tool], memory: Limpet | None, **options: Any) -> None:
        self.windows: list[Window] = []
        self.histories: dict[str, list[ModelMessage]] = options.pop("histories", {})
        before = list(options.pop("before", ()))

        def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            first = [Shown("system", info.instructions)] if info.instructions else []
            self.windows.append([*first, *(one for message in messages for one in shown(message))])
            wanted = model(self.windows[-1])
            # Without it the FunctionModel would count words.
            usage = RequestUsage(input_tokens=size(self.windows[-1]), output_tokens=10)
            if isinstance(wanted, Do):
                call = ToolCallPart(wanted.name, wanted.arguments, f"call_{len(self.windows)}")
                return ModelResponse(parts=[call], usage=usage)
            return ModelResponse(parts=[TextPart(wanted.text)], usage=usage)

        capabilities = before if memory is None else [*before, LimpetMemory(memory, **options)]
        self.agent = Agent(FunctionModel(answer), tools=list(tools), capabilities=capabilities)

    def kept_by_framework(self) -> dict[str, Any]:
        return {"histories": self.histories}

    async def run(self, request: str, thread: str) -> str:
        history = self.histories.get(thread)
        limits = UsageLimits(request_limit=None)
        result = await self.agent.run(request, message_history=history, conversation_id=thread, usage_limits=limits)
        self.histories[thread] = result.all_messages()
        return result.output
