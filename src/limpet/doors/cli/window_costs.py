"""`limpet tools` and `limpet context`: what an agent's window begins with, and the tokens it costs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

from limpet.catalogue.table import PROFILES
from limpet.doors.cli.invocation import BY, Invocation
from limpet.doors.cli.render import Screen
from limpet.protocol import jsonrpc
from limpet.protocol.mcp_server import MODERN, ClientState, Surface, finished
from limpet.text import tokens

if TYPE_CHECKING:
    from limpet.api import Limpet

Json = dict[str, Any]


def tools(cli: Invocation, profile: str | None) -> None:
    profiles = {name: costs(name) for name in ((profile,) if profile else PROFILES)}
    cli.answer({"tokenizer": tokens.NAME, "profiles": profiles}, lambda screen: _draw(screen, profiles))
    if not cli.json:
        cli.notice(f"tokens are counted by {tokens.NAME}; bytes are those of the whole reply to tools/list.")


def costs(profile: str) -> Json:
    """Every tool of a profile as a client gets it from the newest revision of the protocol, with its cost."""
    # Listing tools uses no store, and looking at prices must not create one.
    surface = Surface(cast("Limpet", None), profile)
    method, revision = "tools/list", MODERN[-1]
    reply = finished(method, surface.handler(method, {}, revision)({}, ClientState(), revision), revision)
    rows = [
        {"name": tool["name"], "tokens": tokens.count(jsonrpc.dumps(tool)), "bytes": len(jsonrpc.encode(tool))}
        for tool in cast(list[Json], reply["tools"])
    ]
    return {"tools": rows, "tokens": tokens.count(jsonrpc.dumps(reply)), "bytes": len(jsonrpc.encode(reply))}


def _draw(screen: Screen, profiles: dict[str, Json]) -> None:
    rows: list[tuple[object, ...]] = []
    for name, profile in profiles.items():
        rows += [(name, tool["name"], tool["tokens"], tool["bytes"]) for tool in profile["tools"]]
        rows.append((name, "(total)", profile["tokens"], profile["bytes"]))
    screen.table(("profile", "tool", "tokens", "bytes"), rows)


def context(cli: Invocation, line: str) -> None:
    # Without --session it is a session that does not exist, and looking does not create it.
    text = cli.hold.session(cli.session or f"new-{os.urandom(6).hex()}", by=BY).context(line)
    reply = {"context": text, "tokens": tokens.count(text), "tokenizer": tokens.NAME}
    cli.answer(reply, lambda screen: screen.block(text))
    if not cli.json:
        cli.notice(f"about {reply['tokens']:,} tokens, by {tokens.NAME}.")
