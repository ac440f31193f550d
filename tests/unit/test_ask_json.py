"""Where a hit in JSON is: the pointer names what stands there, whatever the JSON looks like."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.recall.ask import ask, pointer
from limpet.text import jsonpath
from limpet.text.tokens import count

NAMES = st.text(st.sampled_from('ab/~"\\é {}[],:'), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES.filter(bool), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.integers(0, 3), st.sampled_from([None, 0, 2]))
def test_the_pointer_leads_to_what_stands_there(other: Any, before: int, indent: int | None) -> None:
    value = {"first": other, "rows": [*([other] * before), {"x": other, "needle": "here it is"}]}
    text = json.dumps(value, indent=indent)
    found = pointer(text, text.index('"needle"'))
    assert found == f"/rows/{before}/needle"
    assert json.loads(jsonpath.read(text, found, 100).content) == "here it is"


@pytest.mark.parametrize("text", ["no JSON: needle", '{"a": 1} {"needle": 3}', "} needle", '{"a": 1}}, "needle"'])
def test_what_is_no_single_value_has_no_pointer(text: str) -> None:
    assert pointer(text, text.index("needle") - 1) == ""


@pytest.mark.parametrize("number", [0, 1, 4])
def test_json_lines_are_one_list(number: int) -> None:
    text = "".join(json.dumps({"n": n, "in": {"here": f"it is {n}"}}) + "\n" for n in range(5))
    found = pointer(text, text.index(f'"here": "it is {number}"'))
    assert found == f"/{number}/in/here"
    assert jsonpath.read(text, found, 100).content == f'"it is {number}"'


def test_far_in_a_text_nothing_is_said() -> None:
    text = json.dumps(["x" * 500_000, {"needle": 1}])
    assert pointer(text, text.index('"needle"')) == ""


def test_an_answer_on_json_says_where_its_best_hit_is() -> None:
    people = [{"name": f"Person {n}", "mail": f"p{n}@example.org", "more": "x " * 30} for n in range(300)]
    part = ask(json.dumps({"people": people}), "mail of Person 217", 300, count)
    assert "path /people/217/" in part.note


def test_an_answer_on_another_text_names_no_path() -> None:
    assert "path" not in ask("one line\nanother line with a needle\n", "needle", 100, count).note
