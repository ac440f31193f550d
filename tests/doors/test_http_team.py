"""A server for teams: tenants and projects apart, handles that belong to whoever got them, limits, who sees what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import httpx2
import pytest

from doors.mcp_client import hello
from doors.team_kit import PROJECT, TENANT, Caller, calling, stored, team_server
from limpet import wiring
from limpet.doors.http import policy
from limpet.doors.http.capacity import BURST_SECONDS, Rates
from limpet.doors.http.principal import Level, Principal
from limpet.doors.http.refusals import Refused
from limpet.model import Scope
from limpet.settings import ServerRules

BIG = "a line that says little\n" * 400


class Team:
    """Some people of one tenant, one of another, all in a project of the same name."""

    def __init__(self, store: str, http: httpx2.Client, tenant: str = TENANT) -> None:
        self.store, self.tenant = store, tenant
        self.alice = Caller(http, stored(store, "write", name="alice", tenant=tenant).secret)
        self.bob = Caller(http, stored(store, "write", name="bob", tenant=tenant).secret)
        self.reader = Caller(http, stored(store, "read", name="reader", tenant=tenant).secret)
        self.many = Caller(http, stored(store, "admin", name="many", tenant=tenant, projects=("*",)).secret)
        self.stranger = Caller(http, stored(store, "admin", name="stranger", tenant=f"not {tenant}").secret)


@contextmanager
def served(store: str, folder: Path, settings: dict[str, str] | None = None) -> Iterator[Team]:
    with team_server(store, folder, settings) as url, httpx2.Client(base_url=url, timeout=60) as http:
        yield Team(store, http)


class Hall(NamedTuple):
    """A server that many tests visit, each with a tenant of its own."""

    store: str
    url: str
    folder: Path


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def hall(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    folder = tmp_path_factory.mktemp("hall")
    store = str(folder / "limpet.db")
    if request.param == "postgres":
        store = request.getfixturevalue("module_postgres_url")
    with team_server(store, folder) as url:
        yield Hall(store, url, folder)


@pytest.fixture
def team(hall: Hall) -> Iterator[Team]:
    """People whom no other test knows."""
    with httpx2.Client(base_url=hall.url, timeout=60) as http:
        yield Team(hall.store, http, f"tenant {uuid4().hex}")


def good(answer: httpx2.Response) -> Any:
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def told(answer: httpx2.Response) -> Any:
    """What a tool answers through MCP."""
    return good(answer)["result"]["structuredContent"]


# --- apart ------------------------------------------------------------------------------------------------------------


def test_one_tenant_never_sees_another(team: Team) -> None:
    note = good(team.alice.call("add_note", {"content": "ours alone: parsnip"}))["note_id"]
    good(team.alice.call("write_memory", {"key": "goal", "content": "parsnip"}))
    good(team.alice.call("write_session_handoff", {"content": "parsnip"}))
    good(team.alice.call("write_notepad", {"content": "parsnip", "session_id": "s"}))
    them = team.stranger
    for operation, arguments in (
        ("list_notes", {"session_id": "*"}),
        ("search_notes", {"query": "parsnip", "session_id": "*"}),
        ("recall", {"query": "parsnip"}),
        ("search_memory", {"query": "parsnip"}),
        ("read_notepad", {"session_id": "s"}),
        ("history", {}),
        ("list_sessions", {}),
        ("audit", {}),
    ):
        for answer in (them.call(operation, arguments), them.tool(operation, arguments)):
            assert answer.status_code == 200 or "Unknown tool" in answer.text  # not every operation is a tool
            echoed = answer.text.replace('\\"', '"').replace('"query":"parsnip"', "")
            assert "parsnip" not in echoed, operation
    for operation, arguments in (
        ("update_note", {"id": note, "content": "stolen"}),
        ("delete_note", {"id": note}),
        ("read_memory", {"key": "goal"}),
        ("read_handoff", {}),
    ):
        assert them.call(operation, arguments).status_code == 404, operation
    assert "parsnip" not in them.rpc("prompts/get", {"name": "resume"}).text
    assert "parsnip" not in them.rpc("resources/read", {"uri": "limpet://handoff"}).text
    assert good(team.alice.call("list_notes", {"session_id": "*"}))["note_count"] == 1
    assert good(them.send("GET", "/api/v1/projects"))["projects"] == [PROJECT]


def test_an_output_of_another_tenant_is_not_there(team: Team) -> None:
    with wiring.open(team.store, project=PROJECT) as opened:
        shown = opened.elsewhere(Scope(team.tenant, PROJECT)).session("s").outputs.keep("shell", BIG)
    assert shown.output is not None
    for name in (shown.output.id, shown.output.digest):
        assert "a line that says" in good(team.alice.call("read_output", {"id": name}))["content"]
        there, never = (team.stranger.call("read_output", {"id": given}) for given in (name, "0" * len(name)))
        assert there.status_code == never.status_code == 404
        named, unnamed = (re.sub("'[0-9a-f]+", "'", answer.text) for answer in (there, never))
        assert named == unnamed, "it answers as if it never was"
    page = good(team.alice.call("read_output", {"id": shown.output.id, "tokens": 100}))
    assert page["cursor"]
    stolen = {"id": shown.output.id, "cursor": page["cursor"]}
    assert good(team.bob.call("read_output", stolen))["content"]
    assert team.stranger.call("read_output", stolen).status_code == 404
    assert team.many.call("read_output", stolen, at="/p/other").status_code == 404


def test_the_project_is_named_in_the_path_or_in_a_header(team: Team) -> None:
    many = team.many
    assert many.call("list_notes").json()["error"] == "project_needed"
    assert many.tool("list_notes").json()["error"] == "project_needed"
    good(many.call("add_note", {"content": "in one"}, at="/p/one"))
    good(many.tool("add_note", {"content": "in two"}, Limpet_Project="two"))
    good(many.call("add_note", {"content": "in ü x"}, Limpet_Project="%C3%BC%20x"))
    for name, path in (("one", "/p/one"), ("two", "/p/two"), ("ü x", "/p/%C3%BC%20x")):
        (note,) = told(many.tool("list_notes", {"session_id": "*"}, at=path))["notes"]
        assert note["content"] == f"in {name}"
    assert good(many.send("GET", "/api/v1/projects"))["projects"] == ["one", "two", "ü x"]
    assert many.call("list_notes", at="/p/one", Limpet_Project="two").json()["error"] == "two_projects"
    assert many.call("list_notes", at="/p/one", Limpet_Project="one").status_code == 200
    assert many.call("list_notes", Limpet_Project="").status_code == 400
    assert many.call("list_notes", Limpet_Project="x" * 300).status_code == 400
    assert many.call("list_notes", Limpet_Project="%00").status_code == 400
    assert many.call("list_notes", Limpet_Project="..").status_code == 200, "a name like any other"
    refused = team.alice.call("list_notes", at="/p/one")
    assert (refused.status_code, refused.json()["error"]) == (403, "wrong_project")
    assert team.alice.call("list_notes", at="/p/never-was").text.replace("never-was", "one") == refused.text


def test_files_beside_the_store_belong_to_the_project_they_are_in(hall: Hall) -> None:
    with httpx2.Client(base_url=hall.url, timeout=60) as http:
        files_stay(Team(hall.store, http), hall.folder)


def files_stay(team: Team, tmp_path: Path) -> None:
    good(team.alice.call("init_journal"))
    good(team.alice.call("update_journal", {"section": "task", "text": "parsnip"}))
    (journal,) = tmp_path.rglob("NOTES.md")
    listed = team.alice.rpc("tools/list").text
    assert "recover_journal" in listed
    assert "recover_journal" not in team.stranger.rpc("tools/list").text
    before = journal.read_bytes()
    assert b"parsnip" in before
    for caller, at in ((team.stranger, ""), (team.many, "/p/other")):
        for operation in (
            "recover_journal",
            "update_journal",
            "rotate_journal",
            "heal_journal",
            "list_skills",
            "promote_skill",
        ):
            answer = caller.call(operation, {}, at=at)
            assert (answer.status_code, answer.json()["error"]) == (409, "no_folder")
        for answer in (
            caller.rpc("prompts/get", {"name": "resume"}, at=at),
            caller.rpc("server/discover", at=at),
            caller.call("show_window", at=at),
        ):
            assert answer.status_code == 200
            assert "parsnip" not in answer.text
    assert journal.read_bytes() == before
    assert [found.name for found in tmp_path.rglob("NOTES.md")] == ["NOTES.md"]


# --- handles ----------------------------------------------------------------------------------------------------------


class Transport:
    """A client of the older revisions, which have a transport session."""

    def __init__(self, caller: Caller, at: str = "") -> None:
        self.caller, self.at = caller, at
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello("2025-06-18")}
        answer = caller.send("POST", f"{at}/mcp", body)
        self.opening = good(answer)["result"]
        self.id = answer.headers["mcp-session-id"]

    def call(
        self, tool: str, arguments: Any = None, *, by: Caller | None = None, at: str | None = None
    ) -> httpx2.Response:
        body = {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments or {}},
        }
        headers = {"Mcp_Session_Id": self.id, "MCP_Protocol_Version": "2025-06-18"}
        return (by or self.caller).send("POST", f"{self.at if at is None else at}/mcp", body, **headers)


def test_a_stolen_transport_session_opens_nothing(team: Team) -> None:
    session = Transport(team.alice)
    good(session.call("write_notepad", {"content": "mine"}))
    never = team.bob.send(
        "POST", "/mcp", {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, Mcp_Session_Id="0" * 32,
        MCP_Protocol_Version="2025-06-18",
    )  # fmt: skip
    for thief in (team.bob, team.reader, team.stranger):
        answer = session.call("read_notepad", by=thief)
        assert (answer.status_code, answer.text) == (never.status_code, never.text) == (404, never.text)
        assert thief.send("DELETE", "/mcp", Mcp_Session_Id=session.id).status_code == 404
        stream = thief.send("GET", "/mcp", Mcp_Session_Id=session.id, Accept="text/event-stream")
        assert stream.status_code == 404
    assert good(session.call("read_notepad"))["result"]["content"][0]["text"].startswith("mine\n")
    elsewhere = Transport(team.many, "/p/one")
    assert elsewhere.call("list_notes", at="/p/two").status_code == 404, "it belongs to its project too"
    assert elsewhere.call("list_notes").status_code == 200


def test_calls_that_name_no_session_are_of_the_token(team: Team) -> None:
    good(team.alice.call("write_notepad", {"content": "alice's"}))
    assert told(team.alice.tool("read_notepad"))["content"] == "alice's"
    assert good(team.bob.call("read_notepad"))["content"] == ""
    assert told(team.bob.tool("read_notepad"))["content"] == ""
    good(team.alice.call("write_notepad", {"content": "shared"}, Limpet_Session="s"))
    assert good(team.bob.call("read_notepad", Limpet_Session="s"))["content"] == "shared"
    assert good(team.alice.call("history"))["events"][0]["by"] == "agent/http/alice"
    told(team.bob.tool("add_note", {"content": "x"}))
    assert good(team.alice.call("history", {"kind": "note"}))["events"][0]["by"] == "agent/mcp/bob"


# --- who is shown what ------------------------------------------------------------------------------------------------


def test_tools_are_listed_for_those_who_may_call_them(team: Team) -> None:
    def tools(caller: Caller, at: str = "") -> set[str]:
        return {tool["name"] for tool in good(caller.rpc("tools/list", at=at))["result"]["tools"]}

    assert "add_note" not in tools(team.reader)
    assert {"search_notes", "recall"} <= tools(team.reader) < tools(team.alice)
    assert tools(team.many, "/p/one") == tools(team.stranger) == tools(team.alice)
    # One who may not call a tool and tries all the same is refused before MCP, and not told that it is unknown.
    assert team.reader.tool("add_note", {"content": "x"}).status_code == 403


def test_a_reader_sees_a_handoff_and_leaves_it_for_others(team: Team) -> None:
    good(team.alice.call("write_session_handoff", {"content": "remember the casts"}))
    session = Transport(team.reader)
    assert "remember the casts" in session.opening["instructions"]
    assert "add_note" not in session.opening["instructions"]
    good(session.call("list_notes"))
    assert "remember the casts" in Transport(team.reader).opening["instructions"]
    worker = Transport(team.bob)
    assert "remember the casts" in worker.opening["instructions"]
    # Another tenant's client of the same name, whose call must not use it up in our stead.
    good(team.stranger.rpc("server/discover"))
    good(team.stranger.tool("list_notes"))
    assert "remember the casts" in Transport(team.bob).opening["instructions"]
    assert "remember the casts" in good(worker.call("list_notes"))["result"]["structuredContent"]["context"]
    good(worker.call("list_notes"))
    assert "remember the casts" not in Transport(team.bob).opening["instructions"]


# --- a web page ------------------------------------------------------------------------------------------------------


# --- a web page ------------------------------------------------------------------------------------------------------


def test_a_web_page_cannot_reach_any_door(team: Team) -> None:
    for path in sorted({route.path for route in policy.ROUTES} | {"/p/home/mcp", "/"}):
        for origin in ("http://evil.example", "null", "https://127.0.0.1.evil.example"):
            for method in ("GET", "POST", "OPTIONS"):
                answer = team.many.send(method, path, None, Origin=origin)
                assert answer.status_code == 403
                assert not any(name.startswith("access-control") for name in answer.headers)
        assert team.many.send("GET", path, None, Host="evil.example").status_code == 421


def test_a_form_cannot_call_an_operation(team: Team) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = team.alice.send("POST", "/api/v1/operations/add_note", {"content": "x"}, Content_Type=kind)
        assert (answer.status_code, answer.json()["error"]) == (415, "not_json_type")
        assert team.many.send("POST", "/api/v1/tokens", {}, Content_Type=kind).status_code == 415


def test_a_public_address_is_a_name_of_ours(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    token = stored(store, "read").secret
    options = ("--team", "--url", "https://memory.example.org")
    port = _free_port()
    with (
        team_server(store, tmp_path, None, *options, "--port", str(port)) as shown,
        calling(f"http://127.0.0.1:{port}", token) as us,
    ):
        assert shown == "https://memory.example.org", "it says where clients reach it, not where it listens"
        own = {"Host": "memory.example.org", "Origin": "https://memory.example.org"}
        assert us.send("GET", "/api/v1/whoami", None, **own).status_code == 200
        assert (
            us.send("GET", "/api/v1/whoami", None, **(own | {"Origin": "http://memory.example.org"})).status_code == 403
        )


def _free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


# --- limits -----------------------------------------------------------------------------------------------------------


def person(id: str = "a", *, limited: bool = True) -> Principal:
    return Principal(id, "t", "x", Level.READ, ("p",), limited=limited)


def test_a_burst_passes_and_a_flood_does_not() -> None:
    now = [0.0]
    rates = Rates(ServerRules(calls_per_minute=60), lambda: now[0])
    for _ in range(BURST_SECONDS):
        assert rates.refusal(person()) is None
    refused = rates.refusal(person())
    assert refused is not None
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert rates.refusal(person("b")) is None, "others are not touched"
    assert rates.refusal(person(limited=False)) is None
    now[0] += 1.0
    assert rates.refusal(person()) is None
    assert rates.refusal(person()) is not None
    now[0] += 10_000
    for _ in range(BURST_SECONDS):
        assert rates.refusal(person()) is None
    assert rates.refusal(person()) is not None, "a long pause fills the bucket and no more"


def test_calls_at_once_are_counted_and_given_back() -> None:
    rates = Rates(ServerRules(calls_at_once=2))
    with rates.under_way(person(), "read"):
        with rates.under_way(person(), "read"):
            with pytest.raises(Refused) as refused, rates.under_way(person(), "read"):
                pass
            assert refused.value.answer.status_code == 429
            with rates.under_way(person("b"), "read"), rates.under_way(person(), "write"):
                pass
        with rates.under_way(person(), "read"):
            pass


def test_one_who_floods_is_told_to_wait_and_the_others_are_served(tmp_path: Path) -> None:
    with served(str(tmp_path / "limpet.db"), tmp_path, {"server.calls_per_minute": "60"}) as team:
        answers = [team.alice.call("list_notes") for _ in range(BURST_SECONDS * 3)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert refused
        assert {answer.status_code for answer in answers} == {200, 429}
        assert int(refused[0].headers["retry-after"]) >= 1
        assert refused[0].json()["error"] == "too_often"
        assert team.bob.call("list_notes").status_code == 200


def test_one_who_waits_for_much_at_once_holds_up_nobody(tmp_path: Path) -> None:
    with served(str(tmp_path / "limpet.db"), tmp_path, {"server.calls_at_once": "2"}) as team:
        child = good(team.alice.call("spawn_session", {"task": "never done"}))["id"]
        with ThreadPoolExecutor(6) as pool:
            waits = [
                pool.submit(team.alice.call, "wait_for_sessions", {"ids": [child], "seconds": 3}) for _ in range(6)
            ]
            statuses = sorted(wait.result().status_code for wait in waits)
        assert statuses.count(200) >= 2
        assert 429 in statuses
        assert team.bob.call("list_notes").status_code == 200
        assert team.alice.call("list_notes").status_code == 200, "what is over is given back"


def test_a_tenant_that_is_full_can_read_and_make_room(store_url: str, tmp_path: Path) -> None:
    with wiring.open(store_url, project=PROJECT) as opened:
        for number in range(3):
            opened.elsewhere(Scope(TENANT, f"project {number}")).session("s").notes.add(f"note {number}")
    with served(store_url, tmp_path, {"server.quota_entries": "3"}) as team:
        answer = team.alice.call("add_note", {"content": "more"})
        assert (answer.status_code, answer.json()["error"]) == (507, "over_quota")
        assert team.alice.call("list_notes").status_code == 200
        assert team.alice.call("delete_note", {"id": "note_1"}).status_code == 404
        assert team.stranger.call("add_note", {"content": "theirs"}).status_code == 200


def test_a_local_server_knows_no_limits_and_takes_stored_tokens_too(tmp_path: Path) -> None:
    store, own = str(tmp_path / "limpet.db"), "a-token-for-tests-only"
    reader = stored(store, "read").secret
    settings = {"server.calls_per_minute": "6", "server.quota_entries": "1"}
    with team_server(store, tmp_path, settings, "--token", own) as url:
        with calling(url, own) as caller:
            for _ in range(10):
                good(caller.call("add_note", {"content": "x"}))
            assert good(caller.send("GET", "/api/v1/whoami"))["scope"] == "admin"
            assert caller.call("list_notes", at="/p/other").status_code == 403
            assert good(caller.call("history"))["events"][0]["by"] == "agent/http"
        with calling(url, reader) as caller:
            assert caller.call("add_note", {"content": "x"}).status_code == 403
