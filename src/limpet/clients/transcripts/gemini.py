"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-….jsonl`, or `.json` of earlier versions.

A record is written anew whenever something is added to it, under the same id. It does not name the project's folder,
only its SHA-256.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from limpet.clients.transcripts.shape import Head, Json, Reader, a_text, answered, called, spoken
from limpet.window.messages import ASSISTANT, USER, Message

_KINDS = ("user", "gemini")


def _mine(record: Json) -> bool:
    return "projectHash" in record or (record.get("type") in _KINDS and "content" in record and "message" not in record)


def _head(record: Json) -> Head:
    return Head(a_text(record.get("sessionId")), a_text(record.get("projectHash")))


def _said(record: Json) -> Sequence[Message]:
    if record.get("type") not in _KINDS:
        return ()
    text = "\n".join(_texts(record["content"]))
    if record["type"] == "user":
        return spoken(USER, text)
    made = spoken(ASSISTANT, text)
    for one in record.get("toolCalls") or ():
        made.append(called(one["id"], one["name"], one.get("args")))
        if one.get("result") is not None:
            made.append(answered(one["id"], _result(one["result"]), error=one.get("status") == "error"))
    return made


def _texts(content: Any) -> Iterator[str]:
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]


def _result(result: Any) -> str:
    found = []
    for part in result if isinstance(result, list) else [result]:
        if isinstance(part, dict) and isinstance(part.get("functionResponse"), dict):
            told = part["functionResponse"].get("response")
            inner = told.get("output", told.get("error")) if isinstance(told, dict) else told
            found.append(inner if isinstance(inner, str) else json.dumps(told, ensure_ascii=False))
        else:
            found += _texts(part)
    return "\n".join(found)


def _name(record: Json) -> str:
    return a_text(record.get("id"))


READER = Reader("gemini", (".gemini/tmp/*/chats/session-*.json*",), _mine, _head, _said, name=_name)
