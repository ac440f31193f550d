"""Tool pinning: the definitions of other MCP servers' tools as they were first seen, so that a change is noticed.

An agent trusts a tool by its definition, and a server can change that at any time. The first complete list of a
server's tools is pinned: a hash of each definition, and one per part of it to say what changed. A later difference
stays until a person approves it. There is one entry per server; its `extra` holds the tools. The operations and the
stored states use the word `seal` for a pin.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from limpet import errors, limits
from limpet.catalogue.operation import Context, Json, a_name
from limpet.model import SEALS, Draft, Entry, iso
from limpet.record import NamedTuple
from limpet.redaction import redact
from limpet.store import Listing

PARTS = ("title", "description", "inputSchema", "outputSchema", "annotations")  # hashed separately; the rest is "other"
PART_DIGITS = 16  # of the hash of a part, which says what changed; the hash of the full definition decides
SEALED, CHANGED, NEW = "sealed", "changed", "new"


class ToolPin(NamedTuple):
    """One tool: whether it is as approved, and which parts of its definition are not."""

    tool: str
    state: str
    parts: tuple[str, ...] = ()


class PinnedServer(NamedTuple):
    name: str
    pins: tuple[ToolPin, ...]
    updated_at: int


class Approved(NamedTuple):
    server: str
    tools: tuple[str, ...]


def fingerprint(definition: Mapping[str, Any]) -> Json:
    """The hashes of a definition. The order of keys and the spaces between them do not count."""
    parts = {name: definition[name] for name in PARTS if name in definition}
    rest = {name: value for name, value in definition.items() if name not in PARTS and name != "name"}
    parts |= {"other": rest} if rest else {}
    return {
        "sha256": _hash(definition),
        "parts": {name: _hash(value)[:PART_DIGITS] for name, value in parts.items()},
    }


def _hash(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def see_tools(
    ctx: Context, server: str, tools: Mapping[str, Mapping[str, Any]], *, complete: bool
) -> tuple[ToolPin, ...]:
    """Compare the tools of a server with their pins. A new server's tools are pinned once its list is complete."""
    name = server_name(server)
    fingerprints = {tool: fingerprint(definition) for tool, definition in tools.items()}
    entry = ctx.store.entries.read(ctx.scope, SEALS, name)
    if entry is None and not complete:
        return tuple(ToolPin(tool, SEALED) for tool in fingerprints)
    if entry is None or _updated_extra(entry, fingerprints) != entry.extra:

        def decide(before: Entry | None) -> Draft:
            return Draft(name, extra=_updated_extra(before, fingerprints))

        entry = ctx.store.entries.edit(ctx.scope, SEALS, name, decide, ctx.stamp("see_tools")).entry
    records = _records(entry)
    return tuple(_pin(tool, records[tool]) for tool in fingerprints)


def _updated_extra(before: Entry | None, fingerprints: Mapping[str, Json]) -> Json:
    """The `extra` of a server's entry after it listed these tools."""
    if before is None:
        return {"tools": {tool: {"seal": digest, "seen": digest} for tool, digest in fingerprints.items()}}
    tools = _records(before)
    for tool, digest in fingerprints.items():
        tools[tool] = {"seal": tools[tool]["seal"] if tool in tools else None, "seen": digest}
    return {"tools": tools}


def _records(entry: Entry) -> dict[str, Json]:
    """What is stored of each tool. A record of another shape seals nothing: its tool is as good as new."""
    tools = entry.extra.get("tools")
    return {tool: record for tool, record in tools.items() if _is_record(record)} if isinstance(tools, dict) else {}


def _is_record(record: Any) -> bool:
    try:
        return _is_fingerprint(record["seen"]) and (record["seal"] is None or _is_fingerprint(record["seal"]))
    except (KeyError, TypeError):
        return False


def _is_fingerprint(digest: Any) -> bool:
    return isinstance(digest["sha256"], str) and isinstance(digest["parts"], dict)


def _pin(tool: str, record: Json) -> ToolPin:
    seal, latest = record["seal"], record["seen"]
    if seal is None:
        return ToolPin(tool, NEW)
    if seal["sha256"] == latest["sha256"]:
        return ToolPin(tool, SEALED)
    names = sorted({*seal["parts"], *latest["parts"]})
    return ToolPin(tool, CHANGED, tuple(name for name in names if seal["parts"].get(name) != latest["parts"].get(name)))


def list_seals(ctx: Context, server: str | None = None) -> tuple[PinnedServer, ...]:
    page = ctx.store.entries.list(ctx.scope, Listing((SEALS,), limit=limits.LIST_MAX))
    entries = page.entries if server is None else (_find(ctx, server),)
    return tuple(
        PinnedServer(entry.key, tuple(_pin(*item) for item in _records(entry).items()), entry.updated_at)
        for entry in entries
    )


def approve_seals(ctx: Context, server: str, tool: str | None = None) -> Approved:
    """Pin the tools of a server, or one of them, as they were last seen. People do this; agents have no tool for it."""
    name = _find(ctx, server).key
    approved: list[str] = []

    def decide(before: Entry | None) -> Draft:
        tools = {} if before is None else _records(before)
        if tool is not None and tool not in tools:
            raise errors.no_entry("tool", tool, f"`limpet seals list` names the tools of {name}.")
        approved[:] = [
            key for key, record in tools.items() if tool in (None, key) and _pin(key, record).state != SEALED
        ]
        changed = {key: {"seal": tools[key]["seen"], "seen": tools[key]["seen"]} for key in approved}
        return Draft(name, extra={"tools": {**tools, **changed}})

    ctx.store.entries.edit(ctx.scope, SEALS, name, decide, ctx.stamp("approve_seals", {"tool": tool} if tool else {}))
    return Approved(name, tuple(approved))


def _find(ctx: Context, server: str) -> Entry:
    """The server of that name, or the single one whose name contains it."""
    entry = ctx.store.entries.read(ctx.scope, SEALS, server_name(server))
    if entry is not None:
        return entry
    page = ctx.store.entries.list(ctx.scope, Listing((SEALS,), limit=limits.LIST_MAX))
    near = [entry for entry in page.entries if server in entry.key]
    if len(near) == 1:
        return near[0]
    servers = ", ".join(errors.quoted(entry.key) for entry in page.entries) or "none yet"
    raise errors.no_entry("server", server, f"Servers whose tools are sealed: {servers}.")


def server_name(name: str) -> str:
    """The name under which a server is stored. A command line may contain secrets and may be long."""
    plain = " ".join(redact(name).text.split())
    if len(plain) > limits.KEY_MAX_CHARS:
        plain = f"{plain[: limits.KEY_MAX_CHARS - 17]}…{hashlib.sha256(plain.encode()).hexdigest()[:16]}"
    return a_name("server", plain, limits.KEY_MAX_CHARS)


# --- answers ----------------------------------------------------------------------------------------------------------


def servers_json(value: tuple[PinnedServer, ...]) -> Json:
    return {
        "servers": [
            {
                "server": server.name,
                "updated_at": iso(server.updated_at),
                "tools": [
                    {"tool": pin.tool, "state": pin.state, **({"parts": list(pin.parts)} if pin.parts else {})}
                    for pin in server.pins
                ],
            }
            for server in value
        ]
    }


def approved_json(value: Approved) -> Json:
    return {"server": value.server, "approved": list(value.tools)}
