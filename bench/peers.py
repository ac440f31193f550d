"""Other tools that do what the wrapper does, each in an environment of its own below bench/out. Only with `--peers`."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Sequence

from bench.measure import OUT
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
    place = OUT / "peers" / "fastmcp"
    python = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not (place / "ready").exists():
        venv.create(place, with_pip=True)
        wanted = [str(python), "-m", "pip", "install", "--quiet", "fastmcp"]
        done = subprocess.run(wanted, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"\nFastMCP: skipped, pip cannot install it ({done.stderr.strip().splitlines()[-1:]}).")
            return []
        (place / "ready").touch()
    named = "from importlib.metadata import version; print(version('fastmcp'))"
    version = subprocess.run([str(python), "-c", named], capture_output=True, text=True, check=True).stdout.strip()
    return [Contestant(f"FastMCP {version} proxy", lambda path: [str(python), "-c", PROXY, *upstream], "text")]
