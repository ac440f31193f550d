"""What the store for teams gathers for recall: where words stand, from the terms of each text, and what is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.model import Entry, Scope
from holdfast.search import analyse
from holdfast.store import Fact, Gathered, Places, Seek
from holdfast.stores import gathering, rows
from holdfast.stores.postgres_schema import Con
from holdfast.stores.postgres_server import Server

TERM_MAX_BYTES = 2_046  # of one term in a tsvector; the server refuses longer ones
TERMS_MAX_BYTES = 1_000_000  # of all terms of one text together, for the same reason
PLACE_MAX, PLACES_MAX = 16_383, 255  # the last place a tsvector can name, and how many of one term
# The texts of this module are put together from constants of ours only; every value is a parameter.
OURS = "e.tenant = %s AND e.project = %s AND e.kind = ANY(%s)"
COMMON = (
    "SELECT s.number, (SELECT count(*) FROM (SELECT 1 FROM entries e WHERE e.terms @@ CAST(s.query AS tsquery) "  # noqa: S608
    f"AND {OURS} LIMIT %s) hits) FROM unnest(%s::int[], %s::text[]) AS s (number, query)"
)
WHERE = (
    "SELECT e.doc, u.lexeme, u.positions FROM entries e, unnest(e.terms) u "  # noqa: S608
    f"WHERE e.terms @@ CAST(%s AS tsquery) AND u.lexeme = ANY(%s) AND {OURS}"
)
HOLDING = (
    f"SELECT e.doc FROM entries e WHERE e.folded LIKE %s AND {OURS} ORDER BY e.doc DESC "  # noqa: S608
    f"LIMIT {gathering.LITERAL_CANDIDATES}"
)
NEWEST = f"SELECT e.doc FROM entries e WHERE e.terms @@ CAST(%s AS tsquery) AND {OURS} ORDER BY e.doc DESC LIMIT %s"  # noqa: S608
KNOWN = f"SELECT e.doc, {gathering.FACTS} FROM entries e WHERE e.doc = ANY(%s) AND {OURS}"  # noqa: S608
TOTAL = (
    "SELECT coalesce(sum(count), 0)::bigint FROM tallies WHERE tenant = %s AND project = %s AND kind = ANY(%s) "
    "AND session = '' AND tag = ''"
)
READ = f"SELECT e.doc, {rows.E_FIELDS} FROM entries e WHERE e.doc = ANY(%s) AND e.tenant = %s AND e.project = %s"  # noqa: S608


class PostgresRecall:
    _server: Server
    place: str

    def gather(self, scope: Scope, kinds: tuple[str, ...], seek: Seek) -> Gathered:
        ours = (*scope, list(kinds))
        lexemes = [lexeme(term) for term in analyse.terms(list(seek.words))]

        def work(con: Con) -> Gathered:
            sought = [(at, quoted) for at, quoted in enumerate(lexemes) if quoted]
            numbers, queries = [at for at, _ in sought], [quoted for _, quoted in sought]
            counts: dict[int, int] = dict(con.execute(COMMON, (*ours, seek.common + 1, numbers, queries)).fetchall())
            common = [counts.get(at, 0) > seek.common for at in range(len(lexemes))]
            followed = [quoted for quoted, much in zip(lexemes, common, strict=True) if quoted and not much]
            found = _places(con, followed, seek, ours)
            stems = analyse.terms(list(seek.words))
            places = [None if much else found.get(stem, {}) for stem, much in zip(stems, common, strict=True)]
            held = ((like(literal), *ours) for literal in seek.literals)
            literals = [{row[0]: () for row in con.execute(HOLDING, values).fetchall()} for values in held]
            newest: list[int] = []
            if any(common) and not any(places):
                both = " & ".join(quoted for quoted, much in zip(lexemes, common, strict=True) if much)
                newest = [row[0] for row in con.execute(NEWEST, (both, *ours, seek.most)).fetchall()]

            def look(docs: Sequence[int]) -> dict[int, Fact]:
                known = con.execute(KNOWN, (list(docs), *ours)).fetchall()
                return {row[0]: gathering.to_fact(row) for row in known}

            total = con.execute(TOTAL, ours).fetchall()[0][0]
            return gathering.gathered(seek, places, literals, newest, look, total)

        return self._server.view(work)

    def texts(self, scope: Scope, docs: Sequence[int]) -> dict[int, Entry]:
        found = self._server.rows(READ, (list(docs), *scope))
        return {row[0]: rows.to_entry(self.place, scope, row[1:]) for row in found}


def _places(con: Con, followed: list[str], seek: Seek, ours: tuple[object, ...]) -> dict[str, Places]:
    if not followed:
        return {}
    stems = analyse.terms(list(seek.words))
    places: dict[str, dict[int, tuple[int, ...]]] = {}
    # What was written before places were kept has none; then each term stands in the text once, nobody knows where.
    for doc, term, at in con.execute(WHERE, (" | ".join(followed), stems, *ours)).fetchall():
        places.setdefault(term, {})[doc] = tuple(place - 1 for place in at) if at else (-1,)
    return dict(places)


def vector(text: str) -> str:
    """What the index holds of a text, in the form of a tsvector."""
    return " ".join(
        f"{lexeme(term)}:{','.join(map(str, at))}" for term, at in _terms(analyse.index_words(text)).items()
    )


def missing(text: str, held: Iterable[str]) -> set[str]:
    """Words of a text that the index does not hold. Those inside identifiers were not always kept."""
    return _terms(analyse.short_words(analyse.fold(text))).keys() - set(held)


def _terms(words: list[str]) -> dict[str, list[int]]:
    """The different terms of a text and where they stand, counted from 1, as many as fit into a tsvector."""
    places: dict[str, list[int]] = {}
    for at, term in enumerate(analyse.terms(words), 1):
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
