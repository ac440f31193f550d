"""What every coding agent gets from Limpet, with the real programs and Limpet installed as people install it.

What counts is what the agent sent to the model: the stub keeps every request.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clients.claude_code import ClaudeCode
from clients.codex import Codex
from clients.copilot import Copilot
from clients.gemini import Gemini
from clients.kit import Agent
from clients.opencode import OpenCode
from clients.stub import Say, Use

pytestmark = [pytest.mark.clients, pytest.mark.timeout(500)]
AGENTS: tuple[type[Agent], ...] = (ClaudeCode, Codex, Copilot, Gemini, OpenCode)
HANDOFF = "Casts come next; the grammar is done."
FAILED = "FAILED tests/test_x.py::test_y"
REFERENCE = "📁 Output cached: "


@pytest.fixture(params=AGENTS, ids=lambda one: one.name)
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Agent:
    kind: type[Agent] = request.param
    found = kind(tmp_path)
    found.limpet("install", found.name, "--user")
    return found


def test_a_session_calls_our_tools_and_starts_with_handoff_and_notepad(agent: Agent) -> None:
    agent.limpet("handoff", "write", HANDOFF, "--session", "earlier")
    stub, session = agent.ask("port it", Use("write_notepad", {"content": "- [ ] casts"}, "limpet"), Say("noted"))
    assert agent.conversation(stub.requests[0]).count(HANDOFF) == 1
    (answer,) = agent.results(stub.requests[-1])
    assert "Kept as version 1" in answer
    assert "- [ ] casts" in agent.limpet("pad", "show", "--session", session)

    # What a person adds stands in no earlier request: only Limpet can have brought it.
    agent.limpet("pad", "append", "- [ ] lambdas", "--session", session)
    stub, again = agent.ask("go on", Say("going on"), resume=session)
    assert again == session
    assert "- [ ] lambdas" in agent.conversation(stub.requests[0])

    stub, other = agent.ask("something else", Say("hi"))
    assert other != session
    started = agent.conversation(stub.requests[0])
    assert HANDOFF not in started
    assert "- [ ] lambdas" in started, "the first session left no draft of a handoff"


def test_big_outputs_are_previews_and_references(agent: Agent) -> None:
    # More than a pipe holds comes after the line: OpenCode stops reading when a command has ended.
    command = f"seq 1 {agent.shell_lines}; echo {FAILED}{'; seq 1 20000' if agent.shell_whole else ''}"
    stub, _ = agent.ask(
        "look around",
        Use("text", {"size": 100_000}, "wrapped"),
        Use("text", {"size": agent.plain_size, "seed": "other"}, "plain"),
        agent.run_shell(command),
        *agent.more_outputs,
        Say("done"),
    )
    found = agent.results(stub.requests[-1])
    assert len(found) == 3 + len(agent.more_outputs)
    for at, one in enumerate(found):
        replaced = at != 2 or agent.shell_replaced
        assert (REFERENCE in one) is replaced
        assert len(one) < 4_000 or not replaced
    assert FAILED in found[2]
    sizes = [one["size"] for one in json.loads(agent.limpet("output", "list", "--json"))["entries"]]
    for whole in (100_000, agent.plain_size, *(use.arguments["size"] for use in agent.more_outputs)):
        assert any(whole <= size < whole * 1.1 for size in sizes), sizes  # characters; an accent takes a byte more
    if agent.shell_whole:
        reference = found[2].partition(REFERENCE)[2][:12]
        assert f"19999\n20000\n{FAILED}" in agent.limpet("output", "read", reference, "--lines", "19999-20001")


def test_after_a_compaction_notepad_and_pins_are_there(agent: Agent) -> None:
    agent.limpet("memory", "write", "branches", "Never push to main.")
    agent.limpet("memory", "pin", "branches")
    stub, session = agent.ask("port it", Use("write_notepad", {"content": "- [ ] casts"}, "limpet"), Say("noted"))
    agent.limpet("window", "pin", "The lexer stays as it is.", "--session", session)
    # Written after the session was given its notepad: what the model has of it later, it got after the compaction.
    more = Use("update_notepad", {"operation": "append", "content": "- [ ] lambdas"}, "limpet")
    stub, again = agent.ask("go on", more, *agent.compacting, Say("going on"), resume=session)
    assert again == session
    assert stub.summaries, "the agent did not compact"
    assert not any("version" in one for one in agent.results(stub.requests[-1])), "the conversation is still there"
    after = agent.conversation(stub.requests[-1])
    assert "- [ ] casts" in after
    assert "- [ ] lambdas" in after
    assert "The lexer stays as it is." in after
    assert "Never push to main." in after
    if agent.checkpoints:
        assert "Last request: " in after
