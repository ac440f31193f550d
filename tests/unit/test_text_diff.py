"""A unified diff says all that changed, and nothing when nothing did."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.text.diff import unified

texts = st.lists(st.sampled_from(["a", "b", "c", "", "+x", "-y", "@@", "\\ z", "w\r", "u\u2028v"]), max_size=12).map(
    "\n".join
)


def diff(before: str, after: str, context: int = 3) -> str:
    return unified(before, after, before_name="v1", after_name="v2", context=context)


def test_equal_texts_have_no_diff() -> None:
    assert diff("a\nb\n", "a\nb\n") == ""
    assert diff("", "") == ""


def test_a_changed_line() -> None:
    assert diff("a\nb\nc\n", "a\nB\nc\n") == "--- v1\n+++ v2\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"


def test_how_much_is_shown_around_a_change() -> None:
    lines = [f"{number}\n" for number in range(20)]
    changed = [*lines[:10], "new\n", *lines[10:]]
    shown = diff("".join(lines), "".join(changed), context=1)
    assert shown == "--- v1\n+++ v2\n@@ -10,2 +10,3 @@\n 9\n+new\n 10\n"


def test_a_missing_last_line_break_is_seen() -> None:
    shown = diff("a", "a\n")
    assert shown == "--- v1\n+++ v2\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"


def test_from_and_to_nothing() -> None:
    assert diff("", "a\n") == "--- v1\n+++ v2\n@@ -0,0 +1 @@\n+a\n"
    assert diff("a\n", "") == "--- v1\n+++ v2\n@@ -1 +0,0 @@\n-a\n"


@given(texts, texts)
def test_both_texts_can_be_read_from_a_full_diff(before: str, after: str) -> None:
    shown = diff(before, after, context=1000)
    assert bool(shown) == (before != after)
    if shown:
        assert shown.endswith("\n")
        assert side(shown, "-") == before
        assert side(shown, "+") == after


def side(shown: str, sign: str) -> str:
    """One of the two texts, put together from the lines of the diff."""
    text, ours = "", False
    for line in shown.split("\n")[3:-1]:
        if line.startswith("\\"):
            text = text[:-1] if ours else text
        else:
            ours = line[0] in (" ", sign)
            text += line[1:] + "\n" if ours else ""
    return text
