"""Messages as this house sees them, whichever provider they came from.

A conversation is a flat list of `Message`. A message has a role and parts; a call of a tool is a part of an assistant's
message, its result a part of a later message of role "tool" (whatever the provider puts it into). `raw` keeps what the
provider's own form has and ours has no word for, so that converting there and back changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from limpet.model import EMPTY

SYSTEM, USER, ASSISTANT, TOOL = "system", "user", "assistant", "tool"


class Text(NamedTuple):
    text: str
    raw: Mapping[str, Any] = EMPTY


class Thinking(NamedTuple):
    """A model's own reasoning. Some providers sign it, and refuse it changed or in another place."""

    text: str
    raw: Mapping[str, Any] = EMPTY


class Media(NamedTuple):
    """An image, a sound, a file: `kind` is its media type, the bytes or the address are in `raw`.

    `raw["data"]` is base64, `raw["url"]` an address, `raw["text"]` a text document's text; any of them, or none where
    only one provider knows the file.
    """

    kind: str
    raw: Mapping[str, Any] = EMPTY


class Call(NamedTuple):
    """A call of a tool. `arguments` is JSON text, exactly as the model wrote it where that is known."""

    id: str
    name: str
    arguments: str
    raw: Mapping[str, Any] = EMPTY


class Result(NamedTuple):
    """What a tool answered to the call of that id. `parts` are texts and media."""

    call_id: str
    parts: tuple[Text | Media, ...]
    error: bool = False
    raw: Mapping[str, Any] = EMPTY


class Other(NamedTuple):
    """A part we have no word for. It passes as it is and is dropped only together with its message."""

    raw: Mapping[str, Any] = EMPTY


Part = Text | Thinking | Media | Call | Result | Other


class Message(NamedTuple):
    role: str  # SYSTEM, USER, ASSISTANT or TOOL
    parts: tuple[Part, ...]
    raw: Mapping[str, Any] = EMPTY

    def text(self) -> str:
        """The words in it, without calls, results and thinking."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    def calls(self) -> tuple[Call, ...]:
        return tuple(part for part in self.parts if isinstance(part, Call))

    def results(self) -> tuple[Result, ...]:
        return tuple(part for part in self.parts if isinstance(part, Result))


def system(text: str) -> Message:
    return Message(SYSTEM, (Text(text),))


def user(text: str) -> Message:
    return Message(USER, (Text(text),))


def assistant(text: str, *calls: Call) -> Message:
    return Message(ASSISTANT, ((Text(text),) if text else ()) + calls)


def result(call_id: str, text: str, *, error: bool = False) -> Message:
    return Message(TOOL, (Result(call_id, (Text(text),), error),))
