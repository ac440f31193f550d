"""The story Limpet is for: one session works and stops, another process takes up the work where it stood."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import limpet
from journeys.stdio import Server, environment

WORKER = str(Path(__file__).parent / "worker.py")
HEADING = "## Handoff from the last session\n"


def cli(store: str, *args: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "limpet", "--store", store, "--project", "demo", *args],
        capture_output=True,
        env=environment(),
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_two_sessions(store_url: str) -> None:
    with Server(store_url, "--session", "monday") as agent:
        assert HEADING not in agent.instructions
        agent.call("add_note", content="Casts break LL(1): '(a)(b)' is ambiguous", tags=["grammar"])
        agent.call("write_notepad", content="# Plan\n- [x] lexer\n- [ ] casts\n")
        agent.call("update_notepad", operation="find_replace", find="- [ ] casts", replace="- [ ] casts (half done)")
        agent.call("write_memory", key="build", content="make test runs everything")
        agent.call("write_session_handoff", content="The lexer is done. Next: casts, see the note on LL(1).")
        assert agent.leave() == 0

    shown = cli(store_url, "context")
    assert shown.startswith(f"{HEADING}The lexer is done.")

    with Server(store_url, "--session", "tuesday") as agent:
        assert agent.instructions.startswith(f"{HEADING}The lexer is done. Next: casts")
        found = agent.call("search_notes", query="LL(1)")
        assert found["notes"][0]["content"].startswith("Casts break LL(1)")
        assert found["notes"][0]["session"] == "monday"
        assert agent.call("read_notepad")["content"] == ""
        assert cli(store_url, "pad", "show", "--session", "monday").endswith("- [ ] casts (half done)\n")
        assert agent.call("search_memory", query="build")["matches"][0]["content"] == "make test runs everything"

    with limpet.open(store_url, project="demo", session="tuesday") as again:
        assert again.session().context().startswith(HEADING)
    with Server(store_url, "--session", "wednesday") as agent:
        assert HEADING not in agent.instructions
    assert not cli(store_url, "context").startswith(HEADING)
    assert "The lexer is done." in cli(store_url, "handoff", "show")


def test_a_client_that_only_connects_does_not_use_the_handoff_up(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    with limpet.open(store, project="demo", session="monday") as hold:
        hold.session().handoff.write("read me")
    for name in ("looks", "looks-too"):
        with Server(store, "--session", name) as agent:
            assert agent.instructions.startswith(HEADING)
            assert agent.leave() == 0
    with Server(store, "--session", "works") as agent:
        agent.call("read_notepad")
        agent.call("read_notepad")
    with Server(store, "--session", "late") as agent:
        assert HEADING not in agent.instructions


def test_mistakes_are_taken_back_from_another_process(store_url: str) -> None:
    with Server(store_url, "--session", "one") as agent:
        id = agent.call("add_note", content="precious", tags=["keep"])["note_id"]
        agent.call("delete_note", id=id)
    deleted = json.loads(cli(store_url, "history", "--limit", "1", "--json"))["events"][0]
    cli(store_url, "undo", str(deleted["seq"]))
    listed = json.loads(cli(store_url, "note", "list", "--json"))
    assert [(note["id"], note["content"], note["tags"]) for note in listed["notes"]] == [(id, "precious", ["keep"])]


# --- nobody but SQLite opens its files --------------------------------------------------------------------------------


def opened_by_python(store: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, WORKER, "audited", str(store), str(store.parent)],
        capture_output=True,
        env=environment(),
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    lines = done.stdout.decode().splitlines()
    return [line for line in lines if line.startswith(("created ", "opened "))]


def test_python_creates_the_database_file_once_and_never_opens_it_again(tmp_path: Path) -> None:
    # Closing a handle of its own would drop the locks that SQLite holds on the file in this process.
    (tmp_path / "new").mkdir()
    fresh = tmp_path / "new" / "limpet.db"
    assert opened_by_python(fresh) == [f"created {fresh}"]
    (tmp_path / "old").mkdir()
    known = tmp_path / "old" / "limpet.db"
    with limpet.open(str(known)) as hold:
        hold.session().notes.add("was here")
    assert opened_by_python(known) == []
