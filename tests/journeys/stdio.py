"""The real MCP server of the command line as a child process, spoken to in raw lines of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Self

from limpet.clients import session_variables

PROJECT = "demo"
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}


def environment() -> dict[str, str]:
    """The test's environment without the names of sessions we may be running in."""
    return {name: value for name, value in os.environ.items() if name not in ("LIMPET_SESSION", *session_variables())}


class Server:
    """`limpet mcp` in a process of its own, on the project `demo` of a store, and what it answers."""

    def __init__(self, store: str, *more: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "limpet", "mcp", "--profile", "full", "--structured", *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment(), "LIMPET_STORE": store, "LIMPET_PROJECT": PROJECT},
        )
        self.asked = 0
        hello = self.request("initialize", HELLO)
        assert hello["result"]["protocolVersion"] == "2025-06-18"
        self.instructions = str(hello["result"]["instructions"])
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_problem: object) -> None:
        self.process.kill()
        self.process.communicate()

    def write(self, message: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), "the server went away"
        reply: dict[str, Any] = json.loads(line)
        return reply

    def ask(self, method: str, params: dict[str, Any]) -> int:
        """Send a request without waiting; its number."""
        self.asked += 1
        self.write({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params})
        return self.asked

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = self.ask(method, params)
        reply = self.read()
        assert reply["id"] == number
        return reply

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """The answer of a tool call that must succeed."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})["result"]
        assert not result.get("isError"), result
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    def refusal(self, tool: str, arguments: dict[str, Any]) -> str:
        """The sentence of a tool call that must fail as a tool, not as a protocol."""
        reply = self.request("tools/call", {"name": tool, "arguments": arguments})
        assert "error" not in reply, f"a protocol failure instead of a tool result: {reply['error']}"
        assert reply["result"].get("isError") is True, reply
        (part,) = reply["result"]["content"]
        return str(part["text"])

    def leave(self) -> int:
        """Close the server's input as a client does when it ends; the exit code."""
        self.process.communicate(timeout=30)
        return self.process.returncode
