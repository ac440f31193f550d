"""Messages, independent of the provider.

A conversation is a flat list of `Message`. A message has a role and parts; a tool call is a part of an assistant
message, its result a part of a later message of role "tool" (also if the provider puts it elsewhere). `raw` keeps what
the provider's format has in addition, so that converting there and back changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from limpet.light import Any
from limpet.model import EMPTY
from limpet.record import NamedTuple

SYSTEM, USER, ASSISTANT, TOOL = "system", "user", "assistant", "tool"


class Text(NamedTuple):
    text: str
    raw: Mapping[str, Any] = EMPTY


class Thinking(NamedTuple):
    """A model's reasoning. Some providers sign it, and refuse it if it was changed or moved."""

    text: str
    raw: Mapping[str, Any] = EMPTY


class Media(NamedTuple):
    """An image, a sound, a file: `kind` is its media type, the bytes or the URL are in `raw`.

    `raw["data"]` is base64, `raw["url"]` a URL, `raw["text"]` the text of a document; none of them if the file is
    stored at the provider.
    """

    kind: str
    raw: Mapping[str, Any] = EMPTY


class Call(NamedTuple):
    """A tool call. `arguments` is JSON text, exactly as the model wrote it if that is known."""

    id: str
    name: str
    arguments: str
    raw: Mapping[str, Any] = EMPTY


class Result(NamedTuple):
    """The answer of a tool to the call with this id. `parts` are texts and media."""

    call_id: str
    parts: tuple[Text | Media, ...]
    error: bool = False
    raw: Mapping[str, Any] = EMPTY


class Other(NamedTuple):
    """A part without a type of its own. It is passed on as it is."""

    raw: Mapping[str, Any] = EMPTY


Part = Text | Thinking | Media | Call | Result | Other


class Message(NamedTuple):
    role: str  # SYSTEM, USER, ASSISTANT or TOOL
    parts: tuple[Part, ...]
    raw: Mapping[str, Any] = EMPTY

    def text(self) -> str:
        """Its text, without calls, results and thinking."""
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
    for call in calls:
        if not isinstance(call.arguments, str):
            raise TypeError(f"the arguments of the call of {call.name} must be JSON text: json.dumps(…)")
    return Message(ASSISTANT, ((Text(text),) if text else ()) + calls)


def result(call_id: str, text: str, *, error: bool = False) -> Message:
    return Message(TOOL, (Result(call_id, (Text(text),), error),))
