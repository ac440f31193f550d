"""Google's Gemini API, as far as Gemini CLI uses it."""

from __future__ import annotations

import json

from clients.stub import Json, Say, Stub, Turn


class Gemini(Stub):
    summary = "<state_snapshot>They worked on the parser.</state_snapshot>"

    def answer(self, path: str, request: Json) -> tuple[int, bytes, str]:
        if "countTokens" in path:
            return 200, b'{"totalTokens": 100}', "application/json"
        tools = bool(request.get("tools"))
        turn = self.turn(request, summary=not tools and "<state_snapshot>" in json.dumps(request), aside=not tools)
        usage = {"promptTokenCount": turn.used, "candidatesTokenCount": 10, "totalTokenCount": turn.used + 10}
        candidate = {"index": 0, "content": {"role": "model", "parts": [_part(turn)]}, "finishReason": "STOP"}
        body = json.dumps({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "stub"})
        if "streamGenerateContent" in path:
            return 200, f"data: {body}\n\n".encode(), "text/event-stream"
        return 200, body.encode(), "application/json"


def _part(turn: Turn) -> Json:
    if isinstance(turn, Say):
        return {"text": turn.text}
    name = f"mcp_{turn.server}_{turn.tool}" if turn.server else turn.tool
    return {"functionCall": {"name": name, "args": turn.arguments}}
