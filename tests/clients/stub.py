"""A model on this machine that says what a script tells it, whichever provider's API it speaks.

Every request is kept, so that tests can look at what a client really sent. Requests that are no turns of the
conversation (titles, summaries) get a fixed answer.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

Json = dict[str, Any]
NUMBERS = itertools.count(1)  # clients put messages of one id together


class Say(NamedTuple):
    text: str
    used: int = 100  # tokens the request is said to have had


class Use(NamedTuple):
    """A call of a tool. `server` is the MCP server's name, empty for a tool of the client itself."""

    tool: str
    arguments: Json
    server: str = ""
    used: int = 100
    begun: tuple[Any, ...] = ()  # turns of the sub-agent that this begins, where it works beside its parent


Turn = Say | Use


class Stub:
    """The server. `requests` are the turns of the conversation in order, `summaries` the requests for a summary."""

    summary = "<summary>They worked on the parser.</summary>"

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.turns = list(turns)
        self.requests: list[Json] = []
        self.summaries: list[Json] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self.answer))
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def turn(self, request: Json, *, summary: bool, aside: bool) -> Turn:
        """What the model says next; `aside` is a request that is no turn of the conversation."""
        with self._lock:
            if summary:
                self.summaries.append(request)
                return Say(self.summary)
            if aside:
                return Say("{}")
            self.requests.append(request)
            return self.turns.pop(0) if self.turns else Say("done")

    def answer(self, path: str, request: Json) -> tuple[int, bytes, str]:
        """Status, body and media type for a request. Each provider has its own."""
        raise NotImplementedError


def _handler(answer: Callable[[str, Json], tuple[int, bytes, str]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            return

        def do_GET(self) -> None:
            self.reply(404, b"{}", "application/json")

        do_HEAD = do_GET  # noqa: N815 - named by the library

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.reply(*answer(self.path, request))

        def reply(self, code: int, body: bytes, kind: str) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    return Handler


def stream(events: Sequence[Json]) -> bytes:
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()
