"""The dashboard over a real socket: every page with texts that mean harm, who is let in, and what people can change."""

from __future__ import annotations

import json
import os
import random
import re
import string
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx2
import pytest

import limpet
from dashboard_kit import HOSTILE, HTML, MARK, PROJECT, Seen, Served, browser, project, send, served, walk
from limpet import wiring
from limpet.catalogue.table import OPERATIONS
from limpet.doors.dashboard.app import ACTIONS, NOTICE, back
from limpet.doors.dashboard.pages import LISTED, NAVIGATION, PAGES
from limpet.doors.http import policy
from limpet.doors.http.server import routes
from limpet.text import safe

# What our own pages are made of. Anything else came out of a stored text.
OURS = frozenset(
    (
        *(
            "html",
            "head",
            "meta",
            "title",
            "link",
            "script",
            "body",
            "header",
            "nav",
            "main",
            "aside",
            "section",
            "dialog",
        ),
        *(
            "a",
            "img",
            "span",
            "div",
            "p",
            "pre",
            "h1",
            "h2",
            "h3",
            "ul",
            "ol",
            "li",
            "dl",
            "dt",
            "dd",
            "time",
            "strong",
        ),
        *(
            "form",
            "label",
            "input",
            "textarea",
            "select",
            "option",
            "button",
            "details",
            "summary",
            "kbd",
            "code",
            "em",
        ),
        *("table", "thead", "tbody", "tr", "th", "td", "mark", "meter"),
        *("blockquote", "br", "h4", "h5", "h6", "hr", "s"),
        *("svg", "rect", "line", "text", "polyline", "circle"),
    )
)


def odd(seen: Seen) -> list[str]:
    """What should not be on a page of ours."""
    wrong = []
    for tag, attributes in seen.elements:
        if tag not in OURS:
            wrong.append(f"<{tag}>")
        for name, value in attributes.items():
            if name.startswith("on") or name in ("style", "srcdoc", "formaction", "ping"):
                wrong.append(f"{name}={value}")
            if name in ("href", "src", "action") and (not value or value[0] not in "/?#" or value[:2] in ("//", "/\\")):
                wrong.append(f"{name}={value}")
        if tag == "script" and not str(attributes.get("src", "")).startswith("/static/"):
            wrong.append("a script in the page")
    return wrong


# --- what is shown ----------------------------------------------------------------------------------------------------


def test_no_text_of_a_store_becomes_markup_on_any_page(site: Served) -> None:
    with browser(site) as client:
        pages = walk(client)
    wrong = [f"{link}: {what}" for link, seen in pages.items() for what in odd(seen)]
    assert not wrong, "\n".join(wrong[:20])
    assert {urlsplit(link).path.strip("/") for link in pages} == PAGES.keys(), "a page that no link leads to"
    everything = "\n".join("".join(seen.words) for seen in pages.values())
    for text in HOSTILE:  # what is not shown cannot do harm, and proves nothing
        assert safe.visible(text.split("\n")[0]) in everything, text
    assert MARK in everything


def test_the_pages_are_the_same_on_postgres(postgres_url: str, tmp_path: Path) -> None:
    from dashboard_kit import hostile, story

    with wiring.open(postgres_url, project=PROJECT) as hold:
        story(hold)
        hostile(hold)
    with served(postgres_url, tmp_path) as site, browser(site) as client:
        pages = walk(client, 60)
    assert not [what for seen in pages.values() for what in odd(seen)]
    assert len(pages) > 20


def test_every_answer_forbids_what_pages_do_not_need(site: Served) -> None:
    with browser(site, None) as client:
        for path in ("/", "/overview", "/sign-in", "/static/dashboard.css", "/static/dashboard.js"):
            headers = client.get(path).headers
            policy_ = headers["content-security-policy"]
            assert "default-src 'none'" in policy_, path
            assert "unsafe" not in policy_
            assert "frame-ancestors 'none'" in policy_
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "same-origin"
            assert not [name for name in headers if name.startswith("access-control")]
        assert client.get("/static/../app.py").status_code in (401, 404)
        assert client.get("/static/secrets.txt").status_code == 404


def test_the_scripts_make_no_markup() -> None:
    from importlib.resources import files

    for name in ("dashboard.js", "theme.js"):
        script = files("limpet.doors.dashboard").joinpath("static", name).read_text(encoding="utf-8")
        for danger in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(", "DOMParser"):
            assert danger not in script


def test_a_project_with_many_notes_is_leafed_through_without_gaps(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    with wiring.open(store, project=PROJECT) as hold:
        ids = [hold.session(f"s{n % 3}").notes.add(f"note {n}").id for n in range(120)]
    with served(store, tmp_path) as site, browser(site) as client:
        link: str | None = "/notes"
        found: list[str] = []
        while link:
            text = client.get(link).text
            found += list(dict.fromkeys(re.findall(r"/note\?id=(note_\d+)", text)))
            older = re.search(r'href="([^"]+)" rel="next"', text)
            link = older[1].replace("&amp;", "&") if older else None
        assert found == ids[::-1]
        assert "40 found" in client.get("/notes?session=s1").text
        assert "1 found" in client.get("/notes?q=note+77").text


def test_recall_lights_the_words_and_names_the_reasons(site: Served) -> None:
    with browser(site) as client:
        text = client.get("/recall?q=casts+lookahead").text
    assert "<mark>Casts</mark>" in text
    assert "words: casts" in text
    assert "written by agent" in text


def test_recall_shows_the_report_that_was_asked_for_and_says_when_nothing_fits(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    with limpet.open(store, project=PROJECT) as hold:
        for number in range(4700, 4715):
            end = "failed: disk full" if number == 4711 else "passed"
            hold.session("s").notes.add(f"Backup job {number} of the customer database to the second site {end}")
    with served(store, tmp_path) as site, browser(site) as client:
        text = client.get("/recall?q=how+did+backup+job+4711+end").text
        first = re.search(r'<pre class="text">(.*?)</pre>', text, re.DOTALL)
        assert first
        assert "failed" in first[1]
        assert "newer than" not in text
        foreign = "/recall?q=which+backup+does+Marianne+water+tulips+orchids+with"
        nothing = client.get(foreign).text
        assert "Nothing that is kept fits. Nearest: note " in nothing
        assert "<mark>Backup</mark>" in client.get(f"{foreign}&more=1").text


def test_the_reader_shows_lines_and_finds_texts(site: Served) -> None:
    with browser(site) as client:
        listed = client.get("/outputs").text
        id = next(
            one
            for one in re.findall(r"/output\?id=(\w+)", listed)
            if "1 failed" in client.get(f"/output?id={one}&from=400").text
        )
        assert 'data-n="201"' in client.get(f"/output?id={id}&from=201").text
        assert "test_tabs" in client.get(f"/output?id={id}&find=FAILED").text
        assert "regular expression" in client.get(f"/output?id={id}&find=(&regex=yes").text
        before = client.get("/savings").text
        assert ">Read back later</dt><dd><strong>0</strong>" in before  # a person's reading is not an agent's


def test_what_is_not_there_is_a_page_too(site: Served) -> None:
    with browser(site) as client:
        for path in (
            "/session?id=nobody",
            "/note?id=note_1",
            "/remembered?key=none",
            "/output?id=000000000000",
            "/change?seq=999999",
        ):
            answer = client.get(path)
            assert answer.status_code == 404, path
            assert "That did not work" in answer.text
        assert client.get("/output?id=../../etc").status_code == 400
        assert client.get("/notes?before=%00&page=-1&limit=x").status_code == 200


# --- changing ---------------------------------------------------------------------------------------------------------


def test_people_change_things_as_people(tmp_path: Path) -> None:
    store = project(tmp_path, means_harm=False)
    with served(store, tmp_path) as site, browser(site) as client:
        assert (
            send(client, "add_note", content="first\r\nsecond", tags="one, two", session="port-parser").status_code
            == 303
        )
        with wiring.open(store, project=PROJECT) as hold:
            note = hold.session("port-parser").notes.search("second").notes[0]
            assert (note.content, note.tags) == ("first\nsecond", ("one", "two"))
            (event,) = hold.history(kind="note", key=note.id)
            assert event.by == "person/dashboard"
            assert event.after is not None
            assert event.after.origin == "person"
        send(client, "edit_note", id=note.id, content="third", tags="")
        send(client, "finish_note", id=note.id)
        send(client, "pin_text", session="docs", content="Mind the tides.")
        send(client, "write_notepad", session="docs", content="# New\n", expected_version=1)
        send(client, "pin_memory", key="build")
        send(client, "write_handoff", session="docs", line="main", content="From a person.")
        send(client, "archive_session", id="docs")
        with wiring.open(store, project=PROJECT) as hold:
            session = hold.session("docs")
            assert session.notepad.read() == "# New\n"
            assert hold.memory.read("build").pinned
            assert session.handoff.read().content == "From a person."
            assert [one.state for one in hold.sessions(include_archived=True) if one.id == "docs"] == ["archived"]
            last = hold.history(kind="note", key=note.id)[0]
            assert last.after is not None
            assert (last.after.content, last.after.done, last.after.tags) == ("third", True, ())
        said = send(client, "undo", seq=last.seq, back="/history")
        assert said.headers["location"] == "/history"
        assert "The change was undone." in client.get("/history").text
        assert "The change was undone." not in client.get("/history").text  # said once
        send(client, "restore_notepad", session="docs", version=1)
        send(client, "resume_session", session="docs")
        with wiring.open(store, project=PROJECT) as hold:
            assert hold.session("docs").notepad.read().startswith("# Outline")
            assert {one.id for one in hold.sessions()} >= {"docs"}


def test_a_change_that_masked_a_secret_says_both(site: Served) -> None:
    secret = "ghp_" + "".join(random.Random(6).choices(string.ascii_letters + string.digits, k=36))
    with browser(site) as client:
        send(client, "add_note", content=f"push with {secret}, DB_PASSWORD={secret[9:20]}", session="docs")
        page = client.get("/notes").text
        assert "The note is kept. Masked before storing: github-token, password." in page
        assert "--keep-secret" in page
        assert "Masked before storing" not in client.get("/notes").text  # said once
        sentence = (
            "The note is kept. Masked before storing: {}. The command line&#x27;s --keep-secret stores it as it is."
        )
        for kinds, is_shown in (("password", True), ("call-this-number", False), ("password, <b>", False), ("", False)):
            text = sentence.format(kinds).replace("&#x27;", "'")
            planted = client.get("/notes", headers={"Cookie": f"{NOTICE}={quote(text)}; {cookies(client)}"}).text
            assert ("Masked before storing" in planted) is is_shown, kinds


def cookies(client: httpx2.Client) -> str:
    return "; ".join(f"{name}={value}" for name, value in client.cookies.items())


def test_what_cannot_be_done_says_why_and_gives_the_text_back(site: Served) -> None:
    with browser(site) as client:
        answer = send(client, "add_note", content="x" * 5_000, session="docs")
        assert answer.status_code == 400
        assert "the limit is 4,000" in answer.text
        assert "x" * 5_000 in answer.text
        stale = send(client, "write_notepad", session="docs", content="lost?", expected_version=99)
        assert stale.status_code == 409
        assert "lost?" in stale.text
        assert send(client, "nothing", x=1).status_code == 404


def test_pages_have_names_letters_and_a_row_in_the_docs_of_their_own() -> None:
    assert len(LISTED) == len(PAGES)
    assert len({page.letter for page in NAVIGATION}) == len({page.place for page in NAVIGATION}) == len(NAVIGATION)
    text = (Path(__file__).parents[2] / "docs" / "dashboard.md").read_text(encoding="utf-8")
    assert [page.menu for page in NAVIGATION if page.menu.lower() not in text.lower()] == []


def test_every_action_is_an_operation_with_these_arguments() -> None:
    for action in ACTIONS.values():
        params = {param.name for param in OPERATIONS[action.operation].params}
        assert set(action.fields) | set(action.fixed) <= params
        assert policy.OPERATIONS[action.operation] >= policy.WRITE
    assert {f"dashboard_{name}" for name in PAGES} <= {route.name for route in routes()}


@pytest.mark.parametrize(
    "path", ["//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)", "", "x", "/a\nb", "/ü"]
)
def test_a_change_leads_nowhere_else(path: str) -> None:
    assert back(path) == "/overview"


def test_a_change_leads_back_to_its_page() -> None:
    assert back("/note?id=note_1&x=%2F") == "/note?id=note_1&x=%2F"


# --- live -------------------------------------------------------------------------------------------------------------


def test_an_open_page_is_told_of_changes(tmp_path: Path) -> None:
    store = project(tmp_path, means_harm=False)
    with served(store, tmp_path) as site, browser(site) as client:
        asked = client.stream("GET", "/events", headers={"Accept": "text/event-stream"})
        with asked as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            lines = stream.iter_lines()
            assert next(line for line in lines if line.startswith("event:")) == "event: now"
            with wiring.open(store, project=PROJECT) as hold:
                hold.session("docs").notes.add("something new")
            assert next(line for line in lines if line.startswith("event:")) == "event: change"
            data = next(line for line in lines if line.startswith("data:"))
            assert "something" not in data
        assert client.get("/events?once=yes").text.count("event:") == 1  # for who asks and does not wait


def test_serve_says_where_the_dashboard_is(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    with served(store, tmp_path, "--no-token", LIMPET_TOKEN="") as site:
        assert site.dashboard == f"{site.url}/"
        with browser(site, None) as client:
            assert client.get("/overview").status_code == 200
            assert client.post("/do/add_note", data={"content": "x"}).status_code == 403


def test_the_command_serves_and_opens_a_browser(tmp_path: Path) -> None:
    opened = tmp_path / "opened.txt"
    fake = tmp_path / "browser"
    fake.write_text(f'#!/bin/sh\nprintf %s "$1" > "{opened}"\n', encoding="utf-8")
    fake.chmod(0o755)
    command = [sys.executable, "-m", "limpet", "dashboard", "--store", str(tmp_path / "limpet.db"), "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "BROWSER": str(fake)}, cwd=tmp_path
    ) as process:
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["dashboard"]
            while not opened.exists() or not opened.read_text(encoding="utf-8"):
                time.sleep(0.05)
            assert opened.read_text(encoding="utf-8") == address
            with httpx2.Client(headers=HTML, timeout=60) as client:
                assert client.get(address).status_code == 200
        finally:
            process.terminate()
