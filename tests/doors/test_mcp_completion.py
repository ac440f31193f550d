"""What an MCP client gets beside results: completion of sessions and tags, and word from a call that takes long."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import limpet
from doors.mcp_client import REVISIONS, Lines, stdio_command

SESSION = {"type": "ref/prompt", "name": "resume"}
PAD = {"type": "ref/resource", "uri": "limpet://notepad/{session_id}"}
TAGGED = {"type": "ref/resource", "uri": "limpet://notes/{tag}"}


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "limpet.db")
    with limpet.open(path) as hold:
        for session in ("parser-1", "parser-2", "docs"):
            hold.session(session).notes.add(f"Something about {session}", tags=[session.partition("-")[0], "Grammar"])
    return path


@pytest.fixture
def server(store: str) -> Iterator[Lines]:
    with Lines(stdio_command(store)) as lines:
        yield lines


def completed(server: Lines, ref: dict[str, str], name: str, typed: str) -> Any:
    params = {"ref": ref, "argument": {"name": name, "value": typed}}
    return server.ask("completion/complete", params)["completion"]


@pytest.mark.parametrize("revision", [one for one in REVISIONS if one >= "2025-03-26"])
def test_sessions_and_tags_are_completed(server: Lines, revision: str) -> None:
    assert "completions" in server.open(revision)["capabilities"]
    for ref in (SESSION, PAD):
        values = completed(server, ref, "session_id", "PARSER")["values"]
        assert sorted(values) == ["parser-1", "parser-2"]
    assert completed(server, TAGGED, "tag", "gr") == {"values": ["Grammar"], "total": 1, "hasMore": False}
    assert completed(server, TAGGED, "tag", "quince")["values"] == []
    assert completed(server, SESSION, "colour", "")["values"] == []


def test_a_session_is_completed_however_many_came_after_it(server: Lines, store: str) -> None:
    with limpet.open(store) as hold:
        for number in range(60):
            hold.session(f"later-{number}").notepad.append("x")
    server.open("2025-11-25")
    assert sorted(completed(server, SESSION, "session_id", "parser")["values"]) == ["parser-1", "parser-2"]
    assert completed(server, SESSION, "session_id", "later")["total"] == 60


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"ref": SESSION},
        {"ref": SESSION, "argument": {"name": "session_id"}},
        {"ref": {"type": "ref/prompt", "name": "none"}, "argument": {"name": "x", "value": ""}},
        {"ref": {"type": "ref/resource", "uri": "limpet://none/{x}"}, "argument": {"name": "x", "value": ""}},
    ],
)
def test_what_cannot_be_completed_is_refused(server: Lines, params: dict[str, Any]) -> None:
    server.open("2025-11-25")
    assert server.refused("completion/complete", params)["code"] == -32602


def test_notes_with_a_tag_are_a_resource(server: Lines) -> None:
    server.open("2025-11-25")
    listed = [row["uriTemplate"] for row in server.ask("resources/templates/list")["resourceTemplates"]]
    assert TAGGED["uri"] in listed
    (content,) = server.ask("resources/read", {"uri": "limpet://notes/docs"})["contents"]
    assert "Something about docs" in content["text"]
    assert "parser" not in content["text"]


@pytest.mark.parametrize("token", ["a token", 7])
def test_a_call_that_waits_says_so_to_a_client_that_asked(server: Lines, store: str, token: str | int) -> None:
    """Another program holds the store until the client was told; the reply comes after the last word of progress."""
    server.open("2025-11-25")
    with sqlite3.connect(store, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        params = {"name": "add_note", "arguments": {"content": "late"}, "_meta": {"progressToken": token}}
        server.send({"jsonrpc": "2.0", "id": 90, "method": "tools/call", "params": params})
        told = server.read()
        other.execute("ROLLBACK")
    assert told["method"] == "notifications/progress"
    assert told["params"]["progressToken"] == token
    steps = [told["params"]["progress"]]
    while "id" not in (message := server.read()):
        steps.append(message["params"]["progress"])
    assert message["id"] == 90
    assert "late" not in str(message.get("error"))
    assert steps == sorted(set(steps))


def test_a_quick_call_and_one_that_did_not_ask_are_answered_alone(server: Lines) -> None:
    server.open("2025-11-25")
    params = {"name": "add_note", "arguments": {"content": "now"}, "_meta": {"progressToken": "t"}}
    assert server.raw("tools/call", params)["result"]
    assert server.raw("tools/call", {"name": "read_notepad", "arguments": {}})["result"]


def test_a_refusal_names_the_arguments_that_are_listed(store: str) -> None:
    with Lines(stdio_command(store, "core", structured=False)) as server:
        server.open("2025-11-25")
        listed = {tool["name"]: set(tool["inputSchema"]["properties"]) for tool in server.ask("tools/list")["tools"]}
        answer = server.ask("tools/call", {"name": "add_note", "arguments": {"content": "x", "colour": "red"}})
        sentence = answer["content"][0]["text"]
        assert "add_note has no argument 'colour'" in sentence
        assert set(sentence.partition("It takes ")[2].rstrip(".").split(", ")) == listed["add_note"]


def test_what_may_mend_a_file_is_not_called_reading(server: Lines) -> None:
    server.open("2025-11-25")
    tools = {tool["name"]: tool.get("annotations", {}) for tool in server.ask("tools/list")["tools"]}
    assert "readOnlyHint" not in tools["recover_journal"]
    assert tools["recover_journal"]["destructiveHint"] is False
    assert tools["read_notepad"] == {"readOnlyHint": True}
