"""Backup and restore of a PostgreSQL store: its rows in one snapshot, and an empty store filled in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from limpet import errors
from limpet.model import Entry, Scope
from limpet.store import Finding, Progress, Restored
from limpet.stores.postgres.connections import EXPORT_IDLE_SECONDS, PostgresDatabase, Proof
from limpet.stores.postgres.schema import Con
from limpet.stores.postgres.tenants import FILTERED, UNFILTERED, set_tenant
from limpet.stores.postgres.write import SORT_IN, WIDE_LISTS, Writer
from limpet.stores.shared.backup import Source, Table, copy_rows, remove_file
from limpet.stores.shared.sql import Row
from limpet.stores.sqlite.backup import read_backup, write_backup
from limpet.stores.sqlite.store import SqliteStore

FETCH = 200  # rows per round trip
# No project may be created during a restore; readers are not blocked. The number is "Restored".
LOCK_PROJECTS = "LOCK TABLE projects IN SHARE ROW EXCLUSIVE MODE"
WAIT_FOR_RESTORE = f"SELECT pg_advisory_xact_lock({0x526573746F726564})"
ANY_PROJECT = "SELECT 1 FROM projects LIMIT 1"


def write(db: PostgresDatabase, target: str, progress: Progress) -> tuple[Finding, ...]:
    def fill(draft: str) -> None:
        def work(con: Con) -> None:
            # Sorting all rows may take long, and so may writing them; the snapshot holds no lock that others need.
            con.execute("SET LOCAL statement_timeout = 0")
            con.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{EXPORT_IDLE_SECONDS}s'")
            remove_file(draft)  # after a lost connection the work runs again, with another snapshot
            copy = SqliteStore(draft)
            try:
                copy.fill(PostgresSource(con), db.place, progress)
            finally:
                copy.close()

        db.snapshot_of_all(work)

    return write_backup(target, fill)


def restore(db: PostgresDatabase, source: str, progress: Progress) -> Restored:
    def fill(rows: Source) -> Restored:
        def work(con: Con, _: object) -> tuple[Restored, Proof]:
            con.execute(WAIT_FOR_RESTORE)
            con.execute(LOCK_PROJECTS)
            con.execute(UNFILTERED)
            taken = con.execute(ANY_PROJECT, prepare=False).fetchall()
            con.execute(FILTERED)
            if taken:
                raise errors.store_not_empty(db.place)
            con.execute(WIDE_LISTS)
            target = PostgresTarget(con)
            restored = copy_rows(rows, target, db.place, progress)
            con.execute(SORT_IN)
            # The server analyses new rows a minute later by itself; until then its query plans would be slow.
            con.execute("ANALYZE entries, entry_tags, tallies, events, outputs")
            proof = ((WAIT_FOR_RESTORE, ()), (set_tenant(target.tenant or ""), ()), (ANY_PROJECT, ()))
            return restored, proof if restored.projects else ()

        # The rows cannot be read twice.
        return db.write("", work, repeatable=False)

    return read_backup(source, fill)


class PostgresSource:
    def __init__(self, con: Con) -> None:
        self._con = con

    def read(self, table: Table) -> Iterator[Row]:
        # Binary: bytes arrive as they are and not as text of twice the length.
        with self._con.cursor(name="limpet_backup", binary=True) as cursor:
            cursor.itersize = FETCH
            cursor.execute(f"SELECT {table.columns} FROM {table.name} ORDER BY {table.order}")  # noqa: S608 - constants
            yield from cursor


class PostgresTarget:
    def __init__(self, con: Con) -> None:
        self._con = con
        self.tenant: str | None = None  # whose rows are being written

    def add(self, table: Table, batch: list[Row]) -> None:
        values = table.placeholders.replace("?", "%s")
        sql = f"INSERT INTO {table.name} ({table.columns}) VALUES ({values})"  # noqa: S608
        for tenant, some in groupby(batch, key=lambda row: str(row[0])):
            self._set_tenant(tenant)
            with self._con.cursor() as cursor:
                cursor.executemany(sql, list(some))

    def add_entries(self, batch: list[tuple[Row, Entry | None]]) -> None:
        for scope, some in groupby(batch, key=lambda pair: Scope(*pair[0][:2])):
            entries = []
            for row, entry in some:
                if entry is None:
                    raise errors.backup_damaged("the backup", f"{row[2]} {row[3]!r}")
                entries.append(entry)
            self._set_tenant(scope.tenant)
            Writer(self._con, scope, 0, 0).put(entries)

    def _set_tenant(self, tenant: str) -> None:
        """Rows are written as their own tenant, because of row-level security."""
        if tenant != self.tenant:
            self._con.execute(set_tenant(tenant), prepare=False)
            self.tenant = tenant
