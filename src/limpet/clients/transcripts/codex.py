"""Codex CLI: JSON Lines in `~/.codex/sessions/<year>/<month>/<day>/rollout-….jsonl`, items as OpenAI's Responses API
has them."""

from __future__ import annotations

from collections.abc import Sequence

from limpet.clients.transcripts.shape import Head, Json, Reader, a_text
from limpet.window.formats import openai_responses
from limpet.window.messages import Message


def _mine(record: Json) -> bool:
    return record.get("type") in ("response_item", "session_meta") and isinstance(record.get("payload"), dict)


def _head(record: Json) -> Head:
    payload = record["payload"]
    if record["type"] != "session_meta":
        return Head()
    return Head(a_text(payload.get("id") or payload.get("session_id")), a_text(payload.get("cwd")))


def _said(record: Json) -> Sequence[Message]:
    if record["type"] != "response_item":
        return ()
    item = dict(record["payload"])
    space = item.pop("namespace", None)
    if isinstance(space, str) and isinstance(item.get("name"), str):
        item["name"] = f"{space}__{item['name']}"  # as the client's hooks call the tool
    return openai_responses.read([item])


READER = Reader("codex", (".codex/sessions/*/*/*/rollout-*.jsonl",), _mine, _head, _said)
