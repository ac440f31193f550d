"""Claude Code: JSON Lines in `~/.claude/projects/<folder>/<session>.jsonl`, messages as Anthropic's API has them."""

from __future__ import annotations

from collections.abc import Sequence

from limpet.clients.transcripts.shape import Head, Json, Reader, a_text
from limpet.window.formats import anthropic
from limpet.window.messages import ASSISTANT, USER, Message

_ASIDE = ("isSidechain", "isMeta", "isCompactSummary")  # lines that are no part of the talk


def _mine(record: Json) -> bool:
    return record.get("type") in (USER, ASSISTANT) and isinstance(record.get("message"), dict)


def _head(record: Json) -> Head:
    return Head(a_text(record.get("sessionId")), a_text(record.get("cwd")))


def _said(record: Json) -> Sequence[Message]:
    if any(map(record.get, _ASIDE)):
        return ()
    message = record["message"]
    return anthropic.read([{name: message.get(name) for name in ("role", "content")}])


READER = Reader("claude-code", (".claude/projects/*/*.jsonl",), _mine, _head, _said)
