"""The vectors of the embedded store: how the methods of vectors.py read and write an SQLite file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import apsw

from limpet.model import Entry, Scope
from limpet.stores.shared.outputs import Sql
from limpet.stores.shared.rows import indexed_text
from limpet.stores.shared.vectors import Vectors
from limpet.stores.sqlite.database import Database
from limpet.stores.sqlite.outputs import SqliteSql

T = TypeVar("T")


class SqliteVectors(Vectors):
    _db: Database
    doc_column = "rowid"

    def _jot_alone(self, scope: Scope, work: Callable[[Sql], T]) -> T:
        return self._db.write(lambda con: work(SqliteSql(con)), durable=False)


def wait_for_vector(con: apsw.Connection, scope: Scope, doc: int, before: Entry | None, after: Entry | None) -> None:
    """What a text was about goes with the text; a new one waits for its vector. In the transaction that writes it."""
    old, new = indexed_text(before), indexed_text(after)
    if old == new and after is not None:
        return
    if old or after is None:  # a number that is free again may be given to another text
        con.execute("DELETE FROM vectors WHERE tenant = ? AND project = ? AND doc = ?", (*scope, doc))
    if new:
        con.execute("INSERT OR IGNORE INTO vectors_waiting VALUES (?, ?, ?)", (*scope, doc))
    else:
        con.execute("DELETE FROM vectors_waiting WHERE tenant = ? AND project = ? AND doc = ?", (*scope, doc))
