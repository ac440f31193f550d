"""Tools for people who call a model's API themselves, and the guidance that goes with them."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

import holdfast
from holdfast import errors
from holdfast.library import Holdfast, Tool
from holdfast.operations.catalogue import OPERATIONS, profile

SEED_NOTES = {
    "add_note",
    "search_notes",
    "list_notes",
    "update_note",
    "delete_note",
    "scratch_note",
    "list_tags",
}
SEED_NOTEPAD = {"read_notepad", "write_notepad", "update_notepad"}
SEED_OUTPUTS = {"scratchpad_read", "scratchpad_list"}
SEED_JOURNAL = {"recover_notes", "log_decision", "update_notes", "checkpoint_session"}
SEED_MEMORY = {"search_memory", "write_memory", "write_session_handoff", "scratch_note"}

# One good call of every operation, in an order in which each finds what it needs.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("add_note", {"content": "a note", "tags": ["x"]}),
    ("scratch_note", {"content": "quick"}),
    ("scratch_note", {"mode": "read"}),
    ("search_notes", {"query": "note"}),
    ("search_notes", {"query": "note a", "limit": 1}),
    ("list_notes", {"limit": 1}),
    ("list_notes", {"tag": "x"}),
    ("update_note", {"id": "{note}", "done": True}),
    ("list_tags", {}),
    ("delete_note", {"id": "{note}"}),
    ("write_notepad", {"content": "long " * 9_000}),
    ("update_notepad", {"operation": "append", "content": "x"}),
    ("read_notepad", {}),
    ("notepad_history", {"version": 1}),
    ("restore_notepad", {"version": 1}),
    ("write_memory", {"key": "k", "content": "v"}),
    ("pin_memory", {"key": "k"}),
    ("read_memory", {"key": "k"}),
    ("search_memory", {"query": "v"}),
    ("write_session_handoff", {"content": "next"}),
    ("read_handoff", {}),
    ("begin_session", {"task": "t"}),
    ("show_session", {"id": "one"}),
    ("list_sessions", {}),
    ("archive_session", {"id": "one"}),
    ("scratchpad_read", {"id": "{output}", "lines": "1-2"}),
    ("scratchpad_list", {}),
    ("prune_outputs", {}),
    ("delete_output", {"id": "{output}"}),
    ("clear_outputs", {}),
    ("init_notes", {}),
    ("update_notes", {"section": "task", "text": "the parser"}),
    ("update_notes", {"section": "debt", "text": "casts are slow", "severity": "HIGH", "track": True}),
    (
        "log_decision",
        {
            "title": "LL(1)",
            "decision": "Stay with LL(1)",
            "rationale": "It is fast",
            "evidence": ["user: keep it simple"],
            "scenarios": ["a cast", "a nested cast", "a broken cast"],
        },
    ),
    ("checkpoint_session", {"summary": "casts work", "state": "tests are next"}),
    ("recover_notes", {}),
    ("lint_notes", {"fix": True}),
    ("verify_notes", {}),
    ("heal_notes", {}),
    ("rotate_notes", {"force": True}),
    ("history", {}),
    ("undo", {}),
]


def output_of(hold: Holdfast) -> str:
    kept = hold.session().outputs.keep("shell", "a line of it\n" * 500)
    assert kept.output is not None
    return kept.output.id


def by_name(hold: Holdfast, name: str = "full") -> dict[str, Tool]:
    return {tool.name: tool for tool in hold.tools(name)}


def test_the_profiles_hold_the_tools_of_the_seeds(hold: Holdfast) -> None:
    core, full = by_name(hold, "core"), by_name(hold)
    assert full.keys() == SEED_NOTES | SEED_NOTEPAD | SEED_MEMORY | SEED_OUTPUTS | SEED_JOURNAL
    assert core.keys() < full.keys()
    assert len(core) == 8
    with pytest.raises(errors.BadInput, match="there is no profile 'tiny'"):
        hold.tools("tiny")


@pytest.mark.parametrize("name", ["core", "full"])
def test_every_tool_has_a_name_a_description_and_a_schema(hold: Holdfast, name: str) -> None:
    for tool in hold.tools(name):
        assert tool.name.isidentifier()
        assert len(tool.description) > 20
        assert tool.description.endswith(".")
        jsonschema.Draft202012Validator.check_schema(tool.parameters)
        assert tool.parameters["type"] == "object"
        assert tool.parameters["additionalProperties"] is False
        assert set(tool.parameters.get("required", [])) <= tool.parameters["properties"].keys()


def test_handlers_do_what_a_call_does(hold: Holdfast) -> None:
    tools = by_name(hold)
    id = tools["add_note"].handler({"content": "through a handler", "tags": ["t"]})["note_id"]
    assert tools["search_notes"].handler({"query": "handler"})["notes"][0]["id"] == id
    assert hold.history(kind="note")[0].by == "agent/tools"
    tools["write_notepad"].handler({"content": "plan"})
    assert tools["read_notepad"].handler({})["content"] == "plan"
    with pytest.raises(errors.BadInput, match="add_note has no argument 'text'"):
        tools["add_note"].handler({"text": "x"})


def test_handlers_work_in_the_session_they_were_made_for(hold: Holdfast) -> None:
    (tool,) = [tool for tool in hold.tools("core", session="apart") if tool.name == "write_notepad"]
    tool.handler({"content": "apart"})
    assert hold.session("apart").notepad.read() == "apart"
    assert hold.session().notepad.read() == ""


def test_every_operation_answers_as_its_schemas_say(hold: Holdfast) -> None:
    assert {name for name, _ in CALLS} == set(OPERATIONS)
    note, output = "", output_of(hold)
    for name, template in CALLS:
        known = {"{note}": note, "{output}": output}
        arguments = {
            key: known.get(value, value) if isinstance(value, str) else value for key, value in template.items()
        }
        operation = OPERATIONS[name]
        jsonschema.validate(arguments, operation.input_schema(), cls=jsonschema.Draft202012Validator)
        answer = hold.call(name, arguments)
        jsonschema.validate(answer, operation.output_schema(), cls=jsonschema.Draft202012Validator)
        assert answer.keys() <= operation.result.keys(), f"{name} answers with a key it does not declare"
        note = note or answer.get("note_id", "")


def test_hints_are_true(hold: Holdfast) -> None:
    """What calls itself read-only writes nothing; what calls itself idempotent changes nothing the second time."""
    note, output = "", output_of(hold)
    for name, template in CALLS:
        known = {"{note}": note, "{output}": output}
        arguments = {
            key: known.get(value, value) if isinstance(value, str) else value for key, value in template.items()
        }
        operation = OPERATIONS[name]
        before = list(hold.export_lines())
        answer = hold.call(name, arguments)
        note = note or answer.get("note_id", "")
        after = list(hold.export_lines())
        if operation.read_only:
            assert after == before, name
        if operation.idempotent:
            hold.call(name, arguments)
            entries = [line for line in hold.export_lines() if '"entry"' in line[:10]]
            assert len(entries) == sum('"entry"' in line[:10] for line in after), name
        assert operation.annotations().get("readOnlyHint", False) is operation.read_only


# --- guidance ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "present"),
    [
        (SEED_NOTES - {"scratch_note"}, {"Notes"}),
        (SEED_NOTEPAD, {"Notepad"}),
        ({"search_memory", "write_memory"}, {"Memory"}),
        ({"write_session_handoff"}, {"Handoff"}),
        ({"recover_notes"}, {"Journal"}),
        (SEED_NOTES | SEED_NOTEPAD, {"Notes", "Notepad"}),
        ({"add_note", "write_memory", "write_session_handoff"}, {"Notes", "Memory", "Handoff"}),
        (set(), set()),
        ({"somebody_elses_tool"}, set()),
    ],
)
def test_guidance_is_there_for_the_tools_that_are_there_and_for_no_others(names: set[str], present: set[str]) -> None:
    text = holdfast.guidance(names)
    found = {line.split(" (")[0] for line in text.split("\n") if line}
    assert found == present


@pytest.mark.parametrize("name", ["core", "full"])
def test_guidance_names_only_tools_of_its_profile(hold: Holdfast, name: str) -> None:
    text = hold.guidance(name)
    given = {operation.name for operation in profile(name)}
    named = {word.strip("().,:;") for word in text.split()} & set(OPERATIONS)
    assert named
    assert named <= given
    assert hold.instructions(name).text == text
