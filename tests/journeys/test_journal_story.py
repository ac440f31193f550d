"""Work, checkpoint, wipe, recover: a journal in a real git repository, by command line and the official client.

Monday's agent decides and stops. A person edits the file meanwhile. Tuesday's agent knows nothing and takes it up.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import ClientSession

from doors.mcp_client import MODERN, sdk_session
from limpet.text import tokens

SOURCE = "RATE = 1.5\n\n\ndef total(lines, rate=RATE):\n    return round(sum(lines) * rate, 2)\n"
SCENARIOS = ["usual", "no lines", "not a number"]


def shell(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def git(folder: Path, *words: str) -> str:
    return shell(folder, "git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", *words)


def journal(folder: Path, *words: str) -> str:
    return shell(folder, sys.executable, "-m", "limpet", "journal", *words)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shop"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "total.py").write_text(SOURCE)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "begin")
    # A client starts its server anywhere; this says which project is meant.
    monkeypatch.setenv("LIMPET_FOLDER", str(folder))
    return folder


def agent(session_id: str, work: Any) -> None:
    """One agent with a connection of its own: the server's process ends with it, as a wiped window does."""
    command = [sys.executable, "-m", "limpet", "mcp", "--profile", "full", "--structured", "--session", session_id]

    async def main() -> None:
        async with sdk_session(command=command, revision=MODERN) as session:
            await work(session)

    anyio.run(main)


async def call(session: ClientSession, tool: str, **arguments: Any) -> Any:
    result = await session.call_tool(tool, arguments)
    assert isinstance(result, types.CallToolResult)
    block, *_ = result.content
    assert isinstance(block, types.TextContent)
    assert not result.is_error, block.text
    return result.structured_content


def test_a_journal_carries_work_over_a_wiped_window(project: Path) -> None:
    async def monday(session: ClientSession) -> None:
        await call(session, "update_journal", section="task", text="invoices in two currencies")
        for number, place in enumerate(["src/total.py:1", "src/total.py:4-5", "src/total.py:5 round(sum(lines)"]):
            await call(
                session,
                "log_decision",
                title=f"Decision {'ABC'[number]}",
                decision=f"what was decided, part {number}",
                rationale="the auditors asked for it",
                evidence=[place],
                scenarios=SCENARIOS,
            )
        await call(session, "update_journal", section="debt", text="rounding | twice", severity="HIGH")
        await call(session, "update_journal", section="blocker", text="the bank's key", eta="2020-01-01")
        await call(session, "update_journal", section="goal", text="totals that add up")
        done = await call(session, "checkpoint_session", summary="Rates are stored", state="rounding is next")
        assert done["blockers"] == ["the bank's key"]
        assert done["incomplete"] == ["totals that add up"]

    async def tuesday(session: ClientSession) -> None:
        assert session.instructions is not None
        assert "Rates are stored" in session.instructions  # the handoff comes first, unasked
        one = await call(session, "recover_journal")
        assert one["tokens"] == tokens.count(one["text"]) <= 100
        for part in ("rounding is next", "invoices in two", "Decision A", "Decision B", "Decision C", "1 due"):
            assert part in one["text"]
        two = await call(session, "recover_journal", level=2, query="rounding debt")
        assert two["tokens"] <= 500
        assert "TD-001" in two["text"]
        three = await call(session, "recover_journal", level=3)
        assert three["text"] == (project / "NOTES.md").read_text()
        assert "written by hand" in three["text"]
        await call(session, "update_journal", section="blocker", text="the bank's key", done=True)
        await call(session, "update_journal", section="question", text="May a rate be corrected?")

    agent("monday", monday)
    assert journal(project, "lint") == ""
    git(project, "add", "NOTES.md")
    git(project, "commit", "-qm", "notes")
    assert git(project, "status", "--porcelain") == ""  # nothing of ours is in the way of git
    file = project / "NOTES.md"
    file.write_text(file.read_text().replace("- [ ] totals", "- written by hand\n- [ ] totals"))
    (project / "src" / "total.py").write_text("# a new first line\n" + SOURCE)

    agent("tuesday", tuesday)
    assert [line.split("\t")[0] for line in journal(project, "verify", "--fix").splitlines()] == ["moved"] * 3
    assert "${PROJECT_ROOT}/src/total.py:5-6]" in file.read_text()
    changed = git(project, "diff", "--numstat", "NOTES.md").split()[:2]
    assert changed == ["6", "4"]  # one line by hand, one question, one blocker, three places; nothing else

    # A crash of the worst kind: the file is emptied. It comes back as it was, and then as it was committed.
    text = file.read_text()
    file.write_text("")
    assert "last seen" in journal(project, "heal")
    assert file.read_text() == text
    os.unlink(file)
    (folder,) = Path.home().rglob("projects/*/journal")
    shutil.rmtree(folder)
    assert "git" in journal(project, "heal")
    assert file.read_text() == git(project, "show", "HEAD:NOTES.md")
    assert journal(project, "recover").startswith("State: rounding is next\nTask: invoices in two currencies\n")
