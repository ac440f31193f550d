"""Cline CLI. Its hooks can replace nothing, so it has the tools and, before other servers, the wrapper."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from clients.install import installed
from clients.kit import SERVERS, Agent, Talk, as_texts
from clients.stub import Json, Turn
from clients.stub_chat import Chat

VERSION = "3.0.65"


class Cline(Agent):
    name = "cline"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.program = installed("cline", VERSION, "@cline/cli-linux-x64/bin/cline")
        transports = {
            name: {"transport": {"type": "stdio", "command": command[0], "args": command[1:]}}
            for name, command in SERVERS.items()
        }
        self.put(".cline/data/settings/cline_mcp_settings.json", {"mcpServers": transports})

    def ask(self, prompt: str, *turns: Turn, resume: str = "") -> Talk:
        with Chat(turns, "__") as stub:
            address = f"{stub.address}/v1"
            try:
                self.run([str(self.program), "auth", "-p", "openai", "-k", "dummy", "-m", "stub-model", "-b", address])
                self.run([str(self.program), "--json", "-t", "100", prompt])
            finally:
                self.end_daemons()
        return Talk(stub, "")

    def results(self, request: Json) -> list[str]:
        return as_texts(message["content"] for message in request["messages"] if message["role"] == "tool")

    def end_daemons(self) -> None:
        """It leaves a process behind. Ours are those that have this test's home."""
        home = f"HOME={self.home}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if home in (process / "environ").read_bytes().split(b"\0"):
                    os.kill(int(process.name), signal.SIGKILL)
