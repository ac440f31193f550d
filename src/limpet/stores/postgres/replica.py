"""Searches answered by a streaming replica, when it has every change of the project.

A search must see everything that was acknowledged before it began, in any process. So the primary is asked first for
the *mark* of the project, one row by its key, and the replica reads its own mark in the transaction in which it
searches. The mark is the project's row as it is on disk: its location, the transaction that wrote it, and its numbers.
Every change of a project writes that row (it is the lock of the project), and a streaming replica is a copy byte for
byte; so two marks are equal exactly when the replica has every change and nothing newer. A replica that lacks changes
of other projects still answers.

In every other case the primary answers, and the counts say why: a replica is for speed, and results do not depend on
it. A replica that could not be reached is not tried for a while. Data that is written without the row, like the last
use of an output, may be a moment older on a replica.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg

from limpet import errors
from limpet.model import Scope
from limpet.store import Finding
from limpet.stores.postgres.connections import (
    CONFLICTS,
    POOL_MAX,
    PostgresDatabase,
    View,
    after_fork,
    lost,
    read_address,
)
from limpet.stores.postgres.schema import SCHEMA, Con
from limpet.stores.postgres.tenants import BYPASSES, VIEW, Row, Statement, ask, begin, end

T = TypeVar("T")
SETTING = "store_replica"
CONNECT_SECONDS = 2  # the minimum of libpq; the caller waits, and the primary could answer
ANSWER_SECONDS = 10  # a search takes milliseconds; a replica that takes longer than this is in trouble
LOCK_SECONDS = 1  # replayed changes may lock a table; the primary does not wait for that
IDLE_SECONDS = 60  # an older idle connection may be cut on the way, which takes seconds to find out
REST_SECONDS = 10  # a replica that does not answer costs one caller the seconds above, and no more often than this

# Where a search was answered: by the replica, or by the primary and why.
REPLICA = "replica"
BEHIND, AWAY, BUSY, CONFLICT = "behind", "away", "busy", "conflict"
PROMOTED, SCHEMA_DIFFERS, REFUSED, UNMARKED = "promoted", "schema", "refused", "unmarked"
UNPROTECTED, DAMAGED = "unprotected", "damaged"

# The last column is not part of the mark: whether row-level security holds for the role.
MARK = (
    "SELECT xmin::text, ctid::text, seq, clock, row_security_active('projects') FROM projects "
    "WHERE tenant = %s AND project = %s"
)
# Always one row: a replica may have the table already, and its row not yet.
STANDING = "SELECT pg_is_in_recovery(), (SELECT max(version) FROM limpet_schema)"
WRITTEN = "SELECT pg_current_wal_lsn()::text"
REPLAYED = (
    "SELECT pg_wal_lsn_diff(%s::pg_lsn, pg_last_wal_replay_lsn())::bigint, "
    "extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8"
)


class Elsewhere(Exception):
    """The replica cannot answer; `why` is one of the words above."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Replica:
    def __init__(self, url: str, primary: PostgresDatabase) -> None:
        self._address = read_address(url, SETTING, connect=CONNECT_SECONDS, lock=LOCK_SECONDS, statement=ANSWER_SECONDS)
        self.place = self._address.place
        self._primary = primary
        self._counts: Counter[str] = Counter()
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._idle: list[Con] = []  # the one used last comes last
        self._used = 0.0  # when that was, of time.monotonic()
        self._out = 0  # connections in use
        self._closed = False
        self._rest_until = 0.0  # of time.monotonic(); 0 while it answers

    def counts(self) -> Mapping[str, int]:
        with self._lock:
            return dict(self._counts)

    def snapshot(self, scope: Scope, work: View[T], *first: Statement) -> T:
        """Several reads of one moment that has every change of the project. Raises Elsewhere when it has not."""
        if self._pid != os.getpid():
            after_fork.append(self._idle)  # they belong to the parent
            self._begin()
        try:
            result = self._snapshot(scope, work, first)
        except Elsewhere as elsewhere:
            self._count(elsewhere.why)
            raise
        self._count(REPLICA)
        return result

    def _count(self, where: str) -> None:
        with self._lock:
            self._counts[where] += 1

    def _snapshot(self, scope: Scope, work: View[T], first: Sequence[Statement]) -> T:
        if self._resting():
            raise Elsewhere(AWAY)
        mark = self._mark(scope)
        with self._connection() as con, _ended_in_time(con):
            begin(con, self.place, VIEW, scope.tenant)
            state, own_mark = ask(con, (STANDING, ()), (MARK, tuple(scope)))
            if why := _why_not(state, own_mark, mark):
                raise Elsewhere(why)
            try:
                result = work(con, ask(con, *first) if first else [])
            except errors.StoreDamaged as problem:
                raise Elsewhere(DAMAGED) from problem  # the primary may be intact, and otherwise reports it
            end(con)
            return result

    def _mark(self, scope: Scope) -> list[Row]:
        if self._primary.is_distributed():  # its rows are on other servers
            raise Elsewhere(UNMARKED)
        try:
            return self._primary.rows(scope.tenant, MARK, tuple(scope))
        except errors.StoreDamaged as problem:  # rows on other servers have no such columns
            if not self._primary.is_distributed(again=True):
                raise
            raise Elsewhere(UNMARKED) from problem  # they went there since this process looked

    # --- connections --------------------------------------------------------------------------------------------------

    @contextmanager
    def _connection(self) -> Iterator[Con]:
        """A connection for the calling thread. Its problems are raised as Elsewhere."""
        if time.monotonic() > self._used + IDLE_SECONDS:
            self._drop_idle()
        with self._lock:
            if self._out >= POOL_MAX or self._closed:
                raise Elsewhere(BUSY)
            self._out += 1
            con = self._idle.pop() if self._idle else None
        try:
            con = con or psycopg.connect(self._address.conninfo, autocommit=True)
            yield con
            self._answered()
        except Elsewhere:
            self._answered()
            raise
        except psycopg.Error as problem:
            raise Elsewhere(self._failed(con, problem)) from problem
        finally:
            self._put_back(con)

    def _put_back(self, con: Con | None) -> None:
        if con is not None and not con.closed and con.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            with suppress(psycopg.Error), _ended_in_time(con):
                con.execute("ROLLBACK")
        usable = con is not None and con.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._lock:
            self._out -= 1
            if con is not None and usable and not self._closed:
                self._idle.append(con)
                self._used = time.monotonic()
                return
        if con is not None:
            con.close()

    def _failed(self, con: Con | None, problem: psycopg.Error) -> str:
        if problem.sqlstate in CONFLICTS:
            return CONFLICT  # what it replays had to take away what the search was reading
        self._rest()
        slow = problem.sqlstate in ("57014", "55P03")
        return AWAY if con is None or slow or lost(con, problem) else REFUSED

    # --- whether it is there ------------------------------------------------------------------------------------------

    def _resting(self) -> bool:
        with self._lock:
            now = time.monotonic()
            if now < self._rest_until:
                return True
            if self._rest_until:
                self._rest_until = now + REST_SECONDS  # this caller looks whether it is back; others need not wait too
            return False

    def _rest(self) -> None:
        with self._lock:
            self._rest_until = time.monotonic() + REST_SECONDS
        self._drop_idle()  # where one broke, the others may be broken too

    def _drop_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for con in idle:
            con.close()

    def _answered(self) -> None:
        with self._lock:
            self._rest_until = 0.0

    def close(self) -> None:
        if self._pid != os.getpid():
            return
        with self._lock:
            self._closed = True
        self._drop_idle()

    def check(self) -> Finding:
        """Whether it answers, and how far it is behind."""
        written = self._primary.rows("", WRITTEN, ())[0][0]
        try:
            with psycopg.connect(self._address.conninfo, autocommit=True) as con, _ended_in_time(con):
                standby, version = con.execute(STANDING).fetchall()[0]
                superuser, bypasses = con.execute(BYPASSES).fetchall()[0]
                role = con.info.user
                bytes_behind, seconds = con.execute(REPLAYED, (written,)).fetchall()[0]
        except psycopg.Error as problem:
            detail = f"{self.place} does not answer ({self._address.why(problem)}), so the primary answers every search"
            return Finding(REPLICA, False, detail)
        if not standby:
            return Finding(REPLICA, False, f"{self.place} is no replica, or was promoted; the primary answers instead")
        if version != SCHEMA:
            actual = "no schema" if version is None else f"schema {version}"
            return Finding(REPLICA, False, f"{self.place} has {actual} and not {SCHEMA}; the primary answers")
        if superuser or bypasses:
            return Finding(REPLICA, False, f"row-level security does not hold for the role {role} there")
        if bytes_behind <= 0:
            return Finding(REPLICA, True, f"{self.place} answers, and has everything")
        since = f"; the newest change it has is {seconds:,.0f} seconds old" if seconds is not None else ""
        return Finding(REPLICA, True, f"{self.place} answers, and is {bytes_behind:,} bytes behind{since}")


def _why_not(state: list[Row], own_mark: list[Row], mark: list[Row]) -> str:
    """Why a replica cannot answer; empty when it can."""
    if state[0][0] is not True:
        return PROMOTED
    if state[0][1] != SCHEMA:
        return SCHEMA_DIFFERS
    if [row[:-1] for row in own_mark] != [row[:-1] for row in mark]:
        return BEHIND
    # The replica's address may name another role; one that bypasses row-level security must not stand in.
    return "" if own_mark == mark else UNPROTECTED


@contextmanager
def _ended_in_time(con: Con) -> Iterator[None]:
    """Close the connection to a replica that does not even time out, because it or its machine is frozen."""
    timer = threading.Timer(ANSWER_SECONDS + 1, _hang_up, (con,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _hang_up(con: Con) -> None:
    with suppress(OSError, psycopg.Error), socket.fromfd(con.fileno(), socket.AF_INET, socket.SOCK_STREAM) as wire:
        wire.shutdown(socket.SHUT_RDWR)


class ReplicaReads:
    """Reads that a replica may answer. The primary answers where it cannot, or where there is none."""

    def __init__(self, primary: PostgresDatabase, replica: Replica | None) -> None:
        self._primary = primary
        self._replica = replica

    def reads(self, scope: Scope, work: View[T], *first: Statement) -> T:
        """Several reads of a project. A replica's see the same moment, which is how its state is verified. `work` gets
        the rows of the first ones."""
        with suppress(Elsewhere):
            if self._replica is not None:
                return self._replica.snapshot(scope, work, *first)
        return self._primary.snapshot(scope.tenant, work, *first)

    def rows(
        self,
        scope: Scope,
        sql: str,
        values: tuple[Any, ...],
        convert: Callable[[list[Row]], T],
        *,
        binary: bool = False,
    ) -> T:
        """All rows of one read, converted: damage that a conversion finds on a replica is read from the primary."""

        def work(con: Con, _: object) -> T:
            return convert(con.execute(sql, values, binary=binary).fetchall())

        with suppress(Elsewhere):
            if self._replica is not None:
                return self._replica.snapshot(scope, work)
        return convert(self._primary.rows(scope.tenant, sql, values, binary=binary))
