"""OpenCode keeps its sessions in a database of its own; `opencode export SESSION` writes one as a JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limpet.clients.transcripts.shape import Head, Json, Reader, a_text, answered, called, spoken
from limpet.window.messages import ASSISTANT, USER, Message


def _mine(record: Json) -> bool:
    info = record.get("info")
    return isinstance(info, dict) and ("directory" in info or isinstance(record.get("parts"), list))


def _head(record: Json) -> Head:
    info = record["info"]
    if "directory" in info:
        return Head(a_text(info.get("id")), a_text(info["directory"]))
    return Head(a_text(info.get("sessionID")))


def _said(record: Json) -> Sequence[Message]:
    role = USER if record["info"].get("role") == "user" else ASSISTANT
    made: list[Message] = []
    for part in record.get("parts") or ():
        if part.get("type") == "text" and not part.get("synthetic"):
            made += spoken(role, part["text"])
        elif part.get("type") == "tool":
            made += _tool(part["callID"], part["tool"], part["state"])
    return made


def _tool(id: Any, name: Any, state: Json) -> list[Message]:
    call = called(id, name, state.get("input"))
    if state.get("status") == "completed":
        return [call, answered(id, a_text(state.get("output")))]
    return [call, answered(id, a_text(state.get("error")), error=True)] if state.get("status") == "error" else [call]


READER = Reader(
    "opencode", (), _mine, _head, _said, "Write the session to a file first: `opencode export SESSION > session.json`."
)
