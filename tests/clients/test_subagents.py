"""Sub-agents of the real Claude Code, Codex, Copilot CLI and OpenCode: their notepad is theirs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clients.claude_code import ClaudeCode
from clients.codex import Codex
from clients.copilot import Copilot
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
