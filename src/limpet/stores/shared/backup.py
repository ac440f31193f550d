"""Backups: all tenants and projects of a store as one file, and back.

A backup is an embedded store. That of an embedded store is a copy of its pages; that of any other store is a copy of
the rows of one snapshot with their checksums, and the indexes are rebuilt. So a backup of any store can be restored
into any store.

A backup is read again before it counts: it gets its name once every checksum in it was compared, and a damaged backup
is not restored. Vectors and the index of outputs are not copied; they are rebuilt when they are needed.

This module has what every store needs for that: the tables, how rows travel, and the files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Protocol

from limpet import errors
from limpet.model import Entry, Scope
from limpet.record import NamedTuple
from limpet.store import Progress, Restored
from limpet.stores.shared import chunks, rows
from limpet.stores.shared.call_log import COUNTS
from limpet.stores.shared.sql import Row

BATCH = 200  # rows in memory at once; a chunk of an output is the largest of them


class Table(NamedTuple):
    """The columns of a table that are copied, and in which order. `doc` numbers entries in order of creation."""

    name: str
    columns: str
    order: str

    @property
    def placeholders(self) -> str:
        return ", ".join("?" * len(self.columns.split(",")))


ENTRIES = Table("entries", f"tenant, project, {rows.FIELDS}", "tenant, project, doc")
TABLES = (
    Table("projects", "tenant, project, seq, clock", "tenant, project"),
    Table("tallies", "tenant, project, kind, session, tag, label, count", "tenant, project, kind, session, tag"),
    Table("events", f"tenant, project, {', '.join(rows.EVENT_FIELDS)}, detail, before", "tenant, project, seq"),
    Table("outputs", f"tenant, project, {chunks.FIELDS}", "tenant, project, id"),
    Table("output_chunks", "tenant, project, id, number, hash, body", "tenant, project, id, number"),
    Table("output_tombstones", "tenant, project, id, digest, gone_at, what, hash", "tenant, project, id"),
    Table("output_calls", "tenant, project, session, call, id, digest, at", "tenant, project, session, call"),
    Table("output_reads", "tenant, project, session, id, reads, at", "tenant, project, session, id"),
    Table(
        "output_savings",
        f"tenant, project, session, tool, tokenizer, {', '.join(COUNTS)}",
        "tenant, project, session, tool, tokenizer",
    ),
    Table("retries", "tenant, project, key, call, at, seqs, total, tags", "tenant, project, key"),
    Table("uses", "tenant, project, kind, key, what, count, at", "tenant, project, kind, key, what"),
)
# Rebuilt from the others: the index of words and tags, sketches, pieces of outputs, and vectors.
DERIVED = (
    *(
        "entry_tags",
        "terms",
        "terms_at",
        "indexed",
        "pieces",
        "sketches",
        "output_pieces",
        "output_terms",
        "output_terms_at",
    ),
    *("vectors", "vectors_waiting", "vector_models"),
)


class Source(Protocol):
    """A snapshot of a store."""

    def read(self, table: Table) -> Iterator[Row]: ...


class Target(Protocol):
    """A transaction on an empty store."""

    def add(self, table: Table, batch: list[Row]) -> None: ...

    def add_entries(self, batch: list[tuple[Row, Entry | None]]) -> None:
        """Entries, and their index. None: the entry is damaged, and copied as it is."""


def copy_rows(source: Source, target: Target, place: str, progress: Progress) -> Restored:
    counts: dict[str, int] = {}
    for table in (*TABLES, ENTRIES):
        counts[table.name] = 0
        for batch in _batches(source.read(table)):
            if table == ENTRIES:
                target.add_entries([(row, _entry(place, row)) for row in batch])
            else:
                target.add(table, batch)
            counts[table.name] += len(batch)
            progress(sum(counts.values()))
    return Restored(counts["projects"], counts["entries"], counts["events"], counts["outputs"])


def _entry(place: str, row: Row) -> Entry | None:
    try:
        return rows.to_entry(place, Scope(*row[:2]), row[2:])
    except errors.StoreDamaged:
        return None


def _batches(read: Iterable[Row]) -> Iterator[list[Row]]:
    remaining = iter(read)
    while batch := list(islice(remaining, BATCH)):
        yield batch


# --- files ------------------------------------------------------------------------------------------------------------


@contextmanager
def draft_of(target: str) -> Iterator[str]:
    """A temporary name beside a new file, for its content. `publish` renames it; otherwise it is removed."""
    target = os.path.abspath(target)
    if os.path.lexists(target):
        raise errors.target_exists(target)
    if not os.path.isdir(os.path.dirname(target)):
        raise errors.store_read_only(target, "there is no such folder")
    draft = f"{target}.{os.urandom(4).hex()}.part"
    try:
        yield draft
    except OSError as problem:
        raise errors.store_read_only(target, problem.strerror or str(problem)) from problem
    finally:
        remove_file(draft)


def remove_file(path: str) -> None:
    """Remove an embedded store, with its log, its shared memory and its lock."""
    for suffix in ("", "-wal", "-shm", ".lock", ".queue", ".reserve"):
        with suppress(OSError):
            os.unlink(path + suffix)


def publish(draft: str, target: str) -> None:
    """Give a draft its name, unless the name was taken meanwhile. Its content is on disk already: SQLite synced it."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise errors.target_exists(target) from None
    except OSError:  # a file system without hard links: a check before the rename is nearly as good
        if os.path.lexists(target):
            raise errors.target_exists(target) from None
        os.replace(draft, target)
    folder = os.open(os.path.dirname(target), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
