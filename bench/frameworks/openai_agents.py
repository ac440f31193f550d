"""The Runner of OpenAI's Agents SDK with a scripted model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from itertools import count
from typing import Any

from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    Session,
    SQLiteSession,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from bench.frameworks.script import Do, Shown, Tool, Window, size
from bench.frameworks.script import Model as Script
from limpet.adapters.openai_agents import LimpetSession
from limpet.api import Limpet

set_tracing_disabled(True)
NUMBERS = count(1)  # of answers: ids are unique, as a provider's are


def shown(item: Any) -> Shown:
    kind = item.get("type", "message")
    if kind == "function_call":
        return Shown("assistant", f"{item['name']} {item['arguments']}")
    if kind == "function_call_output":
        return Shown("tool", str(item["output"]))
    content = item.get("content") or ""
    text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
    return Shown(item.get("role", "assistant"), text)


class Scripted(Model):
    def __init__(self, script: Script) -> None:
        self.script = script
        self.windows: list[Window] = []

    async def get_response(
        self, system_instructions: str | None, input: Any, *args: Any, **kwargs: Any
    ) -> ModelResponse:
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        first = [Shown("system", system_instructions)] if system_instructions else []
        window = [*first, *map(shown, items)]
        self.windows.append(window)
        answer = self.script(window)
        number = next(NUMBERS)
        usage = Usage(requests=1, input_tokens=size(window), output_tokens=10, total_tokens=size(window) + 10)
        if isinstance(answer, Do):
            call = ResponseFunctionToolCall(
                arguments=json.dumps(answer.arguments), call_id=f"call_{number}", name=answer.name, type="function_call"
            )
            return ModelResponse(output=[call], usage=usage, response_id=None)
        text = ResponseOutputText(annotations=[], text=answer.text, type="output_text")
        said = ResponseOutputMessage(
            id=f"msg_{number}", content=[text], role="assistant", status="completed", type="message"
        )
        return ModelResponse(output=[said], usage=usage, response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


class OpenAIAgents:
    def __init__(self, model: Script, tools: Sequence[Tool], memory: Limpet | None, **options: Any) -> None:
        self.model = Scripted(model)
        self.windows = self.model.windows
        self.tools = [function_tool(tool) for tool in tools]
        self.memory, self.options = memory, options
        self.sessions: dict[str, Session] = {}

    async def run(self, request: str, thread: str) -> str:
        if thread not in self.sessions:
            made = SQLiteSession(thread) if self.memory is None else LimpetSession(self.memory, thread, **self.options)
            self.sessions[thread] = made
        session = self.sessions[thread]
        own = session.tools if isinstance(session, LimpetSession) else []
        config = session.run_config() if isinstance(session, LimpetSession) else RunConfig()
        agent = Agent(name="Scripted", model=self.model, tools=[*own, *self.tools])
        hooks = session.hooks if isinstance(session, LimpetSession) else None
        result = await Runner.run(agent, request, session=session, run_config=config, hooks=hooks, max_turns=10_000)
        return str(result.final_output)
