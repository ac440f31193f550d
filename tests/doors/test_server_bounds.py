"""What a served store does not let its callers do: speak as somebody else, pass a quota, come back after signing out,
or keep others from being answered.

All of it through a real server process and real sockets.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from doors.team_kit import PROJECT, TENANT, Json, calling, stored, team_server
from limpet import wiring
from limpet.model import Scope

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
