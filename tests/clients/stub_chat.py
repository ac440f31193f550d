"""OpenAI's Chat Completions API, as far as Copilot CLI and OpenCode use it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from clients.stub import NUMBERS, Json, Say, Stub, Turn

SUMMARIES = (
    "Here is the conversation so far",  # OpenCode
    "Please create a detailed summary of the conversation so far",  # Copilot CLI
)


class Chat(Stub):
    """`joint` stands between the name of a server and the name of its tool."""

    def __init__(self, turns: Sequence[Turn], joint: str) -> None:
        super().__init__(turns)
        self.joint = joint

    def answer(self, path: str, request: Json) -> tuple[int, bytes, str]:
        last = json.dumps(request["messages"][-1])
        summary = any(words in last for words in SUMMARIES)
        turn = self.turn(request, summary=summary, aside=not request.get("tools"))
        number = next(NUMBERS)
        message: Json = {"role": "assistant", "content": turn.text if isinstance(turn, Say) else None}
        if not isinstance(turn, Say):
            name = f"{turn.server}{self.joint}{turn.tool}" if turn.server else turn.tool
            function = {"name": name, "arguments": json.dumps(turn.arguments)}
            message["tool_calls"] = [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]
        why = "stop" if isinstance(turn, Say) else "tool_calls"
        usage = {"prompt_tokens": turn.used, "completion_tokens": 10, "total_tokens": turn.used + 10}
        whole: Json = {"id": f"chat_{number}", "created": 1, "model": request.get("model", "stub"), "usage": usage}
        if not request.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": why}
            body = {**whole, "object": "chat.completion", "choices": [choice]}
            return 200, json.dumps(body).encode(), "application/json"
        piece = {**whole, "object": "chat.completion.chunk", "usage": None}
        chunks = [
            {**piece, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**piece, "choices": [{"index": 0, "delta": {}, "finish_reason": why}]},
            {**piece, "choices": [], "usage": usage},
        ]
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        return 200, text.encode(), "text/event-stream"
