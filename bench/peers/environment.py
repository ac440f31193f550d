"""An environment for a peer: made once below bench/out, kept for the next run, and never part of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import NamedTuple

from bench.figures import remark
from bench.measure import OUT

EXTENSIONS = "import sqlite3, venv, ensurepip; sqlite3.connect(':memory:').enable_load_extension(True)"


class Environment(NamedTuple):
    python: Path
    version: str


class Script(NamedTuple):
    """A package of npm: its folder, and which version it is."""

    folder: Path
    version: str


def prepared(package: str, *more: str, extensions: bool = False) -> Environment | None:
    """The interpreter that has the package, and which version; None, with a word, where pip cannot install it.

    Some peers load an extension into SQLite, which not every Python can.
    """
    place = OUT / "peers" / package
    python = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not (place / "ready").exists():
        using = _python(extensions)
        if using is None:
            remark(f"{package}: skipped, no Python here loads extensions into SQLite.")
            return None
        subprocess.run([using, "-m", "venv", "--clear", str(place)], check=True)
        wanted = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package, *more]
        done = subprocess.run(wanted, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            remark(f"{package}: skipped, pip cannot install it ({done.stderr.strip().splitlines()[-1:]}).")
            return None
        (place / "ready").touch()
    return Environment(python, version_of(python, package))


def version_of(python: Path, package: str) -> str:
    """Of a package that may have come along with another."""
    named = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([str(python), "-c", named], capture_output=True, text=True, check=True).stdout.strip()


def _python(extensions: bool) -> str | None:
    choices = [sys.executable] if not extensions else [sys.executable, which("python3"), "/usr/bin/python3"]
    for choice in filter(None, choices):
        if (
            not extensions
            or subprocess.run([choice, "-c", EXTENSIONS], capture_output=True, check=False).returncode == 0
        ):
            return choice
    return None


def installed(package: str, version: str = "") -> Script | None:
    """A package of npm, this version of it or the newest; None, with a word, where npm cannot install it."""
    npm, node = which("npm"), which("node")
    if npm is None or node is None:
        remark(f"{package}: skipped, npm or node is not there.")
        return None
    place = OUT / "peers"
    place.mkdir(parents=True, exist_ok=True)
    folder = place / "node_modules" / package
    if not (folder / "package.json").exists():
        named = f"{package}@{version}" if version else package
        wanted = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(place), named]
        done = subprocess.run(wanted, cwd=place, env=_with_headers(node), capture_output=True, text=True, check=False)
        if done.returncode != 0 or not folder.exists():
            remark(f"{package}: skipped, npm cannot install it ({done.stderr.strip().splitlines()[:1]}).")
            return None
    return Script(folder, json.loads((folder / "package.json").read_text())["version"])


def _with_headers(node: str) -> dict[str, str]:
    """What has to be compiled takes Node's headers from where Node is, if they are there, and not from the network."""
    place = Path(node).resolve().parent.parent
    there = (place / "include" / "node" / "node_version.h").exists()
    return os.environ | ({"npm_config_nodedir": str(place)} if there else {})
