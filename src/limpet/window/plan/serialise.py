"""A message as it is stored: one searchable text, and the rest as JSON.

Each text is stored once: the JSON has the offsets of each part in the searchable text. A text that cannot be stored (a
NUL, a lone surrogate) or would make the searchable text too long is in the JSON instead, which is ASCII and can hold
anything.
"""

from __future__ import annotations

from collections.abc import Mapping

from limpet import limits
from limpet.light import Any, json
from limpet.model import EMPTY
from limpet.platform import sha256
from limpet.record import NamedTuple
from limpet.text import safe
from limpet.window.messages import Call, Media, Message, Other, Part, Result, Text, Thinking

_NAMES: dict[type, str] = {Text: "text", Thinking: "thinking", Media: "media", Call: "call", Result: "result"}


class PackedMessage(NamedTuple):
    text: str
    body: str  # ASCII JSON


class _TextBuilder:
    """The searchable text under construction."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.length = 0

    def put(self, text: str) -> list[int] | str:
        """Append the text and return its offsets, or the text itself if it cannot be appended."""
        if self.length + len(text) > limits.MESSAGE_TEXT_MAX_CHARS or safe.problem(text):
            return text
        if self.pieces:
            self._append("\n")
        start = self.length
        self._append(text)
        return [start, self.length]

    def _append(self, text: str) -> None:
        self.pieces.append(text)
        self.length += len(text)


def pack(message: Message) -> PackedMessage:
    builder = _TextBuilder()
    body: dict[str, Any] = {"role": message.role, "parts": [_packed(part, builder) for part in message.parts]}
    if message.raw:
        body["raw"] = message.raw
    return PackedMessage("".join(builder.pieces), _to_json(body))


def unpack(packed: PackedMessage) -> Message:
    body = json.loads(packed.body)
    return Message(
        body["role"], tuple(_unpacked(part, packed.text) for part in body["parts"]), body.get("raw") or EMPTY
    )


def digest(message: Message) -> str:
    """A hash of the content: equal for equal messages."""
    plain = _to_plain([message.role, [_plain(part) for part in message.parts], message.raw])
    return sha256(plain.encode()).hexdigest()[:32]


def _plain(part: Part) -> list[Any]:
    inner = [_plain(nested) for nested in part.parts] if isinstance(part, Result) else None
    return [_NAMES.get(type(part), "other"), *part, inner]


def _mapping(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


def _to_json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), default=str)


def _to_plain(value: object) -> str:
    return json.dumps(value, default=_mapping)


def _packed(part: Part, builder: _TextBuilder) -> dict[str, Any]:
    record: dict[str, Any] = {"is": _NAMES.get(type(part), "other")}
    match part:
        case Text() | Thinking():
            record["text"] = builder.put(part.text)
        case Media():
            record["kind"] = part.kind
        case Call():
            record |= {"id": part.id, "name": builder.put(part.name), "arguments": builder.put(part.arguments)}
        case Result():
            record |= {"call": part.call_id, "parts": [_packed(nested, builder) for nested in part.parts]}
            record |= {"error": True} if part.error else {}
    return record | ({"raw": part.raw} if part.raw else {})


def _unpacked(record: Mapping[str, Any], text: str) -> Any:
    def field(name: str) -> str:
        value = record[name]
        return text[value[0] : value[1]] if isinstance(value, list) else str(value)

    raw = record.get("raw") or EMPTY
    match record["is"]:
        case "text":
            return Text(field("text"), raw)
        case "thinking":
            return Thinking(field("text"), raw)
        case "media":
            return Media(record["kind"], raw)
        case "call":
            return Call(record["id"], field("name"), field("arguments"), raw)
        case "result":
            parts = tuple(_unpacked(nested, text) for nested in record["parts"])
            return Result(record["call"], parts, bool(record.get("error")), raw)
        case _:
            return Other(raw)
