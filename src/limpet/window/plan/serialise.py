"""A message as it is kept: one plain text that can be searched, and the rest of it as JSON.

Texts are kept once: the JSON only says from where to where each stands in the plain text. What cannot be stored as text
(a NUL, half a character) or would make the text too long to search stands in the JSON instead, which is pure ASCII and
holds anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from limpet import limits
from limpet.model import EMPTY
from limpet.text import terminal
from limpet.window.messages import Call, Media, Message, Other, Part, Result, Text, Thinking

_NAMES: dict[type, str] = {Text: "text", Thinking: "thinking", Media: "media", Call: "call", Result: "result"}


class Kept(NamedTuple):
    text: str
    body: str  # ASCII JSON


class _Page:
    """The plain text as it grows."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.length = 0

    def put(self, text: str) -> list[int] | str:
        """Where the text stands from now on, or the text itself when it cannot stand there."""
        if self.length + len(text) > limits.MESSAGE_TEXT_MAX_CHARS or terminal.problem(text):
            return text
        if self.pieces:
            self.say("\n")
        start = self.length
        self.say(text)
        return [start, self.length]

    def say(self, text: str) -> None:
        self.pieces.append(text)
        self.length += len(text)


def pack(message: Message) -> Kept:
    page = _Page()
    body: dict[str, Any] = {"role": message.role, "parts": [_packed(part, page) for part in message.parts]}
    if message.raw:
        body["raw"] = message.raw
    return Kept("".join(page.pieces), _to_json(body))


def unpack(kept: Kept) -> Message:
    body = json.loads(kept.body)
    return Message(body["role"], tuple(_unpacked(part, kept.text) for part in body["parts"]), body.get("raw") or EMPTY)


def digest(message: Message) -> str:
    """What tells this message from any other, whatever objects it is made of."""
    plain = _to_plain([message.role, [_plain(part) for part in message.parts], message.raw])
    return hashlib.sha256(plain.encode()).hexdigest()[:32]


def _plain(part: Part) -> list[Any]:
    inner = [_plain(one) for one in part.parts] if isinstance(part, Result) else None
    return [_NAMES.get(type(part), "other"), *part, inner]


def _mapping(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


# Made once: every message is written with both.
_to_json: Callable[[object], str] = json.JSONEncoder(separators=(",", ":"), default=str).encode
_to_plain: Callable[[object], str] = json.JSONEncoder(default=_mapping).encode


def _packed(part: Part, page: _Page) -> dict[str, Any]:
    record: dict[str, Any] = {"is": _NAMES.get(type(part), "other")}
    match part:
        case Text() | Thinking():
            record["text"] = page.put(part.text)
        case Media():
            record["kind"] = part.kind
        case Call():
            record |= {"id": part.id, "name": page.put(part.name), "arguments": page.put(part.arguments)}
        case Result():
            record |= {"call": part.call_id, "parts": [_packed(one, page) for one in part.parts]}
            record |= {"error": True} if part.error else {}
    return record | ({"raw": part.raw} if part.raw else {})


def _unpacked(record: Mapping[str, Any], page: str) -> Any:
    def text(name: str) -> str:
        value = record[name]
        return page[value[0] : value[1]] if isinstance(value, list) else str(value)

    raw = record.get("raw") or EMPTY
    match record["is"]:
        case "text":
            return Text(text("text"), raw)
        case "thinking":
            return Thinking(text("text"), raw)
        case "media":
            return Media(record["kind"], raw)
        case "call":
            return Call(record["id"], text("name"), text("arguments"), raw)
        case "result":
            parts = tuple(_unpacked(one, page) for one in record["parts"])
            return Result(record["call"], parts, bool(record.get("error")), raw)
        case _:
            return Other(raw)
