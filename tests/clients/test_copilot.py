"""Copilot CLI itself, with Holdfast installed as people install it, talking to a scripted model on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from clients.install import installed
from clients.stub import Json, Say, Turn, Use
from clients.stub_chat import Chat

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]
UPSTREAM = Path(__file__).parents[1] / "doors" / "upstream.py"
VERSION = "1.0.102"


class Copilot:
    """The client in a project and a home of its own."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program = program
        self.project = folder / "project"
        self.home = folder / "home"
        for path in (self.project / ".git", self.home / ".copilot", folder / "tmp"):
            path.mkdir(parents=True)
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8",
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_API_KEY": "dummy",
            "COPILOT_MODEL": "stub-model",
            "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "100000",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_ALLOW_ALL": "true",
        }
        server = [sys.executable, str(UPSTREAM), "serve"]
        wrapped = {"type": "local", "command": "holdfast", "args": ["wrap", "--", *server], "tools": ["*"]}
        config = self.home / ".copilot" / "mcp-config.json"
        config.write_text(json.dumps({"mcpServers": {"wrapped": wrapped}}))

    def holdfast(self, *words: str) -> str:
        command = ["holdfast", *words]
        done = subprocess.run(
            command, cwd=self.project, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, prompt: str, *turns: Turn) -> Chat:
        """One run with a prompt. The stub with what was sent."""
        stub = Chat(turns)
        with stub:
            command = [
                str(self.program),
                "-p",
                prompt,
                "--allow-all-tools",
                "--trust-folder",
                "--output-format",
                "json",
            ]
            done = subprocess.run(
                command,
                cwd=self.project,
                env=self.environment | {"COPILOT_PROVIDER_BASE_URL": f"{stub.address}/v1"},
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                timeout=120,
                check=False,
            )
        assert done.returncode == 0, done.stdout + done.stderr
        return stub


@pytest.fixture
def copilot(tmp_path: Path) -> Copilot:
    found = Copilot(installed("@github/copilot", VERSION, "@github/copilot-linux-*/copilot"), tmp_path)
    found.holdfast("install", "copilot", "--user")
    return found


def results(request: Json) -> list[str]:
    """The results of tools in a request, as text."""
    found = [message["content"] for message in request["messages"] if message["role"] == "tool"]
    return [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in found]


def test_it_calls_our_tools_and_gets_the_handoff_once(copilot: Copilot) -> None:
    copilot.holdfast("handoff", "write", "Casts come next; the grammar is done.", "--session", "earlier")
    stub = copilot.ask("hello", Use("write_notepad", {"content": "- [ ] casts"}, "holdfast"), Say("hi"))
    assert json.dumps(stub.requests[0]).count("Casts come next; the grammar is done.") == 1
    assert "ok" in results(stub.requests[-1])[0]
    stub = copilot.ask("hello again", Say("hi"))
    assert "Casts come next; the grammar is done." not in json.dumps(stub.requests[0])


def test_big_outputs_are_previews_and_references(copilot: Copilot) -> None:
    stub = copilot.ask(
        "look around",
        Use("text", {"size": 100_000}, "wrapped"),
        Use("bash", {"command": "seq 1 3000; echo FAILED tests/test_x.py::test_y", "description": "count"}),
        Say("done"),
    )
    found = results(stub.requests[-1])
    assert len(found) == 2
    for one in found:
        assert "📁 Output cached: " in one
        assert len(one) < 4_000
    assert "FAILED tests/test_x.py::test_y" in found[-1]


def test_the_notepad_is_there_after_a_compaction(copilot: Copilot) -> None:
    def wait(used: int = 100) -> Use:  # the client compacts beside the work, so the work takes a moment
        return Use("bash", {"command": "sleep 1; echo waited", "description": "wait"}, used=used)

    stub = copilot.ask(
        "port the parser",
        Use("write_notepad", {"content": "- [ ] casts break LL(1)"}, "holdfast"),
        wait(used=95_000),
        *(wait() for _ in range(4)),
        Say("done"),
    )
    assert stub.summaries, "the client did not compact"
    after = json.dumps(stub.requests[-1]["messages"])
    assert "write_notepad" not in after
    assert "- [ ] casts break LL(1)" in after
