"""Every word an agent reads: tools/<operation>.md and guidance/<name>.md. Here they are only found and taken apart.

A tool's file has its description first, then after an empty line one line a parameter: `name: what it is`.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import NamedTuple

_HERE = os.path.dirname(__file__)


class ToolText(NamedTuple):
    description: str
    params: dict[str, str]


@lru_cache
def tool(name: str) -> ToolText:
    description, _, rest = _read("tools", name).partition("\n\n")
    params = dict(line.split(": ", 1) for line in rest.splitlines() if line)
    return ToolText(" ".join(description.split()), params)


def client(file: str) -> str:
    """A file that goes into a coding agent's configuration as it is."""
    with open(os.path.join(_HERE, "clients", file), encoding="utf-8") as found:
        return found.read()


@lru_cache
def prompt(name: str) -> str:
    return _read("guidance", name).strip()


def _read(folder: str, name: str) -> str:
    with open(os.path.join(_HERE, folder, f"{name}.md"), encoding="utf-8") as file:
        return file.read()
