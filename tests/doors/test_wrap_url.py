"""`limpet wrap --url` as a process between a client on stdio and a server that listens for HTTP."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from doors.http_upstream import Handler, Request, Scripted, result, serving, text, welcome
from doors.mcp_client import MODERN, REVISIONS, Lines, meta
from doors.upstream import words
from doors.wrap_kit import BIG, LIMPET, MASK, ask, id_in, opened, read_back, shown
from person import trusted


def at(url: str, store: Path, *options: str) -> list[str]:
    return [*LIMPET, "wrap", *trusted(store), "--url", url, *options]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "limpet.db"


def plain(handler: Handler, request: Request) -> None:
    """A server that answers every call with JSON."""
    if welcome(handler, request):
        return
    if request.body["method"] == "tools/list":
        handler.plain(200, result(request, {"tools": [{"name": "text", "inputSchema": {"type": "object"}}]}))
    else:
        size = request.body["params"].get("arguments", {}).get("size", 10)
        handler.plain(200, text(request, words(size)))


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_goes_over_the_wire(revision: str, store: Path) -> None:
    secrets = {"THEIR_KEY": "Bearer of theirs", "LIMPET_TOKEN": "ours-and-nobody-elses"}
    options = ["--header", "X-Team: red", "--header-env", "Authorization=THEIR_KEY"]
    with serving(plain) as server, Lines(at(f"{server.url}?k=1", store, *options), env=secrets) as client:
        client.revision = revision
        if revision != MODERN:
            client.open(revision)
        assert shown(ask(client, "text", size=10)) == words(10)
        big = shown(ask(client, "text", size=BIG))
        assert read_back(client, id_in(big)) == words(BIG)
        assert client.leave()[0] == 0
    assert all(one.path == "/mcp?k=1" for one in server.requests)
    assert all(one.headers["authorization"] == "Bearer of theirs" for one in server.requests)
    assert all(one.headers["x-team"] == "red" for one in server.requests)
    assert "ours-and-nobody-elses" not in repr(server.requests)
    call = server.asked("tools/call")[0].headers
    assert "application/json" in call["accept"]
    assert "text/event-stream" in call["accept"]
    verbs = [one.verb for one in server.requests]
    if revision == MODERN:
        assert "mcp-session-id" not in call
        assert (call["mcp-protocol-version"], call["mcp-method"], call["mcp-name"]) == (MODERN, "tools/call", "text")
        assert set(verbs) == {"POST"}
    else:
        assert call["mcp-session-id"] == "s-1"
        assert call.get("mcp-protocol-version") == (revision if revision >= "2025-06-18" else None)
        assert "mcp-session-id" not in server.asked("initialize")[0].headers
        assert verbs[-1] == "DELETE"
        assert server.requests[-1].headers["mcp-session-id"] == "s-1"
        assert "GET" in verbs


def test_names_and_arguments_that_are_repeated_in_headers(store: Path) -> None:
    schema = {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}}

    def script(handler: Handler, request: Request) -> None:
        if request.body["method"] == "tools/list":
            handler.plain(200, result(request, {"tools": [{"name": "né", "inputSchema": schema}]}))
        else:
            handler.plain(200, text(request, "ok"))

    with serving(script) as server, Lines(at(server.url, store)) as client:
        client.ask("tools/list")
        ask(client, "né", zone="eu")
        ask(client, "né", zone="ö\n")
    first, second = server.asked("tools/call")
    assert first.headers["mcp-name"] == "=?base64?bsOp?="
    assert first.headers["mcp-param-zone"] == "eu"
    assert second.headers["mcp-param-zone"] == "=?base64?w7YK?="


def test_messages_before_the_answer_and_messages_of_the_server(store: Path) -> None:
    """An answer as a stream, with a request of the server in it; and the stream that the server opens by itself."""
    note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    question = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "a\nb"}}
    answered = threading.Event()

    def script(handler: Handler, request: Request) -> None:
        if request.verb == "GET":
            handler.stream()
            handler.event(note)
            answered.wait(20)
        elif "result" in (request.body or {}):
            answered.set()
            handler.plain(202)
        elif not welcome(handler, request):
            handler.stream()
            handler.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}})
            handler.event(question)
            assert answered.wait(20)
            handler.event(text(request, "done"))

    with serving(script) as server, opened(at(server.url, store)) as client:
        assert client.read() == note
        client.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "x"}})
        assert client.read()["method"] == "notifications/progress"
        assert client.read() == question
        client.send({"jsonrpc": "2.0", "id": "q", "result": {"action": "decline"}})
        assert shown(client.read()["result"]) == "done"
        assert client.leave()[0] == 0


def test_a_stream_that_breaks_off_is_taken_up_where_it_was(store: Path) -> None:
    def script(handler: Handler, request: Request) -> None:
        if request.verb == "GET" and "last-event-id" in request.headers:
            last = request.headers["last-event-id"]
            handler.stream()
            if last == "1":
                handler.event(None, "2", 10)
            else:
                call = server.asked("tools/call")[-1]
                handler.event(text(call, f"after {last}"), "3")
        elif not welcome(handler, request):
            handler.stream()
            handler.event(None, "1", 10)

    with serving(script) as server, opened(at(server.url, store)) as client:
        assert shown(ask(client, "text")) == "after 2"
        resumed = [one for one in server.requests if "last-event-id" in one.headers]
        assert [one.headers["last-event-id"] for one in resumed] == ["1", "2"]


def test_a_server_that_forgot_the_session_is_greeted_anew(store: Path) -> None:
    sessions: list[str] = []

    def script(handler: Handler, request: Request) -> None:
        if isinstance(request.body, dict) and request.body.get("method") == "initialize":
            sessions.append(f"s-{len(sessions)}")
        elif request.verb == "POST" and request.headers.get("mcp-session-id") != sessions[-1]:
            handler.plain(404)
            return
        if not welcome(handler, request, sessions[-1] if sessions else None):
            handler.plain(200, text(request, sessions[-1]))

    with serving(script) as server, opened(at(server.url, store)) as client:
        assert shown(ask(client, "text")) == "s-0"
        sessions.append("restarted")
        assert shown(ask(client, "text")) == "s-2"
        assert shown(ask(client, "text")) == "s-2"
        assert len(server.asked("notifications/initialized")) == 2


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b"who are you", "HTTP 401 Unauthorized: who are you Give it credentials with --header-env."),
        (500, b"<html>oh</html>", "HTTP 500"),
        (302, b"", "It points to http://elsewhere.test/mcp"),
        (307, b"", "It points to http://elsewhere.test/mcp"),
        (202, b"", "will not answer it"),
        (200, b"", "no reply in it"),
        (200, b"<html>", "no reply in it"),
        (200, b'{"jsonrpc":"2.0","method":"a"}', "no reply in it"),
        (404, b"", "HTTP 404"),
    ],
)
def test_what_is_no_answer_becomes_an_error(status: int, body: bytes, said: str, store: Path) -> None:
    def script(handler: Handler, request: Request) -> None:
        if not welcome(handler, request, None):
            handler.plain(status, body, {"Location": "http://elsewhere.test/mcp"})

    with serving(script) as server, opened(at(server.url, store)) as client:
        client.send({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "text"}})
        while (reply := client.read()).get("id") != 5:
            assert reply == {"jsonrpc": "2.0", "method": "a"}
        assert said in reply["error"]["message"]
        assert server.url in reply["error"]["message"]


def test_errors_of_the_server_pass_whatever_the_status(store: Path) -> None:
    def script(handler: Handler, request: Request) -> None:
        problem = {"code": -32602, "message": "no", "data": [1]}
        handler.plain(
            400, {"jsonrpc": "2.0", "id": request.body["id"] if server.asked("b") else None, "error": problem}
        )

    with serving(script) as server, Lines(at(server.url, store)) as client:
        for method in ("a", "b"):
            assert client.refused(method) == {"code": -32602, "message": "no", "data": [1]}


def test_a_redirect_on_the_same_server_is_followed(store: Path) -> None:
    def script(handler: Handler, request: Request) -> None:
        if request.path == "/mcp":
            handler.plain(307, None, {"Location": "/mcp/"})
        else:
            plain(handler, request)

    with serving(script) as server, opened(at(server.url, store)) as client:
        assert shown(ask(client, "text", size=5)) == words(5)


def test_a_server_that_comes_late_and_goes_and_comes_back(store: Path) -> None:
    with serving(plain) as server:
        port, url = server.server_port, server.url
    with Lines(at(url, store)) as client:
        assert "cannot be reached" in client.refused("tools/list")["message"]
        for _ in range(2):
            with serving(plain, port):
                client.open("2025-11-25")
                assert shown(ask(client, "text", size=5)) == words(5)
            assert "cannot be reached" in client.refused("tools/list")["message"]
        assert client.leave()[0] == 0


def test_a_server_that_dies_in_the_middle_of_an_answer(store: Path) -> None:
    def script(handler: Handler, request: Request) -> None:
        if not welcome(handler, request):
            handler.send_response(200)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Length", "1000")
            handler.end_headers()
            handler.wfile.write(b'{"jsonrpc": "2.0", "id"')
            handler.close_connection = True

    with serving(script) as server, opened(at(server.url, store)) as client:
        refusal = client.refused("tools/call", {"name": "text"})
        assert "the connection broke before the answer came" in refusal["message"]


def test_cancelling_closes_the_stream_from_2026_on_and_is_sent_before(store: Path) -> None:
    gone = threading.Event()

    def script(handler: Handler, request: Request) -> None:
        if welcome(handler, request):
            return
        if request.body["method"] == "slow":
            handler.stream()
            handler.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})
            if handler.rfile.read(1) == b"":
                gone.set()
        else:
            handler.plain(200, result(request, {}))

    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}
    slow: dict[str, Any] = {"jsonrpc": "2.0", "id": 9, "method": "slow"}
    with serving(script) as server, Lines(at(server.url, store)) as client:
        client.send(slow | {"params": {"_meta": meta()}})
        assert client.read()["method"] == "notifications/progress"
        client.send(cancel)
        assert gone.wait(20)
        assert client.ask("ping") == {}
        assert not server.asked("notifications/cancelled")
    with serving(script) as server, opened(at(server.url, store)) as client:
        client.send(slow)
        assert client.read()["method"] == "notifications/progress"
        client.send(cancel)
        assert client.ask("ping") == {}
        assert len(server.asked("notifications/cancelled")) == 1


def test_many_calls_at_once_and_ten_megabytes(store: Path) -> None:
    with serving(plain) as server, opened(at(server.url, store)) as client:
        for number in range(20):
            params = {"name": "text", "arguments": {"size": BIG + number}}
            client.send({"jsonrpc": "2.0", "id": f"call-{number}", "method": "tools/call", "params": params})
        replies = {reply["id"]: reply["result"] for reply in (client.read() for _ in range(20))}
        for number in range(20):
            assert read_back(client, id_in(shown(replies[f"call-{number}"]))) == words(BIG + number)
        assert shown(ask(client, "text", size=10_000_000)).startswith(MASK)


def test_encrypted_connections_are_checked(store: Path, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("There is no openssl on this machine to make a certificate with.")
    file = tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test", "-days", "2"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(file), "-out", str(tmp_path / "public.pem")]
    subprocess.run(made, check=True, capture_output=True, timeout=60)
    file.write_text(file.read_text() + (tmp_path / "public.pem").read_text())
    with serving(plain, certificate=str(file)) as server:
        url = server.url.replace("http:", "https:")
        with Lines(at(url, store), env={"SSL_CERT_FILE": str(tmp_path / "public.pem")}) as client:
            client.open("2025-11-25")
            assert shown(ask(client, "text", size=5)) == words(5)
        with Lines(at(url, store)) as client:
            assert "certificate" in client.refused("tools/list")["message"].lower()


@pytest.mark.slow
def test_sixty_four_megabytes_and_more(store: Path) -> None:
    most = 64 << 20
    with serving(plain) as server, opened(at(server.url, store)) as client:
        kept = id_in(shown(ask(client, "text", size=most - 8_000_000)))
        assert client.text("read_output", id=kept, lines="1-1").startswith("line of text")
        assert shown(ask(client, "text", size=most)) == words(most)


def test_with_a_store_in_trouble_the_originals_pass(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with serving(plain) as server, opened(at(server.url, tmp_path / "a")) as client:
        assert shown(ask(client, "text", size=BIG)) == words(BIG)


def refused(args: Sequence[str], env: dict[str, str] | None = None) -> str:
    command = ["env", *(f"{name}={value}" for name, value in (env or {}).items()), *LIMPET, "wrap", *args]
    done = subprocess.run(command, capture_output=True, timeout=20, check=False, stdin=subprocess.DEVNULL, text=True)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    return done.stderr


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["--url", "ftp://a/b"], "http://"),
        (["--url", "nonsense"], "http://"),
        (["--url", "http://"], "http://"),
        (["--url", "http://a:x/"], "not an address"),
        (["--url", "http://me:secret@a/"], "--header-env"),
        (["--url", "http://a/b c"], "ASCII"),
        (["--url", "http://a/", "--", "cat"], "Name one server"),
        (["--url", "http://a/", "--header", "no colon here"], "one word"),
        (["--url", "http://a/", "--header", "Mcp-Session-Id: 1"], "belongs to the protocol"),
        (["--url", "http://a/", "--header", "A: b\nC: d"], "one line"),
        (["--url", "http://a/", "--header-env", "A=NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE"),
        (["--url", "http://a/", "--header-env", "A=LIMPET_TOKEN"], "no other server"),
        (["--header", "A: b", "--", "cat"], "go with --url"),
    ],
)
def test_a_command_line_that_cannot_be_right_is_refused(args: list[str], word: str) -> None:
    said = refused(args, {"LIMPET_TOKEN": "very-secret-token"})
    assert word in said
    assert "secret" not in said


def test_click_knows_the_options_too(store: Path) -> None:
    with serving(plain) as server:
        command = [*LIMPET, "--json", "wrap", "--url", server.url, "--header=X-Team: red", *trusted(store)]
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "text"}})
        done = subprocess.run(command, capture_output=True, timeout=20, check=True, input=line.encode() + b"\n")
        assert json.loads(done.stdout)["id"] == 1
        assert isinstance(server, Scripted)
        assert server.requests[0].headers["x-team"] == "red"
