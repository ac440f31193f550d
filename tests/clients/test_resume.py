"""A conversation that is resumed again and again does not pile up what Limpet gave it."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.claude_code import ClaudeCode
from clients.cline import Cline
from clients.codex import Codex
from clients.copilot import Copilot
from clients.gemini import Gemini
from clients.goose import Goose
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


@pytest.mark.parametrize("kind", [Goose], ids=lambda one: one.name)
def test_resumes_do_not_pile_up_what_first_results_bring(kind: type[Agent], tmp_path: Path) -> None:
    """Each resume starts the server anew; what an earlier one brought stands in the conversation already."""
    agent = kind(tmp_path)
    agent.limpet("install", agent.name)
    agent.limpet("handoff", "write", "Casts come next.", "--session", "earlier")
    _, session = agent.ask("port it", Use("write_notepad", {"content": "- [ ] casts"}, "limpet"), Say("noted"))
    notes = [Use("add_note", {"content": f"Finding {number}"}, "limpet") for number in range(3)]
    talks = [agent.ask("go on", note, Say("going on"), resume=session) for note in notes]
    results = agent.results(talks[-1].stub.requests[-1])
    assert len(results) == 4, "the conversation was not resumed"
    assert sum("Casts come next." in result for result in results) == 1
    assert sum("- [ ] casts" in result for result in results) == 1


@pytest.mark.parametrize("kind", [Cline], ids=lambda one: one.name)
def test_resumes_do_not_pile_up_where_no_session_is_named(kind: type[Agent], tmp_path: Path) -> None:
    """Each resume is a session of its own. A handoff that was worked with does not come to it."""
    agent = kind(tmp_path)
    agent.limpet("install", agent.name)
    agent.limpet("handoff", "write", "Casts come next.", "--session", "earlier")
    write = Use("write_notepad", {"content": "- [ ] casts"}, "limpet")
    _, session = agent.ask("port it", write, Use("read_notepad", {}, "limpet"), Say("noted"))
    notes = [Use("add_note", {"content": f"Finding {number}"}, "limpet") for number in range(3)]
    talks = [agent.ask("go on", note, Say("going on"), resume=session) for note in notes]
    results = agent.results(talks[-1].stub.requests[-1])
    assert len(results) == 5, "the conversation was not resumed"
    assert sum("Casts come next." in result for result in results) == 1
    assert sum("- [ ] casts" in result for result in results) == 1, "what it read itself"
