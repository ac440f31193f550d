"""`limpet prompt`, `limpet skill` and `limpet state` as people use them, each call a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from person import configure, store_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return tmp_path


def limpet(folder: Path, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "limpet", *words]
    return subprocess.run(run, cwd=folder, input=text, capture_output=True, text=True, check=False)


def says(folder: Path, *words: str, text: str = "") -> str:
    done = limpet(folder, *words, text=text)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_system_prompt(folder: Path) -> None:
    assert says(folder, "prompt", "write", "Be brief.") == "system prompt is at version 1 (about 4 tokens)\n"
    says(folder, "prompt", "append", "Use metric units.")
    says(folder, "prompt", "prepend", "# Rules")
    says(folder, "prompt", "edit", "--find", "brief", "--replace", "terse")
    assert says(folder, "prompt", "show") == "# Rules\nBe terse.\nUse metric units.\n"
    assert "+Use metric units." in says(folder, "prompt", "history", "--diff", "1")
    says(folder, "prompt", "restore", "1")
    assert says(folder, "prompt", "show") == "Be brief.\n"
    assert limpet(folder, "prompt", "write", "x", "--if-version", "2").returncode == 4
    assert limpet(folder, "prompt", "edit", "--delete", "nothing like it").returncode == 3


def test_skills(folder: Path) -> None:
    says(folder, "pad", "write", "-", "--session", "s", text="# Deploy\n1. tag\n")
    promote = ("skill", "promote", "deploy", "--section", "Deploy", "--description", "How to.", "--session", "s")
    assert says(folder, *promote) == "deploy is in skills/deploy\n"
    skills = store_of(folder).parent / "skills"
    written = skills / "deploy" / "SKILL.md"
    assert written.read_text() == '---\nname: deploy\ndescription: "How to."\n---\n\n# Deploy\n1. tag\n'
    assert limpet(folder, *promote).returncode == 4
    says(folder, *promote, "--replace")
    (skills / "broken").mkdir()
    listed = limpet(folder, "skill", "list")
    assert "deploy" in listed.stdout
    assert "skills/broken cannot be used: it has no SKILL.md." in listed.stderr
    assert says(folder, "skill", "show", "deploy") == "# Deploy\n1. tag\n"
    assert limpet(folder, "skill", "show", "../deploy").returncode == 3


def test_skills_of_other_directories(folder: Path) -> None:
    base = configure(f'skills = ["know-how", "{folder}/.claude/skills"]\n').parent
    theirs = folder / ".claude" / "skills" / "review"
    theirs.mkdir(parents=True)
    (theirs / "SKILL.md").write_text("---\nname: review\ndescription: How to review.\n---\nRead it all.\n")
    says(folder, "pad", "write", "-", "--session", "s", text="# Deploy\n1. tag\n")
    says(folder, "skill", "promote", "deploy", "--section", "Deploy", "--description", "D.", "--session", "s")
    listed = json.loads(says(folder, "skill", "list", "--json"))
    assert [(skill["name"], skill["folder"]) for skill in listed["skills"]] == [
        ("deploy", f"{base}/know-how/deploy"),
        ("review", str(theirs)),
    ]
    configure("skills = 7\n")
    assert "it must be a directory or a list of them" in limpet(folder, "skill", "list").stderr


def test_state(folder: Path) -> None:
    assert says(folder, "state", "set", "build", '{"number": 7}') == "build is at version 1\n"
    assert json.loads(says(folder, "state", "get", "build")) == {"number": 7}
    says(folder, "state", "set", "owner", "Ada", "--text")
    assert says(folder, "state", "get", "owner") == "Ada\n"
    assert json.loads(says(folder, "state", "keys", "--json"))["keys"] == ["build", "owner"]
    assert json.loads(says(folder, "state", "keys", "bu", "--json"))["keys"] == ["build"]
    refused = limpet(folder, "state", "set", "owner", "Ada")
    assert refused.returncode == 2
    assert "Give --text" in refused.stderr
    assert limpet(folder, "state", "set", "build", "8", "--if-version", "5").returncode == 4
    says(folder, "state", "delete", "build")
    assert limpet(folder, "state", "get", "build").returncode == 3
    says(folder, "undo")
    assert json.loads(says(folder, "state", "get", "build")) == {"number": 7}


def test_what_is_used_is_counted_in_the_audit(folder: Path) -> None:
    says(folder, "memory", "write", "db", "We use Postgres 14")
    assert says(folder, "memory", "useful", "db") == "db was called useful 1 time\n"
    assert says(folder, "memory", "useful", "db") == "db was called useful 2 times\n"
    says(folder, "memory", "show", "db")
    assert "memory db: opened 1 time, useful 2 times, cited 0 times." in limpet(folder, "audit").stderr


def test_files_of_the_team_say_what_is_left_out_and_what_undo_does_not_reach(folder: Path) -> None:
    says(folder, "memory", "write", "db", "We use Postgres 14", "--layer", "team")
    correction = ("memory", "write", "database", "Correction: we use Postgres 16, not 14", "--layer", "team")
    assert "--replaces db" in limpet(folder, *correction).stderr
    confirmed = limpet(folder, *correction, "--replaces", "db").stderr
    assert "db is replaced as long as the file of database says so." in confirmed
    assert "undo" not in confirmed
    assert says(folder, "memory", "delete", "database", "--layer", "team") == (
        "database deleted; its file is git's to bring back\n"
    )
    elsewhere = (
        "limpet: 'db' is memory of the team, not of the project. Nothing was changed; use `limpet memory write` or "
        "`limpet memory delete` with --layer team.\n"
    )
    assert limpet(folder, "memory", "delete", "db").stderr == elsewhere
    assert limpet(folder, "memory", "write", "mine", "Postgres 16 it is", "--replaces", "db").stderr == elsewhere
    file = folder / ".limpet" / "memory" / "db.md"
    file.write_text(f"{file.read_text()}<<<<<<< HEAD\nus\n=======\nthem\n>>>>>>> theirs\n")
    listed = limpet(folder, "memory", "list")
    assert listed.stdout == ""
    assert ".limpet/memory/db.md: git could not merge it" in listed.stderr
