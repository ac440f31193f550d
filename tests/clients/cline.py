"""Cline CLI. Its hooks can replace nothing, so it has the tools and, before other servers, the wrapper."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from clients.install import installed
from clients.kit import SERVERS, Agent, Talk, as_texts, at_a_terminal
from clients.stub import Json, Turn
from clients.stub_chat import Chat

VERSION = "3.0.65"
READY, LEAVE = "Ask anything", "\x03"  # on its screen; Ctrl-C, twice


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
                if resume:
                    self.at_its_screens(stub, prompt, resume, len(turns))
                else:
                    self.run([str(self.program), "--json", "-t", "100", prompt])
            finally:
                self.end_daemons()
        sessions = sorted((self.home / ".cline" / "data" / "sessions").glob("*_*"))
        return Talk(stub, resume or sessions[-1].name)

    def at_its_screens(self, stub: Chat, prompt: str, session: str, turns: int) -> None:
        """It resumes there. The prompt is typed as a person does, and Enter is a press of its own."""
        at_a_terminal(
            [str(self.program), "--id", session, "--auto-approve", "true"],
            self.project,
            self.environment | {"TERM": "xterm-256color"},
            READY,
            LEAVE,
            typed=(prompt, "\r"),
            answered=lambda: len(stub.requests) >= turns,
        )

    def results(self, request: Json) -> list[str]:
        return as_texts(message["content"] for message in request["messages"] if message["role"] == "tool")

    def end_daemons(self) -> None:
        """It leaves a process behind. Ours are those that have this test's home."""
        home = f"HOME={self.home}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if home in (process / "environ").read_bytes().split(b"\0"):
                    os.kill(int(process.name), signal.SIGKILL)
