"""Claude Code."""

from __future__ import annotations

import json
from pathlib import Path

from clients.install import installed
from clients.kit import SERVERS, Agent, Talk, as_texts, at_a_terminal
from clients.stub import Json, Turn, Use
from clients.stub_anthropic import Anthropic

VERSION = "2.1.325"
READY, LEAVE = "for agents", "\x04"  # on its screen; Ctrl-D, twice


class ClaudeCode(Agent):
    name = "claude-code"
    shell = "Bash"
    shell_whole = True
    more_outputs = (Use("text", {"size": 400_000, "seed": "more"}, "plain"),)  # it puts this into a file of its own
    checkpoints = True
    allowed = "mcp__limpet,mcp__wrapped,mcp__plain,Bash"
    compacting = (Use("text", {"size": 10}, "plain", used=198_000),)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.program = installed("@anthropic-ai/claude-code", VERSION, "@anthropic-ai/claude-code-*/claude")
        off = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING")
        self.environment |= dict.fromkeys((*off, "DISABLE_AUTOUPDATER"), "1") | {"ANTHROPIC_API_KEY": "sk-dummy"}
        self.environment["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] = "100000"
        servers = {
            name: {"command": command[0], "args": command[1:], "alwaysLoad": True} for name, command in SERVERS.items()
        }
        self.servers = self.put("servers.json", {"mcpServers": servers})

    def ask(self, prompt: str, *turns: Turn, resume: str = "") -> Talk:
        with Anthropic(turns) as stub:
            command = [str(self.program), "-p", prompt, "--model", "claude-sonnet-4-5", "--output-format", "json"]
            command += ["--mcp-config", str(self.servers), "--debug-file", str(self.home / "debug.log")]
            command += ["--allowedTools", self.allowed]
            printed = self.run([*command, *(["--resume", resume] if resume else [])], ANTHROPIC_BASE_URL=stub.address)
        return Talk(stub, str(json.loads(printed)["session_id"]))

    def opened_and_closed(self) -> str:
        """Start it at a terminal, and leave without a word. Returns what the screen showed."""
        asked_before = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        path = self.home / ".claude.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        known |= {"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": {"approved": ["sk-dummy"]}}
        known.setdefault("projects", {})[str(self.project)] = asked_before
        path.write_text(json.dumps(known))
        with Anthropic(()) as stub:
            command = [str(self.program), "--model", "claude-sonnet-4-5", "--mcp-config", str(self.servers)]
            environment = {"ANTHROPIC_BASE_URL": stub.address, "TERM": "xterm-256color"}
            screen = at_a_terminal(command, self.project, self.environment | environment, READY, LEAVE)
            assert stub.requests == [], "the model was asked"
        return screen

    def results(self, request: Json) -> list[str]:
        lists = [message["content"] for message in request["messages"] if isinstance(message["content"], list)]
        return as_texts(block["content"] for blocks in lists for block in blocks if block["type"] == "tool_result")
