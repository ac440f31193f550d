"""The ledger: what would have entered the window, less what did, less what was read back. Never more than that."""

from __future__ import annotations

import json
import random

import pytest

from limpet.api import Limpet, Session
from limpet.outputs.savings import PIECE_CHARS, RESULT_PIECES, estimate
from limpet.store import Savings
from limpet.text import tokens
from operations.conftest import Opener

LISTING = "".join(f"file {n} has {n * 7} bytes\n" for n in range(1, 401))


@pytest.fixture
def work(hold: Limpet) -> Session:
    return hold.session("work")


def keep(work: Session, content: str, tool: str = "ls", call: str = "ls") -> tuple[str, str]:
    kept = work.outputs.keep(tool, content, call=call)
    assert kept.output is not None
    return kept.text, kept.output.id


def test_observed_less_returned_less_read_back(work: Session, hold: Limpet) -> None:
    text, id = keep(work, LISTING)
    (row,) = work.outputs.savings().rows
    observed = estimate(LISTING, RESULT_PIECES)
    assert row == Savings("work", "ls", tokens.NAME, 1, 1, 0, 0, observed, tokens.count(text), 0)
    assert row.saved == observed - tokens.count(text) > 0
    part = work.outputs.read(id, lines="1-20").content
    again, _ = keep(work, LISTING)
    (row,) = work.outputs.savings().rows
    counts = (2, 1, 1, 1, 2 * observed, tokens.count(text) + tokens.count(again), tokens.count(part))
    assert row == Savings("work", "ls", tokens.NAME, *counts)
    assert row.saved == counts[4] - counts[5] - counts[6]
    assert hold.savings().total[3:] == row[3:]


def test_rows_are_by_tool_and_session_and_add_up(hold: Limpet) -> None:
    for session in ("a", "b"):
        for tool in ("ls", "du"):
            keep(hold.session(session), LISTING + session + tool, tool)
    saved = hold.savings()
    assert [(row.session, row.tool) for row in saved.rows] == [("a", "du"), ("a", "ls"), ("b", "du"), ("b", "ls")]
    assert saved.total.calls == 4
    assert saved.total.saved == sum(row.saved for row in saved.rows)
    assert hold.savings("a").rows == saved.rows[:2]
    assert hold.savings("nobody").total.saved == 0


def test_reading_everything_back_is_no_saving(work: Session, hold: Limpet) -> None:
    _, id = keep(work, LISTING)
    for _ in range(3):
        cursor = None
        while True:
            read = work.outputs.read(id, **({"cursor": cursor} if cursor else {}))
            if (cursor := read.cursor) is None:
                break
    saved = work.outputs.savings().total
    assert saved.read_back > saved.observed
    assert saved.saved < 0
    assert hold.call("savings", {})["saved"] == saved.saved
    assert hold.call("list_outputs", {})["stats"]["saved_tokens"] == saved.saved
    assert work.outputs.stats().savings.saved == saved.saved


def test_another_sessions_reads_are_its_own_cost(hold: Limpet) -> None:
    _, id = keep(hold.session("maker"), LISTING)
    before = hold.savings("maker").total
    hold.session("reader").outputs.read(id)
    assert hold.savings("maker").total == before
    (row,) = hold.savings("reader").rows
    assert (row.tool, row.calls, row.reads) == ("ls", 0, 1)
    assert row.saved == -row.read_back < 0


def test_small_results_and_what_programs_take_are_not_counted(work: Session, hold: Limpet) -> None:
    work.outputs.keep("ls", "small", call="ls")
    assert hold.savings().rows == ()
    _, id = keep(work, LISTING)
    before = hold.savings()
    work.outputs.read_content(id)
    work.outputs.expand(f"hold://{id}#lines=1-3")
    assert hold.savings() == before


def test_the_ledger_outlives_the_process_and_the_output(opened: Opener) -> None:
    first = opened()
    _, id = keep(first.session("work"), LISTING)
    before = first.savings()
    assert first.session("work").outputs.delete(id)
    assert opened().savings() == before


def test_the_answer_names_the_tokenizer_and_all_figures(work: Session, hold: Limpet) -> None:
    keep(work, LISTING)
    answer = hold.call("savings", {"session": "work"})
    assert answer["tokenizer"] == tokens.NAME
    figures = {"calls", "kept", "repeats", "reads", "observed", "returned", "read_back", "saved"}
    assert set(answer["total"]) == figures
    assert [set(row) for row in answer["tools"]] == [figures | {"session", "tool"}]
    json.dumps(answer)


@pytest.mark.parametrize("length", [10, RESULT_PIECES * PIECE_CHARS, 50_000, 400_000])
def test_a_sample_is_near_the_count_of_all(length: int) -> None:
    dice = random.Random(length)
    words = ("alpha", "request", "größer", "12.5", "ms", "GET /api/v1/items", "status=200", "\n", "{", "}")
    text = " ".join(dice.choices(words, k=length))[:length]
    assert estimate(text, RESULT_PIECES) == pytest.approx(tokens.count(text), rel=0.08)
    assert estimate(text, RESULT_PIECES) == estimate(text, RESULT_PIECES)
