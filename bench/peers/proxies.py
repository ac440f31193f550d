"""Other wrappers of a server on stdio, to stand beside ours."""

from __future__ import annotations

from collections.abc import Sequence

from bench.peers.environment import prepared
from bench.stdio import Contestant

# What FastMCP's documentation shows for a proxy of a server on stdio.
PROXY = """
import sys
from fastmcp.client.transports import StdioTransport
try:
    from fastmcp.server import create_proxy
except ImportError:
    from fastmcp import FastMCP
    create_proxy = FastMCP.as_proxy
create_proxy(StdioTransport(sys.argv[1], sys.argv[2:])).run(transport="stdio", show_banner=False)
"""


def proxies(upstream: Sequence[str]) -> list[Contestant]:
    """FastMCP's proxy in front of the same server; nothing when it cannot be installed."""
    there = prepared("fastmcp")
    if there is None:
        return []
    command = [str(there.python), "-c", PROXY, *upstream]
    return [Contestant(f"FastMCP {there.version} proxy", lambda path: command, "text")]
