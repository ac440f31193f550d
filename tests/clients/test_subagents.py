"""Sub-agents of the real Claude Code and OpenCode: their notepad is theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.claude_code import ClaudeCode
from clients.kit import Agent
from clients.opencode import OpenCode
from clients.stub import Say, Use

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]


TASK = {"description": "look for tests", "prompt": "look for tests"}
BEGIN = {
    ClaudeCode: Use("Agent", {**TASK, "subagent_type": "general-purpose", "run_in_background": False}),
    OpenCode: Use("task", {**TASK, "subagent_type": "general"}),
}


@pytest.mark.parametrize("kind", BEGIN, ids=lambda one: one.name)
def test_a_sub_agent_leaves_the_notepad_of_the_main_agent_alone(kind: type[Agent], tmp_path: Path) -> None:
    agent = kind(tmp_path)
    agent.limpet("install", agent.name, "--user")
    stub, session = agent.ask(
        "port it",
        Use("write_notepad", {"content": "# MAIN-PLAN"}, "limpet"),
        BEGIN[kind],
        Use("write_notepad", {"content": "SUB plan"}, "limpet"),
        Say("found them"),
        Say("done"),
    )
    assert agent.limpet("pad", "show", "--session", session).strip() == "# MAIN-PLAN"
    listed = agent.limpet("session", "list")
    # Claude Code tells only which agent of a session it is; OpenCode has a session of its own for each.
    begins = f"{session}." if kind is ClaudeCode else "ses_"
    children = [word for word in listed.split() if word.startswith(begins) and word != session]
    assert len(children) == 1, listed
    assert agent.limpet("pad", "show", "--session", children[0]).strip() == "SUB plan"
    told = [result for result in agent.results(stub.requests[3]) if "# MAIN-PLAN" in result]
    assert told or kind is not ClaudeCode, "it could read the main one's"
