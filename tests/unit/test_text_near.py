"""What was nearly found: the right line, the right reason, and never much work."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.text.diff import nearest

NOTE = """# Plan

- Move the database on Friday.
- Tell “everyone” before \u2013 not after.
    def connect(host, port=5432):
        return open_connection(host, port)
The retry limit is three attempts, then the worker gives up and writes one line to the log.
"""


@pytest.mark.parametrize(
    ("find", "line", "reason"),
    [
        ("move the database on friday", 3, "case"),
        ("# PLAN", 1, "case"),
        ('Tell "everyone" before - not after', 4, "punctuation"),
        ("def connect(host,port=5432):\nreturn open_connection(host, port)", 5, "whitespace"),
        ("Move the\ndatabase on Friday.\n", 3, "whitespace"),
        ('TELL "EVERYONE"  BEFORE', 4, "similar"),
        ("- Move the databse on Firday.", 3, "similar"),
        ("return open_conection(hst, port)", 6, "similar"),
        ("the retry limit is four attempts", 7, "similar"),
        ("retyr limti", 7, "similar"),
        ("def connect(hots, port=5432):\n    something else entirely", 5, "similar"),
    ],
)
def test_the_line_and_the_reason(find: str, line: int, reason: str) -> None:
    found = nearest(NOTE, find)
    assert found is not None
    assert (found.line, found.reason) == (line, reason)
    assert found.text == NOTE.split("\n")[line - 1].strip()[:120]


@pytest.mark.parametrize("find", ["", "  \n ", "quantum zebra vortex", "%%%%"])
def test_nothing_alike_is_nothing(find: str) -> None:
    assert nearest(NOTE, find) is None


def test_an_empty_text_has_nothing_alike() -> None:
    assert nearest("", "anything") is None
    assert nearest("\n\n \n", "anything") is None


def test_a_long_line_is_shown_where_it_is_alike() -> None:
    text = "filler words " * 200 + "the unusual sentence stands here " + "more filler " * 200
    found = nearest(text, "the unusuall sentence stands here")
    assert found is not None
    assert found.line == 1
    assert "unusual sentence" in found.text
    assert len(found.text) <= 120


@given(st.text(max_size=300), st.text(max_size=60))
def test_any_answer_is_a_line_of_the_text(text: str, find: str) -> None:
    found = nearest(text, find)
    if found is not None:
        assert found.reason in {"case", "whitespace", "punctuation", "similar"}
        assert found.text in text.split("\n")[found.line - 1]
        assert len(found.text) <= 120


@given(st.lists(st.text("abcdefgh ", min_size=1, max_size=30), min_size=1, max_size=8), st.data())
def test_a_line_in_other_case_is_found(lines: list[str], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(lines) - 1))
    if not lines[index].strip():
        return
    found = nearest("\n".join(lines), lines[index].upper())
    assert found is not None
    assert found.reason == "case"
    assert found.line <= index + 1


def noise(length: int, alphabet: str) -> str:
    return "".join(random.Random(7).choices(alphabet, k=length))


@pytest.mark.parametrize(
    ("text", "find"),
    [
        (NOTE * 400, noise(10_000, "abcdefgh \n")),
        ("\n" * 100_000 + "x", "hello world"),
        ("ab\n" * 33_000, "abxd"),
        ("a" * 100_000, "a" * 5_000 + "b" + "a" * 5_000),
        (noise(100_000, "abcdefghijklmnop \n"), noise(10_000, "abcdefghijklmnop ")),
        ("日本語のテキスト、改行。\n" * 8_000, "日本語のテスト改行" * 1_000),
        (noise(2_000_000, "abcd efgh\n"), noise(10_000, "efgh ijkl")),
    ],
)
def test_the_work_is_bounded(text: str, find: str) -> None:
    start = time.process_time()
    nearest(text, find)
    # It takes up to 50 ms. Without a bound it would be minutes, so that a slow machine cannot be taken for one.
    assert time.process_time() - start < 5
