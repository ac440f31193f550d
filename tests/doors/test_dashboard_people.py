"""Who the dashboard lets in: signing in and out, forms of other pages, tokens of a team and what each may see."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dashboard_kit import BY_CODE, PROJECT, TOKEN, Seen, Served, browser, person_token, project, send, served, walk
from limpet import wiring
from limpet.api import wall_clock
from limpet.doors.dashboard.app import ACTIONS
from limpet.doors.dashboard.pages import PAGES
from limpet.importers import sample
from limpet.upkeep import access_tokens

# --- who is let in ----------------------------------------------------------------------------------------------------


def test_without_a_sign_in_there_is_only_the_form(site: Served) -> None:
    with browser(site, None) as client:
        for path in ("/", *(f"/{name}" for name in PAGES), "/events"):
            answer = client.get(path)
            assert answer.status_code == 401
            assert 'action="/sign-in"' in answer.text
            assert "tidewater" not in answer.text
        plain = client.get("/overview", headers={"Accept": "*/*"})
        assert plain.status_code == 401
        assert plain.json()["error"] == "unauthorized"
        assert send(client, "add_note", content="x").status_code == 401


def test_a_wrong_token_is_refused_and_a_right_one_gives_a_guarded_cookie(site: Served) -> None:
    token = person_token(site.store, "read").secret
    with browser(site, None) as client:
        wrong = client.post("/sign-in", data={"token": "nonsense"}, headers={"Origin": site.url})
        assert wrong.status_code == 403
        assert "set-cookie" not in wrong.headers
        right = client.post("/sign-in", data={"token": token}, headers={"Origin": site.url})
        cookie = right.headers["set-cookie"]
        assert {"HttpOnly", "Path=/", "SameSite=strict"} <= {part.strip() for part in cookie.split(";")}
        assert token not in cookie
        assert client.get("/", follow_redirects=False).headers["location"] == "/overview"


def test_the_address_that_is_printed_signs_in_once(tmp_path: Path) -> None:
    folder = tmp_path
    store = project(folder, means_harm=False)
    with served(store, folder) as site:
        assert TOKEN not in site.dashboard
        with browser(site, None) as client:
            assert client.get(site.dashboard).status_code == 200
            assert client.get("/overview").status_code == 200
        with browser(site, None) as client:
            assert client.get(site.dashboard).status_code == 403
            assert client.get("/overview").status_code == 401
            assert client.get(site.dashboard.replace("code=1", "code=2")).status_code == 403


def test_a_cookie_opens_pages_and_nothing_else(site: Served) -> None:
    with browser(site) as client:
        assert client.get("/overview").status_code == 200
        assert client.get("/api/v1/whoami").status_code == 401
        assert client.post("/mcp", json={}).status_code == 401
        assert client.post("/api/v1/operations/list_notes", json={}).status_code == 401


@pytest.mark.parametrize("way", ["code", "token"])
def test_signing_out_ends_it_also_for_who_copied_the_cookie(tmp_path: Path, way: str) -> None:
    store = project(tmp_path, means_harm=False)
    token = BY_CODE if way == "code" else person_token(store, "read").secret
    with served(store, tmp_path) as site, browser(site, token) as client, browser(site, None) as thief:
        thief.cookies.update(dict(client.cookies))
        assert thief.get("/overview").status_code == 200
        assert client.post("/sign-out", headers={"Origin": site.url}).status_code == 303
        assert client.get("/overview").status_code == 401
        assert thief.get("/overview").status_code == 401


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "http://127.0.0.1:1", "http://localhost.evil.example"]
)
def test_a_form_of_another_page_changes_nothing(site: Served, origin: str | None) -> None:
    headers = {} if origin is None else {"Origin": origin}
    with browser(site) as client:
        for path in ("/do/add_note", "/sign-in", "/sign-out"):
            answer = client.post(path, data={"content": "planted by another page", "token": TOKEN}, headers=headers)
            assert answer.status_code == 403, path
        assert client.get("/overview").status_code == 200
        assert "planted" not in client.get("/notes").text
        crossed = client.post(
            "/do/add_note", data={"content": "planted"}, headers={"Origin": site.url, "Sec-Fetch-Site": "same-site"}
        )
        assert crossed.status_code == 403


@pytest.mark.parametrize("path", ["/overview", "/events", "/static/dashboard.js", "/sign-in", "/"])
def test_no_other_name_and_no_other_page_reaches_it(site: Served, path: str) -> None:
    port = urlsplit(site.url).port
    with browser(site) as client:
        for host in (
            "evil.example",
            f"evil.example:{port}",
            f"127.0.0.1.evil.example:{port}",
            f"127.0.0.1@evil:{port}",
        ):
            assert client.get(path, headers={"Host": host}).status_code == 421, host
        for origin in ("null", "http://evil.example", f"https://127.0.0.1:{port}", "http://127.0.0.1:1"):
            assert client.get(path, headers={"Origin": origin}).status_code == 403, origin


# --- a team -----------------------------------------------------------------------------------------------------------


def test_revoking_the_token_ends_the_sign_in_within_a_second(tmp_path: Path) -> None:
    store = project(tmp_path, means_harm=False)
    token = person_token(store, "write")
    with served(store, tmp_path, "--team", LIMPET_TOKEN="") as site, browser(site, token.secret) as client:
        assert client.get("/overview").status_code == 200
        assert token.secret not in str(dict(client.cookies))
        with client.stream("GET", "/events", headers={"Accept": "text/event-stream"}) as stream:
            lines = stream.iter_lines()
            assert next(line for line in lines if line.startswith("event:")) == "event: now"
            with wiring.open(store, project=PROJECT) as hold:
                access_tokens.revoke(hold.store, token.token.id, tenant=None, by="person/test", now=wall_clock())
            at = time.monotonic()
            assert [line for line in lines if line.startswith("event:")] == ["event: over"]
            assert time.monotonic() - at < 10  # as fast as a poll; the rule of one second is for requests
        assert client.get("/overview").status_code == 401


def test_who_may_only_read_sees_no_buttons_and_changes_nothing(tmp_path: Path) -> None:
    store = project(tmp_path, means_harm=False)
    token = person_token(store, "read")
    with served(store, tmp_path, "--team", LIMPET_TOKEN="") as site, browser(site, token.secret) as client:
        for link, seen in walk(client, 80).items():
            forms = [given["action"] for tag, given in seen.elements if tag == "form" and given.get("method") == "post"]
            assert forms == ["/sign-out"], link
        for action in ACTIONS:
            assert send(client, action, id="x", key="x", content="planted").status_code == 403
        assert "planted" not in client.get("/history").text


def test_a_token_for_several_projects_chooses_and_stays_in_its_own(tmp_path: Path) -> None:
    store = project(tmp_path, means_harm=False)
    with wiring.open(store, project="second one") as hold:
        hold.session("x").notes.add("only here")
    with wiring.open(store, project="hidden") as hold:
        hold.session("x").notes.add("not yours")
    token = person_token(store, "write", PROJECT, "second one")
    with served(store, tmp_path, "--team", LIMPET_TOKEN="") as site, browser(site, token.secret) as client:
        home = client.get("/")
        assert Seen(home.text).links()[-2:] == ["/p/second%20one/overview", f"/p/{PROJECT}/overview"]
        assert "hidden" not in home.text
        assert "only here" in client.get("/p/second%20one/notes").text
        assert all(
            link.startswith("/p/second%20one/") or link == "/"
            for link in Seen(client.get("/p/second%20one/notes").text).links()
        )
        assert client.get("/p/hidden/notes").status_code == 403
        assert client.get("/notes").status_code == 400
        origin = {"Origin": site.url}
        answer = client.post(
            "/p/second%20one/do/add_note", data={"content": "mine", "session": "x", "back": "/notes"}, headers=origin
        )
        assert answer.headers["location"] == "/p/second%20one/notes"
        with wiring.open(store, project="second one") as hold:
            assert [note.content for note in hold.session("x").notes.list()] == ["mine", "only here"]


def test_a_stored_token_signs_in_at_a_local_server_too(tmp_path: Path) -> None:
    store = project(tmp_path, means_harm=False)
    token = person_token(store, "read", name="grace")
    with served(store, tmp_path) as site, browser(site, token.secret) as client:
        assert "grace" in client.get("/overview").text
        assert client.post("/sign-out", headers={"Origin": site.url}).status_code == 303
        assert client.get("/overview").status_code == 401


def test_on_a_server_for_teams_sample_is_a_project_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = project(tmp_path, means_harm=False)
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path / "data"))
    sample.make(wall_clock())
    token = person_token(store, "write", sample.PROJECT)
    with served(store, tmp_path, "--team", LIMPET_TOKEN="") as site, browser(site, token.secret) as client:
        page = client.get("/p/sample/sessions")
        assert page.status_code == 200
        assert "round-totals" not in page.text, "the server's own machine is not shown"
        send(client, "add_note", content="of the team", session="x")
    with wiring.open(store, project="sample") as hold:
        assert [note.content for note in hold.session("x").notes.list()] == ["of the team"]


def test_on_a_server_for_teams_health_names_nothing_of_others(tmp_path: Path) -> None:
    store = project(tmp_path, means_harm=False)
    with wiring.open(store, project="hidden") as hold:
        hold.session("x").memory.write("secret-key", "not yours")
    with sqlite3.connect(store) as con:
        con.execute("UPDATE entries SET content = 'other' WHERE key = 'secret-key'")
    con.close()
    with served(store, tmp_path) as site, browser(site) as client:
        assert "secret-key" in client.get("/settings?check=yes").text, "the person of the machine is told"
    token = person_token(store, "read")
    with served(store, tmp_path, "--team", LIMPET_TOKEN="") as site, browser(site, token.secret) as client:
        page = client.get("/settings?check=yes").text
    assert "Health and settings" in page
    for word in ("secret-key", "project &#x27;hidden", store, "Check every text", " settings</summary>"):
        assert word not in page
