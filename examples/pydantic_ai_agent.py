"""Pydantic AI with Limpet: a night's log is read, a finding is noted, and tomorrow's run begins with the handoff.

A FunctionModel stands in for yours, so that this runs offline; everything else is as you would write it.
"""

from collections.abc import Iterator

from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import limpet
from limpet.adapters.pydantic_ai import LimpetMemory

SCRIPT: Iterator[ToolCallPart | TextPart] = iter(
    [
        ToolCallPart("read_log", {"night": "monday"}),
        ToolCallPart("add_note", {"content": "Job 13 failed on Monday: disk full", "tags": ["ops"]}),
        ToolCallPart("write_session_handoff", {"content": "Monday is read; read Tuesday next."}),
        TextPart("Job 13 failed: the disk was full."),
        TextPart("I go on with Tuesday."),
    ]
)


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    told = "read Tuesday next" in (info.instructions or "")
    print("- the model is called" + (", and reads Monday's handoff in its prompt" if told else ""))
    return ModelResponse(parts=[next(SCRIPT)])


with limpet.open("pydantic_ai.db") as hold:
    agent = Agent(FunctionModel(model), capabilities=[LimpetMemory(hold)])

    @agent.tool_plain
    def read_log(night: str) -> str:
        """Read the log of a night."""
        return "\n".join(f"{night} {job:03d} {'FAILED: disk full' if job == 13 else 'ok'}" for job in range(300))

    print("The answer on monday:", agent.run_sync("What failed?", conversation_id="monday").output)
    print("The answer on tuesday:", agent.run_sync("Go on.", conversation_id="tuesday").output)
    print("Notes that every later session finds:", [note.content for note in hold.session("monday").notes.list()])
    print(
        "Results kept whole outside the window:",
        [output.tool for output in hold.session("monday").outputs.list().outputs],
    )
