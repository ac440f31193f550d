"""The runner of Google's ADK with a scripted model."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from google.adk.agents import LlmAgent, RunConfig
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from bench.frameworks.script import Do, Shown, Tool, Window, size
from bench.frameworks.script import Model as Script
from limpet.adapters.google_adk import LimpetPlugin, session_of
from limpet.api import Limpet


def shown(content: Any) -> list[Shown]:
    out = []
    for part in content.parts:
        if part.function_call is not None:
            out.append(Shown("assistant", f"{part.function_call.name} {json.dumps(part.function_call.args)}"))
        elif part.function_response is not None:
            response = part.function_response.response
            out.append(
                Shown("tool", str(next(iter(response.values()))) if len(response) == 1 else json.dumps(response))
            )
        else:
            out.append(Shown("assistant" if content.role == "model" else "user", part.text or ""))
    return out


class Scripted(BaseLlm):
    model: str = "scripted"
    script: Any = None
    windows: Any = None

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        prompt = llm_request.config.system_instruction
        window = [Shown("system", prompt)] if prompt else []
        window += [one for content in llm_request.contents for one in shown(content)]
        self.windows.append(window)
        step = self.script(window)
        if isinstance(step, Do):
            part = types.Part(function_call=types.FunctionCall(name=step.name, args=step.arguments))
        else:
            part = types.Part(text=step.text)
        used = types.GenerateContentResponseUsageMetadata(prompt_token_count=size(window))
        yield LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=used)


class GoogleADK:
    def __init__(self, model: Script, tools: Sequence[Tool], memory: Limpet, **options: Any) -> None:
        self.windows: list[Window] = []
        service = options.pop("service", None)
        before = list(options.pop("before", ()))
        llm = Scripted(script=model, windows=self.windows)
        self.agent = LlmAgent(name="scripted", model=llm, tools=list(tools))
        app = App(name="app", root_agent=self.agent, plugins=[*before, LimpetPlugin(memory, **options)])
        self.runner = InMemoryRunner(app=app)
        if service is not None:
            self.runner.session_service = service

    def kept_by_framework(self) -> dict[str, Any]:
        return {"service": self.runner.session_service}

    def session_of(self, thread: str) -> str:
        return session_of("app", "u", thread)

    async def run(self, request: str, thread: str) -> str:
        sessions = self.runner.session_service
        if await sessions.get_session(app_name="app", user_id="u", session_id=thread) is None:
            await sessions.create_session(app_name="app", user_id="u", session_id=thread)
        said = ""
        message = types.Content(role="user", parts=[types.Part(text=request)])
        config = RunConfig(max_llm_calls=10_000)
        async for event in self.runner.run_async(
            user_id="u", session_id=thread, new_message=message, run_config=config
        ):
            if event.is_final_response() and event.content:
                said = "".join(part.text or "" for part in event.content.parts or ())
        return said
