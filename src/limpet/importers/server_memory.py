"""MCP's reference memory server: a graph of entities and relations, as its JSON Lines file or as `read_graph` gives it.

An entity becomes one text: its type, its observations, and the relations that begin at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from limpet.importers.facts import Fact, Json, Reader, Unread, a_text, fact, records, texts_of

TOOL = "server-memory"


def read(body: bytes) -> Iterator[Fact | Unread]:
    kinds: dict[str, list[str]] = {}
    lines: dict[str, list[str]] = {}  # per entity, in order
    for part, record in _graph(body):
        if isinstance(record, Unread):
            yield record
            continue
        name = a_text(record.get("name")) or a_text(record.get("from"))
        added = _lines(record)
        if not name or added is None:
            yield Unread(part, "it is neither an entity nor a relation")
            continue
        lines.setdefault(name, []).extend(added)
        if kind := a_text(record.get("entityType")).strip():
            kinds.setdefault(name, []).append(kind)
    for name, texts in lines.items():
        types = kinds.get(name, [])
        head = f"{name} ({', '.join(dict.fromkeys(types))})" if types else name
        yield fact(TOOL, name, "\n".join([head, *dict.fromkeys(texts)]), types)


def _graph(body: bytes) -> Iterator[tuple[str, Json | Unread]]:
    for part, record in records(body):
        if isinstance(record, dict) and ("entities" in record or "relations" in record):
            for field in ("entities", "relations"):
                inner = record.get(field, [])
                yield from _each(f"{field} of {part}", inner if isinstance(inner, list) else [inner])
        else:
            yield from _each(part, [record])


def _each(part: str, values: Iterable[object]) -> Iterator[tuple[str, Json | Unread]]:
    for number, value in enumerate(values, 1):
        where = f"{part}, {number:,}" if " of " in part else part
        if isinstance(value, dict):
            yield where, value
        else:
            yield where, Unread(where, str(value) if isinstance(value, ValueError) else "it is not a JSON object")


def _lines(record: Json) -> list[str] | None:
    """The lines that a record adds to its entity. None if it is not part of a graph."""
    if a_text(record.get("name")) and isinstance(record.get("observations", []), list):
        return [f"- {' '.join(text.split())}" for text in texts_of(record.get("observations", [])) if text.strip()]
    relation, to = a_text(record.get("relationType")), a_text(record.get("to"))
    return [f"- {relation} → {to}"] if relation and to else None


READER = Reader(TOOL, False, read)
