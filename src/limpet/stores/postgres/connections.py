"""One PostgreSQL database, shared by many threads and many processes: connections, transactions and what may go wrong.

The ideas:

- *A lost connection is not a lost change.* Before COMMIT is sent nothing can have been kept, so the work is done again
  on another connection. If the connection breaks during COMMIT, the server is asked whether the change is there.
- *Every wait has an end.* Locks, statements and idle transactions have time limits, set when a connection is made.
- *Passwords stay inside.* `place` is made from the parts of the address that may be shown, and reasons that come from
  the server pass `Address.why`.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote
from weakref import WeakKeyDictionary

import psycopg
import psycopg_pool
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from limpet import errors, limits
from limpet.stores.postgres.schema import Con, prepare
from limpet.stores.postgres.tenants import SET_TENANT, UNFILTERED, VIEW, begin

T = TypeVar("T")
Row = tuple[Any, ...]
Statement = tuple[str, Row]
Proof = tuple[Statement, ...]  # the change is kept if each of these finds a row; the first locks the project, if any
SAME_PROJECT = "INSERT INTO projects (tenant, project, seq, clock) VALUES (%s, %s, 0, -1) ON CONFLICT DO NOTHING"
Work = Callable[[Con], tuple[T, Proof]]  # no proof: nothing was changed, so nothing is committed

POOL_MAX = 8  # connections of one process; a server usually allows 100 in all
CONNECT_SECONDS = 10  # a server that does not answer by then is away; one that restarts is back by then
STATEMENT_SECONDS = 60  # ours take milliseconds; a minute means that the server is in trouble
IDLE_SECONDS = 60  # a transaction that waits for us for so long belongs to a stopped process; it holds the write lock
EXPORT_IDLE_SECONDS = 3_600  # an export waits for whoever reads it, and holds no lock that anybody needs
TRIES = 6  # lost connections in a row mean that something else is wrong; conflicts are bounded by time
PAUSE_SECONDS = 0.02  # before the second try; doubled each time, and random so that two do not meet again
MOST_DOUBLED = 3  # after a conflict: who pauses much longer than those who come later loses to them for ever
CONFLICTS = ("40001", "40P01")  # serialization failure, deadlock: doing it again is the cure

after_fork: list[Any] = []  # pools of the parent: in the child they must be neither used nor cleaned up


class _Again(Exception):
    """A try failed and left nothing behind. `begun` is False when not even the transaction had begun."""

    def __init__(self, problem: psycopg.Error, begun: bool) -> None:
        super().__init__(str(problem))
        self.problem = problem
        self.begun = begun


class Address(NamedTuple):
    conninfo: str
    place: str
    password: str

    def why(self, problem: psycopg.Error) -> str:
        """What the server or the driver said, in one line, and without the password should it be in there."""
        said = problem.diag.message_primary or str(problem)
        line = " ".join(said.split()).rstrip(".") or type(problem).__name__
        return line.replace(self.password, "…") if self.password else line


class Server:
    def __init__(self, url: str) -> None:
        self._address = read_address(url)
        self.place = self._address.place
        self._pool: psycopg_pool.ConnectionPool[Con] | None = None
        self._opening = threading.Lock()
        self._pid = os.getpid()
        self._closed = False
        self._tenants: WeakKeyDictionary[Con, str] = WeakKeyDictionary()  # whom a connection works for between calls
        con = self._connect()
        try:
            prepare(con, self.place)
        except psycopg.Error as problem:
            raise self.translate(problem, lost=con.closed) from problem
        finally:
            con.close()

    # --- connections --------------------------------------------------------------------------------------------------

    def _connect(self) -> Con:
        try:
            return psycopg.connect(self._address.conninfo, autocommit=True)
        except psycopg.Error as problem:
            raise errors.store_gone(self.place, self._address.why(problem)) from problem

    def _ready(self) -> psycopg_pool.ConnectionPool[Con]:
        """The pool of this process, made when it is first needed."""
        if self._pid != os.getpid():
            after_fork.append(self._pool)
            self._pool, self._opening, self._pid = None, threading.Lock(), os.getpid()
        with self._opening:
            if self._closed:
                raise errors.store_gone(self.place, "it was closed")
            if self._pool is None:
                # What the pool would log we raise; without a handler, logging would write it to the terminal as well.
                logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())
                self._pool = psycopg_pool.ConnectionPool(
                    self._address.conninfo,
                    kwargs={"autocommit": True},
                    min_size=0,
                    max_size=POOL_MAX,
                    reconnect_timeout=0,
                    name="limpet",
                    open=True,
                )
            return self._pool

    @contextmanager
    def connection(self) -> Iterator[Con]:
        """A connection for this thread alone. psycopg's errors come out as they are, see `translate`."""
        pool = self._ready()
        con = self._from(pool)
        try:
            yield con
        finally:
            self._end(con)
            pool.putconn(con)

    def _from(self, pool: psycopg_pool.ConnectionPool[Con]) -> Con:
        # The pool itself would try again after ever longer pauses, and not notice for minutes that a server is back.
        # So it gives up at once, and we ask again every second.
        deadline = time.monotonic() + CONNECT_SECONDS
        while True:
            try:
                return pool.getconn(timeout=1)
            except psycopg_pool.PoolClosed as problem:
                raise errors.store_gone(self.place, "it was closed") from problem
            except psycopg_pool.PoolTimeout as problem:
                if time.monotonic() > deadline:
                    self._connect().close()  # says why, if the server is the reason
                    raise errors.store_busy(self.place, CONNECT_SECONDS) from problem

    def _end(self, con: Con) -> None:
        """Leave no transaction open, whatever happened."""
        if con.closed or con.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            return
        with suppress(psycopg.Error):
            con.execute("ROLLBACK")
            return
        con.close()

    def close(self) -> None:
        with self._opening:
            self._closed = True
            pool, self._pool = self._pool, None
        if pool is not None and self._pid == os.getpid():
            pool.close()

    # --- reading ------------------------------------------------------------------------------------------------------

    def rows(self, tenant: str, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """All rows of one read."""

        def within(con: Con) -> list[tuple[Any, ...]]:
            if self._tenants.get(con) == tenant:
                return con.execute(sql, values).fetchall()
            with con.pipeline():  # both travel together, and either both or none of them count
                con.execute(SET_TENANT, (tenant,))
                found = con.execute(sql, values)
            self._tenants[con] = tenant
            return found.fetchall()

        return self._reading(within)

    def reads(self, tenant: str, work: Callable[[Con], T]) -> T:
        """Several reads for one tenant, each of a moment of its own: they save the transaction around a `view`."""

        def within(con: Con) -> T:
            if self._tenants.get(con) != tenant:
                con.execute(SET_TENANT, (tenant,))
                self._tenants[con] = tenant
            return work(con)

        return self._reading(within)

    def view(self, tenant: str, work: Callable[[Con], T]) -> T:
        """Several reads that see one moment of one tenant."""

        def within(con: Con) -> T:
            begin(con, VIEW, tenant)
            result = work(con)
            con.execute("COMMIT")
            return result

        return self._reading(within)

    def everything(self, work: Callable[[Con], T]) -> T:
        """Several reads that see one moment of the whole store."""

        def within(con: Con) -> T:
            usual, con.prepare_threshold = con.prepare_threshold, None
            try:
                con.execute(f"{VIEW}; {UNFILTERED}")
                result = work(con)
                con.execute("COMMIT")
            finally:
                con.prepare_threshold = usual
            return result

        return self._reading(within)

    def _reading(self, work: Callable[[Con], T]) -> T:
        def attempt() -> T:
            with self.connection() as con:
                try:
                    return work(con)
                except psycopg.Error as problem:
                    if lost(con, problem) or problem.sqlstate in CONFLICTS:
                        raise _Again(problem, begun=True) from problem
                    raise

        return self._trying(attempt, lambda again: True)

    def stream(self, sql: str, values: tuple[Any, ...], con: Con) -> Iterator[tuple[Any, ...]]:
        """Rows that are fetched a few hundred at a time. `con` must be in a transaction."""
        with con.cursor(name="limpet_stream") as cursor:
            cursor.itersize = 500
            cursor.execute(sql, values)
            yield from cursor

    # --- writing ------------------------------------------------------------------------------------------------------

    def write(self, tenant: str, work: Work[T], *, repeatable: bool = True) -> T:
        """Run `work` in a transaction of one tenant and return when it is on disk.

        It may run more than once, unless it is not `repeatable`; then only a failure to begin is tried again.
        """
        return self._trying(
            lambda: self._transact(tenant, lambda con, _: work(con)), lambda again: repeatable or not again.begun
        )

    def write_after(self, tenant: str, first: Statement, work: Callable[[Con, list[Row]], tuple[T, Proof]]) -> T:
        """The same for work that needs an answer first: the question travels with what begins the transaction."""
        return self._trying(lambda: self._transact(tenant, work, first), lambda again: True)

    def _trying(self, attempt: Callable[[], T], may_repeat: Callable[[_Again], bool]) -> T:
        started = time.monotonic()
        tried = 0
        while True:
            try:
                return attempt()
            except _Again as again:
                tried += 1
                conflict, waited = again.problem.sqlstate in CONFLICTS, time.monotonic() - started
                # Who loses to others again and again is no worse off than who waits for their lock.
                over = tried >= TRIES and not (conflict and waited < limits.LOCK_WAIT_SECONDS)
                if over or not may_repeat(again):
                    if conflict:
                        raise errors.store_busy(self.place, waited) from again.problem
                    raise self.translate(again.problem, lost=True) from again.problem
                if not conflict:
                    self._ready().check()  # where one connection broke, the others that lie there may be broken too
            except psycopg.Error as problem:
                raise self.translate(problem) from problem
            doubled = min(tried, MOST_DOUBLED if conflict else TRIES)
            time.sleep(random.uniform(0.5, 1.5) * PAUSE_SECONDS * 2**doubled)  # noqa: S311 - no secret

    def _transact(
        self, tenant: str, work: Callable[[Con, list[Row]], tuple[T, Proof]], first: Statement = ("", ())
    ) -> T:
        begun = False
        with self.connection() as con:
            try:
                found = begin(con, "BEGIN", tenant, *first)
                begun = True
                result, proof = work(con, found)
                if not proof:
                    return result
            except psycopg.Error as problem:
                if lost(con, problem) or problem.sqlstate in CONFLICTS:
                    raise _Again(problem, begun) from problem
                raise
            try:
                if con.execute("COMMIT").statusmessage != "COMMIT":
                    raise errors.store_broken(self.place, "the server did not keep a change")
                return result
            except psycopg.Error as problem:
                if problem.sqlstate in CONFLICTS:
                    raise _Again(problem, begun) from problem
                if not lost(con, problem):
                    raise
                unsure = problem
        if self._kept(tenant, proof):
            return result
        raise _Again(unsure, begun) from unsure

    def _kept(self, tenant: str, proof: Proof) -> bool:
        """Whether a change was kept whose COMMIT was never answered. The first statement waits for its transaction."""
        scope = proof[0][1]

        def look(con: Con) -> bool:
            begin(con, "BEGIN", tenant)
            if scope:
                # The change may have made the project too. Nobody can lock a row that is not kept yet, but to insert
                # the same one waits until it is or never will be.
                con.execute(SAME_PROJECT, scope)
            found = all(con.execute(sql, values).fetchall() for sql, values in proof)
            con.execute("ROLLBACK")
            return found

        try:
            return self._reading(look)
        except errors.StoreProblem as problem:
            why = "the connection broke while a change was being kept, so look whether it is there before you repeat it"
            raise errors.store_gone(self.place, why) from problem

    # --- what may go wrong --------------------------------------------------------------------------------------------

    def translate(self, problem: psycopg.Error, *, lost: bool = False) -> errors.StoreProblem:
        """PostgreSQL's trouble as a problem of ours."""
        state, why = problem.sqlstate or "", self._address.why(problem)
        if state == "53100":
            return errors.store_full(self.place)
        if state in ("25006", "42501"):  # a standby or a read-only session; rights that are missing
            return errors.store_read_only(self.place, why)
        if state == "55P03":
            return errors.store_busy(self.place, limits.LOCK_WAIT_SECONDS)
        if state == "57014":
            usual = f"{STATEMENT_SECONDS} seconds unless its address says otherwise"
            return errors.store_gone(self.place, f"it did not answer in time (statement_timeout, {usual})")
        if lost or state.startswith(("08", "57P", "53")) or state == "25P03":
            return errors.store_gone(self.place, why)
        return errors.store_broken(self.place, why)


def lost(con: Con, problem: psycopg.Error) -> bool:
    """Whether the connection is gone, so that nothing uncommitted is left of what it did."""
    state = problem.sqlstate or ""
    if con.closed or state.startswith(("08", "57P")) or state == "25P03":
        con.close()
        return True
    return False


def read_address(
    url: str,
    setting: str = "store",
    *,
    connect: int = CONNECT_SECONDS,
    lock: float = limits.LOCK_WAIT_SECONDS,
    statement: int = STATEMENT_SECONDS,
) -> Address:
    """The address of a server, with how many seconds to wait for what."""
    try:
        info: dict[str, Any] = dict(conninfo_to_dict(url))
    except psycopg.Error:
        info = {}
    # A password with a / or an @ in it is cut in pieces, which are then taken for server, port and database.
    names, ports = f"{info.get('host')}{info.get('dbname')}", str(info.get("port") or "0").replace(",", "")
    if not info or "@" in names or not ports.isdecimal():
        # libpq's own words may repeat the password, so they are not passed on.
        rule = "it must be an address that can be read; special characters in names and passwords are written as %XX"
        raise errors.bad_setting(setting, "postgresql://…", rule)
    place, password = _place(info), str(info.get("password") or "")
    info.setdefault("application_name", "limpet")
    info.setdefault("connect_timeout", connect)
    info.setdefault("tcp_user_timeout", connect * 1_000)  # a peer that vanished is noticed
    info["client_encoding"] = "UTF8"
    ours = {
        "synchronous_commit": "on",
        "lock_timeout": f"{lock * 1_000:.0f}",
        "statement_timeout": f"{statement * 1_000}",
        "idle_in_transaction_session_timeout": f"{IDLE_SECONDS * 1_000}",
    }
    # What the address itself sets comes later and wins.
    options = [f"-c {name}={value}" for name, value in ours.items()] + [str(info.get("options") or "")]
    info["options"] = " ".join(options).strip()
    return Address(make_conninfo("", **info), place, password)


def _place(info: dict[str, Any]) -> str:
    """The address with nothing in it but server and database."""
    hosts = str(info.get("host") or info.get("hostaddr") or "")
    database = quote(str(info.get("dbname") or ""))
    if hosts.startswith("/") or "," in hosts:
        return f"postgresql:///{database}?host={quote(hosts, safe='/,')}"
    port = f":{info['port']}" if info.get("port") else ""
    return f"postgresql://{f'[{hosts}]' if ':' in hosts else hosts}{port}/{database}"
