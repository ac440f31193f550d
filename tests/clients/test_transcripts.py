"""Session files that the real clients wrote, taken in by `holdfast import transcript`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clients.install import installed
from clients.stub import Say, Use
from clients.test_claude_code import VERSION as CLAUDE
from clients.test_claude_code import Claude
from clients.test_codex import VERSION as CODEX
from clients.test_codex import Codex
from clients.test_copilot import VERSION as COPILOT
from clients.test_copilot import Copilot

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]
COUNT = "seq 1 3000; echo FAILED tests/test_x.py::test_y"


def check(client: Claude | Codex | Copilot, name: str) -> None:
    (row,) = json.loads(client.holdfast("import", "transcript", name, "--json"))["sessions"]
    assert (row["client"], row["messages"], row["outputs"], row["unread"]) == (name, 4, 1, [])
    (again,) = json.loads(client.holdfast("import", "transcript", name, "--json"))["sessions"]
    assert (again["messages"], again["known"]) == (0, 4)
    found = client.holdfast("recall", "which parser was ported?")
    assert "port" in found
    (output,) = json.loads(client.holdfast("output", "list", "--json"))["entries"]
    assert "FAILED tests/test_x.py::test_y" in client.holdfast("output", "read", output["id"], "--match", "FAILED")


def test_claude_code(tmp_path: Path) -> None:
    found = installed("@anthropic-ai/claude-code", CLAUDE, "@anthropic-ai/claude-code-*/claude")
    claude = Claude(found, tmp_path)
    claude.ask("port the parser", Use("Bash", {"command": COUNT, "description": "count"}), Say("ported it"))
    check(claude, "claude-code")


def test_codex(tmp_path: Path) -> None:
    codex = Codex(installed("@openai/codex", CODEX, "@openai/codex-linux-*/vendor/*/bin/codex"), tmp_path)
    codex.ask("port the parser", Use("exec_command", {"cmd": COUNT}), Say("ported it"))
    check(codex, "codex")


def test_copilot(tmp_path: Path) -> None:
    copilot = Copilot(installed("@github/copilot", COPILOT, "@github/copilot-linux-*/copilot"), tmp_path)
    copilot.ask("port the parser", Use("bash", {"command": COUNT, "description": "count"}), Say("ported it"))
    check(copilot, "copilot")
