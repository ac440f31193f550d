"""Backups of the embedded store. Its file is also the format of every other store's backup (see shared/backup.py).

store.py imports this module at the first backup: with all it needs it takes longer than to open a store.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import TypeVar

import apsw

from limpet import errors
from limpet.model import Entry, Scope
from limpet.store import Finding
from limpet.stores.shared.backup import ENTRIES, Source, Table, copy_rows, draft_of, publish
from limpet.stores.shared.sql import Row
from limpet.stores.sqlite.connection import Connection, configure
from limpet.stores.sqlite.database import (
    APPLICATION_ID,
    SCHEMA,
    PrivateCopy,
    file_uri,
    migration,
)
from limpet.stores.sqlite.entries import SqliteEntries
from limpet.stores.sqlite.index import NewWords
from limpet.stores.sqlite.store import SqliteStore

__all__ = ["SqliteSource", "SqliteTarget", "copy_rows", "open_foreign", "read_backup", "write_backup"]
T = TypeVar("T")
_QUOTES_AND_SPACES = re.compile(r"""[\s"'`\[\]]+""")  # versions of SQLite write them differently


class SqliteSource:
    def __init__(self, con: Connection) -> None:
        self._con = con

    def read(self, table: Table) -> Iterator[Row]:
        # The rowids of entries have the same order within a project, and need no sorting.
        order = "rowid" if table == ENTRIES else table.order
        yield from self._con.execute(f"SELECT {table.columns} FROM {table.name} ORDER BY {order}")  # noqa: S608 - constants


class SqliteTarget:
    def __init__(self, entries: SqliteEntries, con: Connection) -> None:
        self._entries = entries
        self._con = con

    def add(self, table: Table, batch: list[Row]) -> None:
        sql = f"INSERT INTO {table.name} ({table.columns}) VALUES ({table.placeholders})"  # noqa: S608 - constants
        self._con.executemany(sql, batch)

    def add_entries(self, batch: list[tuple[Row, Entry | None]]) -> None:
        new = NewWords()
        for row, entry in batch:
            self.add(ENTRIES, [row])
            doc = self._con.last_insert_rowid()
            if entry is not None:
                self._entries.index(self._con, Scope(*row[:2]), doc, None, entry, new)
        self._entries.catch_up(self._con)


def write_backup(target: str, fill: Callable[[str], None]) -> tuple[Finding, ...]:
    """Make a backup that `fill` writes to the path it is given. The findings of its check come back."""
    with draft_of(target) as draft:
        fill(draft)
        copy = SqliteStore(draft)
        try:
            findings = copy.check()
        finally:
            copy.close()
        publish(draft, os.path.abspath(target))
    return findings


def read_backup(source: str, work: Callable[[Source], T]) -> T:
    """Run `work` on the rows of a backup, which is checked first and not changed."""
    # A copy, because a backup of an older version is migrated to the current schema before it is read.
    con = _private_copy(source, errors.backup_unreadable)
    try:
        copy = SqliteStore.over(PrivateCopy(con, source))
        damage = [finding for finding in copy.check() if not finding.ok]
        if damage:
            details = "; ".join(f"{finding.name}: {finding.detail}" for finding in damage)
            raise errors.backup_damaged(source, details)
        return copy.read_rows(work)
    except apsw.Error as problem:
        raise errors.backup_unreadable(source, str(problem)) from problem
    finally:
        con.close()


def open_foreign(source: str) -> SqliteStore:
    """A copy of a store that may come from anybody, to be read. The file itself is not changed."""
    con = _private_copy(source, errors.foreign_store)
    try:
        return SqliteStore.over(PrivateCopy(con, source))
    except BaseException:
        con.close()
        raise


def _private_copy(source: str, refusal: Callable[[str, str], errors.LimpetError]) -> Connection:
    """Copy the pages of an SQLite file without writing anything beside it, and check that the tables are ours.

    The copy has no name: SQLite unlinks its file as soon as it is open, so a process that is killed leaves none behind.
    """
    if not os.path.isfile(source):
        raise refusal(source, "there is no such file")
    log = source + "-wal"
    # A file at rest may be in a folder without rights. A file with a log is a store in use, and the log is part of it.
    mode = "mode=ro" if os.path.exists(log) and os.path.getsize(log) else "mode=ro&immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    copy = Connection("")
    try:
        pages = apsw.Connection(f"{file_uri(os.path.abspath(source))}?{mode}", flags=flags)
        try:
            with copy.backup("main", pages, "main") as running:
                running.step()  # all pages in one step: one consistent moment
        finally:
            pages.close()
        configure(copy)
        if copy.rows("PRAGMA application_id") != [(APPLICATION_ID,)]:  # an empty file would become a new store
            raise refusal(source, "it is not a Limpet store")
        if not _has_our_tables(copy):
            raise refusal(source, "its tables are not those that Limpet makes")
    except apsw.NotADBError:
        raise refusal(source, "it is not an SQLite database") from None
    except apsw.FullError as problem:
        raise errors.store_full("the temporary folder (TMPDIR)") from problem
    except apsw.Error as problem:
        raise refusal(source, str(problem)) from problem
    return copy


def _has_our_tables(con: Connection) -> bool:
    """Whether the schema is that of its version. A view in place of a table may be endless, a trigger may act."""
    version = con.rows("PRAGMA user_version")[0][0]
    if version > SCHEMA:
        return True  # `PrivateCopy` refuses it, and says why
    ours = Connection("")
    try:
        configure(ours)
        for number in range(1, version + 1):
            ours.execute(migration(number))
        return _definitions(con) == _definitions(ours)
    finally:
        ours.close()


def _definitions(con: Connection) -> dict[tuple[str, str], str]:
    """The tables, indexes, views and triggers, as they were defined. SQLite's own tables of statistics do not count."""
    rows = con.execute(
        "SELECT type, name, coalesce(sql, '') FROM sqlite_schema WHERE NOT (name LIKE 'sqlite\\_%' ESCAPE '\\' "
        "AND type IN ('table', 'index'))"
    )
    return {(kind, name): _QUOTES_AND_SPACES.sub("", sql) for kind, name, sql in rows}
