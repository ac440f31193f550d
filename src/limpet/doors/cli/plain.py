"""Commands that are one call of one operation. Those that work out its arguments first have a function of their own."""

from __future__ import annotations

import json
import sys
from typing import Any

from limpet.catalogue.table import COMMANDS
from limpet.doors.cli import replies
from limpet.doors.cli.command import ARGUMENT, BY_ID, FLAG, LINE, LINES, LIST, REST, Misuse, Parameter
from limpet.doors.cli.invocation import BY, Invocation


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
    value = cli.hold.run(operation, arguments, session, BY)
    return replies.show(cli, operation.name, operation.render(value), arguments)


def _argument(cli: Invocation, param: Parameter, value: Any, required: set[str]) -> Any:
    """The value as the operation takes it. None means not given."""
    if param.kind == LINE:
        return cli.line_from(value)
    if param.kind == LINES:
        return cli.lines_from(value)
    if param.kind in (LIST, REST):
        return list(value) if value or param.name in required else None
    return value or None if param.kind == FLAG else value


# --- with a function of their own -------------------------------------------------------------------------------------


def update_note(
    cli: Invocation, id: str, text: str | None, tags: tuple[str, ...], no_tags: bool, done: bool | None
) -> int:
    if tags and no_tags:
        raise Misuse("--tag and --no-tags cannot both be given.")
    arguments = {
        "id": id,
        "content": None if text is None else cli.line_from(text),
        "tags": list(tags) if tags or no_tags else None,
        "done": done,
    }
    return replies.show(cli, "update_note", cli.call("update_note", arguments), arguments)


def scratch(cli: Invocation, text: str | None, mode: str | None) -> int:
    mode = "read" if text is None and mode is None else mode
    arguments = {"content": None if text is None else cli.line_from(text), "mode": mode}
    session = cli.writing() if mode is None else cli.active()
    return replies.show(cli, "scratch_note", cli.call("scratch_note", arguments, session), arguments)


def set_state(cli: Invocation, key: str, value: str | None, text: bool, expected_version: int | None) -> int:
    words = cli.line_from(value)
    arguments = {"action": "set", "key": key, "value": words if text else _value(words)}
    reply = cli.call("agent_state", {**arguments, "expected_version": expected_version}, cli.writing())
    return replies.show(cli, "agent_state", reply, arguments)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as problem:
        raise Misuse(f"The value is no JSON ({problem}). Give --text if it is a text as it stands.") from None


def keep_output(cli: Invocation, tool: str, call: str) -> None:
    content = sys.stdin.buffer.read().decode("utf-8", "replace")
    output = cli.hold.session(cli.writing(), by=BY).outputs.keep(tool, content, call=call)
    reply = {"text": output.text, "id": output.output.id if output.output else None}
    cli.answer(reply, lambda screen: screen.block(output.text))


def run_code(cli: Invocation, file: str, inputs: str | None) -> int:
    arguments = {"code": _code(cli, file), "inputs": None if inputs is None else _inputs(inputs)}
    reply = cli.call("run_sandbox_code", arguments, cli.active())
    return replies.show(cli, "run_sandbox_code", reply, arguments)


def _code(cli: Invocation, file: str) -> str:
    if file == "-":
        return cli.text_from("-")
    with open(file, "rb") as source:
        return source.read().decode("utf-8", "surrogateescape")


def _inputs(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as problem:
        raise Misuse(f"--inputs is no JSON: {problem}.") from None
