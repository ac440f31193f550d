"""Hooks as clients run them: a process each, one JSON object in, one out."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import limpet
from doors.cli_runner import COMMAND, child, environment
from limpet import clients, wiring
from limpet.home.load import load
from person import configure, store_of

Json = dict[str, Any]
WITH_HOOKS = tuple(client.name for client in clients.every() if client.has_hooks)


class Place:
    """A project and a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.home = folder / "home"
        (self.project / ".git").mkdir(parents=True)
        self.home.mkdir()

    def environment(self, **more: str) -> dict[str, str]:
        set_by_agents = {name for client in clients.every() for name in client.variables}
        base = {name: value for name, value in environment().items() if name not in set_by_agents}
        base = {name: value for name, value in base.items() if not name.startswith(("LIMPET_", "XDG_"))}
        return base | {"HOME": str(self.home)} | more

    def start(self, client: str | None, event: str, **env: str) -> subprocess.Popen[bytes]:
        words = ["hook", *(["--client", client] if client else []), event]
        pipe = subprocess.PIPE
        # From another folder: the payload says where the client works.
        env = self.environment(**env)
        return subprocess.Popen([*COMMAND, *words], stdin=pipe, stdout=pipe, stderr=pipe, cwd=self.home, env=env)

    def raw(self, client: str | None, event: str, content: bytes, **env: str) -> Json:
        process = self.start(client, event, **env)
        out, err = process.communicate(content, timeout=100)
        assert process.returncode == 0, err
        assert err == b""
        silent = (client, event) == ("claude-code", "before-compact")  # what it prints would be an instruction
        answer = {} if silent and not out else json.loads(out)
        assert isinstance(answer, dict)
        return answer

    def hook(self, client: str | None, event: str, payload: Json, **env: str) -> Json:
        return self.raw(client, event, json.dumps({"cwd": str(self.project), **payload}).encode(), **env)

    @property
    def store(self) -> Path:
        return store_of(self.project, self.environment())

    def configure(self, text: str) -> None:
        """Write the person's config file."""
        configure(text, self.environment())

    def run(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        """A command of the person in the project."""
        return child(self.project, *words, env=self.environment())

    def open(self) -> limpet.Limpet:
        return wiring.open_with(load(folder=str(self.project), environment=self.environment()))

    @property
    def log(self) -> str:
        path = self.home / ".local" / "share" / "limpet" / "hooks.log"
        return path.read_text() if path.exists() else ""


# How each client says that a session starts, by our name of the source.
def started(client: str, session: str, source: str = "startup") -> Json:
    if client == "copilot":
        return {"sessionId": session, "source": source, "timestamp": 1}
    if client == "cursor":
        return {"conversation_id": session, "hook_event_name": "sessionStart", "cursor_version": "2"}
    if client == "opencode":
        return {"session_id": session}
    extra = {"turn_id": "t1", "model": "gpt"} if client == "codex" else {}
    return {"session_id": session, "hook_event_name": "SessionStart", "source": source, **extra}


def ran(client: str, session: str, tool: str, text: str) -> Json:
    """How each client says that a tool ran."""
    call = {"command": "make"}
    if client == "copilot":
        result = {"resultType": "success", "textResultForLlm": text}
        return {"sessionId": session, "toolName": tool, "toolArgs": call, "toolResult": result}
    base = {"session_id": session, "tool_name": tool, "tool_input": call}
    if client == "claude-code":
        bash = {"stdout": text, "stderr": "warning", "interrupted": False, "isImage": False}
        response: Any = bash if tool == "Bash" else [{"type": "text", "text": text}]
        return {**base, "hook_event_name": "PostToolUse", "tool_response": response}
    if client == "gemini":
        response = {"llmContent": text, "returnDisplay": "shown"}
        return {**base, "hook_event_name": "AfterTool", "tool_response": response}
    if client == "cursor":
        return {"conversation_id": session, "tool_name": tool, "tool_input": call, "tool_output": text}
    if client == "codex":
        response = {"content": [{"type": "text", "text": text}], "isError": False}
        return {**base, "hook_event_name": "PostToolUse", "turn_id": "t", "model": "m", "tool_response": response}
    return {**base, "tool_response": [{"type": "text", "text": text}]}


def context(answer: Json) -> str:
    """The text for the model, wherever the client looks for it."""
    inner = answer.get("hookSpecificOutput", answer)
    found = inner.get("additionalContext", inner.get("additional_context", inner.get("context", "")))
    return str(found)
