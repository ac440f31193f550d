"""Guidance and skill, put where each client looks: the real clients send both to the model."""

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
GUIDANCE, SKILL = "what you write with Limpet's tools stays", "Keep plans, findings and decisions"


@pytest.mark.parametrize("scope", ["--user", "--project-only"])
@pytest.mark.parametrize("kind", [ClaudeCode, Codex, Copilot], ids=lambda one: one.name)
def test_the_model_is_told(tmp_path: Path, kind: type[Agent], scope: str) -> None:
    agent = kind(tmp_path)
    if isinstance(agent, Codex):
        trusted = f'\n[projects.{json.dumps(str(agent.project))}]\ntrust_level = "trusted"\n'
        agent.config.write_text(agent.config.read_text() + trusted)
    agent.limpet("install", agent.name, scope, "--guidance", "--skill")
    sent = json.dumps(agent.ask("hello", Say("hi")).stub.requests[0], ensure_ascii=False)
    assert GUIDANCE in sent
    assert SKILL in sent
