"""Reading in the dashboard: all sessions, conversations with their tool calls, Markdown, and buttons that work."""

from __future__ import annotations

import json
import re
from pathlib import Path

import limpet
from dashboard_kit import MARK, PROJECT, browser, project, send, served
from limpet import wiring
from limpet.doors.dashboard import documentation
from limpet.doors.dashboard.pages.sessions import counted
from limpet.store import Page
from limpet.window.messages import Call, assistant, result, user


def test_all_sessions_are_leafed_through_and_found_by_words_and_id(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    with limpet.open(store, project=PROJECT) as hold:
        for number in range(120):
            hold.session(f"s{number:03}").begin(f"Repair the boiler of house {number}")
    with served(store, tmp_path) as site, browser(site) as client:
        link: str | None = "/sessions"
        found: list[str] = []
        while link:
            text = client.get(link).text
            found += re.findall(r'/session\?id=(s\d+)"', text)
            older = re.search(r'href="([^"]+)" rel="next"', text)
            link = older[1].replace("&amp;", "&") if older else None
        assert len(found) == len(set(found)) == 120
        by_words = client.get("/sessions?q=house+77").text
        assert "Repair the boiler of house 77" in by_words
        assert "1 found" in by_words
        assert "Repair the boiler of house 5" in client.get("/sessions?q=s005").text
        assert "No session is called so." in client.get("/sessions?q=tulips").text


def test_a_search_of_sessions_says_where_it_stops_counting() -> None:
    assert counted(Page((), 1_000), "boiler", "") == "1,000 found"
    assert counted(Page((), 300, more=True), "boiler", "") == "300 or more found"
    assert counted(Page((), 1_001), "", "") == "1,001 in all"


def test_a_conversation_is_read_with_its_tool_calls_in_place(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    id = "7f0c1d2e-aaaa-4bbb-8ccc-000000000002"
    with limpet.open(store, project=PROJECT) as hold:
        session = hold.session(id)
        session.outputs.keep("shell", "".join(f"row {n} of the table\n" for n in range(2_000)))
        kept = hold.store.outputs.list(hold.scope, 1).outputs[0].id
        talk = [user("Why do *totals* differ by a cent?")]
        for number in range(30):
            call = Call(f"c{number}", "shell", json.dumps({"command": f"cat invoice{number}.txt"}))
            talk += [assistant("", call), result(f"c{number}", f"invoice {number} agrees, see hold://{kept}")]
        talk += [assistant("They are rounded **twice**."), user("a long log: " + "x" * 300_000)]
        session.window.next(talk, limit=200_000)
        session.notes.add("so that the session is there")
    with served(store, tmp_path) as site, browser(site) as client:
        listed = client.get("/sessions").text
        assert "<strong>Why do totals differ by a cent?</strong>" in listed, "named by what was asked in it"
        assert f'href="/messages?session={id}"' in listed
        text = client.get(f"/messages?session={id}").text
        assert "<em>totals</em>" in text
        assert '<code class="tool">shell</code> <span class="mono dim">cat invoice3.txt</span>' in text
        assert f'href="/output?id={kept}"' in text
        assert text.count("invoice 3 agrees") == 1
        end = client.get(f"/messages?session={id}&first=41").text
        assert "rounded <strong>twice</strong>" in end
        assert "250,012 more characters" in end
        assert len(end) < 100_000, "a page stays small"
        hit = client.get("/recall?q=rounded+twice&kind=messages").text
        assert f'href="/messages?session={id}&amp;first=59#m62"' in hit
        assert "message 62 of Why do totals differ" in hit
        assert f'href="/messages?session={id}"' in client.get(f"/session?id={id}").text


def test_markdown_is_drawn_and_leads_nowhere(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    text = f"# Plan\n\n- [x] casts\n\n[here](javascript:alert(1)) ![p](https://evil.example/p.png) <b>x</b>\n\n{MARK}"
    with limpet.open(store, project=PROJECT) as hold:
        note = hold.session("s").notes.add(text)
    with served(store, tmp_path) as site, browser(site) as client:
        page = client.get(f"/note?id={note.id}").text
    shown = page.partition('class="text-card"')[2].partition("<details")[0]
    assert "<h3>Plan</h3>" in shown
    assert "☑ casts" in shown
    assert "javascript:alert(1)" in shown, "the address is there to be read"
    assert "&lt;b&gt;x&lt;/b&gt;" in shown
    assert not re.search(r"<(a|img|script|b)\b", shown)


def test_an_undo_button_stands_where_undo_works(tmp_path: Path) -> None:
    store = project(tmp_path, means_harm=False)
    with wiring.open(store, project=PROJECT) as hold:
        note = hold.session("docs").notes.add("first")
        hold.session("docs").notes.update(note.id, content="second")
        later, earlier = hold.history(kind="note", key=note.id)
    with served(store, tmp_path) as site, browser(site) as client:
        page = client.get(f"/note?id={note.id}").text
        assert page.count("/do/undo") == 1
        assert f'name="seq" value="{later.seq}"' in page
        send(client, "undo", seq=later.seq)
        assert f'name="seq" value="{earlier.seq}"' in client.get(f"/note?id={note.id}").text
        for number in re.findall(r'name="seq" value="(\d+)"', client.get("/history").text):
            said = send(client, "undo", seq=number)
            assert said.status_code in (303, 409), said.text
            if said.status_code == 409:
                assert "was changed again after it" in said.text  # by the undo before, in this loop


def test_the_documentation_is_read_page_by_page(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    limpet.open(store, project=PROJECT).close()
    with served(store, tmp_path) as site, browser(site) as client:
        seen, ahead = set(), ["/docs"]
        while ahead:
            link = ahead.pop()
            answer = client.get(link)
            assert answer.status_code == 200, link
            seen.add(link)
            found = {part.partition("#")[0] for part in re.findall(r'href="(/docs\?[^"]+)"', answer.text)}
            ahead += sorted(found - seen - set(ahead))
        assert len(seen) == len(documentation.manuals()) + 1
        growing = client.get("/docs?page=scale").text
        (drawing,) = set(re.findall(r'src="(/static/growth-sqlite\.svg)"', growing))
        picture = client.get(drawing)
        assert picture.headers["content-type"] == "image/svg+xml"
        assert "default-src 'none'" in picture.headers["content-security-policy"]
        assert "There is no page tulips" in client.get("/docs?page=tulips").text


def test_a_new_project_is_well_and_every_page_leads_on(tmp_path: Path) -> None:
    folder = tmp_path / "tide tables"
    folder.mkdir()
    with served("", folder, LIMPET_HOME=str(tmp_path / "data")) as site, browser(site) as client:
        health = client.get("/settings").text
        assert "it can be read and written" in health
        assert "problem" not in health
        assert "What tide tables remembers" in client.get("/overview").text
        assert "<code>limpet journal init</code>" in client.get("/journal").text
        for page, way in (("/notes", "limpet note add"), ("/memory", "limpet memory write"), ("/sessions", "/start")):
            assert way in client.get(page).text, page
        assert "limpet import chatgpt" in client.get("/start").text
        assert not (tmp_path / "data" / "projects").exists() or not list(tmp_path.rglob("limpet.db")), (
            "looking made a store"
        )
