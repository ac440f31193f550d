"""Codex CLI. Its transcripts are JSON Lines in `~/.codex/sessions/<year>/<month>/<day>/rollout-….jsonl`, with items in
the format of OpenAI's Responses API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from limpet.clients.base import (
    COMMON_EVENTS,
    CodingAgent,
    HookAnswer,
    HookEvent,
    Json,
    a_text,
    context_output,
    with_failure,
    with_message,
)

if TYPE_CHECKING:
    from limpet.clients.base import MessageSink
    from limpet.clients.edits import Edit, InstallTarget


END_SECONDS = 3  # Codex allows no more at the end of a session, and complains at every start


class Codex(CodingAgent):
    name = "codex"
    title = "Codex CLI"

    passes_context = True
    keeps_context = True
    takes_messages = True
    home_folder = ".codex"
    programs = ("codex",)
    advice = "Start codex, type /hooks and trust the hooks of limpet."
    project_guidance = ("AGENTS.md",)
    user_guidance = (".codex", "AGENTS.md")

    cap_in_bytes = True
    # Not those of its shell: a hook is given neither the exit code nor more than 10 kB of the output, and Codex itself
    # shows the model no more than that.
    replaceable_tools = ("mcp__*",)

    transcript_files = (".codex/sessions/*/*/*/rollout-*.jsonl",)

    def files(self, target: InstallTarget) -> dict[str, tuple[Edit, ...]]:
        server = target.server()
        lines = f"[mcp_servers.limpet]\ncommand = {json.dumps(server['command'])}\nargs = {json.dumps(server['args'])}"
        return {
            target.path(".codex", "config.toml"): (target.block(lines),),
            target.path(".codex", "hooks.json"): target.common_hooks(
                self.name, COMMON_EVENTS, shorter={"SessionEnd": END_SECONDS}
            ),
        }

    def recognises(self, payload: Mapping[str, Any]) -> bool:
        return "turn_id" in payload and "model" in payload

    def write(self, event: HookEvent, answer: HookAnswer) -> Json:
        if answer.output is not None:
            # The turn goes on: Codex shows the reason as the result.
            return {"continue": False, "stopReason": "kept by limpet", "reason": with_failure(event, answer.output)}
        return with_message(context_output(event, answer), answer)

    def is_record(self, record: Mapping[str, Any]) -> bool:
        return record.get("type") in ("response_item", "session_meta") and isinstance(record.get("payload"), dict)

    def session_of(self, record: Mapping[str, Any]) -> tuple[str, str]:
        if record["type"] != "session_meta":
            return "", ""
        payload = record["payload"]
        return a_text(payload.get("id") or payload.get("session_id")), a_text(payload.get("cwd"))

    def collect(self, record: Mapping[str, Any], messages: MessageSink) -> None:
        if record["type"] != "response_item":
            return
        item = dict(record["payload"])
        namespace = item.pop("namespace", None)
        if isinstance(namespace, str) and isinstance(item.get("name"), str):
            item["name"] = f"{namespace}__{item['name']}"  # the tool's name in hooks
        messages.openai_responses(item)


CLIENT = Codex()
