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
proxy = create_proxy(StdioTransport(sys.argv[2], sys.argv[3:]))
if sys.argv[1] == "limited":
    from fastmcp.server.middleware.response_limiting import ResponseLimitingMiddleware
    proxy.add_middleware(ResponseLimitingMiddleware(max_size=100_000))
proxy.run(transport="stdio", show_banner=False)
"""


def proxies(upstream: Sequence[str]) -> list[Contestant]:
    """FastMCP's proxy in front of the same server, and with its limiter, which throws away what is over the limit."""
    there = prepared("fastmcp")
    if there is None:
        return []
    start = [str(there.python), "-c", PROXY]
    name = f"FastMCP {there.version} proxy"
    return [
        Contestant(name, lambda path: [*start, "whole", *upstream], "text"),
        Contestant(f"{name}, limited (the rest is lost)", lambda path: [*start, "limited", *upstream], "text"),
    ]
