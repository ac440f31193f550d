"""The store for teams: one PostgreSQL database. It behaves exactly like the embedded store.

connections.py connects, commits and retries, schema.py creates the tables, entries.py says how writers are serialised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from limpet.model import Entry, Scope
from limpet.store import Distribution, Finding, Incoming, Progress, Restored, Usage, no_progress
from limpet.stores.postgres import backup, distribute
from limpet.stores.postgres.connections import PostgresDatabase, Proof
from limpet.stores.postgres.entries import PostgresEntries
from limpet.stores.postgres.outputs import PostgresOutputs, PostgresSql, PostgresTransactions
from limpet.stores.postgres.replica import Replica, ReplicaReads
from limpet.stores.postgres.schema import SCHEMA, TABLES, Con
from limpet.stores.postgres.tenants import separation
from limpet.stores.shared.call_log import SqlCallLog
from limpet.stores.shared.outputs import import_outputs
from limpet.stores.shared.sql import usage
from limpet.stores.shared.vectors import SqlVectors


class PostgresStore:
    def __init__(self, url: str, replica: str | None = None) -> None:
        self._db = PostgresDatabase(url)
        self.place = self._db.place
        self._replica = Replica(replica, self._db) if replica else None
        self._reads = ReplicaReads(self._db, self._replica)
        transactions = PostgresTransactions(self._db, self._reads)
        self.entries = PostgresEntries(self._db, self._reads)
        self.outputs = PostgresOutputs(transactions, self._reads)
        self.calls = SqlCallLog(transactions)
        self.vectors = SqlVectors(transactions, "doc")

    def create(self) -> None:
        """The tables are made when the store is opened."""

    def load(
        self,
        scope: Scope,
        entries: Iterable[Entry],
        records: Iterable[Mapping[str, Any]],
        incoming: Iterable[Incoming] = (),
    ) -> int:
        def work(con: Con, _: object) -> tuple[int, Proof]:
            loaded = self.entries.load(con, scope, entries, records)
            import_outputs(PostgresSql(con), scope, incoming)
            # The server analyses new rows a minute later by itself; until then its query plans would be slow.
            con.execute("ANALYZE entries, entry_tags, tallies, events")
            return loaded

        # A dump cannot be read twice.
        return self._db.write(scope.tenant, work, repeatable=False)

    def moment(self, tenant: str) -> AbstractContextManager[None]:
        return self._db.moment(tenant) if self._replica is None else nullcontext()  # which has a state of its own

    def projects(self, tenant: str) -> tuple[str, ...]:
        names = self._db.rows(tenant, "SELECT project FROM projects WHERE tenant = %s ORDER BY project", (tenant,))
        return tuple(row[0] for row in names)

    def usage(self, tenant: str) -> Usage:
        return self._db.snapshot(tenant, lambda con, _: usage(PostgresSql(con), tenant))

    def probe_write(self) -> None:
        self._db.write("", lambda con, _: (None, ()))

    def scrub(self) -> bool:
        return False  # the server's own vacuum clears its files in its own time

    def backup(self, target: str, progress: Progress = no_progress) -> tuple[Finding, ...]:
        return backup.write(self._db, target, progress)

    def restore(self, source: str, progress: Progress = no_progress) -> Restored:
        return backup.restore(self._db, source, progress)

    def check(self) -> tuple[Finding, ...]:
        def work(con: Con) -> tuple[Finding, ...]:
            entries = self.entries.check(con)
            return (
                _engine(con),
                separation(con, TABLES),
                *distribute.check(con),
                *entries,
                self.outputs.check(PostgresSql(con)),
            )

        findings = self._db.snapshot_of_all(work)
        return findings if self._replica is None else (*findings, self._replica.check())

    def distribute(self, *, dry_run: bool = False) -> Distribution:
        def work(con: Con, _: object) -> tuple[Distribution, Proof]:
            planned = distribute.distribute(con, self.place, dry_run=dry_run)
            return planned, () if dry_run else tuple(
                (distribute.ONE_DISTRIBUTED.format(name), ()) for name, _ in planned.tables
            )

        return self._db.write("", work)

    def obstacles(self) -> tuple[Finding, ...]:
        return ()  # the server reports them when something is written

    def searches(self) -> Mapping[str, int]:
        return self._replica.counts() if self._replica is not None else {}

    def close(self) -> None:
        if self._replica is not None:
            self._replica.close()
        self._db.close()


def _engine(con: Con) -> Finding:
    """Whether the server is configured to keep what it acknowledges."""
    names = ("fsync", "full_page_writes", "synchronous_commit")
    settings = ", ".join(f"current_setting('{name}')" for name in names)
    values = con.execute(f"SELECT {settings}").fetchall()[0]
    off = [name for name, value in zip(names, values, strict=True) if value == "off"]
    version = f"PostgreSQL {con.info.parameter_status('server_version')}, schema {SCHEMA}"
    unsafe = f"{version}; {' and '.join(off)} switched off: a power cut can lose or damage data"
    return Finding("engine", not off, unsafe if off else version)
