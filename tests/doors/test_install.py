"""`limpet install` and `uninstall`: every client's files, as people have them, are given back as they were."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from doors import cli_runner
from doors.cli_runner import child
from limpet import clients, errors
from limpet.clients import install as installer
from limpet.clients.edits import SERVER_ARGUMENTS, InstallTarget, has_hooks
from limpet.text import json_spans

yaml: Any = import_module("yaml")  # it has no types

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
YAML = "GOOSE_MODE: auto  # mine\nextensions:\n  # theirs\n  files:\n    cmd: files\n\ntheme: dark\n"
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
            kinds = {".toml": TOML, ".yaml": YAML}
            path.write_text("" if before == "empty" else kinds.get(path.suffix, SETTINGS))


PLACES = [
    (client, scope)
    for client in clients.names()
    for scope in ("--user", "--project-only", "--shared")
    if (scope != "--shared" or clients.find(client).local_files)
    and ("user" if scope == "--user" else "project") in clients.find(client).scopes
]


@pytest.mark.parametrize("before", ["absent", "empty", "plain"])
@pytest.mark.parametrize(("client", "scope"), PLACES)
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
        if path.suffix == ".yaml":
            entry = yaml.safe_load(text)["extensions"]["limpet"]
            assert entry["args"][-3:] == list(SERVER_ARGUMENTS[:-1])
            assert entry["type"] == "stdio"
        if path.suffix == ".toml":
            assert tomllib.loads(text)["mcp_servers"]["limpet"]["args"][-4:] == list(SERVER_ARGUMENTS)
    assert not any(one["changed"] for one in run(project, "install", client, scope)["files"])
    assert (files(project), files(home)) == there
    row = next(row for row in run(project, "status")["clients"] if row["client"] == client)
    assert row["user" if scope == "--user" else "project"] is True
    undone = run(project, "uninstall", client, *(["--user"] if scope == "--user" else []))
    assert (files(project), files(home)) == was
    said = {one["done"] for one in undone["files"] if one["changed"]}
    assert said <= {"removed", "given back as it was before"}
    assert ("removed" in said) is (before == "absent" or client in ("copilot", "opencode"))


@pytest.mark.parametrize("first", ["claude-code", "copilot"])
def test_agents_that_read_the_same_file_share_the_entry_in_it(first: str, project: Path, home: Path) -> None:
    (second,) = {"claude-code", "copilot"} - {first}
    was = files(project), files(home)
    for client in (first, second):
        run(project, "install", client, "--shared")
    run(project, "uninstall", first)
    assert json.loads((project / ".mcp.json").read_text())["mcpServers"]["limpet"]["args"]
    run(project, "uninstall", second)
    assert (files(project), files(home)) == was


LATER = {".toml": "[later]\nx = 1\n", ".yaml": "later: 1\n"}


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
        elif path.suffix in LATER:
            path.write_text(path.read_text() + LATER[path.suffix])
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
            assert text == {".toml": TOML, ".yaml": YAML}[path.suffix] + LATER[path.suffix]


def test_an_older_installation_is_replaced_and_the_way_back_stays(project: Path) -> None:
    path = project / ".mcp.json"
    path.write_text('{"mcpServers": {"files": {"command": "files"}}}')
    run(project, "install", "claude-code", "--shared")
    older = path.read_text().replace('"type": "stdio"', '"type": "stdio", "alwaysLoad": true')
    path.write_text(older)
    run(project, "install", "claude-code", "--shared")
    assert "alwaysLoad" not in path.read_text()
    run(project, "uninstall", "claude-code")
    assert json.loads(path.read_text()) == {"mcpServers": {"files": {"command": "files"}}}


def test_a_file_that_cannot_be_read_is_left_alone(project: Path) -> None:
    path = project / ".mcp.json"
    path.write_text('{"mcpServers": {')
    done = child(project, "install", "claude-code", "--shared")
    assert done.returncode == 2
    assert b".mcp.json was left as it is: line 1" in done.stderr
    assert path.read_text() == '{"mcpServers": {'
    assert not (project / ".claude").exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[mcp_servers\n", "line 1"),
        ('notes = """\nbegun and not ended\n', "Unterminated"),
        ('[mcp_servers.limpet]\ncommand = "mine"\n', "a server `limpet` of its own"),
        ('mcp_servers.limpet.command = "mine"\n', "a server `limpet` of its own"),
        ('mcp_servers = { files = { command = "files" } }\n', "`mcp_servers` on one line"),
    ],
)
def test_toml_that_would_be_none_with_our_table_is_left_alone(text: str, why: str, project: Path, home: Path) -> None:
    """Codex does not start with a file that it cannot read."""
    config = home / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(text)
    refused = in_project(project, "install", "codex", "--user")
    assert refused.code == 2
    assert why in refused.err
    assert files(home) == {".codex/config.toml": text.encode()}


def test_where_one_file_cannot_be_written_none_is_changed(project: Path, home: Path) -> None:
    """A server is told to leave the handoff to hooks: without them nobody would give it."""
    (home / ".claude.json").write_text('{"theme": "dark"}')
    own = project / ".claude" / "settings.local.json"
    before = files(home) | files(project)
    refused = child(project, "install", "claude-code", command=no_file_above(1))
    assert refused.returncode == 2
    assert b"settings.local.json was left as it is: File too large" in refused.stderr
    assert files(home) | files(project) == before

    own.parent.mkdir()
    own.write_text(json.dumps({"env": {"NOTE": "x" * 20_000}}))
    run(project, "install", "claude-code")
    before = files(home) | files(project)
    refused = child(project, "uninstall", "claude-code", command=no_file_above(10))
    assert refused.returncode == 2
    assert files(home) | files(project) == before
    run(project, "uninstall", "claude-code")
    assert files(home) == {".claude.json": b'{"theme": "dark"}'}
    assert b"limpet" not in own.read_bytes()


def no_file_above(kilobytes: int) -> list[str]:
    """The command where no file can be written that is larger."""
    return ["bash", "-c", f'ulimit -f {kilobytes}; exec "$@"', "bash", *cli_runner.COMMAND]


def test_rights_and_links_are_kept(project: Path) -> None:
    real = project / "shared.json"
    real.write_text("{}")
    real.chmod(0o640)
    (project / ".mcp.json").symlink_to(real)
    run(project, "install", "claude-code", "--shared")
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


def test_what_is_for_one_machine_leaves_the_files_of_the_team_alone(project: Path, home: Path) -> None:
    answer = run(project, "install", "claude-code")
    assert sorted(files(project)) == [".claude/settings.local.json"]
    entry = json.loads((home / ".claude.json").read_text())["projects"][str(project)]["mcpServers"]["limpet"]
    assert entry["args"][-4:] == list(SERVER_ARGUMENTS)
    assert not any("Whoever has" in word for word in answer["next"])
    run(project, "uninstall", "claude-code")
    assert any("Whoever has" in word for word in run(project, "install", "claude-code", "--shared")["next"])
    assert sorted(files(project)) == [".claude/settings.json", ".mcp.json"]
    # Both would run their hooks twice.
    again = run(project, "install", "claude-code")
    assert sorted(files(project)) == [".claude/settings.json", ".mcp.json"]
    assert any("other files already" in word for word in again["next"])


def test_files_of_a_team_that_start_another_program_are_brought_up_to_date(project: Path) -> None:
    """Hooks with another command beside ours would run as well."""
    run(project, "install", "claude-code", "--shared")
    config = project / ".claude" / "settings.json"
    (command, *_) = sorted(set(re.findall(r'"command": "(.*?) hook --client', config.read_text())))
    config.write_text(config.read_text().replace(command, "/elsewhere/python -m limpet"))
    again = run(project, "install", "claude-code")
    assert any("other files already" in word for word in again["next"])
    assert sorted(files(project)) == [".claude/settings.json", ".mcp.json"]
    assert "/elsewhere" not in config.read_text()


def test_an_agent_that_writes_its_file_meanwhile_loses_nothing(project: Path, home: Path) -> None:
    config = home / ".claude.json"
    config.write_text("{}")
    target = InstallTarget("user", str(home), ("limpet",), str(home))
    planned = installer.plan_install(clients.find("claude-code"), target)
    config.write_text('{"history": [1]}')
    with pytest.raises(errors.BadInput, match="another program has just changed it"):
        installer.apply_install(planned, str(home / "data"), str(home))
    assert config.read_text() == '{"history": [1]}'
    installer.apply_install(installer.plan_install(clients.find("claude-code"), target), str(home / "data"), str(home))
    planned = installer.plan_uninstall(clients.find("claude-code"), target, str(home / "data"))
    config.write_text(config.read_text().replace("[1]", "[1, 2]"))
    with pytest.raises(errors.BadInput, match="another program has just changed it"):
        installer.apply_uninstall(planned, str(home / "data"), str(home))
    assert "[1, 2]" in config.read_text()


def test_a_hook_that_a_person_only_spoke_of_is_not_an_installed_one(project: Path, home: Path) -> None:
    claude = clients.find("claude-code")
    (home / ".claude.json").write_text('{"history": ["what does limpet hook --client claude-code do?"]}')
    assert not has_hooks(claude, str(project), str(home))
    run(project, "install", "claude-code")
    assert has_hooks(claude, str(project), str(home))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_several_projects_and_the_person_share_a_file_and_each_leaves_alone(
    order: tuple[int, ...], project: Path, home: Path
) -> None:
    other = project.parent / "other"
    (other / ".git").mkdir(parents=True)
    was = b'{\n  "projects": {"/else": {"history": [1]}},\n  "n": 1\n}\n'
    (home / ".claude.json").write_bytes(was)
    places = [(project, ()), (other, ()), (project, ("--user",))]
    for place, scope in places:
        run(place, "install", "claude-code", *scope)
    for place, scope in (places[at] for at in order):
        run(place, "uninstall", "claude-code", *scope)
        left = [
            one
            for one in places
            if one not in [places[at] for at in order[: order.index(places.index((place, scope))) + 1]]
        ]
        text = (home / ".claude.json").read_text()
        assert text.count('"limpet": {') == len(left)
    assert (home / ".claude.json").read_bytes() == was


@pytest.mark.parametrize("scope", [(), ("--user",)], ids=["project", "user"])
def test_what_agents_share_stays_until_the_last_of_them_is_uninstalled(
    project: Path, home: Path, scope: tuple[str, ...]
) -> None:
    place = home if scope else project
    was = files(place)
    for client in ("codex", "cursor", "gemini"):
        run(project, "install", client, *scope, "--skill")
    run(project, "install", "codex", *scope, "--guidance")
    shared = {path for path in files(place) if path.endswith(("SKILL.md", "AGENTS.md"))}
    run(project, "uninstall", "cursor", *scope)
    assert shared <= files(place).keys()
    run(project, "uninstall", "codex", *scope)
    assert {path for path in files(place) if path.endswith("SKILL.md")} == {".agents/skills/limpet/SKILL.md"}
    run(project, "uninstall", "gemini", *scope)
    assert files(place) == was


def test_an_uninstall_says_what_it_did(project: Path) -> None:
    config = project / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(TOML)
    run(project, "install", "codex")
    config.write_text(config.read_text() + "[later]\nx = 1\n")
    said = in_project(project, "uninstall", "codex").out
    assert "config.toml: Limpet's part taken out, the rest left as it is" in said
    assert "hooks.json: removed" in said
    assert "written" not in said
    assert "nothing of Limpet is in it" in in_project(project, "uninstall", "codex").out
    run(project, "install", "codex", "--user")
    assert "It is installed in your home folder: --user." in in_project(project, "uninstall", "codex").out


def test_an_installation_names_the_next_step_and_what_is_on_this_machine_alone(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "limpet"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    for client in clients.names():
        said = in_project(project, "install", client).out
        assert "Next: " in said
        assert "PATH" not in said
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "`limpet` is not on the PATH, so these files start" in in_project(project, "install", "gemini", "--user").out


def test_without_a_name_what_is_on_the_machine_is_found(project: Path, home: Path) -> None:
    (home / ".codex").mkdir()
    (home / ".config" / "goose").mkdir(parents=True)
    was = files(project), files(home)
    said = in_project(project, "install")
    assert said.code == 0
    assert "limpet install codex" in said.out
    assert "limpet install goose" in said.out
    assert (files(project), files(home)) == was
    run(project, "install", "goose")
    rows = {row["client"]: row for row in run(project, "install")["found"]}
    assert rows["goose"]["installed"] is True
    assert rows["goose"]["command"] == ""
    assert rows["codex"]["command"] == "limpet install codex"


def test_on_a_terminal_it_asks_for_each(project: Path, home: Path) -> None:
    (home / ".codex").mkdir()
    (home / ".gemini").mkdir()
    _, said = cli_runner.on_terminal(project, "install", env={"PATH": "/nowhere"}, typed=b"no\nyes\n")
    assert b"Codex CLI? Type yes or no" in said
    assert not (project / ".codex").exists()
    assert (project / ".gemini" / "settings.json").exists()


@pytest.mark.parametrize("client", ["cline", "goose"])
def test_a_client_without_files_in_projects_is_installed_at_home(client: str, project: Path, home: Path) -> None:
    was = files(project)
    assert run(project, "install", client)["scope"] == "user"
    assert files(project) == was
    refused = in_project(project, "install", client, "--project-only")
    assert "has no configuration in projects" in refused.err
    assert "has no configuration in projects" in in_project(project, "install", client, "--shared").err
    run(project, "uninstall", client)
    assert files(home) == {}


@pytest.mark.parametrize(
    "text",
    [
        "extensions: {files: {cmd: x}}\n",
        '{"extensions": {"files": {"cmd": "x"}}}',
        "extensions: [\n",
        "# mine\n{}\n",
        "--- {}\n",
        "a: 1\n...\n",
        "  a: 1\n",
        "extensions:\n\tfiles:\n\t\tcmd: x\n",
        "extensions:\n  {files: {cmd: x}}\n",
    ],
)
def test_yaml_that_cannot_be_edited_by_lines_is_left_alone(text: str, project: Path, home: Path) -> None:
    config = home / ".config" / "goose" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(text)
    refused = in_project(project, "install", "goose")
    assert refused.code == 2
    assert "was left as it was" in refused.err or "was left as it is" in refused.err
    assert config.read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        *(
            YAML,
            YAML.replace("\n", "\r\n"),
            "extensions:\n    a:\n        cmd: x\n",
            "extensions:   # all\n",
            "a: 1",
            "",
        ),
        "extensions:\n    # theirs\n    a:\n        cmd: x\n",
        "extensions:\n# theirs\n    a:\n        cmd: x\n",
        "extensions:",
        "\ufeffextensions:\n  a:\n    cmd: x\n",
        "'extensions':\n  a:\n    cmd: x\n",
        '"extensions":\n  a:\n    cmd: x\n',
        'a: "x\u2028extensions:\u2028y"\n',
    ],
)
def test_yaml_is_read_as_before_with_one_entry_more(text: str, project: Path, home: Path) -> None:
    config = home / ".config" / "goose" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_bytes(text.encode())
    run(project, "install", "goose")
    before, after = yaml.safe_load(text) or {}, yaml.safe_load(config.read_text())
    entry = after["extensions"].pop("limpet")
    assert entry["cmd"]
    assert after["extensions"] == (before.get("extensions") or {})
    config.write_bytes(config.read_bytes() + b"\n")  # so that the bytes from before cannot simply be put back
    run(project, "uninstall", "goose")
    left = (yaml.safe_load(config.read_text()) if config.exists() else None) or {}
    assert left.get("extensions") == (before.get("extensions") or left.get("extensions"))
    assert "limpet" not in (left.get("extensions") or {})


def test_an_entry_that_goose_wrote_again_in_its_own_way_is_still_there(project: Path, home: Path) -> None:
    config = home / ".config" / "goose" / "config.yaml"
    run(project, "install", "goose")
    held = yaml.safe_load(config.read_text())
    held["extensions"]["limpet"] |= {"bundled": None, "env_keys": [], "available_tools": ["recall"]}
    again = yaml.safe_dump(held)
    assert "- mcp\n" in again
    config.write_text(again)
    (row,) = (row for row in run(project, "status")["clients"] if row["client"] == "goose")
    assert row["user"] is True
    run(project, "install", "goose")
    assert config.read_text() == again
    held["extensions"]["limpet"]["args"].append("--other")
    config.write_text(yaml.safe_dump(held))
    run(project, "install", "goose")
    assert "--other" not in config.read_text()
    run(project, "uninstall", "goose")
    assert not config.exists()


def test_lines_that_people_put_into_our_entry_go_with_it_and_comments_after_it_stay(project: Path, home: Path) -> None:
    config = home / ".config" / "goose" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("extensions:\n  files:\n    cmd: x\n")
    run(project, "install", "goose")
    config.write_text(
        config.read_text().replace("    type: stdio\n", "    type: stdio\n\n # odd\n    envs:\n      A: b\n")
    )
    config.write_text(config.read_text().replace("  files:", "    # theirs\n  files:"))
    run(project, "uninstall", "goose")
    assert config.read_text() == "extensions:\n    # theirs\n  files:\n    cmd: x\n"


def test_vs_code_gets_an_entry_of_its_own_kind(project: Path) -> None:
    run(project, "install", "vscode")
    written = json.loads((project / ".vscode" / "mcp.json").read_text())
    assert list(written) == ["servers"]
    entry = written["servers"]["limpet"]
    assert set(entry) == {"type", "command", "args"}
    assert entry["type"] == "stdio"
    assert "--no-handoff" not in entry["args"], "it has no hooks that would give it"


def test_cursor_gets_events_and_members_that_it_knows(project: Path) -> None:
    """One unknown name makes Cursor refuse the whole file."""
    run(project, "install", "cursor")
    written = json.loads((project / ".cursor" / "hooks.json").read_text())
    assert written["version"] == 1
    known = {
        *("sessionStart", "sessionEnd", "beforeSubmitPrompt", "preToolUse", "postToolUse", "postToolUseFailure"),
        *("subagentStart", "subagentStop", "beforeShellExecution", "afterShellExecution", "beforeMCPExecution"),
        *("afterMCPExecution", "beforeReadFile", "afterFileEdit", "preCompact", "stop", "afterAgentResponse"),
    }
    assert set(written["hooks"]) <= known
    for hooks in written["hooks"].values():
        assert all(set(hook) <= {"command", "matcher", "timeout", "failClosed"} for hook in hooks)
