"""OpenCode. It keeps sessions in a database of its own; `opencode export SESSION` writes one as a JSON document.

Its hooks are a plugin in JavaScript that Limpet installs, so they speak the plain dialect of `CodingAgent.write`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from limpet import settings
from limpet.clients.base import CodingAgent, a_text

if TYPE_CHECKING:
    from limpet.clients.base import MessageSink
    from limpet.clients.edits import Edit, InstallTarget


class OpenCode(CodingAgent):
    name = "opencode"
    title = "OpenCode"

    passes_context = True

    home_folder = os.path.join(".config", "opencode")
    programs = ("opencode",)
    advice = "Start opencode in the project."
    project_guidance = ("AGENTS.md",)
    user_guidance = (".config", "opencode", "AGENTS.md")

    transcript_advice = "Write the session to a file first: `opencode export SESSION > session.json`."

    def files(self, target: InstallTarget) -> dict[str, tuple[Edit, ...]]:
        server = {"type": "local", "command": target.server_command(), "enabled": True}
        plugin = target.prompt("opencode_plugin.js").replace("__COMMAND__", json.dumps(list(target.command)))
        user_folder = target.path(".config", "opencode")
        config = os.path.join(user_folder if target.scope == "user" else target.root, "opencode.json")
        folder = user_folder if target.scope == "user" else target.path(".opencode")
        return {
            config: (target.entry(("mcp",), server),),
            os.path.join(folder, "plugins", "limpet.js"): (target.own_file(plugin),),
        }

    def result_folders(self, payload: Mapping[str, Any]) -> tuple[str, ...]:
        data = settings.process_environment().get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
        return (os.path.join(data, "opencode", "tool-output"),)

    def is_record(self, record: Mapping[str, Any]) -> bool:
        info = record.get("info")
        return isinstance(info, dict) and ("directory" in info or isinstance(record.get("parts"), list))

    def session_of(self, record: Mapping[str, Any]) -> tuple[str, str]:
        info = record["info"]
        if "directory" in info:
            return a_text(info.get("id")), a_text(info["directory"])
        return a_text(info.get("sessionID")), ""

    def collect(self, record: Mapping[str, Any], messages: MessageSink) -> None:
        by_user = record["info"].get("role") == "user"
        for part in record.get("parts") or ():
            if part.get("type") == "text" and not part.get("synthetic"):
                (messages.user if by_user else messages.assistant)(part["text"])
            elif part.get("type") == "tool":
                _collect_call(part["callID"], part["tool"], part["state"], messages)


def _collect_call(id: Any, name: Any, state: Mapping[str, Any], messages: MessageSink) -> None:
    messages.call(id, name, state.get("input"))
    if state.get("status") == "completed":
        messages.result(id, a_text(state.get("output")))
    elif state.get("status") == "error":
        messages.result(id, a_text(state.get("error")), error=True)


CLIENT = OpenCode()
