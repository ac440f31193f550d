"""The life of a fact, told through every door: listed, corrected, expired, deleted and brought back.

And the story of Postgres 14 and 16: whoever reads it, in the window, the digest, recall, a handoff or the dashboard, is
told 16.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio.from_thread import start_blocking_portal

import limpet
from dashboard_kit import PROJECT, TOKEN, Served, browser, send, served
from doors.mcp_client import REVISIONS, Lines, sdk_session
from doors.team_kit import Caller
from limpet.window.messages import user

OLD, NEW = "We use Postgres 14", "Correction: we use Postgres 16, not 14"
CORRECTED = f'(Corrected since, in memory database: "{NEW}")'
Call = Callable[..., dict[str, Any]]
COMMANDS: dict[str, tuple[str, ...]] = {  # words and positional arguments of each operation
    "write_memory": ("memory", "write", "key", "content"),
    "list_memory": ("memory", "list"),
    "delete_memory": ("memory", "delete", "key"),
    "search_memory": ("memory", "search", "query"),
    "add_note": ("note", "add", "content"),
    "list_notes": ("note", "list"),
    "recall": ("recall", "query"),
    "undo": ("undo",),
    "undo_change": ("undo", "seq"),
    "history": ("history",),
}


def by_library(store: str) -> Iterator[Call]:
    with limpet.open(store, project=PROJECT) as hold:
        yield lambda name, **arguments: hold.call(name, arguments)


def by_commands(store: str) -> Iterator[Call]:
    def call(name: str, **arguments: Any) -> dict[str, Any]:
        named = COMMANDS[name]
        words = [arguments.pop(word) if word in arguments else word for word in named]
        for option, value in arguments.items():
            words += [f"--{option.replace('_', '-')}", *([] if value is True else [str(value)])]
        command = [sys.executable, "-m", "limpet", *words, "--json"]
        env = {**os.environ, "LIMPET_STORE": store, "LIMPET_PROJECT": PROJECT}
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=env)
        assert ran.returncode == 0, ran.stderr
        answer: dict[str, Any] = json.loads(ran.stdout)
        return answer

    yield call


def by_mcp(store: str) -> Iterator[Call]:
    # Tools of the full profile; what is for people alone is called as a person would.
    people = next(by_commands(store))
    command = [sys.executable, "-m", "limpet", "mcp", "--profile", "full", "--structured"]
    env = {"LIMPET_STORE": store, "LIMPET_PROJECT": PROJECT}
    with Lines(command, env) as client:
        client.open("2025-11-25")

        def call(name: str, **arguments: Any) -> dict[str, Any]:
            if name == "undo":
                return people("undo_change", seq=str(people("history")["events"][0]["seq"]))
            answer: dict[str, Any] = client.call(name, **arguments)
            return answer

        yield call


def by_sdk(store: str) -> Iterator[Call]:
    """The official client over stdio, in the newest revision."""
    people = next(by_commands(store))
    command = [sys.executable, "-m", "limpet", "mcp", "--profile", "full", "--structured"]
    with pytest.MonkeyPatch.context() as environment, start_blocking_portal() as portal:
        environment.setenv("LIMPET_STORE", store)
        environment.setenv("LIMPET_PROJECT", PROJECT)
        with portal.wrap_async_context_manager(sdk_session(command=command, revision=REVISIONS[-1])) as session:

            def call(name: str, **arguments: Any) -> dict[str, Any]:
                if name == "undo":
                    return people("undo_change", seq=str(people("history")["events"][0]["seq"]))
                answer = portal.call(session.call_tool, name, arguments)
                assert not answer.is_error, answer.content
                content: dict[str, Any] = answer.structured_content
                return content

            yield call


def by_http(store: str, folder: Path) -> Iterator[Call]:
    with served(store, folder) as site, httpx2.Client(base_url=site.url, timeout=30) as http:
        caller = Caller(http, TOKEN)

        def call(name: str, **arguments: Any) -> dict[str, Any]:
            answer = caller.call(name, arguments)
            assert answer.status_code == 200, answer.text
            body: dict[str, Any] = answer.json()
            return body

        yield call


@pytest.fixture(params=["library", "commands", "mcp", "sdk", "http"])
def call(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Call]:
    store = str(tmp_path / "limpet.db")
    if request.param == "http":
        yield from by_http(store, tmp_path)
    else:
        doors = {"library": by_library, "commands": by_commands, "mcp": by_mcp, "sdk": by_sdk}
        yield from doors[request.param](store)


def test_a_fact_is_listed_corrected_deleted_and_brought_back(call: Call) -> None:
    call("write_memory", key="db", content=OLD)
    written = call("write_memory", key="database", content=NEW)
    assert written["corrects"] == "db"
    assert {item["key"] for item in call("list_memory")["memories"]} == {"db", "database"}
    confirmed = call("write_memory", key="database", content=NEW, replaces="db")
    assert confirmed["replaced"] == "db"
    assert [item["key"] for item in call("list_memory")["memories"]] == ["database"]
    shown = {item["key"]: item for item in call("list_memory", include_replaced=True)["memories"]}
    assert shown["db"]["replaced_by"] == "database"
    assert [hit["id"] for hit in call("recall", query="which Postgres do we use")["hits"]] == ["database"]
    call("delete_memory", key="database")
    assert call("list_memory")["memories"] == []
    call("undo")
    assert [item["key"] for item in call("list_memory")["memories"]] == ["database"]


FREEZE, EARLIER = "The freeze lasts for two days", "The freeze of last week holds for an hour"
HOUR = 3_600_000


def test_a_fact_expires(call: Call, tmp_path: Path) -> None:
    store, now = str(tmp_path / "limpet.db"), time.time_ns() // 1_000_000
    with limpet.open(store, project=PROJECT, clock=lambda: now - 2 * HOUR) as hold:
        hold.call("add_note", {"content": EARLIER, "expires": "1h"})
    call("add_note", content=FREEZE, expires="2d")
    call("write_memory", key="freeze", content="Nothing is merged before it ends", expires="2d")
    (note,) = call("list_notes")["notes"]
    assert note["content"] == FREEZE
    (memory,) = call("list_memory")["memories"]
    ends = datetime.fromisoformat(memory["expires_at"]).timestamp() * 1_000
    assert now + 48 * HOUR - 1_000 <= ends <= now + 49 * HOUR, "two days after the call"
    hits = call("recall", query="how long does the freeze last?")["hits"]
    assert EARLIER not in "".join(hit["text"] for hit in hits).replace("«", "").replace("»", "")
    with limpet.open(store, project=PROJECT, clock=lambda: now + 49 * HOUR) as hold:
        assert hold.call("list_notes", {})["notes"] == []
        assert hold.call("list_memory", {})["memories"] == []
        shown = hold.call("list_memory", {"include_replaced": True})["memories"]
        assert [item["key"] for item in shown] == ["freeze"]
        assert hold.session("new").memory.digest().text == ""


# --- the dashboard ----------------------------------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Served]:
    with served(str(tmp_path / "limpet.db"), tmp_path) as running:
        yield running


def test_a_person_lists_corrects_expires_and_deletes_on_the_dashboard(site: Served) -> None:
    with browser(site) as client:
        send(client, "write_memory", key="db", content=OLD, replaces="", expires="")
        send(client, "write_memory", key="database", content=NEW, back="/memory")
        hint = "It seems to correct db: save the same again with db under Replaces"
        assert hint in client.get("/memory").text
        assert hint not in client.get("/memory").text, "once"
        client.cookies.set("limpet-notice", "Memory was saved.%0Anothing-of-that-name", domain="127.0.0.1")
        assert "nothing-of-that-name" not in client.get("/memory").text
        send(client, "write_memory", key="database", content=NEW, replaces="db", expires="2999-01-01")
        page = client.get("/memory").text
        assert NEW in page
        assert OLD not in page
        assert "until 2999-01-01" in page
        replaced = client.get("/memory?replaced=yes").text
        assert OLD in replaced
        assert "by database" in replaced
        one = client.get("/remembered?key=database").text
        assert "replaces db" in one
        assert "opened once" in one
        send(client, "delete_memory", key="database")
        assert NEW not in client.get("/memory").text
        assert "<code>limpet memory search</code> finds" in send(client, "delete_memory", key="database").text
        assert "forgot" in client.get("/history").text
        with limpet.open(site.store, project=PROJECT) as hold:
            hold.call("undo", {}, by="person/cli")
        assert NEW in client.get("/memory").text


# --- Postgres 14 and 16 -----------------------------------------------------------------------------------------------


def test_postgres_14_is_16_now_wherever_one_reads(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    now = [1_772_539_200_000]
    with limpet.open(store, project=PROJECT, folder=str(tmp_path), clock=lambda: now[0]) as hold:
        first = hold.session("monday")
        first.memory.write("db", OLD)
        first.handoff.write("Port the schema. We use Postgres 14 for everything.")
        now[0] += 60_000
        first.memory.write("database", NEW, replaces="db")
        second = hold.session("tuesday")
        _told_right(second.memory.digest().text, "digest")
        (hit,) = hold.recall("which Postgres do we use?", kinds=["memory"]).hits
        _told_right(hit.snippet.replace("«", "").replace("»", ""), "recall")
        handoff = second.context()
        assert "We use Postgres 14 for everything" in handoff, "a handoff stays as it was written"
        assert CORRECTED in handoff
        assert hold.call("read_handoff", {})["since"] == [CORRECTED]
        found = hold.recall("which Postgres do we use?", kinds=["memory", "handoffs"]).hits
        assert {hit.kind: hit.corrected_in for hit in found} == {"memory": (), "handoff": ("memory database",)}
        (left,) = hold.call("recall", {"query": "Port the schema", "kinds": ["handoffs"]})["hits"]
        assert left["corrected_in"] == ["memory database"]
        step = second.window.next([user("Which Postgres version do we use?")], limit=100_000)
        _told_right("\n".join(message.text() for message in step.messages[1:]), "window")
    with served(store, tmp_path) as site, browser(site) as client:
        page = client.get("/memory").text
        assert NEW in page
        assert OLD not in page
        for address in ("/handoffs", "/handoff?line=main"):
            page = client.get(address).text
            assert page.index("We use Postgres 14 for everything") < page.index("Corrected since, in memory database")
        answer = re.sub(r"</?mark>", "", client.get("/recall?q=which+Postgres+do+we+use").text)
        assert answer.index("Postgres 16, not 14") < answer.index("Postgres 14 for everything")
        (mark,) = re.findall(r"corrected since in: (.+?)</span>", answer)
        assert 'href="/remembered?key=database"' in mark
    env = {"LIMPET_STORE": store, "LIMPET_PROJECT": PROJECT}
    with Lines([sys.executable, "-m", "limpet", "mcp", "--session", "wednesday"], env) as client:
        client.open("2025-11-25")
        assert CORRECTED in client.text("read_handoff")
        lines = client.text("recall", query="which Postgres do we use?").splitlines()
        (marked,) = [line for line in lines if "corrected since in memory database" in line]
        assert "Postgres 14 for everything" in marked
        both = client.text("recall", query="which Postgres do we use?", kinds=["memory"], include_replaced=True)
        assert both.index("memory database") < both.index("memory db replaced by database")
        listed = client.text("search_memory", query="Postgres 14", include_replaced=True)
        assert "db replaced by database" in listed
        client.call("write_session_handoff", content="We use Postgres 16; the schema is ported.")
        (newer,) = [
            line for line in client.text("recall", query="schema is ported").splitlines() if "is ported" in line
        ]
        assert "corrected since" not in newer


def test_what_has_drifted_or_was_corrected_is_told_at_a_terminal_and_on_the_dashboard(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "limits.py").write_text("LIMIT = 100\n")

    def says(*words: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-m", "limpet", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    says("memory", "write", "limit", "The limit of uploads is 100", "--anchor", "limits.py:1")
    says("memory", "write", "db", OLD)
    says("handoff", "write", OLD + ". The limit of uploads is next.")
    (tmp_path / "limits.py").write_text("LIMIT = 250\n")
    says("memory", "write", "database", NEW, "--replaces", "db")
    (drifted,) = [line for line in says("recall", "limit of uploads").splitlines() if "\tlimit\t" in line]
    assert re.search(r"was true at \d{4}-\d\d-\d\d: limits.py:1 has changed since", drifted)
    (left,) = [line for line in says("recall", "limit of uploads").splitlines() if line.startswith("handoff\t")]
    assert "corrected since in memory database" in left
    (old,) = [line for line in says("recall", "Postgres", "--include-replaced").splitlines() if "\tdb\t" in line]
    assert "replaced by database" in old
    assert CORRECTED in says("handoff", "show")
    with served("", tmp_path) as site, browser(site) as client:
        page = client.get("/recall?q=limit+of+uploads").text
        assert re.search(r"was true at \d{4}-\d\d-\d\d: limits.py:1 has changed since", page)
        assert "corrected since in: " in page


def _told_right(text: str, place: str) -> None:
    assert NEW in text, place
    assert OLD not in text.replace("We use Postgres 14 for everything", ""), place


# --- what travels beside the arguments --------------------------------------------------------------------------------


def test_versions_and_keys_travel_in_headers_and_in_meta(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    with served(store, tmp_path) as site, httpx2.Client(base_url=site.url, timeout=30) as http:
        caller = Caller(http, TOKEN)
        append = {"key": "log", "content": "one line of it", "mode": "append"}
        answers = [caller.call("write_memory", append, Idempotency_Key="a").json() for _ in range(2)]
        assert answers[0] == answers[1]
        assert caller.call("read_memory", {"key": "log"}).json()["content"] == "one line of it"
        other = caller.call("write_memory", {**append, "content": "other"}, Idempotency_Key="a")
        assert other.status_code == 409
        stale = caller.call("write_memory", {"key": "log", "content": "new text"}, If_Match='"7"')
        assert stale.status_code == 409
        fresh = caller.call("write_memory", {"key": "log", "content": "new text"}, If_Match='"1"')
        assert fresh.json()["version"] == 2
        assert caller.call("delete_memory", {"key": "log"}, If_Match='"1"').status_code == 409
        assert caller.call("read_memory", {"key": "log"}).json()["content"] == "new text"
    env = {"LIMPET_STORE": store, "LIMPET_PROJECT": PROJECT}
    with Lines([sys.executable, "-m", "limpet", "mcp", "--structured"], env) as client:
        client.open("2025-11-25")
        call = {"name": "add_note", "arguments": {"content": "Written once, over MCP"}}
        retried = {**call, "_meta": {"limpet/idempotencyKey": "b"}}
        first, second = (client.ask("tools/call", retried)["structuredContent"] for _ in range(2))
        assert first["note_id"] == second["note_id"]
        changed = {"name": "delete_note", "arguments": {"id": first["note_id"]}, "_meta": {"limpet/expectedVersion": 7}}
        assert client.ask("tools/call", changed)["isError"]
        names = {tool["name"]: tool for tool in client.ask("tools/list")["tools"]}
        assert "replaces" in names["add_note"]["inputSchema"]["properties"]
        assert "idempotency_key" not in names["add_note"]["inputSchema"]["properties"]
        late = {"name": "write_memory", "arguments": {"key": "log", "content": "z y x"}}
        refused = client.ask("tools/call", {**late, "_meta": {"limpet/expectedVersion": 1}})
        assert refused["isError"]
