"""What a store notes around outputs: the last result of each call, the latest reads, and the savings. For every store.

All of it is written by `_jot`, which does not wait for the disk. Old notes go a few at a time, with the next call.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from holdfast import limits
from holdfast.model import Scope
from holdfast.store import CallNote, ReadNote, Savings, SeenCall, to_json
from holdfast.stores.outputs import OURS, TOUCH, Sql

T = TypeVar("T")
FORGET_MOST = 20  # old notes that one call removes, of each kind
COUNTS = ("calls", "kept", "repeats", "reads", "observed", "returned", "read_back")

# The texts of this module are put together from constants of ours only; every value is a parameter.
SEEN = f"SELECT id, digest, at FROM output_calls WHERE {OURS} AND session = ? AND call = ?"  # noqa: S608
LAST_CALL = (
    "INSERT INTO output_calls (tenant, project, session, call, id, digest, at) VALUES (?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (tenant, project, session, call) DO UPDATE "
    "SET id = excluded.id, digest = excluded.digest, at = excluded.at"
)
READS = f"SELECT reads FROM output_reads WHERE {OURS} AND session = ? AND id = ?"  # noqa: S608
LAST_READS = (
    "INSERT INTO output_reads (tenant, project, session, id, reads, at) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (tenant, project, session, id) DO UPDATE SET reads = excluded.reads, at = excluded.at"
)
ADD = (
    f"INSERT INTO output_savings (tenant, project, session, tool, tokenizer, {', '.join(COUNTS)}) "  # noqa: S608
    f"VALUES (?, ?, ?, ?, ?{', ?' * len(COUNTS)}) "
    "ON CONFLICT (tenant, project, session, tool, tokenizer) DO UPDATE SET "
    + ", ".join(f"{name} = output_savings.{name} + excluded.{name}" for name in COUNTS)
)
SAVINGS = f"SELECT session, tool, tokenizer, {', '.join(COUNTS)} FROM output_savings WHERE {OURS}"  # noqa: S608
FORGET = [
    f"DELETE FROM {table} WHERE {OURS} AND (session, {name}) IN "  # noqa: S608
    f"(SELECT session, {name} FROM {table} WHERE {OURS} AND at < ? ORDER BY at LIMIT {FORGET_MOST})"
    for table, name in (("output_calls", "call"), ("output_reads", "id"))
]


class Calls(ABC):
    @abstractmethod
    def _look(self, work: Callable[[Sql], T]) -> T:
        """Several reads of one moment."""

    @abstractmethod
    def _jot(self, work: Callable[[Sql], T]) -> T:
        """One transaction that does not wait for the disk."""

    def seen_call(self, scope: Scope, session: str, call: str) -> SeenCall | None:
        found = self._look(lambda sql: sql.rows(SEEN, (*scope, session, call)))
        return SeenCall._make(found[0]) if found else None

    def note_call(self, scope: Scope, note: CallNote, forget_before: int) -> None:
        def work(sql: Sql) -> None:
            if note.call:
                sql.rows(LAST_CALL, (*scope, note.session, note.call, note.id, note.digest, note.at))
            counts = (1, int(note.kept), int(note.repeated), 0, note.observed, note.returned, 0)
            sql.rows(ADD, (*scope, note.session, note.tool, note.tokenizer, *counts))
            for forget in FORGET:
                sql.rows(forget, (*scope, *scope, forget_before))

        self._jot(work)

    def note_read(self, scope: Scope, note: ReadNote) -> tuple[Any, ...]:
        def work(sql: Sql) -> tuple[Any, ...]:
            sql.rows(TOUCH, (note.at, note.at, *scope, note.id))
            found = sql.rows(READS, (*scope, note.session, note.id))
            earlier = json.loads(found[0][0]) if found else []
            latest = to_json([*earlier, note.what][-limits.OUTPUT_READS_NOTED :])
            sql.rows(LAST_READS, (*scope, note.session, note.id, latest, note.at))
            sql.rows(ADD, (*scope, note.session, note.tool, note.tokenizer, 0, 0, 0, 1, 0, 0, note.tokens))
            return tuple(earlier)

        return self._jot(work)

    def savings(self, scope: Scope, session: str | None = None) -> tuple[Savings, ...]:
        which, values = ("", ()) if session is None else (" AND session = ?", (session,))
        sought = f"{SAVINGS}{which} ORDER BY session, tool, tokenizer"
        found = self._look(lambda sql: sql.rows(sought, (*scope, *values)))
        return tuple(Savings._make(row) for row in found)
