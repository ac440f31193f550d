"""The clients we know, each with the files it reads. A client is a few values; what they do is in `edits`.

Hooks are given as `limpet hook --client NAME EVENT`, a command on the PATH, because none of the clients expands paths
in all of its files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from limpet.clients.edits import Block, Edit, Entry, Hook, Member, Whole

MCP = ("mcp", "--profile", "coding", "--no-handoff")  # the hooks give it
TIMEOUT = 20  # seconds a hook may take; ours takes a tenth of one


class Where(NamedTuple):
    """Whose configuration: `root` is the home folder or the project's, `command` how Limpet is started."""

    scope: str  # "user" or "project"
    root: str
    command: tuple[str, ...]

    def path(self, *parts: str) -> str:
        return os.path.join(self.root, *parts)

    def line(self, *args: str) -> str:
        """A shell's command line."""
        return " ".join(_quoted(word) for word in (*self.command, *args))


class Client(NamedTuple):
    name: str
    title: str
    files: Callable[[Where], dict[str, tuple[Edit, ...]]]  # path: what to do to it
    mark: str  # a folder in the home folder that says the client is used here
    advice: str = ""  # what is left for a person to do
    hooks: bool = True


def _quoted(word: str) -> str:
    import shlex

    return shlex.quote(word)


def _server(where: Where, **more: Any) -> dict[str, Any]:
    return {"command": where.command[0], "args": [*where.command[1:], *MCP], **more}


def _nested(where: Where, client: str, events: dict[str, tuple[str, str]], timeout: int = TIMEOUT) -> tuple[Hook, ...]:
    """Hooks as Claude Code writes them; several others took its form."""
    return tuple(
        Hook(
            ("hooks", theirs),
            {
                **({"matcher": matcher} if matcher else {}),
                "hooks": [
                    {"type": "command", "command": where.line("hook", "--client", client, ours), "timeout": timeout}
                ],
            },
        )
        for theirs, (ours, matcher) in events.items()
    )


EVENTS = {  # of Claude Code, and of those that took over its form
    "SessionStart": ("session-start", ""),
    "UserPromptSubmit": ("prompt", ""),
    "PostToolUse": ("after-tool", "*"),
    "PreCompact": ("before-compact", ""),
    "Stop": ("stop", ""),
    "SessionEnd": ("session-end", ""),
}


def _claude(where: Where) -> dict[str, tuple[Edit, ...]]:
    server = Entry(("mcpServers",), {"type": "stdio", **_server(where), "alwaysLoad": True})
    config = where.path(".claude.json") if where.scope == "user" else where.path(".mcp.json")
    return {config: (server,), where.path(".claude", "settings.json"): _nested(where, "claude-code", EVENTS)}


def _codex(where: Where) -> dict[str, tuple[Edit, ...]]:
    server = _server(where)
    lines = f"[mcp_servers.limpet]\ncommand = {json.dumps(server['command'])}\nargs = {json.dumps(server['args'])}"
    return {
        where.path(".codex", "config.toml"): (Block(lines),),
        where.path(".codex", "hooks.json"): _nested(where, "codex", EVENTS),
    }


def _gemini(where: Where) -> dict[str, tuple[Edit, ...]]:
    events = {
        "SessionStart": ("session-start", ""),
        "BeforeAgent": ("prompt", ""),
        "BeforeTool": ("before-tool", "mcp_limpet_.*"),  # it does not tell a server which session it serves
        "AfterTool": ("after-tool", "*"),
        "BeforeModel": ("before-model", ""),
        "SessionEnd": ("session-end", ""),
    }
    hooks = _nested(where, "gemini", events, TIMEOUT * 1_000)  # this client counts in milliseconds
    return {where.path(".gemini", "settings.json"): (Entry(("mcpServers",), _server(where)), *hooks)}


def _cursor(where: Where) -> dict[str, tuple[Edit, ...]]:
    events = {
        "sessionStart": "session-start",
        "postToolUse": "after-tool",
        "preCompact": "before-compact",
        "stop": "stop",
        "sessionEnd": "session-end",
    }
    hooks = tuple(
        Hook(("hooks", theirs), {"command": where.line("hook", "--client", "cursor", ours), "timeout": TIMEOUT})
        for theirs, ours in events.items()
    )
    return {
        where.path(".cursor", "mcp.json"): (Entry(("mcpServers",), _server(where)),),
        where.path(".cursor", "hooks.json"): (Member(("version",), 1), *hooks),
    }


def _copilot(where: Where) -> dict[str, tuple[Edit, ...]]:
    events = {
        "sessionStart": "session-start",
        "userPromptSubmitted": "prompt",
        "postToolUse": "after-tool",
        "preCompact": "before-compact",
        "agentStop": "stop",
        "sessionEnd": "session-end",
    }
    hooks = {
        theirs: [{"type": "command", "bash": where.line("hook", "--client", "copilot", ours), "timeoutSec": TIMEOUT}]
        for theirs, ours in events.items()
    }
    text = json.dumps({"version": 1, "hooks": hooks}, indent=2) + "\n"
    folder = (".copilot", "hooks") if where.scope == "user" else (".github", "hooks")
    files: dict[str, tuple[Edit, ...]] = {where.path(*folder, "limpet.json"): (Whole(text),)}
    if where.scope == "user":
        server = Entry(("mcpServers",), {"type": "local", **_server(where), "tools": ["*"]})
        files[where.path(".copilot", "mcp-config.json")] = (server,)
    return files


def _opencode(where: Where) -> dict[str, tuple[Edit, ...]]:
    from limpet import prompts

    command = list(where.command)
    server = Entry(("mcp",), {"type": "local", "command": [*command, *MCP], "enabled": True})
    plugin = prompts.client("opencode_plugin.js").replace("__COMMAND__", json.dumps(command))
    for_all = where.path(".config", "opencode")
    config = os.path.join(for_all if where.scope == "user" else where.root, "opencode.json")
    folder = for_all if where.scope == "user" else where.path(".opencode")
    return {config: (server,), os.path.join(folder, "plugins", "limpet.js"): (Whole(plugin),)}


CLIENTS: dict[str, Client] = {
    client.name: client
    for client in (
        Client("claude-code", "Claude Code", _claude, ".claude"),
        Client("codex", "Codex CLI", _codex, ".codex", "Start codex, type /hooks and trust the hooks of limpet."),
        Client("opencode", "OpenCode", _opencode, os.path.join(".config", "opencode")),
        Client("gemini", "Gemini CLI", _gemini, ".gemini"),
        Client("cursor", "Cursor", _cursor, ".cursor"),
        Client(
            "copilot",
            "Copilot CLI",
            _copilot,
            ".copilot",
            "Copilot CLI reads MCP servers from the home folder only: use --user for the tools.",
        ),
    )
}
