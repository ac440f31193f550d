"""How each client words an event and wants its answer. Everything a client has of its own is here and nowhere else."""

# Annotations are real objects here: as texts, each would be compiled again for its NamedTuple at every start.
import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from limpet import limits

Json = dict[str, Any]
RESULTS = ("tool_response", "toolResult", "tool_result", "tool_output", "result_json")  # names of a tool's result
TEXTS = ("stdout", "textResultForLlm", "text_result_for_llm", "llmContent", "content", "result", "output")
BYTES = frozenset({"codex", "copilot"})  # clients whose cap is in bytes
# Clients that say nothing after a compaction: the context waits for the next event that can carry it.
LATE = frozenset({"copilot", "cursor"})
# Clients that do not tell MCP servers which session they are in, nor let a hook add it to a call: the model has to.
NAMELESS = frozenset({"cursor"})
# Patterns are compiled when they are first looked for: most hooks look for none, and each takes a while.
_SAVED = r"(?s)Error: result \(.{1,80}\) exceeds .{0,200}?saved to (\S+?)\.?(?:\s|$)"
_FRAMED = r"(?s)<untrusted_context>\n(.*)\n</untrusted_context>\s*"


class Event(NamedTuple):
    """What happened, in our words, whichever client said it."""

    client: str
    name: str  # one of EVENTS in events.py
    theirs: str  # the client's own name for it
    session: str
    folder: str
    source: str = ""  # of a session's start: startup, resume, clear or compact
    tool: str = ""
    arguments: str = ""  # of the tool, as JSON
    result: str | None = None  # the tool's text; None where it has none, or none that could be replaced
    failed: bool = False  # as far as the result says
    subagent: bool = False
    transcript: str = ""
    raw: Mapping[str, Any] = {}


class Answer(NamedTuple):
    context: str = ""  # text for the model
    output: str | None = None  # what the model is to see in place of the tool's result
    arguments: Json | None = None  # what the tool is to get in place of what the model gave it


def detect(payload: Mapping[str, Any], started_by: str) -> str:
    """The client, where the command does not name it: by the environment, and some by their payload."""
    if started_by and started_by != "claude-code":
        return started_by
    if "turn_id" in payload and "model" in payload:
        return "codex"
    return started_by or ("claude-code" if "hook_event_name" in payload else "copilot")


def read(client: str, name: str, payload: Mapping[str, Any]) -> Event:
    """The event a client's JSON object stands for. What is missing or odd counts as not said."""

    def text(*names: str) -> str:
        found = next((payload[key] for key in names if isinstance(payload.get(key), str)), "")
        return str(found)

    roots = payload.get("workspace_roots")
    folder = text("cwd") or (str(roots[0]) if isinstance(roots, list) and roots else "")
    arguments = next((payload[key] for key in ("tool_input", "toolArgs") if payload.get(key) is not None), None)
    response = _response(payload)
    return Event(
        client,
        name,
        text("hook_event_name", "hookEventName"),
        text("session_id", "sessionId", "conversation_id"),
        folder if os.path.isdir(folder) else "",
        text("source"),
        text("tool_name", "toolName"),
        arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments),
        _unframed(_result(response, payload)) if client == "gemini" else _result(response, payload),
        _failed(response),
        bool(payload.get("agent_id") or payload.get("parent_session_id")),
        text("transcript_path", "transcriptPath"),
        payload,
    )


def write(event: Event, answer: Answer) -> Json:
    """The client's JSON object for an answer; an empty one lets everything go on as it was."""
    return _WRITERS.get(event.client, _plain)(event, answer)


# --- results of tools -------------------------------------------------------------------------------------------------


def _response(payload: Mapping[str, Any]) -> Any:
    found = next((payload[key] for key in RESULTS if payload.get(key) is not None), None)
    if isinstance(found, str) and "result_json" in payload:
        try:
            return json.loads(found)
        except ValueError:
            return found
    return found


def _result(response: Any, payload: Mapping[str, Any]) -> str | None:
    if isinstance(response, dict) and (saved := _file(response.get("persistedOutputPath"))) is not None:
        return saved
    text = _text(response)
    if text is not None and len(text) < 2_000 and (named := re.match(_SAVED, text)):
        # A server could write such a sentence too: only a file among those the client keeps for the session is read.
        kept = os.path.splitext(str(payload.get("transcript_path") or ""))[0]
        path = os.path.realpath(named[1])
        if kept and path.startswith(os.path.join(os.path.realpath(kept), "tool-results") + os.sep):
            return _file(path) or text
    return text


def _unframed(text: str | None) -> str | None:
    """Without the marks that Gemini CLI puts around what comes from outside. What it gets back has them again."""
    found = re.fullmatch(_FRAMED, text) if text is not None else None
    return found[1] if found else text


def _file(path: object) -> str | None:
    """A result that the client put aside; None when there is none, or none that can be kept."""
    if not isinstance(path, str) or not os.path.isfile(path) or os.path.getsize(path) > limits.OUTPUT_MAX_BYTES:
        return None
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _text(response: Any) -> str | None:
    if isinstance(response, str):
        return response
    if isinstance(response, list):
        return _joined(response)
    if not isinstance(response, dict):
        return None
    name = _text_name(response)
    if name is not None:
        return str(response[name])
    parts = response.get("content", response.get("llmContent"))
    return _joined(parts) if isinstance(parts, list) else None


def _text_name(response: Mapping[str, Any]) -> str | None:
    return next((name for name in TEXTS if isinstance(response.get(name), str)), None)


def _joined(parts: list[Any]) -> str | None:
    """The text of content blocks; None when there is anything but text among them, which must not get lost."""
    found = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type", "text") == "text"]
    texts = [part for part in found if isinstance(part, str)]
    return "\n".join(texts) if texts and len(texts) == len(parts) else None


def _failed(response: Any) -> bool:
    if not isinstance(response, dict):
        return False
    said = response.get("resultType", response.get("result_type"))
    return bool(response.get("isError") or response.get("is_error") or response.get("error")) or said == "failure"


# --- answers ----------------------------------------------------------------------------------------------------------


def _nested(event: Event, **more: Any) -> Json:
    return {"hookSpecificOutput": {"hookEventName": event.theirs, **more}}


def _told(event: Event, output: str) -> str:
    """For clients that take nothing but a text: a failure has to be said in it."""
    return f"[The tool reported a failure.]\n{output}" if event.failed else output


def _claude(event: Event, answer: Answer) -> Json:
    if answer.output is not None:
        # The client drops, without a word, what has not the shape of the tool's own result.
        return _nested(event, updatedToolOutput=_shaped(event, answer.output))
    return _nested(event, additionalContext=answer.context) if answer.context else {}


def _shaped(event: Event, output: str) -> Any:
    response = _response(event.raw)
    if isinstance(response, dict) and (name := _text_name(response)) is not None:
        kept = {key: value for key, value in response.items() if not key.startswith("persistedOutput")}
        return {**(_BASH if name == "stdout" else {}), **kept, name: output}
    if isinstance(response, list):
        return [{"type": "text", "text": output}]
    return _told(event, output)


def _codex(event: Event, answer: Answer) -> Json:
    if answer.output is not None:
        # The turn goes on: this client takes the reason for the result.
        return {"continue": False, "stopReason": "kept by limpet", "reason": _told(event, answer.output)}
    return _nested(event, additionalContext=answer.context) if answer.context else {}


def _gemini(event: Event, answer: Answer) -> Json:
    if answer.output is not None:
        # The model gets the reason as the error of a refused call, so it has to be said where there was none.
        output = answer.output if event.failed else f"{WENT_THROUGH}\n{answer.output}"
        if re.fullmatch(_FRAMED, _text(_response(event.raw)) or ""):
            output = f"<untrusted_context>\n{output}\n</untrusted_context>"
        return {"decision": "deny", "reason": _told(event, output)}
    if answer.arguments is not None:
        return _nested(event, tool_input=answer.arguments)
    if answer.context and event.name == "before-model":
        return _nested(event, llm_request={"messages": _injected(event.raw, answer.context)})
    return _nested(event, additionalContext=answer.context) if answer.context else {}


def _injected(payload: Mapping[str, Any], context: str) -> list[Any]:
    """The messages of a request with the context after the client's own summary."""
    found: list[Any] = []
    for message in messages_of(payload):
        found.append(message)
        if SNAPSHOT in json.dumps(message) and context:
            found.append({"role": "user", "content": context})
            context = ""
    return found


def messages_of(payload: Mapping[str, Any]) -> list[Any]:
    request = payload.get("llm_request")
    messages = request.get("messages") if isinstance(request, dict) else None
    return messages if isinstance(messages, list) else []


def _copilot(event: Event, answer: Answer) -> Json:
    if answer.output is not None:
        kind = "failure" if event.failed else "success"
        return {"modifiedResult": {"resultType": kind, "textResultForLlm": answer.output}}
    return {"additionalContext": answer.context} if answer.context else {}


def _cursor(event: Event, answer: Answer) -> Json:
    if answer.output is not None:
        return {"updated_mcp_tool_output": {"content": [{"type": "text", "text": _told(event, answer.output)}]}}
    return {"additional_context": answer.context} if answer.context else {}


def _plain(event: Event, answer: Answer) -> Json:
    found: Json = {"context": answer.context} if answer.context else {}
    found |= {} if answer.output is None else {"output": _told(event, answer.output)}
    return found | ({} if answer.arguments is None else {"arguments": answer.arguments})


SNAPSHOT = "<state_snapshot>"  # what Gemini CLI puts around the summary of what it dropped
WENT_THROUGH = "[The call went through. Its long result was kept, and this stands in its place.]"
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
