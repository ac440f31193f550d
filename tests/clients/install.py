"""Clients from npm, pinned, in a folder of their own that is kept from run to run."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

# Of whoever runs the tests: read now, because each test has an empty home of its own.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "limpet-clients"


def installed(package: str, version: str, program: str) -> Path:
    """The program of a client, a pattern below node_modules. Without npm the test is skipped, and says so."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not there, so no coding agent can be installed")
    folder = CACHE / f"{package.rpartition('/')[2]}-{version}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests may run side by side
        if not folder.exists():
            _install(npm, f"{package}@{version}", folder)
    found = list((folder / "node_modules").glob(program))
    assert found, f"there is no {program} in {folder}; remove the folder to have it installed again"
    return found[0]


def _install(npm: str, package: str, folder: Path) -> None:
    """In another place first, so that what has the name is whole."""
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    command = [npm, "install", "--prefix", str(partial), "--no-audit", "--no-fund", package]
    done = subprocess.run(command, cwd=partial, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{package} could not be installed: {done.stderr.strip()[-500:]}"
    partial.rename(folder)
