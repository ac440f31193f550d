"""The outputs of the embedded store: how the methods of outputs.py read and write an SQLite file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

import apsw

from holdfast.model import MESSAGE, Scope
from holdfast.stores.calls import Calls
from holdfast.stores.output_rows import Row
from holdfast.stores.output_transfer import OutputTransfer
from holdfast.stores.outputs import Outputs, Proof, Sql
from holdfast.stores.sqlite_file import Database
from holdfast.stores.sqlite_index import may_contain

T = TypeVar("T")
# Ids are digits and small letters of ASCII, so SQLite's own folding will do. The key of memory is part of its text.
CITES = "instr(lower(e.key || char(10) || e.content), ?)"


class SqliteSql:
    def __init__(self, con: apsw.Connection) -> None:
        self.con = con

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        return cast(list[Row], self.con.execute(sql, cast(Any, values)).fetchall())

    def many(self, sql: str, values: Iterable[Row]) -> None:
        self.con.executemany(sql, values)


class SqliteOutputs(Outputs, Calls, OutputTransfer):
    _db: Database

    def _look(self, work: Callable[[Sql], T]) -> T:
        return self._db.view(lambda con: work(SqliteSql(con)))

    def _change(self, scope: Scope, work: Callable[[Sql], tuple[T, Proof]], *, repeatable: bool = True) -> T:
        return self._db.write(lambda con: work(SqliteSql(con))[0])

    def _jot(self, work: Callable[[Sql], T]) -> T:
        return self._db.write(lambda con: work(SqliteSql(con)), durable=False)

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
