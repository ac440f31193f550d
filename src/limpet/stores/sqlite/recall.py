"""What the embedded store gathers for recall: where words stand, from the word index, and what is known of texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import apsw

from limpet.model import Entry, Scope
from limpet.store import Fact, Gathered, Places, Seek
from limpet.stores.shared import candidates, rows
from limpet.stores.sqlite.database import Database
from limpet.stores.sqlite.index import WordIndex, any_of, may_contain

# Where the text of an entry contains another. Folding in SQL is exact for ASCII; only the rest calls into Python.
TEXT = "iif(e.kind = 'memory', e.key || char(10) || e.content, e.content)"
PLACE = f"instr(iif(octet_length({TEXT}) = length({TEXT}), lower({TEXT}), fold({TEXT})), ?)"
# The texts of this module are put together from constants of ours only; every value is a parameter.
WHERE = "SELECT doc, offset FROM {table}_at WHERE term = ? LIMIT ?"
HOLDING = (
    f"SELECT e.rowid FROM (SELECT rowid FROM terms WHERE terms MATCH ? ORDER BY rowid DESC LIMIT "  # noqa: S608
    f"{candidates.LITERAL_CANDIDATES}) t CROSS JOIN entries e ON e.rowid = t.rowid "
    f"WHERE e.tenant = ? AND e.project = ? AND {PLACE}"
)
NEWEST = "SELECT rowid FROM {table} WHERE {table} MATCH ? AND {within} ORDER BY rowid DESC LIMIT ?"
HELD = "SELECT rowid AS doc, ? AS bit, ? AS worth FROM {table} WHERE {table} MATCH ?"
BEST_HELD = "SELECT doc, sum(bit) FROM ({held}) WHERE {within} GROUP BY doc ORDER BY sum(worth) DESC, doc DESC LIMIT ?"
LAST = "SELECT max(rowid) FROM {table}_docsize"
KNOWN = (
    f"SELECT e.rowid, {candidates.FACTS} FROM json_each(?) j CROSS JOIN entries e ON e.rowid = j.value "  # noqa: S608
    "WHERE e.tenant = ? AND e.project = ? AND e.kind IN (SELECT value FROM json_each(?))"
)
TOTAL = (
    "SELECT coalesce(sum(count), 0) FROM tallies WHERE tenant = ? AND project = ? AND kind = ? "
    "AND session = '' AND tag = ''"
)
OURS = "SELECT rowid FROM entries WHERE tenant = ? AND project = ? AND kind IN (SELECT value FROM json_each(?))"
READ = (
    f"SELECT e.rowid, {rows.E_FIELDS} FROM json_each(?) j CROSS JOIN entries e ON e.rowid = j.value "  # noqa: S608
    "WHERE e.tenant = ? AND e.project = ?"
)


class Asked(NamedTuple):
    """The texts that may be asked about, as SQL, and how many they are."""

    sql: str
    values: tuple[Any, ...]
    total: int


class SqliteRecall:
    _db: Database
    _index: WordIndex
    place: str

    def gather(self, scope: Scope, kinds: tuple[str, ...], seek: Seek) -> Gathered:
        def work(con: apsw.Connection) -> Gathered:
            asked = Asked(OURS, (*scope, json.dumps(kinds)), _total(con, scope, kinds))
            families = [self._index.same_stem(con, word) for word in seek.words]
            words = words_in(con, "terms", families, seek, asked)
            known = {word: words.places[at] for at, word in enumerate(seek.words) if at not in words.common}
            # A literal that is a word of the index need not be looked for inside of others.
            literals = [known.get(literal) or _holding(con, scope, literal) for literal in seek.literals]

            def look(docs: Sequence[int]) -> dict[int, Fact]:
                found = con.execute(KNOWN, (json.dumps(docs), *scope, json.dumps(kinds)))
                return {row[0]: candidates.to_fact(row) for row in found}

            return candidates.gathered(seek, words, literals, look, asked.total)

        return self._db.view(work)

    def texts(self, scope: Scope, docs: Sequence[int]) -> dict[int, Entry]:
        found = self._db.rows(READ, (json.dumps(list(docs)), *scope))
        return {row[0]: rows.to_entry(self.place, scope, row[1:]) for row in found}


def _total(con: apsw.Connection, scope: Scope, kinds: tuple[str, ...]) -> int:
    counts: list[rows.Row] = [row for kind in kinds for row in con.execute(TOTAL, (*scope, kind)).fetchall()]
    return sum(row[0] for row in counts)


def words_in(
    con: apsw.Connection, table: str, families: Sequence[Iterable[str]], seek: Seek, asked: Asked
) -> candidates.Words:
    """Where words stand in the texts of an index, each word with all that count as the same."""
    found = [_places(con, table, family, seek.common) for family in families]
    places, counts = [places for places, _ in found], [count for _, count in found]
    # The index is one for all projects and kinds. Where those asked about are few in it, common words are looked for in
    # these alone: others that hold the same words would be all that fits. Listing them costs less than it saves then.
    last = _last(con, table) if None in places else 0
    few = asked.total * 2 < last
    # The plus keeps SQLite from asking the index for one text at a time.
    within, ours = (f"IN ({asked.sql})", asked.values) if few else ("IS NOT NULL", ())
    if few:
        guess = [max(1, count * asked.total // last) for count in counts]
        counts = [guess[at] if one is None else counts[at] for at, one in enumerate(places)]

    def ask(planned: candidates.Plan) -> list[candidates.Held]:
        anchor = any_of({word for at in planned.anchors for word in families[at]})
        values: list[Any] = []
        for at, worth in zip(planned.others, planned.worth, strict=True):
            values += [1 << at, worth, f"{anchor} AND {any_of(families[at])}"]
        held = " UNION ALL ".join([HELD.format(table=table)] * len(planned.others))
        sql = BEST_HELD.format(held=held, within=f"+doc {within}")
        return cast(list[candidates.Held], con.execute(sql, (*values, *ours, seek.common)).fetchall())

    def newest(at: int) -> list[int]:
        sql = NEWEST.format(table=table, within=f"+rowid {within}")
        found = con.execute(sql, (any_of(families[at]), *ours, seek.most))
        return [doc for (doc,) in cast(Iterable[tuple[int]], found)]

    return candidates.together(places, counts, seek, ask, newest)


def _places(con: apsw.Connection, table: str, words: Iterable[str], most: int) -> tuple[Places | None, int]:
    """Where any of the words stands, and in how many texts; None and a guess when that is in too many places."""
    found: list[tuple[int, int]] = []
    sql = WHERE.format(table=table)
    for word in sorted(words):
        found += cast(list[tuple[int, int]], con.execute(sql, (word, most + 1)).fetchall())
        if len(found) > most:
            # The places came in the order of the texts, so the last of them tells how thick they lie.
            return None, max(most, most * _last(con, table) // max(1, found[-1][0]))
    once = {doc: (at,) for doc, at in found}
    if len(once) == len(found):  # as most words do, it stands in each text once
        return once, len(once)
    several: dict[int, list[int]] = {}
    for doc, at in found:
        several.setdefault(doc, []).append(at)
    return {doc: tuple(sorted(all_at)) for doc, all_at in several.items()}, len(several)


def _last(con: apsw.Connection, table: str) -> int:
    """The number of the newest text; it tells about how many there are."""
    return cast(int, con.execute(LAST.format(table=table)).fetchall()[0][0])


def _holding(con: apsw.Connection, scope: Scope, literal: str) -> Places:
    """The texts that hold a literal. One whose words are everywhere says nothing, and looking for it would be slow."""
    match = may_contain(con, literal)
    if match is None:
        return {}
    return {row[0]: () for row in con.execute(HOLDING, (match, *scope, literal))}
