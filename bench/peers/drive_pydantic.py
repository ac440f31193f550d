"""The compaction of pydantic-ai-harness over the scripted conversation; runs in its own environment."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_harness.compaction import SummarizingCompaction, compact_now, pin

from bench.peers.script import Job, Said, answer, job, summarise

SAID = re.compile(r'<message role="(\w+)"[^>]*>\n(.*?)\n</message>', re.DOTALL)
PREVIOUS = re.compile(r"<previous-summary>\n(.*?)\n</previous-summary>", re.DOTALL)
ROLES = {"tool_return": "tool", "tool_call": "tool"}


def read(messages: list[dict[str, Any]]) -> list[ModelMessage]:
    """Messages of the Chat form as the harness has them."""
    found: list[ModelMessage] = []
    for message in messages:
        text = message.get("content") or ""
        if message["role"] == "user":
            found.append(ModelRequest(parts=[UserPromptPart(text)]))
        elif message["role"] == "tool":
            found.append(ModelRequest(parts=[ToolReturnPart("shell", text, message["tool_call_id"])]))
        else:
            calls = [
                ToolCallPart(call["function"]["name"], call["function"]["arguments"], call["id"])
                for call in message.get("tool_calls", ())
            ]
            found.append(ModelResponse(parts=[*([TextPart(text)] if text else []), *calls]))
    return found


def said(message: ModelMessage) -> list[Said]:
    role = "user" if isinstance(message, ModelRequest) else "assistant"
    shown = []
    for part in message.parts:
        content: Any = getattr(part, "content", None) or ""
        if not isinstance(content, str):
            content = "\n".join(getattr(one, "content", str(one)) for one in content)
        shown.append(Said("tool" if isinstance(part, ToolReturnPart) else role, content))
    return shown


async def run(given: Job) -> list[list[Said]]:
    def written(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        """The scripted summariser as a model: it reads the transcript that the harness puts into its prompt."""
        prompt = "\n".join(one.text for message in messages for one in said(message))
        previous = "\n".join(PREVIOUS.findall(prompt))
        talk = [Said(ROLES.get(role, role), text) for role, text in SAID.findall(prompt) if role != "tool_call"]
        return ModelResponse(parts=[TextPart(summarise(previous, talk, given))])

    model = FunctionModel(written)
    strategy = SummarizingCompaction[None](
        model=model,
        max_tokens=1,
        keep_tokens=given.tail,
        tool_return_max_chars=None,  # the summariser sees everything
    )
    state: list[ModelMessage] = [ModelRequest(parts=[pin(given.pin)])]
    windows = []
    for part in given.parts:
        state = await compact_now(strategy, [*state, *read(part)], model=model)
        windows.append([one for message in state for one in said(message)])
    return windows


if __name__ == "__main__":
    answer({"SummarizingCompaction": asyncio.run(run(job()))})
