"""OpenAI's Responses API, as far as Codex CLI uses it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from clients.stub import NUMBERS, Json, Say, Stub, Turn, Use, stream

SUMMARY = "CONTEXT CHECKPOINT COMPACTION"
AGENTS = "multi_agent_v1"  # the namespace of the tools for sub-agents
AGENT_ID = r"agent_id\W+([0-9a-f-]+)"


class Responses(Stub):
    def __init__(self, turns: Sequence[Turn]) -> None:
        super().__init__(turns)
        self.begun: dict[str, list[Turn]] = {}  # turns of sub-agents, by what they were asked

    def answer(self, path: str, request: Json) -> tuple[int, bytes, str]:
        last = json.dumps(request.get("input", [])[-1:])
        prompts = [json.dumps(item) for item in request.get("input", []) if item.get("role") == "user"]
        child = next((turns for asked, turns in self.begun.items() if asked in prompts[-1]), None)
        if child is not None:
            self.requests.append(request)
            turn = child.pop(0)
        else:
            turn = self.turn(request, summary=SUMMARY in last, aside=not request.get("tools"))
        if isinstance(turn, Use) and turn.begun:
            self.begun[turn.arguments["message"]] = list(turn.begun)
        if isinstance(turn, Use) and turn.tool == "wait_agent":
            turn = turn._replace(arguments={"targets": re.findall(AGENT_ID, json.dumps(request["input"]))})
        number = next(NUMBERS)
        usage = {"input_tokens": turn.used, "output_tokens": 10, "total_tokens": turn.used + 10}
        done = {"id": f"resp_{number}", "object": "response", "output": [], "usage": usage}
        events: list[Json] = [
            {"type": "response.created", "response": {"id": f"resp_{number}"}},
            {"type": "response.output_item.done", "output_index": 0, "item": _item(turn)},
            {"type": "response.completed", "response": done},
        ]
        return 200, stream(events), "text/event-stream"


def _item(turn: Turn) -> Json:
    if isinstance(turn, Say):
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        return {"type": "message", "role": "assistant", "id": f"msg_{next(NUMBERS)}", "content": content}
    space = {"namespace": turn.server if turn.server == AGENTS else f"mcp__{turn.server}"} if turn.server else {}
    number = next(NUMBERS)
    call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": turn.tool}
    return {**call, **space, "arguments": json.dumps(turn.arguments)}
