"""What a reader is, and what is made of a client's words: messages with nothing in them but what was said and done."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from limpet.window.messages import ASSISTANT, SYSTEM, TOOL, USER, Call, Media, Message, Part, Result, Text

Json = Mapping[str, Any]


class Head(NamedTuple):
    """Which session of which folder a record belongs to, as far as it says."""

    session: str = ""
    folder: str = ""


class Reader(NamedTuple):
    """How one client writes its sessions down."""

    client: str
    files: tuple[str, ...]  # patterns below the home folder
    mine: Callable[[Json], bool]  # whether a record is part of what this client writes
    head: Callable[[Json], Head]
    said: Callable[[Json], Sequence[Message]]  # raises when a record is not what it seemed
    advice: str = ""  # how people get a file, where there is none to be found
    name: Callable[[Json], str] = lambda record: ""  # records of one name: the last one counts


# What clients put into a user's messages by themselves.
_INSERTED = re.compile(r"<(system-reminder|limpet|hook_context)>.*?</\1>", re.DOTALL)
_NOT_SAID = (
    *("<local-command", "<command-", "<environment_context", "<user_instructions", "<turn_aborted", "# AGENTS.md"),
    *("Caveat: The messages below", "This session is being continued from a previous conversation", "<session_context"),
)


def a_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def called(id: object, name: object, arguments: object) -> Message:
    import json  # late, like all that a hook seldom needs

    told = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return Message(ASSISTANT, (Call(a_text(id), a_text(name) or "tool", told),))


def answered(id: object, text: str, *, error: bool = False) -> Message:
    return Message(TOOL, (Result(a_text(id), (Text(text),), error),))


def spoken(role: str, text: object) -> list[Message]:
    return [Message(role, (Text(text),))] if isinstance(text, str) and text.strip() else []


def cleaned(messages: Sequence[Message]) -> Iterator[Message]:
    """Without what nobody said (instructions of the client, thinking, what hooks gave), and without pictures' bytes."""
    for message in messages:
        if message.role == SYSTEM:
            continue
        parts = [kept for part in message.parts if (kept := _clean(part, message.role)) is not None]
        if parts:
            yield Message(message.role, tuple(parts))


def _clean(part: Part, role: str) -> Part | None:
    match part:
        case Text():
            text = _INSERTED.sub("", part.text).strip() if role == USER else part.text
            return Text(text) if text.strip() and not (role == USER and text.startswith(_NOT_SAID)) else None
        case Media():
            return _left_out(part)
        case Call():
            return Call(part.id, part.name, part.arguments)
        case Result():
            inner = tuple(_left_out(one) if isinstance(one, Media) else Text(one.text) for one in part.parts)
            return Result(part.call_id, inner, part.error)
    return None


def _left_out(media: Media) -> Text:
    return Text(f"[{media.kind}, not kept]")
