"""Keyed memory of a project and the task scratchpad."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from limpet import errors, limits
from limpet.catalogue.late import LateModule
from limpet.catalogue.operation import Caller, Context, Json, a_name, bounded, trust_json
from limpet.memory import digest
from limpet.memory.digest import LOG, activity_log
from limpet.memory.notes import WrittenNote, add_note, written_json, written_text
from limpet.model import MEMORY, SCRATCHPAD, Digest, Draft, Entry, Memory, as_memory, epoch_ms, iso, trusted
from limpet.recall.duplicates import Twin, twin, twin_json, twin_text
from limpet.record import NamedTuple
from limpet.store import Listing
from limpet.text import brief
from limpet.text.safe import as_data, as_name
from limpet.text.words import fold

if TYPE_CHECKING:
    from limpet.recall import recall
else:
    recall = LateModule("recall.recall")  # a search needs it, a write does not

_LOG_KEY = re.compile(r"activity-log-(\d{4}-\d{2}-\d{2})")
RESERVED = {
    "session-handoff": "Use write_session_handoff to leave a handoff.",
    "scratchpad": "Use scratch_note with a mode to work on the scratchpad.",
}
LOG_ADVICE = "The activity log is written by Limpet whenever memory is written. Choose another key."
SCRATCH_HEADING = "## Scratchpad of the present task"
CANDIDATES = 200  # entries with the query verbatim that are put in order


class WrittenMemory(NamedTuple):
    memory: Memory
    mode: str
    twin: Twin | None = None  # the key, perhaps this one, that says the same already


class Matches(NamedTuple):
    query: str
    matches: tuple[Memory, ...]


class Scratch(NamedTuple):
    content: str


def write_memory(ctx: Context, key: str, content: str, mode: str = "replace") -> WrittenMemory:
    name = memory_key(key)
    text = content.strip()
    bounded("content", text, limits.MEMORY_MAX_CHARS, "Split it over several keys.", blank="Write what is to be kept.")

    def decide(before: Entry | None) -> Draft:
        full = _appended(before, text) if mode == "append" else text
        bounded("content", full, limits.MEMORY_MAX_CHARS, "Start another key, or replace instead of append.")
        return Draft(full, pinned=before.pinned if before else False, anew=mode == "replace")

    duplicate = twin(ctx, MEMORY, text, name)
    change = ctx.store.entries.edit(ctx.scope, MEMORY, name, decide, ctx.stamp("write_memory", {"mode": mode}))
    if duplicate is None and mode == "append" and ctx.bounds.report_duplicates:
        duplicate = _repeated(change.before, text)
    return WrittenMemory(as_memory(change.entry), mode, duplicate)


def search_memory(ctx: Context, query: str, limit: int = limits.MEMORY_LIMIT_DEFAULT) -> Matches:
    text = query.strip()
    bounded("query", text, limits.QUERY_MAX_CHARS, "Ask for the few words that matter.", blank="Say what to look for.")
    if log := _LOG_KEY.fullmatch(text):
        return Matches(query, (activity_log(ctx, log[1]),))
    # Entries with the query verbatim come first; after them recall's matches, in its order.
    verbatim = ctx.store.entries.containing(ctx.scope, Listing((MEMORY,), limit=CANDIDATES), text).entries
    best = sorted(
        verbatim, key=lambda entry: (memory_score(text, entry.key, entry.content), entry.updated_at, entry.key)
    )
    entries = best[::-1][:limit]
    if len(entries) < limit:
        entries += recall.related(ctx, text, MEMORY, besides=frozenset(entry.key for entry in entries))
    return Matches(query, tuple(map(as_memory, entries[:limit])))


def memory_score(query: str, key: str, content: str) -> int:
    """How well an entry fits: the query verbatim weighs more than its words, the key more than the content."""
    phrase, in_key, in_content = fold(query).strip(), fold(key), fold(content)
    score = 6 * (phrase in in_key) + 5 * (phrase in in_content)
    for word in dict.fromkeys(phrase.split()):
        score += 3 * (word in in_key) + (word in in_content)
    return score


def read_memory(ctx: Context, key: str) -> Memory:
    """One entry by its key; the keys of activity logs work too."""
    name = a_name("key", key, limits.KEY_MAX_CHARS)
    if log := _LOG_KEY.fullmatch(name):
        return activity_log(ctx, log[1])
    entry = ctx.store.entries.read(ctx.scope, MEMORY, name)
    if entry is None:
        raise errors.no_entry("memory", name, "search_memory finds the keys that exist.")
    return as_memory(entry)


def pin_memory(ctx: Context, key: str, pinned: bool = True) -> Memory:
    """Pin memory, so that it comes first in the digest. Pinning is for people; agents have no tool for it."""
    name = memory_key(key)

    def decide(before: Entry | None) -> Draft:
        if before is None:
            raise errors.no_entry("memory", name, "search_memory finds the keys that exist.")
        if pinned and not trusted(before.origin):
            rule = f"its text came from {before.origin}, and such text is never pinned; say it in your words first"
            raise errors.bad_name("key", name, rule)
        return Draft(before.content, before.session, before.tags, before.done, pinned, before.extra)

    change = ctx.store.entries.edit(ctx.scope, MEMORY, name, decide, ctx.stamp("pin_memory", {"pinned": pinned}))
    return as_memory(change.entry)


def scratch_note(ctx: Context, content: str | None = None, mode: str | None = None) -> WrittenNote | Scratch:
    """Without a mode a quick note without tags; with one, the session's scratchpad for the task at hand."""
    if mode is None:
        if content is None:
            raise errors.missing("scratch_note", "content")
        return add_note(ctx, content, operation="scratch_note")
    if mode == "read":
        entry = ctx.store.entries.read(ctx.scope, SCRATCHPAD, ctx.session)
        return Scratch(entry.content if entry else "")
    if mode != "clear" and (content is None or not content.strip()):
        raise errors.needs("scratch_note", f"mode {mode}", "content (not empty)")
    text = (content or "").strip()

    def decide(before: Entry | None) -> Draft | None:
        if mode == "clear":
            return None if before is None else Draft("", ctx.session, anew=True)
        full = _appended(before, text) if mode == "append" else text
        bounded("scratchpad", full, limits.SCRATCHPAD_MAX_CHARS, "Keep only what the present task needs.")
        return Draft(full, ctx.session, anew=mode == "replace")

    change = ctx.store.entries.edit(
        ctx.scope, SCRATCHPAD, ctx.session, decide, ctx.stamp("scratch_note", {"mode": mode})
    )
    return Scratch(change.after.content if change.after else "")


def scratch_section(ctx: Context) -> str:
    """The prompt section of the scratchpad; empty when it is."""
    entry = ctx.store.entries.read(ctx.scope, SCRATCHPAD, ctx.session)
    return f"{SCRATCH_HEADING}\n{as_data(entry.content, entry.origin)}" if entry and entry.content else ""


def memory_key(key: str) -> str:
    name = a_name("key", key, limits.KEY_MAX_CHARS)
    plain = name.casefold()
    if plain in RESERVED:
        raise errors.reserved_key(name, RESERVED[plain])
    if plain.startswith(LOG):
        raise errors.reserved_key(name, LOG_ADVICE)
    return name


def _repeated(before: Entry | None, text: str) -> Twin | None:
    """The entry itself, if it had the appended lines already, as when a session learns the same thing again."""
    repeated = before is not None and f"\n{text}\n" in f"\n{before.content}\n"
    return Twin(before.key, True) if before is not None and repeated else None


def _appended(before: Entry | None, text: str) -> str:
    previous = before.content.rstrip() if before else ""
    return f"{previous}\n{text}" if previous else text


# --- answers ----------------------------------------------------------------------------------------------------------


def memory_json(memory: Memory) -> Json:
    record: Json = {"key": memory.key, "content": memory.content, "updated_at": iso(memory.updated_at)}
    return record | ({"pinned": True} if memory.pinned else {}) | trust_json(memory.origin)


def stored_json(value: WrittenMemory) -> Json:
    size = len(value.memory.content.encode())
    answer: Json = {"status": "ok", "key": value.memory.key, "mode": value.mode, "bytes_written": size}
    return answer | twin_json(value.twin)


def matches_json(value: Matches) -> Json:
    return {
        "status": "ok",
        "query": value.query,
        "match_count": len(value.matches),
        "matches": [memory_json(memory) for memory in value.matches],
    }


def memory_line(ctx: Context, memory: Memory) -> str:
    age = brief.ago(epoch_ms(memory.updated_at), ctx.now)
    return brief.item((as_name(memory.key), f"{age}:"), memory.content, memory.origin)


def memory_text(ctx: Context, memory: Memory) -> str:
    return memory_line(ctx, memory)


def stored_text(ctx: Context, value: WrittenMemory) -> str:
    size = len(value.memory.content.encode())
    done = f"{as_name(value.memory.key)} kept; {brief.counted(size, 'byte')}."
    return brief.lines((done,), twin_text(ctx, value.twin, MEMORY))


def matches_text(ctx: Context, value: Matches) -> str:
    closing = brief.counted(len(value.matches), "entry", "entries") if value.matches else "Nothing was found"
    return brief.lines([memory_line(ctx, memory) for memory in value.matches], f"{closing}.")


def scratch_text(ctx: Context, value: WrittenNote | Scratch) -> str:
    if isinstance(value, Scratch):
        return value.content or "The scratchpad is empty."
    return written_text(ctx, value)


def scratch_json(value: WrittenNote | Scratch) -> Json:
    if isinstance(value, Scratch):
        return {"status": "ok", "content": value.content, "empty": not value.content}
    return written_json(value)


class SessionMemory:
    """`session.memory`."""

    def __init__(self, session: Caller) -> None:
        self._session = session

    def write(self, key: str, content: str, mode: str = "replace") -> Memory:
        return self._session.do(write_memory, key=key, content=content, mode=mode).memory

    def read(self, key: str) -> Memory:
        return self._session.do(read_memory, key=key)

    def search(self, query: str, limit: int = limits.MEMORY_LIMIT_DEFAULT) -> tuple[Memory, ...]:
        return self._session.do(search_memory, query=query, limit=limit).matches

    def pin(self, key: str, pinned: bool = True) -> Memory:
        return self._session.do(pin_memory, key=key, pinned=pinned)

    def digest(self, budget: int | None = None) -> Digest:
        return digest.digest(self._session.ctx(), budget)
