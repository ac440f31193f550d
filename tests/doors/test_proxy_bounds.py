"""What a server behind `limpet wrap` or `limpet gateway` cannot do: fill the memory of the proxy, or end its client."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from doors.mcp_client import Lines, Reply
from doors.wrap_kit import LIMPET, UPSTREAM, ask, opened, shown, wrapped
from limpet.doors.proxy import bounds

MIB = 1 << 20
TEXT_FIRST = '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"', '"}]}}'
ID_LAST = '{"result":{"content":[{"type":"text","text":"', '"}]},"jsonrpc":"2.0","id":ID}'


def most_memory(client: Lines) -> int:
    """The most bytes of memory that the proxy ever had."""
    status = Path(f"/proc/{client.process.pid}/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) << 10


def flood(client: Lines, parts: tuple[str, str], unit: str, count: int, tool: str = "flood") -> Reply:
    arguments = {"before": parts[0], "unit": unit, "count": count, "after": parts[1]}
    return client.raw("tools/call", {"name": tool, "arguments": arguments})


def gateway(folder: Path) -> list[str]:
    servers = {name: {"command": sys.executable, "args": [UPSTREAM, "serve"]} for name in ("one", "two")}
    config = folder / "servers.json"
    config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    config.chmod(0o600)
    return [*LIMPET, "gateway", "--config", str(config), "--store", str(folder / "limpet.db")]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read in /proc")
@pytest.mark.parametrize("parts", [TEXT_FIRST, ID_LAST], ids=["id first", "id last"])
@pytest.mark.parametrize("door", ["wrap", "gateway"])
def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path: Path, door: str, parts: tuple[str, str]) -> None:
    command = wrapped(tmp_path / "limpet.db") if door == "wrap" else gateway(tmp_path)
    prefix = "" if door == "wrap" else "one__"
    with opened(command) as client:
        reply = flood(client, parts, "x", 600 * MIB, f"{prefix}flood")
        assert "longer than 134,217,728 bytes" in reply["error"]["message"]
        assert most_memory(client) < 450 * MIB
        assert shown(ask(client, f"{prefix}echo", a=1)) == '{"a": 1}', "the same server goes on answering"


@pytest.mark.parametrize("door", ["wrap", "gateway"])
def test_a_message_that_would_end_its_client_is_an_error(tmp_path: Path, door: str) -> None:
    command = wrapped(tmp_path / "limpet.db") if door == "wrap" else gateway(tmp_path)
    prefix = "" if door == "wrap" else "one__"
    closed = '{"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":{"a":'
    block = '{"type":"text","text":"x"},'
    with opened(command) as client:
        deep = flood(client, (closed, "1" + "]" * 100_000 + "}}}"), '["]}",'[:1], 100_000, f"{prefix}flood")
        assert "nested more than 500 deep" in deep["error"]["message"]
        opening = TEXT_FIRST[0].removesuffix('{"type":"text","text":"')
        many = flood(client, (opening, block[:-1] + "]}}"), block, 300_000, f"{prefix}flood")
        assert "more than 10,000 content blocks" in many["error"]["message"]
        assert shown(ask(client, f"{prefix}echo", a=1)) == '{"a": 1}'


def test_what_is_deep_or_long_within_reason_passes_untouched(tmp_path: Path) -> None:
    opening = TEXT_FIRST[0].removesuffix('{"type":"text","text":"')
    block = '{"type":"text","text":"[[[ \\\\"},'
    structured = '{"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":{"a":'
    with opened(wrapped(tmp_path / "limpet.db")) as client:
        many = flood(client, (opening, block[:-1] + "]}}"), block, 9_000)
        assert len(many["result"]["content"]) == 9_001
        deep = flood(client, (structured, "1" + "]" * 490 + "}}}"), "[", 490)
        assert json.dumps(deep["result"]["structuredContent"]["a"]) == "[" * 490 + "1" + "]" * 490


@pytest.mark.parametrize(
    ("line", "depth"),
    [
        (b"[]", 1),
        (b'{"a":[[1],[2]]}', 3),
        (b'["]]]","[[[",[]]', 2),
        (b'["\\"[[[",["\\\\"]]', 2),
        (b'["\\\\\\"[[["]', 1),
        (b"no JSON at all", 0),
        (b'["never ends [[[', 1),
    ],
)
def test_nesting_is_counted_outside_of_strings(line: bytes, depth: int) -> None:
    assert bounds.nesting(line) == depth


# --- a server at an address -------------------------------------------------------------------------------------------


class Flooding(BaseHTTPRequestHandler):
    """Answers calls with far too much: as JSON, or as an event of a stream."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if message["method"] != "tools/call":
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "f", "version": "1"}}
            body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}).encode()
            self.send_response(200 if "id" in message else 202)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body) if "id" in message else 0))
            self.end_headers()
            self.wfile.write(body if "id" in message else b"")
            return
        stream = message["params"]["name"] == "stream"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        block = (b"data: " + b"x" * MIB + b"\n") if message["params"]["arguments"] else b"x" * MIB
        try:
            self.wfile.write(b"data: " if stream else b"")
            for _ in range(600):
                self.wfile.write(block)
        except OSError:
            pass  # the client has seen enough

    def do_GET(self) -> None:
        self.send_error(405)

    def log_message(self, *_arguments: object) -> None:
        pass


@contextmanager
def flooding() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Flooding) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()
        thread.join()


def test_an_answer_over_http_that_does_not_end_is_an_error(tmp_path: Path) -> None:
    with flooding() as url:
        command = [*LIMPET, "wrap", "--store", str(tmp_path / "limpet.db"), "--url", url]
        with opened(command) as client:
            for tool, arguments in (("json", {}), ("stream", {}), ("stream", {"events": True})):
                reply = client.raw("tools/call", {"name": tool, "arguments": arguments})
                assert "longer than 134,217,728 bytes" in reply["error"]["message"], (tool, arguments)
            assert most_memory(client) < 700 * MIB
