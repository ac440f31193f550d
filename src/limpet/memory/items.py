"""Items: memory as JSON values under a path of names, as in the key-value stores of frameworks.

An item is an entry of memory whose key is the path, so tools, recall and the digest include it. An entry that an agent
wrote by key is an item as well: its value is `{"content": …}`, and without a path in its key its path is `memory`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from limpet import errors, limits
from limpet.catalogue.operation import Context, storable
from limpet.memory.memory import memory_key, memory_score
from limpet.model import MEMORY, Draft, Entry
from limpet.record import NamedTuple
from limpet.store import DELETE, Decide, Listing
from limpet.text import safe

PLAIN = ("memory",)  # the path of memory whose key has none
CONTENT = "content"
FIELD = "item"  # in an entry's extra
SAFE = " !#$&'()*+,:;=?@[]{}|^~"  # characters of a name that are not quoted in a key

Path = tuple[str, ...]


class MemoryItem(NamedTuple):
    path: Path
    name: str
    value: Mapping[str, Any]
    created_at: int  # milliseconds
    updated_at: int


class Put(NamedTuple):
    """A change: the new value of an item, or None to delete it."""

    path: Path
    name: str
    value: Mapping[str, Any] | None


def read_item(ctx: Context, path: Path, name: str) -> MemoryItem | None:
    entry = ctx.store.entries.read(ctx.scope, MEMORY, _key(path, name))
    return None if entry is None else _item(entry)


def put_items(ctx: Context, puts: Sequence[Put]) -> None:
    """All of the changes or none."""
    for put in puts:
        _check(put)
    edits = [(MEMORY, _key(put.path, put.name), _decision(put)) for put in puts]
    if edits:
        ctx.store.entries.edit_all(ctx.scope, edits, ctx.stamp("write_memory", {"mode": "replace"}))


def list_items(ctx: Context, prefix: Path = (), query: str = "") -> list[tuple[int, MemoryItem]]:
    """The items below a path, newest first, with score 0; with a query those that match it, best first.

    A query without a visible character is no query: it lists every item, with any value.
    """
    page = ctx.store.entries.list(ctx.scope, Listing((MEMORY,), limit=limits.ITEMS_READ, now=ctx.now))
    below = [(entry, item) for entry in page.entries if (item := _item(entry)).path[: len(prefix)] == prefix]
    if not any(char.isprintable() and not char.isspace() for char in query):
        return [(0, item) for _, item in below]
    scored = [(memory_score(query, entry.key, entry.content), item) for entry, item in below]
    return sorted((match for match in scored if match[0]), key=lambda match: -match[0])


def _check(put: Put) -> None:
    """Refuse what could not be stored, before anything is."""
    item = f"the item {'/'.join((*put.path, put.name))}"
    storable(f"the name of {safe.visible(item)}", item)
    try:
        text = "" if put.value is None else json.dumps(put.value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise errors.not_json(item, "value") from None
    storable(f"the value of {item}", text)


def _decision(put: Put) -> Decide:
    if put.value is None:
        return lambda before: DELETE
    text = _text(put.value)
    own: Mapping[str, Any] = {}
    if not _plain(put.value) or _split(_key(put.path, put.name)) != (put.path, put.name):
        own = {FIELD: {"path": list(put.path), "name": put.name, "value": put.value}}
    return lambda before: Draft(text, pinned=before.pinned if before else False, extra=own)


def _plain(value: Mapping[str, Any]) -> bool:
    """Whether the value is just a text, as agents write it by key."""
    text = value.get(CONTENT)
    return (
        len(value) == 1
        and isinstance(text, str)
        and text == text.strip() != ""
        and len(text) <= limits.MEMORY_MAX_CHARS
    )


def _text(value: Mapping[str, Any]) -> str:
    """The text that is read and searched: the content, or the value as JSON."""
    if _plain(value):
        return str(value[CONTENT])
    return json.dumps(value, ensure_ascii=False, indent=0, default=str)[: limits.MEMORY_MAX_CHARS]


def _item(entry: Entry) -> MemoryItem:
    own = entry.extra.get(FIELD)
    if own is None:
        path, name = _split(entry.key)
        return MemoryItem(path, name, {CONTENT: entry.content}, entry.created_at, entry.updated_at)
    return MemoryItem(tuple(own["path"]), own["name"], own["value"], entry.created_at, entry.updated_at)


def _key(path: Path, name: str) -> str:
    """The key of an item in memory: its path as people write one. A path that is too long ends in its checksum."""
    names = (name,) if path == PLAIN else (*path, name)
    key = "/".join(map(_quoted, names))
    if len(key) > limits.KEY_MAX_CHARS:
        key = f"{key[: limits.KEY_MAX_CHARS - 17]}~{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    return memory_key(key)


def _split(key: str) -> tuple[Path, str]:
    """The path and the name of a key."""
    *path, name = map(unquote, key.split("/"))
    if path and _key(tuple(path), name) == key:
        return tuple(path), name
    return PLAIN, key


def _quoted(name: str) -> str:
    """A name without slashes; letters of all languages stay as they are."""
    return "".join(char if char.isalnum() or char in SAFE or char in "-_." else quote(char, safe="") for char in name)
