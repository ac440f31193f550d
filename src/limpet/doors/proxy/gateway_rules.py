"""How many servers look like one, as pure functions: names, lists put together, and places in a message that change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from limpet.doors.proxy import rewrite as rules
from limpet.protocol.jsonrpc import Json, dumps

BETWEEN = "__"  # stands between the name of a server and the name of its tool
LEGAL = re.compile(r"[A-Za-z0-9_.-]{1,128}")  # what MCP allows in the name of a tool
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # those that begin with a handshake
MISSING_KEY = "limpet/missing"  # in `_meta` of a list: the servers that are not in it, and why


class Kind(NamedTuple):
    """A list that every server has one of."""

    method: str
    field: str  # of the result
    capability: str
    name: str  # the member of an item that tells it from others

    @property
    def changed(self) -> str:
        return f"notifications/{self.capability}/list_changed"


TOOLS = Kind("tools/list", "tools", "tools", "name")
PROMPTS = Kind("prompts/list", "prompts", "prompts", "name")
RESOURCES = Kind("resources/list", "resources", "resources", "uri")
TEMPLATES = Kind("resources/templates/list", "resourceTemplates", "resources", "uriTemplate")
KINDS = {kind.method: kind for kind in (TOOLS, PROMPTS, RESOURCES, TEMPLATES)}


def joined(server: str, name: str) -> str:
    return f"{server}{BETWEEN}{name}"


def parted(name: str) -> tuple[str, str]:
    """The server and its own name for something. No name of a server holds or ends with what stands between."""
    server, _, own = name.partition(BETWEEN)
    return server, own


class Merged(NamedTuple):
    items: list[Json]
    owners: dict[str, str]  # which server each item is from, by name or address
    refused: list[tuple[str, str]]  # server and why


def merged(kind: Kind, lists: Mapping[str, Sequence[Json]]) -> Merged:
    """One list out of many. Names get their server's name before them; addresses stay, and belong to the first."""
    found = Merged([], {}, [])
    for server, items in lists.items():
        for item in items:
            own = item.get(kind.name)
            if not isinstance(own, str):
                found.refused.append((server, f"an item of {kind.method} without a {kind.name}"))
                continue
            name = joined(server, own) if kind.name == "name" else own
            if kind.name == "name" and LEGAL.fullmatch(name) is None:
                found.refused.append((server, f"{own!r:.80} is no legal name"))
            elif name in found.owners:
                found.refused.append((server, f"{own!r:.80} is taken by {found.owners[name]}"))
            else:
                found.owners[name] = server
                found.items.append({**item, kind.name: name})
    return found


def owner_of(uri: str, resources: Mapping[str, str], templates: Mapping[str, str]) -> str | None:
    """The server an address belongs to: it is listed, or begins as a template does; the longest beginning counts."""
    if uri in resources:
        return resources[uri]
    fits = [(len(start), server) for one, server in templates.items() if uri.startswith(start := one.partition("{")[0])]
    return max(fits)[1] if fits else None


def welcome(asked: str, version: str, instructions: Mapping[str, str]) -> Json:
    """The answer to initialize. Servers may come later, so everything they could have is announced."""
    listed = {"listChanged": True}
    parts = [f"Tools and prompts of several servers, each named server{BETWEEN}name."]
    parts += [f"## {server}\n\n{text}" for server, text in instructions.items() if text]
    return {
        "protocolVersion": asked if asked in REVISIONS else REVISIONS[-1],
        "capabilities": {
            "tools": listed,
            "prompts": listed,
            "resources": {**listed, "subscribe": True},
            "completions": {},
            "logging": {},
        },
        "serverInfo": {"name": "limpet-gateway", "version": version},
        "instructions": "\n\n".join(parts),
    }


# --- places in a message ----------------------------------------------------------------------------------------------


def at(text: str, *path: str) -> rules.Node | None:
    """The value at a path of member names, with its place."""
    plan: Any = {}
    for name in reversed(path[:-1]):
        plan = {name: plan}
    found: rules.Node | None = rules.node(text, 0, plan)
    for name in path:
        found = found.value.get(name) if found is not None and isinstance(found.value, dict) else None
    return found


def replaced(text: str, changes: Iterable[tuple[tuple[str, ...], object]]) -> str:
    """The text with other values at some paths; all else stays as it is."""
    places = [(at(text, *path), new) for path, new in changes]
    return rules.edited(text, [(place.start, place.end, dumps(new)) for place, new in places if place is not None])
