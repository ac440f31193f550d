"""The OpenAI Agents SDK with Limpet: a night's log is read, a finding is noted, and the next run gets the handoff.

A scripted Model stands in for OpenAI's, so that this runs offline; everything else is as you would write it.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import limpet
from limpet.adapters.openai_agents import LimpetSession


@function_tool
def read_log(night: str) -> str:
    """Read the log of a night."""
    return "\n".join(f"{night} {job:03d} {'FAILED: disk full' if job == 13 else 'ok'}" for job in range(300))


class Scripted(Model):
    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)

    async def get_response(self, system_instructions: str | None, *args: Any, **kwargs: Any) -> ModelResponse:
        told = "read Tuesday next" in (system_instructions or "")
        print("- the model is called" + (", and reads Monday's handoff in its prompt" if told else ""))
        step = self.steps.pop(0)
        if isinstance(step, str):
            text = ResponseOutputText(annotations=[], text=step, type="output_text")
            item: Any = ResponseOutputMessage(
                id="msg", content=[text], role="assistant", status="completed", type="message"
            )
        else:
            name, arguments = step
            item = ResponseFunctionToolCall(
                arguments=json.dumps(arguments), call_id=f"call_{name}", name=name, type="function_call"
            )
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


async def main(hold: limpet.Limpet) -> None:
    model = Scripted(
        ("read_log", {"night": "monday"}),
        ("add_note", {"content": "Job 13 failed on Monday: disk full", "tags": ["ops"]}),
        ("write_session_handoff", {"content": "Monday is read; read Tuesday next."}),
        "Job 13 failed: the disk was full.",
        "I go on with Tuesday.",
    )
    for night, request in (("monday", "What failed?"), ("tuesday", "Go on.")):
        memory = LimpetSession(hold, night)
        agent = Agent(name="Night shift", model=model, tools=[*memory.tools, read_log])
        config, hooks = memory.run_config(), memory.hooks
        result = await Runner.run(agent, request, session=memory, run_config=config, hooks=hooks)
        print(f"The answer on {night}: {result.final_output}")
    print("Notes that every later session finds:", [note.content for note in hold.session("monday").notes.list()])
    print(
        "Results kept whole outside the window:",
        [output.tool for output in hold.session("monday").outputs.list().outputs],
    )


set_tracing_disabled(True)
with limpet.open("openai_agents.db") as opened:
    asyncio.run(main(opened))
