"""One SQLite file, shared by many threads and many processes: opening, the write lock, and commits.

The ideas:

- *A fair lock in front of SQLite's own.* Writers of all processes queue at a side file (lock.py). SQLite's busy timeout
  can starve a writer and is the backstop. Checkpoints run under the lock.
- *Reads wait for no writer.* They take a connection of their own, and what a read writes down on the side gives up
  after a moment (`patient=False`).
- *Group commit.* A writer adds its job to a queue and waits for its turn. The thread whose turn it is runs all queued
  jobs in one transaction, so that ten waiting writers cost one fsync. Each job has its own savepoint. Where SQLite
  itself refuses one of them, each is run again in a transaction of its own, so the others are not affected.
- *A file that cannot be written can be read.* Where SQLite cannot make its log and shared memory, connections read
  without them, and are opened for each read, so that what another machine writes there is seen.
- *A full disk can be cleared.* A transaction that deletes something may use the space that reserve.py keeps.
- *A newer schema is noticed.* Where another connection has written, the schema's number is compared before the next
  write, and after a read.
- *Never open the database file from Python.* Closing such a handle would drop SQLite's locks of this process.
- *Connections are a small stack.* A single-threaded process opens one.
- *No connection survives a fork.* SQLite's record of the locks this process holds would be copied to the child, where
  it is wrong. So all connections are closed before a fork, and opened again on both sides when needed.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence

import apsw

from limpet import errors, limits, platform
from limpet.light import Any, TypeVar, cast
from limpet.model import DataFolder, Scope
from limpet.stores.shared.sql import Proof, Row
from limpet.stores.sqlite.connection import Connection, configure
from limpet.stores.sqlite.index import NewWords, WordIndex
from limpet.stores.sqlite.lock import WriteLock
from limpet.stores.sqlite.reserve import Reserve

T = TypeVar("T")
APPLICATION_ID = 0x4C696D70  # "Limp"
SCHEMA = 9  # the newest migration; a test keeps it equal to the files
OLDEST_SQLITE = (3, 51, 3)  # earlier builds can corrupt a file when two connections checkpoint at once
FORK_WAIT_SECONDS = 1.0  # for readers in other threads; a fork is not delayed longer
MIGRATIONS = os.path.join(os.path.dirname(__file__), "migrations")

_open: weakref.WeakSet[Database] = weakref.WeakSet()  # databases whose connections a fork must close
_forking = threading.local()  # the databases that the fork of this thread closed; others may be opened meanwhile


class _Job:
    __slots__ = ("done", "durable", "error", "repeatable", "result", "work")

    def __init__(self, work: Callable[[Connection], Any], durable: bool, repeatable: bool) -> None:
        self.work = work
        self.durable = durable
        self.repeatable = repeatable
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None


class Database:
    def __init__(self, path: str, folder: DataFolder | None = None, *, lock_wait: float | None = None) -> None:
        """Open the file, if it exists: the first write makes it. `folder` is where it belongs, if that can change."""
        if tuple(map(int, apsw.sqlite_lib_version().split("."))) < OLDEST_SQLITE:
            raise errors.sqlite_too_old(apsw.sqlite_lib_version())
        self._folder = folder
        self._missing = True  # there is no file; reads see an empty store
        self._opening = threading.RLock()  # held by the thread that looks for the file or makes it
        self._move(os.path.abspath(path))
        self._frees = False  # whether the transaction that failed last was deleting something
        self._lock_wait = limits.LOCK_WAIT_SECONDS if lock_wait is None else lock_wait
        self._free: list[Connection] = []
        self._empty: list[Connection] = []  # to empty stores in memory
        self._jobs: deque[_Job] = deque()
        self._turn = threading.Lock()
        self._connections = 0  # open ones, free or in use
        self._wal_pages = 0
        self._checkpoint_at = limits.WAL_CHECKPOINT_PAGES
        self._wrote = False
        self._closed = False
        self.unwritable = ""  # why the file cannot be written; it is read differently then
        _open.add(self)
        self._exists()

    # --- opening ------------------------------------------------------------------------------------------------------

    def _move(self, path: str) -> None:
        self.path = path
        self._file: tuple[int, int] | None = None  # that the connections have open
        self._lock = WriteLock(path, path)
        self._reserve = Reserve(path)

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
                if _size(self.path):  # an empty file is one that is being made, or could not be
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
        try:
            self._bring_up_to_date()
        except (errors.StoreReadOnly, errors.StoreFull) as problem:
            self._close_all()
            self._open_unwritable(problem)

    def _open_unwritable(self, problem: errors.StoreProblem) -> None:
        """Read what cannot be written."""
        if isinstance(problem, errors.StoreFull):
            if self._reserve.release():  # SQLite needs a little space even to read
                self._bring_up_to_date()
                return
            self.unwritable = "there is no space left"
        else:
            self.unwritable = why_unwritable(self.path)
        if not self.unwritable:
            raise problem
        try:
            self._bring_up_to_date()
        except (errors.StoreReadOnly, errors.StoreDamaged):
            self.unwritable = ""  # it cannot be read either; the next call tries again
            raise problem from None

    def _bring_up_to_date(self) -> None:
        con = self._connect()
        try:
            version = self._identify(con)
            if version < SCHEMA:
                if self.unwritable:
                    why = f"{self.unwritable}, and its schema {version} must be brought to {SCHEMA} before it is read"
                    raise errors.store_read_only(self.path, why)
                self._migrate(con)
            self._missing = False  # other threads may use it from here on
        except apsw.Error as problem:
            raise self.translate(problem, con) from problem
        finally:
            self.give(con)

    def _take_empty(self) -> Connection:
        """An empty store in memory, to read from while there is no file."""
        try:
            return self._empty.pop()
        except IndexError:
            con = Connection(":memory:")
            configure(con)
        for number in range(1, SCHEMA + 1):
            con.execute(migration(number))
        con.in_memory = True
        return con

    def in_memory(self, work: Callable[[Connection], T]) -> T:
        """Run work on an empty store in memory, and forget what it changes."""
        con = self._take_empty()
        try:
            con.execute("BEGIN")
            return work(con)
        finally:
            con.execute("ROLLBACK")
            self._empty.append(con)

    def _refuse_orphan_log(self) -> None:
        """A log without its database holds commits that SQLite would discard on opening."""
        log = _size(self.path + "-wal")  # before the file: a process that makes the store writes the log last
        size = _size(self.path)
        if log and not size:
            raise errors.not_a_store(self.path, "it is missing or empty while its log (-wal) still holds work")
        if size == 1:  # SQLite would treat it as an empty file and overwrite it
            raise errors.not_a_store(self.path, "the file is not an SQLite database")

    def _create(self) -> None:
        """Create the file before SQLite does, so that it is private under any umask."""
        try:
            platform.here.make_folder(os.path.dirname(self.path))
            os.close(platform.here.create_file(self.path))
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
        self._lock.acquire(self._lock_wait)
        try:
            con.execute("PRAGMA journal_mode = WAL").fetchall()
            con.execute("BEGIN IMMEDIATE")
            try:
                upgrade(con, self._identify(con))
                con.execute("COMMIT")
            finally:
                if con.in_transaction:  # it failed, and a full disk has not rolled it back already
                    con.execute("ROLLBACK")
            self._wrote = True
        finally:
            self._lock.release()

    def _connect(self) -> Connection:
        try:
            con = self._read_only_file() if self.unwritable else Connection(self.path, flags=apsw.SQLITE_OPEN_READWRITE)
            configure(con)
            con.set_wal_hook(self._after_commit)  # also disables SQLite's automatic checkpoints
        except apsw.Error as problem:
            self._refuse_another_file()
            raise self.translate(problem) from problem
        if self._file is None or self.unwritable:
            self._file = _file_at(self.path)
        try:
            self._refuse_another_file()
        except errors.StoreProblem:
            con.close()
            raise
        self._connections += 1
        return con

    def _refuse_another_file(self) -> None:
        """What is written to a file without a name is lost with the process, and another one that has the name now is
        another store. SQLite looks for this too, but not in WAL mode."""
        if self._file is not None and self._file != _file_at(self.path):
            raise errors.store_moved(self.path)

    def _read_only_file(self) -> Connection:
        """SQLite cannot create what it needs beside a file in WAL mode, so it has to do without."""
        if not _size(self.path + "-wal"):  # all of it is in the file itself
            address = f"{file_uri(self.path)}?immutable=1"
            return Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        if os.path.exists(self.path + "-shm"):  # a process that may write has it open, or left it behind
            return Connection(self.path, flags=apsw.SQLITE_OPEN_READONLY)
        # With the file to itself, SQLite keeps the index of the log in memory. There are no locks to respect.
        con = Connection(self.path, flags=apsw.SQLITE_OPEN_READONLY, vfs="unix-none")
        con.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
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
        elif self._closed or self.unwritable:
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
        self._close_free()

    def after_fork_in_parent(self) -> None:
        self._turn.release()

    def after_fork_in_child(self) -> None:
        self._jobs = deque()  # those of the parent's threads, which do not exist here
        self._turn = threading.Lock()
        self._opening = threading.RLock()
        self._lock.close()

    def rows(self, sql: str, values: tuple[Any, ...]) -> list[Row]:
        """All rows of one read."""
        return self.read(lambda con: con.rows(sql, values))

    def read(self, work: Callable[[Connection], T]) -> T:
        """Several reads, each of which sees its own moment."""
        con = self.take()
        try:
            result = work(con)
            if con.data_version() != con.checked_version:  # another connection had written
                self.check_schema(con)
            return result
        except (apsw.Error, UnicodeDecodeError) as problem:
            raise self._reason(con, problem) from problem
        finally:
            self.give(con)

    def snapshot(self, work: Callable[[Connection], T]) -> T:
        """Several reads that see the same moment."""

        def in_transaction(con: Connection) -> T:
            con.execute("BEGIN")
            try:
                return work(con)
            finally:
                con.execute("COMMIT")

        return self.read(in_transaction)

    def _reason(self, con: Connection, problem: apsw.Error | UnicodeDecodeError) -> errors.StoreProblem:
        """A table that is not there as expected may be one of a newer schema."""
        try:
            self.check_schema(con)
        except errors.StoreTooNew as too_new:
            return too_new
        except apsw.Error:
            pass
        return self.translate(problem)

    # --- writing ------------------------------------------------------------------------------------------------------

    def write(
        self, work: Callable[[Connection], T], *, durable: bool = True, repeatable: bool = True, patient: bool = True
    ) -> T:
        """Run `work` in a transaction and return when it is on disk.

        A write that is not `durable` is synced with the next one that is; until then a power cut, and nothing less, can
        lose it, as a unit. The work may run more than once, unless it is not `repeatable`. A write that is not
        `patient` belongs to a read, and waits for the lock for a moment at most.
        """
        if not durable and not self._exists():
            return self.in_memory(work)  # a note about a read makes no store
        if self._missing:
            self._make()
        if self.unwritable:
            raise errors.store_read_only(self.path, self.unwritable)
        job = _Job(work, durable, repeatable)
        seconds = self._lock_wait if patient else limits.SIDE_WAIT_SECONDS
        self._jobs.append(job)
        if not self._turn.acquire(timeout=seconds):
            if self._withdraw(job):
                raise errors.store_busy("another thread", self.path, seconds)
            self._turn.acquire()  # a transaction that is running includes the job
        try:
            if not job.done:
                self._lock_for(job, seconds)
                try:
                    jobs = [self._jobs.popleft() for _ in range(len(self._jobs))]
                    if len(jobs) == 1:
                        with _Transaction(self, durable) as con:
                            job.result = work(con)
                    else:
                        self._commit(jobs)
                except errors.StoreFull:
                    self._try_in_little_space(job)
                finally:
                    self._lock.release()
        finally:
            self._turn.release()
        if job.error is not None:
            raise job.error
        return cast(T, job.result)

    def _withdraw(self, job: _Job) -> bool:
        """Take a job back out of the queue. False when it is being run or done."""
        try:
            self._jobs.remove(job)
        except ValueError:
            return False
        return True

    def _lock_for(self, job: _Job, seconds: float) -> None:
        """Take the lock. Where it cannot be had, the other jobs try for themselves."""
        locked = False
        try:
            self._lock.acquire(seconds)
            locked = True
        finally:
            if not locked:
                self._withdraw(job)

    def _commit(self, jobs: list[_Job]) -> None:
        """Run several jobs. An error of a job is raised by the thread that waits for it."""
        together = all(job.repeatable for job in jobs)
        try:
            for group in [jobs] if together else [[job] for job in jobs]:
                self._attempt(group)
        finally:
            for job in jobs:
                if not job.done:  # the thread that was to run it was interrupted
                    job.error = errors.store_gone(self.path, "the write was interrupted")
                    job.done = True

    def _attempt(self, jobs: list[_Job]) -> None:
        """Run jobs in one transaction. Where the store refuses it, each job gets one of its own."""
        try:
            try:
                with _Transaction(self, any(job.durable for job in jobs)) as con:
                    self._run_each(con, jobs)
            except errors.StoreFull:
                if len(jobs) > 1:
                    raise
                self._try_in_little_space(jobs[0])
        except Exception as problem:  # noqa: BLE001 - the job's own thread raises it
            if len(jobs) > 1 and isinstance(problem, errors.StoreProblem):
                for job in jobs:
                    job.result = job.error = None
                    self._attempt([job])
                return
            for job in jobs:
                job.error = problem
        for job in jobs:
            job.done = True

    def _try_in_little_space(self, job: _Job) -> None:
        """Copy the log into the database, after which the log takes no space. That needs space itself: the reserve's.

        Then one more attempt. A transaction that deletes something may have what was reserved, others have the rest.
        """
        frees, size = self._frees, self._reserve.release()
        self._empty_log()
        room = self._reserve.keep_again(size) if not (frees and job.repeatable) else True
        if not (room and job.repeatable):
            raise errors.store_full(self.path)
        try:
            with _Transaction(self, job.durable) as con:
                job.result = job.work(con)
        finally:
            if frees:
                self._empty_log()
                self._reserve.keep_again(size or limits.RESERVE_BYTES)

    def _empty_log(self) -> None:
        con = self.take()
        try:
            con.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error:
            pass  # a reader needs the log, or there is no room for that either
        finally:
            self.give(con)

    def begin(self, con: Connection, durable: bool) -> None:
        self._refuse_another_file()
        if not durable:  # in WAL mode this endangers nothing but the newest commits
            con.execute("PRAGMA synchronous = NORMAL")
        con.execute("BEGIN IMMEDIATE")
        con.frees = False
        if con.data_version() != con.checked_version:
            self.check_schema(con)

    def commit(self, con: Connection) -> None:
        is_first = not self._reserve.exists
        if not con.frees and self._reserve.is_scarce() and self._reserve.would_shrink(*self._growth(con)):
            raise apsw.FullError("what is left is kept for deleting")
        con.execute("COMMIT")
        con.checked_version = con.data_version()
        self._wrote = True
        if is_first:
            self._reserve.keep()
            self._checkpoint_at = self._reserve.log_pages()
        if self._wal_pages >= self._checkpoint_at:
            self._checkpoint(con)

    def _growth(self, con: Connection) -> tuple[int, int]:
        """How many bytes longer the database gets when the log is copied into it, and how long the log is."""
        ((pages,),) = con.rows("PRAGMA page_count")
        ((size,),) = con.rows("PRAGMA page_size")
        return max(0, pages * size - _size(self.path)), _size(f"{self.path}-wal")

    def end(self, con: Connection, durable: bool, problem: BaseException | None) -> None:
        """Leave no transaction open and give the connection back; raise the StoreProblem for an error of SQLite."""
        broken = isinstance(problem, (apsw.Error, UnicodeDecodeError))
        try:
            if con.in_transaction:
                con.execute("ROLLBACK")
            if not durable:
                con.execute("PRAGMA synchronous = FULL")
        except apsw.Error:
            broken = True
        if not broken:
            return self.give(con)
        self._frees = con.frees
        reason = self.translate(problem, con) if isinstance(problem, (apsw.Error, UnicodeDecodeError)) else None
        self._discard(con)
        if reason is not None:
            raise reason from problem
        return None

    def check_schema(self, con: Connection) -> None:
        """Refuse a schema that a newer version has brought in since this process opened the store."""
        ((version,),) = con.rows("PRAGMA user_version")
        if int(version) > SCHEMA:
            raise errors.store_too_new(self.path, version, SCHEMA)
        con.checked_version = con.data_version()

    def _run_each(self, con: Connection, jobs: list[_Job]) -> None:
        """Several jobs, each in a savepoint. An error of a job is its own; an error of SQLite ends the transaction."""
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
        self._checkpoint_at = self._wal_pages + self._reserve.log_pages()
        try:
            pages, copied = con.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error:
            return
        if pages == copied:  # otherwise a reader still needs the log; try again when it has grown
            self._checkpoint_at = self._reserve.log_pages()

    def rewrite(self) -> bool:
        """Rewrite the file without its unused pages, and truncate the log. False when a reader still needs the log."""
        with self._turn:
            con = self.take()
            try:
                self._lock.acquire(self._lock_wait)
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

    def translate(self, problem: apsw.Error | UnicodeDecodeError, con: Connection | None = None) -> errors.StoreProblem:
        """The StoreProblem for an error of SQLite, on this connection."""
        why = "it holds text that is not UTF-8" if isinstance(problem, UnicodeDecodeError) else str(problem)
        if isinstance(problem, apsw.NotADBError):
            return errors.not_a_store(self.path, "the file is not an SQLite database")
        if isinstance(problem, apsw.FullError) or _no_space(problem, con):
            return errors.store_full(self.path)
        if isinstance(problem, apsw.CantOpenError) and platform.no_descriptors():
            return errors.no_descriptors(self.path)
        if isinstance(problem, (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError)):
            return errors.store_read_only(self.path, why)
        if isinstance(problem, (apsw.BusyError, apsw.LockedError)):
            return errors.store_busy("another program", self.path, limits.SQLITE_BUSY_MS / 1000)
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
        try:
            self._lock.acquire(limits.CLOSE_WAIT_SECONDS)
        except errors.StoreProblem:  # the log stays for the next process; nothing in it is lost
            for con in self._free:
                con.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            return self._close_all()
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
    _forking.databases = sorted(_open, key=id)  # two threads that fork at once wait in the same order
    for database in _forking.databases:
        database.before_fork()


def _after_fork_in_parent() -> None:
    for database in _forking.databases:
        database.after_fork_in_parent()


def _after_fork_in_child() -> None:
    for database in list(_open):
        database.after_fork_in_child()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


class _Transaction:
    """A transaction that commits, while the lock is held. Not a generator: those take longer than the rest of it."""

    __slots__ = ("_con", "_db", "_durable")

    def __init__(self, db: Database, durable: bool) -> None:
        self._db = db
        self._durable = durable
        self._con = db.take()

    def __enter__(self) -> Connection:
        try:
            self._db.begin(self._con, self._durable)
        except (apsw.Error, errors.StoreProblem) as problem:
            self._db.end(self._con, self._durable, problem)
            raise
        return self._con

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, _: object) -> None:
        try:
            if problem is None:
                self._db.commit(self._con)
        except apsw.Error as refused:
            problem = refused
        self._db.end(self._con, self._durable, problem)


class PrivateCopy(Database):
    """A copy that belongs to one connection, which reads it. Messages name what it was copied from."""

    def __init__(self, con: Connection, original: str) -> None:
        self.path = original
        self._con = con
        version = self._identify(con)
        if version < SCHEMA:
            con.execute("BEGIN")
            upgrade(con, version)
            con.execute("COMMIT")
        con.execute("BEGIN")
        WordIndex().catch_up(con, NewWords())
        con.execute("COMMIT")

    def take(self) -> Connection:
        return self._con

    def give(self, con: Connection) -> None:
        """There is no other."""

    def close(self) -> None:
        self._con.close()


class SqliteTransactions:
    """The database as the parts that both stores share see it."""

    def __init__(self, db: Database) -> None:
        self._db = db

    @property
    def place(self) -> str:
        return self._db.path

    def rows(self, tenant: str, sql: str, values: Sequence[object]) -> list[Row]:
        return self._db.rows(sql, tuple(values))

    def replica_rows(self, scope: Scope, sql: str, values: Sequence[object]) -> list[Row]:
        return self._db.rows(sql, tuple(values))

    def snapshot(self, tenant: str, work: Callable[[Connection], T]) -> T:
        return self._db.snapshot(work)

    def write(
        self,
        scope: Scope,
        work: Callable[[Connection], tuple[T, Proof]],
        *,
        repeatable: bool = True,
        patient: bool = True,
    ) -> T:
        return self._db.write(lambda con: work(con)[0], repeatable=repeatable, patient=patient)

    def write_soon(
        self, scope: Scope, work: Callable[[Connection], T], *, alone: bool = False, patient: bool = True
    ) -> T:
        return self._db.write(work, durable=False, patient=patient)


def _no_space(problem: apsw.Error | UnicodeDecodeError, con: Connection | None) -> bool:
    """An error of a file whose cause is a full disk: a quota, or no room for the memory that processes share."""
    if not isinstance(problem, apsw.IOError):
        return False
    quota = con is not None and con.system_errno in platform.NO_SPACE
    return quota or getattr(problem, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE


def why_unwritable(path: str) -> str:
    """Why a file, or the folder that SQLite needs beside it, cannot be written. Empty when it can."""
    for place, what in ((path, "the file"), (os.path.dirname(path), "its folder")):
        try:
            if os.statvfs(place).f_flag & os.ST_RDONLY:
                return "its file system is read-only"
        except OSError:
            pass
        if not os.access(place, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            return f"you may not write to {what}"
    return ""


def _size(path: str) -> int:
    """By stat, which does not open the file."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _file_at(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def upgrade(con: Connection, version: int) -> None:
    """Bring the tables from a version to the newest, inside a transaction."""
    for number in range(version + 1, SCHEMA + 1):
        con.execute(migration(number))
    con.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    con.execute(f"PRAGMA user_version = {SCHEMA}")


def migration(number: int) -> str:
    """The text of a migration."""
    (name,) = [name for name in os.listdir(MIGRATIONS) if name.startswith(f"{number:04d}_")]
    with open(os.path.join(MIGRATIONS, name), encoding="utf-8") as file:
        return file.read()


def file_uri(path: str) -> str:
    """A path as SQLite takes it with parameters behind it."""
    return "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
