"""A model on this machine that says what a script tells it: Anthropic's Messages API as far as Claude Code uses it.

Every request is kept, so that tests can look at what a client really sent. Turns are functions from the request
to content blocks; requests that are no turns of the conversation (titles, summaries) get a fixed answer.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
Turn = Callable[[Json], list[Json]]
NUMBERS = itertools.count(1)
SUMMARY = "Your task is to create a detailed summary"


def say(text: str) -> Turn:
    return lambda request: [{"type": "text", "text": text}]


def use(name: str, **arguments: Any) -> Turn:
    return lambda request: [{"type": "tool_use", "id": f"toolu_{next(NUMBERS)}", "name": name, "input": arguments}]


class TooLong(Exception):
    """The turn answers as the real API does when a request is too long."""


def too_long(request: Json) -> list[Json]:
    raise TooLong


class Stub:
    """The server. `requests` are the turns of the conversation in order, `summaries` the requests for a summary."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.turns = list(turns)
        self.requests: list[Json] = []
        self.summaries: list[Json] = []
        self._lock = threading.Lock()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                return

            def do_GET(self) -> None:
                self.reply(404, b"{}", "application/json")

            do_HEAD = do_GET  # noqa: N815

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if "count_tokens" in self.path:
                    return self.reply(200, b'{"input_tokens": 100}', "application/json")
                try:
                    blocks = stub.blocks(request)
                except TooLong:
                    why = "prompt is too long: 215000 tokens > 200000 maximum"
                    problem = {"type": "invalid_request_error", "message": why}
                    return self.reply(400, json.dumps({"type": "error", "error": problem}).encode(), "application/json")
                if request.get("stream"):
                    return self.reply(200, events(request, blocks), "text/event-stream")
                return self.reply(200, json.dumps(message(request, blocks)).encode(), "application/json")

            def reply(self, code: int, body: bytes, kind: str) -> None:
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Stub:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def blocks(self, request: Json) -> list[Json]:
        text = json.dumps(request.get("messages"))
        with self._lock:
            if SUMMARY in text:
                self.summaries.append(request)
                return [{"type": "text", "text": "<summary>They worked on the parser.</summary>"}]
            if not request.get("tools"):
                return [{"type": "text", "text": "{}"}]  # a title, or a topic: no turn
            self.requests.append(request)
            turn = self.turns.pop(0) if self.turns else say("done")
        return turn(request)


def message(request: Json, blocks: list[Json]) -> Json:
    why = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    usage = {"input_tokens": 100, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {
        "id": f"msg_{next(NUMBERS)}",  # clients put messages of one id together
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "stub"),
        "content": blocks,
        "stop_reason": why,
        "stop_sequence": None,
        "usage": usage,
    }


def events(request: Json, blocks: list[Json]) -> bytes:
    """The same message as a stream of events."""
    whole = message(request, blocks)
    found: list[Json] = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
    for at, block in enumerate(blocks):
        if block["type"] == "text":
            start: Json = {"type": "text", "text": ""}
            delta: Json = {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        found.append({"type": "content_block_start", "index": at, "content_block": start})
        found.append({"type": "content_block_delta", "index": at, "delta": delta})
        found.append({"type": "content_block_stop", "index": at})
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    found.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 10}})
    found.append({"type": "message_stop"})
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in found).encode()
