"""Reads files and commits of a git repository on this machine, whether it has a work tree or not."""

from __future__ import annotations

import subprocess
from pathlib import Path

MARK = "\x1e"  # between commits in one output of git


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout.decode("utf-8", "replace")


def names(repository: Path) -> list[str]:
    return git(repository, "ls-tree", "-r", "--name-only", "HEAD").splitlines()


def read(repository: Path, name: str) -> str:
    return git(repository, "show", f"HEAD:{name}")
