"""`limpet window` and `limpet task` as a person uses them, beside a loop in another process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import limpet
from doors.cli_runner import child
from limpet.window.messages import Message, assistant, user
from limpet.window.plan.controller import Compact


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return tmp_path


def ok(folder: Path, *words: str) -> str:
    done = child(folder, *words)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_a_person_sees_what_fills_the_window_and_brings_messages_back(folder: Path) -> None:
    with limpet.open(folder=str(folder), session="loop") as hold:
        window = hold.session().window
        talk: list[Message] = [user("port the parser")]
        step = window.next(talk, limit=6_000)
        while not isinstance(step, Compact):
            talk += [user("why? " * 80), assistant("because. " * 80)]
            step = window.next(talk, limit=6_000)
        shown = ok(folder, "window", "show", "--session", "loop")
        assert "█" in shown
        assert f"{step.gauge.used:,} of 6,000 tokens" in shown
        asked = json.loads(ok(folder, "window", "show", "--session", "loop", "--json"))
        assert asked["sections"] == dict(step.gauge.sections)
        alone = child(folder, "window")
        assert alone.returncode == 0, alone.stderr
        assert alone.stdout.decode() == shown  # the session that was active last
        folds = ok(folder, "window", "folds", "--session", "loop")
        assert f"compact\t1-{step.folded}" in folds
        assert talk[0] not in step.messages
        assert "messages 1 to 1 are in the window again" in ok(folder, "window", "restore", "1", "--session", "loop")
        assert talk[0] in window.next(talk, limit=6_000).messages
        refused = child(folder, "window", "restore", "1", "--session", "loop")
        assert refused.returncode == 3
        assert b"no fold covers message 1;" in refused.stderr
        ok(folder, "window", "pin", "Never push to main.", "--session", "loop")
        assert "Never push to main." in window.next(talk, limit=6_000).messages[-1].text()
        id, _, text = ok(folder, "window", "pins", "--session", "loop").strip().partition("\t")
        assert text == "Never push to main."
        assert ok(folder, "window", "unpin", id, "--session", "loop") == f"{id} unpinned\n"
        assert ok(folder, "window", "pins", "--session", "loop") == ""


def test_tasks_on_the_command_line(folder: Path) -> None:
    assert ok(folder, "task", "begin", "look into casts").endswith("begun, depth 1\n")
    assert ok(folder, "task", "end", "two tokens") == "0 messages folded\n"
    ok(folder, "task", "begin", "again")
    assert ok(folder, "task", "cancel", "known already") == "0 messages folded\n"
    rows = ok(folder, "task", "list", "--session", "cli").splitlines()
    assert [row.split("\t")[1:] for row in rows] == [
        ["cancelled", "again", "known already"],
        ["ended", "look into casts", "two tokens"],
    ]
    refused = child(folder, "task", "end", "x")
    assert refused.returncode == 3
    assert b"there is no open task to end" in refused.stderr
