"""A unified diff says all that changed, and nothing when nothing did."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from limpet.text.diff import SmallChange, small_change, unified

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


# --- small changes ----------------------------------------------------------------------------------------------------


def change(before: str, after: str, most_lines: int = 1000) -> SmallChange | None:
    return small_change(before, after, most_lines=most_lines, most_chars=100)


def test_a_small_change_far_inside_is_shown_with_the_lines_around_it() -> None:
    lines = [f"line {number}\n" for number in range(5000)]
    changed = [*lines[:3000], "new\n", *lines[3001:]]
    told = SmallChange("@@ -3000,3 +3000,3 @@\n line 2999\n-line 3000\n+new\n line 3001", 1, 1)
    assert change("".join(lines), "".join(changed), most_lines=1) == told
    assert change("".join(lines), "".join([*changed[:-1], "last\n"]), most_lines=1999) is None


@given(texts, texts, texts, texts)
@example("", "", "", "a")
@example("a\nb", "", "\nb", "c")
@example("x\n", "y", "y\nx", "")
def test_a_small_change_leads_from_one_text_to_the_other(head: str, old: str, new: str, tail: str) -> None:
    before, after = head + old + tail, head + new + tail
    found = change(before, after)
    assert found is not None
    lines, made = before.removesuffix("\n").split("\n"), []
    done = 0
    for line in found.text.split("\n") if found.text else []:
        if place := re.fullmatch(r"@@ -(\d+),(\d+) \+\d+,\d+ @@", line):
            made += lines[done : int(place[1]) - 1]
            done = int(place[1]) - 1
        elif line[0] in " -":
            assert line[1:] == lines[done]
            done += 1
        made += [line[1:]] if line[:1] in (" ", "+") and line else []
    # Whether the last line has an end is not shown, nor is a line that has nothing but its end at the very end.
    assert "\n".join([*made, *lines[done:]]).rstrip("\n") == after.rstrip("\n")
    assert (found.added, found.removed) == tuple(len(re.findall(rf"(?m)^\{sign}", found.text)) for sign in "+-")
