"""The command line and the operations fit together: nothing an agent can do is out of a person's reach."""

from __future__ import annotations

import inspect
from typing import Any, cast

import click
import pytest

from limpet.catalogue.operation import Operation
from limpet.catalogue.table import COMMANDS, OPERATIONS
from limpet.doors import cli
from limpet.doors.cli import click_program, commands
from limpet.doors.cli.click_program import program
from limpet.doors.cli.commands import Parameter
from limpet.doors.cli.plain import filled
from limpet.doors.cli.replies import RENDERERS, show
from limpet.doors.cli.run import Invocation


def by_words(group: click.Group | None = None, before: str = "") -> dict[str, click_program.ClickCommand]:
    """Every command by the words one types."""
    found: dict[str, click_program.ClickCommand] = {}
    for name, part in (group or program()).commands.items():
        if isinstance(part, click.Group):
            found |= by_words(part, f"{before}{name} ")
        else:
            assert isinstance(part, click_program.ClickCommand)
            found[before + name] = part
    return found


ALL = by_words()


def test_every_operation_has_a_command() -> None:
    assert [operation.name for operation in OPERATIONS.values() if not operation.commands] == []
    assert set(COMMANDS) <= set(ALL)
    assert set(RENDERERS) <= set(OPERATIONS)  # the others are drawn as they are


def test_the_commands_are_those_that_were_asked_for() -> None:
    assert set(ALL) - set(COMMANDS) == {
        *(
            "init",
            "mcp",
            "serve",
            "export",
            "import",
            "backup",
            "doctor",
            "index",
            "tools",
            "context",
            "completion",
            "demo",
        ),
        *("output keep", "wrap", "install", "uninstall", "status", "gateway", "hook", "on", "off"),
        *("messages", "note show", "note edit", "memory edit", "handoff list", "store distribute"),
        *("trust", "untrust", "project list", "project show", "project where"),
        *("project adopt", "project split", "project forget"),
        *("token create", "token list", "token revoke", "token history", "dashboard", "restore"),
    }


def test_every_command_has_one_heading() -> None:
    listed = [name for names in commands.HEADINGS.values() for name in names]
    assert sorted(listed) == sorted({path.split()[0] for path in ALL})
    for heading, names in commands.HEADINGS.items():
        assert {row.words.split()[0] for row in commands.under(heading)} == set(names)


def test_a_command_says_what_it_does_and_gives_an_example() -> None:
    for path, part in ALL.items():
        assert part.help is not None
        words, _, example = part.help.partition("\n\n\b\nExample:\n")
        assert f"limpet {path}" in example, path
        assert words.strip().endswith((".", ".)")), path
        assert part.get_short_help_str(200).endswith("."), path
        if path in COMMANDS and not part.row.own_words:
            assert words.startswith(COMMANDS[path].description()), path
        for param in part.params:
            assert not isinstance(param, click.Option) or param.help, f"{path}: {param.name} has no help"


def test_the_options_of_every_command_are_there() -> None:
    # A session is only taken where it means something: an option that does nothing misleads.
    takes = {
        "messages",
        "memory edit",
        "recall",
        "context",
        "mcp",
        "serve",
        "output keep",
        "savings",
        "purge",
        "wrap",
        "gateway",
        "import",
    } | {path for path, operation in COMMANDS.items() if operation.in_session}
    by_id = {"note edit", "note update", "note delete", "memory pin", "memory unpin", "session begin"}
    by_id |= {"state get", "state keys"}
    for path, part in ALL.items():
        names = {option for param in part.params for option in param.opts}
        assert names >= {"--store", "--project", "--json"}, path
        assert ("--session" in names) == (path in takes - by_id), path


def test_every_parameter_of_an_operation_can_be_given() -> None:
    given_otherwise = {
        "content": "text",
        "replace_all": "everywhere",
        "session_id": "session",
        "code": "file",
        "this_session": "session",
    }
    together = ("pad append", "pad prepend", "pad edit", "prompt append", "prompt prepend", "prompt edit")
    for path, operation in COMMANDS.items():
        # These are one operation together; test_cli.py, test_cli_layers.py and test_cli_journal.py run each of them.
        if path in together or path.startswith("state ") or operation.name == "update_journal":
            continue
        names = {param.name for param in ALL[path].params} | set(ALL[path].row.fixed)
        for param in operation.params:
            other = given_otherwise.get(param.name, param.name)
            assert {param.name, other} & names, f"{path} cannot be given {param.name}"


def test_every_function_of_a_command_takes_its_values() -> None:
    for path, part in ALL.items():
        names = [param.name for param in part.row.params if param.kind != commands.CONFIRM]
        invocation = [] if part.row.standalone else [Invocation()]
        inspect.signature(commands.function(part.row)).bind(*invocation, **dict.fromkeys(names))
        assert part.row.run or path in COMMANDS, path


def sample(param: Parameter) -> list[str]:
    """Words that give a parameter."""
    kinds = {
        commands.NUMBER: "7",
        commands.COUNT: "7",
        commands.CHOICE: next(iter(param.choices), ""),
        commands.FILE: "-",
    }
    value = kinds.get(param.kind, "x" if param.kind in (commands.PATH, commands.FOLDER) else "- [ ] x")
    flag = param.flags.partition("/")[0]
    if param.kind in commands.VALUELESS:
        return [flag]
    many = 2 if param.kind in (commands.LIST, commands.REST) else 1
    return ([flag, value] if flag else [value]) * many


def by_click(words: list[str], path: str) -> tuple[Invocation, dict[str, Any]]:
    cli = Invocation()
    context = ALL[path].make_context(path, words, obj=cli)
    return cli, context.params


@pytest.mark.parametrize("full", [False, True])
def test_commands_are_read_as_click_reads_them(full: bool) -> None:
    for path, part in ALL.items():
        params = [param for param in part.row.params if full or param.required or param.kind == commands.CONFIRM]
        options = [word for param in params if param.flags for word in sample(param)]
        arguments = [word for param in params if not param.flags for word in sample(param)]
        everywhere = ["--store", "/x", "--json", "--project=p"] if full else []
        words = [*options, *arguments, *everywhere]
        recognised = commands.recognise([*path.split(), *words])
        cli, expected = by_click(words, path)
        if any(param.kind in (commands.FILE, commands.FOLDER) for param in params):
            assert recognised is None, path  # click looks whether it is there
            continue
        assert recognised is not None, path
        assert recognised[2] == expected, path
        assert recognised[0].words == path
        common = {"store": cli.store, "json": cli.json, "project": cli.project}
        assert recognised[1] == {name: value for name, value in common.items() if value}, path


def test_an_operation_that_nobody_declared_a_command_for_gets_one() -> None:
    root = program({**COMMANDS, "thing mend": OPERATIONS["spawn_session"], "things": OPERATIONS["list_tags"]})
    part = by_words(root)["thing mend"]
    with pytest.raises(click.UsageError, match="No such option '--notes'"):
        part.make_context("mend", ["find out", "--notes", "x"], obj=Invocation())
    options = ["--note", "a", "--note", "b", "--token-limit", "7", "--copy-notepad", "--session", "s"]
    context = part.make_context("mend", ["find out", *options], obj=Invocation())
    assert context.params == {
        "task": "find out",
        "copy_notepad": True,
        "notes": ("a", "b"),
        "references": (),
        "token_limit": 7,
        "model": None,
    }
    assert context.obj.session == "s"
    listed = root.get_help(click.Context(root, info_name="limpet"))
    assert "More:" in listed
    assert OPERATIONS["spawn_session"].description().split(".")[0] in str(part.help)


def test_such_a_command_is_read_without_click_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cast(dict[str, Operation], COMMANDS), "thing mend", OPERATIONS["spawn_session"])
    recognised = commands.recognise(["thing", "mend", "find out", "--note", "a", "--copy-notepad", "--session=s"])
    assert recognised is not None
    command, shared, values = recognised
    assert (command.words, command.example) == ("thing mend", "limpet thing mend TASK")
    assert shared == {"session": "s"}
    assert values == {
        "task": "find out",
        "copy_notepad": True,
        "notes": ("a",),
        "references": (),
        "token_limit": None,
        "model": None,
    }


def test_a_declaration_repeats_nothing_that_the_row_says() -> None:
    for heading in commands.HEADINGS:
        for row in commands.under(heading):
            if isinstance(row, commands.Group) or row.run or row.params is None:
                continue
            asked = commands.Command(row.words, row.example, session=row.session, fixed=row.fixed)
            if any(isinstance(param, Parameter) for param in row.params):
                continue
            names = [param.name for param in filled(asked).params]
            assert list(row.params) != names, f"{row.words}: leave params out, they are those of the row"


def test_a_reply_that_nobody_draws_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    reply = {"count": 2, "name": "n", "rows": [{"id": "a", "text": "x\x1b[2J"}, {"id": "b"}]}
    assert show(Invocation(), "new_operation", reply, {}) == 0
    assert capsys.readouterr().out == "count: 2\nname: n\na\tx\\x1b[2J\nb\t\n"


@pytest.mark.parametrize("client", [[], ["--client", "codex"], ["--client", "-x"], ["--client=codex"], ["--client"]])
@pytest.mark.parametrize("event", [[], ["stop"], ["-h"], ["--", "stop"], ["stop", "stop"], ["- x"]])
def test_a_hook_is_recognised_without_the_table_as_the_table_says(client: list[str], event: list[str]) -> None:
    words = ["hook", *client, *event]
    hook, recognised = cli._hook(words), commands.recognise(words)
    usual = client in ([], ["--client", "codex"]) and event == ["stop"]
    assert (hook is not None) or not usual
    if hook is not None:
        assert recognised is not None
        assert recognised[0].standalone
        assert recognised[2] == {"client": hook[0], "event": hook[1]}
