"""Gemini CLI. It compresses before a turn, so a second turn is needed in one run: a hook of the test asks for it."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

from clients.install import installed
from clients.kit import SERVERS, Agent, Talk, as_texts, objects
from clients.stub import Json, Say, Turn, Use
from clients.stub_gemini import Gemini as Stub

VERSION, NODE = "0.61.0", "22.22.2"
AGAIN = """
import json, os, sys
name = os.path.join(os.path.dirname(__file__), "again")
print(json.dumps({"decision": "deny", "reason": "Go on."} if os.path.exists(name) else {}))
os.path.exists(name) and os.unlink(name)
"""


class Gemini(Agent):
    name = "gemini"
    shell = "run_shell_command"
    # It keeps the last turns, to about a third of all. So this turn is the greater part, and it keeps none.
    compacting = (*4 * (Use("text", {"size": 3_500}, "plain"),), Say("much was done", used=900_000))

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.node = installed("node", NODE, "node/bin/node")
        self.program = installed("@google/gemini-cli", VERSION, "@google/gemini-cli/bundle/gemini.js")
        self.environment |= {
            "GEMINI_API_KEY": "dummy",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_CLI_NO_RELAUNCH": "true",
        }
        script = self.put("again.py", AGAIN)
        again = {"type": "command", "command": shlex.join([sys.executable, str(script)]), "timeout": 20_000}
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
            "mcpServers": {
                name: {"command": command[0], "args": command[1:], "trust": True} for name, command in SERVERS.items()
            },
            "hooks": {"AfterAgent": [{"hooks": [again]}]},
        }
        self.put(".gemini/settings.json", json.dumps(settings, indent=2))

    def ask(self, prompt: str, *turns: Turn, resume: str = "") -> Talk:
        if self.compacting[-1] in turns:
            self.put("again", "")
        with Stub(turns) as stub:
            command = [str(self.node), str(self.program), "-p", prompt, "-m", "gemini-2.5-flash"]
            command += ["--approval-mode", "yolo", "--output-format", "stream-json"]
            command += ["--resume", resume] if resume else []
            printed = self.run(command, GOOGLE_GEMINI_BASE_URL=stub.address)
        started = next(event for event in objects(printed) if event["type"] == "init")
        return Talk(stub, str(started["session_id"]))

    def results(self, request: Json) -> list[str]:
        parts = [part for content in request["contents"] for part in content["parts"]]
        return as_texts(part["functionResponse"]["response"] for part in parts if "functionResponse" in part)
