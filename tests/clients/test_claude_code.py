"""Claude Code itself, with Holdfast installed as people install it, talking to a scripted model on this machine.

What counts is what the client sent to the model: the stub keeps every request.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from clients.install import installed
from clients.stub import Json, Say, TooLong, Turn, Use
from clients.stub_anthropic import Anthropic

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]
UPSTREAM = Path(__file__).parents[1] / "doors" / "upstream.py"
VERSION = "2.1.325"


class Claude:
    """The client in a project and a home of its own."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program = program
        self.project = folder / "project"
        self.home = folder / "home"
        for path in (self.project / ".git", self.home, folder / "tmp"):
            path.mkdir(parents=True)
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8",
            "ANTHROPIC_API_KEY": "sk-dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        self.servers = folder / "servers.json"
        server = [sys.executable, str(UPSTREAM), "serve"]
        wrapped = {"command": "holdfast", "args": ["wrap", "--", *server], "alwaysLoad": True}
        plain = {"command": server[0], "args": server[1:], "alwaysLoad": True}
        self.servers.write_text(json.dumps({"mcpServers": {"wrapped": wrapped, "plain": plain}}))

    def holdfast(self, *words: str) -> str:
        command = ["holdfast", *words]
        done = subprocess.run(
            command, cwd=self.project, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, prompt: str, *turns: Turn, more: tuple[str, ...] = ()) -> tuple[Anthropic, str]:
        """One run with a prompt. The stub with what was sent, and the client's session id."""
        stub = Anthropic(turns)
        with stub:
            command = [str(self.program), "-p", prompt, "--model", "claude-sonnet-4-5", "--output-format", "json"]
            command += ["--mcp-config", str(self.servers), "--debug-file", str(self.home / "debug.log")]
            command += ["--allowedTools", "mcp__holdfast,mcp__wrapped,mcp__plain,Bash", *more]
            done = subprocess.run(
                command,
                cwd=self.project,
                env=self.environment | {"ANTHROPIC_BASE_URL": stub.address},
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                timeout=120,
                check=False,
            )
        assert done.returncode == 0, done.stdout + done.stderr
        return stub, str(json.loads(done.stdout)["session_id"])


@pytest.fixture
def claude(tmp_path: Path) -> Claude:
    found = Claude(installed("@anthropic-ai/claude-code", VERSION, "@anthropic-ai/claude-code-*/claude"), tmp_path)
    found.holdfast("install", "claude-code", "--user")
    return found


def results(request: Json) -> list[str]:
    """The results of tools in a request, as text."""
    blocks = [
        block for message in request["messages"] if isinstance(message["content"], list) for block in message["content"]
    ]
    return [json.dumps(block["content"], ensure_ascii=False) for block in blocks if block["type"] == "tool_result"]


def sent(request: Json) -> str:
    return json.dumps(request["messages"], ensure_ascii=False)


def test_it_calls_our_tools_and_the_notepad_is_there_after_a_compaction(claude: Claude) -> None:
    stub, session = claude.ask(
        "port the parser",
        Use("write_notepad", {"content": "- [ ] casts break LL(1)"}, "holdfast"),
        Say("noted"),
    )
    assert any('"ok":true' in one.replace(" ", "").replace("\\", "") for one in results(stub.requests[1])), results(
        stub.requests[1]
    )
    assert "casts break" in claude.holdfast("pad", "show", "--session", session)

    stub, again = claude.ask("go on", TooLong(), Say("going on"), more=("--resume", session))
    assert stub.summaries, "the client did not compact"
    after = sent(stub.requests[-1])
    assert again == session
    assert "- [ ] casts break LL(1)" in after
    assert "Your task is to create" not in after
    assert "Last request: " in after


def test_a_new_session_gets_handoff_and_notepad_once(claude: Claude) -> None:
    claude.holdfast("handoff", "write", "Casts come next; the grammar is done.", "--session", "earlier")
    stub, first = claude.ask("hello", Say("hi"))
    assert sent(stub.requests[0]).count("Casts come next; the grammar is done.") == 1
    assert "Casts come next" not in json.dumps(stub.requests[0].get("system"))
    stub, second = claude.ask("hello again", Say("hi"))
    assert first != second
    assert "Casts come next" not in sent(stub.requests[0])


def test_big_outputs_are_previews_and_references(claude: Claude) -> None:
    stub, _ = claude.ask(
        "look around",
        Use("Bash", {"command": "seq 1 20000; echo FAILED tests/test_x.py::test_y", "description": "count"}),
        Use("text", {"size": 100_000}, "wrapped"),
        Use("text", {"size": 30_000, "seed": "other"}, "plain"),  # the client would take it whole
        Use("text", {"size": 400_000, "seed": "more"}, "plain"),  # the client puts it into a file of its own
        Say("done"),
    )
    bash, *others = results(stub.requests[-1])
    assert len(others) == 3
    for one in (bash, *others):
        assert "📁 Output cached: " in one
        assert len(one) < 4_000
    assert "FAILED tests/test_x.py::test_y" in bash
    sizes = [one["size"] for one in json.loads(claude.holdfast("output", "list", "--json"))["entries"]]
    for whole in (30_000, 100_000, 400_000):  # characters; an accent takes a byte more
        assert any(whole <= size < whole * 1.1 for size in sizes), sizes
    reference = bash.partition("📁 Output cached: ")[2][:12]
    kept = claude.holdfast("output", "read", reference, "--lines", "19999-20001")
    assert "19999\n20000\nFAILED" in kept
