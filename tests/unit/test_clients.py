"""The coding agents: found by their files, and recognised by the environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import limpet
from limpet import clients
from limpet.clients.base import CodingAgent


@pytest.fixture(autouse=True)
def no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LIMPET_SESSION", *clients.session_variables()):
        monkeypatch.delenv(name, raising=False)


def test_every_file_of_the_package_is_an_agent_of_that_name() -> None:
    assert clients.names() == (
        *("claude-code", "cline", "codex", "copilot", "cursor", "gemini", "goose", "opencode", "vscode"),
    )
    for name in clients.names():
        assert type(clients.find(name)) is not CodingAgent
        assert clients.find(name).name == name
        assert clients.find(name).title


@pytest.mark.parametrize("name", ["emacs", "base", "edits", "install", "__init__", "", "../codex", "os"])
def test_a_name_that_is_no_agent_speaks_the_plain_dialect(name: str) -> None:
    assert type(clients.find(name)) is CodingAgent
    assert clients.find(name).name == name


def test_the_name_of_every_session_variable_is_recognised() -> None:
    assert all(name.endswith("SESSION_ID") for name in clients.session_variables())


@pytest.mark.parametrize("name", ["CLAUDE_CODE_SESSION_ID", "COPILOT_AGENT_SESSION_ID", "AGENT_SESSION_ID"])
def test_the_session_of_the_agent_that_started_us(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def session() -> str | None:
        with limpet.open(str(tmp_path / "limpet.db")) as hold:
            return hold.session().id

    assert clients.session_id() is None
    assert session() != "theirs"
    monkeypatch.setenv(name, "theirs")
    assert clients.session_id() == "theirs"
    assert session() == "theirs"
    monkeypatch.setenv("LIMPET_SESSION", "ours")
    assert session() == "ours"


def test_a_hook_imports_the_file_of_its_own_agent_and_no_other() -> None:
    code = (
        "import sys; from limpet import clients; clients.find('codex')\n"
        "print(*sorted(name for name in sys.modules if name.startswith('limpet.clients.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["limpet.clients.base", "limpet.clients.codex"]
