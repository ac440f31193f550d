"""Backups of the embedded store. Its file is also the format of every other store's backup (see shared/backup.py).

store.py imports this module at the first backup: with all it needs it takes longer than to open a store.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TypeVar

import apsw

from limpet import errors
from limpet.model import Entry, Scope
from limpet.store import Finding
from limpet.stores.shared.backup import ENTRIES, Source, Table, copy_rows, draft_of, publish
from limpet.stores.shared.sql import Row
from limpet.stores.sqlite.database import APPLICATION_ID, Connection, PrivateCopy, configure, file_uri
from limpet.stores.sqlite.entries import SqliteEntries
from limpet.stores.sqlite.index import NewWords
from limpet.stores.sqlite.store import SqliteStore

__all__ = ["SqliteSource", "SqliteTarget", "copy_rows", "read_backup", "write_backup"]
T = TypeVar("T")


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
    con = _private_copy(source)
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


def _private_copy(source: str) -> Connection:
    """Copy the pages of an SQLite file without writing anything beside it.

    The copy has no name: SQLite unlinks its file as soon as it is open, so a process that is killed leaves none behind.
    """
    if not os.path.isfile(source):
        raise errors.backup_unreadable(source, "there is no such file")
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
            raise errors.backup_unreadable(source, "it is not a Limpet store")
    except apsw.NotADBError:
        raise errors.backup_unreadable(source, "it is not an SQLite database") from None
    except apsw.FullError as problem:
        raise errors.store_full("the temporary folder (TMPDIR)") from problem
    except apsw.Error as problem:
        raise errors.backup_unreadable(source, str(problem)) from problem
    return copy
