"""The revisions of MCP that are spoken here, and what a request of 2026-07-28 says about its own.

Four revisions begin with a handshake (`initialize`). 2026-07-28 has none: each request names its revision in `_meta`,
and `server/discover` takes the place of the handshake. Revisions are dates, so "at least 2025-06-18" is a comparison of
strings.
"""

from __future__ import annotations

from limpet.protocol.jsonrpc import INVALID_PARAMS, UNSUPPORTED_PROTOCOL_VERSION, Json, RpcError

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = ("2026-07-28",)

OWN_PREFIX = "io.modelcontextprotocol/"  # of what the protocol itself puts into `_meta`
VERSION_KEY = f"{OWN_PREFIX}protocolVersion"
CAPABILITIES_KEY = f"{OWN_PREFIX}clientCapabilities"
CLIENT_KEY = f"{OWN_PREFIX}clientInfo"
SERVER_KEY = f"{OWN_PREFIX}serverInfo"


def is_modern(params: object) -> bool:
    """Whether a request is of revision 2026-07-28 or later, by its params."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and VERSION_KEY in meta


def named_revision(meta: Json) -> str:
    """The revision that the `_meta` of a modern request names, or RpcError."""
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"{VERSION_KEY} in params._meta is a string.")
    if not isinstance(meta.get(CAPABILITIES_KEY), dict):
        raise RpcError(INVALID_PARAMS, f"params._meta needs the object {CAPABILITIES_KEY}; it may be empty.")
    if version not in MODERN:
        raise RpcError(
            UNSUPPORTED_PROTOCOL_VERSION,
            "Unsupported protocol version",
            data={"supported": list(MODERN), "requested": version[:100]},
        )
    return version
