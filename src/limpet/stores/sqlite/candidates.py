"""What searches find in the embedded store: texts that contain one, and candidates for recall with their words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from limpet import limits
from limpet.light import Any, cast, json
from limpet.model import MEMORY, Scope
from limpet.record import NamedTuple
from limpet.store import CandidateQuery, Candidates, Document, Listing, Positions, to_json
from limpet.stores.shared import candidates, hits
from limpet.stores.shared.sql import Row
from limpet.stores.sqlite.connection import Connection
from limpet.stores.sqlite.index import WordIndex, any_of, every_word, may_contain, source_of
from limpet.text import words as analyse

# The position of a string in the text of an entry. Folding in SQL is exact for ASCII; other text is folded in Python.
POSITION = "instr(iif(octet_length({text}) = length({text}), lower({text}), fold({text})), ?)"
TEXT = "iif(e.kind = 'memory', e.key || char(10) || e.content, e.content)"
SIZE = "octet_length(e.content)"
# The statements of this module are built from constants; every value is a parameter.
OFFSETS = "SELECT doc, offset FROM {table}_at WHERE term = ? LIMIT ?"
WITH_LITERAL = (
    f"SELECT e.rowid FROM (SELECT rowid FROM terms WHERE terms MATCH ? ORDER BY rowid DESC LIMIT "  # noqa: S608
    f"{candidates.LITERAL_CANDIDATES}) t CROSS JOIN entries e ON e.rowid = t.rowid "
    f"WHERE e.tenant = ? AND e.project = ? AND {POSITION.format(text=TEXT)}"
)
NEWEST = "SELECT rowid FROM {table} WHERE {table} MATCH ? AND {within} ORDER BY rowid DESC LIMIT ?"
MATCHES = "SELECT rowid AS doc, ? AS bit, ? AS weight FROM {table} WHERE {table} MATCH ?"
BEST_MATCHES = (
    "SELECT doc, sum(bit) FROM ({matches}) WHERE {within} GROUP BY doc ORDER BY sum(weight) DESC, doc DESC LIMIT ?"
)
LAST = "SELECT max(rowid) FROM {table}_docsize"
DOCUMENTS = (
    f"SELECT e.rowid, {candidates.DOCUMENT} FROM json_each(?) j CROSS JOIN entries e ON e.rowid = j.value "  # noqa: S608
    "WHERE e.tenant = ? AND e.project = ? AND e.kind IN (SELECT value FROM json_each(?))"
)
SIZES = (
    "SELECT e.rowid, octet_length(e.content) FROM json_each(?) j CROSS JOIN entries e ON e.rowid = j.value "
    "WHERE e.tenant = ? AND e.project = ?"
)
COUNT = "SELECT count(*) FROM {table} WHERE {table} MATCH ?"
TOTAL = (
    "SELECT coalesce(sum(count), 0) FROM tallies WHERE tenant = ? AND project = ? AND kind = ? "
    "AND session = '' AND tag = ''"
)
PIECE_DOCUMENTS = (
    f"SELECT p.rowid, {candidates.PIECE_DOCUMENT} FROM json_each(?) j "  # noqa: S608
    "CROSS JOIN output_pieces p ON p.rowid = j.value "
    "JOIN outputs o ON o.tenant = p.tenant AND o.project = p.project AND o.id = p.id "
    "WHERE p.tenant = ? AND p.project = ?"
)
PIECES = "SELECT rowid FROM output_pieces WHERE tenant = ? AND project = ?"
COUNT_PIECES = "SELECT count(*) FROM output_pieces WHERE tenant = ? AND project = ?"
IN_SCOPE = "SELECT rowid FROM entries WHERE tenant = ? AND project = ? AND kind IN (SELECT value FROM json_each(?))"


PLACES_MOST = 40_000  # positions of one word that are read: a page that repeats a word thousands of times


def position(kinds: Sequence[str]) -> str:
    """The position of a string in the text of an entry of these kinds, from 1; 0 where it is not."""
    return POSITION.format(text=TEXT if MEMORY in kinds else "e.content")


class Searched(NamedTuple):
    """The texts that a query may match, as SQL, and how many they are."""

    sql: str
    values: tuple[Any, ...]
    total: int


def entry_candidates(
    con: Connection, index: WordIndex, scope: Scope, kinds: tuple[str, ...], query: CandidateQuery
) -> Candidates:
    searched = Searched(IN_SCOPE, (*scope, json.dumps(kinds)), total(con, scope, kinds))
    if not searched.total:  # what other kinds and projects hold costs nothing then
        return candidates.nothing(query)
    families = [index.same_stem(con, word) for word in query.words]
    words = word_positions(con, "terms", families, query, searched)
    exact = {word: words.positions[at] for at, word in enumerate(query.words) if at not in words.common}
    # A literal that is a word of the index need not be searched inside other words.
    literals = [exact.get(literal) or _with_literal(con, scope, literal) for literal in query.literals]

    def load(docs: Sequence[int]) -> dict[int, Document]:
        loaded = con.execute(DOCUMENTS, (json.dumps(docs), *scope, json.dumps(kinds)))
        return {row[0]: candidates.to_document(row) for row in loaded}

    def size_of(docs: Sequence[int]) -> dict[int, int]:
        return dict(cast(Iterable[tuple[int, int]], con.execute(SIZES, (json.dumps(docs), *scope))))

    return candidates.collect(query, words, literals, load, searched.total, size_of)


# --- texts that contain one ------------------------------------------------------------------------------------------

FEW = 2_000  # texts that are read one by one: two milliseconds
INSIDE_READ = 500  # newest texts that may contain what is sought, read where others have its words: half a millisecond
MATCHING = "SELECT rowid FROM terms WHERE terms MATCH ? ORDER BY rowid DESC LIMIT ?"


def among_few(con: Connection, scope: Scope, query: Listing, sought: hits.Sought) -> list[hits.Hit] | None:
    """All texts that contain a text, the newest first, where the kinds have few: these are read, and not the index,
    which holds the words of all kinds. None where they have many."""
    if total(con, scope, query.kinds) > FEW:
        return None
    source, values = source_of(scope, query)
    sql = f"SELECT {TEXT}, {SIZE}, -e.rowid FROM {source} AND {position(query.kinds)} > 0"  # noqa: S608
    holding = con.rows(sql, (*values, sought.text))
    return sorted(((sought.fit(text), size, number) for text, size, number in holding), key=lambda hit: hit[2])


def as_words(con: Connection, scope: Scope, query: Listing, sought: hits.Sought, *, within: bool) -> list[hits.Hit]:
    """The newest texts with every word of a text as a word; `within` those alone that contain it as it is."""
    match = every_word(sought.runs)
    if match is None:
        return []
    source, values = source_of(scope, query, match)
    inside = "1" if sought.one_word and not within else f"{position(query.kinds)} > 0"
    before: Row = () if inside == "1" else (sought.text,)
    sql = f"SELECT iif({inside}, {hits.AS_ASKED}, {hits.EVERY_WORD}) AS fit, {SIZE}, -t.rowid FROM {source}"  # noqa: S608
    sql += f"{f' AND fit = {hits.AS_ASKED}' if within else ''} ORDER BY t.rowid DESC LIMIT {limits.NOTES_COUNTED + 1}"
    return cast("list[hits.Hit]", _of_layers(con, sql, (*before, *values)))


def inside_words(
    con: Connection, scope: Scope, query: Listing, sought: hits.Sought, *, beside: bool
) -> tuple[list[hits.Hit], bool]:
    """The newest texts that contain a text anywhere, and whether all that may were read: beside better hits so many
    are."""
    match = may_contain(con, sought.text)
    source, values = source_of(scope, query, match)
    number, order = ("e.rowid" if source.startswith("entries") else "t.rowid"), ""
    if number == "e.rowid" and _are_most(con, scope, query.kinds):
        source = source.replace("entries e", "entries e NOT INDEXED", 1)  # else all are sorted before the first is read
    read: list[Row] = []
    if beside and match is not None:
        read = [row for layer in con.layers for row in layer.rows(MATCHING, (values[-1], INSIDE_READ))]
        source, conditions = source_of(scope, query._replace(tags=(), tags_any=()))
        source = f"json_each(?) t CROSS JOIN {source.replace(' WHERE ', ' ON e.rowid = t.value WHERE ', 1)}"
        values, number = (to_json([doc for (doc,) in read]), *conditions), "t.value"
    else:
        order = f"ORDER BY {number} DESC "  # the index gives its own in order
    sql = f"SELECT {hits.INSIDE}, {SIZE}, -{number} FROM {source} AND {position(query.kinds)} > 0 "  # noqa: S608
    return _hits(con, source, f"{sql}{order}LIMIT ?", (*values, sought.text)), len(read) < INSIDE_READ


def _are_most(con: Connection, scope: Scope, kinds: Sequence[str]) -> bool:
    """Whether the entries of these kinds are most of the newest in the file."""
    return bool(2 * total(con, scope, kinds) > (con.rows("SELECT max(rowid) FROM entries")[0][0] or 0))


def by_stem(con: Connection, scope: Scope, query: Listing, match: str | None) -> list[hits.Hit]:
    """The newest texts that match a word query."""
    if match is None:
        return []
    source, values = source_of(scope, query, match)
    sql = f"SELECT {hits.BY_STEM}, {SIZE}, -t.rowid FROM {source} ORDER BY t.rowid DESC LIMIT ?"  # noqa: S608
    return _hits(con, source, sql, values)


def _hits(con: Connection, source: str, sql: str, values: Row) -> list[hits.Hit]:
    """More than are counted: those of a better search may be among them."""
    values = (*values, 2 * limits.NOTES_COUNTED + 1)
    return cast("list[hits.Hit]", _of_layers(con, sql, values) if source.startswith("terms") else con.rows(sql, values))


# --- pieces of outputs, and positions of words -----------------------------------------------------------------------


def piece_candidates(con: Connection, scope: Scope, query: CandidateQuery) -> Candidates:
    """Candidates among the pieces of outputs."""
    stems = analyse.terms([*query.words])
    searched = Searched(PIECES, tuple(scope), con.rows(COUNT_PIECES, tuple(scope))[0][0])
    words = word_positions(con, "output_terms", [(stem,) for stem in stems], query, searched)

    def load(docs: Sequence[int]) -> dict[int, Document]:
        loaded = con.rows(PIECE_DOCUMENTS, (json.dumps([*docs]), *scope))
        return {row[0]: candidates.to_piece_document(row) for row in loaded}

    return candidates.collect(query, words, [], load, searched.total)


def total(con: Connection, scope: Scope, kinds: Sequence[str]) -> int:
    counts: list[Row] = [row for kind in kinds for row in con.execute(TOTAL, (*scope, kind)).fetchall()]
    return sum(row[0] for row in counts)


def word_positions(
    con: Connection, table: str, families: Sequence[Iterable[str]], query: CandidateQuery, searched: Searched
) -> candidates.WordPositions:
    """The positions of words in the texts of an index, each word with all that count as the same."""
    newest_text = _last(con, table) or 0
    if newest_text <= candidates.EXACT_TEXTS:
        counts = [_count(con, table, family) for family in families]
        common = candidates.common_words(counts, newest_text, query)
        positions = [
            None if at in common else _positions(con, table, family, PLACES_MOST)[0]
            for at, family in enumerate(families)
        ]
    else:
        followed = [_positions(con, table, family, query.common_above) for family in families]
        positions, counts = [of_word for of_word, _ in followed], [count for _, count in followed]
    # One index serves all projects and kinds. Where the searched texts are few in it, common words are looked up in
    # these alone: matches in other projects would fill the limit. Listing them costs less than it saves then.
    last = newest_text if None in positions else 0
    few = searched.total * 2 < last
    # The plus keeps SQLite from probing the index for one text at a time.
    within, values_within = (f"IN ({searched.sql})", searched.values) if few else ("IS NOT NULL", ())
    if few:
        estimates = [max(1, count * searched.total // last) for count in counts]
        counts = [estimates[at] if of_word is None else counts[at] for at, of_word in enumerate(positions)]

    def look_up(plan: candidates.Plan) -> list[candidates.Match]:
        anchor = any_of({word for at in plan.anchors for word in families[at]})
        values: list[Any] = []
        for at, weight in zip(plan.others, plan.weights, strict=True):
            values += [1 << at, weight, f"{anchor} AND {any_of(families[at])}"]
        matches = " UNION ALL ".join([MATCHES.format(table=table)] * len(plan.others))
        sql = BEST_MATCHES.format(matches=matches, within=f"+doc {within}")
        return cast(list[candidates.Match], _of_layers(con, sql, (*values, *values_within, query.common_above)))

    def newest(word: int) -> list[int]:
        sql = NEWEST.format(table=table, within=f"+rowid {within}")
        latest = _of_layers(con, sql, (any_of(families[word]), *values_within, query.limit))
        return [doc for (doc,) in latest][: query.limit]

    return candidates.with_common_words(positions, counts, query, look_up, newest)


def _positions(con: Connection, table: str, words: Iterable[str], most: int) -> tuple[Positions | None, int]:
    """The positions of any of the words, and how many texts hold one; None and an estimate when there are too many."""
    pairs: list[tuple[int, int]] = []
    sql = OFFSETS.format(table=table)
    for word in sorted(words):
        for layer in reversed(con.layers):  # in the order of the texts
            pairs += cast(list[tuple[int, int]], layer.rows(sql, (word, most + 1)))
        if len(pairs) > most:
            # The positions come in the order of the texts, so the last of them tells how dense they are.
            return None, max(most, most * _last(con, table) // max(1, pairs[-1][0]))
    single = {doc: (offset,) for doc, offset in pairs}
    if len(single) == len(pairs):  # the usual case: once per text
        return single, len(single)
    several: dict[int, list[int]] = {}
    for doc, offset in pairs:
        several.setdefault(doc, []).append(offset)
    return {doc: tuple(sorted(offsets)) for doc, offsets in several.items()}, len(several)


def _count(con: Connection, table: str, words: Iterable[str]) -> int:
    """How many texts hold any of the words."""
    return sum(count for (count,) in _of_layers(con, COUNT.format(table=table), (any_of(words),)))


def _last(con: Connection, table: str) -> int:
    """The number of the newest text, which is roughly how many there are."""
    return max(last or 0 for (last,) in _of_layers(con, LAST.format(table=table)))


def _of_layers(con: Connection, sql: str, values: tuple[Any, ...] = ()) -> list[Row]:
    """What a query finds in the index, with the texts that could not join it yet first."""
    return [row for layer in con.layers for row in layer.rows(sql, values)]


def _with_literal(con: Connection, scope: Scope, literal: str) -> Positions:
    """The texts that hold a literal: as words of their own, or else as a part of longer words."""
    words = analyse.words(literal)
    if len(words) > 1 and max(map(len, words)) <= analyse.WORD_MAX_CHARS:
        side_by_side = any_of([" ".join(words)])
        if texts := {row[0]: () for row in _of_layers(con, WITH_LITERAL, (side_by_side, *scope, literal))}:
            return texts
    match = may_contain(con, literal)
    if match is None:
        return {}
    return {row[0]: () for row in _of_layers(con, WITH_LITERAL, (match, *scope, literal))}
