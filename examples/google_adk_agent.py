"""Google's ADK with Limpet: a night's log is read, a finding is noted, and the next run gets the handoff.

A scripted model stands in for Gemini, so that this runs offline; everything else is as you would write it.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

import limpet
from limpet.adapters.google_adk import LimpetPlugin, session_of


def read_log(night: str) -> str:
    """Read the log of a night."""
    return "\n".join(f"{night} {job:03d} {'FAILED: disk full' if job == 13 else 'ok'}" for job in range(300))


class Scripted(BaseLlm):
    model: str = "scripted"
    steps: list[Any]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        told = "read Tuesday next" in str(llm_request.config.system_instruction)
        print("- the model is called" + (", and reads Monday's handoff in its prompt" if told else ""))
        step = self.steps.pop(0)
        if isinstance(step, str):
            part = types.Part(text=step)
        else:
            part = types.Part(function_call=types.FunctionCall(name=step[0], args=step[1]))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def main(hold: limpet.Limpet) -> None:
    model = Scripted(
        steps=[
            ("read_log", {"night": "monday"}),
            ("add_note", {"content": "Job 13 failed on Monday: disk full", "tags": ["ops"]}),
            ("write_session_handoff", {"content": "Monday is read; read Tuesday next."}),
            "Job 13 failed: the disk was full.",
            "I go on with Tuesday.",
        ]
    )
    agent = LlmAgent(name="night_shift", model=model, tools=[read_log])
    runner = InMemoryRunner(app=App(name="ops", root_agent=agent, plugins=[LimpetPlugin(hold)]))
    for night, request in (("monday", "What failed?"), ("tuesday", "Go on.")):
        await runner.session_service.create_session(app_name="ops", user_id="ann", session_id=night)
        message = types.Content(role="user", parts=[types.Part(text=request)])
        async for event in runner.run_async(user_id="ann", session_id=night, new_message=message):
            if event.is_final_response() and event.content and event.content.parts:
                print(f"The answer on {night}: {event.content.parts[0].text}")
    print(
        "Notes that every later session finds:",
        [note.content for note in hold.session(session_of("ops", "ann", "monday")).notes.list()],
    )
    print(
        "Results kept whole outside the window:",
        [output.tool for output in hold.session(session_of("ops", "ann", "monday")).outputs.list().outputs],
    )


with limpet.open("google_adk.db") as opened:
    asyncio.run(main(opened))
