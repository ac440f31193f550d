"""The two stores that are compared: Limpet's, and the least an engineer would write by hand on the same SQLite.

The hand-written one is a plain table and an FTS5 table over it, in WAL mode with synchronous=FULL, one transaction an
add. It keeps no history, no checksums, no counts and no sessions, and it stems nothing: it is a floor, not a peer.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

import limpet
from bench import corpus
from bench.corpus import Note
from bench.measure import OUT

SESSION = "bench"
BEGAN = 1_700_000_000_000  # when the loaded notes were written, in milliseconds since 1970
SCHEMA = """
CREATE TABLE notes (id INTEGER PRIMARY KEY, content TEXT NOT NULL, tags TEXT NOT NULL, created_at INTEGER NOT NULL);
CREATE VIRTUAL TABLE notes_fts USING fts5(content, tags, content='notes', content_rowid='id');
CREATE TABLE pads (key TEXT PRIMARY KEY, content TEXT NOT NULL, version INTEGER NOT NULL, updated_at INTEGER NOT NULL);
"""
SEARCH = (
    "SELECT n.id, n.content, n.tags, n.created_at FROM notes_fts f JOIN notes n ON n.id = f.rowid "
    "WHERE notes_fts MATCH ? ORDER BY rank LIMIT 10"
)


class Raw:
    """The floor."""

    def __init__(self, path: Path, busy_ms: int = 0) -> None:
        fresh = not path.exists()
        self.con = apsw.Connection(str(path))
        self.con.set_busy_timeout(busy_ms)
        self.con.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL").fetchall()
        if fresh:
            self.con.execute(SCHEMA)

    def add(self, note: Note) -> int:
        execute = self.con.execute
        tags = " ".join(note.tags)
        execute("BEGIN IMMEDIATE")
        execute("INSERT INTO notes (content, tags, created_at) VALUES (?, ?, ?)", (note.content, tags, BEGAN))
        number = self.con.last_insert_rowid()
        execute("INSERT INTO notes_fts (rowid, content, tags) VALUES (?, ?, ?)", (number, note.content, tags))
        execute("COMMIT")
        return number

    def load(self, notes: Sequence[Note]) -> None:
        """Many notes in one transaction, numbered from 1."""
        rows = [(number, note.content, " ".join(note.tags)) for number, note in enumerate(notes, 1)]
        self.con.execute("BEGIN IMMEDIATE")
        self.con.executemany("INSERT INTO notes VALUES (?, ?, ?, 0)", rows)
        self.con.executemany("INSERT INTO notes_fts (rowid, content, tags) VALUES (?, ?, ?)", rows)
        self.con.executemany("INSERT INTO pads VALUES ('pad' || ?, ?, 1, 0)", [row[:2] for row in rows])
        self.con.execute("COMMIT")

    def search(self, match: str) -> list[tuple[Any, ...]]:
        return self.con.execute(SEARCH, (match,)).fetchall()

    def close(self) -> None:
        self.con.close()


def export_of(notes: Sequence[Note]) -> Iterator[str]:
    """An export of a project in which these notes were added one after another, for Limpet to import."""
    yield json.dumps({"limpet": 1, "project": "bench"})
    entry: dict[str, Any] = {"kind": "note", "session": SESSION, "done": False, "pinned": False, "origin": "agent"}
    for at, note in enumerate(notes):
        changing = {"key": key_of(at), "content": note.content, "tags": note.tags, "extra": {}, "version": 1}
        yield json.dumps({"entry": entry | changing | {"created_at": BEGAN + at, "updated_at": BEGAN + at}})
    event: dict[str, Any] = {"by": "agent/library", "operation": "add_note", "session": SESSION, "kind": "note"}
    for at in range(len(notes)):
        changing = {"seq": at + 1, "at": BEGAN + at, "key": key_of(at), "version": 1, "detail": {}, "before": None}
        yield json.dumps({"event": event | changing})


def key_of(number: int) -> str:
    """The id Limpet gives to the loaded note of this number, counted from 0."""
    return f"note_{BEGAN + number}"


def open_ours(path: Path) -> limpet.Limpet:
    return limpet.open(str(path), project="bench", session=SESSION)


def folder(name: str) -> Path:
    """An empty folder of our own."""
    place = OUT / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place


_loaded: dict[int, tuple[Path, Path]] = {}


def loaded(count: int) -> tuple[Path, Path]:
    """The files of both stores with so many notes in one session, made once a run. Ours first, then the floor's."""
    if count not in _loaded:
        place = folder(f"notes-{count}")
        ours, floor = place / "ours.db", place / "floor.db"
        notes = corpus.notes(count)
        with open_ours(ours) as hold:
            hold.import_lines(export_of(notes))
        raw = Raw(floor)
        raw.load(notes)
        raw.close()
        _loaded[count] = ours, floor
    return _loaded[count]
