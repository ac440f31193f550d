"""`limpet install` and `uninstall`: every client's files, as people have them, are given back as they were."""

from __future__ import annotations

import contextlib
import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from doors import cli_runner
from doors.cli_runner import child
from limpet import clients
from limpet.clients.edits import SERVER_ARGUMENTS
from limpet.text import json_spans

# What stands in a file before: nothing, something empty, and something people wrote, with comments and odd spaces.
SETTINGS = """{
  // mine
  "mcpServers": {"files": {"command": "files", "args": ["."]}},
  "mcp": { "other": {"type": "local", "command": ["x"]} },
  "hooks": {
    "SessionStart": [
      {"hooks": [{"type": "command", "command": "echo hello"}]},
    ],
  },
  "theme":   "dark"
}"""
TOML = 'model = "x"  # mine\n\n[mcp_servers.files]\ncommand = "files"\n'


def files(root: Path) -> dict[str, bytes]:
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_file() and ".limpet" not in path.parts and ".local" not in path.parts:
            found[str(path.relative_to(root))] = path.read_bytes()
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


def in_project(project: Path, *args: str) -> cli_runner.Ran:
    """Run a command in this process: a test gives a dozen of them."""
    with contextlib.chdir(project):
        return cli_runner.run(*args)


def run(project: Path, *args: str) -> dict[str, Any]:
    answer: dict[str, Any] = in_project(project, *args, "--json").json
    return answer


def paths(project: Path, client: str, *scope: str) -> list[Path]:
    return [Path(one["path"]) for one in run(project, "install", client, "--dry-run", *scope)["files"]]


def prepare(project: Path, client: str, before: str, *scope: str) -> None:
    for path in paths(project, client, *scope):
        if before != "absent" and path.name != "limpet.json" and path.suffix != ".js":
            path.parent.mkdir(parents=True, exist_ok=True)
            text = {"empty": "", "plain": SETTINGS}[before]
            path.write_text(TOML if text and path.suffix == ".toml" else text)


@pytest.mark.parametrize("before", ["absent", "empty", "plain"])
@pytest.mark.parametrize("scope", ["--user", "--project-only"])
@pytest.mark.parametrize("client", clients.names())
def test_a_client_gets_us_once_and_is_given_back_as_it_was(
    client: str, scope: str, before: str, project: Path, home: Path
) -> None:
    prepare(project, client, before, scope)
    was = files(project), files(home)
    run(project, "install", client, scope, "--dry-run")
    assert (files(project), files(home)) == was
    run(project, "install", client, scope)
    there = files(project), files(home)
    assert there != was
    for path in paths(project, client, scope):
        text = path.read_text()
        assert "limpet" in text
        if path.suffix == ".json":
            json_spans.value(text, json_spans.scan(text))
        if path.suffix == ".toml":
            assert tomllib.loads(text)["mcp_servers"]["limpet"]["args"][-4:] == list(SERVER_ARGUMENTS)
    assert not any(one["changed"] for one in run(project, "install", client, scope)["files"])
    assert (files(project), files(home)) == there
    row = next(row for row in run(project, "status")["clients"] if row["client"] == client)
    assert row["user" if scope == "--user" else "project"] is True
    run(project, "uninstall", client, scope)
    assert (files(project), files(home)) == was


@pytest.mark.parametrize("first", ["claude-code", "copilot"])
def test_agents_that_read_the_same_file_share_the_entry_in_it(first: str, project: Path, home: Path) -> None:
    (second,) = {"claude-code", "copilot"} - {first}
    was = files(project), files(home)
    run(project, "install", first)
    run(project, "install", second)
    run(project, "uninstall", first)
    assert json.loads((project / ".mcp.json").read_text())["mcpServers"]["limpet"]["args"]
    run(project, "uninstall", second)
    assert (files(project), files(home)) == was


@pytest.mark.parametrize("client", clients.names())
def test_what_people_change_in_between_stays(client: str, project: Path, home: Path) -> None:
    prepare(project, client, "plain", "--user")
    run(project, "install", client, "--user")
    changed = {}
    for path in paths(project, client, "--user"):
        if path.suffix == ".json" and path.name != "limpet.json":
            text = path.read_text().replace('"dark"', '"light"')
            assert '"light"' in text
            path.write_text(text)
            changed[path] = text
        elif path.suffix == ".toml":
            path.write_text(path.read_text() + "[later]\nx = 1\n")
            changed[path] = path.read_text()
    run(project, "uninstall", client, "--user")
    assert changed
    for path in changed:
        text = path.read_text()
        assert "limpet" not in text
        if path.suffix == ".json":
            mean = json_spans.value(text, json_spans.scan(text))
            assert mean == json_spans.value(SETTINGS, json_spans.scan(SETTINGS)) | {"theme": "light"} | (
                {"version": 1} if path.name == "hooks.json" and client == "cursor" else {}
            )
            assert "// mine" in text
        else:
            assert text == TOML + "[later]\nx = 1\n"


def test_an_older_installation_is_replaced_and_the_way_back_stays(project: Path) -> None:
    path = project / ".mcp.json"
    path.write_text('{"mcpServers": {"files": {"command": "files"}}}')
    run(project, "install", "claude-code")
    older = path.read_text().replace('"alwaysLoad": true', '"alwaysLoad": false')
    path.write_text(older)
    run(project, "install", "claude-code")
    assert '"alwaysLoad": true' in path.read_text()
    run(project, "uninstall", "claude-code")
    assert json.loads(path.read_text()) == {"mcpServers": {"files": {"command": "files"}}}


def test_a_file_that_cannot_be_read_is_left_alone(project: Path) -> None:
    path = project / ".mcp.json"
    path.write_text('{"mcpServers": {')
    done = child(project, "install", "claude-code")
    assert done.returncode == 2
    assert b".mcp.json was left as it is: line 1" in done.stderr
    assert path.read_text() == '{"mcpServers": {'
    assert not (project / ".claude").exists()


def test_rights_and_links_are_kept(project: Path) -> None:
    real = project / "shared.json"
    real.write_text("{}")
    real.chmod(0o640)
    (project / ".mcp.json").symlink_to(real)
    run(project, "install", "claude-code")
    assert (project / ".mcp.json").is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "limpet" in real.read_text()


def test_an_unknown_client_is_told_which_there_are(project: Path) -> None:
    done = child(project, "install", "emacs")
    assert done.returncode == 2
    assert b"there is no client 'emacs'" in done.stderr
    assert b"claude-code" in done.stderr


def test_any_other_client_is_given_an_entry(project: Path) -> None:
    entry = run(project, "install", "generic")["mcpServers"]["limpet"]
    assert entry["args"][-1] == "mcp"
    assert os.path.basename(entry["command"])
