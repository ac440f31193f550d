"""OpenAI's Responses API, as far as Codex CLI uses it."""

from __future__ import annotations

import json

from clients.stub import NUMBERS, Json, Say, Stub, Turn, stream

SUMMARY = "CONTEXT CHECKPOINT COMPACTION"


class Responses(Stub):
    def answer(self, path: str, request: Json) -> tuple[int, bytes, str]:
        last = json.dumps(request.get("input", [])[-1:])
        turn = self.turn(request, summary=SUMMARY in last, aside=not request.get("tools"))
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
    space = {"namespace": f"mcp__{turn.server}"} if turn.server else {}
    number = next(NUMBERS)
    call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": turn.tool}
    return {**call, **space, "arguments": json.dumps(turn.arguments)}
