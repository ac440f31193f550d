"""Commands that are one call of one operation: from the values on the command line to the operation's arguments."""

from __future__ import annotations

from typing import Any

from limpet.catalogue.table import COMMANDS
from limpet.doors.cli import replies
from limpet.doors.cli.command import ARGUMENT, BY_ID, FLAG, LINE, LINES, LIST, REST, Parameter
from limpet.doors.cli.invocation import BY, Invocation
from limpet.redaction import Masking


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
        session = cli.session_for(command.calls_for)
    arguments |= command.fixed
    masking = Masking(cli.keep_secret)
    value = cli.hold.run(operation, arguments, session, BY, masking)
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
