"""What somebody edits is found by its new words, and by its old ones only when asked for what was replaced."""

from __future__ import annotations

import pytest

from limpet.api import Limpet
from limpet.window.messages import Call, Message, assistant, result, user
from operations.conftest import Clock, Opener

OLD = "Please point the staging database at port 5432 on host quail."
NEW = "Please point the staging database at port 6543 on host heron."


def talk() -> list[Message]:
    spoken = [user("We set up the environments today."), assistant("Fine, which one first?")]
    spoken += [user(OLD), assistant("Done."), user("Now the dashboards."), assistant("They are up.")]
    return spoken


def texts(hold: Limpet, question: str, **options: bool) -> list[str]:
    return [hit.plain for hit in hold.recall(question, **options).hits]


def test_a_message_that_was_edited_in_place(opened: Opener) -> None:
    hold = opened()
    spoken = talk()
    hold.session().window.next([*spoken])
    assert texts(hold, "which host has the staging database") == [OLD]
    hold.session().window.next([*spoken[:2], user(NEW), *spoken[3:], user("Thanks.")])
    later = opened()
    hits = later.recall("which host has the staging database").hits
    assert [hit.plain for hit in hits] == [NEW]
    assert (hits[0].kind, hits[0].key) == ("message", "one#00000002")
    assert texts(later, "what runs on host heron") == [NEW]
    assert texts(later, "what runs on host quail port 5432") != [OLD]
    every = later.recall("staging database on host quail", include_replaced=True).hits
    assert {hit.plain: hit.state for hit in every if hit.plain in (OLD, NEW)} == {OLD: "replaced", NEW: ""}
    later.session().window.next([*spoken, user("Thanks.")])
    assert texts(opened(), "which host has the staging database") == [OLD], "the edit was taken back"


def test_a_message_that_is_said_otherwise_from_there_on(opened: Opener) -> None:
    hold = opened()
    spoken = talk()
    hold.session().window.next([*spoken])
    hold.session().window.next([*spoken[:2], user(NEW)])
    later = opened("two")
    assert texts(later, "which host has the staging database") == [NEW]
    assert "Now the dashboards." in texts(later, "which dashboards"), "what followed was said all the same"
    later.session("one").fork("go on with the staging database")
    assert OLD not in texts(opened(), "which host has the staging database")


def test_another_task_from_there_on_replaces_nothing(opened: Opener) -> None:
    hold = opened()
    spoken = talk()
    hold.session().window.next([*spoken])
    hold.session().window.next([*spoken[:2], user("Write release notes for version nine of the parser.")])
    assert texts(opened(), "which host has the staging database") == [OLD]


@pytest.mark.parametrize("stub", ["[cleared]", "It listens on port 8443 …"])
def test_a_result_that_a_framework_shortens_is_found_whole(opened: Opener, stub: str) -> None:
    hold = opened()
    said = "It listens on port 8443 and writes to the volume atlas, which holds forty gigabytes."
    spoken = [user("Where does the collector listen?"), assistant("", Call("1", "look", "{}")), result("1", said)]
    spoken += [assistant("On 8443."), user("Go on."), assistant("Yes.")]
    hold.session().window.next([*spoken])
    hold.session().window.next([*spoken[:2], result("1", stub), *spoken[3:], user("And then?")])
    assert said in texts(opened(), "which volume does the collector write to")


def test_a_long_text_of_the_user_that_a_framework_shortens_is_found_whole(opened: Opener) -> None:
    hold = opened()
    pasted = "The auditors want the ledger of the year before last, " + "and every receipt that belongs to it, " * 20
    spoken = [
        user("Hello."),
        assistant("Hello."),
        user(pasted),
        assistant("Understood."),
        user("Go on."),
        assistant("."),
    ]
    hold.session().window.next([*spoken])
    hold.session().window.next([*spoken[:2], user("[long text left out]"), *spoken[3:], user("And then?")])
    assert any("auditors" in text for text in texts(opened(), "what do the auditors want"))


def test_notes_notepads_and_memory_that_were_edited(hold: Limpet, clock: Clock) -> None:
    session = hold.session("one")
    note = session.notes.add(OLD)
    session.notepad.write("The plan: migrate ledgers to the quail cluster")
    hold.memory.write("collector", "the collector listens on quail")
    clock.pass_by()
    session.notes.update(note.id, content=NEW)
    session.notepad.write("The plan: migrate ledgers to the heron cluster")
    hold.memory.write("collector", "the collector listens on heron")
    assert texts(hold, "quail", more=True) == []
    assert len(texts(hold, "heron", more=True)) == 3
