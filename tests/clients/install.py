"""Clients from npm, pinned, in a folder of their own that is kept from run to run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

# Looked up at import: while a test runs, its home is an empty one.
CACHE = Path.home() / ".cache" / "holdfast-clients"


def installed(package: str, version: str, program: str) -> Path:
    """The program of a client, a pattern below node_modules; the test is skipped where it cannot be had."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not there, so no client can be installed")
    folder = CACHE / f"{package.rpartition('/')[2]}-{version}"
    modules = folder / "node_modules"
    if not list(modules.glob(program)):
        folder.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", f"{package}@{version}"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0 or not list(modules.glob(program)):
            pytest.skip(f"{package}@{version} could not be installed: {done.stderr.strip()[-200:]}")
    return next(modules.glob(program))
