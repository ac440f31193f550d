"""Tool calls past the SDK's transport: the same bytes as through it, and only where the SDK has nothing to decide."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
import uvicorn
from starlette.requests import Request

from doors.mcp_client import TOKEN, Reply
from limpet import wiring
from limpet.doors.http import server
from limpet.doors.http.fast_path import CALL, KNOWN_MAX, SESSION_ID, TRUSTED_SECONDS, FastCall, FastPath

REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25")
OWNER = ("alice", "one project")


class Line(NamedTuple):
    """A client's connection, and which of its requests went the short way."""

    http: httpx2.Client
    ways: list[bool]

    def ask(self, method: str, params: Reply | None, headers: dict[str, str], id: Any = 1) -> httpx2.Response:
        body = {"jsonrpc": "2.0", "id": id, "method": method}
        sent = json.dumps(body if params is None else body | {"params": params}, ensure_ascii=False).encode()
        return self.http.post("/mcp", content=sent, headers=headers)

    def initialised(self, revision: str) -> dict[str, str]:
        hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        answer = self.ask("initialize", hello, {})
        headers = {"MCP-Protocol-Version": revision}
        if SESSION_ID in answer.headers:
            headers[SESSION_ID] = answer.headers[SESSION_ID]
        self.http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
        self.ways.clear()
        return headers


@contextmanager
def connected(folder: Path, monkeypatch: pytest.MonkeyPatch, *, stateless: bool = False) -> Iterator[Line]:
    ways: list[bool] = []
    decide = FastPath.call

    def watched(self: FastPath, *given: Any) -> FastCall | None:
        found = decide(self, *given)
        ways.append(found is not None)
        return found

    monkeypatch.setattr(FastPath, "call", watched)
    with wiring.open(str(folder / "limpet.db")) as hold, socket.create_server(("127.0.0.1", 0)) as listener:
        running = server.Running(stateless=stateless)
        app = server.build_app(hold, "full", server.Offer(TOKEN), running=running)
        ours = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
        thread = threading.Thread(target=ours.run, kwargs={"sockets": [listener]})
        thread.start()
        headers = {
            "Authorization": f"Bearer {TOKEN}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        try:
            with httpx2.Client(
                base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", headers=headers, timeout=60
            ) as http:
                yield Line(http, ways)
        finally:
            ours.should_exit = True
            thread.join(30)


CALLS: Sequence[Reply] = (
    {"name": "read_notepad", "arguments": {}},
    {"name": "read_notepad"},
    {"name": "list_notes", "arguments": {"limit": 3}},
    {"name": "list_notes", "arguments": {"limit": "many"}},  # refused by the operation
    {"name": "no_such_tool", "arguments": {}},  # refused by the protocol
    {"name": "recall", "arguments": {"query": "ünïcode 鷸 🐦"}, "_meta": {"progressToken": 7}},
)


@pytest.mark.parametrize("stateless", [False, True])
@pytest.mark.parametrize("revision", REVISIONS)
def test_both_ways_give_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, revision: str, stateless: bool
) -> None:
    with connected(tmp_path, monkeypatch, stateless=stateless) as line:
        headers = line.initialised(revision)
        line.ask(CALL, {"name": "add_note", "arguments": {"content": "a curlew, ünïcode 鷸 🐦"}}, headers)
        line.ways.clear()
        for number, params in enumerate(CALLS):
            quick = line.ask(CALL, params, headers, f"id {number}")
            # An argument more of the request itself, which the SDK ignores, is no plain call any more.
            slow = line.ask(CALL, params | {"odd": 1}, headers, f"id {number}")
            assert line.ways[-2:] == [True, False], params
            assert quick.status_code == slow.status_code == 200
            assert quick.json() == slow.json(), params
            kept = [
                {name: answer.headers.get(name) for name in ("content-type", SESSION_ID)} for answer in (quick, slow)
            ]
            assert kept[0] == kept[1]


def test_what_is_written_the_short_way_is_of_the_same_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with connected(tmp_path, monkeypatch) as line:
        one, two = line.initialised(REVISIONS[-1]), line.initialised(REVISIONS[-1])
        for headers, text in ((one, "of one"), (two, "of two")):
            for _ in range(2):
                line.ask(CALL, {"name": "write_notepad", "arguments": {"content": text}}, headers)
        assert line.ways == [False, True, False, True]
        named = one | {"Limpet-Session": "by name"}
        line.ask(CALL, {"name": "write_notepad", "arguments": {"content": "named"}}, named)
        read = {"name": "read_notepad", "arguments": {}}
        found = [line.ask(CALL, read, headers).json()["result"] for headers in (one, two, named)]
        texts = [answer["content"][0]["text"].split("\n")[0] for answer in found]
        assert texts == ["of one", "of two", "named"]


def test_a_session_that_was_ended_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with connected(tmp_path, monkeypatch) as line:
        headers = line.initialised(REVISIONS[-1])
        read = {"name": "read_notepad", "arguments": {}}
        assert [line.ask(CALL, read, headers).status_code for _ in range(2)] == [200, 200]
        assert line.ways == [False, True]
        assert line.http.delete("/mcp", headers=headers).status_code == 200
        assert line.ask(CALL, read, headers).status_code == 404
        assert line.ask(CALL, read, headers | {SESSION_ID: "never"}).status_code == 404
        assert line.ask(CALL, read, {"MCP-Protocol-Version": REVISIONS[-1]}).status_code == 400
        assert line.ways == [False, True, False, False, False]


ODD: Sequence[tuple[Reply, dict[str, str], int]] = (
    ({"id": None}, {}, 202),
    ({"id": 1.5}, {}, 202),
    ({"jsonrpc": "1.0"}, {}, 400),
    ({"params": {"name": 3}}, {}, 200),
    ({"params": {"name": "read_notepad", "arguments": [1]}}, {}, 200),
    ({"params": {"name": "read_notepad", "_meta": 3}}, {}, 200),
    ({"params": [1]}, {}, 400),
    ({"params": {"name": "recall", "arguments": {"query": "half \ud800"}}}, {}, 400),
    ({"method": "tools/list", "params": {}}, {}, 200),
    ({}, {"Accept": "text/html"}, 406),
    ({}, {"Content-Type": "text/plain"}, 400),
    ({}, {"MCP-Protocol-Version": "1999-01-01"}, 400),
)


@pytest.mark.parametrize(("change", "more", "status"), ODD)
def test_what_is_odd_is_left_to_the_sdk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Reply, more: dict[str, str], status: int
) -> None:
    with connected(tmp_path, monkeypatch) as line:
        headers = line.initialised(REVISIONS[-1])
        good = {"jsonrpc": "2.0", "id": 1, "method": CALL, "params": {"name": "read_notepad", "arguments": {}}}
        for _ in range(2):
            line.http.post("/mcp", content=json.dumps(good).encode(), headers=headers)
        answer = line.http.post("/mcp", content=json.dumps(good | change).encode(), headers=headers | more)
        assert line.ways in ([False, True, False], [False, True])
        assert answer.status_code == status, answer.text


# --- which session is known -------------------------------------------------------------------------------------------


def asked(transport: str) -> tuple[Request, Reply]:
    headers = [(b"accept", b"*/*"), (b"content-type", b"application/json; charset=utf-8")]
    request = Request(
        {"type": "http", "method": "POST", "headers": [*headers, (SESSION_ID.encode(), transport.encode())]}
    )
    return request, {"jsonrpc": "2.0", "id": 1, "method": CALL, "params": {"name": "read_notepad"}}


def test_a_session_is_known_for_a_minute_to_its_owner_alone() -> None:
    now = 1000.0
    short = FastPath(stateless=False, clock=lambda: now)
    short.served("one", OWNER, REVISIONS[0])
    assert short.call(*asked("one"), OWNER) == FastCall(1, {"name": "read_notepad"}, "one", REVISIONS[0])
    assert short.call(*asked("two"), OWNER) is None
    assert short.call(*asked(""), OWNER) is None
    for other in (("bob", OWNER[1]), (OWNER[0], "another project")):
        assert short.call(*asked("one"), other) is None
    now += TRUSTED_SECONDS
    assert short.call(*asked("one"), OWNER) is not None
    now += 1  # calls that went the short way do not count: the SDK must hear of the session
    assert short.call(*asked("one"), OWNER) is None


def test_only_so_many_sessions_are_known() -> None:
    short = FastPath(stateless=False)
    short.served("first", OWNER, REVISIONS[0])
    for number in range(KNOWN_MAX - 1):
        short.served(f"s{number}", OWNER, REVISIONS[0])
    short.served("first", OWNER, REVISIONS[0])
    short.served("last", OWNER, REVISIONS[0])
    known = [name for name in ("first", "s0", "s1", "last") if short.call(*asked(name), OWNER)]
    assert known == ["first", "s1", "last"]
