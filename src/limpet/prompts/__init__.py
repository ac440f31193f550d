"""The texts that agents read: tools/<operation>.md, guidance/<name>.md and clients/. This module reads and parses them.

A tool's file has its description, an empty line, and one line per parameter: `name: description`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache

from limpet.record import NamedTuple

_FOLDER = os.path.dirname(__file__)


class ToolText(NamedTuple):
    description: str
    params: dict[str, str]


@lru_cache
def tool(name: str) -> ToolText:
    description, _, rest = _read("tools", name).partition("\n\n")
    params = dict(line.split(": ", 1) for line in rest.splitlines() if line)
    return ToolText(" ".join(description.split()), params)


def client(file: str) -> str:
    """A file that is installed into a coding agent's configuration unchanged."""
    with open(os.path.join(_FOLDER, "clients", file), encoding="utf-8") as text:
        return text.read()


@lru_cache
def prompt(name: str) -> str:
    return _read("guidance", name).strip()


def guidance(part: str, tools: Sequence[str]) -> str:
    """One part of the guidance, for those of its tools that are there. A line after a tool's name is for that tool."""
    text, _, rest = prompt(f"guidance_{part}").partition("\n\n")
    lines = dict(line.split(": ", 1) for line in rest.splitlines() if line)
    return " ".join([*text.split(), *(line for name, line in lines.items() if name in tools)])


def _read(folder: str, name: str) -> str:
    with open(os.path.join(_FOLDER, folder, f"{name}.md"), encoding="utf-8") as file:
        return file.read()
