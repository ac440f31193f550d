"""Facts that another memory tool kept, taken into keyed memory.

An entry remembers the hash of what was imported into it. So an import can be repeated: what is there already is passed
over, what the other tool has changed since is brought up to date, and what somebody here has changed since stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from limpet import limits
from limpet.catalogue.operation import Context
from limpet.model import MEMORY, Draft, Entry

BATCH = 200  # facts of one transaction
MARK = "imported"  # where an entry's extra keeps the hash


class Fact(NamedTuple):
    key: str
    text: str
    tags: tuple[str, ...] = ()


class Taken(NamedTuple):
    """What became of facts. `kept` names those that were changed here since, and therefore stay as they are."""

    added: int = 0
    updated: int = 0
    known: int = 0
    kept: tuple[str, ...] = ()


def add_facts(
    ctx: Context,
    facts: Sequence[Fact],
    *,
    dry_run: bool = False,
    told: Callable[[int, int], None] = lambda done, total: None,
) -> Taken:
    """Add what is new. `told` is given how many are on disk, of how many; these stay, whatever happens next."""
    parts = [part for fact in facts for part in _within_bounds(fact)]
    taken = Taken()
    for at in range(0, len(parts), BATCH):
        batch = parts[at : at + BATCH]
        if dry_run:
            before = [ctx.store.entries.read(ctx.scope, MEMORY, fact.key) for fact in batch]
        else:
            edits = [(MEMORY, fact.key, lambda there, fact=fact: _wanted(there, fact)) for fact in batch]
            before = [change.before for change in ctx.store.entries.edit_all(ctx.scope, edits, ctx.stamp("import"))]
        for fact, there in zip(batch, before, strict=True):
            taken = _counted(taken, there, fact)
        told(at + len(batch), len(parts))
    return taken


def _within_bounds(fact: Fact) -> list[Fact]:
    """The fact, in as many parts as its length needs, cut after lines where there are any."""
    most, rest, parts = limits.MEMORY_MAX_CHARS, fact.text, []
    while len(rest) > most:
        cut = rest.rfind("\n", most // 2, most) + 1 or most
        parts.append(rest[:cut].rstrip() or rest[:cut])
        rest = rest[cut:].lstrip("\n")
    parts.append(rest)
    named = [f"{fact.key} ({number})" if number > 1 else fact.key for number in range(1, len(parts) + 1)]
    return [Fact(key, text, fact.tags) for key, text in zip(named, parts, strict=True) if text.strip()]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _same(there: Entry, fact: Fact) -> bool:
    return there.content == fact.text


def _ours_now(there: Entry) -> bool:
    """Whether somebody changed the text here, or wrote it in the first place."""
    return there.extra.get(MARK) != _hash(there.content)


def _wanted(there: Entry | None, fact: Fact) -> Draft | None:
    if there is not None and (_same(there, fact) or _ours_now(there)):
        return None
    return Draft(fact.text, tags=fact.tags, extra={MARK: _hash(fact.text)}, anew=True)


def _counted(taken: Taken, there: Entry | None, fact: Fact) -> Taken:
    if there is None:
        return taken._replace(added=taken.added + 1)
    if _same(there, fact):
        return taken._replace(known=taken.known + 1)
    if _ours_now(there):
        return taken._replace(kept=(*taken.kept, fact.key))
    return taken._replace(updated=taken.updated + 1)
