"""A whole store as one file and back: every tenant, every project, all that was entrusted to it and all that is noted.

A backup is a store: an SQLite file that the embedded store opens. Of such a store it is a copy of its pages; of any
other the rows are copied, as they all were at one moment and with the checksums they had, and indexes are made anew.
So a backup of either kind of store can be put into either kind.

What is written is read again before it counts: a backup gets its name when every checksum in it was compared, and one
that is damaged is not put back. Vectors and the index of outputs are not copied; they are made when somebody asks.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import NamedTuple, Protocol
from urllib.parse import quote

import apsw

from limpet import errors
from limpet.model import Entry, Scope
from limpet.store import Finding, Store
from limpet.stores.shared import output_rows, rows
from limpet.stores.shared.call_log import COUNTS
from limpet.stores.shared.rows import Row
from limpet.stores.sqlite.database import APPLICATION_ID
from limpet.stores.sqlite.index import Fresh
from limpet.stores.sqlite.store import SqliteStore
from limpet.stores.sqlite.vectors import wait_for_vector

BATCH = 200  # rows on their way at once; a chunk of an output is the largest of them
Told = Callable[[int], None]  # how many rows are copied by now


class Table(NamedTuple):
    """What is copied of a table, and in which order. `doc` is the number of an entry, in the order they came."""

    name: str
    columns: str
    order: str

    @property
    def marks(self) -> str:
        return ", ".join("?" * len(self.columns.split(",")))


ENTRIES = Table("entries", f"tenant, project, {rows.FIELDS}", "tenant, project, doc")
TABLES = (
    Table("projects", "tenant, project, seq, clock", "tenant, project"),
    Table("tallies", "tenant, project, kind, session, tag, label, count", "tenant, project, kind, session, tag"),
    Table("events", f"tenant, project, {', '.join(rows.EVENT_FIELDS)}, detail, before", "tenant, project, seq"),
    Table("outputs", f"tenant, project, {output_rows.FIELDS}", "tenant, project, id"),
    Table("output_chunks", "tenant, project, id, number, hash, body", "tenant, project, id, number"),
    Table("output_tombstones", "tenant, project, id, digest, gone_at, what, hash", "tenant, project, id"),
    Table("output_calls", "tenant, project, session, call, id, digest, at", "tenant, project, session, call"),
    Table("output_reads", "tenant, project, session, id, reads, at", "tenant, project, session, id"),
    Table(
        "output_savings",
        f"tenant, project, session, tool, tokenizer, {', '.join(COUNTS)}",
        "tenant, project, session, tool, tokenizer",
    ),
)
# Made from the others: an index of words and tags, pieces of outputs, and vectors.
DERIVED = (
    *("entry_tags", "terms", "terms_at", "pieces", "output_pieces", "output_terms", "output_terms_at"),
    *("vectors", "vectors_waiting", "vector_models"),
)


class Source(Protocol):
    """A moment of a store."""

    def read(self, table: Table) -> Iterator[Row]: ...


class Target(Protocol):
    """A transaction on an empty store."""

    def add(self, table: Table, batch: list[Row]) -> None: ...

    def put(self, batch: list[tuple[Row, Entry | None]]) -> None:
        """Entries with what is found by. None: it is damaged, and kept as it is."""


class Copied(NamedTuple):
    """How many there were of each."""

    projects: int
    entries: int
    changes: int
    outputs: int


def backup(store: Store, target: str, told: Told = lambda count: None) -> tuple[Finding, ...]:
    """A copy of a moment, at a path where nothing is yet. What is found in it comes back: all well, or what is damaged
    in the store itself and so in its copy, which is kept nevertheless."""
    target = os.path.abspath(target)
    if os.path.lexists(target):
        raise errors.target_exists(target)
    if not os.path.isdir(os.path.dirname(target)):
        raise errors.store_read_only(target, "there is no such folder")
    with _draft(target) as draft:
        if isinstance(store, SqliteStore):
            store.backup(draft)
        else:
            _rows_into(store, draft, told)
        copy = SqliteStore(draft)
        try:
            found = copy.check()
        finally:
            copy.close()
        _put_in_place(draft, target)
    return found


def restore(store: Store, source: str, told: Told = lambda count: None) -> Copied:
    """Put a backup into an empty store: all of it, or nothing. The backup itself is not touched."""
    with tempfile.TemporaryDirectory(prefix="limpet-") as folder:
        # A copy, because an older one is brought up to the newest schema before it is read.
        draft = os.path.join(folder, "backup.db")
        _copy_file(source, draft)
        copy = SqliteStore(draft)
        try:
            damage = [finding for finding in copy.check() if not finding.ok]
            if damage:
                raise errors.backup_damaged(source, "; ".join(f"{one.name}: {one.detail}" for one in damage))
            return copy._db.view(lambda con: _restored(store, SqliteSource(con), told))
        finally:
            copy.close()


def _restored(store: Store, source: Source, told: Told) -> Copied:
    if isinstance(store, SqliteStore):
        return store._db.write(lambda con: _copy(source, _emptied(store, con), store.place, told))
    from limpet.stores.postgres.backup import restored

    return restored(store, lambda target: _copy(source, target, store.place, told))


def _rows_into(store: Store, draft: str, told: Told) -> None:
    from limpet.stores.postgres.backup import moment

    def work(source: Source) -> None:
        _forget(draft)  # a connection that broke begins again, with another moment
        copy = SqliteStore(draft)
        try:
            copy._db.write(lambda con: _copy(source, SqliteTarget(copy, con), store.place, told))
        finally:
            copy.close()

    moment(store, work)


def _copy(source: Source, target: Target, place: str, told: Told) -> Copied:
    counts: dict[str, int] = {}
    for table in (*TABLES, ENTRIES):
        counts[table.name] = 0
        for batch in _batches(source.read(table)):
            if table == ENTRIES:
                target.put([(row, _entry(place, row)) for row in batch])
            else:
                target.add(table, batch)
            counts[table.name] += len(batch)
            told(sum(counts.values()))
    return Copied(counts["projects"], counts["entries"], counts["events"], counts["outputs"])


def _entry(place: str, row: Row) -> Entry | None:
    try:
        return rows.to_entry(place, Scope(*row[:2]), row[2:])
    except errors.StoreDamaged:
        return None


def _batches(found: Iterable[Row]) -> Iterator[list[Row]]:
    waiting = iter(found)
    while batch := list(islice(waiting, BATCH)):
        yield batch


# --- the embedded store -----------------------------------------------------------------------------------------------


class SqliteSource:
    def __init__(self, con: apsw.Connection) -> None:
        self._con = con

    def read(self, table: Table) -> Iterator[Row]:
        # Entries as they lie there: within a project this is the same order, and nothing has to be sorted.
        order = "rowid" if table == ENTRIES else table.order
        yield from self._con.execute(f"SELECT {table.columns} FROM {table.name} ORDER BY {order}")  # noqa: S608 - constants


class SqliteTarget:
    def __init__(self, store: SqliteStore, con: apsw.Connection) -> None:
        self._store = store
        self._con = con

    def add(self, table: Table, batch: list[Row]) -> None:
        sql = f"INSERT INTO {table.name} ({table.columns}) VALUES ({table.marks})"  # noqa: S608 - constants of ours
        self._con.executemany(sql, batch)

    def put(self, batch: list[tuple[Row, Entry | None]]) -> None:
        fresh = Fresh()
        for row, entry in batch:
            self.add(ENTRIES, [row])
            doc = self._con.last_insert_rowid()
            if entry is not None:
                self._store._index.update(self._con, doc, None, entry, fresh)
                wait_for_vector(self._con, Scope(*row[:2]), doc, None, entry)


def _emptied(store: SqliteStore, con: apsw.Connection) -> SqliteTarget:
    """Refuses a store that holds something. Inside the transaction, so that nobody puts something in meanwhile."""
    if con.execute("SELECT 1 FROM projects LIMIT 1").fetchall():
        raise errors.store_not_empty(store.place)
    return SqliteTarget(store, con)


# --- files ------------------------------------------------------------------------------------------------------------


@contextmanager
def _draft(target: str) -> Iterator[str]:
    """A name beside the target's, which nothing is left of afterwards."""
    draft = f"{target}.{os.urandom(4).hex()}.part"
    try:
        yield draft
    except OSError as problem:
        raise errors.store_read_only(target, problem.strerror or str(problem)) from problem
    finally:
        _forget(draft)


def _forget(path: str) -> None:
    for end in ("", "-wal", "-shm", ".lock"):
        with suppress(OSError):
            os.unlink(path + end)


def _put_in_place(draft: str, target: str) -> None:
    """Give it its name, unless somebody else has taken that meanwhile. Its bytes are on disk: SQLite saw to that."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise errors.target_exists(target) from None
    except OSError:  # a file system without hard links; look first, which is nearly as good
        if os.path.lexists(target):
            raise errors.target_exists(target) from None
        os.replace(draft, target)
    folder = os.open(os.path.dirname(target), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _copy_file(source: str, draft: str) -> None:
    """The pages of an SQLite file, read without changing anything beside it."""
    if not os.path.isfile(source):
        raise errors.backup_unreadable(source, "there is no such file")
    log = source + "-wal"
    # A file at rest may lie where nothing can be written. One with a log is somebody's store, and the log part of it.
    mode = "mode=ro" if os.path.exists(log) and os.path.getsize(log) else "mode=ro&immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    try:
        pages = apsw.Connection(f"file:{quote(os.path.abspath(source))}?{mode}", flags=flags)
        try:
            copy = apsw.Connection(draft)
            with copy.backup("main", pages, "main") as running:
                running.step()  # all pages in one step: one consistent moment
            ours = copy.execute("PRAGMA application_id").fetchall() == [(APPLICATION_ID,)]
            copy.close()
        finally:
            pages.close()
    except apsw.NotADBError:
        raise errors.backup_unreadable(source, "it is not an SQLite database") from None
    except apsw.Error as problem:
        if isinstance(problem, apsw.FullError):
            raise errors.store_full(os.path.dirname(draft)) from problem
        raise errors.backup_unreadable(source, str(problem)) from problem
    if not ours:  # an empty file too, which would be taken for a new store
        raise errors.backup_unreadable(source, "it is not a Limpet store")
