"""Codex CLI."""

from __future__ import annotations

import json
from pathlib import Path

from clients.install import installed
from clients.kit import SERVERS, Agent, Talk, as_texts, objects
from clients.stub import Json, Turn, Use
from clients.stub_openai import Responses

VERSION = "0.166.0"
CONFIG = """
model = "stub-model"
model_provider = "stub"
approval_policy = "never"
sandbox_mode = "danger-full-access"
model_context_window = 100000
model_auto_compact_token_limit = 50000

[model_providers.stub]
name = "stub"
base_url = "ADDRESS/v1"
wire_api = "responses"
env_key = "STUB_KEY"
"""


class Codex(Agent):
    name = "codex"
    checkpoints = True
    shell_replaced = False
    compacting = (Use("text", {"size": 10}, "plain", used=60_000),)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.program = installed("@openai/codex", VERSION, "@openai/codex-linux-*/vendor/*/bin/codex")
        self.environment["STUB_KEY"] = "dummy"
        lines = [CONFIG]
        for name, command in SERVERS.items():
            lines += [f"[mcp_servers.{name}]", f"command = {json.dumps(command[0])}"]
            lines += [f"args = {json.dumps(command[1:])}", 'default_tools_approval_mode = "approve"', ""]
        self.config = self.put(".codex/config.toml", "\n".join(lines))

    def ask(self, prompt: str, *turns: Turn, resume: str = "") -> Talk:
        with Responses(turns) as stub:
            text = self.config.read_text()
            self.config.write_text(text.replace("ADDRESS", stub.address))
            words = ["exec", *(["resume", resume] if resume else [])]
            flags = ["--skip-git-repo-check", "--json", "--dangerously-bypass-hook-trust"]
            printed = self.run([str(self.program), *words, *flags, prompt])
            self.config.write_text(text)
        started = next(event for event in objects(printed) if event["type"] == "thread.started")
        return Talk(stub, str(started["thread_id"]))

    def results(self, request: Json) -> list[str]:
        return as_texts(item["output"] for item in request["input"] if item["type"] == "function_call_output")

    def run_shell(self, command: str) -> Use:
        return Use("exec_command", {"cmd": command})
