"""Duplicates, audit and purge as people use them: each command is a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from person import configure, store_of


def limpet(folder: Path, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "limpet", *words]
    return subprocess.run(run, cwd=folder, input=text, capture_output=True, text=True, check=False)


def reply(folder: Path, *words: str, text: str = "") -> dict[str, Any]:
    ran = limpet(folder, *words, "--json", text=text)
    assert ran.returncode == 0, ran.stderr
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".limpet").mkdir()
    return tmp_path


def test_a_note_that_is_there_already_is_named(folder: Path) -> None:
    first = reply(folder, "note", "add", "Casts break the grammar")["note_id"]
    again = limpet(folder, "note", "add", "casts break the grammar")
    assert again.returncode == 0
    assert f"{first} says the same." in again.stderr
    assert reply(folder, "note", "add", "Casts break the grammar")["duplicate_of"]
    reply(folder, "memory", "write", "one", "Casts break the grammar")
    assert reply(folder, "memory", "write", "two", "Casts break the grammar")["duplicate_of"] == "one"
    configure("report_duplicates = false\n")
    assert "duplicate_of" not in reply(folder, "note", "add", "Casts break the grammar")


def test_audit_names_what_should_be_looked_at(folder: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    secret = reply(folder, "note", "add", f"deploy with {token}", "--keep-secret")["note_id"]
    reply(folder, "memory", "write", "one", "Casts break the grammar")
    reply(folder, "memory", "write", "two", "Casts break the grammar")
    shown = limpet(folder, "audit")
    assert shown.returncode == 0
    assert [line.split("\t")[:3] for line in shown.stdout.splitlines()] == [
        ["secret", "note", secret],
        ["duplicate", "memory", "two"],
    ]
    assert token not in shown.stdout + shown.stderr
    answer = reply(folder, "audit", "--only", "duplicate")
    assert (answer["counts"], answer["findings"][0]["of"]) == ({"duplicate": 1}, "one")
    assert limpet(folder, "audit", "--only", "everything").returncode != 0


def test_purge_shows_takes_out_and_is_undone(folder: Path) -> None:
    log = "".join(f"step {number} of the quince\n" for number in range(400))
    reply(folder, "note", "add", "the quince is mine")
    reply(folder, "output", "keep", "web_fetch", text=log)
    dry = limpet(folder, "purge", "--origin", "person", "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert [line.split("\t")[0] for line in dry.stdout.splitlines()] == ["note"]
    assert "1 note would go" in dry.stderr
    assert len(reply(folder, "recall", "quince")["hits"]) == 2
    assert reply(folder, "purge", "--origin", "person")["counts"] == {"note": 1}
    assert reply(folder, "purge", "--origin", "tool/web_*")["counts"] == {"output": 1}
    assert reply(folder, "recall", "quince")["hits"] == []
    back = limpet(folder, "undo")
    assert "1 entry is back" in back.stdout
    assert [hit["kind"] for hit in reply(folder, "recall", "quince")["hits"]] == ["note"]
    gone = reply(folder, "purge", "--origin", "person", "--forever")
    assert gone["erased"] >= 1
    assert b"quince" not in store_of(folder).read_bytes()
    assert limpet(folder, "purge").returncode != 0
    reply(folder, "note", "add", "one", "--session", "a")
    reply(folder, "note", "add", "two", "--session", "b")
    assert reply(folder, "purge", "--origin", "person", "--session", "a")["counts"] == {"note": 1}
    assert [note["content"] for note in reply(folder, "note", "list")["notes"]] == ["two"]
