"""What is asked of every coding agent once: results read back, failures, worktrees, a broken store, the way back.

`conftest.py` prints the table of agents and lines when the tests are done.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.claude_code import ClaudeCode
from clients.cline import Cline
from clients.codex import Codex
from clients.copilot import Copilot
from clients.gemini import Gemini
from clients.goose import Goose
from clients.kit import Agent
from clients.opencode import OpenCode
from clients.stub import Say, Use

pytestmark = [pytest.mark.clients, pytest.mark.timeout(400)]
WITH_HOOKS: list[type[Agent]] = [ClaudeCode, Codex, Copilot, Gemini, OpenCode]
EVERYONE: list[type[Agent]] = [*WITH_HOOKS, Cline, Goose]
REFERENCE = "📁 Output cached: "
FINDING = "Casts need two tokens of lookahead"
OWN = (".local/share/limpet", ".local/state/limpet")  # below the home: notes stay when the agent's files are given back


def name_of(kind: type[Agent]) -> str:
    return kind.name


def install(agent: Agent) -> None:
    agent.limpet("install", agent.name, *([] if isinstance(agent, Cline | Goose) else ["--user"]))


@pytest.mark.parametrize("kind", EVERYONE, ids=name_of)
def test_a_result_is_read_back(kind: type[Agent], tmp_path: Path) -> None:
    agent = kind(tmp_path)
    install(agent)
    stub, _ = agent.ask("look around", Use("text", {"size": 100_000}, "wrapped"), Say("done"))
    (preview,) = agent.results(stub.requests[-1])
    reference = preview.partition(REFERENCE)[2][:12]
    read = Use("read_output", {"id": reference, "lines": "700-703"}, "limpet")
    query = Use("read_output", {"id": reference, "query": "line with quotes"}, "limpet")
    stub, _ = agent.ask("read it back", read, query, Say("done"))
    lines, found = agent.results(stub.requests[-1])[-2:]
    assert lines.count("line of text with") == 4
    assert "lines 700-703 of" in lines
    assert "line of text with" in found
    assert len(found) < 12_000
    assert REFERENCE not in found


@pytest.mark.parametrize("kind", WITH_HOOKS, ids=name_of)
def test_a_command_that_fails_with_much_output_is_seen_to_fail(kind: type[Agent], tmp_path: Path) -> None:
    plain, agent = kind(tmp_path / "plain"), kind(tmp_path / "with")
    install(agent)
    command = f"seq 1 {agent.shell_lines}; echo the cause is here; exit 3"
    results = []
    for one in (plain, agent):
        stub, _ = one.ask("test", one.run_shell(command), Say("done"))
        results += one.results(stub.requests[-1])
    before, after = results
    for sign in ("the cause is here", "Exit code 3", "exited with code 3", "exit code 3", "Exit Code: 3"):
        assert (sign in after) >= (sign in before), f"it says {sign!r} without Limpet"


@pytest.mark.parametrize("kind", EVERYONE, ids=name_of)
def test_what_is_written_in_a_worktree_outlives_it(kind: type[Agent], tmp_path: Path) -> None:
    agent = kind(tmp_path)
    agent.environment |= dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "ana")
    agent.environment |= dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "ana@example.org")
    install(agent)
    main = agent.project = agent.folder / "parser"
    main.mkdir()
    agent.run(["git", "init", "--quiet", "-b", "main"])
    agent.run(["git", "commit", "--quiet", "--allow-empty", "--message", "Begin"])
    agent.run(["git", "worktree", "add", "--quiet", str(agent.folder / "casts")])
    agent.project = agent.folder / "casts"
    agent.ask("look into it", Use("add_note", {"content": FINDING}, "limpet"), Say("done"))
    agent.project = main
    agent.run(["git", "worktree", "remove", "--force", str(agent.folder / "casts")])
    stub, _ = agent.ask("what do we know?", Use("search_notes", {"query": "lookahead"}, "limpet"), Say("that"))
    assert FINDING in agent.results(stub.requests[-1])[-1]


@pytest.mark.parametrize("kind", EVERYONE, ids=name_of)
def test_a_broken_store_stops_nobody_and_is_spoken_of(kind: type[Agent], tmp_path: Path) -> None:
    agent = kind(tmp_path)
    install(agent)
    agent.limpet("note", "add", FINDING)
    (store,) = agent.home.rglob("limpet.db")
    store.write_bytes(b"no database at all " * 1_000)
    for beside in store.parent.glob("limpet.db-*"):
        beside.unlink()
    calls = [Use("add_note", {"content": "Never written"}, "limpet"), Use("text", {"size": 30_000}, "wrapped")]
    if kind in WITH_HOOKS:
        calls.append(agent.run_shell("echo it goes on"))
    stub, _ = agent.ask("look around", *calls, Say("done"))
    found = agent.results(stub.requests[-1])
    assert len(found) == len(calls)
    assert "is not a Limpet store" in found[0], found[0]
    assert REFERENCE not in found[1]
    assert kind not in WITH_HOOKS or "it goes on" in found[2]
    assert store.read_bytes().startswith(b"no database")


def files(agent: Agent) -> dict[str, bytes]:
    found = {}
    for place in (agent.home, agent.project):
        for path in sorted(place.rglob("*")):
            name = path.relative_to(agent.folder).as_posix()
            if path.is_file() and not path.is_symlink() and not any(f"home/{own}" in name for own in OWN):
                found[name] = path.read_bytes()
    return found


@pytest.mark.parametrize("kind", EVERYONE, ids=name_of)
def test_uninstalling_gives_every_file_back(kind: type[Agent], tmp_path: Path) -> None:
    agent = kind(tmp_path)
    agent.ask("hello there", Say("hi"))  # it has written what it writes at first
    before = files(agent)
    install(agent)
    installed = files(agent)
    changed = {name for name in installed if installed[name] != before.get(name)}
    assert changed
    agent.limpet("uninstall", agent.name, *([] if isinstance(agent, Cline | Goose) else ["--user"]))
    assert files(agent) == before

    install(agent)
    agent.ask("look around", Use("add_note", {"content": FINDING}, "limpet"), Say("done"))
    used = files(agent)
    agent.limpet("uninstall", agent.name, *([] if isinstance(agent, Cline | Goose) else ["--user"]))
    after = files(agent)
    for name in changed:
        if used.get(name) == installed[name]:  # else the agent has written into it too
            assert after.get(name) == before.get(name), name
        else:
            assert b"limpet" not in after.get(name, b"").lower(), name
