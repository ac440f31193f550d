"""The handoff: each session leaves its own, it waits for another session, and is used up only by being used."""

from __future__ import annotations

import pytest

from limpet import errors
from limpet.api import Limpet
from limpet.memory import handoff
from limpet.model import HANDOFF, Draft
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


def test_without_one_for_the_line_those_of_other_lines_are_named(hold: Limpet) -> None:
    hold.session("one").handoff.write("Casts come next. And more.", line="parser")
    with pytest.raises(errors.NotFound) as refusal:
        hold.call("read_handoff", {})
    for words in ("write_session_handoff", "parser", "Casts come next."):
        assert words in refusal.value.message
    assert "And more" not in refusal.value.message


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
    assert second.context().startswith(f"{HEADING}first\n\n## Session")  # what it began with, and not its own


def test_one_that_came_after_the_reading_is_not_used_up_unread(hold: Limpet) -> None:
    hold.session("one").handoff.write("first")
    told = hold.instructions(session="two")
    second = hold.session("two")
    assert second.context().startswith(f"{HEADING}first")
    hold.session("one").handoff.write("newer, nobody has read it")
    told.used()
    second.used()
    assert hold.session("one").handoff.read().used_by is None
    assert hold.session("three").context().startswith(f"{HEADING}newer")


def test_one_that_nobody_has_read_is_not_replaced_by_another_session(hold: Limpet, clock: Clock) -> None:
    replies = []
    for name in ("one", "two", "one"):
        clock.pass_by()
        reply = hold.call("write_session_handoff", {"content": f"from {name} at {clock.now}"}, session=name)
        replies.append(reply["replaced"])
    assert replies == [False, False, True]  # its own
    third = hold.session("three")
    text = third.context()
    assert text.startswith(f"{HEADING}from one at {clock.now}")
    assert "from two" in text
    assert text.count("from one at") == 1
    third.used()
    assert HEADING not in hold.session("four").context()


def test_read_handoff_gives_the_newest_and_names_the_others_that_wait(hold: Limpet, clock: Clock) -> None:
    for name, line in (("one", "main"), ("two", "main"), ("three", "docs")):
        clock.pass_by()
        hold.session(name).handoff.write(f"From {name}. And more.", line=line)
    newest = hold.call("read_handoff", {})
    assert (newest["content"], newest["written_by"]) == ("From two. And more.", "two")
    assert [(row["line"], row["begins"]) for row in newest["others"]] == [
        ("docs", "From three."),
        ("main", "From one."),
    ]
    other = hold.call("read_handoff", {"id": newest["others"][1]["id"]})
    assert (other["content"], other["written_by"]) == ("From one. And more.", "one")
    with pytest.raises(errors.NotFound, match="nope"):
        hold.call("read_handoff", {"id": "nope"})


def test_fields_stand_beside_the_free_text_and_are_read_back(hold: Limpet) -> None:
    fields = {
        "done": ["the lexer"],
        "next": ["casts", "error messages"],
        "failed": ["LL(1): casts need lookahead"],
        "decisions": ["a Pratt parser"],
        "questions": ["which licence?"],
    }
    hold.call("write_session_handoff", {"content": "Half way.", **fields})
    reply = hold.call("read_handoff", {})
    assert reply["content"].startswith("Half way.\n\n")
    assert {name: reply[name] for name in fields} == fields
    text = hold.session("two").context()
    assert "Next:\n- casts\n- error messages" in text
    hold.call("write_session_handoff", {"content": "Only words."})
    assert set(fields).isdisjoint(hold.call("read_handoff", {}))
    with pytest.raises(errors.BadInput, match="handoff is empty"):
        hold.call("write_session_handoff", {"content": "", "next": [" "]})


def test_several_wait_within_a_budget_and_the_rest_in_a_sentence_each(hold: Limpet, clock: Clock) -> None:
    for number in range(5):
        clock.pass_by()
        hold.session(f"s{number}").handoff.write(f"Begin {number}. " + f"word{number} " * 1_000)
    second = hold.session("reader")
    text = second.context()
    assert len(text) < 30_000
    assert min(text.count("word4 "), text.count("word3 ")) >= 999
    assert text.count("word0 ") < 20
    assert "Begin 0." in text
    second.used()
    assert hold.session("later").context().startswith(f"{HEADING}Begin ")
    assert "Begin 4." not in hold.session("later").context()


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
    for text in ("first", "second", "third"):
        hold.session("one").handoff.write(text)
        clock.pass_by()
    fourth = hold.session("four")
    fourth.context()
    fourth.used()
    events = hold.history(kind="handoff")
    assert [(e.operation, e.session, e.after and e.after.content) for e in events] == [
        ("use_handoff", "four", "third"),
        ("write_session_handoff", "one", "third"),
        ("write_session_handoff", "one", "second"),
        ("write_session_handoff", "one", "first"),
    ]


def test_showing_it_is_nobodys_last_change(hold: Limpet) -> None:
    written = hold.session("one").handoff.write("mistaken")
    handoff.mark_shown(hold.context("two"), [written])
    assert hold.session().handoff.read().shown_to == ("two",)
    assert hold.undo().operation == "write_session_handoff"
    assert HEADING not in hold.session("three").context()


def test_each_line_of_work_has_its_own_handoff_and_of_others_one_sentence_is_shown(hold: Limpet) -> None:
    first, heading = hold.session("first"), "## Handoff from the last session\n"
    first.handoff.write("For the parser. Then rest.")
    first.handoff.write("For the docs. Then rest.", line="docs")
    second = hold.session("second")
    text = second.context()
    assert text.startswith(f"{heading}For the parser. Then rest.\n\n")
    assert '- docs: "For the docs." (read_handoff line="docs")' in text
    assert text.count("Then rest.") == 1
    assert second.context("docs").startswith(f"{heading}For the docs. Then rest.\n\n")
    second.used()  # the last context showed that of docs
    assert hold.session("third").context().startswith(f"{heading}For the parser. Then rest.\n\n## Session")
    assert second.handoff.read("docs").used_by == "second"


def test_lines_and_sessions_with_slashes_do_not_share_a_handoff(hold: Limpet, opened: Opener) -> None:
    places = [("main/x", "y"), ("main", "x/y"), ("main", "x"), ("main/x", "x"), ("main%2Fx", "y"), ("a/b/c", "d")]
    for number, (line, session) in enumerate(places):
        written = opened(session).call("write_session_handoff", {"content": f"Text {number}.", "line": line})
        assert written == {"status": "ok", "replaced": False}
    listed = opened("reader").call("read_handoff", {"line": "a/b/c"})
    texts = {listed["id"]: listed["content"]} | {item["id"]: item["begins"] for item in listed["others"]}
    assert sorted(texts.values()) == [f"Text {number}." for number in range(len(places))]


def test_a_session_replaces_the_handoff_that_an_earlier_version_left_under_another_key(opened: Opener) -> None:
    hold = opened("d")
    draft = Draft("Old.", "d", extra={"line": "a/b", "written_at": 1})
    stamp = hold.context("d", "agent/mcp").stamp("write_session_handoff")
    hold.store.entries.edit(hold.scope, HANDOFF, "a/b/d", lambda before: draft, stamp)
    assert hold.call("write_session_handoff", {"content": "New.", "line": "a/b"})["replaced"] is True
    assert "others" not in hold.call("read_handoff", {"line": "a/b"})
