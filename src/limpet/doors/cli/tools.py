"""`limpet tools`: what the tools of a profile cost in an agent's window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

from limpet.doors.cli.build import Group, command, pass_state
from limpet.doors.cli.context import State
from limpet.doors.cli.render import Screen

if TYPE_CHECKING:
    from limpet.api import Limpet

Json = dict[str, Any]


def add_to(root: Group) -> None:
    @command(
        root,
        "tools",
        "limpet tools --profile core",
        "List the tools of a profile, or of all, and the tokens they cost.",
    )
    @click.option("--profile", metavar="NAME", help="core or full. Both when not given.")
    @pass_state
    def tools(state: State, profile: str | None) -> None:
        from limpet.catalogue.table import PROFILES
        from limpet.text import tokens

        profiles = {name: costs(name) for name in ((profile,) if profile else PROFILES)}
        reply = {"tokenizer": tokens.NAME, "profiles": profiles}
        state.answer(reply, lambda screen: _draw(screen, profiles))
        if not state.json:
            state.notice(f"tokens are counted by {tokens.NAME}; bytes are those of the whole reply to tools/list.")


def costs(profile: str) -> Json:
    """Every tool of a profile as a client gets it from the newest revision of the protocol, with its cost."""
    from limpet.protocol import jsonrpc
    from limpet.protocol.mcp_server import MODERN, Client, Surface
    from limpet.text import tokens

    # Listing tools touches no store, and looking at prices must not make one.
    surface = Surface(cast("Limpet", None), profile)
    reply = surface.answer("tools/list", {}, Client(), MODERN[-1])
    tools = cast(list[Json], reply["tools"])
    listed = [
        {"name": tool["name"], "tokens": tokens.count(jsonrpc.dumps(tool)), "bytes": len(jsonrpc.encode(tool))}
        for tool in tools
    ]
    return {"tools": listed, "tokens": tokens.count(jsonrpc.dumps(reply)), "bytes": len(jsonrpc.encode(reply))}


def _draw(screen: Screen, profiles: dict[str, Json]) -> None:
    rows: list[tuple[object, ...]] = []
    for name, profile in profiles.items():
        rows += [(name, tool["name"], tool["tokens"], tool["bytes"]) for tool in profile["tools"]]
        rows.append((name, "(total)", profile["tokens"], profile["bytes"]))
    screen.table(("profile", "tool", "tokens", "bytes"), rows)
