"""`limpet seals …`: what the tools of other MCP servers looked like when they were first seen."""

from __future__ import annotations

import click

from limpet.doors.cli.build import Group, command, group, pass_state
from limpet.doors.cli.context import State


def add_to(root: Group) -> None:
    noun = group(root, "seals", "Tools of other MCP servers, sealed as they were first seen.")

    @command(noun, "list", "limpet seals list\nlimpet seals list files")
    @click.argument("server", required=False)
    @pass_state
    def list_(state: State, server: str | None) -> None:
        reply = state.call("list_seals", {"server": server})
        columns = ("server", "tool", "state", "what changed")
        rows = [
            (one["server"], seal["tool"], seal["state"], ", ".join(seal.get("parts", ())))
            for one in reply["servers"]
            for seal in one["tools"]
        ]
        state.answer(reply, lambda screen: screen.table(columns, rows))

    @command(
        noun,
        "approve",
        "limpet seals approve files\nlimpet seals approve files read_file",
        "Look at what the server says about its tools first: an agent believes it.",
    )
    @click.argument("server")
    @click.argument("tool", required=False)
    @pass_state
    def approve(state: State, server: str, tool: str | None) -> None:
        reply = state.call("approve_seals", {"server": server, "tool": tool})
        names = ", ".join(reply["approved"]) or "nothing, all was as sealed"
        state.answer(reply, lambda screen: screen.line(f"{reply['server']}: approved {names}"))
