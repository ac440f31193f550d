"""A Node.js that is new enough for the official suites: the one on the PATH, or a pinned one from npm."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from clients.install import installed

LEAST = (22, 19)
VERSION = "22.22.2"


def node() -> str:
    found = shutil.which("node")
    if found and _version(found) >= LEAST:
        return found
    path: Path = installed("node", VERSION, "node/bin/node")
    return str(path)


def _version(program: str) -> tuple[int, ...]:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=False)
    return tuple(int(part) for part in done.stdout.strip().lstrip("v").split(".")[:2] if part.isdigit())
