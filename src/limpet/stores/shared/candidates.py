"""What both stores do alike when they gather for recall: which texts are looked at, and what is known of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import log
from typing import NamedTuple

from limpet.model import OUTPUT
from limpet.store import SOMEWHERE, Fact, Gathered, Places, Seek
from limpet.stores.shared.rows import Row

HEAD_CHARS = 48  # of a text, to see who speaks
AROUND_MOST = 40  # texts whose neighbours are looked at too, the most promising first
OTHERS_MOST = 6  # common words that are looked for beside a rarer one, the least common first
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


class Words(NamedTuple):
    """Where words stand, in about how many texts, and which of them are too common to be followed everywhere."""

    places: Sequence[Places]
    counts: Sequence[int]
    common: frozenset[int] = frozenset()


class Plan(NamedTuple):
    """How common words are looked for, by their numbers: `others` in the texts that hold any of `anchors`."""

    anchors: tuple[int, ...]
    others: tuple[int, ...]
    worth: tuple[float, ...]  # of the others: the rarer, the more


Held = tuple[int, int]  # a text, and which of the others it holds: the bit of a word's number
Ask = Callable[[Plan], Sequence[Held]]
Newest = Callable[[int], Sequence[int]]  # the newest texts that hold a word


def plans(counts: Sequence[int], common: frozenset[int], most: int) -> Iterator[Plan]:
    """First the rarest words that are followed, as many as stand in some `most` texts; then one common word each."""
    others = sorted(common, key=lambda at: (counts[at], at))[: 1 + OTHERS_MOST]
    worth = {at: log(1 + 4 * max(counts) / max(1, counts[at])) for at in others}
    anchors: list[int] = []
    for at in sorted((at for at in range(len(counts)) if counts[at] and at not in common), key=lambda at: counts[at]):
        if anchors and sum(counts[anchor] for anchor in anchors) + counts[at] > most:
            break
        anchors.append(at)
    if anchors:
        yield Plan(tuple(anchors), tuple(others), tuple(worth[at] for at in others))
    for number, at in enumerate(others[:-1], 1):
        rest = others[number:]
        yield Plan((at,), tuple(rest), tuple(worth[at] for at in rest))


def together(places: Sequence[Places | None], counts: Sequence[int], seek: Seek, ask: Ask, newest: Newest) -> Words:
    """Where words stand, once the common ones (None) were looked for beside others, until there are texts enough."""
    some: dict[int, dict[int, tuple[int, ...]]] = {at: {} for at, found in enumerate(places) if found is None}
    joined: list[Places] = [some[at] if found is None else found for at, found in enumerate(places)]
    if not some:
        return Words(joined, counts)
    common = frozenset(some)
    docs = {doc for found in joined for doc in found}
    for planned in plans(counts, common, seek.common):
        own = sum(1 << at for at in common.intersection(planned.anchors))
        for doc, bits in ask(planned):
            docs.add(doc)
            for at in common:
                if (bits | own) >> at & 1:
                    some[at][doc] = SOMEWHERE
        if len(docs) >= seek.most:
            break
    if len(docs) < seek.most:
        least = min(common, key=lambda at: (counts[at], at))
        some[least].update(dict.fromkeys(newest(least), SOMEWHERE))
    return Words(joined, counts, common)


def gathered(seek: Seek, words: Words, literals: Sequence[Places], look: Look, total: int) -> Gathered:
    """Look at the most promising texts until enough of them may be found, then at those around them."""
    places, counts = words.places, words.counts
    ordered = seek.order(places, counts, literals)
    known: dict[int, Fact] = {}
    found: list[int] = []
    for at in range(0, len(ordered), seek.most):
        batch = look(ordered[at : at + seek.most])
        known |= batch
        found += [doc for doc in ordered[at : at + seek.most] if doc in batch and seek.wanted(batch[doc])]
        if len(found) >= seek.most:
            break
    if len(ordered) <= seek.most:  # all were looked at, so other projects need not blur what is rare
        places = [_within(one, known) for one in places]
        counts = [counts[at] if at in words.common else len(one) for at, one in enumerate(places)]
    around: set[int] = set()
    for doc in found[:AROUND_MOST]:
        if reach := seek.around(known[doc]):
            around.update(range(doc - reach, doc + reach + 1))
    # What is nominated is looked at by itself: only those beside a word can be an answer to it.
    around.update(seek.nominated)
    around -= known.keys()
    beside = look(sorted(around)) if around else {}
    found += [doc for doc, fact in beside.items() if seek.wanted(fact)]
    return Gathered(
        tuple(places),
        tuple(counts),
        words.common,
        tuple(literals),
        tuple(found),
        known | beside,
        total,
        seek.nominated,
    )


def _within(places: Places, known: Mapping[int, Fact]) -> Places:
    return places if places.keys() <= known.keys() else {doc: at for doc, at in places.items() if doc in known}
