"""Codex CLI itself, with Holdfast installed as people install it, talking to a scripted model on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from clients.install import installed
from clients.stub import Json, Say, Turn, Use
from clients.stub_openai import Responses

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]
UPSTREAM = Path(__file__).parents[1] / "doors" / "upstream.py"
VERSION = "0.166.0"
CONFIG = """
model = "stub-model"
model_provider = "stub"
approval_policy = "never"
sandbox_mode = "danger-full-access"
model_context_window = 100000
model_auto_compact_token_limit = 50000

[model_providers.stub]
name = "stub"
base_url = "ADDRESS/v1"
wire_api = "responses"
env_key = "STUB_KEY"

[mcp_servers.wrapped]
command = "holdfast"
args = ["wrap", "--", PYTHON, UPSTREAM, "serve"]
default_tools_approval_mode = "approve"

[mcp_servers.plain]
command = PYTHON
args = [UPSTREAM, "serve"]
default_tools_approval_mode = "approve"
"""


class Codex:
    """The client in a project and a home of its own."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program = program
        self.project = folder / "project"
        self.home = folder / "home"
        for path in (self.project / ".git", self.home / ".codex", folder / "tmp"):
            path.mkdir(parents=True)
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8",
            "STUB_KEY": "dummy",
        }
        self.config = self.home / ".codex" / "config.toml"
        words = {"PYTHON": json.dumps(sys.executable), "UPSTREAM": json.dumps(str(UPSTREAM))}
        text = CONFIG
        for name, value in words.items():
            text = text.replace(name, value)
        self.config.write_text(text)

    def holdfast(self, *words: str) -> str:
        command = ["holdfast", *words]
        done = subprocess.run(
            command, cwd=self.project, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, prompt: str, *turns: Turn, resume: str = "") -> tuple[Responses, str]:
        """One run with a prompt. The stub with what was sent, and the client's thread id."""
        stub = Responses(turns)
        with stub:
            text = self.config.read_text()
            self.config.write_text(text.replace("ADDRESS", stub.address))
            words = ["exec", *(["resume", resume] if resume else [])]
            command = [str(self.program), *words, "--skip-git-repo-check", "--json", "--dangerously-bypass-hook-trust"]
            done = subprocess.run(
                [*command, prompt],
                cwd=self.project,
                env=self.environment,
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                timeout=120,
                check=False,
            )
            self.config.write_text(text)
        assert done.returncode == 0, done.stdout + done.stderr
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return stub, next(event["thread_id"] for event in events if event["type"] == "thread.started")


@pytest.fixture
def codex(tmp_path: Path) -> Codex:
    pattern = "@openai/codex-linux-*/vendor/*/bin/codex"
    found = Codex(installed("@openai/codex", VERSION, pattern), tmp_path)
    found.holdfast("install", "codex", "--user")
    return found


def results(request: Json) -> list[str]:
    """The results of tools in a request, as text."""
    outputs = [item["output"] for item in request["input"] if item["type"] == "function_call_output"]
    return [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in outputs]


def sent(request: Json) -> str:
    return json.dumps(request["input"], ensure_ascii=False)


def test_it_calls_our_tools_and_the_notepad_is_there_after_a_compaction(codex: Codex) -> None:
    stub, thread = codex.ask(
        "port the parser",
        Use("write_notepad", {"content": "- [ ] casts break LL(1)"}, "holdfast"),
        Use("text", {"size": 10}, "plain", used=60_000),
        Say("going on"),
    )
    assert '"ok":true' in results(stub.requests[1])[0].replace(" ", "").replace("\\", "")
    assert "casts break" in codex.holdfast("pad", "show", "--session", thread)
    assert stub.summaries, "the client did not compact"
    after = sent(stub.requests[-1])
    assert "write_notepad" not in after
    assert "- [ ] casts break LL(1)" in after
    assert "Last request: " in after


def test_a_new_session_gets_the_handoff_once(codex: Codex) -> None:
    codex.holdfast("handoff", "write", "Casts come next; the grammar is done.", "--session", "earlier")
    stub, first = codex.ask("hello", Say("hi"))
    assert json.dumps(stub.requests[0]).count("Casts come next; the grammar is done.") == 1
    stub, second = codex.ask("hello again", Say("hi"))
    assert first != second
    assert "Casts come next" not in json.dumps(stub.requests[0])


def test_big_outputs_are_previews_and_references(codex: Codex) -> None:
    stub, _ = codex.ask(
        "look around",
        Use("text", {"size": 100_000}, "wrapped"),
        Use("text", {"size": 30_000, "seed": "other"}, "plain"),
        Use("exec_command", {"cmd": "seq 1 20000; echo FAILED tests/test_x.py::test_y"}),
        Say("done"),
    )
    found = results(stub.requests[-1])
    assert len(found) == 3
    for one in found:
        assert "📁 Output cached: " in one
        assert len(one) < 4_000
    assert "FAILED tests/test_x.py::test_y" in found[-1]
