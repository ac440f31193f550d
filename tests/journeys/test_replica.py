"""`limpet serve` with a streaming replica set: seen from its clients, and from those who run it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from doors.cli_runner import COMMAND
from doors.team_kit import PROJECT, Caller, calling, stored, team_server
from own_postgres import Pair, pair

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def servers() -> Iterator[Pair]:
    with pair(synchronous=False) as both:
        yield both


@contextmanager
def served(servers: Pair, folder: Path, name: str) -> Iterator[Caller]:
    """A server with the replica set, and a client that may do everything in it."""
    token = stored(servers.primary.url, "admin", name=name).secret
    (folder / name).mkdir()
    settings = {"store_replica": servers.standby.url}
    with (
        team_server(servers.primary.url, folder / name, settings, "--team", "--metrics") as url,
        calling(url, token) as caller,
    ):
        yield caller


def counts(caller: Caller) -> dict[str, int]:
    """Searches by who answered them, and why, as /metrics tells."""
    text = caller.send("GET", "/metrics").text
    lines = [line.split() for line in text.splitlines() if line.startswith("limpet_searches_total")]
    return {name.removeprefix("limpet_searches_total"): int(count) for name, count in lines}


REPLICA, BEHIND, AWAY = '{by="replica"}', '{by="primary",why="behind"}', '{by="primary",why="away"}'


def told(caller: Caller, operation: str, **arguments: Any) -> Any:
    answer = caller.call(operation, arguments, at=f"/p/{PROJECT}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def recalled(caller: Caller, query: str) -> list[str]:
    return [hit["text"].replace("«", "").replace("»", "") for hit in told(caller, "recall", query=query)["hits"]]


def until_replica(caller: Caller, query: str) -> list[str]:
    """The answer to a question as the replica gives it, as soon as it does so alone."""
    deadline = time.monotonic() + 60
    while True:
        before = counts(caller)
        found = recalled(caller, query)
        after = counts(caller)
        if {name for name in after if after[name] != before.get(name, 0)} == {REPLICA}:
            return found
        assert time.monotonic() < deadline, after
        time.sleep(0.05)


def test_what_one_server_kept_another_finds_at_once_and_the_replica_later(servers: Pair, tmp_path: Path) -> None:
    with served(servers, tmp_path, "one") as one, served(servers, tmp_path, "two") as two:
        told(one, "add_note", content="the heron stands in the reeds")
        assert until_replica(two, "heron") == ["the heron stands in the reeds"]
        with servers.paused():
            told(one, "add_note", content="the second heron has flown")
            told(one, "write_memory", key="herons", content="there are two of them")
            before = counts(two)
            assert len(recalled(two, "heron")) == 3
            assert len(recalled(one, "heron")) == 3
            session = told(one, "list_sessions")["sessions"][0]["id"]
            assert told(two, "search_notes", query="heron", session_id=session)["result_count"] == 2
            assert told(two, "search_memory", query="herons")["match_count"] == 1
            after = counts(two)
            assert after[REPLICA] == before[REPLICA]
            assert after[BEHIND] > before.get(BEHIND, 0)
        assert len(until_replica(two, "heron")) == 3
        before = counts(two)
        assert told(two, "search_notes", query="heron", session_id=session)["result_count"] == 2
        assert told(two, "search_memory", query="herons")["match_count"] == 1
        after = counts(two)
        assert after[REPLICA] >= before[REPLICA] + 2
        assert after[BEHIND] == before[BEHIND]


def test_other_tenants_find_nothing_of_it_on_the_replica(servers: Pair, tmp_path: Path) -> None:
    stranger = stored(servers.primary.url, "write", tenant="umbra").secret
    with served(servers, tmp_path, "here") as here:
        told(here, "add_note", content="a bittern booms")
        assert until_replica(here, "bittern") == ["a bittern booms"]
        there = here._replace(token=stranger)
        assert recalled(there, "bittern") == []
        told(there, "add_note", content="another bittern")
        assert recalled(there, "bittern") == ["another bittern"]
        assert until_replica(here, "bittern") == ["a bittern booms"]


def examined(servers: Pair, folder: Path, replica: str) -> tuple[int, dict[str, tuple[str, str]]]:
    env = {**os.environ, "LIMPET_STORE": servers.primary.url, "LIMPET_STORE_REPLICA": replica}
    done = subprocess.run(
        [*COMMAND, "doctor", "--json"], cwd=folder, env=env, capture_output=True, text=True, timeout=100, check=False
    )
    found = json.loads(done.stdout)["findings"]
    return done.returncode, {one["name"]: (one["state"], one["detail"]) for one in found}


def test_the_doctor_looks_at_the_replica_too(servers: Pair, tmp_path: Path) -> None:
    servers.caught_up()
    code, found = examined(servers, tmp_path, servers.standby.url.replace("keeper@", "keeper:hidden@"))
    assert (code, found["replica"][0]) == (0, "ok")
    assert "hidden" not in repr(found)
    assert "…@" in found["replica place"][1]
    code, found = examined(servers, tmp_path, servers.standby.url.replace("5432", "1"))
    assert (code, found["replica"][0]) == (5, "problem")
    assert "does not answer" in found["replica"][1]
    code, found = examined(servers, tmp_path, "mysql://me:hidden@two/db")
    assert (code, found["store"][0]) == (5, "problem")
    assert "store_replica" in found["store"][1]
    assert "hidden" not in found["store"][1]


def test_a_replica_dies_and_comes_back_and_nobody_notices(tmp_path: Path) -> None:
    with pair(synchronous=False) as servers, served(servers, tmp_path, "one") as caller:
        told(caller, "add_note", content="a curlew calls")
        until_replica(caller, "curlew")
        servers.standby.kill()
        before = counts(caller)
        for number in range(2, 5):
            told(caller, "add_note", content=f"curlew number {number}")
            assert len(recalled(caller, "curlew")) == number
        after = counts(caller)
        assert after[REPLICA] == before[REPLICA]
        assert after[AWAY] > before.get(AWAY, 0)
        servers.follow()
        assert len(until_replica(caller, "curlew")) == 4
