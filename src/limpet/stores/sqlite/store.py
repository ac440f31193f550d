"""The embedded store: one SQLite file. database.py opens, locks and commits; index.py searches words."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property

import apsw

from limpet import errors
from limpet.catalogue.late import LateModule
from limpet.light import TYPE_CHECKING, Any, Self, TypeVar
from limpet.model import DataFolder, Entry, Scope
from limpet.store import Distribution, Finding, Incoming, Progress, Restored, Usage, no_progress
from limpet.stores.shared.sql import usage
from limpet.stores.sqlite.connection import Connection
from limpet.stores.sqlite.database import SCHEMA, Database, SqliteTransactions
from limpet.stores.sqlite.entries import SqliteEntries

if TYPE_CHECKING:
    from limpet.stores.shared import call_log, vectors
    from limpet.stores.shared import outputs as shared_outputs
    from limpet.stores.shared.backup import Source
    from limpet.stores.sqlite import backup as backups
    from limpet.stores.sqlite import health, outputs
else:
    backups, health, outputs = map(LateModule, [f"stores.sqlite.{name}" for name in ("backup", "health", "outputs")])
    shared_outputs = LateModule("stores.shared.outputs")
    call_log, vectors = map(LateModule, ("stores.shared.call_log", "stores.shared.vectors"))

T = TypeVar("T")


class SqliteStore:
    def __init__(self, path: str, folder: DataFolder | None = None, *, lock_wait: float | None = None) -> None:
        """`lock_wait`: seconds that a write waits for other processes. For `folder`, see Database."""
        self._assemble(Database(path, folder, lock_wait=lock_wait))

    @classmethod
    def over(cls, db: Database) -> Self:
        store = cls.__new__(cls)
        store._assemble(db)
        return store

    def _assemble(self, db: Database) -> None:
        self._db = db
        self._transactions = SqliteTransactions(self._db)
        self.entries = SqliteEntries(self._db)

    # Most commands and hooks do without these parts, so each is imported at its first use.

    @cached_property
    def outputs(self) -> outputs.SqliteOutputs:
        return outputs.SqliteOutputs(self._transactions)

    @cached_property
    def calls(self) -> call_log.SqlCallLog:
        return call_log.SqlCallLog(self._transactions)

    @cached_property
    def vectors(self) -> vectors.SqlVectors:
        # Texts wait for their vectors from the moment they join the word index.
        return vectors.SqlVectors(self._transactions, "rowid", self.entries.settle)

    @property
    def place(self) -> str:
        return self._db.path

    def create(self) -> None:
        self._db.write(lambda con: None)

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
            shared_outputs.import_outputs(con, scope, incoming)
            return count

        return self._db.write(work, repeatable=False)  # a dump cannot be read twice

    def moment(self, tenant: str) -> AbstractContextManager[None]:
        return nullcontext()  # nothing is begun or ended over a network

    def projects(self, tenant: str) -> tuple[str, ...]:
        names = self._db.rows("SELECT project FROM projects WHERE tenant = ? ORDER BY project", (tenant,))
        return tuple(row[0] for row in names)

    def usage(self, tenant: str) -> Usage:
        return self._db.snapshot(lambda con: usage(con, tenant))

    def probe_write(self) -> None:
        self._db.write(lambda con: None, durable=False)  # which makes no store

    def scrub(self) -> bool:
        def work(con: Connection) -> None:
            self.entries.catch_up(con)
            for index in ("terms", "output_terms"):
                con.execute(f"INSERT INTO {index} ({index}) VALUES ('optimize')")  # noqa: S608 - constant names

        self._db.write(work)
        return self._db.rewrite()

    def backup(self, target: str, progress: Progress = no_progress) -> tuple[Finding, ...]:
        return backups.write_backup(target, self.copy_pages)

    def copy_pages(self, target: str) -> None:
        """Copy the file, as it is at one moment, to a path that must not exist yet."""
        try:
            os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError as problem:
            raise errors.target_exists(target) from problem
        except OSError as problem:
            raise errors.store_read_only(target, problem.strerror or str(problem)) from problem

        def work(con: Connection) -> None:
            if con.in_memory:
                raise errors.nothing_to_back_up(self.place)
            copy = apsw.Connection(target, flags=apsw.SQLITE_OPEN_READWRITE)
            # The removal of its journal must be on disk too: one that reappears after a power cut undoes the copy.
            copy.execute("PRAGMA synchronous = EXTRA")
            with copy.backup("main", con, "main") as running:
                running.step()  # all pages in one step: one consistent moment
            copy.close()

        try:
            self._db.read(work)
        except errors.LimpetError:
            os.unlink(target)  # half a backup is worse than none
            raise

    def restore(self, source: str, progress: Progress = no_progress) -> Restored:
        return backups.read_backup(source, lambda rows: self.fill(rows, self.place, progress))

    def fill(self, source: Source, place: str, progress: Progress) -> Restored:
        """Copy the rows of another store, which is at `place`, into this one."""

        def work(con: Connection) -> Restored:
            # Inside the transaction, so that no other process adds something meanwhile.
            if con.rows("SELECT 1 FROM projects LIMIT 1"):
                raise errors.store_not_empty(self.place)
            return backups.copy_rows(source, backups.SqliteTarget(self.entries, con), place, progress)

        return self._db.write(work, repeatable=False)

    def read_rows(self, work: Callable[[Source], T]) -> T:
        """Run `work` on the rows of one snapshot."""
        return self._db.snapshot(lambda con: work(backups.SqliteSource(con)))

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

    def distribute(self, *, dry_run: bool = False) -> Distribution:
        raise errors.not_distributed(self.place, "it is one file; name a store on a Citus cluster with --store")

    def obstacles(self) -> tuple[Finding, ...]:
        return health.obstacles(self._db)

    def searches(self) -> Mapping[str, int]:
        return {}  # a file has no replica

    def close(self) -> None:
        self._db.close()
