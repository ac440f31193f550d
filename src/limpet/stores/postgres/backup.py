"""A whole PostgreSQL store, read as it is at one moment or filled at once: its part of whole.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar, cast

from limpet import errors
from limpet.model import Entry, Scope
from limpet.stores.postgres.connections import EXPORT_IDLE_SECONDS, Proof
from limpet.stores.postgres.schema import Con
from limpet.stores.postgres.store import PostgresStore
from limpet.stores.postgres.tenants import FILTERED, LOCALLY, SIGN, UNFILTERED
from limpet.stores.postgres.write import Writer
from limpet.stores.shared.rows import Row

if TYPE_CHECKING:
    from limpet.store import Store
    from limpet.stores.shared.backup import Copied, Source, Table, Target

T = TypeVar("T")
FETCHED = 200  # rows a time
# Nobody may begin a project while a backup is being put back; who reads goes on. The number is "Restored".
ALONE = "LOCK TABLE projects IN SHARE ROW EXCLUSIVE MODE"
ENDED = f"SELECT pg_advisory_xact_lock({0x526573746F726564})"  # waits for who restores
TENANT = LOCALLY.format("tenant", f"'{SIGN}' || %s")  # in whose name a transaction works
ANYTHING = "SELECT 1 FROM projects LIMIT 1"  # whether anything is there at all is asked of everybody's rows


def moment(store: Store, work: Callable[[Source], T]) -> T:
    """All reads of the work see one moment. The work may run more than once."""

    def within(con: Con) -> T:
        # Ordering all there is may take its time, and so may writing it down; no lock is held that anybody needs.
        con.execute("SET LOCAL statement_timeout = 0")
        con.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{EXPORT_IDLE_SECONDS}s'")
        return work(PostgresSource(con))

    return cast(PostgresStore, store)._server.everything(within)


def restored(store: Store, copy: Callable[[Target], Copied]) -> Copied:
    def work(con: Con) -> tuple[Copied, Proof]:
        con.execute(ENDED)
        con.execute(ALONE)
        con.execute(UNFILTERED)
        taken = con.execute(ANYTHING, prepare=False).fetchall()
        con.execute(FILTERED)
        if taken:
            raise errors.store_not_empty(store.place)
        target = PostgresTarget(con)
        copied = copy(target)
        # The server looks at new rows a minute later by itself; until then it would search in clumsy ways.
        con.execute("ANALYZE entries, entry_tags, tallies, events, outputs")
        return copied, ((ENDED, ()), (TENANT, (target.tenant,)), (ANYTHING, ())) if copied.projects else ()

    # What is copied can be read only once.
    return cast(PostgresStore, store)._server.write("", work, repeatable=False)


class PostgresSource:
    def __init__(self, con: Con) -> None:
        self._con = con

    def read(self, table: Table) -> Iterator[Row]:
        # Bytes come as they are and not as a text of twice their length.
        with self._con.cursor(name="limpet_whole", binary=True) as cursor:
            cursor.itersize = FETCHED
            cursor.execute(f"SELECT {table.columns} FROM {table.name} ORDER BY {table.order}")  # noqa: S608 - constants
            yield from cursor


class PostgresTarget:
    def __init__(self, con: Con) -> None:
        self._con = con
        self.tenant: str | None = None  # whose rows are being written

    def add(self, table: Table, batch: list[Row]) -> None:
        sql = f"INSERT INTO {table.name} ({table.columns}) VALUES ({table.marks.replace('?', '%s')})"  # noqa: S608
        for tenant, some in groupby(batch, key=lambda row: str(row[0])):
            self._work_for(tenant)
            with self._con.cursor() as cursor:
                cursor.executemany(sql, list(some))

    def put(self, batch: list[tuple[Row, Entry | None]]) -> None:
        with self._con.pipeline():
            for row, entry in batch:
                if entry is None:
                    raise errors.backup_damaged("the backup", f"{row[2]} {row[3]!r}")
                self._work_for(row[0])
                Writer(self._con, Scope(*row[:2]), 0, 0).put(entry)

    def _work_for(self, tenant: str) -> None:
        """Rows are written in the name of their tenant."""
        if tenant != self.tenant:
            self._con.execute(TENANT, (tenant,))
            self.tenant = tenant
