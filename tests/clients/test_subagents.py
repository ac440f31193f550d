"""Sub-agents of the real Claude Code: their notepad is theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.claude_code import ClaudeCode
from clients.stub import Say, Use

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]


def test_a_sub_agent_leaves_the_notepad_of_the_main_agent_alone(tmp_path: Path) -> None:
    agent = ClaudeCode(tmp_path)
    agent.limpet("install", agent.name, "--user")
    task = {
        "description": "look for tests",
        "prompt": "look for tests",
        "subagent_type": "general-purpose",
        "run_in_background": False,
    }
    stub, session = agent.ask(
        "port it",
        Use("write_notepad", {"content": "# MAIN-PLAN"}, "limpet"),
        Use("Agent", task),
        Use("write_notepad", {"content": "SUB plan"}, "limpet"),
        Say("found them"),
        Say("done"),
    )
    assert agent.limpet("pad", "show", "--session", session).strip() == "# MAIN-PLAN"
    listed = agent.limpet("session", "list")
    children = [word for word in listed.split() if word.startswith(f"{session}.")]
    assert len(children) == 1, listed
    assert agent.limpet("pad", "show", "--session", children[0]).strip() == "SUB plan"
    assert any("# MAIN-PLAN" in result for result in agent.results(stub.requests[3])), "it could read the main one's"
