"""Tools for people who call a model's API themselves, and the guidance that goes with them."""

from __future__ import annotations

import copy
import re
from typing import Any

import jsonschema
import pytest

import limpet
from limpet import errors
from limpet.api import LIBRARY, Limpet, Tool
from limpet.catalogue.table import OPERATIONS, profile
from limpet.window.messages import user

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
SEED_OUTPUTS = {"read_output", "list_outputs"}
SEED_TREE = {"spawn_session", "fork_session", "wait_for_sessions", "report_result"}
SEED_SANDBOX = {"run_sandbox_code"}
SEED_LAYERS = {
    "read_system_prompt",
    "edit_system_prompt",
    "list_skills",
    "read_skill",
    "promote_skill",
    "agent_state",
}
SEED_TASKS = {"begin_task", "end_task", "cancel_task"}
WINDOW = {"uncompact", "show_window", "compact_window"}
SEED_JOURNAL = {"recover_journal", "log_decision", "update_journal", "checkpoint_session"}
NEWER = ("list_memory", "delete_memory", "mark_useful")
SEED_MEMORY = {"search_memory", "write_memory", "write_session_handoff", "scratch_note"}

CALLER = dict.fromkeys(("accept_proposal", "reject_proposal"), "person/cli")  # these a person decides

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
    ("list_memory", {"include_replaced": True}),
    ("mark_useful", {"id": "k"}),
    ("delete_memory", {"key": "k"}),
    ("undo", {}),
    ("write_memory", {"key": "style", "content": "short", "layer": "person"}),
    ("list_proposals", {}),
    ("accept_proposal", {"id": "{proposal}"}),
    ("write_memory", {"key": "style", "content": "long", "layer": "person"}),
    ("reject_proposal", {"id": "{proposal}"}),
    ("recall", {"query": "what is v?", "kinds": ["memory"], "limit": 3}),
    ("write_session_handoff", {"content": "next"}),
    ("read_handoff", {}),
    ("begin_session", {"task": "t"}),
    ("show_session", {"id": "one"}),
    ("list_sessions", {}),
    ("spawn_session", {"task": "part of it", "copy_notepad": True, "references": ["{output}"], "token_limit": 5_000}),
    ("fork_session", {"task": "another way"}),
    ("wait_for_sessions", {"ids": ["{child}"]}),
    ("report_result", {"result": "done", "session_id": "{child}"}),
    ("end_session", {"id": "{fork}", "outcome": "cancelled", "result": "not needed"}),
    ("archive_session", {"id": "one"}),
    ("begin_task", {"description": "look into casts"}),
    ("end_task", {"summary": "two tokens suffice"}),
    ("begin_task", {"description": "again"}),
    ("cancel_task", {"reason": "done before"}),
    ("list_tasks", {"limit": 1}),
    ("pin_text", {"content": "no casts"}),
    ("list_pins", {}),
    ("unpin_text", {"id": "{pin}"}),
    ("uncompact", {"first": 1}),
    ("list_folds", {}),
    ("show_window", {}),
    ("compact_window", {}),
    ("read_output", {"id": "{output}", "lines": "1-2"}),
    ("list_outputs", {}),
    ("savings", {}),
    ("savings", {"session": "one"}),
    ("run_sandbox_code", {"code": "print(len(outputs.list()))\n[n, 2]", "inputs": {"n": 1}}),
    ("read_system_prompt", {}),
    ("write_system_prompt", {"content": "Be brief. " * 2_500}),
    ("edit_system_prompt", {"operation": "append", "content": "x"}),
    ("system_prompt_history", {"version": 1}),
    ("restore_system_prompt", {"version": 1}),
    ("agent_state", {"action": "set", "key": "build", "value": {"number": [7, None]}}),
    ("agent_state", {"action": "get", "key": "build"}),
    ("agent_state", {"action": "keys"}),
    ("agent_state", {"action": "delete", "key": "build"}),
    ("write_notepad", {"content": "# Release\n1. tag\n"}),
    ("promote_skill", {"name": "release", "description": "How to release.", "section": "Release"}),
    ("list_skills", {}),
    ("read_skill", {"name": "release"}),
    ("prune_outputs", {}),
    ("delete_output", {"id": "{output}"}),
    ("clear_outputs", {}),
    ("list_seals", {}),
    ("approve_seals", {"server": "files"}),
    ("init_journal", {}),
    ("update_journal", {"section": "task", "text": "the parser"}),
    ("update_journal", {"section": "debt", "text": "casts are slow", "severity": "HIGH", "track": True}),
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
    ("recover_journal", {}),
    ("lint_journal", {"fix": True}),
    ("verify_journal", {}),
    ("heal_journal", {}),
    ("rotate_journal", {"force": True}),
    ("audit", {}),
    ("purge", {"origin": "import", "dry_run": True}),
    ("history", {}),
    ("undo", {}),
]


def output_of(hold: Limpet) -> str:
    hold.see_tools("files", {"read": {"name": "read"}})
    hold.see_tools("files", {"read": {"name": "read", "description": "now reads more"}})
    kept = hold.session().outputs.keep("shell", "a line of it\n" * 500)
    assert kept.output is not None
    return kept.output.id


def filled(template: dict[str, Any], known: dict[str, str]) -> dict[str, Any]:
    """The arguments with the ids that earlier calls gave."""

    def value(given: Any) -> Any:
        if isinstance(given, list):
            return [value(one) for one in given]
        return known.get(given, given) if isinstance(given, str) else given

    return {key: value(given) for key, given in template.items()}


def learn(known: dict[str, str], name: str, answer: dict[str, Any]) -> None:
    places = {
        "add_note": ("{note}", "note_id"),
        "spawn_session": ("{child}", "id"),
        "fork_session": ("{fork}", "id"),
        "pin_text": ("{pin}", "id"),
    }
    if "proposed" in answer:
        known["{proposal}"] = answer["proposed"]
    if name in places:
        place, key = places[name]
        known[place] = answer[key]


def exported(hold: Limpet) -> list[str]:
    """All there is, but for the count of uses, which decides only what is pruned first."""
    return [re.sub(r'"used_at":\d+,"uses":\d+', "", line) for line in hold.export_lines()]


def folded_message(hold: Limpet) -> None:
    """A message the caller took back, which is folded to nothing."""
    window = hold.session().window
    window.next([user("port the lexer")])
    window.next([user("port the parser")])


def by_name(hold: Limpet, name: str = "full") -> dict[str, Tool]:
    return {tool.name: tool for tool in hold.tools(name)}


def test_the_profiles_hold_the_tools_of_the_seeds(hold: Limpet) -> None:
    core, full, agent = by_name(hold, "core"), by_name(hold), by_name(hold, "agent")
    seeds = SEED_NOTES | SEED_NOTEPAD | SEED_MEMORY | SEED_OUTPUTS | SEED_SANDBOX | SEED_LAYERS | SEED_TASKS
    assert full.keys() == seeds | WINDOW | SEED_JOURNAL | {"recall", "read_handoff", *NEWER}
    assert core.keys() < full.keys()
    assert len(core) == 13
    assert agent.keys() == full.keys() | SEED_TREE
    with pytest.raises(errors.BadInput, match="there is no profile 'tiny'"):
        hold.tools("tiny")


@pytest.mark.parametrize("name", ["core", "full", "agent"])
def test_every_tool_has_a_name_a_description_and_a_schema(hold: Limpet, name: str) -> None:
    for tool in hold.tools(name):
        assert tool.name.isidentifier()
        assert len(tool.description) > 20
        assert tool.description.endswith(".")
        jsonschema.Draft202012Validator.check_schema(tool.parameters)
        assert tool.parameters["type"] == "object"
        assert tool.parameters["additionalProperties"] is False
        assert set(tool.parameters.get("required", [])) <= tool.parameters["properties"].keys()


def test_handlers_do_what_a_call_does(hold: Limpet) -> None:
    tools = by_name(hold)
    added = tools["add_note"].handler({"content": "through a handler", "tags": ["t"]})
    assert tools["search_notes"].handler({"query": "handler"}).values["notes"][0]["id"] == added.values["note_id"]
    assert added == "n2 kept; 1 note, 1 tag."
    assert copy.deepcopy(added).values == added.values
    assert tools["search_notes"].handler({"query": "handler"}).startswith("n2 now #t through a handler")
    assert hold.history(kind="note")[0].by == "agent/tools"
    tools["write_notepad"].handler({"content": "plan"})
    assert tools["read_notepad"].handler({}).values["content"] == "plan"
    with pytest.raises(errors.BadInput, match="add_note has no argument 'text'"):
        tools["add_note"].handler({"text": "x"})


def test_handlers_work_in_the_session_they_were_made_for(hold: Limpet) -> None:
    (tool,) = [tool for tool in hold.tools("core", session="apart") if tool.name == "write_notepad"]
    tool.handler({"content": "apart"})
    assert hold.session("apart").notepad.read() == "apart"
    assert hold.session().notepad.read() == ""


def test_every_operation_answers_as_its_schemas_say(hold: Limpet) -> None:
    assert {name for name, _ in CALLS} == set(OPERATIONS)
    known = {"{output}": output_of(hold)}
    folded_message(hold)
    for name, template in CALLS:
        arguments = filled(template, known)
        operation = OPERATIONS[name]
        jsonschema.validate(arguments, operation.input_schema(), cls=jsonschema.Draft202012Validator)
        answer = hold.call(name, arguments, by=CALLER.get(name, LIBRARY))
        jsonschema.validate(answer, operation.output_schema(), cls=jsonschema.Draft202012Validator)
        assert answer.keys() <= operation.result.keys(), f"{name} answers with a key it does not declare"
        learn(known, name, answer)


def test_hints_are_true(hold: Limpet) -> None:
    """What calls itself read-only writes nothing; what calls itself idempotent changes nothing the second time."""
    known = {"{output}": output_of(hold)}
    folded_message(hold)
    for name, template in CALLS:
        arguments = filled(template, known)
        operation = OPERATIONS[name]
        before = exported(hold)
        answer = hold.call(name, arguments, by=CALLER.get(name, LIBRARY))
        learn(known, name, answer)
        after = exported(hold)
        if operation.read_only:
            assert after == before, name
        if operation.idempotent:
            hold.call(name, arguments)
            entries = [line for line in hold.export_lines() if '"entry"' in line[:10]]
            assert len(entries) == sum('"entry"' in line[:10] for line in after), name
        assert operation.annotations().get("readOnlyHint", False) is (operation.read_only and not operation.mends)


# --- guidance ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "present"),
    [
        (SEED_NOTES - {"scratch_note"}, {"Notes"}),
        (SEED_NOTEPAD, {"Notepad"}),
        ({"search_memory", "write_memory"}, {"Memory"}),
        ({"write_session_handoff"}, {"Handoff"}),
        (SEED_TASKS, {"Tasks"}),
        ({"recover_journal"}, {"Journal"}),
        (SEED_NOTES | SEED_NOTEPAD, {"Notes", "Notepad", "Scratchpad"}),
        ({"add_note", "write_memory", "write_session_handoff"}, {"Notes", "Memory", "Handoff"}),
        ({"scratch_note"}, {"Scratchpad"}),
        ({"read_output"}, {"Outputs"}),
        ({"recall"}, {"Recall"}),
        (set(), set()),
        ({"somebody_elses_tool"}, set()),
    ],
)
def test_guidance_is_there_for_the_tools_that_are_there_and_for_no_others(names: set[str], present: set[str]) -> None:
    text = limpet.guidance(names)
    assert {line.partition(": ")[0] for line in text.split("\n") if line} == present


def test_guidance_teaches_the_tools_that_are_there() -> None:
    few, all_of_them = limpet.guidance(["add_note", "search_notes"]), limpet.guidance(sorted(SEED_NOTES))
    assert "Search before you investigate" in few
    assert "with a tag or two" in few
    assert "update" not in few.lower()
    assert "update" in all_of_them.lower()
    assert "Search before" not in limpet.guidance(["add_note"])


@pytest.mark.parametrize("name", ["core", "full"])
def test_guidance_names_only_tools_of_its_profile(hold: Limpet, name: str) -> None:
    text = hold.guidance(name)
    given = {operation.name for operation in profile(name)}
    named = {word.strip("().,:;") for word in text.split()} & set(OPERATIONS) - {"recall"}  # a word, too
    assert named <= given
    assert hold.instructions(name).text == text
