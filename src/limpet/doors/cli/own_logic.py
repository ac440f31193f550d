"""Commands that call one operation but have to work out its arguments first."""

from __future__ import annotations

import json
import sys
from typing import Any

from limpet.doors.cli import replies
from limpet.doors.cli.command import Misuse
from limpet.doors.cli.invocation import BY, Invocation


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
    session = cli.hold.session(cli.writing(), by=BY, keep_secret=cli.keep_secret)
    output = session.outputs.keep(tool, content, call=call)
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
