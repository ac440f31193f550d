"""A write says which entry says the same already, and happens all the same."""

from __future__ import annotations

import random
from typing import Any

import pytest

import limpet
from limpet.api import Limpet
from limpet.settings import Bounds
from operations.conftest import Clock, Opener

TEXT = "The release of the parser waits for a fix of the casts that break the grammar in version 7"


def add(hold: Limpet, content: str, **more: Any) -> dict[str, Any]:
    return hold.call("add_note", {"content": content, **more})


def test_the_same_note_again_is_named_and_written(hold: Limpet, clock: Clock) -> None:
    first = add(hold, TEXT)
    assert first == {"note_id": first["note_id"], "total_notes": 1, "total_tags": 0}
    clock.pass_by()
    again = add(hold, f"  {TEXT.upper()}\n")
    assert (again["duplicate_of"], again["total_notes"]) == (first["note_id"], 2)
    assert "similar_to" not in again
    clock.pass_by()
    near = add(hold, TEXT.replace("7", "8"))
    assert near["similar_to"] == again["note_id"], "the newest is named"
    assert "duplicate_of" not in add(hold, "Something else, about the lexer")
    quick = hold.call("scratch_note", {"content": TEXT})
    assert quick["duplicate_of"] == again["note_id"]


def test_notes_of_other_sessions_count_and_finished_ones_other_projects_and_kinds_do_not(opened: Opener) -> None:
    hold = opened()
    first = add(hold, TEXT, session_id="earlier")
    assert add(hold, TEXT)["duplicate_of"] == first["note_id"]
    for note in hold.call("list_notes", {"session_id": "*"})["notes"]:
        hold.call("update_note", {"id": note["id"], "done": True})
    assert add(hold, TEXT).keys() == {"note_id", "total_notes", "total_tags"}
    assert "duplicate_of" not in hold.call("write_memory", {"key": "release", "content": TEXT})
    assert "duplicate_of" not in add(opened(project="other"), TEXT)


def test_memory_names_the_other_key_and_lines_that_stand_there_already(hold: Limpet) -> None:
    def write(key: str, content: str, mode: str = "replace") -> dict[str, Any]:
        return hold.call("write_memory", {"key": key, "content": content, "mode": mode})

    assert write("release", TEXT).keys() == {"status", "key", "mode", "bytes_written", "version"}
    assert "duplicate_of" not in write("release", TEXT), "an entry is no duplicate of itself"
    assert write("parser", TEXT)["duplicate_of"] == "release"
    assert write("casts", TEXT.replace("7", "8"))["similar_to"] in ("release", "parser")
    write("log", "first line", "append")
    assert "duplicate_of" not in write("log", "second line", "append")
    assert write("log", "first line", "append")["duplicate_of"] == "log"
    assert "duplicate_of" not in write("log", "line", "append"), "a part of a line is not the line"


@pytest.mark.parametrize("text", ["a b c", "ok", "日本語のメモ", "!!!", "x" * 4_000, "0123456789abcdef" * 200])
def test_any_text_may_be_written_by_two_sessions(hold: Limpet, text: str) -> None:
    first = add(hold, text)
    again = hold.call("add_note", {"content": text}, session="another")
    assert again["total_notes"] == 2
    assert again.get("duplicate_of", first["note_id"]) == first["note_id"]


def test_a_duplicate_among_many_is_found(hold: Limpet) -> None:
    ids = [
        add(hold, f"step {number} of the build passed and the report of it was kept")["note_id"] for number in range(60)
    ]
    answer = add(hold, "step 31 of the build passed and the report of it was kept")
    assert answer["duplicate_of"] == ids[31]


def test_what_a_note_says_now_counts_and_not_what_it_said(hold: Limpet) -> None:
    first = add(hold, "Something else, about the lexer")["note_id"]
    hold.call("update_note", {"id": first, "content": TEXT})
    assert "duplicate_of" not in add(hold, "something else, about the lexer")
    assert add(hold, TEXT, session_id="another")["duplicate_of"] == first
    hold.call("update_note", {"id": first, "done": True})
    second = add(hold, f"{TEXT} ", session_id="third")["duplicate_of"]
    assert second != first
    hold.call("delete_note", {"id": second})
    hold.call("update_note", {"id": first, "done": False})
    assert add(hold, TEXT.lower(), session_id="fourth")["duplicate_of"] != second


def test_the_same_text_in_other_white_space_is_the_same(hold: Limpet) -> None:
    first = add(hold, TEXT)["note_id"]
    assert add(hold, TEXT.replace(" ", " \n   "))["duplicate_of"] == first


def test_most_texts_with_one_other_word_are_named(hold: Limpet) -> None:
    chance = random.Random(7)
    endings = ("", "s", "r", "ning", "ment", "tion")
    begun = [a + b for a in ("par", "lex", "to", "gram", "re", "cast") for b in ("se", "kin", "no")]
    words = [one + ending for one in begun for ending in endings]
    texts = [" ".join(chance.sample(words, chance.randint(16, 30))) for _ in range(120)]
    ids = [hold.session("first").notes.add(text).id for text in texts]
    found = 0
    for text, name in zip(texts, ids, strict=True):
        told = text.split()
        told[chance.randrange(len(told))] = chance.choice(words)
        found += add(hold, " ".join(told)).get("similar_to") == name
    assert found >= 0.7 * len(texts)


def test_an_imported_note_is_known(opened: Opener) -> None:
    hold = opened()
    first = add(hold, TEXT)["note_id"]
    lines = list(hold.export_lines())
    other = opened(project="copy")
    other.import_lines(lines)
    assert add(other, TEXT, session_id="another")["duplicate_of"] == first


def test_it_can_be_switched_off(store_url: str, clock: Clock) -> None:
    with limpet.open(store_url, project="demo", session="one", clock=clock) as hold:
        hold._bounds = Bounds(report_duplicates=False)
        add(hold, TEXT)
        assert add(hold, TEXT).keys() == {"note_id", "total_notes", "total_tags"}
        hold.call("write_memory", {"key": "log", "content": TEXT})
        answer = hold.call("write_memory", {"key": "log", "content": TEXT, "mode": "append"})
        assert answer.keys() == {"status", "key", "mode", "bytes_written", "version"}
