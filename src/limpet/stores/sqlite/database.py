"""One SQLite file, shared by many threads and many processes: opening, the write lock, and commits.

The ideas:

- *A lock before SQLite's own that leaves nobody behind.* Writers of all processes wait at a side file (flock), where
  one may slip in but the longest waiting are next; SQLite's busy timeout lets some starve and is only the backstop.
  Checkpoints happen under the same lock.
- *Writers in one process share a commit.* A writer adds its work to a list and waits for its turn. Whoever's turn it is
  runs everything on the list in one transaction, so that ten waiting writers cost one fsync. Each piece of work has a
  savepoint of its own; a failing one does not touch its neighbours.
- *Never open the database file from Python.* Closing such a handle would drop SQLite's locks of this process.
- *Connections are a small stack.* A single-threaded process only ever opens one.
- *No connection lives through a fork.* SQLite's notes on which locks this process holds would be copied to the child,
  where they are not true. So all are closed before, and opened again on both sides when needed.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar, cast

import apsw

from limpet import errors, limits
from limpet.text import words

T = TypeVar("T")
APPLICATION_ID = 0x4C696D70  # "Limp"
SCHEMA = 6  # the newest migration; a test keeps it equal to the files
OLDEST_SQLITE = (3, 51, 3)  # earlier builds can corrupt a file when two connections checkpoint at once
FORK_WAIT_SECONDS = 1.0  # for readers in other threads; a fork is not held up for ever
MIGRATIONS = os.path.join(os.path.dirname(__file__), "migrations")

_open: weakref.WeakSet[Database] = weakref.WeakSet()  # what a fork has to care for
_forking = threading.local()  # those that wait for the fork of this thread; others may be opened meanwhile


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
        # flock waits in line but knows no time-out, so a thread waits for us and we wait for the thread.
        outcome: list[bool] = []
        guard = threading.Lock()

        def wait() -> None:
            fcntl.flock(file, fcntl.LOCK_EX)
            with guard:
                if outcome:  # nobody wants it any more
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


class _Job:
    __slots__ = ("done", "durable", "error", "result", "work")

    def __init__(self, work: Callable[[apsw.Connection], Any], durable: bool) -> None:
        self.work = work
        self.durable = durable
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None


class Database:
    def __init__(self, path: str) -> None:
        if tuple(map(int, apsw.sqlite_lib_version().split("."))) < OLDEST_SQLITE:
            raise errors.sqlite_too_old(apsw.sqlite_lib_version())
        self.path = os.path.abspath(path)
        self._lock = WriteLock(self.path + ".lock", path)
        self._free: list[apsw.Connection] = []
        self._jobs: deque[_Job] = deque()
        self._turn = threading.Lock()
        self._made = 0  # connections, free or in use
        self._wal_pages = 0
        self._checkpoint_at = limits.WAL_CHECKPOINT_PAGES
        self._wrote = False
        self._closed = False
        _open.add(self)
        self._prepare()

    # --- opening ------------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        self._refuse_orphan_log()
        if not os.path.exists(self.path):
            self._create()
        con = self.take()
        try:
            version = self._identify(con)
            if version < SCHEMA:
                self._migrate(con)
        except apsw.Error as problem:
            raise self.translate(problem) from problem
        finally:
            self.give(con)

    def _refuse_orphan_log(self) -> None:
        """A log without its database holds work that SQLite would throw away on opening."""
        size = _size(self.path)
        if _size(self.path + "-wal") and not size:
            raise errors.not_a_store(self.path, "it is missing or empty while its log (-wal) still holds work")
        if size == 1:  # SQLite would take it for an empty file and write over it
            raise errors.not_a_store(self.path, "the file is not an SQLite database")

    def _create(self) -> None:
        """Make the file before SQLite does, so that it is private whatever the umask."""
        try:
            make_private_folder(os.path.dirname(self.path))
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            return  # another process was faster
        except OSError as problem:
            raise errors.store_read_only(self.path, problem.strerror or str(problem)) from problem

    def _identify(self, con: apsw.Connection) -> int:
        # The number of tables comes first: another process may make them between the two reads, and then names itself.
        tables = con.execute("SELECT count(*) FROM sqlite_schema").fetchall()[0][0]
        application, version = con.execute("SELECT * FROM pragma_application_id, pragma_user_version").fetchall()[0]
        if application == APPLICATION_ID and isinstance(version, int):
            if version > SCHEMA:
                raise errors.store_too_new(self.path, version, SCHEMA)
            return version
        if application or tables:
            raise errors.not_a_store(self.path, "it is an SQLite database of another program")
        return 0

    def _migrate(self, con: apsw.Connection) -> None:
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
            except BaseException:
                if con.in_transaction:  # a full disk has taken it back already
                    con.execute("ROLLBACK")
                raise
            self._wrote = True
        finally:
            self._lock.release()

    def _connect(self) -> apsw.Connection:
        try:
            con = apsw.Connection(self.path, flags=apsw.SQLITE_OPEN_READWRITE)
            con.set_busy_timeout(limits.SQLITE_BUSY_MS)
            con.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
            con.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
            # Without it SQLite prepares statements anew when other values are bound, also those of its index. There are
            # no statistics to look values up in, so the plan is the same each time: a quarter of a write for nothing.
            con.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            con.execute(
                "PRAGMA synchronous = FULL; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;"
                "PRAGMA temp_store = MEMORY; PRAGMA secure_delete = FAST;"
                f"PRAGMA journal_size_limit = {limits.WAL_KEEP_BYTES}"
            ).fetchall()
            con.create_scalar_function("fold", _fold, 1, deterministic=True)
            con.set_wal_hook(self._after_commit)  # also switches SQLite's own checkpoints off
        except apsw.Error as problem:
            raise self.translate(problem) from problem
        self._made += 1
        return con

    def _after_commit(self, con: apsw.Connection, name: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    # --- connections --------------------------------------------------------------------------------------------------

    def take(self) -> apsw.Connection:
        """A connection for this thread alone, until it is given back."""
        if self._closed:
            raise errors.store_gone(self.path, "it was closed")
        try:
            return self._free.pop()
        except IndexError:
            return self._connect()

    def give(self, con: apsw.Connection) -> None:
        if self._closed:
            con.close()
            self._made -= 1
        else:
            self._free.append(con)

    def before_fork(self) -> None:
        """Let no write be under way, and close every connection. Readers in other threads get a moment to finish."""
        self._turn.acquire()
        until = time.monotonic() + FORK_WAIT_SECONDS
        while self._made > len(self._free) and time.monotonic() < until:
            time.sleep(0.001)
        try:
            self._close_free()
        except errors.StoreProblem:  # its folder may be gone; no connection may be open on both sides all the same
            self._close_all()

    def after_fork_in_parent(self) -> None:
        self._turn.release()

    def after_fork_in_child(self) -> None:
        self._jobs = deque()  # those of the parent's threads, which do not exist here
        self._turn = threading.Lock()
        self._lock.forget()

    def rows(self, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """All rows of one read."""
        con = self.take()
        try:
            return cast(list[tuple[Any, ...]], con.execute(sql, values).fetchall())
        except (apsw.Error, UnicodeDecodeError) as problem:
            raise self.translate(problem) from problem
        finally:
            self.give(con)

    def read(self, work: Callable[[apsw.Connection], T]) -> T:
        """Several reads, each of which sees its own moment."""
        con = self.take()
        try:
            return work(con)
        except (apsw.Error, UnicodeDecodeError) as problem:
            raise self.translate(problem) from problem
        finally:
            self.give(con)

    def view(self, work: Callable[[apsw.Connection], T]) -> T:
        """Several reads that see one moment."""

        def together(con: apsw.Connection) -> T:
            con.execute("BEGIN")
            try:
                return work(con)
            finally:
                con.execute("COMMIT")

        return self.read(together)

    # --- writing ------------------------------------------------------------------------------------------------------

    def write(self, work: Callable[[apsw.Connection], T], *, durable: bool = True) -> T:
        """Run `work` in a transaction and return when it is on disk.

        What is not `durable` gets there with the next write that is; until then a power cut, and nothing less, takes it
        back whole.
        """
        job = _Job(work, durable)
        self._jobs.append(job)
        with self._turn:
            if not job.done:
                self._run([self._jobs.popleft() for _ in range(len(self._jobs))])
        if job.error is not None:
            raise job.error
        return cast(T, job.result)

    def _run(self, jobs: list[_Job]) -> None:
        con = None
        try:
            con = self.take()
            self._lock.acquire()
            try:
                if any(job.durable for job in jobs):
                    self._commit(con, jobs)
                else:
                    self._commit_lightly(con, jobs)
            finally:
                self._lock.release()
        except (apsw.Error, UnicodeDecodeError) as problem:
            self._discard(con)
            con = None
            self._fail(jobs, self.translate(problem), problem)
        except BaseException as problem:
            self._fail(jobs, problem, None)
            if not isinstance(problem, Exception):
                raise
        finally:
            for job in jobs:
                job.done = True
            if con is not None:
                self.give(con)

    def _discard(self, con: apsw.Connection | None) -> None:
        """After trouble with the file a connection is not used again: what it cached may not be what is on disk."""
        if con is not None:
            con.close()
            self._made -= 1

    def _commit(self, con: apsw.Connection, jobs: list[_Job]) -> None:
        con.execute("BEGIN IMMEDIATE")
        try:
            for job in jobs:
                self._attempt(con, job, alone=len(jobs) == 1)
            con.execute("COMMIT")
        except BaseException:
            if con.in_transaction:
                con.execute("ROLLBACK")
            raise
        self._wrote = True
        if self._wal_pages >= self._checkpoint_at:
            self._checkpoint(con)

    def _commit_lightly(self, con: apsw.Connection, jobs: list[_Job]) -> None:
        """Without a sync. In WAL mode this endangers nothing but the newest commits themselves."""
        con.execute("PRAGMA synchronous = NORMAL")
        try:
            self._commit(con, jobs)
        finally:
            con.execute("PRAGMA synchronous = FULL")

    def _checkpoint(self, con: apsw.Connection) -> None:
        """Fold the log into the database. What was committed is safe without it, so trouble here is for later."""
        self._checkpoint_at = self._wal_pages + limits.WAL_CHECKPOINT_PAGES
        try:
            pages, folded = con.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error:
            return
        if pages == folded:  # otherwise a reader still needs the log; try again when it has grown
            self._checkpoint_at = limits.WAL_CHECKPOINT_PAGES

    def rewrite(self) -> bool:
        """Write the whole file anew, without what is not used, and empty the log. False when a reader keeps the log."""
        with self._turn:
            con = self.take()
            try:
                self._lock.acquire()
                try:
                    # The copy is as large as the store: too large for the memory, where temporary things are otherwise.
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

    def _attempt(self, con: apsw.Connection, job: _Job, alone: bool) -> None:
        """One piece of work. What it raises is its own; trouble of the store itself goes up and fails the whole."""
        if alone:
            job.result = job.work(con)
            return
        con.execute("SAVEPOINT job")
        try:
            job.result = job.work(con)
        except apsw.Error:
            raise
        except UnicodeDecodeError as problem:  # one damaged entry is the trouble of the one who asked for it
            con.execute("ROLLBACK TO job")
            job.error = self.translate(problem)
        except Exception as problem:  # noqa: BLE001 - it belongs to the writer that waits for it, and is raised there
            con.execute("ROLLBACK TO job")
            job.error = problem
        con.execute("RELEASE job")

    def _fail(self, jobs: list[_Job], problem: BaseException, cause: BaseException | None) -> None:
        problem.__cause__ = cause
        for job in jobs:
            if job.error is None:
                job.error = problem

    def translate(self, problem: apsw.Error | UnicodeDecodeError) -> errors.StoreProblem:
        """SQLite's trouble as a problem of ours."""
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
        """Close everything. The last connection folds the log into the database, which wants the write lock."""
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
        while self._free:
            self._free.pop().close()
            self._made -= 1


def _before_fork() -> None:
    _forking.held = list(_open)
    for database in _forking.held:
        database.before_fork()


def _after_fork_in_parent() -> None:
    for database in _forking.held:
        database.after_fork_in_parent()


def _after_fork_in_child() -> None:
    for database in list(_open):
        database.after_fork_in_child()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


def _fold(*values: object) -> str:
    return words.fold(str(values[0]))


def _size(path: str) -> int:
    """Asked of the folder, not of the file: nobody but SQLite opens its files."""
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
    """The folder and those above it that are missing, each open to its owner alone whatever the umask."""
    if path and not os.path.isdir(path):
        make_private_folder(os.path.dirname(path))
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            return
        os.chmod(path, 0o700)
