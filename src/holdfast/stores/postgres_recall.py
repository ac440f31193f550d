"""What the store for teams gathers for recall: where words stand, from the terms of each text, and what is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from holdfast.model import Entry, Scope
from holdfast.search import analyse
from holdfast.store import Fact, Gathered, Places, Seek
from holdfast.stores import gathering, rows
from holdfast.stores.postgres_schema import Con
from holdfast.stores.postgres_server import Server
from holdfast.stores.postgres_tenants import numbers

TERM_MAX_BYTES = 2_046  # of one term in a tsvector; the server refuses longer ones
TERMS_MAX_BYTES = 1_000_000  # of all terms of one text together, for the same reason
PLACE_MAX, PLACES_MAX = 16_383, 255  # the last place a tsvector can name, and how many of one term
# The texts of this module are put together from constants of ours only; every value is a parameter.
OURS = "e.tenant = %s AND e.project = %s AND e.kind = ANY(%s)"
ENTRIES = f"entries e WHERE {OURS}"
PIECES = "output_pieces e WHERE e.tenant = %s AND e.project = %s"
COMMON = (
    "SELECT s.number, (SELECT count(*) FROM (SELECT 1 FROM {source} AND e.terms @@ CAST(s.query AS tsquery) "
    "LIMIT %s) hits) FROM unnest(%s::int[], %s::text[]) AS s (number, query)"
)
WHERE = (
    "SELECT t.doc, u.lexeme, u.positions FROM (SELECT e.doc, e.terms FROM {source} "
    "AND e.terms @@ CAST(%s AS tsquery)) t, unnest(t.terms) u WHERE u.lexeme = ANY(%s)"
)
NEWEST = "SELECT e.doc FROM {source} AND e.terms @@ CAST(%s AS tsquery) ORDER BY e.doc DESC LIMIT %s"
HOLDING = f"SELECT e.doc FROM {ENTRIES} AND e.folded LIKE %s ORDER BY e.doc DESC LIMIT {gathering.LITERAL_CANDIDATES}"  # noqa: S608
KNOWN = f"SELECT e.doc, {gathering.FACTS} FROM {ENTRIES} AND e.doc = ANY(%s)"  # noqa: S608
TOTAL = (
    "SELECT coalesce(sum(count), 0)::bigint FROM tallies WHERE tenant = %s AND project = %s AND kind = ANY(%s) "
    "AND session = '' AND tag = ''"
)
READ = f"SELECT e.doc, {rows.E_FIELDS} FROM entries e WHERE e.tenant = %s AND e.project = %s AND e.doc = ANY(%s)"  # noqa: S608


class PostgresRecall:
    _server: Server
    place: str

    def gather(self, scope: Scope, kinds: tuple[str, ...], seek: Seek) -> Gathered:
        ours = (*scope, list(kinds))

        def work(con: Con) -> Gathered:
            words = words_in(con, ENTRIES, seek, ours)
            known = dict(zip(seek.words, words.places, strict=True))
            # A literal that is a word of the index need not be looked for inside of others.
            literals = [known.get(literal) or _holding(con, literal, ours) for literal in seek.literals]

            def look(docs: Sequence[int]) -> dict[int, Fact]:
                known = con.execute(KNOWN, (*ours, list(docs))).fetchall()
                return {row[0]: gathering.to_fact(row) for row in known}

            total = con.execute(TOTAL, ours).fetchall()[0][0]
            return gathering.gathered(seek, words.places, literals, words.newest, look, total)

        return self._server.view(scope.tenant, work)

    def texts(self, scope: Scope, docs: Sequence[int]) -> dict[int, Entry]:
        found = self._server.rows(scope.tenant, READ, (*scope, list(docs)))
        return {row[0]: rows.to_entry(self.place, scope, row[1:]) for row in found}


def _holding(con: Con, literal: str, ours: tuple[object, ...]) -> Places:
    return {row[0]: () for row in numbers(con, HOLDING, (*ours, like(literal)))}


class Found(NamedTuple):
    places: list[Places | None]
    newest: list[int]  # texts with all the words, where each of them is too common


def words_in(con: Con, source: str, seek: Seek, ours: tuple[object, ...]) -> Found:
    """Where the words stand in the texts of a source; `ours` are the values its conditions need."""
    stems = analyse.terms(list(seek.words))
    lexemes = [lexeme(stem) for stem in stems]
    sought = [(at, quoted) for at, quoted in enumerate(lexemes) if quoted]
    ats, queries = [at for at, _ in sought], [quoted for _, quoted in sought]
    counts: dict[int, int] = dict(numbers(con, COMMON.format(source=source), (*ours, seek.common + 1, ats, queries)))
    common = [counts.get(at, 0) > seek.common for at in range(len(lexemes))]
    followed = [quoted for quoted, much in zip(lexemes, common, strict=True) if quoted and not much]
    places: dict[str, dict[int, tuple[int, ...]]] = {}
    found = numbers(con, WHERE.format(source=source), (*ours, " | ".join(followed), stems)) if followed else ()
    for doc, term, at in found:
        # What was written before places were kept has none; then each term stands there once, nobody knows where.
        places.setdefault(term, {})[doc] = tuple(place - 1 for place in at) if at else (-1,)
    newest: list[int] = []
    if any(common) and not places:
        both = " & ".join(quoted for quoted, much in zip(lexemes, common, strict=True) if much)
        newest = [row[0] for row in numbers(con, NEWEST.format(source=source), (*ours, both, seek.most))]
    return Found([None if much else places.get(stem, {}) for stem, much in zip(stems, common, strict=True)], newest)


def vector(terms: list[str]) -> str:
    """What the index holds of a text, in the form of a tsvector."""
    return " ".join(f"{lexeme(term)}:{','.join(map(str, at))}" for term, at in _fitting(terms).items())


def missing(text: str, held: Iterable[str]) -> set[str]:
    """Words of a text that the index does not hold. Those inside identifiers were not always kept."""
    return _fitting(analyse.terms(analyse.short_words(analyse.fold(text)))).keys() - set(held)


def _fitting(terms: list[str]) -> dict[str, list[int]]:
    """The different terms of a text and where they stand, counted from 1, as many as fit into a tsvector."""
    places: dict[str, list[int]] = {}
    for at, term in enumerate(terms, 1):
        if term:
            places.setdefault(term, []).append(min(at, PLACE_MAX))
    room, kept = TERMS_MAX_BYTES, {}
    for term, all_at in places.items():
        some = list(dict.fromkeys(all_at[:PLACES_MAX]))
        room -= len(term.encode()) + 2 * len(some) + 8
        if room >= 0:
            kept[term] = some
    return kept


def lexeme(term: str) -> str:
    """A term in quotes, so that nothing in it is read as syntax; empty when the server would refuse it."""
    if not 0 < len(term.encode()) <= TERM_MAX_BYTES:
        return ""
    quoted = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}'"


def like(folded: str) -> str:
    """A pattern for texts that contain this one; nothing in it is taken for a wildcard."""
    for special in ("\\", "%", "_"):
        folded = folded.replace(special, f"\\{special}")
    return f"%{folded}%"
