"""An environment for a peer: made once below bench/out, kept for the next run, and never part of ours."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path
from typing import NamedTuple

from bench.figures import skipped
from bench.measure import OUT


class Environment(NamedTuple):
    python: Path
    version: str


def prepared(package: str) -> Environment | None:
    """The interpreter that has the package, and which version; None, with a word, where pip cannot install it."""
    place = OUT / "peers" / package
    python = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not (place / "ready").exists():
        venv.create(place, with_pip=True)
        wanted = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
        done = subprocess.run(wanted, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            skipped(f"{package}: skipped, pip cannot install it ({done.stderr.strip().splitlines()[-1:]}).")
            return None
        (place / "ready").touch()
    named = f"from importlib.metadata import version; print(version({package!r}))"
    version = subprocess.run([str(python), "-c", named], capture_output=True, text=True, check=True).stdout.strip()
    return Environment(python, version)
