"""Guidance and skill, put where each client looks: the real clients send both to the model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clients.install import installed
from clients.stub import Say
from clients.test_claude_code import VERSION as CLAUDE
from clients.test_claude_code import Claude
from clients.test_codex import VERSION as CODEX
from clients.test_codex import Codex
from clients.test_copilot import VERSION as COPILOT
from clients.test_copilot import Copilot

pytestmark = [
    pytest.mark.clients,
    pytest.mark.timeout(300),
    pytest.mark.parametrize("scope", ["--user", "--project-only"]),
]
GUIDANCE, SKILL = "what you write with Holdfast's tools stays", "Keep plans, findings and decisions"


def check(client: Claude | Codex | Copilot, name: str, scope: str) -> None:
    client.holdfast("install", name, scope, "--guidance", "--skill")
    asked = client.ask("hello", Say("hi"))
    stub = asked[0] if isinstance(asked, tuple) else asked
    sent = json.dumps(stub.requests[0], ensure_ascii=False)
    assert GUIDANCE in sent
    assert SKILL in sent


def test_claude_code(tmp_path: Path, scope: str) -> None:
    found = installed("@anthropic-ai/claude-code", CLAUDE, "@anthropic-ai/claude-code-*/claude")
    check(Claude(found, tmp_path), "claude-code", scope)


def test_codex(tmp_path: Path, scope: str) -> None:
    codex = Codex(installed("@openai/codex", CODEX, "@openai/codex-linux-*/vendor/*/bin/codex"), tmp_path)
    trusted = f'\n[projects.{json.dumps(str(codex.project))}]\ntrust_level = "trusted"\n'
    codex.config.write_text(codex.config.read_text() + trusted)
    check(codex, "codex", scope)


def test_copilot(tmp_path: Path, scope: str) -> None:
    copilot = Copilot(installed("@github/copilot", COPILOT, "@github/copilot-linux-*/copilot"), tmp_path)
    check(copilot, "copilot", scope)
