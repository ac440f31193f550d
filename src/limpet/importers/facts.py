"""Facts from other memory tools: what a reader makes of a tool's files, and how they are added to keyed memory.

An entry stores the hash of what was imported into it. So an import can be repeated: a known fact is skipped, one that
the other tool has changed is updated, and one that was changed here stays.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from limpet import limits
from limpet.catalogue.operation import Context
from limpet.model import MEMORY, Draft, Entry
from limpet.record import NamedTuple
from limpet.text import safe

Json = Mapping[str, Any]
ELLIPSIS = "…"
BATCH = 200  # facts per transaction
HASH = "imported"  # the member of an entry's extra that holds the hash


class Fact(NamedTuple):
    key: str
    text: str
    tags: tuple[str, ...] = ()
    at: int = 0  # when it was written there, in milliseconds; 0 where nothing says so


class Unread(NamedTuple):
    """A part that was skipped, and why."""

    part: str
    why: str


class SourceFile(NamedTuple):
    """A file of a folder: its relative path, with slashes, and its bytes, or why they were not read."""

    path: str
    body: bytes | str
    at: int = 0  # when it was changed, in milliseconds


class Reader(NamedTuple):
    """The reader of one tool. It reads the bytes of a file, or the files of a folder; facts may share a key."""

    tool: str
    folder: bool
    read: Callable[[bytes], Iterator[Fact | Unread]] | Callable[[Iterable[SourceFile]], Iterator[Fact | Unread]]


def fact(tool: str, name: str, text: str, tags: Iterable[str] = (), at: int = 0) -> Fact | Unread:
    """A fact under a key that people can type and that begins with the tool, or why it cannot be kept."""
    title = " ".join(safe.visible(name, keep_newlines=False).split())
    if not title:
        return Unread("a part without a name", "nothing says what it is called")
    if not text.strip():
        return Unread(title, "it is empty")
    if why := safe.problem(text):
        return Unread(title, f"it holds {why}")
    return Fact(a_key(f"{tool}/{title}"), text.strip(), a_few(tags), at)


def a_key(name: str) -> str:
    """The name, cut to the length of a key, with a hash in place of the rest."""
    name = "".join(letter if letter.isprintable() else ELLIPSIS for letter in name)
    room = limits.KEY_MAX_CHARS - limits.PEER_PART_CHARS
    if len(name) <= room:
        return name
    return f"{name[: room - 14]}{ELLIPSIS}{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def a_few(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags that a note may have: each once, none blank or too long, and not too many."""
    names: dict[str, str] = {}
    for tag in tags:
        name = " ".join(tag.split()).removeprefix("#")
        if name and len(name) <= limits.TAG_MAX_CHARS and not safe.problem(name):
            names.setdefault(name.casefold(), name)
    return tuple(names.values())[: limits.NOTE_MAX_TAGS]


def texts_of(value: object) -> list[str]:
    """The texts of a list; a single text counts as a list."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def records(body: bytes) -> Iterator[tuple[str, object]]:
    """The values of a JSON document or of JSON Lines, each with its place; a ValueError in place of invalid JSON.

    A text is a document if all of it is JSON. Otherwise each line is read separately, so that a bad line does not spoil
    the others.
    """
    text = body.decode("utf-8-sig", "surrogateescape")
    document = parsed(text)
    if not isinstance(document, ValueError):
        yield "the file", document
        return
    lines = text.split("\n")
    if not any(isinstance(parsed(line), dict) for line in lines if line.strip()):
        yield "the file", document
        return
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield f"line {number:,}", parsed(line)


def parsed(text: str) -> object:
    try:
        return json.loads(text)
    except RecursionError:
        return ValueError("it is nested too deeply")
    except ValueError:
        return ValueError("it is not JSON")


# --- into memory ------------------------------------------------------------------------------------------------------


class ImportedFacts(NamedTuple):
    """What became of the facts. `kept` names those that were changed here and therefore stay."""

    added: int = 0
    updated: int = 0
    known: int = 0
    kept: tuple[str, ...] = ()


def add_facts(
    ctx: Context,
    facts: Sequence[Fact],
    *,
    dry_run: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ImportedFacts:
    """Add new and changed facts. `progress` gets the number of facts stored so far and of all; a later
    failure keeps these."""
    # Masked now, because the hash of a text tells whether it has changed.
    facts = [
        fact._replace(key=key, text=ctx.masked(fact.text))
        for fact, key in zip(facts, _masked_keys(ctx, facts), strict=True)
    ]
    parts = [part for fact in facts for part in _within_bounds(fact)]
    counts = ImportedFacts()
    for start in range(0, len(parts), BATCH):
        batch = parts[start : start + BATCH]
        if dry_run:
            before = [ctx.store.entries.read(ctx.scope, MEMORY, fact.key) for fact in batch]
        else:
            edits = [(MEMORY, fact.key, lambda entry, fact=fact: _draft(entry, fact)) for fact in batch]
            before = [change.before for change in ctx.store.entries.edit_all(ctx.scope, edits, ctx.stamp("import"))]
        for fact, entry in zip(batch, before, strict=True):
            counts = _counted(counts, entry, fact)
        progress(start + len(batch), len(parts))
    return counts


def _masked_keys(ctx: Context, facts: Sequence[Fact]) -> list[str]:
    """The keys without secrets: a store refuses a name with one. Those that are masked alike are numbered in order."""
    keys: list[str] = []
    times = Counter(fact.key for fact in facts)
    for fact in facts:
        masked = ctx.masked(fact.key)
        if masked == fact.key:
            keys.append(masked)
            continue
        times[masked] += 1
        keys.append(a_key(masked if times[masked] == 1 else f"{masked} #{times[masked]}"))
    return keys


def _within_bounds(fact: Fact) -> list[Fact]:
    """The fact in as many parts as its length needs, cut at line ends where possible."""
    most, rest, parts = limits.MEMORY_MAX_CHARS, fact.text, []
    while len(rest) > most:
        cut = rest.rfind("\n", most // 2, most) + 1 or most
        parts.append(rest[:cut].rstrip() or rest[:cut])
        rest = rest[cut:].lstrip("\n")
    parts.append(rest)
    named = [f"{fact.key} ({number})" if number > 1 else fact.key for number in range(1, len(parts) + 1)]
    return [Fact(key, text, fact.tags, fact.at) for key, text in zip(named, parts, strict=True) if text.strip()]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _same(entry: Entry, fact: Fact) -> bool:
    return entry.content == fact.text


def _changed_here(entry: Entry) -> bool:
    """Whether the text was changed or written here."""
    return entry.extra.get(HASH) != _hash(entry.content)


def _draft(entry: Entry | None, fact: Fact) -> Draft | None:
    if entry is not None and (_same(entry, fact) or _changed_here(entry)):
        return None
    return Draft(fact.text, tags=fact.tags, extra={HASH: _hash(fact.text)}, anew=True, at=fact.at)


def _counted(counts: ImportedFacts, entry: Entry | None, fact: Fact) -> ImportedFacts:
    if entry is None:
        return counts._replace(added=counts.added + 1)
    if _same(entry, fact):
        return counts._replace(known=counts.known + 1)
    if _changed_here(entry):
        return counts._replace(kept=(*counts.kept, fact.key))
    return counts._replace(updated=counts.updated + 1)
