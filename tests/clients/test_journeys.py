"""Journeys of people with the real clients: a start in a subfolder, and two clients on one computer."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.claude_code import ClaudeCode
from clients.cline import Cline
from clients.codex import Codex
from clients.copilot import Copilot
from clients.gemini import Gemini
from clients.goose import Goose
from clients.kit import Agent, Talk
from clients.opencode import OpenCode
from clients.stub import Say, Use

pytestmark = [pytest.mark.clients, pytest.mark.timeout(400)]
WAITING = "Casts come next; the lexer is done."


def saw(agent: Agent, talk: Talk) -> bool:
    return any(WAITING in agent.conversation(request) for request in talk.stub.requests)


EVERYONE = [ClaudeCode, Codex, Copilot, Gemini, OpenCode, Cline, Goose]


@pytest.mark.parametrize("kind", EVERYONE, ids=lambda one: one.name)
def test_a_start_in_a_subfolder_has_the_memory_of_the_project(kind: type[Agent], tmp_path: Path) -> None:
    agent = kind(tmp_path)
    agent.limpet("install", agent.name, *([] if kind in (Cline, Goose) else ["--user"]))
    agent.run(["git", "init", "-q"])  # the kit has an empty .git, which is no repository
    agent.limpet("handoff", "write", WAITING)
    agent.project = agent.project / "src" / "parser"
    agent.project.mkdir(parents=True)
    # Some clients show a hook's text; for the others the first result of a tool has it.
    talk = agent.ask("go on", Use("write_notepad", {"content": "- [ ] casts"}, "limpet"), Say("noted"))
    assert saw(agent, talk)


def test_copilot_beside_claude_code_takes_no_handoff_that_it_does_not_show(tmp_path: Path) -> None:
    """Copilot runs the hooks that Claude Code has installed, and drops what they say."""
    claude, copilot = ClaudeCode(tmp_path), Copilot(tmp_path)
    claude.limpet("install", claude.name, "--user")
    claude.limpet("handoff", "write", WAITING)
    shown = saw(copilot, copilot.ask("what is this?", Say("a parser")))
    assert saw(claude, claude.ask("go on", Say("going on"))) or shown
    copilot.limpet("install", copilot.name, "--user")
    copilot.limpet("handoff", "write", WAITING.replace("Casts", "Lambdas"))
    talk = copilot.ask("go on", Use("write_notepad", {"content": "- [ ] lambdas"}, "limpet"), Say("noted"))
    texts = [copilot.conversation(request) for request in talk.stub.requests]
    assert any("Lambdas come next" in text for text in texts)
    assert all(text.count("Lambdas come next") <= 1 for text in texts), "once, though two hooks ran"


def test_a_client_that_is_opened_and_closed_takes_no_handoff(tmp_path: Path) -> None:
    claude = ClaudeCode(tmp_path)
    claude.limpet("install", claude.name, "--user")
    claude.run(["git", "init", "-q"])
    claude.limpet("handoff", "write", WAITING)
    for _ in range(2):
        claude.opened_and_closed()
    assert "used" not in claude.limpet("handoff", "show", "--json").replace('"used_by": null', "")
    worked = claude.ask("go on", Use("write_notepad", {"content": "- [ ] casts"}, "limpet"), Say("noted"))
    assert saw(claude, worked)
    assert not saw(claude, claude.ask("and now?", Say("the next thing"))), "a session that worked has used it up"
