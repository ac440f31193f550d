"""The first minute at the dashboard: what to do next, the sample, refusals as pages, export, a lasting token."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

import limpet
from dashboard_kit import HTML, PROJECT, TOKEN, Served, browser, project, served
from limpet import wiring
from limpet.doors.cli import serve
from limpet.importers import sample


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    (folder / ".claude").mkdir(parents=True)
    return folder


@contextmanager
def empty(home: Path, tmp_path: Path) -> Iterator[tuple[Served, httpx2.Client]]:
    settings = {"HOME": str(home), "LIMPET_HOME": str(home / "data")}
    with served(str(tmp_path / "new.db"), tmp_path, **settings) as site, browser(site) as client:
        yield site, client


def test_an_empty_project_opens_on_what_to_do_first(home: Path, tmp_path: Path) -> None:
    with empty(home, tmp_path) as (_, client):
        page = client.get("/", follow_redirects=True)
        assert page.url.path == "/start"
        assert "limpet install claude-code" in page.text.partition("Others")[0], "it was found in the home folder"
        assert "limpet import transcript claude-code --all" in page.text
        assert not (tmp_path / "new.db").exists(), "looking makes no store"


def test_a_sample_project_with_one_click(home: Path, tmp_path: Path) -> None:
    with empty(home, tmp_path) as (site, client):
        made = client.post("/sample", data={"what": "make"}, headers={"Origin": site.url}, follow_redirects=True)
        assert made.url.path == "/p/sample/overview"
        assert "This is the sample project." in made.text
        assert "Round the totals of the cart once" in made.text
        talk = client.get("/p/sample/messages?session=round-totals").text
        assert "check_invoice.py" in talk
        assert "were folded into a summary" in talk
        assert "s-drifted" in client.get("/p/sample/remembered?key=shipping").text
        assert "Postgres 14" in client.get("/p/sample/remembered?key=database").text, "what it said before"
        assert "Round once" in client.get("/p/sample/journal").text
        assert client.get("/overview").status_code == 200
        assert "round-totals" not in client.get("/sessions").text, "it is a project of its own"
        client.post("/sample", data={"what": "delete"}, headers={"Origin": site.url})
        assert client.get("/p/sample/overview").status_code == 404
        assert not (home / "data" / "sample").exists()
        assert client.post("/sample", data={"what": "make"}).status_code == 403, "a form of another site"
        token = {"Authorization": f"Bearer {TOKEN}"}
        assert httpx2.post(f"{site.url}/sample", data={"what": "make"}, headers=token).status_code == 404, "an agent"
        assert not (home / "data" / "sample").exists()


def test_a_project_of_ones_own_that_is_called_sample_is_not_the_sample(tmp_path: Path) -> None:
    store = str(tmp_path / "own.db")
    with wiring.open(store, project="sample") as hold:
        hold.session("mine").notes.add("My own note")
    with served(store, tmp_path, "--project", "sample") as site, browser(site) as client:
        page = client.get("/p/sample/overview")
        assert "My own note" in page.text
        assert "This is the sample project" not in page.text


def test_samples_that_are_made_at_once_leave_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    monkeypatch.setenv("LIMPET_HOME", str(data))
    monkeypatch.setattr(sample, "_tell", lambda folder, *_: Path(folder, sample.STORE).touch())
    sample.make(0)
    monkeypatch.setattr(sample, "remove", lambda: None)  # as if the other one had come between this and the new name
    assert sample.make(0) == sample.place()
    assert [path.name for path in data.iterdir()] == [sample.FOLDER]


def test_two_servers_that_start_at_once_have_one_token(tmp_path: Path) -> None:
    place = tmp_path / serve.TOKEN_FILE
    tokens = ["a" * 43, "b" * 43]
    for token in tokens:
        new = tmp_path / "new"
        new.write_text(token)
        new.chmod(0o600)
        assert serve._placed(str(new), str(place)) == tokens[0]
    assert not (tmp_path / "new").exists()
    place.unlink()
    os.mkfifo(place, 0o600)
    assert serve._read_token(str(place)) == "", "and nobody waits for a pipe"


def test_demo_keep_makes_the_same_sample(home: Path, tmp_path: Path) -> None:
    env = {**os.environ, "HOME": str(home), "LIMPET_HOME": str(home / "data")}
    command = [sys.executable, "-m", "limpet", "demo", "--keep", "--json"]
    made = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
    reply = json.loads(made.stdout)
    with wiring.open(reply["store"], project=reply["project"]) as hold:
        assert {info.id for info in hold.sessions()} >= {"round-totals", "month-report", "support-text"}


def test_every_refusal_is_a_page_for_people(site: Served) -> None:
    with browser(site) as client:
        for path in ("/nothing-here", "/p/elsewhere/overview", "/notes/x"):
            answer = client.get(path)
            assert answer.headers["content-type"].startswith("text/html"), path
            assert answer.status_code in (403, 404), path
            assert "To the dashboard" in answer.text
        assert client.get("/nothing-here", headers={"Accept": "*/*"}).json()["error"] == "no_route"
        assert (
            client.post("/do/nothing", headers={"Origin": site.url, **HTML})
            .headers["content-type"]
            .startswith("text/html")
        )
    with browser(site, None) as client:
        assert client.get("/nothing-here").status_code == 401
        assert client.get("/favicon.ico").headers["content-type"].startswith("image/")


def test_everything_can_be_exported_and_read_back(tmp_path: Path) -> None:
    store = project(tmp_path, means_harm=False)
    with served(store, tmp_path) as site, browser(site) as client:
        answer = client.get("/export.jsonl")
        assert f'filename="{PROJECT}.jsonl"' in answer.headers["content-disposition"]
        page = client.get("/settings?check=yes").text
        assert "days after their last use" in page
        assert store in page
        assert 'class="state s-error"' not in page
    with limpet.open(str(tmp_path / "other.db"), project="other") as hold:
        assert hold.import_lines(iter(answer.text.splitlines())) > 50
        assert {info.id for info in hold.sessions(include_archived=True)} >= {"port-parser", "docs"}


def test_the_token_of_a_server_stays_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    env = {name: value for name, value in os.environ.items() if name != "LIMPET_TOKEN"}
    env |= {"HOME": str(tmp_path), "LIMPET_HOME": str(tmp_path / "data")}

    def started(*command: str) -> dict[str, str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "limpet", *command, "--port", "0", "--json"],
            stdout=subprocess.PIPE, cwd=folder, env=env, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        reply: dict[str, str] = json.loads(process.stdout.readline())
        process.terminate()
        process.communicate(timeout=20)
        return reply

    first, second = started("serve"), started("serve")
    assert len(first["token"]) == 43
    assert first["token"] == second["token"]
    file = Path(first["token_file"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    assert started("serve")["token"] != first["token"], "others may have read it"
    assert started("dashboard", "--no-open")["token"] is None
