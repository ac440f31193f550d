"""How each client words an event and wants its answer. Everything a client has of its own is here and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Json = dict[str, Any]


class Event(NamedTuple):
    """What happened, in our words, whichever client said it."""

    client: str
    name: str  # session-start, prompt, after-tool, before-compact, before-model, stop or session-end
    theirs: str  # the client's own name for it
    session: str
    folder: str
    source: str = ""  # of a session's start: startup, resume, clear or compact
    tool: str = ""
    arguments: str = ""  # of the tool, as JSON
    result: str | None = None  # the tool's text; None where it has none, or none that could be replaced
    subagent: bool = False
    transcript: str = ""
    raw: Mapping[str, Any] = {}


class Answer(NamedTuple):
    context: str = ""  # text for the model
    output: str | None = None  # what the model is to see in place of the tool's result


def read(client: str, name: str, payload: Mapping[str, Any]) -> Event:
    """The event a client's JSON object stands for. What is missing or odd counts as not said."""

    def text(*names: str) -> str:
        found = next((payload[key] for key in names if isinstance(payload.get(key), str)), "")
        return str(found)

    roots = payload.get("workspace_roots")
    folder = text("cwd") or (str(roots[0]) if isinstance(roots, list) and roots else "")
    arguments = next((payload[key] for key in ("tool_input", "toolArgs") if payload.get(key) is not None), None)
    return Event(
        client,
        name,
        text("hook_event_name", "hookEventName"),
        text("session_id", "sessionId", "conversation_id"),
        folder,
        text("source"),
        text("tool_name", "toolName"),
        arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments),
        _result(client, payload),
        bool(payload.get("agent_id")),
        text("transcript_path", "transcriptPath"),
        payload,
    )


def write(event: Event, answer: Answer) -> Json:
    """The client's JSON object for an answer; an empty one lets everything go on as it was."""
    return _WRITERS.get(event.client, _plain)(event, answer)


# --- results of tools -------------------------------------------------------------------------------------------------


def _result(client: str, payload: Mapping[str, Any]) -> str | None:
    response = next(
        (payload[key] for key in ("tool_response", "toolResult", "tool_result", "result_json") if key in payload), None
    )
    if isinstance(response, str):
        return response
    if isinstance(response, list):
        return _texts(response)
    if not isinstance(response, dict):
        return None
    for name in ("stdout", "textResultForLlm", "llmContent", "output"):
        if isinstance(response.get(name), str):
            return str(response[name])
    content = response.get("content", response.get("llmContent"))
    return _texts(content) if isinstance(content, list) else None


def _texts(parts: list[Any]) -> str | None:
    """The text of content blocks; None when there is anything but text among them, which must not get lost."""
    found = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type", "text") == "text"]
    texts = [part for part in found if isinstance(part, str)]
    return "\n".join(texts) if texts and len(texts) == len(parts) else None


# --- answers ----------------------------------------------------------------------------------------------------------


def _nested(event: Event, **more: Any) -> Json:
    return {"hookSpecificOutput": {"hookEventName": event.theirs, **more}}


def _claude(event: Event, answer: Answer) -> Json:
    if answer.output is not None:
        response = event.raw.get("tool_response")
        # The client drops, without a word, what has not the shape of the tool's own result.
        if isinstance(response, dict) and "stdout" in response:
            kept = {name: response.get(name, default) for name, default in _BASH.items()}
            return _nested(event, updatedToolOutput={**kept, "stdout": answer.output})
        return _nested(event, updatedToolOutput=answer.output)
    return _nested(event, additionalContext=answer.context) if answer.context else {}


def _codex(event: Event, answer: Answer) -> Json:
    if answer.output is not None:
        return {"continue": False, "stopReason": "kept by holdfast", "reason": answer.output}
    return _nested(event, additionalContext=answer.context) if answer.context else {}


def _gemini(event: Event, answer: Answer) -> Json:
    if answer.output is not None:
        return {"decision": "deny", "reason": answer.output}
    return _nested(event, additionalContext=answer.context) if answer.context else {}


def _copilot(event: Event, answer: Answer) -> Json:
    if answer.output is not None:
        return {"modifiedResult": {"resultType": "success", "textResultForLlm": answer.output}}
    return {"additionalContext": answer.context} if answer.context else {}


def _cursor(event: Event, answer: Answer) -> Json:
    if answer.output is not None:
        return {"updated_mcp_tool_output": answer.output}
    return {"additional_context": answer.context} if answer.context else {}


def _plain(event: Event, answer: Answer) -> Json:
    found: Json = {"context": answer.context} if answer.context else {}
    return found | ({} if answer.output is None else {"output": answer.output})


_BASH = {"stdout": "", "stderr": "", "interrupted": False, "isImage": False}
_WRITERS: dict[str, Callable[[Event, Answer], Json]] = {
    "claude-code": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "copilot": _copilot,
    "cursor": _cursor,
    "opencode": _plain,
}
CLIENTS = tuple(_WRITERS)
