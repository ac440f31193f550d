"""Anthropic's Messages API, as far as Claude Code uses it."""

from __future__ import annotations

import json

from clients.stub import NUMBERS, Json, Say, Stub, Turn, stream

SUMMARY = "Your task is to create a detailed summary"


class Anthropic(Stub):
    def answer(self, path: str, request: Json) -> tuple[int, bytes, str]:
        if "count_tokens" in path:
            return 200, b'{"input_tokens": 100}', "application/json"
        summary = SUMMARY in json.dumps(request.get("messages"))
        turn = self.turn(request, summary=summary, aside=not request.get("tools"))
        if request.get("stream"):
            return 200, stream(_events(request, turn)), "text/event-stream"
        return 200, json.dumps(_message(request, turn)).encode(), "application/json"


def _block(turn: Turn) -> Json:
    if isinstance(turn, Say):
        return {"type": "text", "text": turn.text}
    name = f"mcp__{turn.server}__{turn.tool}" if turn.server else turn.tool
    return {"type": "tool_use", "id": f"toolu_{next(NUMBERS)}", "name": name, "input": turn.arguments}


def _message(request: Json, turn: Turn) -> Json:
    block = _block(turn)
    usage = {
        "input_tokens": turn.used,
        "output_tokens": 10,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }
    return {
        "id": f"msg_{next(NUMBERS)}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "stub"),
        "content": [block],
        "stop_reason": block["type"] if block["type"] == "tool_use" else "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }


def _events(request: Json, turn: Turn) -> list[Json]:
    """The same message as a stream of events."""
    whole = _message(request, turn)
    (block,) = whole["content"]
    if block["type"] == "text":
        start: Json = {"type": "text", "text": ""}
        delta: Json = {"type": "text_delta", "text": block["text"]}
    else:
        start = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    return [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 10}},
        {"type": "message_stop"},
    ]
