"""A scripted MCP server over HTTP in a thread of the test: it does what it is told and remembers every request."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Json = dict[str, Any]


class Request(NamedTuple):
    verb: str
    path: str
    headers: dict[str, str]  # names in small letters
    body: Any


class Handler(BaseHTTPRequestHandler):
    """One request, with the ways a script may answer it."""

    protocol_version = "HTTP/1.1"
    server: Scripted

    def do_POST(self) -> None:
        self.handle_one()

    do_GET = do_DELETE = do_POST  # noqa: N815

    def handle_one(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, json.loads(body) if body else None)
        self.server.requests.append(request)
        self.server.script(self, request)

    def plain(self, status: int, value: object = None, headers: Mapping[str, str] | None = None) -> None:
        """An answer with a body of JSON, or without any."""
        body = b"" if value is None else value if isinstance(value, bytes) else json.dumps(value, indent=1).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, headers: Mapping[str, str] | None = None) -> None:
        """Begin a stream of events; it ends with the connection."""
        self.send_response(200)
        for name, text in {"Content-Type": "text/event-stream", "Connection": "close", **(headers or {})}.items():
            self.send_header(name, text)
        self.end_headers()
        self.close_connection = True

    def event(self, value: object, id: str | None = None, retry: int | None = None) -> None:
        lines = [f"id: {id}"] if id else []
        lines += [f"retry: {retry}"] if retry is not None else []
        data = "" if value is None else json.dumps(value, indent=1)
        lines += [f"data: {line}" for line in data.split("\n")]
        self.wfile.write("\r\n".join([*lines, "", ""]).encode())
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        pass


Script = Callable[[Handler, Request], None]


class Scripted(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, script: Script, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.script = script
        self.requests: list[Request] = []
        self.sockets: list[Any] = []

    def process_request(self, request: Any, client_address: Any) -> None:
        self.sockets.append(request)
        super().process_request(request, client_address)

    def end(self) -> None:
        """As when the process of a server ends: nobody listens, and no connection stays open."""
        self.shutdown()
        self.server_close()
        for one in self.sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"

    def asked(self, method: str) -> list[Request]:
        return [one for one in self.requests if isinstance(one.body, dict) and one.body.get("method") == method]


@contextmanager
def serving(script: Script, port: int = 0, certificate: str | None = None) -> Iterator[Scripted]:
    server = Scripted(script, port)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.end()
        thread.join(5)


def result(request: Request, value: object) -> Json:
    return {"jsonrpc": "2.0", "id": request.body["id"], "result": value}


def text(request: Request, words: str) -> Json:
    return result(request, {"content": [{"type": "text", "text": words}]})


def welcome(handler: Handler, request: Request, session: str | None = "s-1") -> bool:
    """Answer what every session begins and ends with; whether that was it."""
    method = request.body.get("method") if isinstance(request.body, dict) else None
    if method == "initialize":
        agreed = request.body["params"]["protocolVersion"]
        given = {"Mcp-Session-Id": session} if session else {}
        answer = {"protocolVersion": agreed, "capabilities": {"tools": {}}, "serverInfo": {"name": "a", "version": "1"}}
        handler.plain(200, result(request, answer), given)
    elif request.verb == "DELETE" or (isinstance(method, str) and method.startswith("notifications/")):
        handler.plain(202)
    elif request.verb == "GET":
        handler.plain(405)
    else:
        return False
    return True
