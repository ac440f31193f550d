"""How several servers look like one, as pure functions: names, merged lists, and changed members of a message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from limpet.protocol import revisions
from limpet.protocol.jsonrpc import Json, dumps
from limpet.record import NamedTuple
from limpet.text.json_spans import Node, edited, scan_planned

SEPARATOR = "__"  # between the name of a server and the name of its tool
_NAME = "limpet-gateway"
LEGAL = re.compile(r"[A-Za-z0-9_.-]{1,128}")  # what MCP allows in the name of a tool
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
    return {
        "protocolVersion": revision if revision in revisions.HANDSHAKE else revisions.HANDSHAKE[-1],
        "capabilities": {
            "tools": listed,
            "prompts": listed,
            "resources": {**listed, "subscribe": True},
            "completions": {},
            "logging": {},
        },
        "serverInfo": {"name": _NAME, "version": version},
        "instructions": _instructions(instructions),
    }


def discovered(instructions: Mapping[str, str]) -> Json:
    """The answer to `server/discover`. Lists are said to change at any time instead of being announced as changed."""
    return {
        "supportedVersions": list(revisions.MODERN),
        "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "completions": {}},
        "instructions": _instructions(instructions),
    }


def _instructions(servers: Mapping[str, str]) -> str:
    parts = [f"Tools and prompts of several servers, each named server{SEPARATOR}name."]
    return "\n\n".join([*parts, *(f"## {server}\n\n{text}" for server, text in servers.items() if text)])


# --- two eras of the protocol -----------------------------------------------------------------------------------------


def modern_hello(hello: Json) -> Json:
    """The `_meta` of a request of 2026-07-28, from what a client says of itself in `initialize`."""
    return {
        revisions.VERSION_KEY: revisions.MODERN[-1],
        revisions.CLIENT_KEY: hello.get("clientInfo"),
        revisions.CAPABILITIES_KEY: {},  # the gateway asks an older client nothing in a server's name
    }


def hello_of(meta: Json, version: str) -> Json:
    """The params of `initialize` for a server that knows the handshake alone, behind a client of 2026-07-28.

    Such a client takes no requests of servers, so none may be sent: it is said to be able to answer none.
    """
    client = meta.get(revisions.CLIENT_KEY)
    info = client if isinstance(client, dict) else {"name": _NAME, "version": version}
    return {"protocolVersion": revisions.HANDSHAKE[-1], "capabilities": {}, "clientInfo": info}


def to_modern_server(text: str, meta: Json) -> str:
    """A request of an older client as a server of 2026-07-28 takes it: with its revision in `_meta`."""
    message = scan_planned(text, {"params": {"_meta": {}}})
    params = message.get("params")
    own = params.get("_meta") if params is not None else None
    if own is not None and own.kind == "object":
        return _with_members(text, own, dumps(meta)[1:-1])
    if params is not None and params.kind == "object":
        return _with_members(text, params, f'"_meta":{dumps(meta)}')
    return _with_members(text, message, f'"params":{dumps({"_meta": meta})}')


def to_older_server(text: str) -> str:
    """A request of 2026-07-28 as an older server takes it: `_meta` holds nothing of the protocol's own."""
    params = scan_planned(text, {"params": {"_meta": {}}}).get("params")
    meta = params.get("_meta") if params is not None else None
    if meta is None or meta.kind != "object":
        return text
    kept = [member for member in meta.members if not member.name.startswith(revisions.OWN_PREFIX)]
    rest = ",".join(text[member.start : member.node.stop] for member in kept)
    return edited(text, [(meta.start, meta.stop, f"{{{rest}}}")])


def to_modern_client(text: str, method: str) -> str:
    """The reply of an older server as a client of 2026-07-28 takes it."""
    result = scan_planned(text, {"result": {}}).get("result")
    if result is None or result.kind != "object" or result.get("resultType") is not None:
        return text
    return _with_members(text, result, dumps(_result_fields(method))[1:-1])


def _with_members(text: str, holder: Node, members: str) -> str:
    at = holder.stop - 1
    return edited(text, [(at, at, f",{members}" if holder.members else members)])


def modern_result(method: str, value: Json, version: str) -> Json:
    """A result of the gateway itself, as 2026-07-28 has them."""
    meta = value.get("_meta")
    named = {revisions.SERVER_KEY: {"name": _NAME, "version": version}}
    return {**value, **_result_fields(method), "_meta": {**(meta if isinstance(meta, dict) else {}), **named}}


def _result_fields(method: str) -> Json:
    cached = method in KINDS or method in ("resources/read", "server/discover")
    return {"resultType": "complete", **({"ttlMs": 0, "cacheScope": "private"} if cached else {})}


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
