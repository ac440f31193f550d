"""What is put into a project's own files only when asked: a short guidance for agents, and a skill.

A client reads its guidance from a file of a name of its own; many share AGENTS.md and the folder of skills, so that
what is asked for by one is there for all of them and goes when it is taken out for one.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from limpet import prompts
from limpet.clients.edits import Block, Edit, Whole, is_ours
from limpet.clients.registry import Where

GUIDANCE, SKILL = "guidance", "skill"
_SKILL = ("skills", "limpet", "SKILL.md")


class Places(NamedTuple):
    """Where a client looks, in a project and in the home folder; empty where it does not."""

    project: tuple[str, ...]
    user: tuple[str, ...]
    skills: str = ".agents"  # the folder of skills, in both


PLACES = {
    "claude-code": Places(("CLAUDE.md",), (".claude", "CLAUDE.md"), ".claude"),
    "codex": Places(("AGENTS.md",), (".codex", "AGENTS.md")),
    "opencode": Places(("AGENTS.md",), (".config", "opencode", "AGENTS.md")),
    "gemini": Places(("GEMINI.md",), (".gemini", "GEMINI.md")),
    "cursor": Places(("AGENTS.md",), ()),
    "copilot": Places(("AGENTS.md",), (".copilot", "copilot-instructions.md")),
}


def extras(client: str, where: Where) -> dict[str, dict[str, tuple[Edit, ...]]]:
    """Everything that can be asked for, by its name: path, and what to do to it."""
    places = PLACES[client]
    parts = places.user if where.scope == "user" else places.project
    block = Block(prompts.client("guidance.md"), "<!-- ", " -->")
    found: dict[str, dict[str, tuple[Edit, ...]]] = {
        SKILL: {where.path(places.skills, *_SKILL): (Whole(prompts.client("SKILL.md")),)}
    }
    if parts:
        found[GUIDANCE] = {where.path(*parts): (block,)}
    return found


def present(client: str, where: Where) -> dict[str, dict[str, tuple[Edit, ...]]]:
    """Those that are there."""
    return {
        name: files
        for name, files in extras(client, where).items()
        if all(_there(path, edit) for path, edits in files.items() for edit in edits)
    }


def _there(path: str, edit: Edit) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    if isinstance(edit, Block):
        return edit.marks[0] in text and edit.marks[1] in text
    return isinstance(edit, Whole) and is_ours(text, edit)
