"""Ways to talk to our MCP server in tests: raw lines, raw HTTP, and the official SDK's client.

The server always runs as a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Self

import httpx2
import mcp_types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from person import trusted

HANDSHAKE = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
REVISIONS = [*HANDSHAKE, MODERN]
TOKEN = "a-token-for-tests-only"
CLIENT = {"name": "tests", "version": "1"}

# The SDK first, which a server imports with the first request of MCP: on a busy machine that may take longer than the
# ten seconds in which a client must be told which revisions there are.
HTTP = """
import sys
import mcp.server
from limpet import wiring
from limpet.doors.http import server
with wiring.open(sys.argv[1]) as hold:
    offer = server.Offer(sys.argv[4] or None, structured=True)
    server.serve(hold, sys.argv[2], offer, session=sys.argv[3] or None, port=0,
                 on_ready=lambda url: print(url, flush=True))
"""

Reply = dict[str, Any]


def stdio_command(store: str, profile: str = "full", session: str = "", *, structured: bool = True) -> list[str]:
    """Tests read values, as programs do; what models read is in test_mcp_texts.py."""
    how = ["--structured"] if structured else []
    command = [sys.executable, "-m", "limpet", "mcp", *trusted(store), "--profile", profile, *how]
    return [*command, "--session", session] if session else command


def meta(**more: object) -> Reply:
    """What every request of 2026-07-28 carries."""
    return {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": CLIENT,
        "io.modelcontextprotocol/clientCapabilities": {},
        **more,
    }


def hello(revision: str) -> Reply:
    return {"protocolVersion": revision, "capabilities": {}, "clientInfo": CLIENT}


class Lines:
    """A client that writes lines to the server and reads lines back, and knows nothing more."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if env is None else {**os.environ, **env},
        )
        self.revision = MODERN
        self.last_id = 0
        self.ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_problem: object) -> None:
        self.process.kill()
        if not self.ended:
            self.process.communicate()

    def ends(self) -> int:
        """Close the server's input, as clients do. Returns its exit code."""
        self.process.communicate(timeout=30)
        self.ended = True
        return self.process.returncode

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: object) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), f"the server went away: {line!r}"
        return json.loads(line)

    def raw(self, method: str, params: Mapping[str, object] | None = None) -> Reply:
        """The whole reply to one request."""
        self.last_id += 1
        message: Reply = {"jsonrpc": "2.0", "id": self.last_id, "method": method}
        given = dict(params or {})
        if self.revision == MODERN and method != "initialize":
            given["_meta"] = meta() | dict(given.get("_meta") or {})  # type: ignore[call-overload]
        if given:
            message["params"] = given
        self.send(message)
        reply: Reply = self.read()
        assert reply["jsonrpc"] == "2.0"
        assert reply["id"] == self.last_id
        return reply

    def ask(self, method: str, params: Mapping[str, object] | None = None) -> Reply:
        """The result of one request, which must have one."""
        reply = self.raw(method, params)
        assert "error" not in reply, reply
        result: Reply = reply["result"]
        return result

    def refused(self, method: str, params: Mapping[str, object] | None = None) -> Reply:
        """The error of one request, which must have one."""
        reply = self.raw(method, params)
        assert "result" not in reply, reply
        error: Reply = reply["error"]
        return error

    def call(self, tool: str, **arguments: object) -> Reply:
        """What a tool answers, as values."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        answer: Reply = result.get("structuredContent", {})  # earlier revisions have none
        return answer

    def text(self, tool: str, **arguments: object) -> str:
        """The same, as a model reads it."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        return str(result["content"][0]["text"])

    def open(self, revision: str) -> Reply:
        """Get to know the server in a revision: the result of initialize or of server/discover."""
        self.revision = revision
        if revision == MODERN:
            return self.ask("server/discover")
        answer = self.ask("initialize", hello(revision))
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def leave(self, timeout: float = 20) -> tuple[int, bytes, bytes]:
        """Close the server's input; its exit code and what was left to read from it."""
        out, err = self.process.communicate(timeout=timeout)
        return self.process.returncode, out, err


@contextmanager
def http_server(
    store: Path | str, profile: str = "full", session: str = "", token: str | None = TOKEN
) -> Iterator[str]:
    """Our server on a free port; gives the address of its MCP endpoint."""
    command = [sys.executable, "-c", HTTP, str(store), profile, session, token or ""]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), process.communicate()
        yield url
        assert process.poll() is None, "the server ended by itself"
    finally:
        process.terminate()
        out, err = process.communicate(timeout=20)
    assert process.returncode in (0, -15), err
    assert out == ""


@asynccontextmanager
async def sdk_session(
    *,
    command: Sequence[str] | None = None,
    url: str | None = None,
    revision: str,
    headers: Mapping[str, str] | None = None,
) -> AsyncIterator[ClientSession]:
    """The official client, connected in the revision asked for."""
    if command is not None:
        transport = stdio_client(
            StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(os.environ))
        )
        async with transport as (read, write), ClientSession(read, write) as session:
            await agree(session, revision)
            yield session
    else:
        assert url is not None
        sent = {"Authorization": f"Bearer {TOKEN}", **(headers or {})}
        async with (
            httpx2.AsyncClient(headers=sent, timeout=30) as http,
            streamable_http_client(url, http_client=http) as (read, write),
            ClientSession(read, write) as session,
        ):
            await agree(session, revision)
            yield session


async def agree(session: ClientSession, revision: str) -> None:
    """What the SDK's client does to connect, for the revisions it would not choose by itself too."""
    if revision == MODERN:
        await session.discover()
        return
    params = types.InitializeRequestParams(
        protocol_version=revision,
        capabilities=types.ClientCapabilities(),
        client_info=types.Implementation(name="tests", version="1"),
    )
    result = await session.send_request(types.InitializeRequest(params=params), types.InitializeResult)
    assert result.protocol_version == revision
    session.adopt(result)
    await session.send_notification(types.InitializedNotification())
