"""Cursor. It keeps no transcripts that can be read."""

from __future__ import annotations

from limpet.clients.base import HOOK_SECONDS, CodingAgent, HookAnswer, HookEvent, Json, with_failure
from limpet.light import TYPE_CHECKING

if TYPE_CHECKING:
    from limpet.clients.edits import Edit, InstallTarget

EVENTS = {
    "sessionStart": "session-start",
    "postToolUse": "after-tool",
    "preCompact": "before-compact",
    "stop": "stop",
    "sessionEnd": "session-end",
}


class Cursor(CodingAgent):
    name = "cursor"
    title = "Cursor"

    passes_context = True

    home_folder = ".cursor"
    programs = ("cursor", "cursor-agent")
    advice = "Start Cursor in the project and switch the server of limpet on in its settings, under MCP."
    project_guidance = ("AGENTS.md",)

    variables = ("CURSOR_VERSION",)

    silent_compaction = True
    hides_session = True
    replaceable_tools = ("MCP:*",)

    def files(self, target: InstallTarget) -> dict[str, tuple[Edit, ...]]:
        hooks = tuple(
            target.hook(
                ("hooks", event),
                {"command": target.command_line("hook", "--client", self.name, name), "timeout": HOOK_SECONDS},
            )
            for event, name in EVENTS.items()
        )
        return {
            target.path(".cursor", "mcp.json"): (target.entry(("mcpServers",), target.server()),),
            target.path(".cursor", "hooks.json"): (target.member(("version",), 1), *hooks),
        }

    def write(self, event: HookEvent, answer: HookAnswer) -> Json:
        if answer.output is not None:
            text = with_failure(event, answer.output)
            return {"updated_mcp_tool_output": {"content": [{"type": "text", "text": text}]}}
        return {"additional_context": answer.context} if answer.context else {}


CLIENT = Cursor()
