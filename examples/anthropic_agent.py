"""The Anthropic SDK with Limpet: a night's log is read, a finding is noted, and the next run gets the handoff.

A scripted transport stands in for the API, so that this runs offline; everything else is as you would write it.
"""

import json
from typing import Any

import anthropic
import httpx2

import limpet
from limpet.adapters.anthropic import LimpetMessages
from limpet.adapters.anthropic_memory import LimpetMemoryTool


@anthropic.beta_tool
def read_log(night: str) -> str:
    """Read the log of a night."""
    return "\n".join(f"{night} {job:03d} {'FAILED: disk full' if job == 13 else 'ok'}" for job in range(300))


STEPS: list[Any] = [
    ("read_log", {"night": "monday"}),
    ("add_note", {"content": "Job 13 failed on Monday: disk full", "tags": ["ops"]}),
    (
        "memory",
        {"command": "create", "path": "/memories/handoff.md", "file_text": "Monday is read; read Tuesday next."},
    ),
    "Job 13 failed: the disk was full.",
    "I go on with Tuesday.",
]


def scripted(request: httpx2.Request) -> httpx2.Response:
    told = "read Tuesday next" in str(json.loads(request.content)["system"])
    print("- the model is called" + (", and reads Monday's handoff in its prompt" if told else ""))
    step = STEPS.pop(0)
    if isinstance(step, str):
        block: Any = {"type": "text", "text": step}
    else:
        block = {"type": "tool_use", "id": f"toolu_{len(STEPS)}", "name": step[0], "input": step[1]}
    reply = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [block],
        "stop_reason": "end_turn" if isinstance(step, str) else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 10},
    }
    return httpx2.Response(200, json=reply)


transport = httpx2.Client(transport=httpx2.MockTransport(scripted))
client = anthropic.Anthropic(api_key="none", base_url="http://scripted", http_client=transport)
with limpet.open("anthropic.db") as hold:
    for night, request in (("monday", "What failed?"), ("tuesday", "Go on.")):
        files = LimpetMemoryTool(hold.session(night))
        memory = LimpetMessages(hold, night, tools=[read_log, files])
        reply = memory.run(client, request, model="scripted", max_tokens=1_000)
        text = "".join(block.text for block in reply.content if block.type == "text")
        print(f"The answer on {night}: {text}")
    print("Notes that every later session finds:", [note.content for note in hold.session("monday").notes.list()])
    print(
        "Results kept whole outside the window:",
        [output.tool for output in hold.session("monday").outputs.list().outputs],
    )
