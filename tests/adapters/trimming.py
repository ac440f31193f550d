"""How people have each framework send the last of a conversation only, to keep requests small."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents.memory import SessionSettings
from google.adk.plugins.context_filter_plugin import ContextFilterPlugin
from langchain.agents.middleware import AgentMiddleware
from pydantic_ai.capabilities import ProcessHistory

from bench.frameworks.anthropic import AnthropicSDK
from bench.frameworks.google_adk import GoogleADK
from bench.frameworks.langchain import LangChain
from bench.frameworks.openai_agents import OpenAIAgents
from bench.frameworks.pydantic_ai import PydanticAI
from limpet.adapters.openai_agents import LimpetSession

LAST = 9  # messages


class LastMessages(AgentMiddleware[Any, Any, Any]):
    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(messages=request.messages[-LAST:]))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(messages=request.messages[-LAST:]))


class Limited(OpenAIAgents):
    """With the SDK's own limit of how much of a session is sent."""

    async def run(self, request: str, thread: str) -> str:
        if thread not in self.sessions:
            session = LimpetSession(self.memory, thread, **self.options)  # type: ignore[arg-type]
            session.session_settings = SessionSettings(limit=LAST)
            self.sessions[thread] = session
        return await super().run(request, thread)


def langchain(*args: Any, **options: Any) -> LangChain:
    return LangChain(*args, before=[LastMessages()], **options)


def pydantic_ai(*args: Any, **options: Any) -> PydanticAI:
    return PydanticAI(*args, before=[ProcessHistory(lambda messages: messages[-LAST:])], **options)


def google_adk(*args: Any, **options: Any) -> GoogleADK:
    return GoogleADK(*args, before=[ContextFilterPlugin(num_invocations_to_keep=4)], **options)


# The loop over the Anthropic SDK is our own, which trims nothing.
TRIMMED: dict[Any, Callable[..., Any]] = {
    LangChain: langchain,
    PydanticAI: pydantic_ai,
    OpenAIAgents: Limited,
    GoogleADK: google_adk,
    AnthropicSDK: AnthropicSDK,
}
