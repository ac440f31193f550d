"""JSON pointers and JSONPath: what they lead to, what they refuse, and how large values are shortened."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.text import jsonpath, tokens
from limpet.text.slices import BadSlice

DATA = {
    "items": [{"id": 1, "name": "x", "ok": True}, {"id": 2, "name": "y z"}, {"id": 3, "tags": ["a", "b"]}],
    "m~/k": 5,
    "": {"q": None},
    "a b": "ü",
}
TEXT = json.dumps(DATA)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/.", max_size=3), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("path", "value"),
    [("", DATA), ("/items/0/name", "x"), ("/m~0~1k", 5), ("/", {"q": None}), ("//q", None), ("/a b", "ü"),
     ("$", DATA), ("$.items[0].name", "x"), ("$['items'][-1]['id']", 3), ("$.items[2].tags[1]", "b")],
)  # fmt: skip
def test_a_path_to_one_place(path: str, value: object) -> None:
    assert json.loads(jsonpath.read(TEXT, path, 1_000).content) == value


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("$..id", [1, 2, 3]),
        ("$.items[*].name", ["x", "y z"]),
        ("$.items.*.name", ["x", "y z"]),
        ("$.items[1:3].id", [2, 3]),
        ("$.items[::2].id", [1, 3]),
        ("$.items[0,2].id", [1, 3]),
        ("$.items[0]['id','name']", [1, "x"]),
        ("$.items[?(@.id == 2)].name", ["y z"]),
        ("$.items[?(@.name == 'y z' || @.id==1)].id", [1, 2]),
        ("$.items[?(@.id >= 2 && @.tags)].id", [3]),
        ("$.items[?(!@.name)].id", [3]),
        ("$.items[?@.ok == true].id", [1]),
        ("$.items[?(@.tags[0] == 'a')].id", [3]),
        ("$.items[?(@.id != 1)].id", [2, 3]),
        ("$..tags[*]", ["a", "b"]),
        ("$..[?(@.id < 2)].id", [1]),
    ],
)
def test_a_path_to_several_places(path: str, values: list[object]) -> None:
    assert json.loads(jsonpath.read(TEXT, path, 1_000).content) == values


@given(JSON)
def test_everything_below_is_found_in_any_json(value: object) -> None:
    def below(one: object) -> list[object]:
        inner = list(one.values()) if isinstance(one, dict) else one if isinstance(one, list) else []
        return [found for child in inner for found in (child, *below(child))]

    expected = sorted(json.dumps(one) for one in below(value))
    if expected:
        found = json.loads(jsonpath.read(json.dumps(value), "$..*", 10**6).content)
        assert sorted(json.dumps(one) for one in found) == expected


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("items.0", "begins with / or"),
        ("/items/9", "list of 3"),
        ("/items/01", "no '01'"),
        ("/nope", "object with items"),
        ("/a b/c", "plain value"),
        ("$.nothing[*]", "nothing is there"),
        ("$.items[", "no step"),
        ("$items", "no step"),
        ("$..", "no step"),
        ("$.items[?(1)]", "no filter"),
        ("$.items[?(@.id == oops)]", "no value to compare"),
        ("$.items[::0]", "stride of 0"),
        ("/" + "x" * 2_000, "more than"),
    ],
)
def test_a_path_that_leads_nowhere_says_why(path: str, why: str) -> None:
    with pytest.raises(BadSlice, match=why):
        jsonpath.read(TEXT, path, 100)


def test_json_lines_are_one_list_and_other_texts_are_refused() -> None:
    assert jsonpath.read('{"a":1}\n{"a":2}\n', "/1/a", 100).content == "2"
    for text in ("plain", "", "{", "[" * 100_000):
        with pytest.raises(BadSlice):
            jsonpath.read(text, "/a", 100)


@pytest.mark.parametrize("path", ["", "$", "$.rows", "$.rows[*]", "$..name"])
def test_large_values_are_shortened_and_counted(path: str) -> None:
    text = json.dumps({"rows": [{"name": f"n{n}", "text": "word " * 200} for n in range(3_000)]})
    part = jsonpath.read(text, path, 300)
    assert tokens.count(part.content) <= 300
    assert "3,000" in part.note or "more" in part.content or "an object" in part.note
    assert part.content


def test_work_is_bounded() -> None:
    value: object = 1
    for _ in range(300):
        value = {"a": value, "b": [value] if not isinstance(value, dict) else []}
    text = json.dumps({"deep": value, "wide": list(range(200_000))})
    begun = time.perf_counter()
    for path in ("$..*", "$..*..*", "$..*..*..*", "$..[?(@.x == 1)]..[?(@.y)]"):
        with contextlib.suppress(BadSlice):  # some lead nowhere
            jsonpath.read(text, path, 200)
    assert time.perf_counter() - begun < 30
