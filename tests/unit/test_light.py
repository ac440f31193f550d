"""The stand-ins of `light` answer as the parts of the standard library that they stand for."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet import light

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
WAYS: tuple[dict[str, Any], ...] = (
    {},
    {"ensure_ascii": False},
    {"separators": (",", ":")},
    {"indent": 1},
    {"sort_keys": True},
    {"default": str},
    {"allow_nan": False},
)
MALFORMED = (
    *("", " ", "{", "[1,]", '{"a": 1', "nul", "1 2", "'a'", '"\n"', "\ufeff{}", "[1] x", '{"a" 1}', "01", "+1"),
    *(b"", b"\xff", b"{\x00", b'"\xed\xa0\x80"', "[1]".encode("utf-16"), "\ufeff[1]".encode(), b"[1"),
)


@given(VALUES)
def test_json_is_written_and_read_as_by_json(value: object) -> None:
    for way in WAYS:
        text = json.dumps(value, **way)
        assert light.json.dumps(value, **way) == text
        assert light.json.loads(text) == json.loads(text) == light.json.loads(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("text", ["NaN", "-Infinity", " [1.5e3, -0, 12345678901234567890]\n", '{"a": 1, "a": 2}'])
def test_unusual_json_is_read_as_by_json(text: str) -> None:
    assert repr(light.json.loads(text)) == repr(json.loads(text))


@pytest.mark.parametrize("text", MALFORMED)
def test_malformed_json_meets_the_same_problem(text: str | bytes) -> None:
    def tried(module: object) -> object:
        try:
            return module.loads(text)  # type: ignore[attr-defined]
        except (ValueError, RecursionError) as problem:
            return type(problem), str(problem)

    assert tried(light.json) == tried(json)


@pytest.mark.parametrize("text", ["{", '{"a": 1,', "[1", '"a', '{"a" 1}', "nul", '"\\x"'])
def test_malformed_json_meets_the_same_problem_before_json_is_imported(text: str) -> None:
    script = (
        "import sys; from limpet.light import json; assert 'json' not in sys.modules\n"
        "try: json.loads(sys.argv[1])\nexcept ValueError as problem: print(problem)"
    )
    ran = subprocess.run([sys.executable, "-c", script, text], capture_output=True, text=True, check=True)
    with pytest.raises(json.JSONDecodeError) as expected:
        json.loads(text)
    assert ran.stdout.rstrip("\n") == str(expected.value)


def test_numbers_can_be_refused_while_reading() -> None:
    def refuse(text: str) -> float:
        raise ValueError(f"no {text}")

    assert light.json.loads("[1.5]", parse_float=str, parse_constant=refuse) == ["1.5"]
    with pytest.raises(ValueError, match="no NaN"):
        light.json.loads('{"a": NaN}', parse_constant=refuse)


def test_what_cannot_be_written_meets_the_same_problem() -> None:
    circle: list[object] = []
    circle.append(circle)
    for value in (object(), {1, 2}, {(1, 2): 3}, circle, [b"bytes"]):
        with pytest.raises((TypeError, ValueError)) as ours:
            light.json.dumps(value)
        with pytest.raises(ours.type, match=re.escape(str(ours.value))):
            json.dumps(value)


def test_a_pattern_is_compiled_when_it_is_used() -> None:
    late = light.re.compile(r"(\w)o", light.re.IGNORECASE)
    assert late.findall("so Do") == ["s", "D"]
    assert late.sub("-", "so") == "-"
    assert (late.pattern, light.re.escape("."), light.re.sub("a", "b", "a")) == (r"(\w)o", r"\.", "b")
    broken = light.re.compile("(")
    with pytest.raises(re.error):
        broken.search("x")


def test_flags_are_those_of_re() -> None:
    for name in ("ASCII", "IGNORECASE", "MULTILINE", "DOTALL", "VERBOSE"):
        assert getattr(light.re, name) == getattr(re, name)


def test_times_are_those_of_datetime() -> None:
    assert light.datetime is datetime
    assert light.UTC is UTC
