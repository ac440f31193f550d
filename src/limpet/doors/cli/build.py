"""How a command is made: its help from the operation it stands for, an example, and the options every command takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from limpet import prompts
from limpet.doors.cli.commands import COMMANDS
from limpet.doors.cli.context import State

Function = Callable[..., Any]
MARK = "\0"  # no argument of a process can hold it
pass_state = click.make_pass_decorator(State, ensure=True)


class _Number(click.ParamType[Any]):
    """A whole number. What is none goes to the operation as it is, which refuses it in the words of every door."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return int(value)
        except ValueError:
            return value


NUMBER = _Number()


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value is not None and param.name is not None:
        setattr(ctx.ensure_object(State), param.name, _unmarked(value))


def shared_options(*, session: bool = True) -> list[click.Parameter]:
    """The options that may stand before the command and after it; the last one counts."""
    options: list[click.Parameter] = [
        _shared("--store", "PLACE", "A path or a postgresql:// address. Otherwise that of the project you are in."),
        _shared("--project", "NAME", "The project, in a store that holds several."),
        _shared("--session", "ID", "The session. Notes are looked for in every session unless you name one."),
        _shared("--json", None, "Answer in one line of JSON; errors too, on standard error."),
    ]
    return options if session else [option for option in options if option.name != "session"]


def _shared(name: str, metavar: str | None, words: str) -> click.Option:
    if metavar is None:
        return click.Option(
            [name], is_flag=True, default=None, expose_value=False, callback=_remember, help=words, required=False
        )
    return click.Option([name], metavar=metavar, expose_value=False, callback=_remember, help=words)


class Command(click.Command):
    """A command whose help keeps its own options apart from those that every command takes."""

    shared: tuple[click.Parameter, ...] = ()
    operations: tuple[str, ...] = ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """People write lists: "- [ ] casts" is a text, though click would take it for an option."""
        marked = [f"{MARK}{word}" if word[:1] == "-" and word[1:2].isspace() else word for word in args]
        try:
            rest = super().parse_args(ctx, marked)
        except click.UsageError as problem:
            raise click.UsageError(problem.format_message().replace(MARK, ""), problem.ctx) from None
        ctx.params = {name: _unmarked(value) for name, value in ctx.params.items()}
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_options(self, ctx, formatter, self.shared)


def _unmarked(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_unmarked, value))
    return value.removeprefix(MARK) if isinstance(value, str) else value


class Group(click.Group):
    """A noun, or the whole program."""

    shared: tuple[click.Parameter, ...] = ()
    path: str = ""  # the words before its commands

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_options(self, ctx, formatter, self.shared)
        self.format_commands(ctx, formatter)


def _write_options(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter, shared: tuple[click.Parameter, ...]
) -> None:
    parts: dict[str, list[tuple[str, str]]] = {"Options": [], "Options of every command": []}
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
        if record is not None:
            parts["Options of every command" if param in shared else "Options"].append(record)
    for title, records in parts.items():
        if records:
            with formatter.section(title):
                formatter.write_dl(records)


def group(parent: click.Group | None, name: str, words: str) -> Group:
    made = Group(name, help=words, short_help=words)
    if parent is None:
        made.shared = tuple(shared_options())
        made.params.extend(made.shared)
    else:
        parent.add_command(made)
        made.path = f"{getattr(parent, 'path', '')} {name}".strip()
    return made


def command(
    parent: click.Group, name: str, example: str, words: str = "", *, session: bool = False
) -> Callable[[Function], Command]:
    """Make a function a command. Its help is that of its operation, then `words`, then the example."""
    path = f"{getattr(parent, 'path', '')} {name}".strip()
    operations = COMMANDS.get(path, ())
    described = prompts.tool(operations[0]).description if operations else ""
    lines = "\n".join(f"  {line}" for line in example.split("\n"))
    help_text = f"{' '.join(part for part in (described, words) if part)}\n\n\b\nExample:\n{lines}"

    def make(function: Function) -> Command:
        made = click.command(name, cls=Command, help=help_text, short_help=_first_sentence(described or words))(
            function
        )
        made.operations = operations
        made.shared = tuple(shared_options(session=session))
        made.params.extend(made.shared)
        parent.add_command(made)
        return made

    return make


def _first_sentence(words: str) -> str:
    return f"{words.partition('. ')[0].rstrip('.')}."
