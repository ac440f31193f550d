"""Copilot CLI: JSON Lines in `~/.copilot/session-state/<session>/events.jsonl`, one event each."""

from __future__ import annotations

from collections.abc import Sequence

from limpet.clients.transcripts.shape import Head, Json, Reader, a_text, answered, called, spoken
from limpet.window.messages import ASSISTANT, USER, Message

_KINDS = ("session.start", "user.message", "assistant.message", "tool.execution_complete")


def _mine(record: Json) -> bool:
    return record.get("type") in _KINDS and isinstance(record.get("data"), dict)


def _head(record: Json) -> Head:
    data = record["data"]
    if record["type"] != "session.start":
        return Head()
    place = data.get("context")
    return Head(a_text(data.get("sessionId")), a_text(place.get("cwd")) if isinstance(place, dict) else "")


def _said(record: Json) -> Sequence[Message]:
    data = record["data"]
    match record["type"]:
        case "user.message":
            return spoken(USER, data["content"])
        case "assistant.message":
            calls = data.get("toolRequests") or ()
            made = [called(one["toolCallId"], one["name"], one.get("arguments")) for one in calls]
            return [*spoken(ASSISTANT, data["content"]), *made]
        case "tool.execution_complete":
            good = bool(data.get("success", True))
            told = data.get("result") if good else data.get("error") or data.get("result")
            text = told.get("content", told.get("message")) if isinstance(told, dict) else told
            return [answered(data["toolCallId"], a_text(text), error=not good)]
    return ()


READER = Reader("copilot", (".copilot/session-state/*/events.jsonl",), _mine, _head, _said)
