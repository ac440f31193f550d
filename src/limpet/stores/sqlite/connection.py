"""A connection to an SQLite file, set up the way the store needs it."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from limpet import limits
from limpet.light import Any, cast
from limpet.stores.shared import rows
from limpet.stores.shared.sql import Row
from limpet.text import words


class Connection(apsw.Connection):
    in_memory = False
    frees = False  # whether the running transaction deletes something
    checked_version = -1  # the data version, which every commit changes, for which the schema is known to be this one
    fresh: Connection | None = None  # an index in memory of the texts that wait, where they cannot join the one on disk

    @property
    def layers(self) -> tuple[Connection, ...]:
        """All that the word index consists of for a search: the newest texts first."""
        return (self,) if self.fresh is None else (self.fresh, self)

    def rows(self, sql: str, values: Any = ()) -> list[Row]:
        return cast("list[Row]", self.execute(sql, values).fetchall())

    def many(self, sql: str, values: Iterable[Row]) -> None:
        self.executemany(sql, values)


def configure(con: Connection) -> None:
    con.set_busy_timeout(limits.SQLITE_BUSY_MS)
    con.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    con.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    # Without it SQLite prepares statements again when other values are bound, also those of its index. Without
    # statistics the plan is the same each time, and preparing costs a quarter of a write.
    con.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    con.execute(
        "PRAGMA synchronous = FULL; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;"
        "PRAGMA temp_store = MEMORY; PRAGMA secure_delete = FAST;"
        f"PRAGMA journal_size_limit = {limits.WAL_KEEP_BYTES}"
    ).fetchall()
    con.create_scalar_function("fold", _fold, 1, deterministic=True)
    con.create_scalar_function("sketch", _sketch, 4, deterministic=True)


def _fold(*values: object) -> str:
    return words.fold(str(values[0]))


def _sketch(*values: object) -> int | None:
    """One of the numbers by which texts of a kind that may say the same are found; None where a text has no words."""
    kind, text, mark, part = map(str, values)
    marks = rows.marks_of(kind, text)
    return marks[int(mark)][int(part)] if marks else None
