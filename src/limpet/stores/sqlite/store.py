"""The embedded store: one SQLite file. database.py opens, locks and commits; index.py searches words.

The file is also the format of every store's backup (see shared/backup.py), so reading and writing one is here too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import apsw

from limpet import errors
from limpet.model import Entry, Scope
from limpet.store import Finding, Incoming, Progress, Restored, Usage, no_progress
from limpet.stores.shared.backup import ENTRIES, Source, Table, copy_rows, draft_of, publish
from limpet.stores.shared.call_log import SqlCallLog
from limpet.stores.shared.outputs import import_outputs
from limpet.stores.shared.sql import Row, usage
from limpet.stores.shared.vectors import SqlVectors
from limpet.stores.sqlite.database import APPLICATION_ID, SCHEMA, Connection, Database, SqliteTransactions
from limpet.stores.sqlite.entries import SqliteEntries
from limpet.stores.sqlite.index import NewWords
from limpet.stores.sqlite.outputs import SqliteOutputs

T = TypeVar("T")


class SqliteStore:
    def __init__(self, path: str) -> None:
        self._db = Database(path)
        self.place = self._db.path
        transactions = SqliteTransactions(self._db)
        self.entries = SqliteEntries(self._db)
        self.outputs = SqliteOutputs(transactions)
        self.calls = SqlCallLog(transactions)
        self.vectors = SqlVectors(transactions, "rowid")

    def load(
        self,
        scope: Scope,
        entries: Iterable[Entry],
        records: Iterable[Mapping[str, Any]],
        incoming: Iterable[Incoming] = (),
    ) -> int:
        def work(con: Connection) -> int:
            if con.rows("SELECT 1 FROM projects WHERE tenant = ? AND project = ?", tuple(scope)):
                raise errors.project_not_empty(scope.project)
            count = self.entries.load(con, scope, entries, records)
            import_outputs(con, scope, incoming)
            return count

        return self._db.write(work)

    def projects(self, tenant: str) -> tuple[str, ...]:
        names = self._db.rows("SELECT project FROM projects WHERE tenant = ? ORDER BY project", (tenant,))
        return tuple(row[0] for row in names)

    def usage(self, tenant: str) -> Usage:
        return self._db.snapshot(lambda con: usage(con, tenant))

    def scrub(self) -> bool:
        def work(con: Connection) -> None:
            for index in ("terms", "output_terms"):
                con.execute(f"INSERT INTO {index} ({index}) VALUES ('optimize')")  # noqa: S608 - constant names

        self._db.write(work)
        return self._db.rewrite()

    def backup(self, target: str, progress: Progress = no_progress) -> tuple[Finding, ...]:
        return write_backup(target, self.copy_pages)

    def copy_pages(self, target: str) -> None:
        """Copy the file, as it is at one moment, to a path that must not exist yet."""
        try:
            os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError as problem:
            raise errors.target_exists(target) from problem
        except OSError as problem:
            raise errors.store_read_only(target, problem.strerror or str(problem)) from problem

        def work(con: Connection) -> None:
            copy = apsw.Connection(target, flags=apsw.SQLITE_OPEN_READWRITE)
            # The removal of its journal must be on disk too: one that reappears after a power cut undoes the copy.
            copy.execute("PRAGMA synchronous = EXTRA")
            with copy.backup("main", con, "main") as running:
                running.step()  # all pages in one step: one consistent moment
            copy.close()

        try:
            self._db.read(work)
        except errors.StoreProblem:
            os.unlink(target)  # half a backup is worse than none
            raise

    def restore(self, source: str, progress: Progress = no_progress) -> Restored:
        return read_backup(source, lambda rows: self.fill(rows, self.place, progress))

    def fill(self, source: Source, place: str, progress: Progress) -> Restored:
        """Copy the rows of another store, which is at `place`, into this one."""

        def work(con: Connection) -> Restored:
            # Inside the transaction, so that no other process adds something meanwhile.
            if con.rows("SELECT 1 FROM projects LIMIT 1"):
                raise errors.store_not_empty(self.place)
            return copy_rows(source, SqliteTarget(self.entries, con), place, progress)

        return self._db.write(work)

    def read_rows(self, work: Callable[[Source], T]) -> T:
        """Run `work` on the rows of one snapshot."""
        return self._db.snapshot(lambda con: work(SqliteSource(con)))

    def check(self) -> tuple[Finding, ...]:
        def work(con: Connection) -> tuple[Finding, ...]:
            verdict = [str(row[0]) for row in con.execute("PRAGMA integrity_check(5)")]
            return (
                Finding("engine", True, f"SQLite {apsw.sqlite_lib_version()}, schema {SCHEMA}"),
                Finding("file", verdict == ["ok"], "; ".join(verdict)),
                *self.entries.check(con),
                self.outputs.check(con),
            )

        return self._db.snapshot(work)

    def searches(self) -> Mapping[str, int]:
        return {}  # a file has no replica

    def close(self) -> None:
        self._db.close()


# --- backups ----------------------------------------------------------------------------------------------------------


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
    import tempfile  # late: it takes 10 ms to import, and every hook opens a store

    with tempfile.TemporaryDirectory(prefix="limpet-") as folder:
        # A copy, because a backup of an older version is migrated to the current schema before it is read.
        draft = os.path.join(folder, "backup.db")
        _copy_file(source, draft)
        copy = SqliteStore(draft)
        try:
            damage = [finding for finding in copy.check() if not finding.ok]
            if damage:
                details = "; ".join(f"{finding.name}: {finding.detail}" for finding in damage)
                raise errors.backup_damaged(source, details)
            return copy.read_rows(work)
        finally:
            copy.close()


def _copy_file(source: str, draft: str) -> None:
    """Copy the pages of an SQLite file without writing anything beside it."""
    if not os.path.isfile(source):
        raise errors.backup_unreadable(source, "there is no such file")
    log = source + "-wal"
    # A file at rest may be in a read-only folder. A file with a log is a store in use, and the log is part of it.
    mode = "mode=ro" if os.path.exists(log) and os.path.getsize(log) else "mode=ro&immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    try:
        from urllib.parse import quote  # 2 ms that every start would pay for a backup

        pages = apsw.Connection(f"file:{quote(os.path.abspath(source))}?{mode}", flags=flags)
        try:
            copy = apsw.Connection(draft)
            with copy.backup("main", pages, "main") as running:
                running.step()  # all pages in one step: one consistent moment
            is_store = copy.execute("PRAGMA application_id").fetchall() == [(APPLICATION_ID,)]
            copy.close()
        finally:
            pages.close()
    except apsw.NotADBError:
        raise errors.backup_unreadable(source, "it is not an SQLite database") from None
    except apsw.Error as problem:
        if isinstance(problem, apsw.FullError):
            raise errors.store_full(os.path.dirname(draft)) from problem
        raise errors.backup_unreadable(source, str(problem)) from problem
    if not is_store:  # also for an empty file, which would otherwise become a new store
        raise errors.backup_unreadable(source, "it is not a Limpet store")
