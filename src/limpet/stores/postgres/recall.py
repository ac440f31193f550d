"""What the store for teams gathers for recall: where words stand, from the terms of each text, and what is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from limpet.model import Entry, Scope
from limpet.store import SOMEWHERE, Fact, Gathered, Places, Seek
from limpet.stores.postgres.replica import PostgresNear
from limpet.stores.postgres.schema import Con
from limpet.stores.postgres.tenants import numbers
from limpet.stores.shared import candidates, rows
from limpet.stores.shared.rows import Row
from limpet.text import words as analyse

TERM_MAX_BYTES = 2_046  # of one term in a tsvector; the server refuses longer ones
TERMS_MAX_BYTES = 1_000_000  # of all terms of one text together, for the same reason
PLACE_MAX, PLACES_MAX = 16_383, 255  # the last place a tsvector can name, and how many of one term
# The texts of this module are put together from constants of ours only; every value is a parameter.
OURS = "e.tenant = %s AND e.project = %s AND e.kind = ANY(%s)"
ENTRIES = f"entries e WHERE {OURS}"
PIECES = "output_pieces e WHERE e.tenant = %s AND e.project = %s"
COMMON = (
    "SELECT s.number, h.count, h.first, h.last FROM unnest(%s::int[], %s::text[]) AS s (number, query), LATERAL ("
    "SELECT count(*), coalesce(min(doc), 0), coalesce(max(doc), 0) FROM (SELECT e.doc FROM {source} "
    "AND e.terms @@ CAST(s.query AS tsquery) LIMIT %s) hits) h (count, first, last)"
)
LAST = "SELECT e.doc FROM {source} ORDER BY e.doc DESC LIMIT 1"
WHERE = (
    "SELECT t.doc, u.lexeme, u.positions FROM (SELECT e.doc, e.terms FROM {source} "
    "AND e.terms @@ CAST(%s AS tsquery)) t, unnest(t.terms) u WHERE u.lexeme = ANY(%s)"
)
HELD = (
    "SELECT h.doc, h.bits FROM (SELECT e.doc, {bits} AS bits, {worth} AS worth FROM {source} "
    "AND e.terms @@ CAST(%s AS tsquery)) h ORDER BY h.worth DESC, h.doc DESC LIMIT %s"
)
HOLDS = "CASE WHEN e.terms @@ CAST(%s AS tsquery) THEN {value} ELSE 0 END"
NEWEST = "SELECT e.doc FROM {source} AND e.terms @@ CAST(%s AS tsquery) ORDER BY e.doc DESC LIMIT %s"
HOLDING = f"SELECT e.doc FROM {ENTRIES} AND e.folded LIKE %s ORDER BY e.doc DESC LIMIT {candidates.LITERAL_CANDIDATES}"  # noqa: S608
KNOWN = f"SELECT e.doc, {candidates.FACTS} FROM {ENTRIES} AND e.doc = ANY(%s::bigint[])"  # noqa: S608
TOTAL = (
    "SELECT coalesce(sum(count), 0)::bigint FROM tallies WHERE tenant = %s AND project = %s AND kind = ANY(%s) "
    "AND session = '' AND tag = ''"
)
READ = (
    f"SELECT e.doc, {rows.E_FIELDS} FROM entries e WHERE e.tenant = %s AND e.project = %s AND e.doc = ANY(%s::bigint[])"  # noqa: S608
)


class PostgresRecall(PostgresNear):
    place: str

    def gather(self, scope: Scope, kinds: tuple[str, ...], seek: Seek) -> Gathered:
        ours = (*scope, list(kinds))

        def work(con: Con) -> Gathered:
            total = con.execute(TOTAL, ours).fetchall()[0][0]
            words = words_in(con, ENTRIES, seek, ours, total)
            known = {word: words.places[at] for at, word in enumerate(seek.words) if at not in words.common}
            # A literal that is a word of the index need not be looked for inside of others.
            literals = [known.get(literal) or _holding(con, literal, ours) for literal in seek.literals]

            def look(docs: Sequence[int]) -> dict[int, Fact]:
                known = con.execute(KNOWN, (*ours, array(docs))).fetchall()
                return {row[0]: candidates.to_fact(row) for row in known}

            return candidates.gathered(seek, words, literals, look, total)

        return self._near(scope, work)

    def texts(self, scope: Scope, docs: Sequence[int]) -> dict[int, Entry]:
        def made(found: list[Row]) -> dict[int, Entry]:
            return {row[0]: rows.to_entry(self.place, scope, row[1:]) for row in found}

        return self._near_rows(scope, READ, (*scope, array(docs)), made)


def _holding(con: Con, literal: str, ours: tuple[object, ...]) -> Places:
    return {row[0]: () for row in numbers(con, HOLDING, (*ours, like(literal)))}


def words_in(con: Con, source: str, seek: Seek, ours: tuple[object, ...], total: int) -> candidates.Words:
    """Where the words stand in the texts of a source; `ours` are the values its conditions need."""
    if not total:
        return candidates.Words([{}] * len(seek.words), [0] * len(seek.words))
    stems = analyse.terms(list(seek.words))
    lexemes = [lexeme(stem) for stem in stems]
    # Among few texts no word is common, and where the words stand also tells in how many.
    few = total <= seek.common
    counts, common = ([], frozenset()) if few else _counted(con, source, lexemes, seek, ours)
    followed = [quoted for at, quoted in enumerate(lexemes) if quoted and at not in common]
    places: dict[str, dict[int, tuple[int, ...]]] = {}
    found = numbers(con, WHERE.format(source=source), (*ours, " | ".join(followed), stems)) if followed else ()
    for doc, term, at in found:
        # What was written before places were kept has none.
        places.setdefault(term, {})[doc] = tuple(place - 1 for place in at) if at else SOMEWHERE
    known = [None if at in common else places.get(stem, {}) for at, stem in enumerate(stems)]
    if few:
        return candidates.Words([found or {} for found in known], [len(found or ()) for found in known])

    def ask(planned: candidates.Plan) -> list[candidates.Held]:
        others = [lexemes[at] for at in planned.others]
        bits = " + ".join(HOLDS.format(value=1 << at) for at in planned.others)
        worth = " + ".join([HOLDS.format(value="CAST(%s AS float8)")] * len(others))
        weighed = [value for pair in zip(others, planned.worth, strict=True) for value in pair]
        both = f"({' | '.join(lexemes[at] for at in planned.anchors)}) & ({' | '.join(others)})"
        sql = HELD.format(bits=bits, worth=worth, source=source)
        return [(row[0], row[1]) for row in numbers(con, sql, (*others, *weighed, *ours, both, seek.common))]

    def newest(at: int) -> list[int]:
        return [row[0] for row in numbers(con, NEWEST.format(source=source), (*ours, lexemes[at], seek.most))]

    return candidates.together(known, counts, seek, ask, newest)


def _counted(
    con: Con, source: str, lexemes: list[str], seek: Seek, ours: tuple[object, ...]
) -> tuple[list[int], frozenset[int]]:
    """In how many texts each word stands, and the words that are too common to be followed; of these it is a guess."""
    sought = [(at, quoted) for at, quoted in enumerate(lexemes) if quoted]
    ats, queries = [at for at, _ in sought], [quoted for _, quoted in sought]
    counted = numbers(con, COMMON.format(source=source), (ats, queries, *ours, seek.common + 1))
    hits: dict[int, Row] = {row[0]: row[1:] for row in counted}
    counts = [hits[at][0] if at in hits else 0 for at in range(len(lexemes))]
    common = frozenset(at for at, count in enumerate(counts) if count > seek.common)
    if common:
        newest = con.execute(LAST.format(source=source), ours).fetchall()
        for at in common:
            # Texts lie more or less in the order they came, so the last one looked at tells how thick the word lies.
            _, first, last = hits[at]
            counts[at] = max(counts[at], counts[at] * (newest[0][0] - first + 1) // (last - first + 1))
    return counts, common


def vector(terms: list[str]) -> str:
    """What the index holds of a text, in the form of a tsvector."""
    return " ".join(f"{lexeme(term)}:{','.join(map(str, at))}" for term, at in _fitting(terms).items())


def missing(text: str, held: Iterable[str]) -> set[str]:
    """Words of a text that the index does not hold. Those inside identifiers were not always kept."""
    return _fitting(analyse.terms(analyse.short_words(analyse.fold(text)))).keys() - set(held)


def _fitting(terms: list[str]) -> dict[str, list[int]]:
    """The different terms of a text and where they stand, counted from 1, as many as fit into a tsvector."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for at, term in enumerate(terms, 1):
        places[term].append(at)
    places.pop("", None)
    size = 4 * sum(map(len, places)) + 2 * len(terms) + 8 * len(places)  # at most
    if size <= TERMS_MAX_BYTES and len(terms) <= PLACE_MAX and max(map(len, places.values()), default=0) <= PLACES_MAX:
        return places  # as nearly always
    room, kept = TERMS_MAX_BYTES, {}
    for term, all_at in places.items():
        some = list(dict.fromkeys(min(at, PLACE_MAX) for at in all_at[:PLACES_MAX]))
        room -= len(term.encode()) + 2 * len(some) + 8
        if room >= 0:
            kept[term] = some
    return kept


def lexeme(term: str) -> str:
    """A term in quotes, so that nothing in it is read as syntax; empty when the server would refuse it."""
    if term.isascii() and term.isalnum() and len(term) <= TERM_MAX_BYTES:  # nearly always
        return f"'{term}'"
    if not 0 < len(term.encode()) <= TERM_MAX_BYTES:
        return ""
    quoted = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}'"


def array(docs: Iterable[int]) -> str:
    """Numbers of texts in the form of an array. The driver would look at each of them for its type."""
    return f"{{{','.join(map(str, docs))}}}"


def like(folded: str) -> str:
    """A pattern for texts that contain this one; nothing in it is taken for a wildcard."""
    for special in ("\\", "%", "_"):
        folded = folded.replace(special, f"\\{special}")
    return f"%{folded}%"
