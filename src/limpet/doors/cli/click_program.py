"""The click program, built from the declarations: help, completion, and what is wrong with a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ZshComplete

from limpet import __version__
from limpet.catalogue.late import LateModule
from limpet.catalogue.operation import Operation
from limpet.catalogue.table import COMMANDS
from limpet.doors.cli import commands, render
from limpet.doors.cli.commands import Misuse, Parameter, as_number, function, is_option, shared
from limpet.doors.cli.plain import filled
from limpet.doors.cli.run import Invocation

if TYPE_CHECKING:
    from limpet.doors.cli import completion as completion_values
else:  # it loads what it completes from, which help does not need
    completion_values = LateModule("doors.cli.completion")

MARK = "\0"  # no argument of a process can hold it
INTERRUPTED = 130
COMPLETE_VARIABLE = "_LIMPET_COMPLETE"  # the name click derives from the program's
ABOUT = """Working memory for AI agents: notes, notepad, memory and handoff that outlive the context window.

\b
Start here:
  limpet demo          see what it does, in a minute
  limpet init          make a store for the project you are in
  limpet serve         let agents in over HTTP; `limpet mcp` is for clients that start it themselves
  limpet COMMAND -h    what a command does, with an example
"""


# --- running ----------------------------------------------------------------------------------------------------------


def run(args: list[str], cli: Invocation, *, as_json: bool) -> int:
    """The exit code of the command that the arguments name, or of the help they ask for."""
    try:
        code = program().main(args, prog_name="limpet", standalone_mode=False, obj=cli)
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as problem:
        return _show(problem, as_json=as_json)
    return code if isinstance(code, int) else 0


def refuse(command: commands.Command, message: str, *, as_json: bool) -> int:
    """Show a mistake that the command found itself, with its usage."""
    root = program()
    context = click.Context(root, info_name="limpet", **root.context_settings)
    for word in command.words.split():
        part = context.command.commands[word] if isinstance(context.command, click.Group) else root
        context = click.Context(part, parent=context, info_name=word)
    return _show(click.UsageError(message, context), as_json=as_json)


def _show(problem: click.ClickException, *, as_json: bool) -> int:
    if as_json:
        render.to_stderr(render.as_json({"error": {"code": "usage", "message": problem.format_message()}}))
    else:
        problem.show()
    return problem.exit_code


def completion(cli: Invocation, shell: str) -> None:
    scripts = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
    render.to_stdout(scripts[shell](program(), {}, "limpet", COMPLETE_VARIABLE).source())


# --- building ---------------------------------------------------------------------------------------------------------


def program(operations: Mapping[str, Operation] = COMMANDS) -> ClickGroup:
    """Every declared command below one root, and one for each further operation that has words."""
    root = ClickGroup("limpet", help=ABOUT, short_help=ABOUT)
    root.params.extend(root.shared)
    root.context_settings = {"help_option_names": ["-h", "--help"]}
    root.params.append(_version_option())
    groups = {"": root}
    for row in commands.every():
        parent, _, name = row.words.rpartition(" ")
        if isinstance(row, commands.Group):
            groups[row.words] = ClickGroup(name, help=row.help, short_help=row.short_help)
            groups[parent].add_command(groups[row.words])
            _run_alone(groups[row.words], row.default)
        else:
            groups[parent].add_command(ClickCommand(row, name, operations.get(row.words)))
    for words in operations.keys() - {row.words for row in commands.every()}:
        group, _, name = words.rpartition(" ")
        if group not in groups:
            groups[group] = ClickGroup(group)
            root.add_command(groups[group])
        row = filled(commands.Command(words, ""), operations[words], with_help=True)
        groups[group].add_command(ClickCommand(row, name, operations[words]))
    return root


def _run_alone(group: ClickGroup, default: str) -> None:
    """Run one of the group's commands when nothing follows its word."""
    if not default:
        return
    group.invoke_without_command = True
    group.no_args_is_help = False

    @click.pass_context
    def alone(context: click.Context) -> None:
        if context.invoked_subcommand is None:
            context.invoke(group.commands[default])

    group.callback = alone


# What people type, and the command that does it: at the top, and among the words after a group.
MEANT = {
    **dict.fromkeys(("add", "remember", "new"), "note add"),
    **dict.fromkeys(("search", "find", "ask", "query"), "recall"),
    **dict.fromkeys(("list", "ls", "notes"), "note list"),
    **dict.fromkeys(("get", "show", "cat"), "memory show"),
    **dict.fromkeys(("delete", "remove", "rm"), "note delete"),
}
SAME_MEANING = (
    ("show", "read", "get", "cat", "view", "print"),
    ("write", "add", "set", "put", "save", "new", "create"),
    ("list", "ls", "all", "keys"),
    ("delete", "remove", "rm", "forget"),
    ("search", "find", "query"),
)


def _version_option() -> click.Option:
    about = "Show the version and exit."
    return click.Option(
        ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help=about
    )


def _show_version(ctx: click.Context, _option: click.Parameter, is_given: bool) -> None:
    if is_given and not ctx.resilient_parsing:
        render.to_stdout(f"limpet {__version__}")
        ctx.exit()


def _show_help(ctx: click.Context, _option: click.Parameter, is_given: bool) -> None:
    if is_given and not ctx.resilient_parsing:
        render.to_stdout(ctx.get_help())
        ctx.exit()


class _WithHelp(click.Command):
    """Prints its help as every answer is printed: click itself does not say that a disk is full."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _show_help
        return option


class ClickCommand(_WithHelp):
    """A declared command. Its help is that of its operation, then its own, then the example."""

    def __init__(self, row: commands.Command, name: str, operation: Operation | None) -> None:
        description = operation.description() if operation and not row.own_words else ""
        example = "\n".join(f"  {line}" for line in row.example.split("\n"))
        about = " ".join(part for part in (description, row.help) if part)
        self.row = row
        self.shared = tuple(_remembered(param, _completer(row, param)) for param in shared(row))
        super().__init__(
            name,
            help=f"{about}\n\n\b\nExample:\n{example}",
            short_help=f"{(description or row.help).partition('. ')[0].rstrip('.')}.",
            params=[*(_parameter(param, _completer(row, param)) for param in row.params), *self.shared],
            callback=_callback(row),
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """People write lists: "- [ ] casts" is a text, though click would take it for an option."""
        marked = [f"{MARK}{word}" if word[:1] == "-" and word[1:2] and not is_option(word) else word for word in args]
        try:
            rest = super().parse_args(ctx, marked)
        except click.UsageError as problem:
            raise click.UsageError(problem.format_message().replace(MARK, ""), problem.ctx) from None
        ctx.params = {name: _unmarked(value) for name, value in ctx.params.items()}
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_options(self, ctx, formatter, self.shared)


class ClickGroup(_WithHelp, click.Group):
    """A word that others follow, or the whole program, whose commands are listed under headings."""

    def __init__(self, name: str, **settings: Any) -> None:
        super().__init__(name, **settings)
        whole = commands.Command("limpet", "")
        self.shared = tuple(_remembered(param, _completer(whole, param)) for param in shared())

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the words name. For a word of the same meaning, the mistake names the command."""
        if args and args[0] not in self.commands and (meant := self._meant(ctx, args[0])):
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{meant}'?")
        return super().resolve_command(ctx, args)

    def _meant(self, ctx: click.Context, word: str) -> str:
        if ctx.parent is None:
            return MEANT.get(word, "")
        same = next((words for words in SAME_MEANING if word in words), ())
        return next((f"{self.name} {verb}" for verb in same if verb in self.commands), "")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_options(self, ctx, formatter, self.shared)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if ctx.parent is not None:
            super().format_commands(ctx, formatter)
            return
        room = formatter.width - 6 - max(map(len, self.commands))
        headed = {name for names in commands.HEADINGS.values() for name in names}
        for heading, names in {**commands.HEADINGS, "more": sorted(self.commands.keys() - headed)}.items():
            if names:
                with formatter.section(heading.replace("_", " ").capitalize()):
                    rows = {name: commands.BRIEFLY.get(name) for name in names}
                    formatter.write_dl(
                        [(name, rows[name] or self.commands[name].get_short_help_str(room)) for name in names]
                    )


def _callback(row: commands.Command) -> Callable[..., int | None]:
    @click.pass_context
    def call(context: click.Context, /, **values: Any) -> int | None:
        if row.standalone:
            return function(row)(**values)
        cli = context.ensure_object(Invocation)
        cli.command = row
        try:
            return function(row)(cli, **values)
        except Misuse as problem:
            raise click.UsageError(str(problem), context) from None

    return call


class _Number(click.ParamType[Any]):
    """An integer. Anything else goes to the operation as it is, which refuses it in its own words."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return as_number(value) if isinstance(value, str) else value


_NUMBER = _Number()


Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
OWN_COMPLETION = (commands.PATH, commands.FILE, commands.FOLDER, commands.CHOICE)  # click and the shell do it


def _completer(row: commands.Command, param: Parameter) -> Completer | None:
    if param.kind in OWN_COMPLETION:
        return None
    return lambda ctx, option, incomplete: completion_values.complete(
        row, param.name, ctx.find_object(Invocation), incomplete
    )


def _parameter(param: Parameter, complete: Completer | None) -> click.Parameter:
    if param.kind == commands.CONFIRM:
        confirmed = click.confirmation_option(param.flags, prompt=param.help)(lambda: None)
        return confirmed.__click_params__[0]  # type: ignore[attr-defined,no-any-return]
    default = {} if param.default is None else {"default": param.default}
    if not param.flags:
        nargs = -1 if param.kind == commands.REST else 1
        return click.Argument(
            [param.name],
            type=_type(param),
            nargs=nargs,
            required=param.required,
            metavar=param.metavar or None,
            shell_complete=complete,
            **default,
        )
    names = [param.flags, param.name]
    if param.kind == commands.FLAG and param.value is True:
        return click.Option(names, is_flag=True, help=param.help)
    if param.kind == commands.FLAG:
        return click.Option(names, flag_value=param.value, default=None, help=param.help)
    if param.kind == commands.SWITCH:
        return click.Option(names, default=None, help=param.help)
    return click.Option(
        names,
        type=_type(param),
        multiple=param.kind == commands.LIST,
        metavar=param.metavar or None,
        help=param.help,
        required=param.required,
        shell_complete=complete,
        **default,
    )


def _type(param: Parameter) -> click.ParamType[Any] | None:
    types: dict[str, Callable[[], click.ParamType[Any]]] = {
        commands.NUMBER: lambda: _NUMBER,
        commands.COUNT: lambda: click.IntRange(param.low, param.high),
        commands.CHOICE: lambda: click.Choice(param.choices),
        commands.PATH: click.Path,
        commands.FILE: lambda: click.Path(exists=True, dir_okay=False, allow_dash=True),
        commands.FOLDER: lambda: click.Path(file_okay=False),
        commands.REST: lambda: click.UNPROCESSED,
    }
    return types[param.kind]() if param.kind in types else None


def _remembered(param: Parameter, complete: Completer | None) -> click.Option:
    """An option every command takes; its value goes to the invocation."""

    def remember(ctx: click.Context, option: click.Parameter, value: Any) -> None:
        if value is not None:
            ctx.ensure_object(Invocation).take({param.name: _unmarked(value)})

    is_flag = param.kind == commands.FLAG
    return click.Option(
        [param.flags],
        is_flag=is_flag or None,
        default=None,
        metavar=param.metavar or None,
        expose_value=False,
        callback=remember,
        shell_complete=complete,
        help=param.help,
    )


def _unmarked(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_unmarked, value))
    return value.removeprefix(MARK) if isinstance(value, str) else value


def _write_options(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter, common: tuple[click.Option, ...]
) -> None:
    sections: dict[str, list[tuple[str, str]]] = {"Options": [], "Options of every command": []}
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
        if record is not None:
            sections["Options of every command" if param in common else "Options"].append(record)
    for title, records in sections.items():
        if records:
            with formatter.section(title):
                formatter.write_dl(records)
