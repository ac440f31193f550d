"""Copilot CLI."""

from __future__ import annotations

from pathlib import Path

from clients.install import installed
from clients.kit import SERVERS, Agent, Talk, as_texts, objects
from clients.stub import Json, Turn, Use
from clients.stub_chat import Chat

VERSION = "1.0.102"


def wait(used: int = 100) -> Use:
    """The agent compacts beside the work, so the work takes a moment."""
    return Use("bash", {"command": "sleep 1; echo waited", "description": "wait"}, used=used)


class Copilot(Agent):
    name = "copilot"
    shell = "bash"
    plain_size, shell_lines = 10_000, 3_000  # more goes into a file before a hook sees it
    compacting = (wait(used=95_000), *(wait() for _ in range(4)))

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.program = installed("@github/copilot", VERSION, "@github/copilot-linux-*/copilot")
        self.environment |= {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_API_KEY": "dummy",
            "COPILOT_MODEL": "stub-model",
            "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "100000",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_ALLOW_ALL": "true",
        }
        servers = {
            name: {"type": "local", "command": command[0], "args": command[1:], "tools": ["*"]}
            for name, command in SERVERS.items()
        }
        self.put(".copilot/mcp-config.json", {"mcpServers": servers})

    def ask(self, prompt: str, *turns: Turn, resume: str = "") -> Talk:
        with Chat(turns, "-") as stub:
            command = [str(self.program), "-p", prompt, "--allow-all-tools", "--output-format", "json"]
            command += [f"--resume={resume}" if resume else "--trust-folder"]
            printed = self.run(command, COPILOT_PROVIDER_BASE_URL=f"{stub.address}/v1")
        sessions = [event["sessionId"] for event in objects(printed) if "sessionId" in event]
        return Talk(stub, str(sessions[-1]))

    def results(self, request: Json) -> list[str]:
        return as_texts(message["content"] for message in request["messages"] if message["role"] == "tool")
