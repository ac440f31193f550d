"""The MCP server on stdio as a process: how lines are framed, and how it starts and ends."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from doors.mcp_client import MODERN, Lines, meta, stdio_command
from person import trusted

MODERN_FIELDS = {"resultType", "ttlMs", "cacheScope", "_meta"}


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "limpet.db")


@pytest.fixture
def server(store: str) -> Iterator[Lines]:
    with Lines(stdio_command(store)) as lines:
        yield lines


# --- framing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        (b"{", -32700, None),
        (b"\xff", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":NaN}}', -32700, 5),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":"\\ud800"}}', -32600, 5),
        (b"5", -32600, None),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":[]}', -32602, 5),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":5,"method":"ping"}]', -32600, None),
        (b"x" * (16 * 1024 * 1024 + 10), -32600, None),
    ],
    ids=["cut", "utf8", "deep", "nan", "surrogate", "number", "null id", "params", "empty batch", "batch", "huge"],
)
def test_a_bad_line_is_refused_and_the_next_one_answered(server: Lines, line: bytes, code: int, id: int | None) -> None:
    server.open("2025-11-25")
    server.write(line + b"\n")
    reply = server.read()
    assert (reply["error"]["code"], reply["id"]) == (code, id)
    assert server.ask("ping") == {}


def test_a_large_line_under_the_limit_is_answered(server: Lines) -> None:
    server.open(MODERN)
    result = server.ask("tools/call", {"name": "add_note", "arguments": {"content": "x" * 15_000_000}})
    assert result["isError"] is True


def test_notifications_and_replies_are_not_answered(server: Lines) -> None:
    server.open("2025-11-25")
    for silent in (
        {"method": "notifications/cancelled", "params": {"requestId": 1, "reason": "changed my mind"}},
        {"method": "notifications/progress", "params": {}},
        {"method": "notifications/no/such"},
        {"method": "tools/list"},
        {"id": 1, "result": {}},
        {"id": 1, "error": {"code": 1, "message": "no"}},
    ):
        server.send({"jsonrpc": "2.0", **silent})
    server.write(b"\n  \n\r\n")
    assert server.ask("ping") == {}


def test_batches_in_the_one_revision_that_has_them(server: Lines) -> None:
    server.open("2025-03-26")
    server.send(
        [
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
            {"jsonrpc": "2.0", "id": "two", "method": "no/such"},
            7,
        ]
    )
    first, second, third = server.read()
    assert first == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert (second["id"], second["error"]["code"]) == ("two", -32601)
    assert (third["id"], third["error"]["code"]) == (None, -32600)
    server.send([{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}])
    server.send([])
    assert server.read()["error"]["code"] == -32600


def test_a_hundred_calls_in_one_write_are_all_answered_in_order(server: Lines) -> None:
    server.open("2025-06-18")
    calls = [
        {
            "jsonrpc": "2.0",
            "id": f"call {number}",
            "method": "tools/call",
            "params": {"name": "add_note", "arguments": {"content": f"note {number}"}},
        }
        for number in range(100)
    ]
    server.write(b"".join(json.dumps(call).encode() + b"\n" for call in calls))
    replies = [server.read() for _ in calls]
    assert [reply["id"] for reply in replies] == [call["id"] for call in calls]
    assert [reply["result"]["structuredContent"]["total_notes"] for reply in replies] == list(range(1, 101))
    assert server.call("list_notes", limit=200)["note_count"] == 100


# --- the process ------------------------------------------------------------------------------------------------------


def test_the_end_of_input_ends_the_server_cleanly(server: Lines) -> None:
    server.open(MODERN)
    assert server.leave() == (0, b"", b"")


def test_a_last_line_without_a_newline_is_answered(server: Lines) -> None:
    server.open("2025-11-25")
    server.write(b'{"jsonrpc":"2.0","id":5,"method":"ping"}')
    code, out, err = server.leave()
    assert (code, json.loads(out), err) == (0, {"jsonrpc": "2.0", "id": 5, "result": {}}, b"")


def test_no_input_at_all(server: Lines) -> None:
    assert server.leave() == (0, b"", b"")


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_cleanly(server: Lines, which: signal.Signals) -> None:
    server.open(MODERN)
    server.process.send_signal(which)
    assert server.process.wait(timeout=20) == 0
    assert server.leave()[1:] == (b"", b"")


def test_a_client_that_stops_reading_ends_the_server_cleanly(store: str) -> None:
    with Lines(stdio_command(store)) as server:
        server.open(MODERN)
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta()}})
        assert server.process.wait(timeout=20) == 0
        assert server.process.stderr is not None
        assert server.process.stderr.read() == b""


def test_a_signal_ends_a_server_whose_client_never_reads(store: str) -> None:
    with Lines(stdio_command(store)) as server:
        server.open(MODERN)
        assert server.process.stdin is not None
        os.set_blocking(server.process.stdin.fileno(), False)
        ask = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta()}}).encode()
        with suppress(BlockingIOError):  # until both pipes are full
            for _ in range(100_000):
                os.write(server.process.stdin.fileno(), ask + b"\n")
        server.process.terminate()
        assert server.process.wait(timeout=20) == 0


PRINTS = """
import subprocess, sys
from limpet import wiring
from limpet.doors import stdio
from limpet.protocol import mcp_server
handler = mcp_server.Surface.handler
def noisy(self, method, params, revision):
    print("a stray print", flush=True)
    subprocess.run([sys.executable, "-c", "import sys; print(len(sys.stdin.read()))"])
    if method == "prompts/list":
        raise ZeroDivisionError("seeded")
    return handler(self, method, params, revision)
mcp_server.Surface.handler = noisy
with wiring.open(sys.argv[1]) as hold:
    stdio.serve(hold, "core")
"""


def test_stray_prints_and_children_cannot_touch_the_protocol(store: str) -> None:
    with Lines([sys.executable, "-c", PRINTS, store]) as server:
        server.open(MODERN)
        server.ask("tools/list")
        error = server.refused("prompts/list")
        assert error["code"] == -32603
        assert "seeded" not in error["message"]
        server.ask("tools/list")
        code, out, err = server.leave()
    assert (code, out) == (0, b"")
    assert err.count(b"a stray print\n") == 4
    assert err.count(b"\n0\n") == 4  # the child found nothing to read
    assert b"ZeroDivisionError: seeded" in err


SLOW = """
import sys, time
from limpet import wiring
from limpet.doors import stdio
from limpet.protocol import mcp_server
handler = mcp_server.Surface.handler
def slow(self, method, params, revision):
    if method == "tools/list":
        print("begun", file=sys.stderr, flush=True)
        time.sleep(float(sys.argv[2]))
    return handler(self, method, params, revision)
mcp_server.Surface.handler = slow
with wiring.open(sys.argv[1]) as hold:
    stdio.serve(hold, "core")
"""
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta()}}


def test_a_request_under_way_is_answered_before_a_signal_ends_the_server(store: str) -> None:
    with Lines([sys.executable, "-c", SLOW, store, "1"]) as server:
        assert server.process.stderr is not None
        server.send(LIST)
        server.send(LIST)
        assert server.process.stderr.readline() == b"begun\n"
        server.process.terminate()
        assert server.read()["result"]["tools"]
        assert server.leave() == (0, b"", b"")


def test_a_second_signal_does_not_wait(store: str) -> None:
    with Lines([sys.executable, "-c", SLOW, store, "60"]) as server:
        assert server.process.stderr is not None
        server.send(LIST)
        assert server.process.stderr.readline() == b"begun\n"
        server.process.terminate()
        time.sleep(0.3)
        server.process.terminate()
        assert server.leave() == (0, b"", b"")


def test_the_official_sdk_is_not_imported_by_the_stdio_door(store: str) -> None:
    code = (
        "import sys, limpet.wiring, limpet.doors.stdio\n"
        "heavy = {'mcp', 'mcp_types', 'asyncio', 'pydantic', 'anyio', 'click', 'limpet.doors.http'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    with Lines([sys.executable, "-c", code]) as lines:
        assert lines.leave()[1] == b"[]\n"


@pytest.mark.parametrize("options", [[], ["--no-handoff"]])
def test_the_handoff_can_be_left_to_a_clients_hooks(store: str, options: list[str]) -> None:
    import limpet

    with limpet.open(store) as hold:
        hold.session("earlier").handoff.write("Casts come next.")
    command = [sys.executable, "-m", "limpet", "mcp", *trusted(store), "--structured", *options]
    asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    with Lines(command) as lines:
        told = lines.ask("initialize", asked)["instructions"]
        first = lines.ask("tools/call", {"name": "read_notepad", "arguments": {}})
    assert ("Casts come next." in told) == (not options)
    assert "Notepad" in told
    # No hook gave it to this session (they may not run in a folder below the project's), so a result carries it.
    assert "Casts come next." in first["structuredContent"]["context"]
