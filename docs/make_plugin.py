"""Writes the plugin for Claude Code from what `limpet install` writes. `make docs` runs it; a test knows.

The marketplace's manifest has to stand at the top of the repository; the plugin is in plugins/limpet. The same folder
serves Codex CLI and Copilot CLI, so its hooks do not say which client runs them.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

from limpet import __version__, prompts
from limpet.clients.base import HOOK_SECONDS
from limpet.clients.claude_code import EVENTS
from limpet.clients.edits import SERVER_ARGUMENTS

TOP = pathlib.Path(__file__).parent.parent
PLUGIN = "plugins/limpet"
ABOUT = "Working memory: notes, a notepad and handoffs that outlive the context window, and big results outside it."
MISSING = "Limpet is not on the PATH, so its plugin does nothing. Install it first."


def files() -> dict[str, str]:
    """Every file by its path from the top of the repository."""
    owner = {"name": "Limpet"}
    listed = {"name": "limpet", "source": f"./{PLUGIN}", "description": ABOUT, "version": __version__}
    manifest = {
        "name": "limpet",
        "version": __version__,
        "description": ABOUT,
        "author": owner,
        "license": "Apache-2.0",
    }
    server = {"command": "limpet", "args": list(SERVER_ARGUMENTS), "alwaysLoad": True}
    return {
        ".claude-plugin/marketplace.json": _json(
            {"name": "limpet", "description": ABOUT, "owner": owner, "plugins": [listed]}
        ),
        f"{PLUGIN}/.claude-plugin/plugin.json": _json(manifest),
        f"{PLUGIN}/.mcp.json": _json({"mcpServers": {"limpet": server}}),
        f"{PLUGIN}/hooks/hooks.json": _json({"hooks": {theirs: [_hook(*ours)] for theirs, ours in EVENTS.items()}}),
        f"{PLUGIN}/skills/limpet/SKILL.md": prompts.client("SKILL.md"),
    }


def _hook(event: str, matcher: str) -> dict[str, Any]:
    """A plugin can be there without the program; then one event says so and the others are silent."""
    otherwise = f"; else echo '{json.dumps({'systemMessage': MISSING})}'" if event == "session-start" else ""
    line = f"if command -v limpet >/dev/null; then limpet hook {event}{otherwise}; fi"
    found = {"hooks": [{"type": "command", "command": line, "timeout": HOOK_SECONDS}]}
    return {"matcher": matcher, **found} if matcher else found


def _json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"


if __name__ == "__main__":
    for name, text in files().items():
        path = TOP / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
