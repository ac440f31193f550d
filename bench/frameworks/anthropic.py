"""The client of the Anthropic SDK against a scripted model behind a server on this machine, and a loop over it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread
from typing import Any

from anthropic import AsyncAnthropic, beta_async_tool, beta_tool

from bench.frameworks.script import Do, Shown, Tool, Window, size
from bench.frameworks.script import Model as Script
from limpet.adapters.anthropic import LimpetMessages
from limpet.api import Limpet


def text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(_block(block) for block in content)


def _block(block: Any) -> str:
    if block["type"] == "tool_use":
        return f"{block['name']} {json.dumps(block['input'])}"
    return text(block.get("content", "")) if block["type"] == "tool_result" else str(block.get("text", ""))


def shown(body: Any) -> Window:
    window = [Shown("system", text(body["system"]))] if body.get("system") else []
    for message in body["messages"]:
        blocks = message["content"]
        if isinstance(blocks, str):
            window.append(Shown(message["role"], blocks))
            continue
        for block in blocks:
            role = "tool" if block["type"] == "tool_result" else message["role"]
            window.append(Shown(role, _block(block)))
    return window


NUMBERS = count(1)  # of answers: ids are unique, as a provider's are


class Scripted(BaseHTTPRequestHandler):
    """Answers requests for messages as the API does."""

    script: Script
    bodies: list[Any]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.bodies.append(body)
        window = shown(body)
        step = type(self).script(window)
        number = next(NUMBERS)
        if isinstance(step, Do):
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": step.name, "input": step.arguments}
        else:
            block = {"type": "text", "text": step.text}
        reply = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [block],
            "stop_reason": "tool_use" if isinstance(step, Do) else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": size(window), "output_tokens": 10},
        }
        data = b"".join(streamed(reply)) if body.get("stream") else json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if body.get("stream") else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Say nothing: the requests are in `bodies`."""


def streamed(reply: Any) -> Iterator[bytes]:
    """A reply as the events of a stream."""
    (block,) = reply["content"]
    if block["type"] == "text":
        empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    events: list[Any] = [
        {"type": "message_start", "message": {**reply, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": reply["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": 10},
        },
        {"type": "message_stop"},
    ]
    for event in events:
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


@contextmanager
def served(script: Script) -> Iterator[tuple[str, list[Any]]]:
    """The address of a model that goes by the script, and the requests it got."""
    bodies: list[Any] = []
    handler = type("Handler", (Scripted,), {"script": staticmethod(script), "bodies": bodies})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", bodies
        finally:
            server.shutdown()
            thread.join()


class AnthropicSDK:
    def __init__(self, model: Script, tools: Sequence[Tool], memory: Limpet, **options: Any) -> None:
        self.script, self.memory, self.options = model, memory, options
        made = [beta_async_tool(tool) if inspect.iscoroutinefunction(tool) else beta_tool(tool) for tool in tools]
        self.tools: list[Any] = made
        self.windows: list[Window] = []
        self.bodies: list[Any] = []
        self.threads: dict[str, LimpetMessages] = {}

    async def run(self, request: str, thread: str) -> str:
        if thread not in self.threads:
            self.threads[thread] = LimpetMessages(self.memory, thread, tools=self.tools, **self.options)
        with served(self.script) as (address, bodies):
            try:
                async with AsyncAnthropic(api_key="none", base_url=address, max_retries=0) as client:
                    reply = await self.threads[thread].arun(client, request, model="scripted", max_tokens=1_000)
            finally:
                self.bodies += bodies
                self.windows += map(shown, bodies)
        return text([block.to_dict() for block in reply.content])
