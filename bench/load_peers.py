"""mcp-memory-service under the same load: its own streamable HTTP transport and SQLite store, in its own environment.

It begins with an empty store, which favours it: loading it as the others are loaded would take it many minutes. Without
a model on the machine it compares texts by hashes of their words; so its figures are its cost without a model.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import which

from bench import stores
from bench.load import Contestant
from bench.measure import OUT

PACKAGE = "mcp-memory-service"
START_SECONDS = 180
LOADS_EXTENSIONS = "import sqlite3; sqlite3.connect(':memory:').enable_load_extension(True)"


@contextmanager
def memory_service(agents: int) -> Iterator[list[Contestant]]:
    """The server, or nothing and a word about why."""
    python = _prepared()
    if python is None:
        yield []
        return
    place = stores.folder("memory-service")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env = {"HOME": str(place), "PATH": str(python.parent), "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    env |= {"MCP_MEMORY_SQLITE_PATH": str(place / "memory.db"), "MCP_MEMORY_ALLOW_HASH_EMBEDDINGS": "1"}
    command = [str(python.with_name("memory")), "server", "--streamable-http", "--sse-port", str(port)]
    with open(place / "log", "w", encoding="utf-8") as log:
        process = subprocess.Popen([*command, "-s", "sqlite_vec"], stdout=log, stderr=log, env=env, cwd=place)
        try:
            if _answers(port, process):
                name = f"{PACKAGE} {_version(python)}"
                yield [Contestant(name, port, [{} for _ in range(agents)], process.pid, tools=PACKAGE)]
            else:
                print(f"\n{PACKAGE}: skipped, it did not start within {START_SECONDS} s.")
                yield []
        finally:
            process.terminate()
            process.communicate(timeout=30)


def _prepared() -> Path | None:
    """The interpreter that has the package: one whose SQLite can load extensions, which not every Python's can."""
    place = OUT / "peers" / PACKAGE
    python = place / "bin" / "python"
    if (place / "ready").exists():
        return python
    able = [one for one in (sys.executable, which("python3", path="/usr/bin"), which("python3")) if one and _able(one)]
    if not able:
        print(f"\n{PACKAGE}: skipped, no Python here can load SQLite's extensions.")
        return None
    subprocess.run([able[0], "-m", "venv", str(place)], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # The newest one may want what the registry here does not have.
    if all(subprocess.run([*install, wanted], check=False).returncode for wanted in (PACKAGE, f"{PACKAGE}==12.2.0")):
        print(f"\n{PACKAGE}: skipped, pip cannot install it.")
        return None
    (place / "ready").touch()
    return python


def _able(python: str) -> bool:
    return subprocess.run([python, "-c", LOADS_EXTENSIONS], capture_output=True, check=False).returncode == 0


def _version(python: Path) -> str:
    named = f"from importlib.metadata import version; print(version({PACKAGE!r}))"
    return subprocess.run([str(python), "-c", named], capture_output=True, text=True, check=True).stdout.strip()


def _answers(port: int, process: subprocess.Popen[bytes]) -> bool:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        time.sleep(0.2)
    return False
