"""`limpet recall` as people use it: another process asks for what earlier ones wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def limpet(folder: Path, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "limpet", *words]
    return subprocess.run(run, cwd=folder, input=text, capture_output=True, text=True, check=False)


def test_what_one_process_wrote_another_recalls(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    limpet(tmp_path, "note", "add", "The old lexer was dropped because casts break LL(1)", "--tag", "grammar")
    limpet(tmp_path, "memory", "write", "release", "Tag first, then build the wheel")
    log = "".join(f"step {number} fine\n" for number in range(600)) + "fatal: the gyroscope drifted\n"
    limpet(tmp_path, "output", "keep", "calibrate", text=log)
    found = limpet(tmp_path, "recall", "why did we drop the old lexer?")
    assert found.returncode == 0, found.stderr
    kind, id, moment, trust, text, why = found.stdout.splitlines()[0].split("\t")
    assert (kind, id[:5], moment[-1], trust) == ("note", "note_", "Z", "person")
    assert text == "The «old» «lexer» was «dropped» because casts break LL(1)"
    assert "words: drop, old, lexer" in why
    reply = json.loads(limpet(tmp_path, "recall", "did the gyroscope drift", "--kind", "outputs", "--json").stdout)
    (hit,) = reply["hits"]
    assert (hit["trust"], hit["from"]) == ("data", "tool calibrate")
    assert hit["line"] > 500
    assert json.loads(limpet(tmp_path, "recall", "lexer", "--tag", "other", "--json").stdout)["hits"] == []
    wrong = limpet(tmp_path, "recall", "lexer", "--since", "the other day")
    assert wrong.returncode != 0
    assert "an age (12h, 7d, 2w)" in wrong.stderr


def test_outputs_that_are_not_indexed_yet_are_said(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for number in range(3):
        limpet(tmp_path, "output", "keep", "log", text=f"line of log {number}, all is well\n" * 700_000)
    found = limpet(tmp_path, "recall", "gyroscope")
    assert found.returncode == 0, found.stderr
    assert "1 outputs were not searched" in found.stderr
    assert "not_searched" not in json.loads(limpet(tmp_path, "recall", "gyroscope", "--json").stdout)


def test_a_question_without_a_common_word_finds_the_note(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    limpet(tmp_path, "note", "add", "The puppy chewed the sofa again")
    limpet(tmp_path, "note", "add", "Customers are billed in euros, never in dollars")
    found = limpet(tmp_path, "recall", "my dog destroyed the couch")
    assert [line.split("\t")[4:] for line in found.stdout.splitlines()] == [
        ["The puppy chewed the sofa again", "about the same"]
    ]
    assert "limpet[semantic]" not in found.stderr
    # The same, where numpy is not installed: words alone, and it is said to those who found nothing.
    bare = "import sys; sys.modules['numpy'] = None; from limpet.doors.cli import main; main()"

    def without(*words: str) -> subprocess.CompletedProcess[str]:
        run = [sys.executable, "-c", bare, *words]
        return subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)

    missed = without("recall", "my dog destroyed the couch")
    assert (missed.returncode, "puppy" in missed.stdout) == (0, False)
    assert "limpet[semantic]" in missed.stderr
    worded = without("recall", "the puppy")
    assert "chewed" in worded.stdout
    assert "limpet[semantic]" not in worded.stderr
