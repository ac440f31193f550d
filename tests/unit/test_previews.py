"""Previews: no failure is hidden, the budget is kept, and the same input gives the same preview."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.previews.core import OutputText, Sheet, ordinal
from limpet.previews.failures import failure_lines
from limpet.previews.preview import SHAPES, Shape, preview
from limpet.text import tokens

FAILING = (
    "FAILED tests/test_a.py::test_one - assert 1 == 2",
    "ERROR tests/test_b.py - ImportError: no module",
    "src/a.c:12:5: error: expected ';' before '}'",
    "src/a.ts(3,4): error TS2345: Argument of type 'x'",
    "error[E0308]: mismatched types",
    "Traceback (most recent call last):",
    "ValueError: not a number",
    "panic: runtime error: index out of range",
    "thread 'main' panicked at src/main.rs:2:5:",
    "--- FAIL: TestThing (0.00s)",
    "not ok 3 - adds",
    "   ✗ handles empty state 156ms",
    "E       assert 3 == 4",
    "Process completed with exit code 1",
    "2026-02-23 10:00:01 ERROR db: connection lost",
    "[Sun Dec 04 04:47:44 2005] [error] mod_jk in error state 6",
    '10.0.0.1 - - [23/Feb/2026:10:00:31 +0000] "GET /a HTTP/1.1" 500 234',
    '{"level":"error","message":"disk full"}',
    "level=error msg=lost",
    "8,2026-02-23,view,error,10.0.4.11",
    "npm ERR! code ELIFECYCLE",
    "make: *** [Makefile:3: all] Error 2",
    "Caused by: java.io.IOException: closed",
    "Tests: 2 failed, 3 passed",
    "FAILED (failures=1)",
    "Segmentation fault (core dumped)",
    '<testsuite errors="0" failures="3" tests="9">',
    "  12:5  error  Unexpected console statement  no-console",
)
PASSING = (
    "12 passed in 0.3s",
    "0 errors, 0 warnings",
    "Found no errors",
    "FAILED: 0",
    "errors=0 failures=0",
    '{"error": null, "ok": true}',
    "Process finished with exit code 0",
    "test result: ok. 12 passed; 0 failed; 0 ignored",
    "src/app/error.tsx compiled",
    "   ✓ displays error messages 19ms",
    "BUILD SUCCESSFUL",
)


@pytest.mark.parametrize("line", FAILING)
def test_a_failure_is_known_and_shown_or_counted(line: str) -> None:
    content = "\n".join([*(f"line {at}" for at in range(50)), line, *(f"line {at}" for at in range(50))])
    assert [each.number for each in failure_lines(content)] == [50]
    shown = preview(content)
    assert shown.failures == 1
    assert "1 failure line" in shown.text


@pytest.mark.parametrize("line", PASSING)
def test_what_passes_is_no_failure(line: str) -> None:
    assert failure_lines(f"a\n{line}\nb") == []


lines = st.one_of(
    st.sampled_from(FAILING),
    st.sampled_from(PASSING),
    st.text(max_size=60),
    st.sampled_from(
        ["a,b,c", "1,2,3", "# Title", "diff --git a/x b/x", "@@ -1 +1 @@", "+x", "{", "}", "<html>", "├── a.py"]
    ),
)


@given(st.lists(lines, max_size=60), st.sampled_from(["\n", "\r\n"]), st.integers(0, 700), st.booleans())
def test_no_failure_is_hidden_whatever_the_output(parts: list[str], end: str, budget: int, bom: bool) -> None:
    content = ("\ufeff" if bom else "") + end.join(parts)
    shown = preview(content, budget=budget)
    failing = OutputText(content).failures
    assert shown.failures == len(failing)
    assert tokens.count(shown.text) <= budget
    assert preview(content, budget=budget) == shown
    if failing and budget >= 10:
        stated = re.match(r"(?:[^\n]*, )?(\d+) (?:failure lines?|failed)", shown.text)
        assert stated is not None
        assert int(stated.group(1)) == len(failing)
    if failing:
        assert "no failure" not in shown.text


@given(st.text(max_size=400), st.sampled_from(SHAPES))
def test_every_shape_can_show_any_text_within_its_budget(content: str, shape: Shape) -> None:
    for broken in (content, "{" + content, "[" + content, content * 3):
        text = OutputText(broken)
        assert 0.0 <= shape.score(text) <= 1.0
        if shape.name in {"json"} and not shape.score(text):
            continue
        sheet = Sheet(120)
        if text.lines:
            shape.render(text, sheet)
        assert tokens.count(sheet.text()) <= 120


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    )
)
def test_any_json_has_a_preview(value: object) -> None:
    shown = preview(json.dumps(value), budget=200)
    assert tokens.count(shown.text) <= 200


def test_long_lists_of_failures_say_how_many_are_not_shown() -> None:
    content = "\n".join(f"src/f{at}.ts({at},1): error TS2345: Argument {at} is wrong." for at in range(80))
    shown = preview(content)
    assert shown.shape == "run"
    assert shown.failures == 80
    visible = sum(f"src/f{at}.ts(" in shown.text for at in range(80))
    assert f"… and {80 - visible} more failure lines" in shown.text


@pytest.mark.parametrize(
    "content",
    [
        "",
        "\n\n\n",
        "   ",
        "\ufeff",
        "x",
        "é" * 3000,
        "🤖\u200d" * 500,
        "\x00\x01\x02" * 500,
        "\ud800abc",
        '{"a": [1, 2',
        "[" * 5000,
    ],
)
def test_odd_texts_have_a_preview(content: str) -> None:
    shown = preview(content)
    assert shown.failures == 0
    assert tokens.count(shown.text) <= 400
    shown.text.encode("utf-8")


def test_colours_and_windows_line_ends_hide_nothing() -> None:
    shown = preview("start\r\n\x1b[31mFAILED\x1b[0m tests/a.py::b\r\nend\r\n")
    assert shown.failures == 1
    assert "\x1b" not in shown.text
    assert "\r" not in shown.text


@pytest.mark.parametrize(
    "unit", ["x", "error: ", "a,", "<", "[", '{"a":', '"', "E   a\n", "# a\n", "\n", "ab cd\n", "'"]
)
def test_big_texts_take_moments(unit: str) -> None:
    content = unit * (1_000_000 // len(unit))
    start = time.process_time()
    shown = preview(content)
    assert time.process_time() - start < 10
    assert tokens.count(shown.text) <= 400


def test_one_long_line_of_json_shows_its_rows() -> None:
    rows = [
        {"id": at, "name": f"item {at}", "status": "error" if at == 777 else "ok", "ms": at % 50} for at in range(2000)
    ]
    shown = preview(json.dumps(rows))
    assert shown.shape == "json"
    assert "array of 2,000" in shown.text
    assert '"item 777"' in shown.text
    assert "ms: 0 to 49" in shown.text


def test_ordinals_end_as_they_are_spoken() -> None:
    assert [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21, 112, 251)] == [
        *("1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "112th", "251st")
    ]
