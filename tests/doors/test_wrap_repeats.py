"""A call repeated through `limpet wrap`: answered by what is new, and never mistaken for another call."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import limpet
from doors.mcp_client import Lines
from doors.upstream import words
from doors.wrap_kit import page_of
from person import trusted

UPSTREAM = str(Path(__file__).with_name("upstream.py"))
BIG = 20_000


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "limpet.db"


@pytest.fixture
def client(store: Path) -> Iterator[Lines]:
    ours = [sys.executable, "-m", "limpet", "wrap", *trusted(store), "--session", "work", "--"]
    with Lines([*ours, sys.executable, UPSTREAM, "serve"]) as lines:
        lines.open("2025-11-25")
        yield lines


def texts(client: Lines, tool: str, **arguments: object) -> list[str]:
    result = client.ask("tools/call", {"name": tool, "arguments": arguments})
    return [item["text"] for item in result["content"]]


def id_in(text: str) -> str:
    return text.removeprefix("📁 Output cached: ").split()[0]


def test_the_same_arguments_again_are_one_line_and_other_arguments_are_not(client: Lines, store: Path) -> None:
    (first,), (again,) = texts(client, "text", size=BIG), texts(client, "text", size=BIG)
    assert id_in(first) == id_in(again)
    assert "\n" not in again
    assert "unchanged" in again
    (other,) = texts(client, "text", size=BIG, seed="other")
    assert "unchanged" not in other
    assert "changed since" not in other
    with limpet.open(str(store)) as hold:
        work = hold.session("work")
        assert work.outputs.read_content(id_in(first)) == words(BIG)
        (row,) = work.outputs.savings().rows
        assert (row.tool, row.calls, row.kept, row.repeats) == ("text", 3, 2, 1)


def test_arguments_that_differ_behind_a_long_beginning_are_other_calls(client: Lines) -> None:
    (first,) = texts(client, "text", size=BIG, pad="x" * 3_000 + "a")
    (second,) = texts(client, "text", size=BIG, pad="x" * 3_000 + "b")
    assert first == second
    assert "unchanged" not in second


def test_two_texts_of_one_result_are_not_taken_for_a_repeat(client: Lines) -> None:
    one, two = texts(client, "two", size=BIG)
    assert "changed since" not in two
    again = texts(client, "two", size=BIG)
    assert [id_in(text) for text in again] == [id_in(one), id_in(two)]
    assert all("unchanged" in text for text in again)


def test_a_failing_call_stays_a_failure(client: Lines) -> None:
    for _ in range(2):
        result = client.ask("tools/call", {"name": "fail", "arguments": {"size": BIG}})
        assert result["isError"] is True
        assert "failure line" in result["content"][0]["text"]


def test_a_circle_of_reads_is_answered_with_a_hint(client: Lines) -> None:
    (first,) = texts(client, "text", size=BIG)
    replies = [client.text("read_output", id=id_in(first), lines="1-3") for _ in range(3)]
    assert ["was read 3 times" in reply for reply in replies] == [False, False, True]
    assert len({page_of(reply)[0] for reply in replies}) == 1
