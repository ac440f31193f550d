"""Commands that are one call of one operation: their parameters out of its row in the table, and the call.

A declaration in commands/ says what is different for people: an example, an argument that is read from standard input,
an option with another name. All else is read from the row, so that a new operation has a command with its first row.
"""

from __future__ import annotations

import sys

from limpet import prompts
from limpet.catalogue.operation import Operation, Param
from limpet.catalogue.table import COMMANDS
from limpet.doors.cli import replies
from limpet.doors.cli.commands import (
    ARGUMENT,
    BY_ID,
    FLAG,
    LINE,
    LINES,
    LIST,
    MOST_WORDS,
    NUMBER,
    READING,
    REST,
    TEXT,
    WRITING,
    Command,
    Parameter,
)
from limpet.doors.cli.run import BY, Invocation
from limpet.light import Any
from limpet.model import AGENT, PERSON
from limpet.redaction import Masking

SESSION = "session"  # a parameter that --session fills
KINDS = {"integer": NUMBER, "boolean": FLAG, "strings": LIST}
# Options that have another name than their parameter. A list is given one by one: --tag, not --tags.
FLAGS = {
    "before_seq": "--before",
    "expected_version": "--if-version",
    "include_archived": "--all",
    "include_done": "--all",
}
REWRITES = ("write_notepad", "update_notepad", "restore_notepad")  # an agent's plan, which a person may not mean
# Help for parameters that agents need no words about.
WORDS = {
    "before_seq": "Only changes before this one",
    "bytes": "A range of bytes",
    "chars": "A range of characters",
    "columns": "Only this column",
    "expected_version": "Only if this is still its version",
    "include_archived": "Archived sessions too",
    "include_done": "Finished notes too",
    "key": "Only this note, memory key or session",
    "limit": "At most so many",
    "line": "The line of work, if there are several",
    "regex": "Take the text of --match for a regular expression",
    "tags": "With this tag",
    "this_session": "Only of the session you name",
    "until": "Before this moment",
}


# --- parameters -------------------------------------------------------------------------------------------------------


def filled(command: Command, operation: Operation | None = None, *, with_help: bool = False) -> Command:
    """The command with everything that its declaration leaves to the row. Reading the words of its help takes time."""
    operation = operation or COMMANDS[command.words]
    rows = {param.name: param for param in operation.params}
    # --session is the session an operation works in, or else the parameter of that name.
    asks = SESSION in rows and not operation.in_session and command.session is not False
    declared: tuple[Parameter | str, ...] | None = command.params
    if declared is None:
        declared = tuple(name for name in rows if name not in command.fixed and not (asks and name == SESSION))
    params = tuple(
        _parameter(operation, rows[param], with_help=with_help) if isinstance(param, str) else param
        for param in declared
    )
    arguments = (param.name.upper() for param in params if not param.flags)
    usual = READING if operation.every_session else ARGUMENT if asks else WRITING
    return Command(
        command.words,
        command.example or " ".join(["limpet", command.words, *arguments]),
        command.help,
        params,
        session=operation.in_session or asks if command.session is None else command.session,
        calls_for=command.calls_for or usual,
        fixed=command.fixed,
        own_words=command.own_words,
    )


def undeclared(words: list[str]) -> tuple[Command, list[str]] | None:
    """The command of an operation that has words in the table and no declaration, and the words after it."""
    for count in range(MOST_WORDS, 0, -1):
        path = " ".join(words[:count])
        if path in COMMANDS:
            return filled(Command(path, "")), words[count:]
    return None


def _parameter(operation: Operation, param: Param, *, with_help: bool) -> Parameter:
    """What is required is an argument, and a list takes all that are left. Everything else is an option."""
    kind = KINDS.get(param.type, TEXT)
    if param.required and param.name == "content":
        return Parameter(param.name, LINE, metavar="[TEXT]")
    if param.required and kind != FLAG:
        return Parameter(param.name, REST if kind == LIST else kind, required=True)
    name = param.name.removesuffix("s") if kind == LIST else param.name
    flag = FLAGS.get(param.name) or f"--{name.replace('_', '-')}"
    metavar = {NUMBER: "N", LIST: name.upper()}.get(kind, "")
    return Parameter(param.name, kind, flag, metavar, _help(operation, param) if with_help else "")


def _help(operation: Operation, param: Param) -> str:
    words = prompts.tool(operation.name).params.get(param.name) or WORDS.get(param.name) or ", ".join(param.choices)
    again = "; may be repeated" if param.type == "strings" else ""
    first = words[:1] if words.partition(" ")[0].endswith(",") else words[:1].upper()  # a list of values stays as it is
    return f"{first}{words[1:]}{again}."


# --- the call ---------------------------------------------------------------------------------------------------------


def run(cli: Invocation, **values: Any) -> int:
    command = cli.command
    operation = COMMANDS[command.words]
    required = {param.name for param in operation.params if param.required}
    arguments = {
        param.name: _argument(cli, param, values[param.name], required)
        for param in command.params
        if param.name in values
    }
    session = arguments.pop("id") if command.calls_for == BY_ID else None
    if command.calls_for == ARGUMENT:
        arguments["session"] = cli.session
    elif session is None:
        session = cli.session_for(command.calls_for, rewrites=operation.name in REWRITES)
    if command.calls_for == READING and cli.session and operation.every_session:
        arguments["this_session"] = True  # a person who names a session means that one
    arguments |= command.fixed
    masking = Masking(cli.keep_secret)
    # For the person's own layer, what was not typed at a terminal counts as an agent's: agents run commands too.
    by = BY if arguments.get("layer") != PERSON or sys.stdin.isatty() else f"{AGENT}/cli"
    value = cli.hold.run(operation, arguments, session, by, masking)
    return replies.show(cli, operation.name, operation.render(value, masking), arguments)


def _argument(cli: Invocation, param: Parameter, value: Any, required: set[str]) -> Any:
    """The value as the operation takes it. None means not given."""
    if param.kind == LINE:
        return cli.line_from(value)
    if param.kind == LINES:
        return cli.lines_from(value)
    if param.kind in (LIST, REST):
        return list(value) if value or param.name in required else None
    return value or None if param.kind == FLAG else value
