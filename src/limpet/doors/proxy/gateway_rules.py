"""How several servers look like one, as pure functions: names, merged lists, and changed members of a message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from limpet.protocol.jsonrpc import Json, dumps
from limpet.record import NamedTuple
from limpet.text.json_spans import Node, edited, scan_planned

SEPARATOR = "__"  # between the name of a server and the name of its tool
LEGAL = re.compile(r"[A-Za-z0-9_.-]{1,128}")  # what MCP allows in the name of a tool
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # those that begin with a handshake
MISSING_KEY = "limpet/missing"  # in `_meta` of a list: the servers that are not in it, and why


class Kind(NamedTuple):
    """A kind of list that every server may have."""

    method: str
    field: str  # of the result
    capability: str
    name: str  # the member that identifies an item

    @property
    def changed(self) -> str:
        return f"notifications/{self.capability}/list_changed"


TOOLS = Kind("tools/list", "tools", "tools", "name")
PROMPTS = Kind("prompts/list", "prompts", "prompts", "name")
RESOURCES = Kind("resources/list", "resources", "resources", "uri")
TEMPLATES = Kind("resources/templates/list", "resourceTemplates", "resources", "uriTemplate")
KINDS = {kind.method: kind for kind in (TOOLS, PROMPTS, RESOURCES, TEMPLATES)}


def joined(server: str, name: str) -> str:
    return f"{server}{SEPARATOR}{name}"


def parted(name: str) -> tuple[str, str]:
    """The server, and its own name of a tool or prompt. No name of a server contains the separator."""
    server, _, own = name.partition(SEPARATOR)
    return server, own


class Merged(NamedTuple):
    items: list[Json]
    owners: dict[str, str]  # the server of each item, by name or URI
    refused: list[tuple[str, str]]  # server and why


def merged(kind: Kind, lists: Mapping[str, Sequence[Json]]) -> Merged:
    """One list from the lists of all servers. Names get a prefix; a URI stays, and belongs to the first server."""
    result = Merged([], {}, [])
    for server, items in lists.items():
        for item in items:
            own = item.get(kind.name)
            if not isinstance(own, str):
                result.refused.append((server, f"an item of {kind.method} without a {kind.name}"))
                continue
            name = joined(server, own) if kind.name == "name" else own
            if kind.name == "name" and LEGAL.fullmatch(name) is None:
                result.refused.append((server, f"{own!r:.80} is no legal name"))
            elif name in result.owners:
                result.refused.append((server, f"{own!r:.80} is taken by {result.owners[name]}"))
            else:
                result.owners[name] = server
                result.items.append({**item, kind.name: name})
    return result


def owner_of(uri: str, resources: Mapping[str, str], templates: Mapping[str, str]) -> str | None:
    """The server of a URI: the one that lists it, or whose template has the longest matching prefix."""
    if uri in resources:
        return resources[uri]
    prefixes = [(template.partition("{")[0], server) for template, server in templates.items()]
    matches = [(len(prefix), server) for prefix, server in prefixes if uri.startswith(prefix)]
    return max(matches)[1] if matches else None


def welcome(revision: str, version: str, instructions: Mapping[str, str]) -> Json:
    """The answer to `initialize`. Servers may start later, so every capability is announced."""
    listed = {"listChanged": True}
    parts = [f"Tools and prompts of several servers, each named server{SEPARATOR}name."]
    parts += [f"## {server}\n\n{text}" for server, text in instructions.items() if text]
    return {
        "protocolVersion": revision if revision in REVISIONS else REVISIONS[-1],
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


# --- members of a message ---------------------------------------------------------------------------------------------


def node_at(text: str, *path: str) -> Node | None:
    """The value at a path of member names."""
    plan: Any = {}
    for name in reversed(path[:-1]):
        plan = {name: plan}
    node: Node | None = scan_planned(text, plan)
    for name in path:
        node = node.get(name) if node is not None else None
    return node


def replaced(text: str, changes: Iterable[tuple[tuple[str, ...], object]]) -> str:
    """The text with new values at some paths."""
    nodes = [(node_at(text, *path), new) for path, new in changes]
    return edited(text, [(node.start, node.stop, dumps(new)) for node, new in nodes if node is not None])
