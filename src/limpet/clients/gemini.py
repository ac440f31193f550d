"""Gemini CLI. Its transcripts are `~/.gemini/tmp/<project>/chats/session-….jsonl`, or `.json` of earlier versions.

A record is written again, under the same id, whenever something is added to it. It names the SHA-256 of the project's
folder, not the folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from limpet.clients.base import (
    HOOK_SECONDS,
    CodingAgent,
    HookAnswer,
    HookEvent,
    Json,
    a_text,
    context_output,
    hook_output,
    response_of,
    text_of,
    with_failure,
)

if TYPE_CHECKING:
    from limpet.clients.base import MessageSink
    from limpet.clients.edits import Edit, InstallTarget

EVENTS = {
    "SessionStart": ("session-start", ""),
    "BeforeAgent": ("prompt", ""),
    "BeforeTool": ("before-tool", "mcp_limpet_.*"),  # Gemini CLI does not give an MCP server the session
    "AfterTool": ("after-tool", "*"),
    "BeforeModel": ("before-model", ""),
    "SessionEnd": ("session-end", ""),
}
CALL_SUCCEEDED = "[The call went through. Its long result was kept, and this stands in its place.]"
_SUMMARY_MARK = "<state_snapshot>"  # begins the summary that replaces a compacted conversation
_FRAME = r"(?s)<untrusted_context>\n(.*)\n</untrusted_context>\s*"  # around every result that comes from outside
_MESSAGE_TYPES = ("user", "gemini")


class Gemini(CodingAgent):
    name = "gemini"
    title = "Gemini CLI"

    passes_context = True
    announces_turns = False

    home_folder = ".gemini"
    programs = ("gemini",)
    advice = "Start gemini in the project."
    project_guidance = ("GEMINI.md",)
    user_guidance = (".gemini", "GEMINI.md")

    variables = ("GEMINI_CLI", "GEMINI_SESSION_ID")

    transcript_files = (".gemini/tmp/*/chats/session-*.json*",)

    def files(self, target: InstallTarget) -> dict[str, tuple[Edit, ...]]:
        hooks = target.common_hooks(self.name, EVENTS, HOOK_SECONDS * 1_000)  # Gemini CLI counts in milliseconds
        server = target.entry(("mcpServers",), target.server())
        return {target.path(".gemini", "settings.json"): (server, *hooks)}

    def result_text(self, text: str | None) -> str | None:
        match = re.fullmatch(_FRAME, text) if text is not None else None
        return match[1] if match else text

    def was_compacted(self, payload: Mapping[str, Any]) -> bool:
        return _SUMMARY_MARK in json.dumps(_messages(payload))

    def write(self, event: HookEvent, answer: HookAnswer) -> Json:
        if answer.output is not None:
            # The model gets the reason as the error of a refused call, so the text says that the call succeeded.
            output = answer.output if event.failed else f"{CALL_SUCCEEDED}\n{answer.output}"
            if re.fullmatch(_FRAME, text_of(response_of(event.payload)) or ""):
                output = f"<untrusted_context>\n{output}\n</untrusted_context>"
            return {"decision": "deny", "reason": with_failure(event, output)}
        if answer.arguments is not None:
            return hook_output(event, tool_input=answer.arguments)
        if answer.context and event.name == "before-model":
            return hook_output(event, llm_request={"messages": _injected(event.payload, answer.context)})
        return context_output(event, answer)

    def is_record(self, record: Mapping[str, Any]) -> bool:
        is_message = record.get("type") in _MESSAGE_TYPES and "content" in record and "message" not in record
        return "projectHash" in record or is_message

    def session_of(self, record: Mapping[str, Any]) -> tuple[str, str]:
        return a_text(record.get("sessionId")), a_text(record.get("projectHash"))

    def collect(self, record: Mapping[str, Any], messages: MessageSink) -> None:
        if record.get("type") not in _MESSAGE_TYPES:
            return
        text = "\n".join(_texts(record["content"]))
        if record["type"] == "user":
            messages.user(text)
            return
        messages.assistant(text)
        for call in record.get("toolCalls") or ():
            messages.call(call["id"], call["name"], call.get("args"))
            if call.get("result") is not None:
                messages.result(call["id"], _result(call["result"]), error=call.get("status") == "error")

    def record_id(self, record: Mapping[str, Any]) -> str:
        return a_text(record.get("id"))


def _injected(payload: Mapping[str, Any], context: str) -> list[Any]:
    """The messages of a request, with the context after Gemini CLI's own summary."""
    messages: list[Any] = []
    for message in _messages(payload):
        messages.append(message)
        if _SUMMARY_MARK in json.dumps(message) and context:
            messages.append({"role": "user", "content": context})
            context = ""
    return messages


def _messages(payload: Mapping[str, Any]) -> list[Any]:
    request = payload.get("llm_request")
    messages = request.get("messages") if isinstance(request, dict) else None
    return messages if isinstance(messages, list) else []


def _texts(content: Any) -> Iterator[str]:
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]


def _result(result: Any) -> str:
    texts = []
    for part in result if isinstance(result, list) else [result]:
        if isinstance(part, dict) and isinstance(part.get("functionResponse"), dict):
            response = part["functionResponse"].get("response")
            inner = response.get("output", response.get("error")) if isinstance(response, dict) else response
            texts.append(inner if isinstance(inner, str) else json.dumps(response, ensure_ascii=False))
        else:
            texts += _texts(part)
    return "\n".join(texts)


CLIENT = Gemini()
