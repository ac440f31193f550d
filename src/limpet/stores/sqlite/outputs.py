"""The outputs of the embedded store: how the methods of outputs.py read and write an SQLite file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

import apsw

from limpet.model import MESSAGE, Scope
from limpet.store import Fact, Gathered, Seek
from limpet.stores.shared.call_log import Calls
from limpet.stores.shared.candidates import PIECE_FACTS, gathered, to_piece_fact
from limpet.stores.shared.output_pieces import Piece
from limpet.stores.shared.output_rows import Row
from limpet.stores.shared.output_transfer import OutputTransfer
from limpet.stores.shared.outputs import ONE, Outputs, Proof, Sql
from limpet.stores.sqlite.database import Database
from limpet.stores.sqlite.index import may_contain, tidy
from limpet.stores.sqlite.recall import Asked, words_in
from limpet.text import words as analyse

T = TypeVar("T")
# Ids are digits and small letters of ASCII, so SQLite's own folding will do. The key of memory is part of its text.
CITES = "instr(lower(e.key || char(10) || e.content), ?)"

# The texts of this module are put together from constants of ours only; every value is a parameter.
NEW_PIECE = (
    "INSERT INTO output_pieces (tenant, project, id, start, size, line, head) VALUES (?, ?, ?, ?, ?, ?, ?) "
    "RETURNING rowid"
)
KNOWN_PIECES = (
    f"SELECT p.rowid, {PIECE_FACTS} FROM json_each(?) j CROSS JOIN output_pieces p ON p.rowid = j.value "  # noqa: S608
    "JOIN outputs o ON o.tenant = p.tenant AND o.project = p.project AND o.id = p.id "
    "WHERE p.tenant = ? AND p.project = ?"
)
OUR_PIECES = "SELECT rowid FROM output_pieces WHERE tenant = ? AND project = ?"
COUNT_PIECES = "SELECT count(*) FROM output_pieces WHERE tenant = ? AND project = ?"


class SqliteSql:
    def __init__(self, con: apsw.Connection) -> None:
        self.con = con

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        return cast(list[Row], self.con.execute(sql, cast(Any, values)).fetchall())

    def many(self, sql: str, values: Iterable[Row]) -> None:
        self.con.executemany(sql, values)


class SqliteOutputs(Outputs, Calls, OutputTransfer):
    _db: Database

    def _look(self, tenant: str, work: Callable[[Sql], T]) -> T:
        return self._db.view(lambda con: work(SqliteSql(con)))

    def _rows(self, tenant: str, sql: str, values: Sequence[object]) -> list[Row]:
        return self._look(tenant, lambda con: con.rows(sql, values))

    def _change(self, scope: Scope, work: Callable[[Sql], tuple[T, Proof]], *, repeatable: bool = True) -> T:
        return self._db.write(lambda con: work(SqliteSql(con))[0])

    def _jot(self, tenant: str, work: Callable[[Sql], T]) -> T:
        return self._db.write(lambda con: work(SqliteSql(con)), durable=False)

    def _add_piece(self, sql: Sql, scope: Scope, id: str, piece: Piece) -> None:
        ((doc,),) = sql.rows(NEW_PIECE, (*scope, id, *piece[:4]))
        sql.rows("INSERT INTO output_terms (rowid, text) VALUES (?, ?)", (doc, " ".join(piece.terms)))

    def _forget_pieces(self, sql: Sql, scope: Scope, id: str) -> None:
        for row in sql.rows(f"DELETE FROM output_pieces WHERE {ONE} RETURNING rowid", (*scope, id)):  # noqa: S608
            sql.rows("DELETE FROM output_terms WHERE rowid = ?", row)

    def _bury(self, sql: Sql, scope: Scope, doomed: Iterable[tuple[str, str]], by: str, now: int) -> Proof:
        proof = super()._bury(sql, scope, doomed, by, now)
        if proof is not None and by and isinstance(sql, SqliteSql):  # pruning has no time for it, and nobody asked
            tidy(sql.con, "output_terms")
        return proof

    def gather_outputs(self, scope: Scope, seek: Seek) -> Gathered:
        def work(con: apsw.Connection) -> Gathered:
            stems = analyse.terms(list(seek.words))
            counted: list[Row] = con.execute(COUNT_PIECES, tuple(scope)).fetchall()
            asked = Asked(OUR_PIECES, tuple(scope), counted[0][0])
            words = words_in(con, "output_terms", [(stem,) for stem in stems], seek, asked)

            def look(docs: Sequence[int]) -> dict[int, Fact]:
                found: list[Row] = con.execute(KNOWN_PIECES, (json.dumps(list(docs)), *scope)).fetchall()
                return {row[0]: to_piece_fact(row) for row in found}

            return gathered(seek, words, [], look, asked.total)

        return self._db.view(work)

    def _cited(self, sql: Sql, scope: Scope, ids: list[str]) -> frozenset[str]:
        assert isinstance(sql, SqliteSql)  # noqa: S101 - made by the two methods above
        found = set()
        first: Row
        for id in ids:
            match = may_contain(sql.con, id)
            source, first = "terms t JOIN entries e ON e.rowid = t.rowid WHERE terms MATCH ? AND", (match,)
            if match is None:  # hundreds of words contain it, so reading everything is cheaper
                source, first = "entries e WHERE", ()
            look = (
                f"SELECT 1 FROM {source} e.tenant = ? AND e.project = ? AND e.kind <> '{MESSAGE}' AND {CITES} LIMIT 1"  # noqa: S608
            )
            if sql.rows(look, (*first, *scope, id)):
                found.add(id)
        return frozenset(found)
