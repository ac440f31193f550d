"""The Claude Agent SDK with the real Claude Code behind it, talking to a scripted model on this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from claude_agent_sdk import ClaudeSDKClient, ResultMessage

import limpet
from clients.claude_code import ClaudeCode
from clients.stub import Json, Say, Turn, Use
from clients.stub_anthropic import Anthropic
from limpet.adapters.claude_agent import LimpetAgent
from limpet.api import Limpet

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]


@pytest.fixture
def claude(tmp_path: Path) -> ClaudeCode:
    return ClaudeCode(tmp_path)


def talk(
    claude: ClaudeCode, hold: Limpet, session: str, *rounds: tuple[str, tuple[Turn, ...]], allowed: Sequence[str] = ()
) -> list[Json]:
    """A conversation; the requests that the model got."""
    stub = Anthropic([turn for _, turns in rounds for turn in turns])

    async def story(address: str) -> None:
        options = LimpetAgent(hold, session).options(
            cli_path=claude.program,
            cwd=claude.project,
            env=claude.environment | {"ANTHROPIC_BASE_URL": address},
            model="claude-sonnet-4-5",
            allowed_tools=list(allowed) or ["Bash"],
            setting_sources=[],
        )
        async with ClaudeSDKClient(options) as client:
            for prompt, _ in rounds:
                await client.query(prompt)
                async for message in client.receive_response():
                    assert not (isinstance(message, ResultMessage) and message.is_error), message

    with stub:
        asyncio.run(story(stub.address))
    assert stub.summaries or allowed, "the client did not compact"
    return stub.requests


def sent(request: Json) -> str:
    return json.dumps(request["messages"], ensure_ascii=False)


def test_tools_hooks_and_a_compaction(claude: ClaudeCode, tmp_path: Path) -> None:
    with limpet.open(str(tmp_path / "x.db"), folder=str(tmp_path)) as hold:
        hold.session("before").handoff.write("Casts come next; the grammar is done.")
        requests = talk(
            claude,
            hold,
            "t",
            (
                "port the parser",
                (
                    Use("write_notepad", {"content": "- [ ] casts break LL(1)"}, "limpet"),
                    Use("Bash", {"command": "seq 1 20000", "description": "count"}),
                    Say("noted"),
                ),
            ),
            ("go on", (claude.run_shell("true")._replace(used=198_000), Say("going on"))),
        )
        assert "Casts come next; the grammar is done." in sent(requests[0])
        assert hold.session("t").notepad.read() == "- [ ] casts break LL(1)"
        assert "📁 Output cached: " in sent(requests[2])
        assert "\\n19999\\n" not in sent(requests[2])
        assert "- [ ] casts break LL(1)" in sent(requests[-1]).rpartition("From Limpet")[2], "given anew"
        assert "Casts come next" not in hold.session("third").context()


def test_a_reference_is_an_argument(claude: ClaudeCode, tmp_path: Path) -> None:
    """Also of Claude Code's own tools, and what may be done with them is decided as without a reference."""
    target = claude.project / "rows.txt"
    with limpet.open(str(tmp_path / "x.db"), folder=str(tmp_path)) as hold:
        output = hold.session("t").outputs.keep("shell", "row\n" * 5_000).output
        assert output is not None
        turns = (
            Use("Write", {"file_path": str(target), "content": f"hold://{output.id}"}),
            Use("Write", {"file_path": f"{target}.2", "content": "hold://0123456789ab"}),
            Use("Bash", {"command": f"hold://{output.id}", "description": "run it"}),
            Say("written"),
        )
        requests = talk(claude, hold, "t", ("write it", turns), allowed=["Write"])
    assert target.read_text() == "row\n" * 5_000
    assert not Path(f"{target}.2").exists()
    assert "0123456789ab" in sent(requests[2])
    assert requests[3]["messages"][-1]["content"][0]["is_error"], "a command that is not allowed is not run"
