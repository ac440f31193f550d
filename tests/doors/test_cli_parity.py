"""The command line and the operations fit together: nothing an agent can do is out of a person's reach."""

from __future__ import annotations

import click
import pytest

from limpet import prompts
from limpet.catalogue.table import OPERATIONS
from limpet.doors.cli import build
from limpet.doors.cli.app import program
from limpet.doors.cli.commands import COMMANDS


def commands(group: click.Group | None = None, before: str = "") -> dict[str, build.Command]:
    """Every command by the words one types."""
    found: dict[str, build.Command] = {}
    for name, command in (group or program()).commands.items():
        if isinstance(command, click.Group):
            found |= commands(command, f"{before}{name} ")
        else:
            assert isinstance(command, build.Command)
            found[before + name] = command
    return found


ALL = commands()


def test_every_operation_has_a_command() -> None:
    assert set(OPERATIONS) == {name for names in COMMANDS.values() for name in names}


def test_every_command_of_the_table_exists_and_stands_for_that_operation() -> None:
    assert {path: command.operations for path, command in ALL.items() if command.operations} == COMMANDS


def test_the_commands_are_those_that_were_asked_for() -> None:
    assert set(ALL) - set(COMMANDS) == {
        *("init", "mcp", "serve", "export", "import", "backup", "doctor", "tools", "context", "completion", "demo"),
        *("output keep", "wrap", "install", "uninstall", "status", "gateway", "hook", "on", "off"),
        *("token create", "token list", "token revoke", "token history", "dashboard", "restore"),
    }


@pytest.mark.parametrize("path", sorted(ALL))
def test_a_command_says_what_it_does_and_gives_an_example(path: str) -> None:
    command = ALL[path]
    assert command.help is not None
    words, _, example = command.help.partition("\n\n\b\nExample:\n")
    assert f"limpet {path}" in example
    assert words.strip().endswith((".", ".)"))
    assert command.get_short_help_str(200).endswith(".")
    if path in COMMANDS:
        assert words.startswith(prompts.tool(COMMANDS[path][0]).description)
    for param in command.params:
        assert not isinstance(param, click.Option) or param.help, f"{path}: {param.name} has no help"


@pytest.mark.parametrize("path", sorted(ALL))
def test_the_options_of_every_command_are_there(path: str) -> None:
    names = {option for param in ALL[path].params for option in param.opts}
    assert names >= {"--store", "--project", "--json"}
    # A session is only taken where it means something: an option that does nothing misleads.
    takes = {"context", "mcp", "serve", "output keep", "savings", "purge", "wrap", "gateway", "import"} | {
        name for name, operations in COMMANDS.items() if OPERATIONS[operations[0]].in_session
    }
    by_id = {"note update", "note delete", "memory pin", "memory unpin", "session begin", "state get", "state keys"}
    assert ("--session" in names) == (path in takes - by_id)


@pytest.mark.parametrize("path", sorted(COMMANDS))
def test_every_parameter_of_an_operation_can_be_given(path: str) -> None:
    given_otherwise = {
        "content": "text",
        "mode": "append",  # memory write --append
        "replace_all": "everywhere",
        "expected_version": "version",
        "session_id": "session",
        "line": "line",
        "pinned": "",  # pin and unpin
        "code": "file",
        "operation": "",  # append, prepend and edit
        "id": "id",
        "state": "standing",
    }
    names = {param.name for param in ALL[path].params}
    if path in ("pad append", "pad prepend", "pad edit", "prompt append", "prompt prepend", "prompt edit"):
        return  # together they are update_notepad and edit_system_prompt; test_cli.py runs each of its operations
    if path.startswith("state "):
        return  # together they are agent_state; test_cli_layers.py runs each of its actions
    if path in ("pad append", "pad prepend", "pad edit"):
        return  # together they are update_notepad; test_cli.py runs each of its operations
    if COMMANDS[path] == ("update_notes",):
        return  # each takes what its section has; test_cli_journal.py runs them
    for param in OPERATIONS[COMMANDS[path][0]].params:
        other = given_otherwise.get(param.name, param.name)
        assert not other or {param.name, other} & names, f"{path} cannot be given {param.name}"
