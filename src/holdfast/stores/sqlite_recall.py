"""What the embedded store gathers for recall: where words stand, from the word index, and what is known of texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import apsw

from holdfast.model import Entry, Scope
from holdfast.store import Fact, Gathered, Places, Seek
from holdfast.stores import gathering, rows
from holdfast.stores.sqlite_file import Database
from holdfast.stores.sqlite_index import WordIndex, any_of, may_contain

# Where the text of an entry contains another. Folding in SQL is exact for ASCII; only the rest calls into Python.
TEXT = "iif(e.kind = 'memory', e.key || char(10) || e.content, e.content)"
PLACE = f"instr(iif(octet_length({TEXT}) = length({TEXT}), lower({TEXT}), fold({TEXT})), ?)"
# The texts of this module are put together from constants of ours only; every value is a parameter.
WHERE = "SELECT doc, offset FROM {table} WHERE term = ? LIMIT ?"
HOLDING = (
    f"SELECT e.rowid FROM (SELECT rowid FROM terms WHERE terms MATCH ? ORDER BY rowid DESC LIMIT "  # noqa: S608
    f"{gathering.LITERAL_CANDIDATES}) t JOIN entries e ON e.rowid = t.rowid "
    f"WHERE e.tenant = ? AND e.project = ? AND {PLACE}"
)
NEWEST = "SELECT rowid FROM terms WHERE terms MATCH ? ORDER BY rowid DESC LIMIT ?"
KNOWN = (
    f"SELECT e.rowid, {gathering.FACTS} FROM json_each(?) j CROSS JOIN entries e ON e.rowid = j.value "  # noqa: S608
    "WHERE e.tenant = ? AND e.project = ? AND e.kind IN (SELECT value FROM json_each(?))"
)
TOTAL = (
    "SELECT coalesce(sum(count), 0) FROM tallies WHERE tenant = ? AND project = ? AND kind = ? "
    "AND session = '' AND tag = ''"
)
READ = (
    f"SELECT e.rowid, {rows.E_FIELDS} FROM json_each(?) j CROSS JOIN entries e ON e.rowid = j.value "  # noqa: S608
    "WHERE e.tenant = ? AND e.project = ?"
)


class SqliteRecall:
    _db: Database
    _index: WordIndex
    place: str

    def gather(self, scope: Scope, kinds: tuple[str, ...], seek: Seek) -> Gathered:
        def work(con: apsw.Connection) -> Gathered:
            families = [self._index.same_stem(con, word) for word in seek.words]
            places = [places_of(con, "terms_at", family, seek.common) for family in families]
            literals = [_holding(con, scope, literal) for literal in seek.literals]
            newest: list[int] = []
            if families and not any(places):
                groups = [any_of(family) for family, found in zip(families, places, strict=True) if found is None]
                newest = [row[0] for row in con.execute(NEWEST, (" AND ".join(groups), seek.most))] if groups else []

            def look(docs: Sequence[int]) -> dict[int, Fact]:
                found = con.execute(KNOWN, (json.dumps(docs), *scope, json.dumps(kinds)))
                return {row[0]: gathering.to_fact(row) for row in found}

            return gathering.gathered(seek, places, literals, newest, look, _total(con, scope, kinds))

        return self._db.view(work)

    def texts(self, scope: Scope, docs: Sequence[int]) -> dict[int, Entry]:
        found = self._db.rows(READ, (json.dumps(list(docs)), *scope))
        return {row[0]: rows.to_entry(self.place, scope, row[1:]) for row in found}


def _total(con: apsw.Connection, scope: Scope, kinds: tuple[str, ...]) -> int:
    counts: list[rows.Row] = [row for kind in kinds for row in con.execute(TOTAL, (*scope, kind)).fetchall()]
    return sum(row[0] for row in counts)


def places_of(con: apsw.Connection, table: str, words: Iterable[str], most: int) -> Places | None:
    """Where any of the words stands; None when that is in too many places."""
    found: dict[int, list[int]] = {}
    count = 0
    sql = WHERE.format(table=table)
    for word in sorted(words):
        for doc, offset in con.execute(sql, (word, most + 1)):
            count += 1
            found.setdefault(doc, []).append(offset)
        if count > most:
            return None
    return {doc: tuple(sorted(at)) if len(at) > 1 else (at[0],) for doc, at in found.items()}


def _holding(con: apsw.Connection, scope: Scope, literal: str) -> Places:
    """The texts that hold a literal. One whose words are everywhere says nothing, and looking for it would be slow."""
    match = may_contain(con, literal)
    if match is None:
        return {}
    return {row[0]: () for row in con.execute(HOLDING, (match, *scope, literal))}
