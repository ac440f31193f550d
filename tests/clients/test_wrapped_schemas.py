"""`limpet wrap` in front of a server whose tools have object output schemas, in clients that show such results."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.claude_code import ClaudeCode
from clients.codex import Codex
from clients.kit import Agent
from clients.stub import Say, Use

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]
ROWS = 1_000
REFERENCE = "📁 Output cached: "


@pytest.mark.parametrize("kind", [ClaudeCode, Codex], ids=["claude-code", "codex"])
def test_a_big_object_is_a_preview_and_is_read_back(kind: type[Agent], tmp_path: Path) -> None:
    agent = kind(tmp_path)  # the wrapper alone: no hooks, none of our tools
    calls = [Use("rows", {"rows": ROWS}, server) for server in ("plain", "wrapped")]
    stub, _ = agent.ask("look around", *calls, Say("done"))
    plain, wrapped = agent.results(stub.requests[-1])
    assert len(plain) > 5_000, "the client shows the model the object"
    assert len(wrapped) < 3_000
    reference = wrapped.partition(REFERENCE)[2][:12]
    read = Use("read_output", {"id": reference, "path": "/rows/998/row"}, "wrapped")
    stub, _ = agent.ask("read it back", read, Say("done"))
    assert "998" in agent.results(stub.requests[-1])[-1]
