"""Goose. It has no hooks that could change anything, so it has the tools and, before other servers, the wrapper."""

from __future__ import annotations

import json
from pathlib import Path

from clients.install import installed
from clients.kit import SERVERS, Agent, Talk, as_texts
from clients.stub import Json, Turn
from clients.stub_chat import Chat

VERSION = "1.52.0"


class Goose(Agent):
    name = "goose"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        package = "@aaif/goose-binary-linux-x64"
        self.program = installed(package, VERSION, f"{package}/bin/goose")
        self.environment |= {
            "GOOSE_PROVIDER": "openai",
            "GOOSE_MODEL": "stub-model",
            "GOOSE_MODE": "auto",
            "GOOSE_DISABLE_KEYRING": "1",
            "OPENAI_API_KEY": "dummy",
            "OPENAI_BASE_PATH": "v1/chat/completions",
        }
        lines = ["extensions:"]
        for name, command in SERVERS.items():
            entry = {"enabled": True, "type": "stdio", "name": name, "cmd": command[0], "args": command[1:]}
            lines += [f"  {name}:", *(f"    {key}: {json.dumps(value)}" for key, value in entry.items())]
        self.put(".config/goose/config.yaml", "\n".join([*lines, ""]))

    def ask(self, prompt: str, *turns: Turn, resume: str = "") -> Talk:
        with Chat(turns, "__") as stub:
            known = ["--resume", "--session-id", resume] if resume else []
            self.run([str(self.program), "run", "-t", prompt, *known], OPENAI_HOST=stub.address)
            sessions = json.loads(self.run([str(self.program), "session", "list", "--format", "json"]))
        return Talk(stub, resume or sessions[0]["id"])

    def results(self, request: Json) -> list[str]:
        return as_texts(message["content"] for message in request["messages"] if message["role"] == "tool")
