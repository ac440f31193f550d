"""`limpet journal …` as people and hooks use it: every command as a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from doors.cli_runner import child

EVIDENCE = ("--evidence", "src/a.py:1", "--scenario", "usual", "--scenario", "edge", "--scenario", "failure")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("def total(lines):\n    return sum(lines)\n")
    return tmp_path


def run(folder: Path, *words: str, code: int = 0, stdin: bytes = b"") -> str:
    done = child(folder, "journal", *words, stdin=stdin)
    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode()


def ask(folder: Path, *words: str) -> Any:
    return json.loads(run(folder, *words, "--json"))


def test_every_command(folder: Path) -> None:
    assert run(folder, "init") == "NOTES.md made\n"
    assert "is there already" in run(folder, "init")
    run(folder, "decision", "add", "Sums", "--decision", "use total()", "--rationale", "one place", *EVIDENCE)
    for noun, more in (("question", ()), ("goal", ("--note", "the audit")), ("blocker", ("--eta", "2020-01-01"))):
        run(folder, noun, "add", f"- [ ] about {noun}", *more)
    assert ask(folder, "debt", "add", "slow", "--severity", "HIGH", "--sprint", "S1", "--track")["id"] == "TD-001"
    run(folder, "identifier", "add", "src/a.py:1-2", "--note", "the sum")
    run(folder, "set", "task", "sums")
    run(folder, "set", "state", "-", stdin=b"half way\n")
    checked = ask(folder, "checkpoint", "did it", "--agent", "me", "--line", "main")
    assert (checked["blockers"], checked["incomplete"]) == (["- [ ] about blocker"], ["- [ ] about goal"])
    assert run(folder, "lint") == ""
    found = run(folder, "recover")
    assert found.startswith("State: half way\nTask: sums\n- 20")
    assert "Sums: use total()" in found
    assert "1 blocker (1 due: resolved?)" in found
    assert [one["state"] for one in ask(folder, "verify", "--check")["checked"]] == ["fresh", "fresh"]
    for noun in ("question", "goal", "blocker", "debt"):
        run(folder, noun, "done", "slow" if noun == "debt" else f"about {noun}")
    assert "Open" not in run(folder, "recover")
    assert ask(folder, "rotate", "--force") == {
        "file": "NOTES.md",
        "archive": "NOTES.archive.md",
        "decisions": 0,
        "rows": 0,
    }
    assert run(folder, "heal") == "NOTES.md: healthy\n"


def test_the_quick_way_and_the_usual_way_give_the_same_text(folder: Path) -> None:
    run(folder, "decision", "add", "Sums", "--decision", "use total()", "--rationale", "one place", *EVIDENCE)
    for words in ((), ("--level", "2"), ("--level=2", "--query", "sums"), ("--level", "3")):
        quick = run(folder, "recover", *words)
        assert quick.rstrip("\n") == ask(folder, "recover", *words)["text"].rstrip("\n")
    for wrong in ("0", "4", "two"):
        assert b"level of `limpet journal recover`" in child(folder, "journal", "recover", "--level", wrong).stderr
    assert child(folder, "journal", "recover", "--level").returncode == 2


def test_recovering_makes_nothing_and_needs_no_store(folder: Path) -> None:
    (folder / "NOTES.md").write_text("## Active Context\n- **Reasoning State**: as it was\n")
    assert run(folder, "recover") == "State: as it was\n"
    assert sorted(path.name for path in folder.iterdir()) == [".git", "NOTES.md", "src"]
    (folder / "NOTES.md").unlink()
    missing = child(folder, "journal", "recover")
    assert missing.returncode == 3
    assert b"NOTES.md is not there. `limpet journal heal`" in missing.stderr


def test_a_journal_without_entries_says_so(folder: Path) -> None:
    assert run(folder, "init") == "NOTES.md made\n"
    empty = child(folder, "journal", "recover")
    assert (empty.returncode, empty.stdout) == (0, b"")
    assert b"the journal says nothing yet" in empty.stderr


def test_the_quick_way_loads_little(folder: Path) -> None:
    run(folder, "init")
    program = (  # what was there before is not ours: a measured run brings a good deal along
        "import sys; before = set(sys.modules); from limpet.doors.cli import main; main(['journal', 'recover']); "
        "print(' '.join(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"click", "rich", "apsw", "Stemmer", "difflib", "ctypes", "asyncio", "inspect", "dataclasses"}


def test_problems_are_exit_codes_for_hooks(folder: Path) -> None:
    (folder / "NOTES.md").write_text("# Mine\n")
    assert "the section 'Session Continuity' is missing" in run(folder, "lint", code=2)
    run(folder, "lint", "--fix")
    assert (folder / "NOTES.md").read_text().startswith("# Mine\n\n## Session Continuity\n")
    run(folder, "decision", "add", "Sums", "--decision", "use total()", "--rationale", "one place", *EVIDENCE)
    (folder / "src" / "a.py").write_text("gone\n")
    assert run(folder, "verify", code=2).startswith("drifted\t${PROJECT_ROOT}/src/a.py:1\t")
    assert "[evidence drifted]" in run(folder, "recover")
    (folder / "NOTES.md").write_text("")
    assert "would be brought back from: last seen" in run(folder, "heal", "--check")
    assert "brought back from: last seen" in run(folder, "heal")
    run(folder, "question", "done", "no such", code=3)
    run(folder, "decision", "add", "x", "--decision", "d", "--rationale", "r", "--evidence", "nope", code=2)


def test_what_a_terminal_gets_is_quiet(folder: Path) -> None:
    (folder / "NOTES.md").write_text("## Active Context\n- **Reasoning State**: \x1b[2J\x9b31m\u202e evil\n")
    assert run(folder, "recover") == "State: \\x1b[2J\\x9b31m\\u202e evil\n"
