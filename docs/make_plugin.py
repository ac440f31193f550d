"""Writes the packages by which other programs take Limpet in: plugins, an extension, a bundle, a registry entry.

All of them come from what `limpet install` writes and from the version. `make docs` runs this, and tests/test_plugin.py
holds the files to it. Lists of plugins have to stand at the top of the repository; the plugin is in plugins/limpet. The
same folder serves Claude Code, Codex CLI and Copilot CLI, so its hooks do not say which client runs them.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

from limpet import __version__, prompts
from limpet.clients.base import HOOK_SECONDS
from limpet.clients.claude_code import EVENTS
from limpet.clients.edits import SERVER_ARGUMENTS
from limpet.clients.gemini import EVENTS as GEMINI_EVENTS

TOP = pathlib.Path(__file__).parent.parent
PLUGIN = "plugins/limpet"
EXTENSION = "plugins/gemini"
REGISTRY = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
BRIEF = "Working memory for agents: notes, notepad, handoffs and big results that outlive the window."
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
    server = {"command": "limpet", "args": list(SERVER_ARGUMENTS)}
    return {
        **_codex(manifest),
        **_gemini(),
        **_packages(),
        ".claude-plugin/marketplace.json": _json(
            {"name": "limpet", "description": ABOUT, "owner": owner, "plugins": [listed]}
        ),
        f"{PLUGIN}/.claude-plugin/plugin.json": _json(manifest),
        f"{PLUGIN}/.mcp.json": _json({"mcpServers": {"limpet": server}}),
        f"{PLUGIN}/hooks/hooks.json": _json({"hooks": {theirs: [_hook(*ours)] for theirs, ours in EVENTS.items()}}),
        f"{PLUGIN}/skills/limpet/SKILL.md": prompts.client("SKILL.md"),
    }


def _codex(manifest: dict[str, Any]) -> dict[str, str]:
    """Codex CLI reads its own manifests; tools, hooks and the skill are those of the plugin."""
    interface = {"displayName": "Limpet", "shortDescription": ABOUT, "category": "Productivity"}
    parts = {"skills": "./skills/", "mcpServers": "./.mcp.json", "hooks": "./hooks/hooks.json"}
    policy = {"installation": "AVAILABLE", "authentication": "ON_INSTALL"}
    source = {"source": "local", "path": f"./{PLUGIN}"}
    entry = {"name": "limpet", "source": source, "policy": policy, "category": "Productivity"}
    return {
        f"{PLUGIN}/.codex-plugin/plugin.json": _json({**manifest, **parts, "interface": interface}),
        ".agents/plugins/marketplace.json": _json(
            {"name": "limpet", "interface": {"displayName": "Limpet"}, "plugins": [entry]}
        ),
    }


def _gemini() -> dict[str, str]:
    """Gemini CLI's extension has a folder of its own: its hooks have other events and count in milliseconds."""
    hooks = {theirs: [_hook(*ours, 1_000 * HOOK_SECONDS)] for theirs, ours in GEMINI_EVENTS.items()}
    server = {"command": "limpet", "args": list(SERVER_ARGUMENTS)}
    extension = {"name": "limpet", "version": __version__, "description": ABOUT, "mcpServers": {"limpet": server}}
    return {
        f"{EXTENSION}/gemini-extension.json": _json(extension),
        f"{EXTENSION}/hooks/hooks.json": _json({"hooks": hooks}),
    }


def _packages() -> dict[str, str]:
    """What is published besides the wheel. Each of them runs the wheel of the same version."""
    bundle = {
        "manifest_version": "0.3",
        "name": "limpet",
        "display_name": "Limpet",
        "version": __version__,
        "description": ABOUT,
        "author": {"name": "Limpet"},
        "license": "Apache-2.0",
        "server": {
            "type": "python",
            "entry_point": "server/start.py",
            "mcp_config": {"command": "uvx", "args": ["--from", f"limpet=={__version__}", "limpet", "mcp"]},
        },
        "compatibility": {"platforms": ["darwin", "linux"], "runtimes": {"python": ">=3.11"}},
        "tools_generated": True,
    }
    launcher = {
        "name": "limpet",
        "version": __version__,
        "description": ABOUT,
        "license": "Apache-2.0",
        "bin": {"limpet": "limpet.js"},
        "files": ["limpet.js"],
        "engines": {"node": ">=18"},
        "keywords": ["agents", "memory", "mcp"],
    }
    package = {
        "registryType": "pypi",
        "identifier": "limpet",
        "version": __version__,
        "runtimeHint": "uvx",
        "transport": {"type": "stdio"},
        "packageArguments": [{"type": "positional", "value": "mcp"}],
    }
    listing = {"$schema": REGISTRY, "name": "io.github.limpet/limpet", "title": "Limpet", "description": BRIEF}
    return {
        "deploy/mcpb/manifest.json": _json(bundle),
        "deploy/npm/package.json": _json(launcher),
        "deploy/server.json": _json({**listing, "version": __version__, "packages": [package]}),
    }


def _hook(event: str, matcher: str, timeout: int = HOOK_SECONDS) -> dict[str, Any]:
    """A plugin can be there without the program; then one event says so and the others are silent."""
    otherwise = f"; else echo '{json.dumps({'systemMessage': MISSING})}'" if event == "session-start" else ""
    line = f"if command -v limpet >/dev/null; then limpet hook {event}{otherwise}; fi"
    group = {"hooks": [{"type": "command", "command": line, "timeout": timeout}]}
    return {"matcher": matcher, **group} if matcher else group


def _json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"


if __name__ == "__main__":
    for name, text in files().items():
        path = TOP / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
