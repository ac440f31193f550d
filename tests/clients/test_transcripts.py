"""The session files that real clients wrote, taken in with `limpet import transcript`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clients.claude_code import ClaudeCode
from clients.codex import Codex
from clients.copilot import Copilot
from clients.kit import Agent
from clients.stub import Say

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]
COUNT = "seq 1 3000; echo FAILED tests/test_x.py::test_y"


@pytest.mark.parametrize("kind", [ClaudeCode, Codex, Copilot], ids=lambda one: one.name)
def test_it_is_taken_in_once(tmp_path: Path, kind: type[Agent]) -> None:
    agent = kind(tmp_path)
    agent.ask("port the parser", agent.run_shell(COUNT), Say("ported it"))
    (row,) = json.loads(agent.limpet("import", "transcript", agent.name, "--json"))["sessions"]
    assert (row["client"], row["messages"], row["outputs"], row["unread"]) == (agent.name, 4, 1, [])
    (again,) = json.loads(agent.limpet("import", "transcript", agent.name, "--json"))["sessions"]
    assert (again["messages"], again["known"]) == (0, 4)
    assert "port" in agent.limpet("recall", "which parser was ported?")
    (output,) = json.loads(agent.limpet("output", "list", "--json"))["entries"]
    assert "FAILED tests/test_x.py::test_y" in agent.limpet("output", "read", output["id"], "--match", "FAILED")
