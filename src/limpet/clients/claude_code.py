"""Claude Code. Its transcripts are JSON Lines in `~/.claude/projects/<folder>/<session>.jsonl`, with messages in the
format of Anthropic's API."""

from __future__ import annotations

import os
from collections.abc import Mapping

from limpet.clients.base import (
    COMMON_EVENTS,
    CodingAgent,
    HookAnswer,
    HookEvent,
    Json,
    a_text,
    context_output,
    hook_output,
    response_of,
    text_name,
    with_failure,
    with_message,
)
from limpet.light import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limpet.clients.base import MessageSink
    from limpet.clients.edits import Edit, InstallTarget

# Sub-agents share the server, which does not know them apart: the hook names their session.
EVENTS = {**COMMON_EVENTS, "PreToolUse": ("before-tool", "mcp__.*limpet.*")}
_BASH_RESULT = {"stdout": "", "stderr": "", "interrupted": False, "isImage": False}
_TITLES = {"ai-title": "aiTitle", "custom-title": "customTitle"}  # of a record of this type
_NOT_CONVERSATION = ("isSidechain", "isMeta", "isCompactSummary")


class ClaudeCode(CodingAgent):
    name = "claude-code"
    title = "Claude Code"

    passes_context = True
    hooks_also_run_by = ("copilot", "cursor")
    keeps_context = True
    takes_messages = True
    home_folder = ".claude"
    programs = ("claude",)
    local_files = True
    advice = "Start claude in the project; if it asks, approve the server of limpet."
    project_guidance = ("CLAUDE.md",)
    user_guidance = (".claude", "CLAUDE.md")
    skills_folder = ".claude"

    tells_session = True
    session_variables = ("CLAUDE_CODE_SESSION_ID",)
    variables = ("CLAUDE_PROJECT_DIR",)
    copied_variables = True
    plugin_variable = "CLAUDE_PLUGIN_ROOT"

    replaceable_tools = ("Bash", "BashOutput", "Grep", "WebFetch", "mcp__*")

    transcript_files = (".claude/projects/*/*.jsonl",)

    def files(self, target: InstallTarget) -> dict[str, tuple[Edit, ...]]:
        """What is for one machine also reaches the subfolders of a project; `.claude/settings.json` does not."""
        server, hooks = target.shared_server(), target.common_hooks(self.name, EVENTS)
        if target.scope == "project":
            return {
                os.path.join(target.home, ".claude.json"): (
                    target.entry(("projects", target.root, "mcpServers"), server),
                ),
                target.path(".claude", "settings.local.json"): hooks,
            }
        config = target.path(".claude.json") if target.scope == "user" else target.path(".mcp.json")
        return {
            config: (target.entry(("mcpServers",), server),),
            target.path(".claude", "settings.json"): hooks,
        }

    def plugin_settings(self, root: str, home: str) -> tuple[str, ...]:
        in_project = (os.path.join(root, ".claude", name) for name in ("settings.json", "settings.local.json"))
        return os.path.join(home, ".claude", "settings.json"), *in_project

    def recognises(self, payload: Mapping[str, Any]) -> bool:
        return "hook_event_name" in payload

    def write(self, event: HookEvent, answer: HookAnswer) -> Json:
        if answer.output is not None:
            # Claude Code silently drops an output that does not have the shape of the tool's own result.
            return hook_output(event, updatedToolOutput=_shaped(event, answer.output))
        if answer.arguments is not None:
            return hook_output(event, updatedInput=answer.arguments)  # whether it may run is for others to decide
        return with_message(context_output(event, answer), answer)

    def is_record(self, record: Mapping[str, Any]) -> bool:
        return record.get("type") in ("user", "assistant") and isinstance(record.get("message"), dict)

    def session_of(self, record: Mapping[str, Any]) -> tuple[str, str]:
        return a_text(record.get("sessionId")), a_text(record.get("cwd"))

    def title_of(self, record: Mapping[str, Any]) -> str:
        return a_text(record.get(_TITLES.get(a_text(record.get("type")), "")))

    def collect(self, record: Mapping[str, Any], messages: MessageSink) -> None:
        if not any(map(record.get, _NOT_CONVERSATION)):
            message = record["message"]
            messages.anthropic({name: message.get(name) for name in ("role", "content")})


def _shaped(event: HookEvent, output: str) -> Any:
    response = response_of(event.payload)
    if isinstance(response, dict) and (name := text_name(response)) is not None:
        members = {key: value for key, value in response.items() if not key.startswith("persistedOutput")}
        return {**(_BASH_RESULT if name == "stdout" else {}), **members, name: output}
    if isinstance(response, list):
        return [{"type": "text", "text": output}]
    return with_failure(event, output)


CLIENT = ClaudeCode()
