"""BEAM as the benchmark reads it: numbers that go on from part to part, and what is done where a part is absent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.recall import beam
from bench.recall.beam import CUT, FTS5, OURS, PARTS, Source


def put(folder: Path, path: str, value: object) -> None:
    file = folder / "chats" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value), encoding="utf-8")


def chat(*texts: str) -> list[dict[str, Any]]:
    """One batch, in turns of two."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    messages[0]["time_anchor"] = "March-15-2024"
    return [{"batch_number": 1, "turns": [messages[at : at + 2] for at in range(0, len(messages), 2)]}]


def probing(*asked: tuple[str, object]) -> dict[str, Any]:
    return {"information_extraction": [{"question": text, "source_chat_ids": ids} for text, ids in asked]}


QUESTIONS = "probing_questions/probing_questions.json"


def test_a_message_keeps_its_number_speaker_and_day_without_the_mark_of_the_generator(tmp_path: Path) -> None:
    put(tmp_path, "100K/1/chat.json", chat("My cello is from Cremona. ->-> 1,3", "A fine one.", "And my bow? ->-> 1,4"))
    put(tmp_path, f"100K/1/{QUESTIONS}", probing(("Where is my cello from?", {"first": [0], "second": [[2]]})))
    ((found, said),) = beam.conversations(Source(tmp_path), "100K")
    assert [(unit.id, unit.told(), unit.time[:10]) for unit in found.units] == [
        ("0", "user: My cello is from Cremona.", "2024-03-15"),
        ("1", "assistant: A fine one.", "2024-03-15"),
        ("2", "user: And my bow?", "2024-03-15"),
    ]
    assert [query.evidence for query in found.queries] == [{"0", "2"}]
    assert said == ""


def test_questions_without_evidence_or_with_some_that_is_absent_are_not_asked(tmp_path: Path) -> None:
    put(tmp_path, "1M/1/chat.json", chat("one", "two"))
    put(tmp_path, f"1M/1/{QUESTIONS}", probing(("a?", None), ("b?", []), ("c?", [1, 2]), ("d?", [1])))
    put(tmp_path, f"1M/2/{QUESTIONS}", probing(("e?", [1])))  # its conversation is absent
    ((found, _),) = beam.conversations(Source(tmp_path), "1M")
    assert [query.query for query in found.queries] == ["d?"]


def test_numbers_go_on_from_part_to_part(tmp_path: Path) -> None:
    for part in range(PARTS):
        put(tmp_path, f"10M/1/plan-{part}/chat.json", chat(f"first of {part}", f"second of {part}", " ->-> 1,2"))
    put(tmp_path, f"10M/1/{QUESTIONS}", probing(("a?", [28])))
    ((found, said),) = beam.conversations(Source(tmp_path), "10M")
    texts = {unit.id: unit.text for unit in found.units}  # those that say nothing have a number, and are not stored
    assert (texts["0"], texts["4"], texts["28"], len(texts)) == ("first of 0", "second of 1", "second of 9", 20)
    assert said == ""


def test_behind_an_absent_part_nothing_is_evidence_and_others_stand_beside(tmp_path: Path) -> None:
    for part in (0, 2):
        put(tmp_path, f"10M/1/plan-{part}/chat.json", chat(f"first of {part}", f"second of {part}"))
    put(tmp_path, "10M/2/plan-5/chat.json", chat("of another", "conversation"))
    put(tmp_path, f"10M/1/{QUESTIONS}", probing(("a?", [1]), ("b?", [2]), ("c?", [5])))
    put(tmp_path, f"10M/2/{QUESTIONS}", probing(("d?", [1])))
    ((found, said),) = beam.conversations(Source(tmp_path), "10M")
    there = {"first of 0", "second of 0", "first of 2", "second of 2", "of another", "conversation"}
    assert {unit.text for unit in found.units} == there
    assert [query.query for query in found.queries] == ["a?"]
    assert said == "chats/10M/1: 2 of 10 parts are there, the first 1 with numbers; 1 of others beside"


def test_it_is_stored_asked_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ("My cello is from Cremona.", "A fine one.", "Our cat is called Figaro.", "What a name.")
    put(tmp_path, "100K/1/chat.json", chat(*texts))
    put(tmp_path, f"100K/1/{QUESTIONS}", probing(("Where is my cello from?", [0]), ("What is the cat called?", [2])))
    result = beam.measured(beam.conversations(Source(tmp_path), "100K"))
    assert {OURS, CUT, FTS5} <= set(result.answers)
    assert [(one.ten, one.twenty) for one in result.answers[OURS]] == [(1.0, 1.0)] * 2
    assert [store.messages for store in result.stores] == [4]
    beam.show("100K", result)
    assert "1 conversations, 4 messages" in capsys.readouterr().out
