"""Agents whose hooks can do nothing for us: they have our tools, and the wrapper before other people's servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.cline import Cline
from clients.goose import Goose
from clients.kit import Agent
from clients.stub import Say, Use

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]
HANDOFF = "Casts come next; the grammar is done."


@pytest.mark.parametrize("kind", [Cline, Goose], ids=lambda one: one.name)
def test_it_calls_our_tools_and_gets_a_big_result_as_preview_and_reference(kind: type[Agent], tmp_path: Path) -> None:
    agent = kind(tmp_path)
    agent.limpet("install", agent.name)
    agent.limpet("handoff", "write", HANDOFF, "--session", "earlier")
    stub, _ = agent.ask(
        "look around",
        Use("write_memory", {"key": "style", "content": "Tabs, never spaces."}, "limpet"),
        Use("write_notepad", {"content": "- [ ] casts"}, "limpet"),  # it has read the handoff
        Use("text", {"size": 100_000}, "wrapped"),
        Say("done"),
    )
    written, _, kept = agent.results(stub.requests[-1])
    assert "style kept" in written
    assert HANDOFF in written, "some of them show the model no instructions of a server"
    assert "Tabs, never spaces." in agent.limpet("memory", "show", "style")
    reference = kept.partition("📁 Output cached: ")[2][:12]
    assert len(kept) < 4_000
    assert len(agent.limpet("output", "read", reference, "--lines", "1-3").splitlines()) >= 3

    stub, _ = agent.ask("go on", Use("read_output", {"id": reference, "lines": "1-3"}, "limpet"), Say("done"))
    assert HANDOFF not in agent.conversation(stub.requests[-1]), "it was used up"
    assert agent.results(stub.requests[-1])[-1]
