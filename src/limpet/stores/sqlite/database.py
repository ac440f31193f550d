"""One SQLite file, shared by many threads and many processes: opening, the write lock, and commits.

The ideas:

- *A fair lock in front of SQLite's own.* Writers of all processes queue at a side file (flock), which serves the
  longest waiting first. SQLite's busy timeout can starve a writer and is the backstop. Checkpoints run under the lock.
- *Group commit.* A writer adds its job to a queue and waits for its turn. The thread whose turn it is runs all queued
  jobs in one transaction, so that ten waiting writers cost one fsync. Each job has its own savepoint; a failing job
  does not affect the others.
- *Never open the database file from Python.* Closing such a handle would drop SQLite's locks of this process.
- *Connections are a small stack.* A single-threaded process opens one.
- *No connection survives a fork.* SQLite's record of the locks this process holds would be copied to the child, where
  it is wrong. So all connections are closed before a fork, and opened again on both sides when needed.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import apsw

from limpet import errors, limits
from limpet.model import DataFolder, Scope
from limpet.stores.shared.sql import Proof, Row
from limpet.text import words

T = TypeVar("T")
APPLICATION_ID = 0x4C696D70  # "Limp"
SCHEMA = 6  # the newest migration; a test keeps it equal to the files
OLDEST_SQLITE = (3, 51, 3)  # earlier builds can corrupt a file when two connections checkpoint at once
FORK_WAIT_SECONDS = 1.0  # for readers in other threads; a fork is not delayed longer
MIGRATIONS = os.path.join(os.path.dirname(__file__), "migrations")

_open: weakref.WeakSet[Database] = weakref.WeakSet()  # databases whose connections a fork must close
_forking = threading.local()  # the databases that the fork of this thread closed; others may be opened meanwhile


class WriteLock:
    """Mutual exclusion between processes. Threads queue before they come here."""

    def __init__(self, path: str, place: str) -> None:
        self._path = path
        self._place = place
        self._file: int | None = None

    def acquire(self) -> None:
        if self._file is None:
            try:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as problem:
                raise errors.store_read_only(self._place, problem.strerror or str(problem)) from problem
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait(self._file)

    def _wait(self, file: int) -> None:
        # flock queues fairly but has no timeout, so a thread waits for the lock and this one waits for the thread.
        outcome: list[bool] = []
        guard = threading.Lock()

        def wait() -> None:
            fcntl.flock(file, fcntl.LOCK_EX)
            with guard:
                if outcome:  # the waiter has given up
                    fcntl.flock(file, fcntl.LOCK_UN)
                    os.close(file)
                outcome.append(True)

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        thread.join(limits.LOCK_WAIT_SECONDS)
        with guard:
            if not outcome:
                outcome.append(False)
                self._file = None
                raise errors.store_busy(self._place, limits.LOCK_WAIT_SECONDS)

    def release(self) -> None:
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def forget(self) -> None:
        """After a fork: the lock's handle is shared with the parent, so use a new one."""
        self.close()


class Connection(apsw.Connection):
    in_memory = False

    def rows(self, sql: str, values: Any = ()) -> list[Row]:
        return cast("list[Row]", self.execute(sql, values).fetchall())

    def many(self, sql: str, values: Iterable[Row]) -> None:
        self.executemany(sql, values)


class _Job:
    __slots__ = ("done", "durable", "error", "result", "work")

    def __init__(self, work: Callable[[Connection], Any], durable: bool) -> None:
        self.work = work
        self.durable = durable
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None


class Database:
    def __init__(self, path: str, folder: DataFolder | None = None) -> None:
        """Open the file, if it exists: the first write makes it. `folder` is where it belongs, if that can change."""
        if tuple(map(int, apsw.sqlite_lib_version().split("."))) < OLDEST_SQLITE:
            raise errors.sqlite_too_old(apsw.sqlite_lib_version())
        self._folder = folder
        self._missing = True  # there is no file; reads see an empty store
        self._opening = threading.RLock()  # held by the thread that looks for the file or makes it
        self._move(os.path.abspath(path))
        self._free: list[Connection] = []
        self._empty: list[Connection] = []  # to empty stores in memory
        self._jobs: deque[_Job] = deque()
        self._turn = threading.Lock()
        self._connections = 0  # open ones, free or in use
        self._wal_pages = 0
        self._checkpoint_at = limits.WAL_CHECKPOINT_PAGES
        self._wrote = False
        self._closed = False
        _open.add(self)
        self._exists()

    # --- opening ------------------------------------------------------------------------------------------------------

    def _move(self, path: str) -> None:
        self.path = path
        self._lock = WriteLock(path + ".lock", path)

    def _exists(self) -> bool:
        """Whether there is a file now. One that another process has made since is opened."""
        if not self._missing:
            return True
        with self._opening:
            if self._missing:
                folder = self._folder.path if self._folder else None
                if folder is not None and os.path.dirname(self.path) != folder:
                    self._move(os.path.join(folder, os.path.basename(self.path)))
                self._refuse_orphan_log()
                if os.path.exists(self.path):
                    self._prepare()
            return not self._missing

    def _make(self) -> None:
        """Make the file, before the first write."""
        with self._opening:
            if not self._exists():
                if self._folder is not None:
                    self._move(os.path.join(self._folder.make(), os.path.basename(self.path)))
                self._create()
                self._prepare()

    def _prepare(self) -> None:
        con = self._connect()
        try:
            version = self._identify(con)
            if version < SCHEMA:
                self._migrate(con)
            self._missing = False  # other threads may use it from here on
        except apsw.Error as problem:
            raise self.translate(problem) from problem
        finally:
            self.give(con)

    def _take_empty(self) -> Connection:
        """An empty store in memory, to read from while there is no file."""
        try:
            return self._empty.pop()
        except IndexError:
            con = self._configured(Connection(":memory:"))
        for number in range(1, SCHEMA + 1):
            con.execute(migration(number))
        con.in_memory = True
        return con

    def _on_empty(self, work: Callable[[Connection], T]) -> T:
        """Run work on an empty store, and forget what it changes."""
        con = self._take_empty()
        try:
            con.execute("BEGIN")
            return work(con)
        finally:
            con.execute("ROLLBACK")
            self.give(con)

    def _refuse_orphan_log(self) -> None:
        """A log without its database holds commits that SQLite would discard on opening."""
        size = _size(self.path)
        if _size(self.path + "-wal") and not size:
            raise errors.not_a_store(self.path, "it is missing or empty while its log (-wal) still holds work")
        if size == 1:  # SQLite would treat it as an empty file and overwrite it
            raise errors.not_a_store(self.path, "the file is not an SQLite database")

    def _create(self) -> None:
        """Create the file before SQLite does, so that it is private whatever the umask."""
        try:
            make_private_folder(os.path.dirname(self.path))
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            return  # another process was faster
        except OSError as problem:
            raise errors.store_read_only(self.path, problem.strerror or str(problem)) from problem

    def _identify(self, con: Connection) -> int:
        # The number of tables comes first: another process may create them, and set the id, between the two reads.
        tables = con.execute("SELECT count(*) FROM sqlite_schema").fetchall()[0][0]
        application, version = con.execute("SELECT * FROM pragma_application_id, pragma_user_version").fetchall()[0]
        if application == APPLICATION_ID and isinstance(version, int):
            if version > SCHEMA:
                raise errors.store_too_new(self.path, version, SCHEMA)
            return version
        if application or tables:
            raise errors.not_a_store(self.path, "it is an SQLite database of another program")
        return 0

    def _migrate(self, con: Connection) -> None:
        self._lock.acquire()
        try:
            con.execute("PRAGMA journal_mode = WAL").fetchall()
            con.execute("BEGIN IMMEDIATE")
            try:
                for number in range(self._identify(con) + 1, SCHEMA + 1):
                    con.execute(migration(number))
                con.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                con.execute(f"PRAGMA user_version = {SCHEMA}")
                con.execute("COMMIT")
            finally:
                if con.in_transaction:  # it failed, and a full disk has not rolled it back already
                    con.execute("ROLLBACK")
            self._wrote = True
        finally:
            self._lock.release()

    def _connect(self) -> Connection:
        try:
            con = self._configured(Connection(self.path, flags=apsw.SQLITE_OPEN_READWRITE))
            con.set_wal_hook(self._after_commit)  # also disables SQLite's automatic checkpoints
        except apsw.Error as problem:
            raise self.translate(problem) from problem
        self._connections += 1
        return con

    def _configured(self, con: Connection) -> Connection:
        try:
            con.set_busy_timeout(limits.SQLITE_BUSY_MS)
            con.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
            con.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
            # Without it SQLite prepares statements again when other values are bound, also those of its index. Without
            # statistics the plan is the same each time, and preparing costs a quarter of a write.
            con.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            con.execute(
                "PRAGMA synchronous = FULL; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;"
                "PRAGMA temp_store = MEMORY; PRAGMA secure_delete = FAST;"
                f"PRAGMA journal_size_limit = {limits.WAL_KEEP_BYTES}"
            ).fetchall()
            con.create_scalar_function("fold", _fold, 1, deterministic=True)
        except apsw.Error as problem:
            raise self.translate(problem) from problem
        return con

    def _after_commit(self, con: apsw.Connection, name: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    # --- connections --------------------------------------------------------------------------------------------------

    def take(self) -> Connection:
        """A connection for the calling thread, until it is given back."""
        if self._closed:
            raise errors.store_gone(self.path, "it was closed")
        if self._missing and not self._exists():
            return self._take_empty()
        try:
            return self._free.pop()
        except IndexError:
            return self._connect()

    def give(self, con: Connection) -> None:
        if con.in_memory and self._missing and not self._closed:
            self._empty.append(con)
        elif con.in_memory:
            con.close()
        elif self._closed:
            con.close()
            self._connections -= 1
        else:
            self._free.append(con)

    def before_fork(self) -> None:
        """Wait for the running write, and close every connection. Readers in other threads get a moment to finish."""
        self._turn.acquire()
        until = time.monotonic() + FORK_WAIT_SECONDS
        while self._connections > len(self._free) and time.monotonic() < until:
            time.sleep(0.001)
        try:
            self._close_free()
        except errors.StoreProblem:  # its folder may be gone; even then no connection may stay open on both sides
            self._close_all()

    def after_fork_in_parent(self) -> None:
        self._turn.release()

    def after_fork_in_child(self) -> None:
        self._jobs = deque()  # those of the parent's threads, which do not exist here
        self._turn = threading.Lock()
        self._opening = threading.RLock()
        self._lock.forget()

    def rows(self, sql: str, values: tuple[Any, ...]) -> list[Row]:
        """All rows of one read."""
        con = self.take()
        try:
            return con.rows(sql, values)
        except (apsw.Error, UnicodeDecodeError) as problem:
            raise self.translate(problem) from problem
        finally:
            self.give(con)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Several reads, each of which sees its own moment."""
        con = self.take()
        try:
            return work(con)
        except (apsw.Error, UnicodeDecodeError) as problem:
            raise self.translate(problem) from problem
        finally:
            self.give(con)

    def snapshot(self, work: Callable[[Connection], T]) -> T:
        """Several reads that see the same moment."""
        con = self.take()
        try:
            con.execute("BEGIN")
            try:
                return work(con)
            finally:
                con.execute("COMMIT")
        except (apsw.Error, UnicodeDecodeError) as problem:
            raise self.translate(problem) from problem
        finally:
            self.give(con)

    # --- writing ------------------------------------------------------------------------------------------------------

    def write(self, work: Callable[[Connection], T], *, durable: bool = True) -> T:
        """Run `work` in a transaction and return when it is on disk.

        A write that is not `durable` is synced with the next one that is; until then a power cut, and nothing less, can
        lose it, as a unit.
        """
        if not durable and not self._exists():
            return self._on_empty(work)  # a note about a read makes no store
        job = _Job(work, durable)
        self._jobs.append(job)
        with self._turn:
            if not job.done:
                jobs = [self._jobs.popleft() for _ in range(len(self._jobs))]
                try:
                    self._make()
                    with self._transaction(durable=any(queued.durable for queued in jobs)) as con:
                        if len(jobs) == 1:
                            job.result = work(con)
                        else:
                            self._run_each(con, jobs)
                except BaseException as problem:
                    _fail(jobs, problem)
                    if not isinstance(problem, Exception):
                        raise
                finally:
                    for queued in jobs:
                        queued.done = True
        if job.error is not None:
            raise job.error
        return cast(T, job.result)

    @contextmanager
    def _transaction(self, *, durable: bool) -> Iterator[Connection]:
        con, broken = self.take(), False
        try:
            self._lock.acquire()
            try:
                if not durable:  # in WAL mode this endangers nothing but the newest commits
                    con.execute("PRAGMA synchronous = NORMAL")
                con.execute("BEGIN IMMEDIATE")
                try:
                    yield con
                    con.execute("COMMIT")
                finally:
                    if con.in_transaction:
                        con.execute("ROLLBACK")
                self._wrote = True
                if self._wal_pages >= self._checkpoint_at:
                    self._checkpoint(con)
            finally:
                self._lock.release()
                if not durable:
                    con.execute("PRAGMA synchronous = FULL")
        except (apsw.Error, UnicodeDecodeError) as problem:
            broken = True
            raise self.translate(problem) from problem
        finally:
            if broken:
                self._discard(con)
            else:
                self.give(con)

    def _run_each(self, con: Connection, jobs: list[_Job]) -> None:
        """Several jobs, each in a savepoint. An error of a job is its own; an error of SQLite fails all of them."""
        for job in jobs:
            con.execute("SAVEPOINT job")
            try:
                job.result = job.work(con)
            except apsw.Error:
                raise
            except UnicodeDecodeError as problem:  # a damaged entry concerns the job that reads it
                con.execute("ROLLBACK TO job")
                job.error = self.translate(problem)
            except Exception as problem:  # noqa: BLE001 - the job's own thread raises it
                con.execute("ROLLBACK TO job")
                job.error = problem
            con.execute("RELEASE job")

    def _discard(self, con: Connection) -> None:
        """After an error of the file a connection is not used again: its cache may differ from the disk."""
        con.close()
        self._connections -= 1

    def _checkpoint(self, con: Connection) -> None:
        """Copy the log into the database. Commits are safe without it, so an error here can wait."""
        self._checkpoint_at = self._wal_pages + limits.WAL_CHECKPOINT_PAGES
        try:
            pages, copied = con.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error:
            return
        if pages == copied:  # otherwise a reader still needs the log; try again when it has grown
            self._checkpoint_at = limits.WAL_CHECKPOINT_PAGES

    def rewrite(self) -> bool:
        """Rewrite the file without its unused pages, and truncate the log. False when a reader still needs the log."""
        with self._turn:
            con = self.take()
            try:
                self._lock.acquire()
                try:
                    # The copy is as large as the store: too large for memory, where temporary tables are otherwise.
                    con.execute("PRAGMA temp_store = FILE; VACUUM; PRAGMA temp_store = MEMORY").fetchall()
                    self._wrote = True
                    con.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                finally:
                    self._lock.release()
            except (apsw.BusyError, apsw.LockedError):
                return False
            except apsw.Error as problem:
                raise self.translate(problem) from problem
            finally:
                self.give(con)
        return True

    def translate(self, problem: apsw.Error | UnicodeDecodeError) -> errors.StoreProblem:
        """The StoreProblem for an error of SQLite."""
        why = "it holds text that is not UTF-8" if isinstance(problem, UnicodeDecodeError) else str(problem)
        if isinstance(problem, apsw.NotADBError):
            return errors.not_a_store(self.path, "the file is not an SQLite database")
        if isinstance(problem, apsw.FullError):
            return errors.store_full(self.path)
        if isinstance(problem, (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError)):
            return errors.store_read_only(self.path, why)
        if isinstance(problem, (apsw.BusyError, apsw.LockedError)):
            return errors.store_busy(self.path, limits.SQLITE_BUSY_MS / 1000)
        return errors.store_broken(self.path, why)

    def close(self) -> None:
        """Close everything. The last connection copies the log into the database, which needs the write lock."""
        if self._closed:
            return
        with self._turn:
            self._closed = True
            self._close_free()
            self._lock.close()
            _open.discard(self)

    def _close_free(self) -> None:
        if not self._wrote:
            return self._close_all()
        self._lock.acquire()
        try:
            self._close_all()
        finally:
            self._lock.release()

    def _close_all(self) -> None:
        while self._empty:
            self._empty.pop().close()
        while self._free:
            self._free.pop().close()
            self._connections -= 1


def _before_fork() -> None:
    _forking.databases = list(_open)
    for database in _forking.databases:
        database.before_fork()


def _after_fork_in_parent() -> None:
    for database in _forking.databases:
        database.after_fork_in_parent()


def _after_fork_in_child() -> None:
    for database in list(_open):
        database.after_fork_in_child()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


def _fail(jobs: list[_Job], problem: BaseException) -> None:
    """Give every job without an error of its own this one; its thread raises it."""
    for job in jobs:
        if job.error is None:
            job.error = problem


class SqliteTransactions:
    """The database as the parts that both stores share see it."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.place = db.path

    def rows(self, tenant: str, sql: str, values: Sequence[object]) -> list[Row]:
        return self._db.rows(sql, tuple(values))

    def replica_rows(self, scope: Scope, sql: str, values: Sequence[object]) -> list[Row]:
        return self._db.rows(sql, tuple(values))

    def snapshot(self, tenant: str, work: Callable[[Connection], T]) -> T:
        return self._db.snapshot(work)

    def write(self, scope: Scope, work: Callable[[Connection], tuple[T, Proof]], *, repeatable: bool = True) -> T:
        return self._db.write(lambda con: work(con)[0])

    def write_soon(self, scope: Scope, work: Callable[[Connection], T], *, alone: bool = False) -> T:
        return self._db.write(work, durable=False)


def _fold(*values: object) -> str:
    return words.fold(str(values[0]))


def _size(path: str) -> int:
    """By stat, which does not open the file."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def migration(number: int) -> str:
    """The text of a migration."""
    (name,) = [name for name in os.listdir(MIGRATIONS) if name.startswith(f"{number:04d}_")]
    with open(os.path.join(MIGRATIONS, name), encoding="utf-8") as file:
        return file.read()


def make_private_folder(path: str) -> None:
    """Create the folder and its missing parents, private to the owner whatever the umask."""
    if path and not os.path.isdir(path):
        make_private_folder(os.path.dirname(path))
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            return
        os.chmod(path, 0o700)
