"""What both stores do alike when they gather for recall: which texts are looked at, and what is known of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from holdfast.model import OUTPUT
from holdfast.store import Fact, Gathered, Places, Seek
from holdfast.stores.rows import Row

HEAD_CHARS = 48  # of a text, to see who speaks
LITERAL_CANDIDATES = 200  # texts that are compared letter by letter for one literal, the newest first
FACTS = (  # columns of `entries e`
    f"e.kind, e.key, e.session, substr(e.content, 1, {HEAD_CHARS}), octet_length(e.content), e.tags, e.done, "
    "e.pinned, e.origin, e.created_at, e.updated_at"
)
PIECE_FACTS = (  # columns of `output_pieces p` and `outputs o`
    "p.id, o.session, p.head, p.size, o.tool, o.created_at, o.used_at, p.start, p.line"
)
Look = Callable[[Sequence[int]], dict[int, Fact]]  # what is known of the texts with these numbers, within the scope


def to_fact(row: Row) -> Fact:
    """The fact of a row of a number and FACTS."""
    doc, kind, key, session, head, size, tags, done, pinned, origin, created, updated = row
    return Fact(doc, kind, key, session, head, size, _tags(tags), bool(done), bool(pinned), origin, created, updated)


def to_piece_fact(row: Row) -> Fact:
    """The fact of a row of a number and PIECE_FACTS. Whatever a tool said is its word, not ours."""
    doc, id, session, head, size, tool, created, used, start, line = row
    return Fact(doc, OUTPUT, id, session, head, size, (), False, False, f"tool {tool}", created, used, start, line)


@lru_cache(2_000)  # the same few tags stand on many texts
def _tags(text: str) -> tuple[str, ...]:
    try:
        return tuple(json.loads(text))
    except ValueError:
        return ()  # damage is named by whoever reads the text itself


def gathered(
    seek: Seek,
    places: Sequence[Places | None],
    literals: Sequence[Places],
    newest: Sequence[int],
    look: Look,
    total: int,
) -> Gathered:
    """Look at the most promising texts until enough of them may be found, then at those around them.

    `newest` stands in where no word is rare enough to be followed.
    """
    ordered = seek.order(places, literals) or newest
    known: dict[int, Fact] = {}
    found: list[int] = []
    for at in range(0, len(ordered), seek.most):
        batch = look(ordered[at : at + seek.most])
        known |= batch
        found += [doc for doc in ordered[at : at + seek.most] if doc in batch and seek.wanted(batch[doc])]
        if len(found) >= seek.most:
            break
    if len(ordered) <= seek.most:  # all were looked at, so other projects need not blur what is rare
        places = [None if one is None else _within(one, known) for one in places]
    around: set[int] = set()
    for doc in found:
        if reach := seek.around(known[doc]):
            around.update(range(doc - reach, doc + reach + 1))
    # What is nominated is looked at by itself: only those beside a word can be an answer to it.
    around.update(seek.nominated)
    around -= known.keys()
    beside = look(sorted(around)) if around else {}
    found += [doc for doc, fact in beside.items() if seek.wanted(fact)]
    return Gathered(tuple(places), tuple(literals), tuple(found), known | beside, total, seek.nominated)


def _within(places: Places, known: Mapping[int, Fact]) -> Places:
    return places if places.keys() <= known.keys() else {doc: at for doc, at in places.items() if doc in known}
