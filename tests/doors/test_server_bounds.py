"""What a served store does not let its callers do: speak as somebody else, pass a quota, come back after signing out,
or keep others from being answered.

All of it through a real server process and real sockets.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import httpx2
import pytest

from doors.team_kit import PROJECT, TENANT, Issuer, Json, calling, now_ms, stored, team_server
from limpet import wiring
from limpet.model import Scope
from limpet.upkeep import access_tokens
from limpet.wiring import choose_store

RUN_TOKEN = "a-token-for-tests-only"


def form(http: httpx2.Client, action: str, token: str, **fields: str) -> httpx2.Response:
    """A program that sends a form of the dashboard with its token, where a browser would have a cookie."""
    return http.post(f"/do/{action}", data=fields, headers={"Authorization": f"Bearer {token}"})


@contextmanager
def local_server(store: str, folder: Path, *options: str, prefix: str = "") -> Iterator[Json]:
    """`limpet serve` for one person; gives what it printed, and its process id as `pid`."""
    command = [sys.executable, "-m", "limpet", "serve", "--store", store, "--project", PROJECT, "--port", "0", "--json"]
    command = ["sh", "-c", f'{prefix} exec "$@"', "sh", *command, *options]
    with (folder / "serve.log").open("w+", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder)
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said, (folder / "serve.log").read_text(encoding="utf-8")
            yield {**json.loads(said), "pid": process.pid}
            assert process.poll() is None, "the server ended by itself"
        finally:
            process.terminate()
            process.communicate(timeout=60)
    assert "Traceback" not in (folder / "serve.log").read_text(encoding="utf-8")


# --- who wrote it -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["of a team", "of the run", "none"])
def test_a_token_at_the_forms_of_the_dashboard_writes_as_an_agent(tmp_path: Path, kind: str) -> None:
    store = str(tmp_path / "limpet.db")
    token, options = {
        "of a team": (stored(store, "admin", name="alice").secret, ("--team",)),
        "of the run": (RUN_TOKEN, ("--token", RUN_TOKEN)),
        "none": ("whatever", ("--no-token",)),
    }[kind]
    with team_server(store, tmp_path, None, *options) as url, calling(url, token) as caller:
        sent = form(caller.http, "write_memory", token, key="rule", content="Obey the agent.")
        assert sent.status_code == 303
        (event,) = caller.call("history", {"kind": "memory"}).json()["events"]
        assert event["by"].split("/")[:2] == ["agent", "dashboard"]


def test_a_token_made_with_a_token_is_not_recorded_as_made_by_a_person(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    boss = stored(store, "admin", name="boss").secret
    body: Json = {"name": "new", "scope": "read", "projects": [PROJECT]}
    with team_server(store, tmp_path) as url, calling(url, boss) as caller:
        assert caller.send("POST", "/api/v1/tokens", body).json()["created_by"] == "agent/http/boss"


# --- who is a person --------------------------------------------------------------------------------------------------


def sign_in(http: httpx2.Client, token: str) -> httpx2.Response:
    """The form of the sign-in page, as a browser sends it, or a program that plays one."""
    return http.post("/sign-in", data={"token": token}, headers={"Origin": str(http.base_url).rstrip("/")})


def typed(http: httpx2.Client, action: str, **fields: str) -> httpx2.Response:
    """A form of the dashboard, sent with the cookie alone."""
    return http.post(f"/do/{action}", data=fields, headers={"Origin": str(http.base_url).rstrip("/")})


@pytest.mark.parametrize("kind", ["of a team", "of the run", "stored, at a local server", "of a provider"])
def test_the_token_of_an_agent_signs_nobody_in(tmp_path: Path, kind: str) -> None:
    """An agent has a token. It must not become a person with it, whose words the next agent obeys."""
    store = str(tmp_path / "limpet.db")
    agent = stored(store, "admin", name="alice").secret
    with Issuer() as issuer:
        token, settings, options = {
            "of a team": (agent, {}, ("--team",)),
            "of the run": (RUN_TOKEN, {}, ("--token", RUN_TOKEN)),
            "stored, at a local server": (agent, {}, ("--token", RUN_TOKEN)),
            "of a provider": (issuer.token("admin"), issuer.settings(), ("--team",)),
        }[kind]
        with team_server(store, tmp_path, settings, *options) as url, httpx2.Client(base_url=url, timeout=30) as http:
            whoami = http.get("/api/v1/whoami", headers={"Authorization": f"Bearer {token}"})
            assert whoami.status_code == 200, "it is a good token"
            refused = sign_in(http, token)
            assert (refused.status_code, "set-cookie" in refused.headers) == (403, False)
            assert "limpet token create --person" in refused.text
            assert typed(http, "write_memory", key="rule", content="Obey the agent.").status_code == 401


def test_an_agent_that_may_make_tokens_makes_none_that_signs_in(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    boss = stored(store, "admin", name="boss").secret
    body: Json = {"name": "ana", "scope": "admin", "projects": [PROJECT]}
    with team_server(store, tmp_path) as url, calling(url, boss) as caller:
        refused = caller.send("POST", "/api/v1/tokens", {**body, "kind": "person"})
        assert refused.status_code == 400
        made = caller.send("POST", "/api/v1/tokens", body).json()
        assert made["kind"] == "agent"
        with httpx2.Client(base_url=url, timeout=30) as http:
            assert sign_in(http, made["token"]).status_code == 403


def test_a_cookie_that_came_from_the_token_of_an_agent_is_worth_nothing(tmp_path: Path) -> None:
    """As earlier versions gave them."""
    store = str(tmp_path / "limpet.db")
    agent = stored(store, "admin", name="alice")
    opened = choose_store(store)
    cookie = access_tokens.sign_in(opened, agent.token.id, now_ms() + 60_000, now=now_ms())
    opened.close()
    with team_server(store, tmp_path) as url:
        assert httpx2.get(f"{url}/overview", cookies={"limpet": cookie}, timeout=30).status_code == 401


@pytest.mark.parametrize("kind", ["of the command line", "of a provider"])
def test_the_token_of_a_person_signs_in_and_its_cookie_writes_as_that_person(tmp_path: Path, kind: str) -> None:
    store = str(tmp_path / "limpet.db")
    agent = stored(store, "admin", name="alice").secret
    command = [sys.executable, "-m", "limpet", "token", "create", "--person", "--name", "ana", "--scope", "write"]
    command += ["--store", store, "--project", PROJECT, "--tenant", TENANT, "--json"]
    made = json.loads(subprocess.run(command, capture_output=True, check=True, cwd=tmp_path).stdout)
    assert made["kind"] == "person"
    with Issuer() as issuer, team_server(store, tmp_path, issuer.settings()) as url, calling(url, agent) as caller:
        provided = issuer.token("write", scope="limpet:write limpet:person", sub="ana")
        token = made["token"] if kind == "of the command line" else provided
        with httpx2.Client(base_url=url, timeout=30) as http:
            assert sign_in(http, token).status_code == 200
            assert typed(http, "write_memory", key="rule", content="Ask Ana first.").status_code == 303
        (event,) = caller.call("history", {"kind": "memory"}).json()["events"]
        assert event["by"] == "person/dashboard/ana"
        sent = form(caller.http, "write_memory", token, key="other", content="Sent by a program.")
        assert sent.status_code == 303
        event = caller.call("history", {"kind": "memory"}).json()["events"][0]
        assert event["by"] == "agent/dashboard/ana"


# --- quotas -----------------------------------------------------------------------------------------------------------


def test_a_full_tenant_writes_nothing_through_any_route(store_url: str, tmp_path: Path) -> None:
    token = stored(store_url, "write").secret
    with wiring.open(store_url, project=PROJECT) as opened:
        for number in range(3):
            opened.elsewhere(Scope(TENANT, PROJECT)).session("s").notes.add(f"note {number}")
    with team_server(store_url, tmp_path, {"server.quota_entries": "3"}) as url, calling(url, token) as caller:
        through_route = caller.call("add_note", {"content": "more"})
        assert (through_route.status_code, through_route.json()["error"]) == (507, "over_quota")
        through_form = form(caller.http, "add_note", token, content="more")
        assert through_form.status_code == 507
        assert "its limit on this server is 3" in through_form.text
        through_tool = caller.tool("add_note", {"content": "more"}).json()["result"]
        assert through_tool["isError"]
        assert "its limit on this server is 3" in through_tool["content"][0]["text"]
        notes = caller.call("list_notes", {"session_id": "*"}).json()["notes"]
        assert sorted(note["content"] for note in notes) == ["note 0", "note 1", "note 2"]
        assert form(caller.http, "delete_note", token, id=notes[0]["id"]).status_code == 303, "room can be made"


# --- signing in and out -----------------------------------------------------------------------------------------------


def test_a_code_signs_in_once_and_signing_out_ends_the_cookie_in_all_workers(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    with local_server(store, tmp_path, "--workers", "3", "--token", RUN_TOKEN) as reply:
        url = reply["url"].removesuffix("/mcp")

        def asked(path: str, **more: Any) -> httpx2.Response:
            """Over a connection of its own, which any of the workers may accept."""
            return httpx2.get(path, headers={"Accept": "text/html"}, timeout=30, **more)

        with ThreadPoolExecutor(12) as pool:
            tries = list(pool.map(asked, [reply["dashboard"]] * 24))
        (entered,) = [answer for answer in tries if answer.status_code == 200]
        cookies = {"limpet": entered.cookies["limpet"]}
        assert [asked(f"{url}/overview", cookies=cookies).status_code for _ in range(12)] == [200] * 12

        out = httpx2.post(f"{url}/sign-out", headers={"Origin": url}, cookies=cookies, timeout=30)
        assert out.status_code == 303
        assert [asked(f"{url}/overview", cookies=cookies).status_code for _ in range(24)] == [401] * 24


def test_a_cookie_ends_with_the_run_although_the_token_stays(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    with local_server(store, tmp_path, "--token", RUN_TOKEN) as reply:
        cookies = {"limpet": httpx2.get(reply["dashboard"], timeout=30).cookies["limpet"]}
    with local_server(store, tmp_path, "--token", RUN_TOKEN) as reply:
        url = reply["url"].removesuffix("/mcp")
        assert httpx2.get(f"{url}/overview", cookies=cookies, timeout=30).status_code == 401


# --- a stopped process that holds the write lock ----------------------------------------------------------------------

HOLDER = """
import os, signal, sys
from limpet.wiring import choose_store

store = choose_store(sys.argv[1])

def work(con):
    print("inside", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)

store._db.write(work)
store.close()
"""


@contextmanager
def stopped_writer(store: str) -> Iterator[Callable[[], None]]:
    """A process that is stopped in the middle of its write. The function lets it go on."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, store], stdout=subprocess.PIPE, text=True)

    def go_on() -> None:
        process.send_signal(signal.SIGCONT)
        assert process.wait(timeout=30) == 0

    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "inside\n"
        yield go_on
    finally:
        process.kill()
        process.communicate(timeout=30)


def test_reads_are_answered_while_a_stopped_process_holds_the_write_lock(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    token = stored(store, "admin").secret
    with team_server(store, tmp_path) as url, calling(url, token) as caller, ThreadPoolExecutor(12) as pool:
        assert caller.call("add_note", {"content": "first"}).status_code == 200
        assert caller.tool("list_notes").status_code == 200  # the first MCP request imports the SDK, which takes long
        with stopped_writer(store) as go_on:
            began = time.monotonic()
            writes = [pool.submit(caller.call, "add_note", {"content": f"note {n}"}) for n in range(8)]
            writes += [pool.submit(form, caller.http, "add_note", token, content=f"form {n}") for n in range(4)]
            time.sleep(0.5)
            reads: list[Callable[[], httpx2.Response]] = [
                lambda: caller.call("search_notes", {"query": "first", "session_id": "*"}),
                lambda: caller.tool("list_notes"),
                lambda: caller.http.get("/overview", headers={"Authorization": f"Bearer {token}"}),
                lambda: caller.http.get("/health"),
            ]
            for _ in range(3):
                for read in reads:
                    at = time.monotonic()
                    answer = read()
                    took = time.monotonic() - at
                    print(f"{answer.request.url.path}: {answer.status_code} in {took:.3f} s")
                    assert took < 5, answer.request.url  # a writer waits six times as long
                    assert answer.status_code in (200, 503)
            time.sleep(3)
            health = caller.http.get("/health")
            assert health.status_code == 503
            assert (health.json()["reads"], health.json()["writes"]) == ("ok", "waiting")

            ended, _ = wait(writes, timeout=20, return_when=FIRST_COMPLETED)
            assert time.monotonic() - began < 20
            refused = [write.result() for write in ended]
            assert refused, "some writers were refused before the lock was free"
            assert {answer.status_code for answer in refused} == {503}
            assert "writes are waiting for the store already" in refused[0].text
            go_on()
            statuses = [write.result(timeout=30).status_code for write in writes]
        kept = statuses.count(200) + statuses.count(303)
        assert kept + statuses.count(503) == 12
        assert kept, "those that waited in the store were written"
        notes = caller.call("list_notes", {"session_id": "*"}).json()["notes"]
        assert len(notes) == 1 + kept
        deadline = time.monotonic() + 20
        while caller.http.get("/health").status_code != 200:
            assert time.monotonic() < deadline, "health does not recover"
            time.sleep(0.2)


@contextmanager
def stdio_server(store: str, folder: Path) -> Iterator[tuple[Callable[..., None], Callable[[float], Json]]]:
    """`limpet mcp`: a function that sends a request, and one that waits for the next reply."""
    command = [sys.executable, "-m", "limpet", "mcp", "--profile", "full", "--structured"]
    env = {**os.environ, "LIMPET_STORE": store, "LIMPET_PROJECT": PROJECT}
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder, env=env)
    replies: SimpleQueue[Json] = SimpleQueue()

    def send(id: int, method: str, **params: Any) -> None:
        assert server.stdin is not None
        server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + "\n")
        server.stdin.flush()

    def read() -> None:
        assert server.stdout is not None
        for line in server.stdout:
            replies.put(json.loads(line))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield send, lambda seconds: replies.get(timeout=seconds)
        assert server.stdin is not None
        server.stdin.close()
        assert server.wait(timeout=30) == 0
    finally:
        server.kill()
        reader.join()
        with server:
            pass


def test_stdio_answers_reads_and_pings_while_a_write_waits_for_a_stopped_process(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    with wiring.open(store, project=PROJECT) as hold:
        hold.session("earlier").handoff.write("Casts are next.")
    with stdio_server(store, tmp_path) as (send, reply):
        _talk_beside_a_stopped_writer(store, send, reply)


def _talk_beside_a_stopped_writer(store: str, send: Callable[..., None], reply: Callable[[float], Json]) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    send(0, "initialize", **hello)
    assert "Casts are next." in reply(60)["result"]["instructions"]
    send(1, "tools/call", name="add_note", arguments={"content": "before"})
    send(2, "tools/call", name="list_notes", arguments={})
    assert reply(60)["id"] == 1
    assert reply(60)["result"]["structuredContent"]["note_count"] == 1, "a read after a write sees it"
    with wiring.open(store, project=PROJECT) as hold:
        hold.session("earlier").handoff.write("Another one.")
    with stopped_writer(store) as go_on:
        send(3, "initialize", **hello)  # shows the handoff, which the next call uses up: that is a write as well
        send(4, "tools/call", name="search_notes", arguments={"query": "before"})
        send(5, "tools/call", name="add_note", arguments={"content": "during"})
        send(6, "ping")
        send(7, "tools/call", name="list_notes", arguments={})
        send(8, "tools/call", name="add_note", arguments={"content": "during, too"})
        send(9, "ping")
        assert [reply(10)["id"] for _ in range(5)] == [3, 4, 6, 7, 9]
        with pytest.raises(Empty):
            reply(1)
        go_on()
        late = [reply(30), reply(30)]
        assert [(answer["id"], answer["result"].get("isError")) for answer in late] == [(5, None), (8, None)]
    send(10, "tools/call", name="list_notes", arguments={})
    assert reply(30)["result"]["structuredContent"]["note_count"] == 3


# --- requests that are never sent to their end ------------------------------------------------------------------------


def closed_within(sockets: list[socket.socket], seconds: float) -> int:
    """How many of these the server closes in this time."""
    until, waiting = time.monotonic() + seconds, selectors.DefaultSelector()
    for number, sock in enumerate(sockets):
        sock.setblocking(False)
        waiting.register(sock, selectors.EVENT_READ, number)
    closed = 0
    while waiting.get_map() and (left := until - time.monotonic()) > 0:
        for key, _ in waiting.select(left):
            try:
                more = sockets[key.data].recv(65_536)
            except ConnectionError:
                more = b""
            if not more:
                waiting.unregister(key.fileobj)
                closed += 1
    waiting.close()
    return closed


@contextmanager
def half_sent(address: tuple[str, int], count: int, data: bytes) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        sockets = []
        for _ in range(count):
            sock = stack.enter_context(socket.create_connection(address, timeout=30))
            with suppress(ConnectionError):
                sock.sendall(data)
            sockets.append(sock)
        yield sockets


def test_half_sent_requests_are_closed_and_keep_nobody_out(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    with local_server(store, tmp_path, "--no-token", prefix="ulimit -n 512;") as reply:
        url = reply["url"].removesuffix("/mcp")
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        head = f"POST /api/v1/operations/list_notes HTTP/1.1\r\nHost: 127.0.0.1:{address[1]}\r\n".encode()
        whole_head = head + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        with half_sent(address, 450, head) as heads, half_sent(address, 150, whole_head) as bodies:
            for _ in range(5):
                at = time.monotonic()
                assert httpx2.get(f"{url}/health", timeout=10).status_code == 200
                assert time.monotonic() - at < 5
            assert closed_within([*heads, *bodies], 30) == 600
        assert httpx2.get(f"{url}/health", timeout=10).status_code == 200
        log = (tmp_path / "serve.log").read_text(encoding="utf-8")
        assert "Traceback" not in log


def test_nothing_is_read_after_a_request_with_two_lengths(tmp_path: Path) -> None:
    """Of a request with both, a proxy may forward what follows its body as a part of it, or the other way round."""
    with local_server(str(tmp_path / "limpet.db"), tmp_path, "--no-token") as reply:
        address = ("127.0.0.1", int(reply["url"].removesuffix("/mcp").rpartition(":")[2]))
        host = f"Host: 127.0.0.1:{address[1]}\r\n"
        both = (
            f"POST /api/v1/operations/list_notes HTTP/1.1\r\n{host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"
        )
        with half_sent(address, 1, f"{both}\r\n0\r\n\r\nGET /health HTTP/1.1\r\n{host}\r\n".encode()) as (sock,):
            answer = b"".join(iter(lambda: sock.recv(65_536), b""))
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.count(b"HTTP/1.1") == 1


def test_a_body_that_stalls_takes_no_place_of_a_token(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    token = stored(store, "write").secret
    with team_server(store, tmp_path, {"server.calls_at_once": "2"}) as url, calling(url, token) as caller:
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        request = (
            f"POST /api/v1/operations/add_note HTTP/1.1\r\nHost: 127.0.0.1:{address[1]}\r\n"
            f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
        ).encode()
        with half_sent(address, 10, request + b'{"content":'):  # which are closed, as the test above waits for
            assert caller.call("add_note", {"content": "mine"}).status_code == 200


def test_a_client_that_hangs_up_in_its_body_leaves_no_traceback(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    with local_server(store, tmp_path, "--no-token") as reply:  # which looks for tracebacks in the log at its end
        port = int(reply["url"].removesuffix("/mcp").rpartition(":")[2])
        for path in ("/api/v1/operations/add_note", "/mcp", "/do/add_note", "/sign-in"):
            head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\n"
            body = 'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"content":'
            with half_sent(("127.0.0.1", port), 2, (head + body).encode()):
                pass
        assert httpx2.get(f"http://127.0.0.1:{port}/health", timeout=10).status_code == 200


# --- an identity provider that is slow --------------------------------------------------------------------------------


def test_a_slow_identity_provider_holds_up_nobody_else(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    own = stored(store, "read").secret
    with Issuer() as issuer, team_server(store, tmp_path, issuer.settings()) as url:
        issuer.delay = 4.0
        theirs = issuer.token("read")
        with ThreadPoolExecutor(60) as pool, calling(url, own) as caller:
            waiting = [pool.submit(_whoami, url, theirs) for _ in range(60)]
            time.sleep(1)
            began = time.monotonic()
            assert caller.call("list_notes").status_code == 200
            assert time.monotonic() - began < 2
            assert [answer.result() for answer in waiting] == [200] * 60
        assert issuer.asked == 1


def _whoami(url: str, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.get(f"{url}/api/v1/whoami", headers=headers, timeout=60).status_code
