"""Sessions: begun by their first write, resumed by name, archived and never lost."""

from __future__ import annotations

import pytest

import limpet
from limpet import errors
from limpet.api import Limpet
from operations.conftest import Clock, Opener


def test_a_session_comes_to_exist_with_its_first_write(hold: Limpet) -> None:
    work = hold.session("port the parser")
    assert work.notepad.read() == ""
    assert hold.sessions() == ()
    work.notes.add("x")
    (found,) = hold.sessions()
    assert (found.id, found.state, found.task, found.archived_at) == ("port the parser", "active", "", None)


def test_a_session_is_begun_with_a_task_and_resumed(hold: Limpet, opened: Opener) -> None:
    answer = hold.call("begin_session", {"task": "port the parser"})
    assert (answer["id"], answer["task"], answer["state"], answer["parent"]) == ("one", "port the parser", "active", "")
    hold.session().notepad.write("half way")
    again = opened("one")
    assert again.call("begin_session", {})["task"] == "port the parser"
    assert again.session().notepad.read() == "half way"
    assert again.call("begin_session", {"task": "now the lexer"})["task"] == "now the lexer"
    assert len(hold.sessions()) == 1


def test_an_archived_session_is_hidden_readable_and_can_be_resumed(hold: Limpet, clock: Clock) -> None:
    work = hold.session()
    work.begin("t")
    work.notes.add("note")
    work.notepad.write("pad")
    clock.pass_by()
    archived = hold.archive("one")
    assert (archived.state, archived.archived_at and archived.archived_at.isoformat()) == (
        "archived",
        "2026-03-03T12:00:01+00:00",
    )
    assert hold.archive("one").archived_at == archived.archived_at
    assert hold.sessions() == ()
    assert [found.id for found in hold.sessions(include_archived=True)] == ["one"]
    shown = hold.call("show_session", {"id": "one"})
    assert (shown["state"], shown["notes"], shown["notepad"], shown["task"]) == ("archived", 1, "pad", "t")
    assert [note.content for note in work.notes.list()] == ["note"]
    again = work.begin()
    assert (again.state, again.archived_at, again.task) == ("active", None, "t")
    assert [found.id for found in hold.sessions()] == ["one"]


def test_sessions_are_listed_newest_first_and_what_is_left_out_is_counted(hold: Limpet, clock: Clock) -> None:
    for name in ("a", "b", "c"):
        hold.session(name).begin()
        clock.pass_by()
    answer = hold.call("list_sessions", {"limit": 2})
    assert [found["id"] for found in answer["sessions"]] == ["c", "b"]
    assert answer["left_out"] == 1
    assert "left_out" not in hold.call("list_sessions", {})


def test_an_unknown_session_is_named(hold: Limpet) -> None:
    for name in ("show_session", "archive_session"):
        with pytest.raises(errors.NotFound, match="there is no session 'nobody'"):
            hold.call(name, {"id": "nobody"})


@pytest.mark.parametrize(
    ("name", "code"), [(" ", "empty"), ("x" * 201, "too_long"), ("two\nlines", "bad_name"), ("esc\x1b[2J", "bad_name")]
)
def test_a_session_id_is_one_short_line(hold: Limpet, name: str, code: str) -> None:
    for refused in (
        lambda: hold.session(name),
        lambda: hold.call("add_note", {"content": "x", "session_id": name}),
        lambda: hold.call("read_notepad", {}, session=name),
    ):
        with pytest.raises(errors.BadInput) as caught:
            refused()
        assert caught.value.code == code
    assert hold.history() == ()


def test_the_argument_wins_over_the_caller_and_the_caller_over_the_process(hold: Limpet) -> None:
    hold.call("write_notepad", {"content": "from the process"})
    hold.call("write_notepad", {"content": "from the caller"}, session="two")
    hold.call("write_notepad", {"content": "from the argument", "session_id": "three"}, session="two")
    assert [hold.session(name).notepad.read() for name in ("one", "two", "three")] == [
        "from the process",
        "from the caller",
        "from the argument",
    ]


def test_every_process_has_a_session_of_its_own(store_url: str) -> None:
    with limpet.open(store_url, project="demo") as first, limpet.open(store_url, project="demo") as second:
        assert first.default_session != second.default_session
        first.call("write_notepad", {"content": "x"})
        assert second.call("read_notepad", {})["content"] == ""


def test_the_star_names_every_session_and_belongs_to_none(store_url: str, hold: Limpet) -> None:
    with pytest.raises(errors.BadInput, match="every session"):
        hold.call("write_notepad", {"content": "x", "session_id": "*"})
    with pytest.raises(errors.BadInput), limpet.open(store_url, project="demo", session="*") as star:
        star.call("add_note", {"content": "x"})
