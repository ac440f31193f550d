"""The one place where arguments are checked, and what an operation says of itself."""

from __future__ import annotations

import inspect
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from limpet import errors
from limpet.catalogue import table
from limpet.catalogue.late import resolve
from limpet.catalogue.operation import LEVELS, Operation, Param, a_name, bounded, checked, storable

OPERATION = Operation(
    "add_note",  # texts are looked up by name
    "memory.notes:add_note",
    "memory.notes:written_json",
    params=(
        Param("content", required=True),
        Param("tags", "strings"),
        Param("mode", choices=("replace", "append")),
        Param("limit", "integer", low=1, high=1_000),
        Param("number", "integer"),
        Param("done", "boolean"),
    ),
    result={"id": "string", "left_out": "integer?", "any": ""},
)
GOOD: dict[str, Any] = {"content": "x"}


def refusal(arguments: dict[str, Any]) -> errors.BadInput:
    with pytest.raises(errors.BadInput) as caught:
        checked(OPERATION, arguments)
    return caught.value


def test_good_arguments_come_through() -> None:
    arguments = {"content": "x", "tags": ["a"], "mode": "append", "limit": 1_000, "number": -5, "done": False}
    assert checked(OPERATION, {**arguments, "session_id": "s"}) == {**arguments, "tags": ("a",), "session_id": "s"}


def test_null_means_not_given() -> None:
    assert checked(OPERATION, {"content": "x", "tags": None, "limit": None, "session_id": None}) == GOOD
    assert refusal({"content": None}).code == "missing"
    assert refusal({}).message == "add_note needs content, which was not given. Call again with content."


def test_an_unknown_argument_is_refused_and_the_known_ones_named() -> None:
    problem = refusal({"content": "x", "contents": "y"})
    assert problem.code == "unknown_argument"
    assert problem.message.endswith("It takes content, tags, mode, limit, number, done, session_id.")
    assert refusal({"content": "x", "": 1}).code == "unknown_argument"
    assert refusal({"content": "x", "contents": None}).code == "unknown_argument"


def test_an_operation_outside_of_sessions_takes_no_session() -> None:
    outside = OPERATION._replace(in_session=False)
    with pytest.raises(errors.BadInput, match="has no argument 'session_id'"):
        checked(outside, {"content": "x", "session_id": "s"})
    assert "session_id" not in outside.input_schema()["properties"]


@pytest.mark.parametrize(
    ("name", "value", "kind", "wanted"),
    [
        ("content", 1, "a number", "a string"),
        ("content", 1.5, "a number", "a string"),
        ("content", True, "a boolean", "a string"),
        ("content", ["x"], "a list", "a string"),
        ("content", {"x": 1}, "an object", "a string"),
        ("content", b"x", "an object", "a string"),
        ("tags", "a, b", "a string", "a list of strings"),
        ("tags", {"a": 1}, "an object", "a list of strings"),
        ("tags", ["a", 1], "a list", "a list of strings"),
        ("tags", [["a"]], "a list", "a list of strings"),
        ("tags", [None], "a list", "a list of strings"),
        ("mode", 0, "a number", "a string"),
        ("limit", "5 notes", "a string", "a whole number"),
        ("limit", 5.5, "a number", "a whole number"),
        ("limit", True, "a boolean", "a whole number"),
        ("limit", float("nan"), "a number", "a whole number"),
        ("done", "yes", "a string", "true or false"),
        ("done", 1, "a number", "true or false"),
        ("session_id", 7, "a number", "a string"),
    ],
)
def test_a_wrong_type_names_the_value_and_what_is_wanted(name: str, value: object, kind: str, wanted: str) -> None:
    problem = refusal({**GOOD, name: value})
    assert problem.code == "wrong_type"
    shown = json.dumps(value) if isinstance(value, bool | list | dict) else errors.quoted(value)
    assert problem.message == (
        f"{name} of add_note is {kind} ({shown}); it must be {wanted}. Correct it and call again."
    )


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("limit", "5", 5),
        ("limit", " 12 ", 12),
        ("limit", 5.0, 5),
        ("done", "true", True),
        ("done", "False", False),
        ("tags", "grammar", ("grammar",)),
        ("tags", '["grammar", "parser"]', ("grammar", "parser")),
        ("tags", "", ()),
        ("mode", "Append", "append"),
    ],
)
def test_slips_of_small_models_are_understood(name: str, value: object, meant: object) -> None:
    assert checked(OPERATION, {**GOOD, name: value})[name] == meant


@pytest.mark.parametrize("value", [0, -1, 1_001, 10_000, 10**30])
def test_a_number_out_of_range(value: int) -> None:
    problem = refusal({**GOOD, "limit": value})
    assert problem.code == "out_of_range"
    assert "it must be from 1 to 1,000" in problem.message


def test_a_choice_is_one_of_those_there_are() -> None:
    for value in ("add", "append it", ""):
        problem = refusal({**GOOD, "mode": value})
        assert problem.code == "not_one_of"
        assert repr(value) in problem.message


@pytest.mark.parametrize("code", [0x0, 0xD800, 0xDBFF, 0xDC80, 0xDFFF])
def test_what_cannot_be_stored_is_refused_wherever_it_stands(code: int) -> None:
    bad = f"a{chr(code)}b"
    for name, value in (("content", bad), ("tags", ["fine", bad]), ("session_id", bad)):
        assert refusal({**GOOD, name: value}).code == "unstorable"
    with pytest.raises(errors.BadInput, match="cannot be stored as text"):
        storable("content", bad)


def test_a_long_value_is_shown_short() -> None:
    assert len(refusal({"content": "x", "tags": "y," * 5_000_000}).message) < 200
    assert len(refusal({"content": "x", "y" * 10_000: 1}).message) < 300


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.sampled_from(sorted(table.OPERATIONS)),
    st.dictionaries(
        st.sampled_from(["content", "tags", "id", "query", "limit", "mode", "key", "session_id", "done", "x"]),
        json_values,
    ),
)
@example("add_note", {"content": {"\x7f": None, "\u202e": "\udc80"}})
def test_any_json_is_accepted_or_refused_with_a_sentence(name: str, arguments: dict[str, Any]) -> None:
    message = "Accepted."
    try:
        checked(table.find(name), arguments)
    except errors.BadInput as problem:
        message = problem.message
    assert message.endswith(".")
    assert message.isprintable()


def test_bounded_counts_characters() -> None:
    assert bounded("text", "x" * 5, 5, "Less.") == "xxxxx"
    assert bounded("text", "", 5, "Less.") == ""
    with pytest.raises(errors.BadInput, match=r"text has 6 characters; the limit is 5\. Less\."):
        bounded("text", "\U0001f680" * 6, 5, "Less.")
    with pytest.raises(errors.BadInput, match=r"text is empty.* Write\."):
        bounded("text", " \n", 5, "Less.", blank="Write.")


def test_a_name_is_trimmed_visible_and_short() -> None:
    assert a_name("key", "  Ünï \U0001f680 ", 10) == "Ünï \U0001f680"
    for bad, code in (
        ("", "empty"),
        ("\u00a0", "empty"),
        ("x" * 11, "too_long"),
        ("a\u202eb", "bad_name"),
        ("a\u200bb", "bad_name"),
    ):
        with pytest.raises(errors.BadInput) as caught:
            a_name("key", bad, 10)
        assert caught.value.code == code


# --- schemas ----------------------------------------------------------------------------------------------------------


def test_the_schema_of_the_input() -> None:
    schema = OPERATION.input_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["content"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["tags"]["items"] == {"type": "string"}
    assert schema["properties"]["mode"]["enum"] == ["replace", "append"]
    assert schema["properties"].keys() == {param.name for param in OPERATION.all_params()}


def test_the_schema_of_the_output() -> None:
    schema = OPERATION.output_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["id", "any"]
    jsonschema.validate({"id": "x", "any": None}, schema)


@pytest.mark.parametrize("name", sorted(table.OPERATIONS))
def test_every_operation_has_its_words_and_each_describes_a_parameter(name: str) -> None:
    from limpet import prompts

    operation = table.find(name)
    words = prompts.tool(name)
    assert words.description
    assert words.params.keys() <= {param.name for param in operation.all_params()}


def test_names_that_do_not_exist() -> None:
    with pytest.raises(errors.BadInput, match=r"there is no operation 'forget'\. Those that exist: add_note"):
        table.find("forget")
    with pytest.raises(errors.BadInput, match="Choose one of core, coding, full"):
        table.profile("")


def test_core_is_part_of_full() -> None:
    core, full = ({operation.name for operation in table.profile(name)} for name in ("core", "full"))
    assert core < full


@pytest.mark.parametrize("name", sorted(table.OPERATIONS))
def test_a_row_points_at_a_function_with_its_parameters(name: str) -> None:
    row = table.OPERATIONS[name]
    assert callable(resolve(row.show))
    function = resolve(row.run)
    assert table.operation_of(function) is row
    taken = list(inspect.signature(function).parameters.values())[1:]  # the first is the context
    named = {param.name: param for param in taken if param.kind not in (param.VAR_KEYWORD, param.VAR_POSITIONAL)}
    declared = {param.name: param for param in row.params}
    if not any(param.kind is param.VAR_KEYWORD for param in taken):
        assert declared.keys() <= named.keys()
    for param in named.values():
        if param.default is param.empty:
            assert declared[param.name].required


def test_every_row_has_a_part_of_the_guidance_that_exists_and_commands_of_its_own() -> None:
    assert {row.guidance for row in table.ROWS} == {"", *table.GUIDANCE}
    assert len(table.COMMANDS) == sum(len(row.commands) for row in table.ROWS)
    assert all(row.commands and row.level in LEVELS for row in table.ROWS)
    assert all(set(row.profiles) <= set(table.PROFILES) for row in table.ROWS)
