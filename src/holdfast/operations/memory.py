"""Keyed memory of a project and the task scratchpad."""

from __future__ import annotations

import re
from typing import NamedTuple

from holdfast import errors, limits
from holdfast.model import MEMORY, SCRATCHPAD, Draft, Entry, Memory, as_memory, iso
from holdfast.operations.digest import LOG, activity_log
from holdfast.operations.duplicates import RESULT, Twin, twin, twin_json
from holdfast.operations.notes import Written, add_note, written_json
from holdfast.operations.registry import Context, Json, Operation, Param, a_name, bounded
from holdfast.search.order import RARE_COUNT_MAX, memory_score, query_words, rare_words
from holdfast.store import Listing, Words

_LOG_KEY = re.compile(r"activity-log-(\d{4}-\d{2}-\d{2})")
RESERVED = {
    "session-handoff": "Use write_session_handoff to leave a handoff.",
    "scratchpad": "Use scratch_note with a mode to work on the scratchpad.",
}
LOG_ADVICE = "The activity log is written by Holdfast whenever memory is written. Choose another key."
CANDIDATES = 200  # entries that are scored closely


class Stored(NamedTuple):
    memory: Memory
    mode: str
    twin: Twin | None = None  # another key, or this one, that says the same already


class Matches(NamedTuple):
    query: str
    matches: tuple[Memory, ...]


class Scratch(NamedTuple):
    content: str


def write_memory(ctx: Context, key: str, content: str, mode: str = "replace") -> Stored:
    name = memory_key(key)
    text = content.strip()
    bounded("content", text, limits.MEMORY_MAX_CHARS, "Split it over several keys.", blank="Write what is to be kept.")

    def decide(before: Entry | None) -> Draft:
        whole = _appended(before, text) if mode == "append" else text
        bounded("content", whole, limits.MEMORY_MAX_CHARS, "Start another key, or replace instead of append.")
        return Draft(whole, pinned=before.pinned if before else False)

    other = twin(ctx, MEMORY, text, name)
    change = ctx.store.edit(ctx.scope, MEMORY, name, decide, ctx.stamp("write_memory", {"mode": mode}))
    if other is None and mode == "append" and ctx.bounds.report_duplicates:
        other = _said_before(change.before, text)
    return Stored(as_memory(change.entry), mode, other)


def search_memory(ctx: Context, query: str, limit: int = limits.MEMORY_LIMIT_DEFAULT) -> Matches:
    asked = query.strip()
    bounded("query", asked, limits.QUERY_MAX_CHARS, "Ask for the few words that matter.", blank="Say what to look for.")
    if log := _LOG_KEY.fullmatch(asked):
        return Matches(query, (activity_log(ctx, log[1]),))
    listing = Listing((MEMORY,), limit=CANDIDATES)
    found = {entry.key: entry for entry in ctx.store.containing(ctx.scope, listing, asked).entries}
    rare = rare_words(ctx.store.frequencies(query_words(asked), RARE_COUNT_MAX))
    words = Words(tuple((word,) for word in rare), every=False)
    found |= {entry.key: entry for entry in ctx.store.matching(ctx.scope, listing, words)}
    scored = [(memory_score(asked, entry.key, entry.content), entry) for entry in found.values()]
    scored.sort(key=lambda pair: (pair[0], pair[1].updated_at, pair[1].key), reverse=True)
    return Matches(query, tuple(as_memory(entry) for _, entry in scored[:limit]))


def read_memory(ctx: Context, key: str) -> Memory:
    """One entry by its key; the keys of activity logs work too."""
    name = a_name("key", key, limits.KEY_MAX_CHARS)
    if log := _LOG_KEY.fullmatch(name):
        return activity_log(ctx, log[1])
    entry = ctx.store.read(ctx.scope, MEMORY, name)
    if entry is None:
        raise errors.no_entry("memory", name, "search_memory finds the keys that exist.")
    return as_memory(entry)


def pin_memory(ctx: Context, key: str, pinned: bool = True) -> Memory:
    """Pinned memory comes first in the digest. Only people pin; agents have no tool for it."""
    name = memory_key(key)

    def decide(before: Entry | None) -> Draft:
        if before is None:
            raise errors.no_entry("memory", name, "search_memory finds the keys that exist.")
        return Draft(before.content, before.session, before.tags, before.done, pinned, before.extra)

    change = ctx.store.edit(ctx.scope, MEMORY, name, decide, ctx.stamp("pin_memory", {"pinned": pinned}))
    return as_memory(change.entry)


def scratch_note(ctx: Context, content: str | None = None, mode: str | None = None) -> Written | Scratch:
    """Without a mode a quick note without tags; with one, the session's scratchpad for the task at hand."""
    if mode is None:
        if content is None:
            raise errors.missing("scratch_note", "content")
        return add_note(ctx, content, operation="scratch_note")
    if mode == "read":
        entry = ctx.store.read(ctx.scope, SCRATCHPAD, ctx.session)
        return Scratch(entry.content if entry else "")
    if mode != "clear" and (content is None or not content.strip()):
        raise errors.needs("scratch_note", f"mode {mode}", "content (not empty)")
    text = (content or "").strip()

    def decide(before: Entry | None) -> Draft | None:
        if mode == "clear":
            return None if before is None else Draft("", ctx.session)
        whole = _appended(before, text) if mode == "append" else text
        bounded("scratchpad", whole, limits.SCRATCHPAD_MAX_CHARS, "Keep only what the present task needs.")
        return Draft(whole, ctx.session)

    change = ctx.store.edit(ctx.scope, SCRATCHPAD, ctx.session, decide, ctx.stamp("scratch_note", {"mode": mode}))
    return Scratch(change.after.content if change.after else "")


def memory_key(key: str) -> str:
    name = a_name("key", key, limits.KEY_MAX_CHARS)
    plain = name.casefold()
    if plain in RESERVED:
        raise errors.reserved_key(name, RESERVED[plain])
    if plain.startswith(LOG):
        raise errors.reserved_key(name, LOG_ADVICE)
    return name


def _said_before(before: Entry | None, text: str) -> Twin | None:
    """Whether the lines that were added stood there already, as when a session learns the same thing again."""
    there = before is not None and f"\n{text}\n" in f"\n{before.content}\n"
    return Twin(before.key, True) if before is not None and there else None


def _appended(before: Entry | None, text: str) -> str:
    kept = before.content.rstrip() if before else ""
    return f"{kept}\n{text}" if kept else text


# --- answers ----------------------------------------------------------------------------------------------------------


def memory_json(memory: Memory) -> Json:
    shown: Json = {"key": memory.key, "content": memory.content, "updated_at": iso(memory.updated_at)}
    return shown | ({"pinned": True} if memory.pinned else {})


def _stored(value: Stored) -> Json:
    size = len(value.memory.content.encode())
    shown: Json = {"status": "ok", "key": value.memory.key, "mode": value.mode, "bytes_written": size}
    return shown | twin_json(value.twin)


def _matches(value: Matches) -> Json:
    return {
        "status": "ok",
        "query": value.query,
        "match_count": len(value.matches),
        "matches": [memory_json(memory) for memory in value.matches],
    }


def _scratch(value: Written | Scratch) -> Json:
    if isinstance(value, Scratch):
        return {"status": "ok", "content": value.content, "empty": not value.content}
    return written_json(value)


_KEY = Param("key", required=True)
_ENTRY = {"key": "string", "content": "string", "updated_at": "string", "pinned": "boolean?"}

OPERATIONS = (
    Operation(
        "search_memory",
        search_memory,
        _matches,
        (Param("query", required=True), Param("limit", "integer", low=1, high=limits.MEMORY_LIMIT_MAX, clamp=True)),
        {"status": "string", "query": "string", "match_count": "integer", "matches": "array"},
        ("core", "full"),
        in_session=False,
        read_only=True,
    ),
    Operation(
        "write_memory",
        write_memory,
        _stored,
        (_KEY, Param("content", required=True), Param("mode", choices=("replace", "append"))),
        {"status": "string", "key": "string", "mode": "string", "bytes_written": "integer", **RESULT},
        ("core", "full"),
        destructive=True,
    ),
    Operation(
        "scratch_note",
        scratch_note,
        _scratch,
        (Param("content"), Param("mode", choices=("replace", "append", "clear", "read"))),
        {
            "note_id": "string?",
            "total_notes": "integer?",
            "total_tags": "integer?",
            "status": "string?",
            "content": "string?",
            "empty": "boolean?",
            **RESULT,
        },
        destructive=True,
    ),
    Operation("read_memory", read_memory, memory_json, (_KEY,), _ENTRY, (), in_session=False, read_only=True),
    Operation(
        "pin_memory",
        pin_memory,
        memory_json,
        (_KEY, Param("pinned", "boolean")),
        _ENTRY,
        (),
        idempotent=True,
    ),
)
