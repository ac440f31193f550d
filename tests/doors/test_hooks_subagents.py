"""Sub-agents of a coding agent: they share the server with the agent that began them, and not its notepad."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from doors.cli_runner import COMMAND
from doors.hook_kit import Json, Place, ran
from doors.mcp_client import Lines
from limpet.catalogue.operation import Context
from limpet.session import tree

BIG = "\n".join(f"line {number} of a long result" for number in range(400))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    with place.open() as hold:
        hold.session("main").notepad.write("# MAIN-PLAN")
        hold.session("main").begin("port the parser")
    return place


def called(place: Place, tool: str, agent: str = "a1", **arguments: object) -> Any:
    """The arguments that the hook gives a call, None if it leaves them alone."""
    payload: Json = {"session_id": "main", "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": arguments}
    extra = {"agent_id": agent, "agent_type": "Explore"} if agent else {}
    answer = place.hook("claude-code", "before-tool", payload | extra)
    assert "permissionDecision" not in json.dumps(answer)
    return answer.get("hookSpecificOutput", {}).get("updatedInput")


@pytest.mark.parametrize("prefix", ["mcp__limpet__", "mcp__plugin_limpet_limpet__"])
def test_a_sub_agent_has_a_session_of_its_own_below_the_one_that_began_it(place: Place, prefix: str) -> None:
    assert called(place, f"{prefix}write_notepad", agent="", content="x") is None  # the server knows the main one
    changed = called(place, f"{prefix}write_notepad", content="SUB plan")
    assert changed == {"content": "SUB plan", "session_id": "main.a1"}
    with place.open() as hold:
        hold.call("write_notepad", changed)
        assert hold.session("main").notepad.read() == "# MAIN-PLAN"
        (child,) = [session for session in hold.sessions() if session.id == "main.a1"]
        assert (child.parent, child.task) == ("main", "Explore")
    assert called(place, f"{prefix}search_memory", query="x") is None  # it is the project's
    assert called(place, "mcp__files__write_notepad", content="x") is None
    assert place.log == ""


def test_it_reads_the_notepad_of_its_parent_and_never_overwrites_it(place: Place) -> None:
    assert called(place, "mcp__limpet__read_notepad", session_id="main") is None
    changed = called(place, "mcp__limpet__write_notepad", content="SUB", session_id="main")
    assert changed["session_id"] == "main.a1"
    env = place.environment() | {"LIMPET_FOLDER": str(place.project), "CLAUDE_CODE_SESSION_ID": "main"}
    with Lines([*COMMAND, "mcp", "--profile", "coding", "--no-handoff", "--structured"], env) as server:
        server.open("2025-06-18")
        first = server.ask("tools/call", {"name": "write_notepad", "arguments": changed})
    assert "# MAIN-PLAN" in first["structuredContent"]["context"]


def test_a_handoff_is_not_for_it_and_its_work_is_work_of_the_session(place: Place) -> None:
    with place.open() as hold:
        hold.session("earlier").handoff.write("Casts come next.")
    begun = {"session_id": "main", "hook_event_name": "SessionStart", "source": "startup"}
    place.hook("claude-code", "session-start", begun)
    called(place, "mcp__limpet__add_note", content="x")
    with place.open() as hold:
        assert "Casts" not in hold.session("main.a1").context()
        assert hold.session().handoff.read().used_by is None
    place.hook("claude-code", "after-tool", ran("claude-code", "main", "Bash", "ok") | {"agent_id": "a1"})
    with place.open() as hold:
        assert hold.session().handoff.read().used_by == "main"


def test_its_big_results_are_kept_once_it_has_shown_that_it_has_our_tools(place: Place) -> None:
    done = ran("claude-code", "main", "Bash", BIG) | {"agent_id": "a1"}
    assert place.hook("claude-code", "after-tool", done) == {}
    called(place, "mcp__limpet__add_note", content="x")
    answer = place.hook("claude-code", "after-tool", done)
    assert "📁 Output cached: " in json.dumps(answer, ensure_ascii=False)
    with place.open() as hold:
        (output,) = hold.session().outputs.list().outputs
        assert output.session == "main.a1"


def test_a_session_is_attached_to_a_parent_once(place: Place) -> None:
    with place.open() as hold:
        hold.session("child").notepad.write("mine")

        def of(session: str) -> Context:
            return hold.context(session)

        tree.attach(of("child"), "main", "look")
        tree.attach(of("child"), "other", "look again")
        (child,) = [session for session in hold.sessions() if session.id == "child"]
        assert (child.parent, child.task) == ("main", "look")
        assert hold.session("child").notepad.read() == "mine"


def test_a_sub_agent_of_copilot_has_the_session_that_copilot_gives_it(place: Place) -> None:
    write: Json = {"sessionId": "child", "toolName": "limpet-write_notepad", "toolArgs": {"content": "SUB plan"}}
    assert place.hook("copilot", "before-tool", {**write, "sessionId": "main"}) == {}  # the server knows the main one
    told = {"agentId": "child", "agentType": "general-purpose", "parentAgentId": "main"}
    changed = place.hook("copilot", "before-tool", write | told)["modifiedArgs"]
    assert changed == {"content": "SUB plan", "session_id": "child"}
    assert place.hook("copilot", "stop", {"sessionId": "child", "stopReason": "end_turn"} | told) == {}
    with place.open() as hold:
        hold.call("write_notepad", changed)
        assert hold.session("main").notepad.read() == "# MAIN-PLAN"
        (child,) = [session for session in hold.sessions() if session.id == "child"]
        assert (child.parent, child.task) == ("main", "general-purpose")
    assert place.log == ""


def test_a_sub_agent_of_codex_is_a_thread_that_the_server_tells_apart(place: Place) -> None:
    turn = {"session_id": "main", "thread_id": "main"}
    below = {**turn, "thread_id": "t1", "parent_thread_id": "main"}
    threads = (turn, below, {**turn, "thread_id": "t2", "parent_thread_id": "t1"})
    with Lines([*COMMAND, "mcp"], place.environment() | {"LIMPET_FOLDER": str(place.project)}) as server:
        server.open("2025-06-18")
        for number, thread in enumerate(threads):
            call = {"name": "update_notepad", "arguments": {"operation": "append", "content": f"plan {number}"}}
            server.ask("tools/call", {**call, "_meta": {"x-codex-turn-metadata": thread}})
    with place.open() as hold:
        pads = {id: hold.session(id).notepad.read() for id in ("main", "main.t1", "main.t2")}
        parents = {session.id: session.parent for session in hold.sessions()}
    assert pads == {"main": "# MAIN-PLANplan 0", "main.t1": "plan 1", "main.t2": "plan 2"}
    assert (parents["main.t1"], parents["main.t2"]) == ("main", "main.t1")
