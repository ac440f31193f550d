"""How many of our frames lie between a door and the disk: a note is added through each door, and the stack is traced.

The doors run as processes of their own. A hook of the SQLite driver writes down the stack at the INSERT of the entry.
Frames count from the door's handler, which is the innermost function of the door that gets the parsed request; on the
command line from `main`, behind HTTP from the start of the worker thread.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

import limpet
from person import trusted

TO_STORE = 4  # frames of ours before the store is called
TO_INSERT = 9  # frames of ours, those of the store included
TO_INSERT_FROM_MAIN = 10  # the same on the command line, where its own frames come first

TRACER = """
import sys, json, apsw

def trace(cursor, sql, bindings):
    if sql.lstrip().upper().startswith(("INSERT INTO ENTRIES", "INSERT OR REPLACE INTO ENTRIES")):
        frame, stack = sys._getframe(1), []
        while frame:
            module = frame.f_globals.get("__name__", "")
            if module.split(".")[0] == "limpet":
                stack.append([module, frame.f_code.co_name])
            frame = frame.f_back
        with open(sys.argv[1], "a") as file:
            file.write(json.dumps(stack[::-1]) + "\\n")
    return True

def hook(connection):
    connection.exec_trace = trace

apsw.connection_hooks.append(hook)
"""
LIBRARY = """
import limpet
with limpet.open(sys.argv[2]) as hold:
    hold.session("frames").notes.add("traced")
"""
COMMAND = """
from limpet.doors.cli import main
sys.exit(main(sys.argv[2:]))
"""


class Trace(NamedTuple):
    frames: list[str]

    @property
    def to_store(self) -> int:
        return next(at for at, name in enumerate(self.frames) if name.startswith("limpet.stores."))

    @property
    def to_insert(self) -> int:
        return len(self.frames)

    def __str__(self) -> str:
        return f"{self.to_store} to the store, {self.to_insert} to the INSERT\n  " + "\n  ".join(self.frames)


def traced(tmp_path: Path, script: str, *words: str, stdin: str = "") -> list[list[str]]:
    """Run a script under the tracer; the stack at the last INSERT of an entry, from the outside in."""
    trail = tmp_path / "trail.jsonl"
    source = TRACER.replace("sys.argv[1]", repr(str(trail))) + script
    ran = subprocess.run(
        [sys.executable, "-c", source, "", *words],
        input=stdin,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert trail.exists(), ran.stderr
    stack: list[list[str]] = json.loads(trail.read_text(encoding="utf-8").splitlines()[-1])
    return stack


def names(stack: Sequence[Sequence[str]]) -> list[str]:
    return [f"{module}:{function}" for module, function in stack]


def check(trace: Trace, most: int = TO_INSERT, before_store: int = TO_STORE) -> None:
    print(trace)
    assert trace.to_insert <= most, f"{trace}\nAt most {most} frames may lead to the INSERT."
    assert trace.to_store <= before_store, f"{trace}\nAt most {before_store} frames may lead to the store."


def test_from_the_library(tmp_path: Path) -> None:
    stack = traced(tmp_path, LIBRARY, str(tmp_path / "a.db"))
    check(Trace(names(stack)))


def test_from_the_command_line(tmp_path: Path) -> None:
    store = str(tmp_path / "a.db")
    with limpet.open(store) as hold:
        hold.store.create()
    stack = traced(tmp_path, COMMAND, "note", "add", "traced", "--store", store)
    handler = next(at for at, (module, _) in enumerate(stack) if not module.startswith("limpet.doors."))
    trace = Trace(names(stack))
    print(trace)
    assert trace.to_insert <= TO_INSERT_FROM_MAIN, trace
    assert trace.to_store - handler + 1 <= TO_STORE, trace  # the last frame of the command line is its handler


def request(number: int, method: str, params: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


def test_from_mcp_over_stdio(tmp_path: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "frames", "version": "1"}}
    call = {"name": "add_note", "arguments": {"content": "traced"}}
    lines = request(1, "initialize", hello) + request(2, "tools/call", call)
    stack = traced(tmp_path, COMMAND, "mcp", *trusted(tmp_path / "a.db"), stdin=lines)
    handler = max(at for at, (module, _) in enumerate(stack) if module == "limpet.doors.stdio")
    check(Trace(names(stack[handler:])))


SERVER = """
import threading, urllib.request
from limpet import wiring
from limpet.doors.http import server

PATH, BODY = sys.argv[3], sys.argv[4]
HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}

def call(url):
    import json, os, signal, time
    base = url.removesuffix("/mcp")
    try:
        if PATH == "/mcp":
            hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "f", "version": "1"}}
            first = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
            sent = urllib.request.Request(base + PATH, json.dumps(first).encode(), HEADERS)
            with urllib.request.urlopen(sent) as reply:
                HEADERS["mcp-session-id"] = reply.headers["mcp-session-id"]
        with urllib.request.urlopen(urllib.request.Request(base + PATH, BODY.encode(), HEADERS)) as reply:
            reply.read()
    finally:
        os.kill(os.getpid(), signal.SIGTERM)

with wiring.open(sys.argv[2]) as hold:
    ready = lambda url: threading.Thread(target=call, args=(url,)).start()
    server.serve(hold, "full", server.Offer(None), port=0, on_ready=ready)
"""


@pytest.mark.parametrize("path", ["/api/v1/operations/add_note", "/mcp"])
def test_from_http(tmp_path: Path, path: str) -> None:
    arguments = {"content": "traced"}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "add_note", "arguments": arguments}}
    body = json.dumps(call if path == "/mcp" else arguments)
    stack = traced(tmp_path, SERVER, str(tmp_path / "a.db"), path, body)
    check(Trace(names(stack)))
