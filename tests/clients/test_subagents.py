"""Sub-agents of the real agents: their notepad is theirs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clients.claude_code import ClaudeCode
from clients.cline import Cline
from clients.codex import Codex
from clients.copilot import Copilot
from clients.goose import Goose
from clients.kit import Agent
from clients.opencode import OpenCode
from clients.stub import Say, Turn, Use
from clients.stub_openai import AGENTS

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]


TASK = {"description": "look for tests", "prompt": "look for tests"}
SUB = (Use("write_notepad", {"content": "SUB plan"}, "limpet"), Say("found them"))
BEGIN: dict[type[Agent], tuple[Turn, ...]] = {
    ClaudeCode: (Use("Agent", {**TASK, "subagent_type": "general-purpose", "run_in_background": False}), *SUB),
    Codex: (Use("spawn_agent", {"message": "look for tests"}, AGENTS, begun=SUB), Use("wait_agent", {}, AGENTS)),
    Copilot: (Use("task", {**TASK, "agent_type": "general-purpose", "name": "seeker", "mode": "sync"}), *SUB),
    OpenCode: (Use("task", {**TASK, "subagent_type": "general"}), *SUB),
}


@pytest.mark.parametrize("kind", BEGIN, ids=lambda one: one.name)
def test_a_sub_agent_leaves_the_notepad_of_the_main_agent_alone(kind: type[Agent], tmp_path: Path) -> None:
    agent = kind(tmp_path)
    agent.limpet("install", agent.name, "--user")
    plan = Use("write_notepad", {"content": "# MAIN-PLAN"}, "limpet")
    stub, session = agent.ask("port it", plan, *BEGIN[kind], Say("done"))
    assert agent.limpet("pad", "show", "--session", session).strip() == "# MAIN-PLAN"
    sessions = json.loads(agent.limpet("session", "list", "--json"))["sessions"]
    (child,) = [one["id"] for one in sessions if one["parent"] == session]
    # Two of them tell only which agent of a session it is; the others have a session of their own for each.
    assert child.startswith(f"{session}.") is (kind in (ClaudeCode, Codex))
    assert agent.limpet("pad", "show", "--session", child).strip() == "SUB plan"
    results = [result for request in stub.requests for result in agent.results(request)]
    assert any("# MAIN-PLAN" in result for result in results), "it could read the main one's"


@pytest.mark.parametrize("kind", [Goose], ids=lambda one: one.name)
def test_a_sub_agent_that_names_no_parent_has_a_notepad_of_its_own(kind: type[Agent], tmp_path: Path) -> None:
    agent = kind(tmp_path)
    agent.limpet("install", agent.name)
    plan = Use("write_notepad", {"content": "# MAIN-PLAN"}, "limpet")
    begin = Use("delegate", {"instructions": "look for tests"})
    _, session = agent.ask("port it", plan, begin, *SUB, Say("done"))
    assert agent.limpet("pad", "show", "--session", session).strip() == "# MAIN-PLAN"
    sessions = json.loads(agent.limpet("session", "list", "--json"))["sessions"]
    (child,) = {one["id"] for one in sessions} - {session, "cli"}
    assert agent.limpet("pad", "show", "--session", child).strip() == "SUB plan"


def test_cline_gives_its_sub_agents_no_tools_of_servers(tmp_path: Path) -> None:
    agent = Cline(tmp_path)
    agent.limpet("install", agent.name)
    plan = Use("write_notepad", {"content": "# MAIN-PLAN"}, "limpet")
    begin = Use("spawn_agent", {"systemPrompt": "You look for tests.", "task": "look for tests"})
    read = Use("read_notepad", {}, "limpet")
    stub, _ = agent.ask("port it", plan, begin, *SUB, read, Say("done"))
    (sub,) = [request for request in stub.requests if request["messages"][-1]["content"] == "look for tests"]
    offered = [tool["function"]["name"] for tool in sub["tools"]]
    assert "run_commands" in offered
    assert not any(name.startswith(("limpet", "wrapped")) for name in offered)
    assert "# MAIN-PLAN" in agent.results(stub.requests[-1])[-1]
