"""Candidates for recall in PostgreSQL: word positions from the tsvector of each text, and the metadata of texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from limpet.model import Scope
from limpet.store import SOMEWHERE, CandidateQuery, Candidates, Document, Positions
from limpet.stores.postgres.replica import ReplicaReads
from limpet.stores.postgres.schema import Con
from limpet.stores.postgres.tenants import numbers
from limpet.stores.shared import candidates
from limpet.stores.shared.sql import Row
from limpet.text import words as analyse

TERM_MAX_BYTES = 2_046  # of one term in a tsvector; the server refuses longer ones
TERMS_MAX_BYTES = 1_000_000  # of all terms of one text together, for the same reason
SHORT_TERMS_CHARS = 100_000  # of the terms of a text that surely fit
POSITION_MAX, POSITIONS_MAX = 16_383, 255  # the last position in a tsvector, and how many of one term
# The statements of this module are built from constants; every value is a parameter.
IN_SCOPE = "e.tenant = %s AND e.project = %s AND e.kind = ANY(%s)"
ENTRIES = f"entries e WHERE {IN_SCOPE}"
PIECES = "output_pieces e WHERE e.tenant = %s AND e.project = %s"
COMMON = (
    "SELECT s.number, h.count, h.first, h.last FROM unnest(%s::int[], %s::text[]) AS s (number, query), LATERAL ("
    "SELECT count(*), coalesce(min(doc), 0), coalesce(max(doc), 0) FROM (SELECT e.doc FROM {source} "
    "AND e.terms @@ CAST(s.query AS tsquery) LIMIT %s) hits) h (count, first, last)"
)
LAST = "SELECT e.doc FROM {source} ORDER BY e.doc DESC LIMIT 1"
POSITIONS = (
    "SELECT t.doc, u.lexeme, u.positions FROM (SELECT e.doc, e.terms FROM {source} "
    "AND e.terms @@ CAST(%s AS tsquery)) t, unnest(t.terms) u WHERE u.lexeme = ANY(%s)"
)
BEST_MATCHES = (
    "SELECT h.doc, h.bits FROM (SELECT e.doc, {bits} AS bits, {weight} AS weight FROM {source} "
    "AND e.terms @@ CAST(%s AS tsquery)) h ORDER BY h.weight DESC, h.doc DESC LIMIT %s"
)
HOLDS = "CASE WHEN e.terms @@ CAST(%s AS tsquery) THEN {value} ELSE 0 END"
NEWEST = "SELECT e.doc FROM {source} AND e.terms @@ CAST(%s AS tsquery) ORDER BY e.doc DESC LIMIT %s"
WITH_LITERAL = (
    f"SELECT e.doc, e.folded ~ %s AS own FROM {ENTRIES} AND e.folded LIKE %s "  # noqa: S608
    f"ORDER BY own DESC, e.doc DESC LIMIT {candidates.LITERAL_CANDIDATES}"
)
NO_TEXT = "$a"  # a pattern that no text fits
DOCUMENTS = f"SELECT e.doc, {candidates.DOCUMENT} FROM {ENTRIES} AND e.doc = ANY(%s::bigint[])"  # noqa: S608
SIZES = f"SELECT e.doc, octet_length(e.content) FROM {ENTRIES} AND e.doc = ANY(%s::bigint[])"  # noqa: S608
TOTAL = (
    "SELECT coalesce(sum(count), 0)::bigint FROM tallies WHERE tenant = %s AND project = %s AND kind = ANY(%s) "
    "AND session = '' AND tag = ''"
)


def entry_candidates(replica: ReplicaReads, scope: Scope, kinds: tuple[str, ...], query: CandidateQuery) -> Candidates:
    searched = (*scope, list(kinds))
    return replica.reads(
        scope, lambda con, counted: _gathered(con, searched, query, counted[0][0][0]), (TOTAL, searched)
    )


def _gathered(con: Con, searched: Row, query: CandidateQuery, total: int) -> Candidates:
    words = word_positions(con, ENTRIES, query, searched, total)
    exact = {word: words.positions[at] for at, word in enumerate(query.words) if at not in words.common}
    # A literal that is a word of the index need not be searched inside other words.
    literals = [exact.get(literal) or _with_literal(con, literal, searched) for literal in query.literals]

    def load(docs: Sequence[int]) -> dict[int, Document]:
        loaded = con.execute(DOCUMENTS, (*searched, array(docs))).fetchall()
        return {row[0]: candidates.to_document(row) for row in loaded}

    def size_of(docs: Sequence[int]) -> dict[int, int]:
        return dict(con.execute(SIZES, (*searched, array(docs))).fetchall())

    return candidates.collect(query, words, literals, load, total, size_of)


def _with_literal(con: Con, literal: str, searched: tuple[object, ...]) -> Positions:
    """The texts that hold a literal: as words of their own, or else as a part of longer words."""
    words = analyse.words(literal)
    own = "[^[:alnum:]]+".join(words) if len(words) > 1 and literal.isascii() else ""
    pattern = f"(^|[^[:alnum:]]){own}($|[^[:alnum:]])" if own else NO_TEXT
    holding = numbers(con, WITH_LITERAL, (pattern, *searched, like(literal)))
    return {doc: () for doc, as_words in holding if as_words or not holding[0][1]}


def word_positions(
    con: Con, source: str, query: CandidateQuery, searched: tuple[object, ...], total: int
) -> candidates.WordPositions:
    """The positions of words in the texts of a source; `searched` are the values of its conditions."""
    if not total:
        return candidates.WordPositions([{}] * len(query.words), [0] * len(query.words))
    stems = analyse.terms(list(query.words))
    lexemes = [lexeme(stem) for stem in stems]
    # Among few texts no word is common, and the positions also tell in how many texts a word occurs.
    few = total <= query.common_above
    counts, common = ([], frozenset()) if few else _counted(con, source, lexemes, query, searched, total)
    followed = [quoted for at, quoted in enumerate(lexemes) if quoted and at not in common]
    by_term: dict[str, dict[int, tuple[int, ...]]] = {}
    sql = POSITIONS.format(source=source)
    for doc, term, offsets in numbers(con, sql, (*searched, " | ".join(followed), stems)) if followed else ():
        # Texts of an older schema have no positions.
        by_term.setdefault(term, {})[doc] = tuple(offset - 1 for offset in offsets) if offsets else SOMEWHERE
    positions = [None if at in common else by_term.get(stem, {}) for at, stem in enumerate(stems)]
    if few:
        return candidates.WordPositions(
            [of_word or {} for of_word in positions], [len(of_word or ()) for of_word in positions]
        )

    def look_up(plan: candidates.Plan) -> list[candidates.Match]:
        others = [lexemes[at] for at in plan.others]
        bits = " + ".join(HOLDS.format(value=1 << at) for at in plan.others)
        weight = " + ".join([HOLDS.format(value="CAST(%s AS float8)")] * len(others))
        weights = [value for pair in zip(others, plan.weights, strict=True) for value in pair]
        both = f"({' | '.join(lexemes[at] for at in plan.anchors)}) & ({' | '.join(others)})"
        sql = BEST_MATCHES.format(bits=bits, weight=weight, source=source)
        values = (*others, *weights, *searched, both, query.common_above)
        return [(row[0], row[1]) for row in numbers(con, sql, values)]

    def newest(word: int) -> list[int]:
        values = (*searched, lexemes[word], query.limit)
        return [row[0] for row in numbers(con, NEWEST.format(source=source), values)]

    return candidates.with_common_words(positions, counts, query, look_up, newest)


def _counted(
    con: Con, source: str, lexemes: list[str], query: CandidateQuery, searched: tuple[object, ...], total: int
) -> tuple[list[int], frozenset[int]]:
    """How many texts hold each word, and the words that are too common to follow. In a large index the counts of these
    are estimates."""
    exact = total <= candidates.EXACT_TEXTS
    most = candidates.EXACT_TEXTS if exact else query.common_above + 1
    valid = [(at, quoted) for at, quoted in enumerate(lexemes) if quoted]
    words, queries = [at for at, _ in valid], [quoted for _, quoted in valid]
    counted = numbers(con, COMMON.format(source=source), (words, queries, *searched, most))
    hits: dict[int, Row] = {row[0]: row[1:] for row in counted}
    counts = [hits[at][0] if at in hits else 0 for at in range(len(lexemes))]
    if exact:
        return counts, candidates.common_words(counts, total, query)
    common = frozenset(at for at, count in enumerate(counts) if count > query.common_above)
    if common:
        newest = con.execute(LAST.format(source=source), searched).fetchall()
        for at in common:
            # Texts are stored roughly in order of creation, so the last one read tells how dense the word is.
            _, first, last = hits[at]
            counts[at] = max(counts[at], counts[at] * (newest[0][0] - first + 1) // (last - first + 1))
    return counts, common


def tsvector(terms: list[str]) -> str:
    """The terms of a text as a tsvector."""
    if len(terms) <= POSITIONS_MAX and sum(map(len, terms)) <= SHORT_TERMS_CHARS:  # nearly always: all of them fit
        short: dict[str, str] = {}
        for position, term in enumerate(terms, 1):
            before = short.get(term)
            short[term] = f"{lexeme(term)}:{position}" if before is None else f"{before},{position}"
        short.pop("", None)
        return " ".join(short.values())
    return " ".join(f"{lexeme(term)}:{','.join(map(str, at))}" for term, at in _fitting(terms).items())


def missing(text: str, indexed: Iterable[str]) -> set[str]:
    """Words of a text that are not in its index. Words inside identifiers are not required: older schemas lack them."""
    marks = {analyse.LONG, analyse.LONG_HEX}  # of which there are newer ones
    return _fitting(analyse.terms(analyse.short_words(analyse.fold(text)))).keys() - set(indexed) - marks


def _fitting(terms: list[str]) -> dict[str, list[int]]:
    """The distinct terms of a text and their positions, counted from 1, as many as fit into a tsvector."""
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for position, term in enumerate(terms, 1):
        positions[term].append(position)
    positions.pop("", None)
    size = 4 * sum(map(len, positions)) + 2 * len(terms) + 8 * len(positions)  # an upper bound
    most = max(map(len, positions.values()), default=0)
    if size <= TERMS_MAX_BYTES and len(terms) <= POSITION_MAX and most <= POSITIONS_MAX:
        return positions  # nearly always
    room, fitting = TERMS_MAX_BYTES, {}
    for term, of_term in positions.items():
        some = list(dict.fromkeys(min(position, POSITION_MAX) for position in of_term[:POSITIONS_MAX]))
        room -= len(term.encode()) + 2 * len(some) + 8
        if room >= 0:
            fitting[term] = some
    return fitting


def lexeme(term: str) -> str:
    """A term in quotes, so that nothing in it is read as syntax; empty when the server would refuse it."""
    if term.isascii() and term.isalnum() and len(term) <= TERM_MAX_BYTES:  # nearly always
        return f"'{term}'"
    if not 0 < len(term.encode()) <= TERM_MAX_BYTES:
        return ""
    quoted = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}'"


def array(docs: Iterable[int]) -> str:
    """Document numbers as an array literal. The driver would inspect the type of each of them."""
    return f"{{{','.join(map(str, docs))}}}"


def like(folded: str) -> str:
    """A pattern for texts that contain this one, without wildcards of its own."""
    for special in ("\\", "%", "_"):
        folded = folded.replace(special, f"\\{special}")
    return f"%{folded}%"
