"""`limpet sandbox run`: Python over kept outputs and a notepad, as an agent runs it."""

from __future__ import annotations

import json
from typing import Any

import click

from limpet.doors.cli.build import Group, command, group, pass_state
from limpet.doors.cli.context import State, text_from
from limpet.doors.cli.render import Screen


def add_to(root: Group) -> None:
    noun = group(root, "sandbox", "Python over kept outputs and the notepad, where it can do no harm.")

    @command(
        noun,
        "run",
        'limpet sandbox run count.py --inputs \'{"id": "3f9a1c2b77e0"}\'\n'
        "echo 'len(outputs.list())' | limpet sandbox run -",
        session=True,
    )
    @click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
    @click.option("--inputs", metavar="JSON", help="Variables for the code, as a JSON object.")
    @pass_state
    def run(state: State, file: str, inputs: str | None) -> None:
        arguments = {"code": _code(file, state), "inputs": None if inputs is None else _object(inputs)}
        reply = state.call("run_sandbox_code", arguments, state.pad())

        def draw(screen: Screen) -> None:
            if reply["output"]:
                screen.block(reply["output"])
            if "result" in reply:
                result = reply["result"]
                screen.block(result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, indent=1))

        state.answer(reply, draw)
        if reply.get("warning") and not state.json:
            state.notice(reply["warning"])


def _code(file: str, state: State) -> str:
    if file == "-":
        return text_from("-", state)
    with open(file, "rb") as opened:
        return opened.read().decode("utf-8", "surrogateescape")


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as problem:
        raise click.UsageError(f"--inputs is no JSON: {problem}.") from None
