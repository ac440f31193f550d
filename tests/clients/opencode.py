"""OpenCode. It installs a package into each of its folders when it starts, so they have it before it looks."""

from __future__ import annotations

import json
import os
from pathlib import Path

from clients.install import installed
from clients.kit import SERVERS, Agent, Talk, as_texts, objects
from clients.stub import Json, Say, Turn
from clients.stub_chat import Chat

VERSION = "1.18.33"
OFF = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")


class OpenCode(Agent):
    name = "opencode"
    shell = "bash"
    shell_whole = True
    compacting = (Say("much was done", used=95_000),)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.program = installed("opencode-ai", VERSION, "opencode-linux-x64/bin/opencode")
        modules = installed("@opencode-ai/plugin", VERSION, "@opencode-ai/plugin/package.json").parents[2]
        self.environment |= {f"OPENCODE_DISABLE_{name}": "1" for name in OFF}
        for place in (self.project / ".opencode", self.home / ".config" / "opencode", self.home / ".opencode"):
            place.mkdir(parents=True)
            for name in ("node_modules", "package.json", "package-lock.json"):
                os.symlink(modules.parent / name, place / name)
        model = {"tool_call": True, "limit": {"context": 100_000, "output": 8_000}}
        options = {"baseURL": "{env:STUB_ADDRESS}/v1", "apiKey": "dummy"}
        provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"stub-model": model}}
        config = {
            "provider": {"stub": provider},
            "model": "stub/stub-model",
            "small_model": "stub/stub-model",
            "permission": {"*": "allow"},
            "mcp": {name: {"type": "local", "command": command} for name, command in SERVERS.items()},
        }
        self.put(".config/opencode/opencode.json", json.dumps(config, indent=2))

    def ask(self, prompt: str, *turns: Turn, resume: str = "") -> Talk:
        with Chat(turns, "_") as stub:
            command = [str(self.program), "run", "--format", "json", *(["--session", resume] if resume else []), prompt]
            printed = self.run(command, STUB_ADDRESS=stub.address)
        return Talk(stub, str(objects(printed)[0]["sessionID"]))

    def results(self, request: Json) -> list[str]:
        return as_texts(message["content"] for message in request["messages"] if message["role"] == "tool")
