"""The handoff: always one for each line of work, waiting for another session, used up only by being used."""

from __future__ import annotations

import pytest

from limpet import errors
from limpet.api import Limpet
from operations.conftest import Clock, Opener

HEADING = "## Handoff from the last session\n"


def test_a_handoff_is_written_and_the_last_one_stays(hold: Limpet) -> None:
    assert hold.call("write_session_handoff", {"content": " Casts are next. "}) == {"status": "ok", "replaced": False}
    assert hold.call("write_session_handoff", {"content": "Casts are done."}) == {"status": "ok", "replaced": True}
    read = hold.call("read_handoff", {})
    assert (read["content"], read["line"], read["written_by"], read["used_by"]) == (
        "Casts are done.",
        "main",
        "one",
        None,
    )
    assert read["written_at"] == "2026-03-03T12:00:00.000Z"


def test_without_one_there_is_nothing_to_read_and_no_section(hold: Limpet) -> None:
    with pytest.raises(errors.NotFound, match="write_session_handoff leaves one"):
        hold.call("read_handoff", {})
    assert HEADING not in hold.session().context()
    assert HEADING not in hold.instructions().text


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_one_is_refused(hold: Limpet, blank: str) -> None:
    hold.session().handoff.write("kept")
    with pytest.raises(errors.BadInput, match="handoff is empty"):
        hold.call("write_session_handoff", {"content": blank})
    with pytest.raises(errors.BadInput, match="handoff has 20,001 characters; the limit is 20,000"):
        hold.call("write_session_handoff", {"content": "x" * 20_001})
    assert hold.session().handoff.read().content == "kept"


def test_it_is_the_first_thing_the_next_session_reads(hold: Limpet, opened: Opener) -> None:
    work = hold.session()
    work.memory.write("goal", "parse")
    work.handoff.write("Casts are next.")
    later = opened("two").session()
    later.notepad.write("plan")
    later.scratch("half done", "replace")
    text = later.context()
    places = [
        text.index(part)
        for part in (f"{HEADING}Casts are next.", "## Session Notepad\nplan", "half done", "## Memory of this project")
    ]
    assert places[0] == 0
    assert places == sorted(places)
    assert opened("three").instructions().text.startswith(f"{HEADING}Casts are next.\n\n")


def test_the_session_that_wrote_it_is_not_told_it(hold: Limpet) -> None:
    work = hold.session()
    work.handoff.write("for the others")
    assert HEADING not in work.context()
    assert HEADING not in hold.instructions().text
    work.used()
    assert hold.session("two").context().startswith(HEADING)


def test_reading_the_context_does_not_use_it_up(hold: Limpet) -> None:
    hold.session("one").handoff.write("waiting")
    for name in ("two", "three", "two"):
        assert hold.session(name).context().startswith(HEADING)
        assert hold.instructions(session=name).text.startswith(HEADING)
    assert hold.session("one").handoff.read().used_by is None


def test_once_used_it_stays_in_that_session_and_is_gone_from_the_next(hold: Limpet, opened: Opener) -> None:
    hold.session("one").handoff.write("only once")
    second = hold.session("two")
    assert second.context().startswith(HEADING)
    second.used()
    second.used()
    assert second.context().startswith(f"{HEADING}only once")
    assert opened("two").session().context().startswith(HEADING)
    assert HEADING not in hold.session("three").context()
    assert HEADING not in hold.instructions(session="three").text
    hold.session("three").used()
    assert second.handoff.read().used_by == "two"


def test_instructions_are_used_when_they_say_so(hold: Limpet) -> None:
    hold.session("one").handoff.write("read me")
    told = hold.instructions(session="two")
    assert hold.session("one").handoff.read().used_by is None
    told.used()
    assert hold.session("one").handoff.read().used_by == "two"
    hold.instructions(session="three").used()
    assert hold.session("one").handoff.read().used_by == "two"


def test_a_new_one_waits_again_after_the_old_was_used(hold: Limpet) -> None:
    hold.session("one").handoff.write("first")
    second = hold.session("two")
    second.context()
    second.used()
    second.handoff.write("second")
    assert hold.session("three").context().startswith(f"{HEADING}second")
    assert HEADING not in second.context()


def test_one_that_came_after_the_reading_is_not_used_up_unread(hold: Limpet) -> None:
    hold.session("one").handoff.write("first")
    told = hold.instructions(session="two")
    second = hold.session("two")
    assert second.context().startswith(f"{HEADING}first")
    hold.session("four").handoff.write("newer, nobody has read it")
    told.used()
    second.used()
    assert hold.session("one").handoff.read().used_by is None
    assert hold.session("three").context().startswith(f"{HEADING}newer")


def test_it_belongs_to_its_project(hold: Limpet, opened: Opener) -> None:
    hold.session().handoff.write("ours")
    other = opened("two", "other")
    assert HEADING not in other.session().context()
    other.session().handoff.write("theirs")
    assert hold.session().handoff.read().content == "ours"


def test_lines_of_work_have_one_each(hold: Limpet) -> None:
    work = hold.session()
    work.handoff.write("the parser waits", line="parser")
    work.handoff.write("the docs wait", line="docs")
    assert HEADING not in hold.session("two").context()
    assert work.handoff.read("parser").content == "the parser waits"
    assert work.handoff.read("docs").content == "the docs wait"
    with pytest.raises(errors.NotFound):
        work.handoff.read()
    work.handoff.write("in general")
    second = hold.session("two")
    second.context()
    second.used()
    assert work.handoff.read().used_by == "two"
    assert work.handoff.read("parser").used_by is None


def test_the_history_of_handoffs_stays(hold: Limpet, clock: Clock) -> None:
    for name, text in (("one", "first"), ("two", "second"), ("three", "third")):
        hold.session(name).handoff.write(text)
        clock.pass_by()
    fourth = hold.session("four")
    fourth.context()
    fourth.used()
    events = hold.history(kind="handoff")
    assert [(e.operation, e.session, e.after and e.after.content) for e in events] == [
        ("use_handoff", "four", "third"),
        ("write_session_handoff", "three", "third"),
        ("write_session_handoff", "two", "second"),
        ("write_session_handoff", "one", "first"),
    ]


def test_each_line_of_work_has_its_own_handoff_and_the_others_are_named(hold: Limpet) -> None:
    first, heading = hold.session("first"), "## Handoff from the last session\n"
    first.handoff.write("for the parser")
    first.handoff.write("for the docs", line="docs")
    second = hold.session("second")
    assert second.context().startswith(f"{heading}for the parser\n\nA handoff also waits for: docs ")
    assert second.context("docs").startswith(f"{heading}for the docs\n\nA handoff also waits for: main ")
    second.used()  # the last context showed that of docs
    assert hold.session("third").context().startswith(f"{heading}for the parser\n\n## Session")
    assert second.handoff.read("docs").used_by == "second"
