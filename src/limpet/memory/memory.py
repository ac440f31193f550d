"""Keyed memory of a project and the task scratchpad."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from limpet import errors, limits
from limpet.catalogue.late import LateModule
from limpet.catalogue.operation import Caller, Context, Json, a_name, bounded, trust_json
from limpet.memory import corrections, digest, layers, uses, validity
from limpet.memory.digest import LOG, activity_log
from limpet.memory.gate import memory_remark
from limpet.memory.notes import WrittenNote, add_note, written_json, written_text
from limpet.model import (
    AGENT,
    MEMORY,
    PERSON,
    SCRATCHPAD,
    Digest,
    Draft,
    Entry,
    EntryName,
    Memory,
    Validity,
    as_memory,
    epoch_ms,
    iso,
    moment,
    trusted,
)
from limpet.recall.duplicates import Twin, twin, twin_json, twin_text
from limpet.record import NamedTuple
from limpet.store import DELETE, Delete, Edit, Listing
from limpet.text import brief
from limpet.text.safe import as_data, as_name
from limpet.text.words import fold

if TYPE_CHECKING:
    from limpet.memory import anchors as anchoring
    from limpet.memory import review, shared_files
    from limpet.recall import recall
else:
    recall = LateModule("recall.recall")  # a search needs it, a write does not
    anchoring = LateModule("memory.anchors")  # most of memory cites nothing
    review, shared_files = map(LateModule, ("memory.review", "memory.shared_files"))

_LOG_KEY = re.compile(r"activity-log-(\d{4}-\d{2}-\d{2})")
RESERVED = {
    "session-handoff": "Use write_session_handoff to leave a handoff.",
    "scratchpad": "Use scratch_note with a mode to work on the scratchpad.",
}
LOG_ADVICE = "The activity log is written by Limpet whenever memory is written."
SCRATCH_HEADING = "## Scratchpad of the present task"
KEYS_ADVICE = "search_memory finds the keys that exist."
CANDIDATES = 200  # entries with the query verbatim that are put in order


class WrittenMemory(NamedTuple):
    memory: Memory
    mode: str
    twin: Twin | None = None  # the key, perhaps this one, that says the same already
    corrects: EntryName | None = None  # what it seems to correct, which is not hidden
    displaced: tuple[str, ...] = ()  # keys that do not fit the digest any more
    remark: str = ""
    proposed: review.Proposed | None = None  # not written: it waits for the person


class Matches(NamedTuple):
    query: str
    matches: tuple[Memory, ...]
    now: int


class MemoryList(NamedTuple):
    memories: tuple[Memory, ...]
    left_out: int
    now: int
    remarks: tuple[str, ...] = ()  # what of shared files does not count


class DeletedMemory(NamedTuple):
    memory: Memory


class Scratch(NamedTuple):
    content: str
    origin: str = AGENT


def write_memory(  # noqa: PLR0913, PLR0917 - the parameters of an operation
    ctx: Context,
    key: str,
    content: str,
    mode: str = "replace",
    replaces: str | None = None,
    expires: str | None = None,
    anchors: Sequence[str] = (),
    expected_version: int | None = None,
    layer: str | None = None,
) -> WrittenMemory:
    ctx, calling = layers.named(ctx, layer), ctx
    name = memory_key(key)
    text = content.strip()
    bounded("content", text, limits.MEMORY_MAX_CHARS, "Split it over several keys.", blank="Write what is to be kept.")
    old = None if replaces is None else validity.to_replace(ctx, MEMORY, replaces, name)
    expires_at = None if expires is None else validity.expiry(expires, ctx.now)
    if layer in (PERSON, layers.TEAM) and anchors:
        raise errors.no_anchor_in_layer(anchors[0])
    if layer == layers.TEAM:
        file = _write_file(calling, ctx, name, text, mode, old, expires_at, expected_version)
        corrected = corrections.proposed(ctx, MEMORY, text, name) if old is None else None
        return WrittenMemory(file, mode, corrects=corrected, remark=memory_remark(name, text))
    if layer == PERSON and ctx.who != PERSON:
        more = {} if old is None else {"replaces": old.key}
        proposed = review.propose(ctx, name, text, mode, expires_at, **more)
        value = Memory(name, text, False, moment(ctx.now), ctx.who, 0, layer=PERSON)
        return WrittenMemory(value, mode, proposed=proposed)
    places = anchoring.cited(ctx, anchors) if anchors else ()

    def decide(before: Entry | None) -> Draft:
        version = before.version if before else 0
        if expected_version is not None and expected_version != version:
            raise errors.version_moved(f"memory {name}", expected_version, version)
        full = _appended(before, text) if mode == "append" else text
        bounded("content", full, limits.MEMORY_MAX_CHARS, "Start another key, or replace instead of append.")
        holds = validity.carried(before, full, mode, Validity(old, None, expires_at, places))
        pinned = before.pinned if before else False
        return Draft(full, pinned=pinned, extra=holds.into({}), anew=mode == "replace")

    duplicate = twin(ctx, MEMORY, text, name)
    before_write = digest.candidates(ctx)
    edits: list[Edit] = [(MEMORY, name, decide)]
    if old is not None:
        edits.append((*old, validity.retiring(ctx, old)))
    stamp = ctx.stamp("write_memory", {"mode": mode, **validity.detail(old)})
    change = ctx.store.entries.edit_all(ctx.scope, edits, stamp)[0]
    if change.replayed:
        return WrittenMemory(_of_layer(change.entry, layer), mode)
    if duplicate is None and mode == "append" and ctx.bounds.report_duplicates:
        duplicate = _repeated(change.before, text)
    same = None if duplicate is None or (old is not None and duplicate.key == old.key) else duplicate
    return WrittenMemory(
        _of_layer(change.entry, layer),
        mode,
        same,
        corrections.proposed(ctx, MEMORY, text, name) if old is None else None,
        digest.displaced(ctx, before_write, change.entry, old),
        memory_remark(name, text),
    )


def _of_layer(entry: Entry, layer: str | None) -> Memory:
    return as_memory(entry)._replace(layer="" if layer in (None, layers.PROJECT) else str(layer))


def delete_memory(
    ctx: Context, key: str, layer: str | None = None, expected_version: int | None = None
) -> DeletedMemory:
    """Delete one entry. History has it, and undo brings it back."""
    name = memory_key(key)
    calling, ctx = ctx, _for_a_person(layers.named(ctx, layer), name, layer)
    if layer is None and ctx.retry is None:
        layers.refuse_of_another(ctx, name)

    def decide(before: Entry | None) -> Delete:
        if before is None:
            raise errors.no_entry("memory", name, KEYS_ADVICE)
        if expected_version is not None and expected_version != before.version:
            raise errors.version_moved(f"memory {name}", expected_version, before.version)
        return DELETE

    if layer == layers.TEAM:
        return DeletedMemory(_delete_file(calling, ctx, name, expected_version))
    change = ctx.store.entries.edit(ctx.scope, MEMORY, name, decide, ctx.stamp("delete_memory"))
    return DeletedMemory(_of_layer(change.entry, layer))


def _write_file(
    calling: Context,
    ctx: Context,
    key: str,
    text: str,
    mode: str,
    old: EntryName | None,
    expires_at: int | None,
    expected_version: int | None,
) -> Memory:
    """Write one of the team's shared files. `ctx` is that of their index, `calling` that of the call."""
    folder = layers.files_of(calling)
    with folder.alone():
        shared_files.index(ctx.store, folder, ctx.now)
        before = ctx.store.entries.read(ctx.scope, MEMORY, key)
        version = before.version if before else 0
        if expected_version is not None and expected_version != version:
            raise errors.version_moved(f"memory {key}", expected_version, version)
        full = _appended(before, text) if mode == "append" else text
        replaced = None if old is None else ctx.store.entries.read(ctx.scope, *old)
        by = None if replaced is None else Validity.of(replaced.extra).replaced_by
        if replaced is not None and by is not None and by.key != key:
            raise errors.already_replaced(replaced.key, by.key)
        pair = None if replaced is None else (replaced.key, shared_files.text_hash(replaced.content))
        folder.save(key, full, expires_at, pair, appended=mode == "append")
        shared_files.index(ctx.store, folder, ctx.now)
    entry = ctx.store.entries.read(ctx.scope, MEMORY, key)
    if entry is None:
        raise errors.shared_file_changed(key)
    return _of_layer(entry, layers.TEAM)


def _delete_file(calling: Context, ctx: Context, key: str, expected_version: int | None) -> Memory:
    folder = layers.files_of(calling)
    with folder.alone():
        shared_files.index(ctx.store, folder, ctx.now)
        entry = ctx.store.entries.read(ctx.scope, MEMORY, key)
        if entry is None:
            raise errors.no_entry("memory", key, KEYS_ADVICE)
        if expected_version is not None and expected_version != entry.version:
            raise errors.version_moved(f"memory {key}", expected_version, entry.version)
        folder.remove(key)
        shared_files.index(ctx.store, folder, ctx.now)
    return _of_layer(entry, layers.TEAM)


def _for_a_person(ctx: Context, key: str, layer: str | None) -> Context:
    """The context, if this caller may take something away from the layer."""
    if layer == PERSON and ctx.who != PERSON:
        raise errors.layer_is_a_persons(key)
    return ctx


def list_memory(
    ctx: Context,
    key_prefix: str = "",
    limit: int = limits.NOTES_SHOWN,
    include_replaced: bool = False,
    layer: str | None = None,
) -> MemoryList:
    """The keys of a project with their texts, pinned first, then newest; then those of the layers below."""
    calling, ctx = ctx, layers.named(ctx, layer)
    most = limits.LIST_MAX if key_prefix else limit
    which = Listing((MEMORY,), limit=most, include_replaced=include_replaced, now=ctx.now)
    page = ctx.store.entries.list(ctx.scope, which)
    entries = [entry for entry in page.entries if entry.key.startswith(key_prefix)]
    total = len(entries) if key_prefix and page.total <= most else page.total if not key_prefix else len(entries)
    memories = [_of_layer(entry, layer) for entry in entries[:limit]]
    left_out = max(0, total - limit)
    lower = layers.entries_below(calling, limits.LIST_MAX, include_replaced=include_replaced) if layer is None else []
    for layer_below, below, hidden in lower:
        rest = [
            as_memory(entry)._replace(layer=layer_below.name) for entry in below if entry.key.startswith(key_prefix)
        ]
        own = {memory.key: at for at, memory in enumerate(memories)}
        for key in hidden & own.keys():
            memories[own[key]] = memories[own[key]]._replace(also_in=(*memories[own[key]].also_in, layer_below.name))
        room = max(0, limit - len(memories))
        memories += rest[:room]
        left_out += max(0, len(rest) - room)
    remarks = layers.remarks(calling) if layer in (None, layers.TEAM) else ()
    return MemoryList(tuple(memories), left_out, ctx.now, remarks)


def search_memory(
    ctx: Context,
    query: str,
    limit: int = limits.MEMORY_LIMIT_DEFAULT,
    include_replaced: bool = False,
    layer: str | None = None,
) -> Matches:
    text = query.strip()
    bounded("query", text, limits.QUERY_MAX_CHARS, "Ask for the few words that matter.", blank="Say what to look for.")
    if log := _LOG_KEY.fullmatch(text):
        return Matches(query, (activity_log(ctx, log[1]),), ctx.now)
    own = _matching(layers.named(ctx, layer), text, limit, include_replaced)
    memories = [_of_layer(entry, layer) for entry in own]
    above = [ctx]
    for layer_below in layers.below(ctx) if layer is None else ():
        matches = _matching(layer_below.ctx, text, limit, include_replaced)
        hidden = layers.hidden_keys(above, [entry.key for entry in matches])
        above.append(layer_below.ctx)
        memories = [
            memory._replace(also_in=(*memory.also_in, layer_below.name)) if memory.key in hidden else memory
            for memory in memories
        ]
        rest = [as_memory(entry)._replace(layer=layer_below.name) for entry in matches if entry.key not in hidden]
        room = max(limit - len(memories), min(limits.LAYER_HITS, len(rest), limit - 1))
        memories = [*memories[: limit - min(room, len(rest))], *rest[:room]]
    return Matches(query, tuple(memories), ctx.now)


def _matching(ctx: Context, text: str, limit: int, include_replaced: bool) -> list[Entry]:
    """The entries of one layer that match, the best first."""
    # Entries with the query verbatim come first; after them recall's matches, in its order.
    which = Listing((MEMORY,), limit=CANDIDATES, include_replaced=include_replaced, now=ctx.now)
    verbatim = ctx.store.entries.containing(ctx.scope, which, text).entries
    best = sorted(
        verbatim,
        key=lambda entry: (
            memory_score(text, entry.key, entry.content),
            corrections.weighty_since(entry),
            entry.key,
        ),
    )
    entries = best[::-1][:limit]
    if len(entries) < limit:
        besides = frozenset(entry.key for entry in entries)
        entries += recall.related(ctx, text, MEMORY, include_replaced=include_replaced, besides=besides)
    return corrections.newest_first(entries[:limit], text)


def memory_score(query: str, key: str, content: str) -> int:
    """How well an entry fits: the query verbatim weighs more than its words, the key more than the content."""
    phrase, in_key, in_content = fold(query).strip(), fold(key), fold(content)
    score = 6 * (phrase in in_key) + 5 * (phrase in in_content)
    for word in dict.fromkeys(phrase.split()):
        score += 3 * (word in in_key) + (word in in_content)
    return score


def read_memory(ctx: Context, key: str, layer: str | None = None) -> Memory:
    """One entry by its key; the keys of activity logs work too."""
    name = a_name("key", key, limits.KEY_MAX_CHARS)
    if log := _LOG_KEY.fullmatch(name):
        return activity_log(ctx, log[1])
    calling, ctx = ctx, layers.named(ctx, layer)
    entry = ctx.store.entries.read(ctx.scope, MEMORY, name)
    if entry is None:
        below = layers.read(calling, name) if layer is None else None
        if below is None:
            raise errors.no_entry("memory", name, KEYS_ADVICE)
        return below
    uses.opened(ctx, entry)
    return layers.also_in(calling, as_memory(entry)) if layer is None else _of_layer(entry, layer)


def pin_memory(ctx: Context, key: str, pinned: bool = True, layer: str | None = None) -> Memory:
    """Pin memory, so that it comes first in the digest. Pinning is for people; agents have no tool for it."""
    name = memory_key(key)
    if layer == layers.TEAM:
        raise errors.not_for_files("pinned")
    ctx = _for_a_person(layers.named(ctx, layer), name, layer)

    def decide(before: Entry | None) -> Draft:
        if before is None:
            raise errors.no_entry("memory", name, KEYS_ADVICE)
        if pinned and not trusted(before.origin):
            rule = f"its text came from {before.origin}, and such text is never pinned; say it in your words first"
            raise errors.bad_name("key", name, rule)
        return Draft(before.content, before.session, before.tags, before.done, pinned, before.extra)

    change = ctx.store.entries.edit(ctx.scope, MEMORY, name, decide, ctx.stamp("pin_memory", {"pinned": pinned}))
    return _of_layer(change.entry, layer)


def scratch_note(ctx: Context, content: str | None = None, mode: str | None = None) -> WrittenNote | Scratch:
    """Without a mode a quick note without tags; with one, the session's scratchpad for the task at hand."""
    if mode is None:
        if content is None:
            raise errors.missing("scratch_note", "content")
        return add_note(ctx, content, operation="scratch_note")
    if mode == "read":
        entry = ctx.store.entries.read(ctx.scope, SCRATCHPAD, ctx.session)
        return Scratch(entry.content, entry.origin) if entry else Scratch("")
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
    return Scratch(change.after.content, change.after.origin) if change.after else Scratch("")


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


def memory_json(memory: Memory, now: int = 0) -> Json:
    record: Json = {"key": memory.key, "content": memory.content, "updated_at": iso(memory.updated_at)}
    record |= {"pinned": True} if memory.pinned else {}
    record |= {"layer": memory.layer} if memory.layer else {}
    record |= {"also_in": list(memory.also_in)} if memory.also_in else {}
    record |= {"version": memory.version} | validity.validity_json(memory.validity, now)
    return record | trust_json(memory.origin)


def stored_json(value: WrittenMemory) -> Json:
    if value.proposed is not None:
        answer: Json = {"status": "proposed", "key": value.memory.key, "mode": value.mode, "bytes_written": 0}
        return answer | {"version": 0, "layer": value.memory.layer} | review.proposed_json(value.proposed)
    size = len(value.memory.content.encode())
    answer = {"status": "ok", "key": value.memory.key, "mode": value.mode, "bytes_written": size}
    answer |= {"layer": value.memory.layer} if value.memory.layer else {}
    answer |= {"version": value.memory.version} | twin_json(value.twin)
    answer |= corrections.proposal_json(value.corrects, value.memory.validity.replaces)
    answer |= {"displaced": list(value.displaced)} if value.displaced else {}
    return answer | ({"remark": value.remark} if value.remark else {})


def deleted_json(value: DeletedMemory) -> Json:
    return {"status": "ok", "key": value.memory.key}


def list_json(value: MemoryList) -> Json:
    """Long texts are cut: a list is to choose from."""
    memories = []
    for memory in value.memories:
        record = memory_json(memory, value.now)
        if len(memory.content) > limits.LISTED_CHARS:
            record |= {"content": memory.content[: limits.LISTED_CHARS], "cut": True}
        memories.append(record)
    answer: Json = {"memories": memories, "memory_count": len(memories)}
    answer |= {"remarks": list(value.remarks)} if value.remarks else {}
    return answer | ({"left_out": value.left_out} if value.left_out else {})


def matches_json(value: Matches) -> Json:
    return {
        "status": "ok",
        "query": value.query,
        "match_count": len(value.matches),
        "matches": [memory_json(memory, value.now) for memory in value.matches],
    }


def memory_line(ctx: Context, memory: Memory) -> str:
    age = brief.ago(epoch_ms(memory.updated_at), ctx.now)
    state = validity.state_of(ctx, memory.validity)
    shadow = f"{', '.join(memory.also_in)} has another text" if memory.also_in else ""
    return brief.item((as_name(memory.key), memory.layer, state, shadow, f"{age}:"), memory.content, memory.origin)


def memory_text(ctx: Context, memory: Memory) -> str:
    return memory_line(ctx, memory)


def stored_text(ctx: Context, value: WrittenMemory) -> str:
    if value.proposed is not None:
        return review.proposed_text(ctx, value.memory.key, value.proposed)
    size = len(value.memory.content.encode())
    done = f"{as_name(value.memory.key)} kept; {brief.counted(size, 'byte')}."
    proposal = corrections.proposal_text(ctx, value.corrects, value.memory.validity.replaces)
    displaced = ", ".join(map(as_name, value.displaced))
    notice = f"No longer in what every session starts with: {displaced}." if displaced else ""
    return brief.lines((done, twin_text(ctx, value.twin, MEMORY), proposal, notice, value.remark))


def deleted_text(_ctx: Context, value: DeletedMemory) -> str:
    return f"{as_name(value.memory.key)} deleted."


def list_text(ctx: Context, value: MemoryList) -> str:
    """Long texts are cut: a list is to choose from."""
    memories = [memory._replace(content=_cut(memory.content)) for memory in value.memories]
    closing = (
        brief.counted(len(value.memories) + value.left_out, "entry", "entries") if value.memories else "No entries"
    )
    closing += f", {value.left_out:,} not shown: raise limit" if value.left_out else ""
    return brief.lines([memory_line(ctx, memory) for memory in memories], f"{closing}.")


def _cut(text: str) -> str:
    return text if len(text) <= limits.LISTED_CHARS else f"{text[: limits.LISTED_CHARS]} …"


def matches_text(ctx: Context, value: Matches) -> str:
    closing = brief.counted(len(value.matches), "entry", "entries") if value.matches else "Nothing was found"
    return brief.lines([memory_line(ctx, memory) for memory in value.matches], f"{closing}.")


def scratch_text(ctx: Context, value: WrittenNote | Scratch) -> str:
    if isinstance(value, Scratch):
        return as_data(value.content, value.origin) or "The scratchpad is empty."
    return written_text(ctx, value)


def scratch_json(value: WrittenNote | Scratch) -> Json:
    if isinstance(value, Scratch):
        return {"status": "ok", "content": value.content, "empty": not value.content, **trust_json(value.origin)}
    return written_json(value)


class SessionMemory:
    """`session.memory`."""

    def __init__(self, session: Caller) -> None:
        self._session = session

    def write(self, key: str, content: str, mode: str = "replace", **options: Any) -> Memory:
        """Options: replaces=, expires=, anchors=, layer=, expected_version= and idempotency_key=.

        `corrects` of the answer names what it seems to correct, for `replaces`."""
        written = self._session.do(write_memory, key=key, content=content, mode=mode, **options)
        return written.memory._replace(corrects=written.corrects.key if written.corrects else "")

    def list(self, key_prefix: str = "", **options: Any) -> tuple[Memory, ...]:
        """Options: limit=, layer= and include_replaced=."""
        return self._session.do(list_memory, key_prefix=key_prefix, **options).memories

    def delete(self, key: str, **options: Any) -> Memory:
        return self._session.do(delete_memory, key=key, **options).memory

    def read(self, key: str, layer: str | None = None) -> Memory:
        return self._session.do(read_memory, key=key, layer=layer)

    def search(self, query: str, limit: int = limits.MEMORY_LIMIT_DEFAULT, **options: Any) -> tuple[Memory, ...]:
        return self._session.do(search_memory, query=query, limit=limit, **options).matches

    def pin(self, key: str, pinned: bool = True, layer: str | None = None) -> Memory:
        return self._session.do(pin_memory, key=key, pinned=pinned, layer=layer)

    def digest(self, budget: int | None = None) -> Digest:
        return digest.digest(self._session.ctx(), budget)
