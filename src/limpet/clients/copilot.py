"""Copilot CLI. Its transcripts are `~/.copilot/session-state/<session>/events.jsonl`, with one event per line."""

from __future__ import annotations

from collections.abc import Mapping

from limpet.clients.base import HOOK_SECONDS, CodingAgent, HookAnswer, HookEvent, Json, a_text
from limpet.light import TYPE_CHECKING, Any, json

if TYPE_CHECKING:
    from limpet.clients.base import MessageSink
    from limpet.clients.edits import Edit, InstallTarget

EVENTS = {
    "sessionStart": ("session-start", ""),
    "userPromptSubmitted": ("prompt", ""),
    "preToolUse": ("before-tool", "limpet-.*"),  # sub-agents share the server, which does not know them apart
    "postToolUse": ("after-tool", ""),
    "preCompact": ("before-compact", ""),
    "agentStop": ("stop", ""),
    "sessionEnd": ("session-end", ""),
}
_RECORD_TYPES = ("session.start", "user.message", "assistant.message", "tool.execution_complete")


class Copilot(CodingAgent):
    name = "copilot"
    title = "Copilot CLI"

    passes_context = True

    home_folder = ".copilot"
    programs = ("copilot",)
    advice = "Start copilot in the project and approve the server of limpet."
    project_guidance = ("AGENTS.md",)
    user_guidance = (".copilot", "copilot-instructions.md")

    tells_session = True
    session_variables = ("COPILOT_AGENT_SESSION_ID",)
    variables = ("COPILOT_CLI",)

    cap_in_bytes = True
    silent_compaction = True

    transcript_files = (".copilot/session-state/*/events.jsonl",)

    def files(self, target: InstallTarget) -> dict[str, tuple[Edit, ...]]:
        hooks = {
            event: [
                {
                    "type": "command",
                    **({"matcher": matcher} if matcher else {}),
                    "bash": target.command_line("hook", "--client", self.name, name),
                    "timeoutSec": HOOK_SECONDS,
                }
            ]
            for event, (name, matcher) in EVENTS.items()
        }
        text = json.dumps({"version": 1, "hooks": hooks}, indent=2) + "\n"
        folder = (".copilot", "hooks") if target.scope == "user" else (".github", "hooks")
        files: dict[str, tuple[Edit, ...]] = {target.path(*folder, "limpet.json"): (target.own_file(text),)}
        # Without the tools, a result that a hook has replaced could not be read.
        if target.scope == "user":
            server = {"type": "local", **target.server(), "tools": ["*"]}
            files[target.path(".copilot", "mcp-config.json")] = (target.entry(("mcpServers",), server),)
        else:
            files[target.path(".mcp.json")] = (target.entry(("mcpServers",), target.shared_server()),)
        return files

    def write(self, event: HookEvent, answer: HookAnswer) -> Json:
        if answer.output is not None:
            kind = "failure" if event.failed else "success"
            return {"modifiedResult": {"resultType": kind, "textResultForLlm": answer.output}}
        if answer.arguments is not None:
            return {"modifiedArgs": answer.arguments}
        return {"additionalContext": answer.context} if answer.context else {}

    def is_record(self, record: Mapping[str, Any]) -> bool:
        return record.get("type") in _RECORD_TYPES and isinstance(record.get("data"), dict)

    def session_of(self, record: Mapping[str, Any]) -> tuple[str, str]:
        if record["type"] != "session.start":
            return "", ""
        context = record["data"].get("context")
        folder = a_text(context.get("cwd")) if isinstance(context, dict) else ""
        return a_text(record["data"].get("sessionId")), folder

    def collect(self, record: Mapping[str, Any], messages: MessageSink) -> None:
        data = record["data"]
        match record["type"]:
            case "user.message":
                messages.user(data["content"])
            case "assistant.message":
                messages.assistant(data["content"])
                for call in data.get("toolRequests") or ():
                    messages.call(call["toolCallId"], call["name"], call.get("arguments"))
            case "tool.execution_complete":
                succeeded = bool(data.get("success", True))
                result = data.get("result") if succeeded else data.get("error") or data.get("result")
                text = result.get("content", result.get("message")) if isinstance(result, dict) else result
                messages.result(data["toolCallId"], a_text(text), error=not succeeded)


CLIENT = Copilot()
