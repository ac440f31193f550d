"""A conversation that is resumed again and again does not pile up what Limpet gave it."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.claude_code import ClaudeCode
from clients.codex import Codex
from clients.copilot import Copilot
from clients.gemini import Gemini
from clients.kit import Agent
from clients.opencode import OpenCode
from clients.stub import Say, Use

pytestmark = [pytest.mark.clients, pytest.mark.timeout(400)]


@pytest.mark.parametrize("kind", [ClaudeCode, Codex, Copilot, Gemini, OpenCode], ids=lambda one: one.name)
def test_resumes_do_not_pile_up_copies(kind: type[Agent], tmp_path: Path) -> None:
    """They keep what they began with, or are given it in each request: it is there once."""
    agent = kind(tmp_path)
    agent.limpet("install", agent.name, "--user")
    agent.limpet("memory", "write", "style", "Tabs, never spaces.")
    _, session = agent.ask("port it", Use("write_notepad", {"content": "- [ ] casts"}, "limpet"), Say("noted"))
    talks = [agent.ask("go on", Say("going on"), resume=session) for _ in range(3)]
    assert {talk.session for talk in talks} == {session}
    assert agent.conversation(talks[-1].stub.requests[-1]).count("Tabs, never spaces.") == 1
