"""mem0: the short facts of `get_all`, of its platform's export and of OpenMemory's backup, each with id and owner."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from limpet.importers.facts import Fact, Json, Reader, Unread, a_text, fact, records, texts_of

TOOL = "mem0"
LISTS = ("results", "memories", "data", "items")  # the members of a document that hold facts
TEXTS = ("memory", "content", "data", "text")  # the members that hold a fact's text
OWNERS = ("user_id", "agent_id", "app_id", "run_id")  # the members that name the owner


def read(body: bytes) -> Iterator[Fact | Unread]:
    for part, record in _rows(body, "the file"):
        if not isinstance(record, dict):
            yield Unread(part, str(record) if isinstance(record, ValueError) else "it is not a JSON object")
        elif record.keys() >= {"source", "relationship", "target"}:
            text = " ".join(a_text(record[name]) for name in ("source", "relationship", "target"))
            yield fact(TOOL, f"relation {_short(text)}", text)
        elif not (text := next((value for name in TEXTS if (value := a_text(record.get(name)).strip())), "")):
            yield Unread(part, "it has no text")
        elif a_text(record.get("state")) == "deleted" or record.get("is_deleted") is True:
            yield Unread(part, "it is deleted there")
        else:
            id = record.get("id")
            name = str(id) if isinstance(id, str | int) and str(id).strip() else _short(text)
            yield fact(TOOL, name, text, _tags(record))


def _rows(body: bytes, where: str) -> Iterator[tuple[str, object]]:
    for part, value in records(body):
        if isinstance(value, dict):
            lists = [name for name in (*LISTS, "relations") if isinstance(value.get(name), list)]
            if not lists:
                yield part, value
            for name in lists:
                yield from ((f"{name}, {number:,}", item) for number, item in enumerate(value[name], 1))
        elif isinstance(value, list):
            yield from ((f"item {number:,}", item) for number, item in enumerate(value, 1))
        else:
            yield part if part != "the file" else where, value


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _tags(record: Json) -> list[str]:
    metadata = record.get("metadata")
    inner = metadata if isinstance(metadata, dict) else {}
    named = [*texts_of(record.get("categories")), *texts_of(inner.get("categories")), *texts_of(inner.get("category"))]
    owners = [f"{name.removesuffix('_id')}:{value}" for name in OWNERS if (value := a_text(record.get(name)))]
    return [*owners, *named, *texts_of(inner.get("tags"))]


READER = Reader(TOOL, False, read)
