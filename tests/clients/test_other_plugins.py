"""Codex CLI with Limpet as its plugin, and Gemini CLI with it as an extension: installed from the client itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from clients.codex import Codex
from clients.gemini import Gemini
from clients.kit import Agent
from clients.stub import Say, Use

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]
TOP = Path(__file__).parents[2]
REFERENCE = "📁 Output cached: "


def works(agent: Agent) -> None:
    """The handoff comes first, the tools are there, and a big result of a server is kept."""
    agent.limpet("handoff", "write", "Casts come next.", "--session", "earlier")
    stub, session = agent.ask(
        "port the parser",
        Use("write_notepad", {"content": "- [ ] casts break LL(1)"}, "limpet"),
        Use("text", {"size": 30_000}, "plain"),
        Say("noted"),
    )
    assert agent.conversation(stub.requests[0]).count("Casts come next.") == 1
    noted, counted = agent.results(stub.requests[-1])
    assert REFERENCE in counted
    assert "casts break LL(1)" in agent.limpet("pad", "show", "--session", session), noted


def test_codex(tmp_path: Path) -> None:
    codex = Codex(tmp_path)
    market = tmp_path / "market"
    for name in (".agents", "plugins"):
        shutil.copytree(TOP / name, market / name)
    codex.run([str(codex.program), "plugin", "marketplace", "add", str(market)])
    codex.run([str(codex.program), "plugin", "add", "limpet@limpet"])
    works(codex)


def test_gemini(tmp_path: Path) -> None:
    gemini = Gemini(tmp_path)
    program = [str(gemini.node), str(gemini.program)]
    gemini.run([*program, "extensions", "install", str(TOP / "plugins" / "gemini"), "--consent"])
    works(gemini)
