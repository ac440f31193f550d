"""Limpet as a plugin of the client itself, beside `limpet install`: whether it is there, and who steps back.

The hooks of a plugin and those that were installed would both answer each event, and the model would read everything
twice. So a hook of the plugin does nothing where hooks were installed; those say `--client`, the plugin's do not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from limpet.clients.edits import HOOK, NAME
from limpet.clients.registry import CLIENTS, Where
from limpet.text import json_edit


def hooks_beside(client: str, root: str, home: str) -> bool:
    """Whether hooks of ours stand in the client's own files, for this project or for all."""
    if client not in CLIENTS:
        return False
    for where in (Where("user", home, (NAME,)), Where("project", root, (NAME,))):
        if any(HOOK in _text(path) for path in CLIENTS[client].files(where)):
            return True
    return False


def enabled(root: str, home: str) -> bool:
    """Whether Claude Code has our plugin on. What the project says wins over what is said for all."""
    on = False
    for path in _settings(root, home):
        plugins = _member(_text(path), "enabledPlugins")
        for name, value in plugins.items() if isinstance(plugins, dict) else ():
            if name.partition("@")[0] == NAME:
                on = value is True
    return on


def _settings(root: str, home: str) -> Iterator[str]:
    yield os.path.join(home, ".claude", "settings.json")
    for name in ("settings.json", "settings.local.json"):
        yield os.path.join(root, ".claude", name)


def _member(text: str, name: str) -> Any:
    try:
        node = json_edit.find(text, (name,)) if text.strip() else None
        return None if node is None else json_edit.value(text, node)
    except json_edit.NotJson:
        return None


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
