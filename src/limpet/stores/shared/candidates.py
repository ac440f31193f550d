"""Candidates for recall, as both stores collect them: which texts are looked at, and their metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import log

from limpet.light import json
from limpet.model import OUTPUT
from limpet.record import NamedTuple
from limpet.store import SOMEWHERE, CandidateQuery, Candidates, Document, Positions
from limpet.stores.shared.sql import Row

HEAD_CHARS = 48  # of a text, to see who speaks
NEIGHBOURS_MOST = 20  # texts whose neighbours are candidates too, the most promising first
OTHERS_MOST = 6  # common words that are looked up beside a rarer one, the least common first
LITERAL_CANDIDATES = 500  # texts that are compared character by character for one literal, newest first
DOCUMENT = (  # columns of `entries e`
    f"e.kind, e.key, e.session, substr(e.content, 1, {HEAD_CHARS}), octet_length(e.content), e.tags, e.done, "
    "e.pinned, e.origin, e.created_at, e.updated_at, e.expires_at, e.replaced"
)
PIECE_DOCUMENT = (  # columns of `output_pieces p` and `outputs o`
    "p.id, o.session, p.head, p.size, o.tool, o.created_at, o.used_at, p.start, p.line"
)
EXACT_TEXTS = 20_000  # in an index of at most so many, every word is counted exactly: some 0.05 µs per text and word
WIDE = 3  # times the candidates, whose sizes are read before the candidates are chosen
Load = Callable[[Sequence[int]], dict[int, Document]]  # the documents with these numbers, within the scope
Sizes = Callable[[Sequence[int]], dict[int, int]]  # of the texts with these numbers, in bytes


def to_document(row: Row) -> Document:
    """The document of a row of a number and DOCUMENT."""
    doc, kind, key, session, head, size, tags, done, pinned, origin, created, updated, expires, replaced = row
    flags = bool(done), bool(pinned)
    holds = {"expires_at": expires, "replaced": bool(replaced)}
    return Document(doc, kind, key, session, head, size, _tags(tags), *flags, origin, created, updated, **holds)


def to_piece_document(row: Row) -> Document:
    """The document of a row of a number and PIECE_DOCUMENT. Its origin is the tool."""
    doc, id, session, head, size, tool, created, used, start, line = row
    return Document(doc, OUTPUT, id, session, head, size, (), False, False, f"tool {tool}", created, used, start, line)


@lru_cache(2_000)  # many texts carry the same few tags
def _tags(text: str) -> tuple[str, ...]:
    try:
        return tuple(json.loads(text))
    except ValueError:
        return ()  # reading the text itself reports the damage


class WordPositions(NamedTuple):
    """The positions of each word, roughly how many texts hold it, and which words are too common to follow."""

    positions: Sequence[Positions]
    counts: Sequence[int]
    common: frozenset[int] = frozenset()


def common_words(counts: Sequence[int], total: int, query: CandidateQuery) -> frozenset[int]:
    """The words that are too common to follow everywhere, by index. Among few texts there are none."""
    if total <= query.common_above:
        return frozenset()
    common, left = set(), query.budget
    for word in sorted(range(len(counts)), key=lambda word: (counts[word], word)):
        if counts[word] > query.common_above and counts[word] > left:
            common.add(word)
        else:
            left -= counts[word]
    return frozenset(common)


class Plan(NamedTuple):
    """How common words are looked up, by index: `others` in the texts that hold any of `anchors`."""

    anchors: tuple[int, ...]
    others: tuple[int, ...]
    weights: tuple[float, ...]  # of the others: the rarer, the higher


Match = tuple[int, int]  # a document number, and a bit for each of the others that the text holds
LookUp = Callable[[Plan], Sequence[Match]]
Newest = Callable[[int], Sequence[int]]  # the newest texts that hold a word


def plans(counts: Sequence[int], common: frozenset[int], most: int) -> Iterator[Plan]:
    """First the rarest words that are followed, as many as occur in some `most` texts; then one common word each."""
    others = sorted(common, key=lambda word: (counts[word], word))[: 1 + OTHERS_MOST]
    weights = {word: log(1 + 4 * max(counts) / max(1, counts[word])) for word in others}
    anchors: list[int] = []
    followed = (word for word in range(len(counts)) if counts[word] and word not in common)
    for word in sorted(followed, key=lambda word: counts[word]):
        if anchors and sum(counts[anchor] for anchor in anchors) + counts[word] > most:
            break
        anchors.append(word)
    if anchors:
        yield Plan(tuple(anchors), tuple(others), tuple(weights[word] for word in others))
    for number, word in enumerate(others[:-1], 1):
        rest = others[number:]
        yield Plan((word,), tuple(rest), tuple(weights[word] for word in rest))


def with_common_words(
    followed: Sequence[Positions | None],
    counts: Sequence[int],
    query: CandidateQuery,
    look_up: LookUp,
    newest: Newest,
) -> WordPositions:
    """Complete the positions: common words (None) are looked up beside others until there are enough texts."""
    some: dict[int, dict[int, tuple[int, ...]]] = {
        word: {} for word, positions in enumerate(followed) if positions is None
    }
    joined: list[Positions] = [
        some[word] if positions is None else positions for word, positions in enumerate(followed)
    ]
    common = frozenset(some)
    if not some or query.rare_only:
        return WordPositions(joined, counts, common)
    docs = {doc for positions in joined for doc in positions}
    for plan in plans(counts, common, query.common_above):
        own = sum(1 << word for word in common.intersection(plan.anchors))
        for doc, bits in look_up(plan):
            docs.add(doc)
            for word in common:
                if (bits | own) >> word & 1:
                    some[word][doc] = SOMEWHERE
        if len(docs) >= query.limit:
            break
    if len(docs) < query.limit:
        rarest = min(common, key=lambda word: (counts[word], word))
        some[rarest].update(dict.fromkeys(newest(rarest), SOMEWHERE))
    return WordPositions(joined, counts, common)


def collect(
    query: CandidateQuery,
    words: WordPositions,
    literals: Sequence[Positions],
    load: Load,
    total: int,
    size_of: Sizes | None = None,
) -> Candidates:
    """Load the most promising texts until enough of them are accepted, then their neighbours."""
    positions, counts = words.positions, words.counts
    ordered = query.order(positions, counts, literals, {})
    if size_of and query.limit < len(ordered) and total <= EXACT_TEXTS:
        wide = ordered[: WIDE * query.limit]
        sizes = size_of(wide)
        sized = [_within(of_word, sizes) for of_word in positions]
        ordered = [*query.order(sized, counts, [_within(of, sizes) for of in literals], sizes), *ordered[len(wide) :]]
    documents: dict[int, Document] = {}
    accepted: list[int] = []
    for start in range(0, len(ordered), query.limit):
        batch = load(ordered[start : start + query.limit])
        documents |= batch
        accepted += [doc for doc in ordered[start : start + query.limit] if doc in batch and query.accepts(batch[doc])]
        if len(accepted) >= query.limit:
            break
    if len(ordered) <= query.limit:  # all are loaded, so texts of other projects need not distort the counts
        positions = [_within(of_word, documents) for of_word in positions]
        counts = [counts[word] if word in words.common else len(of_word) for word, of_word in enumerate(positions)]
    around: set[int] = set()
    for doc in accepted[:NEIGHBOURS_MOST]:
        if reach := query.neighbours(documents[doc]):
            around.update(range(doc - reach, doc + reach + 1))
    # Nominated texts come without neighbours: only those beside a word can be an answer to it.
    around.update(query.nominated)
    around -= documents.keys()
    nearby = load(sorted(around)) if around else {}
    accepted += [doc for doc, document in nearby.items() if query.accepts(document)]
    return Candidates(
        tuple(positions),
        tuple(counts),
        words.common,
        tuple(literals),
        tuple(accepted),
        documents | nearby,
        total,
        query.nominated,
    )


def nothing(query: CandidateQuery) -> Candidates:
    """The candidates where there are no texts."""
    none: Positions = {}
    counts = (0,) * len(query.words)
    positions, literals = (none,) * len(query.words), (none,) * len(query.literals)
    return Candidates(positions, counts, frozenset(), literals, (), {}, 0, query.nominated)


def _within(positions: Positions, documents: Mapping[int, object]) -> Positions:
    if positions.keys() <= documents.keys():
        return positions
    if len(documents) < len(positions):
        return {doc: positions[doc] for doc in documents if doc in positions}
    return {doc: offsets for doc, offsets in positions.items() if doc in documents}
