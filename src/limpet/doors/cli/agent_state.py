"""`limpet state …`: the JSON values a project's agents keep by key."""

from __future__ import annotations

import json
from typing import Any

import click

from limpet.doors.cli.build import NUMBER, Group, command, group, pass_state
from limpet.doors.cli.context import State, line_from


def add_to(root: Group) -> None:
    noun = group(root, "state", "JSON values that agents keep by key, for the whole project.")
    _add_reading(noun)

    @command(
        noun,
        "set",
        "limpet state set build '{\"number\": 7}'\nlimpet state set owner Ada --text",
        "Without a value, or with -, it is read from standard input.",
        session=True,
    )
    @click.argument("key")
    @click.argument("value", required=False)
    @click.option("--text", is_flag=True, help="The value is a text as it stands, not JSON.")
    @click.option("--if-version", "expected_version", type=NUMBER, metavar="N", help="Only if this is its version.")
    @pass_state
    def set_(state: State, key: str, value: str | None, text: bool, expected_version: int | None) -> None:
        given = line_from(value, state)
        arguments = {"action": "set", "key": key, "value": given if text else _parsed(given)}
        reply = state.call("agent_state", {**arguments, "expected_version": expected_version}, state.writing())
        state.answer(reply, lambda screen: screen.line(f"{reply['key']} is at version {reply['version']}"))

    @command(noun, "delete", "limpet state delete build", session=True)
    @click.argument("key")
    @pass_state
    def delete(state: State, key: str) -> None:
        reply = state.call("agent_state", {"action": "delete", "key": key}, state.writing())
        state.answer(reply, lambda screen: screen.line(f"{reply['key']} deleted; limpet undo brings it back"))


def _add_reading(noun: Group) -> None:
    @command(noun, "get", "limpet state get build")
    @click.argument("key")
    @pass_state
    def get(state: State, key: str) -> None:
        reply = state.call("agent_state", {"action": "get", "key": key})
        value = reply["value"]
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
        state.answer(reply, lambda screen: screen.block(shown))

    @command(noun, "keys", "limpet state keys build.")
    @click.argument("prefix", required=False)
    @pass_state
    def keys(state: State, prefix: str | None) -> None:
        reply = state.call("agent_state", {"action": "keys", "prefix": prefix})
        state.answer(reply, lambda screen: screen.table(("key",), [(key,) for key in reply["keys"]]))
        if reply.get("left_out") and not state.json:
            state.notice(f"{reply['left_out']:,} older keys were not looked at.")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as problem:
        raise click.UsageError(f"The value is no JSON ({problem}). Give --text if it is a text as it stands.") from None
