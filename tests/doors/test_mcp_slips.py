"""Calls as models make them, over MCP and through the library's tools: what can mean one thing only is understood."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import limpet
from doors.mcp_client import MODERN, Lines, stdio_command
from limpet import errors

SLIPS: list[tuple[str, dict[str, Any]]] = [  # an empty text for what may be left out, as clients make models fill it in
    ("read_handoff", {"id": ""}),
    ("read_output", {"id": "{output}", "lines": "2-3", "query": "", "match": "", "regex": "", "context": ""}),
    ("add_note", {"content": "The lexer is tested by round trips", "tags": "", "replaces": ""}),
    ("write_memory", {"key": "style", "content": "Tabs.", "mode": "", "replaces": ""}),
    ("recall", {"query": "casts", "kinds": "", "since": "", "limit": "5", "more": ""}),
    ("update_note", {"id": "{note}", "content": "", "tags": "", "done": "true"}),
    ("update_notepad", {"operation": "append", "content": "- [ ] casts", "find": "", "replace": "", "replace_all": ""}),
    ("update_notepad", {"operation": "find_replace", "content": "", "find": "- [ ] ", "replace": ""}),
]


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "limpet.db")


@pytest.fixture
def filled(place: str) -> dict[str, str]:
    with limpet.open(place) as hold:
        hold.session("earlier").handoff.write("Casts come next.")
        note = hold.session().notes.add("Casts need two tokens of lookahead", tags=["grammar", "two words"])
        output = hold.session().outputs.keep("make", "\n".join(f"line {number}" for number in range(5_000))).output
    assert output is not None
    return {"note": note.id, "output": output.id}


def with_ids(arguments: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    return {name: value.format(**ids) if name == "id" else value for name, value in arguments.items()}


def said(server: Lines, tool: str, arguments: dict[str, Any]) -> str:
    result = server.ask("tools/call", {"name": tool, "arguments": arguments})
    return ("refused: " if result.get("isError") else "") + str(result["content"][0]["text"])


def test_an_empty_text_stands_for_what_was_left_out(place: str, filled: dict[str, str]) -> None:
    with Lines(stdio_command(place, "coding")) as server:
        server.open(MODERN)
        for tool, arguments in SLIPS:
            answer = said(server, tool, with_ids(arguments, filled))
            assert not answer.startswith("refused"), (tool, answer)
        assert said(server, "read_notepad", {}).startswith("casts")
        assert "#grammar" in said(server, "search_notes", {"query": "lookahead", "include_done": True}), "its tags stay"
        assert said(server, "write_notepad", {"content": ""}).startswith("Kept"), "it clears the notepad"


def test_the_tools_of_the_library_understand_the_same(place: str, filled: dict[str, str]) -> None:
    with limpet.open(place) as hold:
        tools = {tool.name: tool.handler for tool in hold.tools("coding")}
        for tool, arguments in SLIPS:
            tools[tool](with_ids(arguments, filled))
        assert tools["read_notepad"]({}).startswith("casts")


def test_an_empty_text_is_a_value_of_state(place: str) -> None:
    with limpet.open(place) as hold:
        (state,) = [tool.handler for tool in hold.tools("full") if tool.name == "agent_state"]
        assert state({"action": "set", "key": "branch", "value": "", "prefix": ""}) == "branch is at version 1."
        assert state({"action": "get", "key": "branch", "value": "", "prefix": ""}).startswith('""')
        assert hold.call("agent_state", {"action": "get", "key": "branch"})["value"] == ""


@pytest.mark.parametrize("tags", ["#grammar", ["#grammar"], ["#Grammar", '#"two words"'], '#grammar, #"two words"'])
def test_tags_may_be_written_as_answers_show_them(place: str, filled: dict[str, str], tags: object) -> None:
    with Lines(stdio_command(place, "coding")) as server:
        server.open(MODERN)
        assert "lookahead" in said(server, "search_notes", {"tags": tags})
        assert said(server, "add_note", {"content": "The grammar is LL(1) but for casts", "tags": tags}).count("2 tags")


@pytest.mark.parametrize("name", ["Add_Note", "ADD_NOTE", "add-note"])
def test_the_case_of_a_tools_name_does_not_matter(place: str, name: str) -> None:
    with Lines(stdio_command(place, "coding")) as server:
        server.open(MODERN)
        assert "1 note" in said(server, name, {"content": "Casts need two tokens of lookahead"})


@pytest.mark.parametrize("profile", ["core", "coding"])
def test_a_refusal_names_only_what_the_list_of_tools_shows(place: str, filled: dict[str, str], profile: str) -> None:
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("update_note", {"id": filled["note"]}, "Give content, tags or done."),
        ("add_note", {"content": "x", "color": "red"}, "It takes content, tags, replaces"),
    ]
    with Lines(stdio_command(place, profile)) as server, limpet.open(place) as hold:
        server.open(MODERN)
        tools = {tool.name: tool.handler for tool in hold.tools(profile, session="main")}
        for tool, arguments, advice in calls:
            assert advice in said(server, tool, arguments)
            with pytest.raises(errors.BadInput) as refused:
                tools[tool](arguments)
            assert advice in str(refused.value)
            assert "expires" not in str(refused.value)


def test_a_tool_of_the_library_names_no_tool_that_its_profile_lacks(place: str, filled: dict[str, str]) -> None:
    with limpet.open(place) as hold:
        (read,) = [tool.handler for tool in hold.tools("coding") if tool.name == "read_output"]
        with pytest.raises(errors.NotFound, match="recall finds outputs") as refused:
            read({"id": "000000000000"})
    assert "list_outputs" not in str(refused.value)
