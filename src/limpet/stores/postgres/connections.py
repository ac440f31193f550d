"""One PostgreSQL database, shared by many threads and many processes: connections, transactions and what may go wrong.

The ideas:

- *A lost connection is not a lost change.* Before COMMIT is sent nothing can have been committed, so the work is run
  again on another connection. If the connection breaks during COMMIT, the server is asked whether the change is there.
- *Every wait has a timeout.* Locks, statements and idle transactions have timeouts, set when a connection is opened.
- *Passwords stay private.* `place` is built from the parts of the address that may be shown, and messages of the server
  pass `Address.why`.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import psycopg
import psycopg_pool
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from limpet import errors, limits
from limpet.record import NamedTuple
from limpet.stores.postgres import distribute
from limpet.stores.postgres.schema import NEWEST, Con, prepare, refuse_newer
from limpet.stores.postgres.tenants import (
    IDLE,
    READ,
    UNFILTERED,
    VIEW,
    Row,
    Statement,
    Values,
    ask,
    begin,
    end,
    in_moment,
    rows_of,
    send,
    sent,
    set_tenant,
    together,
)

T = TypeVar("T")
Proof = tuple[Statement, ...]  # committed if each of these returns a row; the first locks the project, if any
SAME_PROJECT = "INSERT INTO projects (tenant, project, seq, clock) VALUES (%s, %s, 0, -1) ON CONFLICT DO NOTHING"
Rows = list[list[Row]]  # of each of some statements
View = Callable[[Con, Rows], T]


class Last(Generic[T]):
    """What a write still has to send, together with COMMIT: `send` sends statements, and `result` is made of the rows
    of another one, a read."""

    def __init__(
        self, proof: Proof, send: Callable[[], None], answer: Statement, result: Callable[[list[Row]], T]
    ) -> None:
        self.proof = proof
        self.send = send
        self.answer = answer
        self.result = result


Work = Callable[[Con, Rows], tuple[T, Proof] | Last[T]]  # given the rows of `first`; no proof: nothing to commit

POOL_MAX = 8  # connections of one process; a server usually allows 100 in all
MOMENTS_MAX = 3  # connections that keep a transaction from read to read; writes would wait for more of them
CONNECT_SECONDS = 10  # long enough for a server that restarts
STATEMENT_SECONDS = 60  # statements take milliseconds; a minute means that the server is in trouble
IDLE_SECONDS = 60  # an idle transaction belongs to a stopped process, and holds the write lock
EXPORT_IDLE_SECONDS = 3_600  # an export waits for its reader, and holds no lock that others need
PENDING_KB = 64  # of words that an index has yet to sort in: every search reads them, and with many it reads the table
SCHEMA_SECONDS = 1.0  # between two looks at the schema's version by reads; a transaction looks at it anyway
TRIES = 6  # after so many lost connections in a row something else is wrong; conflicts are bounded by time
PAUSE_SECONDS = 0.02  # before the second attempt; doubled each time, with jitter
MOST_DOUBLED = 3  # after a conflict: longer pauses would lose to newcomers forever
CONFLICTS = ("40001", "40P01")  # serialization failure, deadlock: cured by running the work again

after_fork: list[Any] = []  # pools of the parent: in the child they must be neither used nor cleaned up


class _Again(Exception):
    """An attempt failed and changed nothing. `begun` is False when not even the transaction had begun."""

    def __init__(self, problem: psycopg.Error, begun: bool) -> None:
        super().__init__(str(problem))
        self.problem = problem
        self.begun = begun


class Address(NamedTuple):
    conninfo: str
    place: str
    password: str

    def why(self, problem: psycopg.Error) -> str:
        """The message of the server or the driver, in one line, without the password should it be in there."""
        message = problem.diag.message_primary or str(problem)
        line = " ".join(message.split()).rstrip(".") or type(problem).__name__
        return line.replace(self.password, "…") if self.password else line


class _Moment:
    """Reads of one thread and one tenant that share a transaction, from the first of them on."""

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        self.pool: psycopg_pool.ConnectionPool[Con] | None = None
        self.con: Con | None = None


class _OfThread(threading.local):
    moment: _Moment | None = None


class PostgresDatabase:
    def __init__(self, url: str) -> None:
        self._address = read_address(url)
        self.place = self._address.place
        self._pool: psycopg_pool.ConnectionPool[Con] | None = None
        self._opening = threading.Lock()
        self._pid = os.getpid()
        self._closed = False
        self._of_thread = _OfThread()
        self._moments = threading.Semaphore(MOMENTS_MAX)
        self._distributed: bool | None = None  # looked up when asked for
        self._next_look = 0.0  # at the schema's version, of time.monotonic()
        con = self._connect()
        try:
            # The process that the client knows is not the one that answers: there is a pooler between.
            self._pooled = con.execute("SELECT pg_backend_pid()").fetchall() != [(con.info.backend_pid,)]
            if prepare(con, self.place):
                distribute.follow(con, self.place)
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
        """The pool of this process, opened at the first use."""
        if self._pid != os.getpid():
            after_fork.append(self._pool)
            self._pool, self._opening, self._pid = None, threading.Lock(), os.getpid()
            self._moments = threading.Semaphore(MOMENTS_MAX)
        with self._opening:
            if self._closed:
                raise errors.store_gone(self.place, "it was closed")
            if self._pool is None:
                # The driver's and the pool's problems are raised; without a handler, logging would print them as well.
                logging.getLogger("psycopg").addHandler(logging.NullHandler())
                self._pool = psycopg_pool.ConnectionPool(
                    self._address.conninfo,
                    # A pooler gives each transaction another connection, which does not know what was prepared.
                    kwargs={"autocommit": True, "prepare_threshold": None if self._pooled else 5},
                    min_size=0,
                    max_size=POOL_MAX,
                    reconnect_timeout=0,
                    name="limpet",
                    open=True,
                )
            return self._pool

    @contextmanager
    def connection(self) -> Iterator[Con]:
        """A connection for the calling thread. psycopg's errors come out as they are, see `translate`."""
        self._leave()  # a thread that waits for a second one would keep others from their first
        pool = self._ready()
        con = self._from(pool)
        try:
            yield con
        finally:
            self._give_back(con, pool)

    def _from(self, pool: psycopg_pool.ConnectionPool[Con]) -> Con:
        # The pool itself would retry after ever longer pauses, and take minutes to notice that a server is back. So it
        # gives up at once, and is asked again every second.
        deadline = time.monotonic() + CONNECT_SECONDS
        while True:
            try:
                return pool.getconn(timeout=1)
            except psycopg_pool.PoolClosed as problem:
                raise errors.store_gone(self.place, "it was closed") from problem
            except psycopg_pool.PoolTimeout as problem:
                if time.monotonic() > deadline:
                    self._connect().close()  # says why, if the server is the reason
                    raise errors.store_busy("another process", self.place, CONNECT_SECONDS) from problem

    def _give_back(self, con: Con, pool: psycopg_pool.ConnectionPool[Con]) -> None:
        """Put a connection back into its pool, with no transaction open, also after an error."""
        complete = con.closed or (con.info.transaction_status == IDLE and not is_stuck(con))
        try:
            if not complete and not is_stuck(con):
                with suppress(psycopg.Error):
                    con.execute("ROLLBACK")
                    complete = True
        finally:
            try:
                if not complete:
                    con.close()
            finally:
                pool.putconn(con)

    def close(self) -> None:
        with self._opening:
            self._closed = True
            pool, self._pool = self._pool, None
        if pool is not None and self._pid == os.getpid():
            pool.close()

    # --- reading ------------------------------------------------------------------------------------------------------

    @contextmanager
    def moment(self, tenant: str) -> Iterator[None]:
        """Let the reads of this tenant by this thread share a transaction, which sees one moment: until it ends, or the
        thread writes or reads something else, after which another one begins. While many do, each read is one."""
        moments = self._moments
        forked = self._pid != os.getpid()  # in the child of a fork the semaphore is the parent's until the first read
        if forked or self._of_thread.moment is not None or not moments.acquire(blocking=False):
            yield
            return
        try:
            self._of_thread.moment = _Moment(tenant)
            yield
        finally:
            try:
                self._leave()
            finally:
                self._of_thread.moment = None
                moments.release()

    @contextmanager
    def _shared(self, moment: _Moment) -> Iterator[Con]:
        if moment.con is None:
            moment.pool = self._ready()
            moment.con = self._from(moment.pool)
            in_moment.add(moment.con)
        complete = False
        try:
            yield moment.con
            complete = True
        finally:
            if not complete:  # the transaction is over
                self._leave()

    def _leave(self) -> None:
        """End the transaction that this thread's reads share, if there is one."""
        moment = self._of_thread.moment
        if moment is None or moment.con is None or moment.pool is None:
            return
        con, moment.con = moment.con, None
        try:
            in_moment.discard(con)
            with suppress(psycopg.Error):  # all was read
                end(con)
        finally:
            self._give_back(con, moment.pool)

    def rows(self, tenant: str, sql: str, values: Values, *, binary: bool = False) -> list[Row]:
        """All rows of one read, in one round trip."""

        def work(con: Con) -> list[Row]:
            if con.info.transaction_status != IDLE:  # which other reads share
                return con.execute(sql, values, binary=binary).fetchall()
            alone = con not in in_moment
            with together(con) as pipeline:
                send(pipeline, READ if alone else VIEW, set_tenant(tenant))
                cursor = con.execute(sql, values, binary=binary)
                send(pipeline, *(["COMMIT"] if alone else []))
            return cursor.fetchall()

        return self._read(work, tenant)

    def rows_of_each(self, tenant: str, *statements: Statement) -> Rows:
        """The rows of several reads of one moment, in one round trip."""
        return self._read(lambda con: _viewed(con, tenant, statements, last=True), tenant)

    def snapshot(self, tenant: str, work: View[T], *first: Statement) -> T:
        """Several reads that see the same moment of one tenant. `work` gets the rows of each of the first ones, which
        travel with the statement that begins the transaction."""

        def in_transaction(con: Con) -> T:
            result = work(con, _viewed(con, tenant, first))
            end(con)
            return result

        return self._read(in_transaction, tenant)

    def snapshot_of_all(self, work: Callable[[Con], T]) -> T:
        """Several reads that see the same moment of all tenants."""

        def unfiltered(con: Con) -> T:
            usual, con.prepare_threshold = con.prepare_threshold, None
            try:
                con.execute(VIEW)
                con.execute(UNFILTERED)
                result = work(con)
                con.execute("COMMIT")
            finally:
                con.prepare_threshold = usual
            return result

        return self._read(unfiltered)

    def _read(self, work: Callable[[Con], T], tenant: str | None = None) -> T:
        moment = self._of_thread.moment
        retries = _Retries(self)
        while True:
            try:
                with self._shared(moment) if moment and moment.tenant == tenant else self.connection() as con:
                    try:
                        self._look_at_schema(con)
                        return work(con)
                    except psycopg.Error as problem:
                        if lost(con, problem) or problem.sqlstate in CONFLICTS:
                            raise _Again(problem, begun=True) from problem
                        raise
            except _Again as again:
                retries.pause(again)
            except psycopg.Error as problem:
                raise self.translate(problem) from problem

    def _look_at_schema(self, con: Con) -> None:
        """Before a read, once in a while: rows of a newer schema may mean something else."""
        if time.monotonic() >= self._next_look:
            refuse_newer(self.place, con.execute(f"SELECT {NEWEST}").fetchall()[0][0])
            self._next_look = time.monotonic() + SCHEMA_SECONDS

    def is_distributed(self, *, again: bool = False) -> bool:
        """Whether rows are on other servers."""
        if self._distributed is None or again:
            self._distributed = self._read(distribute.is_distributed)
        return self._distributed

    def stream(self, sql: str, values: tuple[Any, ...], con: Con) -> Iterator[tuple[Any, ...]]:
        """Rows that are fetched a few hundred at a time. `con` must be in a transaction."""
        with con.cursor(name="limpet_stream") as cursor:
            cursor.itersize = 500
            cursor.execute(sql, values)
            yield from cursor

    # --- writing ------------------------------------------------------------------------------------------------------

    def write(self, tenant: str, work: Work[T], *, first: Sequence[Statement] = (), repeatable: bool = True) -> T:
        """Run `work` in a transaction of one tenant and return when it is on disk.

        It may run more than once, unless it is not `repeatable`; then it is run again only if it had not begun. The
        statements `first` travel with the one that begins the transaction.
        """
        retries = _Retries(self)
        while True:
            try:
                return self._transact(tenant, work, first)
            except _Again as again:
                retries.pause(again, may_repeat=repeatable or not again.begun)
            except psycopg.Error as problem:
                raise self.translate(problem) from problem

    def _transact(self, tenant: str, work: Work[T], first: Sequence[Statement]) -> T:
        begun = False
        with self.connection() as con:
            try:
                answers = begin(con, self.place, "BEGIN", tenant, first)
                begun = True
                done = work(con, answers)
            except psycopg.Error as problem:
                if lost(con, problem) or problem.sqlstate in CONFLICTS:
                    raise _Again(problem, begun) from problem
                raise
            if isinstance(done, tuple) and not done[1]:
                return done[0]
            try:
                return self._commit(con, done)
            except psycopg.Error as problem:
                if problem.sqlstate in CONFLICTS:
                    raise _Again(problem, begun) from problem
                if not lost(con, problem):
                    raise
                unsure = problem
        if self._is_committed(tenant, done[1] if isinstance(done, tuple) else done.proof):
            return done[0] if isinstance(done, tuple) else done.result(self.rows(tenant, *done.answer))
        raise _Again(unsure, begun) from unsure

    def _commit(self, con: Con, done: tuple[T, Proof] | Last[T]) -> T:
        answer: list[Row] = []
        if isinstance(done, tuple):
            commit = con.execute("COMMIT")
        else:
            with together(con):
                done.send()
                cursor = con.execute(*done.answer)
                commit = con.execute("COMMIT")
            answer = cursor.fetchall()
        if commit.statusmessage != "COMMIT":
            raise errors.store_broken(self.place, "the server did not keep a change")
        return done[0] if isinstance(done, tuple) else done.result(answer)

    def _is_committed(self, tenant: str, proof: Proof) -> bool:
        """Whether a change is there whose COMMIT was not answered. The first statement waits for its transaction."""
        scope = proof[0][1]

        def look(con: Con) -> bool:
            begin(con, self.place, "BEGIN", tenant)
            if scope:
                # The change may have created the project. An uncommitted row cannot be locked, but inserting the same
                # one waits until it is committed or rolled back.
                con.execute(SAME_PROJECT, scope)
            answers = [con.execute(sql, values) for sql, values in proof]
            committed = all(answer.description is None or answer.fetchall() for answer in answers)
            con.execute("ROLLBACK")
            return committed

        try:
            return self._read(look)
        except errors.StoreProblem as problem:
            why = "the connection broke while a change was being kept, so look whether it is there before you repeat it"
            raise errors.store_gone(self.place, why) from problem

    # --- problems -----------------------------------------------------------------------------------------------------

    def recheck(self) -> None:
        """Check the idle connections: where one broke, others may be broken too."""
        self._ready().check()

    def translate(self, problem: psycopg.Error, *, lost: bool = False) -> errors.StoreProblem:
        """The StoreProblem for an error of PostgreSQL."""
        state, why = problem.sqlstate or "", self._address.why(problem)
        if state == "53100":
            return errors.store_full(self.place)
        if state in ("25006", "42501"):  # a standby or a read-only session; rights that are missing
            return errors.store_read_only(self.place, why)
        if state == "55P03":
            return errors.store_busy("another process", self.place, limits.LOCK_WAIT_SECONDS)
        if state == "57014":
            usual = f"{STATEMENT_SECONDS} seconds unless its address says otherwise"
            return errors.store_gone(self.place, f"it did not answer in time (statement_timeout, {usual})")
        if lost or state.startswith(("08", "57P", "53")) or state == "25P03":
            return errors.store_gone(self.place, why)
        return errors.store_broken(self.place, why)


def _viewed(con: Con, tenant: str, statements: Sequence[Statement], *, last: bool = False) -> Rows:
    """Begin a transaction that sees one moment of one tenant, unless it has begun, and run statements: the rows of
    each."""
    if con.info.transaction_status != IDLE:
        return ask(con, *statements) if statements else []
    with together(con) as pipeline:
        send(pipeline, VIEW, set_tenant(tenant))
        cursors = sent(con, pipeline, statements)
        if last and con not in in_moment:
            send(pipeline, "COMMIT")
    return rows_of(cursors)


class _Retries:
    """How often, and for how long, failed attempts are repeated."""

    def __init__(self, db: PostgresDatabase) -> None:
        self._db = db
        self._started = time.monotonic()
        self._failed = 0

    def pause(self, again: _Again, *, may_repeat: bool = True) -> None:
        """Wait before the next attempt, or raise."""
        self._failed += 1
        conflict, waited = again.problem.sqlstate in CONFLICTS, time.monotonic() - self._started
        # A writer that loses to others repeatedly may wait as long as one that waits for their lock.
        over = self._failed >= TRIES and not (conflict and waited < limits.LOCK_WAIT_SECONDS)
        if over or not may_repeat:
            if conflict:
                raise errors.store_busy("another process", self._db.place, waited) from again.problem
            raise self._db.translate(again.problem, lost=True) from again.problem
        if not conflict:
            self._db.recheck()
        doubled = min(self._failed, MOST_DOUBLED if conflict else TRIES)
        time.sleep(random.uniform(0.5, 1.5) * PAUSE_SECONDS * 2**doubled)  # noqa: S311 - no secret


def is_stuck(con: Con) -> bool:
    """Whether answers of statements that travelled together are missing: the server's last words came, and then no
    more. What psycopg says of it has no code."""
    return not con.closed and con.info.pipeline_status != psycopg.pq.PipelineStatus.OFF


def lost(con: Con, problem: psycopg.Error) -> bool:
    """Whether the connection is lost, and its transaction with it."""
    state = problem.sqlstate or ""
    if con.closed or is_stuck(con) or state.startswith(("08", "57P")) or state == "25P03":
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
    """The address of a server, with timeouts in seconds."""
    try:
        info: dict[str, Any] = dict(conninfo_to_dict(url))
    except psycopg.Error:
        info = {}
    # A password with a / or an @ in it is split, and its parts are taken for server, port and database.
    names, ports = f"{info.get('host')}{info.get('dbname')}", str(info.get("port") or "0").replace(",", "")
    if not info or "@" in names or not ports.isdecimal():
        # libpq's own message may repeat the password, so it is not passed on.
        rule = "it must be an address that can be read; special characters in names and passwords are written as %XX"
        raise errors.bad_setting(setting, "postgresql://…", rule)
    place, password = _place(info), str(info.get("password") or "")
    info.setdefault("application_name", "limpet")
    info.setdefault("connect_timeout", connect)
    info.setdefault("tcp_user_timeout", connect * 1_000)  # notices a peer that vanished
    info["client_encoding"] = "UTF8"
    defaults = {
        "synchronous_commit": "on",
        "citus.propagate_set_commands": "local",  # a transaction's tenant, where Citus is; elsewhere it means nothing
        "gin_pending_list_limit": f"{PENDING_KB}kB",
        "lock_timeout": f"{lock * 1_000:.0f}",
        "statement_timeout": f"{statement * 1_000}",
        "idle_in_transaction_session_timeout": f"{IDLE_SECONDS * 1_000}",
    }
    # Options of the address itself come later and win.
    options = [f"-c {name}={value}" for name, value in defaults.items()] + [str(info.get("options") or "")]
    info["options"] = " ".join(options).strip()
    return Address(make_conninfo("", **info), place, password)


def _place(info: dict[str, Any]) -> str:
    """The address, reduced to server and database."""
    hosts = str(info.get("host") or info.get("hostaddr") or "")
    database = quote(str(info.get("dbname") or ""))
    if hosts.startswith("/") or "," in hosts:
        return f"postgresql:///{database}?host={quote(hosts, safe='/,')}"
    port = f":{info['port']}" if info.get("port") else ""
    return f"postgresql://{f'[{hosts}]' if ':' in hosts else hosts}{port}/{database}"
