"""LangChain's `create_agent` with a scripted chat model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver

from bench.frameworks.script import Do, Model, Shown, Tool, Window, size
from limpet.adapters.langchain import LimpetMiddleware
from limpet.api import Limpet

ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}


class Scripted(BaseChatModel):
    """A chat model that a function stands for."""

    script: Any
    windows: list[Any]
    made: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        window = [shown(message) for message in messages]
        self.windows.append(window)
        self.made += 1
        answer = self.script(window)
        usage = UsageMetadata(input_tokens=size(window), output_tokens=10, total_tokens=size(window) + 10)
        if isinstance(answer, Do):
            call = {"name": answer.name, "args": answer.arguments, "id": f"call_{self.made}", "type": "tool_call"}
            reply = AIMessage("", tool_calls=[call], usage_metadata=usage)
        else:
            reply = AIMessage(answer.text, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=reply)])


def shown(message: BaseMessage) -> Shown:
    calls = [f"{call['name']} {json.dumps(call['args'])}" for call in getattr(message, "tool_calls", ())]
    return Shown(ROLES[message.type], "\n".join([str(message.text), *calls]))


class LangChain:
    sync = False  # whether LangChain runs it in threads of its own

    def __init__(self, model: Model, tools: Sequence[Tool], memory: Limpet | None, **options: Any) -> None:
        self.saver = options.pop("saver", None) or InMemorySaver()
        before = list(options.pop("before", ()))
        middleware = before if memory is None else [*before, LimpetMiddleware(memory, **options)]
        chat = Scripted(script=model, windows=[])
        self.windows: list[Window] = chat.windows
        self.agent = create_agent(chat, list(tools), middleware=middleware, checkpointer=self.saver)

    def kept_by_framework(self) -> dict[str, Any]:
        """What another process would have from the framework, as options."""
        return {"saver": self.saver}

    async def run(self, request: str, thread: str) -> str:
        config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": 10_000}
        given: Any = {"messages": [HumanMessage(request)]}
        if self.sync:
            state = await asyncio.to_thread(self.agent.invoke, given, config)
        else:
            state = await self.agent.ainvoke(given, config)
        return str(state["messages"][-1].text)


class LangChainSync(LangChain):
    sync = True
