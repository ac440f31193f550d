"""Claude Code itself with Limpet installed from the client: marketplace, plugin, hooks, tools and skill."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from clients.claude_code import ClaudeCode
from clients.stub import Json, Say, Use

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]
TOP = Path(__file__).parents[2]
TOOLS = "plugin_limpet_limpet"


@pytest.fixture
def claude(tmp_path: Path) -> ClaudeCode:
    found = ClaudeCode(tmp_path)
    found.allowed += f",mcp__{TOOLS}"
    # Nothing but what the client needs of a clone.
    market = tmp_path / "market"
    for name in (".claude-plugin", "plugins"):
        shutil.copytree(TOP / name, market / name)
    ask(found, "plugin", "validate", str(market / "plugins" / "limpet"))
    ask(found, "plugin", "validate", str(market))
    ask(found, "plugin", "marketplace", "add", str(market))
    ask(found, "plugin", "install", "limpet@limpet")
    return found


def ask(claude: ClaudeCode, *words: str) -> str:
    return claude.run([str(claude.program), *words])


def status(claude: ClaudeCode) -> Json:
    rows: list[Json] = json.loads(claude.limpet("status", "--json"))["clients"]
    return next(row for row in rows if row["client"] == "claude-code")


def test_all_of_it_works_from_the_plugin_alone(claude: ClaudeCode) -> None:
    claude.limpet("handoff", "write", "Casts come next.", "--session", "earlier")
    stub, session = claude.ask(
        "port the parser",
        Use("write_notepad", {"content": "- [ ] casts break LL(1)"}, TOOLS),
        Use("Bash", {"command": "seq 1 20000", "description": "count"}),
        Say("noted"),
    )
    first = json.dumps(stub.requests[0], ensure_ascii=False)
    assert claude.conversation(stub.requests[0]).count("Casts come next.") == 1
    assert "limpet:limpet: Keep plans, findings and decisions" in first  # the skill
    noted, counted = claude.results(stub.requests[-1])
    assert "ok" in noted
    assert "📁 Output cached: " in counted
    stub, _ = claude.ask("go on", *claude.compacting, Say("going on"), resume=session)
    assert stub.summaries, "the client did not compact"
    assert "- [ ] casts break LL(1)" in claude.conversation(stub.requests[-1])


def test_an_installation_beside_it_is_refused_or_seen_and_nothing_is_said_twice(claude: ClaudeCode) -> None:
    row = status(claude)
    assert (row["plugin"], row["twice"]) == (True, False)
    refused = subprocess.run(
        ["limpet", "install", "claude-code", "--user"],
        cwd=claude.project,
        env=claude.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode != 0
    assert "has Limpet as a plugin already" in refused.stderr

    # The other way round: installed first, the plugin switched on afterwards.
    ask(claude, "plugin", "disable", "limpet@limpet")
    claude.limpet("install", "claude-code", "--user")
    ask(claude, "plugin", "enable", "limpet@limpet")
    row = status(claude)
    assert (row["plugin"], row["user"], row["twice"]) == (True, True, True)
    claude.limpet("handoff", "write", "Casts come next.", "--session", "earlier")
    stub, _ = claude.ask("hello", Say("hi"))
    assert claude.conversation(stub.requests[0]).count("Casts come next.") == 1
    assert claude.conversation(stub.requests[0]).count("<limpet>") == 1
