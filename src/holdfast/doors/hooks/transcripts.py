"""The session files that clients keep: JSON Lines, of which the conversation is read and everything else passed over.

They are other programs' files and change without notice, so a line that is not understood is left out, and only the
end of a long file is read.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from holdfast import limits
from holdfast.window.messages import ASSISTANT, USER, Message, Text

# What clients put into a user's messages by themselves.
_INSERTED = re.compile(r"<(system-reminder|holdfast|hook_context)>.*?</\1>", re.DOTALL)
_ASIDE = ("isSidechain", "isMeta", "isCompactSummary")  # lines of Claude Code that are no part of the talk
_NOT_SAID = (
    *("<local-command", "<command-", "<environment_context", "<user_instructions", "<turn_aborted", "# AGENTS.md"),
    *("Caveat: The messages below", "This session is being continued from a previous conversation"),
)


def read(path: str) -> tuple[Message, ...]:
    """The conversation in a client's file, whichever of the known clients wrote it; empty when there is none."""
    claude: list[Any] = []
    codex: list[Any] = []
    for line in _lines(path):
        kind = line.get("type")
        if kind == "response_item" and isinstance(line.get("payload"), dict):
            codex.append(line["payload"])
        elif kind in (USER, ASSISTANT) and isinstance(line.get("message"), dict) and not any(map(line.get, _ASIDE)):
            claude.append({name: line["message"].get(name) for name in ("role", "content")})
    return tuple(_said(_converted(claude, codex)))


def _converted(claude: Sequence[Any], codex: Sequence[Any]) -> tuple[Message, ...]:
    if codex:
        from holdfast.window.formats import openai_responses

        return openai_responses.read(codex)
    from holdfast.window.formats import anthropic

    return anthropic.read(claude)


def _lines(path: str) -> Iterator[dict[str, Any]]:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > limits.TRANSCRIPT_BYTES:
            file.seek(size - limits.TRANSCRIPT_BYTES)
            file.readline()  # the rest of a line whose beginning is not read
        for line in file:
            try:
                found = json.loads(line)
            except ValueError:
                continue  # the client may be writing it just now
            if isinstance(found, dict):
                yield found


def _said(messages: Sequence[Message]) -> Iterator[Message]:
    """Without what nobody said: what clients insert themselves, and what we gave them."""
    for message in messages:
        if message.role != USER:
            yield message
            continue
        parts = [
            part._replace(text=_INSERTED.sub("", part.text).strip()) if isinstance(part, Text) else part
            for part in message.parts
        ]
        kept = [part for part in parts if not isinstance(part, Text) or (part.text and not _inserted(part.text))]
        if kept:
            yield message._replace(parts=tuple(kept))


def _inserted(text: str) -> bool:
    return text.startswith(_NOT_SAID)
