"""What a served store does not let its callers do: speak as somebody else, pass a quota, come back after signing out,
or keep others from being answered.

All of it through a real server process and real sockets.
"""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from doors.team_kit import PROJECT, TENANT, Json, calling, stored, team_server
from limpet import wiring
from limpet.model import Scope

RUN_TOKEN = "a-token-for-tests-only"


def form(http: httpx2.Client, action: str, token: str, **fields: str) -> httpx2.Response:
    """A program that sends a form of the dashboard with its token, where a browser would have a cookie."""
    return http.post(f"/do/{action}", data=fields, headers={"Authorization": f"Bearer {token}"})


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
