"""The MCP server over HTTP: who is let in, what is refused at the gate, and which session a client works in."""

from __future__ import annotations

import itertools
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from doors.mcp_client import MODERN, TOKEN, Reply, hello, http_server, meta
from doors.team_kit import calling, stored, team_server
from limpet import wiring
from limpet.doors.http.server import Offer, serve
from limpet.errors import BadInput

AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}
PLAIN = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with http_server(tmp_path_factory.mktemp("http") / "limpet.db") as address:
        yield address


def modern(method: str, params: Reply | None = None, id: int = 1) -> tuple[Reply, dict[str, str]]:
    """A request of 2026-07-28 and the headers that must repeat what it says."""
    given = dict(params or {})
    given["_meta"] = meta() | given.get("_meta", {})
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if name := given.get("name") or given.get("uri"):
        headers["Mcp-Name"] = name
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": given}, headers


def post(url: str, body: object, headers: dict[str, str]) -> httpx2.Response:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx2.post(url, content=data, headers=PLAIN | headers, timeout=30)


def ask(url: str, method: str, params: Reply | None = None, **headers: str) -> Reply:
    body, routing = modern(method, params)
    answer = post(url, body, AUTHORIZED | routing | {name.replace("_", "-"): value for name, value in headers.items()})
    assert answer.status_code == 200, answer.text
    reply: Reply = answer.json()["result"]
    return reply


def call(url: str, tool: str, arguments: Reply, **headers: str) -> Reply:
    result: Reply = ask(url, "tools/call", {"name": tool, "arguments": arguments}, **headers)["structuredContent"]
    return result


# --- the gate ---------------------------------------------------------------------------------------------------------


def test_health_says_ok_and_nothing_else(url: str) -> None:
    address = url.removesuffix("/mcp") + "/health"
    answer = httpx2.get(address, timeout=60)
    assert (answer.status_code, answer.content) == (200, b'{"status":"ok"}')
    assert answer.headers.keys() <= {"date", "content-length", "content-type"}
    assert httpx2.post(address, content=b"{}", timeout=60).status_code in (400, 405)


BAD_TOKENS = [
    {},
    {"Authorization": ""},
    {"Authorization": "Bearer"},
    {"Authorization": "Bearer wrong"},
    {"Authorization": f"Bearer {TOKEN}x"},
    {"Authorization": f"Bearer {TOKEN[:-1]}"},
    {"Authorization": f"Basic {TOKEN}"},
    {"Authorization": TOKEN},
    {"Cookie": f"token={TOKEN}"},
    {"X-Api-Key": TOKEN},
]


@pytest.mark.parametrize("headers", BAD_TOKENS)
@pytest.mark.parametrize("path", ["/mcp", "/", "/mcp/", "/health/", "/HEALTH", "//health", "/docs", "/openapi.json"])
def test_nothing_but_health_answers_without_the_token(url: str, path: str, headers: dict[str, str]) -> None:
    address = url.removesuffix("/mcp") + path
    body, routing = modern("tools/list")
    for answer in (
        post(address, body, headers | routing),
        httpx2.get(address, headers=headers, timeout=60),
        httpx2.delete(address, headers=headers),
        httpx2.request("OPTIONS", address, headers=headers),
    ):
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.json()["error"] == "unauthorized"


def test_a_token_in_the_address_opens_nothing(url: str) -> None:
    body, routing = modern("tools/list")
    assert post(f"{url}?token={TOKEN}&access_token={TOKEN}", body, routing).status_code == 401


def test_a_token_outside_of_ascii_is_refused(url: str) -> None:
    body, routing = modern("tools/list")
    data = json.dumps(body).encode()
    headers = [(name.encode(), value.encode()) for name, value in (PLAIN | routing).items()]
    answer = httpx2.post(url, content=data, headers=[*headers, (b"Authorization", b"Bearer \xc3\xa9\xff")], timeout=60)
    assert answer.status_code == 401


@pytest.mark.parametrize("path", ["/mcp", "/health"])
@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://localhost.evil.example",
        "https://127.0.0.1.evil.example",
        "http://127.0.0.1:1",
        "http://localhost",
        "file://",
    ],
)
def test_a_foreign_origin_is_refused_even_with_the_token(url: str, path: str, origin: str) -> None:
    body, routing = modern("tools/list")
    address = url.removesuffix("/mcp") + path
    for answer in (
        post(address, body, AUTHORIZED | routing | {"Origin": origin}),
        httpx2.get(address, headers=AUTHORIZED | {"Origin": origin}, timeout=60),
        httpx2.request("OPTIONS", address, headers={"Origin": origin, "Access-Control-Request-Method": "POST"}),
    ):
        assert answer.status_code == 403
        assert not any(name.startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize("path", ["/mcp", "/health"])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:7438", "a/?x=", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:80", ""]
)
def test_a_foreign_host_is_refused_even_with_the_token(url: str, path: str, host: str) -> None:
    body, routing = modern("tools/list")
    address = url.removesuffix("/mcp") + path
    for answer in (
        post(address, body, AUTHORIZED | routing | {"Host": host}),
        httpx2.get(address, headers=AUTHORIZED | {"Host": host}, timeout=60),
    ):
        assert answer.status_code in (400, 421)


def test_our_own_origin_and_names_are_let_in(url: str) -> None:
    port = url.split(":")[2].removesuffix("/mcp")
    body, routing = modern("tools/list")
    for name in ("127.0.0.1", "localhost", "[::1]"):
        own = {"Host": f"{name}:{port}", "Origin": f"http://{name}:{port}"}
        assert post(url, body, AUTHORIZED | routing | own).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_body_that_a_web_form_can_send_is_refused(url: str, kind: str) -> None:
    body, routing = modern("tools/call", {"name": "add_note", "arguments": {"content": "x"}})
    assert post(url, body, AUTHORIZED | routing | {"Content-Type": kind}).status_code == 400


def test_a_large_body_is_refused(url: str) -> None:
    _, routing = modern("tools/list")
    answer = post(url, b"x" * (16 * 1024 * 1024 + 1), AUTHORIZED | routing)
    assert answer.status_code == 413
    chunks = itertools.repeat(b"x" * 65536, 300)
    answer = httpx2.post(url, content=chunks, headers=PLAIN | AUTHORIZED | routing, timeout=30)
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"", -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":NaN}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":1e999}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":"\\ud800"}}', -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]', -32600),
        (b"7", -32600),
    ],
)
def test_what_stdio_refuses_is_refused_here(url: str, body: bytes, code: int) -> None:
    _, routing = modern("tools/list")
    answer = post(url, body, AUTHORIZED | routing)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == code
    assert ask(url, "tools/list")["tools"]


def test_headers_and_body_must_agree(url: str) -> None:
    body, routing = modern("tools/call", {"name": "add_note", "arguments": {"content": "x"}})
    answer = post(url, body, AUTHORIZED | routing | {"Mcp-Name": "list_notes"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)


def test_an_unsupported_revision_is_told_which_are_supported(url: str) -> None:
    body, routing = modern("tools/list")
    body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2030-01-01"
    error = post(url, body, AUTHORIZED | routing | {"MCP-Protocol-Version": "2030-01-01"}).json()["error"]
    assert (error["code"], error["data"]) == (-32022, {"supported": [MODERN], "requested": "2030-01-01"})


@pytest.mark.parametrize("method", ["ping", "no/such", "logging/setLevel", "subscriptions/listen"])
def test_an_unknown_method_is_refused(url: str, method: str) -> None:
    params: Reply = {"notifications": {}} if method == "subscriptions/listen" else {}
    body, routing = modern(method, params)
    answer = post(url, body, AUTHORIZED | routing)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601)


# --- sessions and the handoff -----------------------------------------------------------------------------------------


class Handshaken:
    """A client of the handshake era: it keeps the transport's session."""

    def __init__(self, url: str, revision: str = "2025-06-18", name: str = "tests") -> None:
        self.url = url
        params = hello(revision) | {"clientInfo": {"name": name, "version": "1"}}
        answer = post(url, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}, AUTHORIZED)
        assert answer.status_code == 200, answer.text
        self.headers = AUTHORIZED | {
            "Mcp-Session-Id": answer.headers["mcp-session-id"],
            "MCP-Protocol-Version": revision,
        }
        self.opening: Reply = answer.json()["result"]
        assert post(url, {"jsonrpc": "2.0", "method": "notifications/initialized"}, self.headers).status_code == 202

    def call(self, tool: str, **arguments: object) -> Reply:
        body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        answer = post(self.url, body, self.headers)
        assert answer.status_code == 200, answer.text
        reply: Reply = answer.json()["result"]["structuredContent"]
        return reply


def test_two_clients_do_not_share_a_notepad(tmp_path: Path) -> None:
    with http_server(tmp_path / "limpet.db") as url:
        one, two = Handshaken(url), Handshaken(url)
        one.call("write_notepad", content="mine")
        assert two.call("read_notepad")["content"] == ""
        assert one.call("read_notepad")["content"] == "mine"
        call(url, "write_notepad", {"content": "by header"}, Limpet_Session="named")
        assert call(url, "read_notepad", {"session_id": "named"})["content"] == "by header"
        assert call(url, "read_notepad", {})["content"] == ""


def test_a_request_of_an_unknown_transport_session_is_refused(url: str) -> None:
    headers = AUTHORIZED | {"Mcp-Session-Id": "0" * 32, "MCP-Protocol-Version": "2025-06-18"}
    answer = post(url, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers)
    assert answer.status_code == 404
    answer = post(url, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, AUTHORIZED)
    assert answer.status_code == 400


def test_a_handoff_is_used_up_by_the_call_after_the_result_that_showed_it(tmp_path: Path) -> None:
    with http_server(tmp_path / "limpet.db") as url:
        Handshaken(url).call("write_session_handoff", content="remember the casts")
        silent = Handshaken(url, name="silent")
        assert "remember the casts" in silent.opening["instructions"]
        reader = Handshaken(url, name="reader")
        assert "remember the casts" in reader.opening["instructions"]
        reader.call("list_notes")
        beside = Handshaken(url, name="other").opening["instructions"]
        assert "remember the casts" in beside
        assert "also shown to session" in beside
        reader.call("list_notes")
        assert "remember the casts" not in Handshaken(url, name="late").opening["instructions"]


def test_a_handoff_is_used_up_without_transport_sessions_too(tmp_path: Path) -> None:
    with http_server(tmp_path / "limpet.db") as url:
        call(url, "write_session_handoff", {"content": "remember the casts"})
        assert "remember the casts" in ask(url, "server/discover")["instructions"]
        assert "remember the casts" in ask(url, "server/discover")["instructions"]
        call(url, "list_notes", {})  # in the session that wrote it
        assert "remember the casts" in ask(url, "server/discover")["instructions"]
        call(url, "list_notes", {}, Limpet_Session="next")
        call(url, "list_notes", {}, Limpet_Session="next")
        assert "remember the casts" not in ask(url, "server/discover")["instructions"]


# --- many at once, and the end ----------------------------------------------------------------------------------------


def test_many_calls_at_once_are_all_kept(tmp_path: Path) -> None:
    with http_server(tmp_path / "limpet.db") as url, ThreadPoolExecutor(8) as pool:
        added = list(pool.map(lambda n: call(url, "add_note", {"content": f"note {n}"}), range(64)))
        assert len({note["note_id"] for note in added}) == 64
        assert call(url, "list_notes", {"limit": 200})["note_count"] == 64


def test_a_client_that_hangs_up_leaves_no_half_work(tmp_path: Path) -> None:
    with http_server(tmp_path / "limpet.db") as url:
        host, port = url.split("/")[2].split(":")
        for number in range(20):
            body, routing = modern("tools/call", {"name": "add_note", "arguments": {"content": f"note {number}"}})
            data = json.dumps(body).encode()
            lines = {"Host": f"{host}:{port}", "Content-Length": str(len(data))} | PLAIN | AUTHORIZED | routing
            head = "POST /mcp HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items()) + "\r\n"
            with socket.create_connection((host, int(port))) as line:
                line.sendall(head.encode() + data)
        # Each was read whole or not at all; wait for those under way, which nobody waits for any more.
        kept = -1
        while kept != (kept := call(url, "list_notes", {"limit": 100})["note_count"]):
            time.sleep(0.5)
        notes = call(url, "list_notes", {"limit": 100})["notes"]
        assert len({note["content"] for note in notes}) == kept
        assert all(note["content"].startswith("note ") for note in notes)
        assert call(url, "add_note", {"content": "after"})["total_notes"] == kept + 1


def test_the_server_ends_although_an_event_stream_is_open(tmp_path: Path) -> None:
    with http_server(tmp_path / "limpet.db") as url:
        client = Handshaken(url)
        opened = threading.Event()

        def listen() -> None:
            headers = client.headers | {"Accept": "text/event-stream"}
            try:
                with httpx2.stream("GET", url, headers=headers, timeout=60) as stream:
                    assert stream.status_code == 200
                    opened.set()
                    for _ in stream.iter_raw():
                        pass
            except httpx2.HTTPError:
                pass  # the server went away under us, as it should

        listener = threading.Thread(target=listen)
        listener.start()
        assert opened.wait(20)
    listener.join(20)
    assert not listener.is_alive()


# --- what is refused before anything is served ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"token": "short"},
        {"token": ""},
        {"token": None, "host": "0.0.0.0"},  # noqa: S104 - refused, which is the point
        {"token": TOKEN, "host": "203.0.113.1"},
    ],
    ids=["short token", "empty token", "open to the network without a token", "not an address of this machine"],
)
def test_an_unsafe_or_impossible_server_does_not_start(tmp_path: Path, options: dict[str, Any]) -> None:
    with wiring.open(str(tmp_path / "limpet.db")) as hold, pytest.raises(BadInput):
        serve(hold, "core", Offer(options.pop("token")), port=0, **options)


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, wiring.open(str(tmp_path / "limpet.db")) as hold:
        port = taken.getsockname()[1]
        with pytest.raises(BadInput, match=str(port)):
            serve(hold, "core", Offer(TOKEN), port=port)


def test_a_server_begins_without_the_sdk(tmp_path: Path) -> None:
    """It takes longer to import than all the rest, and the JSON routes and the dashboard do not need it."""
    code = (
        "import sys, limpet; from limpet.doors.http.server import Offer, build_app; hold = limpet.open(sys.argv[1]); "
        "build_app(hold, 'full', Offer()); hold.close(); print({'mcp', 'pydantic'} & sys.modules.keys())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "limpet.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "set()"


def test_the_first_requests_may_come_at_once(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    token = stored(store, "read").secret
    with team_server(store, tmp_path) as address, calling(address, token) as caller, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: caller.tool("list_notes"), range(8)))
    assert all(one.json()["result"]["structuredContent"]["notes"] == [] for one in found)
