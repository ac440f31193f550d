"""The examples in the README run as they stand, every command they show exists, and lists of agents are complete."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from limpet import clients
from limpet.catalogue.table import PROFILES
from limpet.doors.cli.own_logic import costs

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
AGENTS = clients.every()
# Each sentence that lists coding agents: the page, where the list is, and what `clients/` says.
NUMBERS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve", "thirteen", "fourteen", "fifteen"),
)
# Each sentence that says how many tools a profile has over MCP: the page, where the number is, and the profile.
TOOL_COUNTS = (
    ("README.md", r"the default, `core`, is (\w+) tools", "core"),
    ("docs/clients.md", r"The agent gets (\w+) tools", "coding"),
    ("src/limpet/doors/cli/commands/connect.py", r"core \((\w+) tools\)", "core"),
    ("src/limpet/doors/cli/commands/connect.py", r"coding \((\w+)\)", "coding"),
)
AGENT_LISTS = {
    "to install": ("README.md", r"\$ limpet install (.*?);", {agent.name for agent in AGENTS}),
    "with a file": ("docs/clients.md", r"Known are (`claude-code`.*?);", {agent.name for agent in AGENTS}),
    "as a noun": ("docs/glossary.md", r"that Limpet installs into: (.*?)\.", {agent.title for agent in AGENTS}),
    "with transcripts": (
        "docs/clients.md",
        r"Known are the files of\s(.*?), and what",
        {agent.title for agent in AGENTS if agent.transcript_files},
    ),
}


@pytest.mark.parametrize("name", AGENT_LISTS)
def test_a_list_of_coding_agents_is_that_of_their_files(name: str) -> None:
    page, pattern, expected = AGENT_LISTS[name]
    sentence = re.search(pattern, (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert sentence is not None, f"{page} has no sentence like {pattern}"
    listed = re.split(r",|\band\b|# or", sentence[1].replace("`", "").replace("\n", " "))
    assert {item.strip() for item in listed} == expected


def test_the_table_of_agents_says_yes_where_a_test_runs_the_agent_and_why_not_elsewhere() -> None:
    lines, names = (getattr(importlib.import_module("clients.conftest"), name) for name in ("LINES", "NAMES"))
    modules = [importlib.import_module(f"clients.{path.stem}") for path in (ROOT / "tests" / "clients").glob("*.py")]
    kinds = {kind.name: kind for module in modules for kind in vars(module).values() if hasattr(kind, "compacting")}
    page = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8").partition("## What is proven")[2]
    head, _, *rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in page.splitlines() if row[:1] == "|"]
    assert [title.split()[-1] for title in head[1:]] == [sys.modules[kinds[name].__module__].VERSION for name in names]
    assert [row[0] for row in rows] == list(lines)
    tested = {(test, name) for module in modules for test, kind in _agent_tests(module) for name in kind}
    for title, *cells in rows:
        for name, cell in zip(names, cells, strict=True):
            is_tested = any(
                part in test and name == tested_name for part in lines[title] for test, tested_name in tested
            )
            shell_alone = title.startswith("big results of its shell")
            seen = is_tested and (not shell_alone or (kinds[name].shell_replaced and bool(kinds[name].shell)))
            assert (cell in ("yes", "by `wrap`")) is seen, f"{title}, {name}: {cell!r}"
            number = re.search(r"\((\d)\)", cell)
            assert number is None or f"\n{number[1]}. " in page


def _agent_tests(module: ModuleType) -> Iterator[tuple[str, set[str]]]:
    """The tests of a module of `tests/clients`, each with the agents it runs."""
    for name, function in inspect.getmembers(module, inspect.isfunction):
        if name.startswith("test_"):
            given = [mark.args[1] for mark in getattr(function, "pytestmark", ()) if mark.args[:1] == ("kind",)]
            given += [module.AGENTS] if "agent" in inspect.signature(function).parameters else []
            yield name, {kind.name for kinds in given for kind in kinds}


def test_every_snippet_of_the_readme_runs_as_it_stands(tmp_path: Path) -> None:
    """Python and JSON here; the commands have tests of their own. Shown twice, they do no harm twice."""
    blocks = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
    assert {kind for kind, _ in blocks} == {"python", "json", "console"}
    for kind, block in blocks:
        if kind == "json":
            assert "mcpServers" in json.loads(block)
        if kind == "python":
            for _ in range(2):
                command = [sys.executable, "-c", block]
                done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
                assert done.returncode == 0, done.stderr
                assert "casts" in done.stdout
                found = re.sub("[«»]", "", done.stdout)
                assert "hold.recall(" not in block or "Casts break LL(1): they need two tokens" in found
        if kind == "console":
            assert all(line.startswith("$ limpet ") for line in block.splitlines()), block


def test_the_picture_shows_what_the_session_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    picture = importlib.import_module("make_picture")
    drawn = picture.drawn(picture.played(str(tmp_path)))
    assert drawn == (ROOT / "docs" / "plots" / "compaction.svg").read_text(encoding="utf-8")


def test_every_command_of_the_readme_exists(tmp_path: Path) -> None:
    commands = re.findall(r"^\$ limpet ([^#\n]*)", README, re.MULTILINE)
    assert len(commands) > 3
    env = {**os.environ, "LIMPET_STORE": str(tmp_path / "limpet.db")}
    for command in commands:
        words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', command)]
        done = subprocess.run(
            [sys.executable, "-m", "limpet", *words],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"limpet {command}: {done.stderr}"


def test_the_examples_of_the_window_run(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "window.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("page", "place", "profile"), TOOL_COUNTS)
def test_the_number_of_tools_is_the_one_that_clients_get(page: str, place: str, profile: str) -> None:
    match = re.search(place, (ROOT / page).read_text(encoding="utf-8"))
    assert match is not None
    assert NUMBERS.index(match[1]) == len(costs(profile)["tools"])


def test_the_default_profile_costs_no_more_than_the_readme_says() -> None:
    match = re.search(r"tools in under ([\d.]+) kB", README)
    assert match is not None
    most = float(match[1]) * 1_000
    assert most - 500 < costs("core")["bytes"] < most


def test_help_names_every_profile() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "limpet", "tools", "--help"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert all(re.search(rf"\b{name}\b", shown.partition("--profile NAME")[2]) for name in PROFILES)
