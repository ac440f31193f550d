"""What a store notes around outputs: the last result of each call, the latest reads, and the savings. For every store.

All of it is written by `_jot`, which does not wait for the disk. Old notes go a few at a time, with the next call.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from limpet import limits
from limpet.model import Scope
from limpet.store import CallNote, ReadNote, Savings, SeenCall, to_json
from limpet.stores.shared.output_rows import Row
from limpet.stores.shared.outputs import OURS, TOUCH, Sql

T = TypeVar("T")
FORGET_MOST = 20  # old notes that one call removes, of each kind
COUNTS = ("calls", "kept", "repeats", "reads", "observed", "returned", "read_back")

# The texts of this module are put together from constants of ours only; every value is a parameter.
SEEN = f"SELECT id, digest, at FROM output_calls WHERE {OURS} AND session = ? AND call = ?"  # noqa: S608
# A row that may be there or not is made first and then changed. One statement for both (ON CONFLICT DO UPDATE) does not
# work where a table is spread over several servers.
NEW_CALL = (
    "INSERT INTO output_calls (tenant, project, session, call, id, digest, at) VALUES (?, ?, ?, ?, '', '', 0) "
    "ON CONFLICT DO NOTHING"
)
LAST_CALL = f"UPDATE output_calls SET id = ?, digest = ?, at = ? WHERE {OURS} AND session = ? AND call = ?"  # noqa: S608
READS = f"SELECT reads FROM output_reads WHERE {OURS} AND session = ? AND id = ?"  # noqa: S608
NEW_READS = (
    "INSERT INTO output_reads (tenant, project, session, id, reads, at) VALUES (?, ?, ?, ?, '[]', 0) "
    "ON CONFLICT DO NOTHING"
)
LAST_READS = f"UPDATE output_reads SET reads = ?, at = ? WHERE {OURS} AND session = ? AND id = ?"  # noqa: S608
NEW_SAVINGS = (
    f"INSERT INTO output_savings (tenant, project, session, tool, tokenizer, {', '.join(COUNTS)}) "  # noqa: S608
    f"VALUES (?, ?, ?, ?, ?{', 0' * len(COUNTS)}) ON CONFLICT DO NOTHING"
)
ADD = (
    f"UPDATE output_savings SET {', '.join(f'{name} = {name} + ?' for name in COUNTS)} "  # noqa: S608
    f"WHERE {OURS} AND session = ? AND tool = ? AND tokenizer = ?"
)
SAVINGS = f"SELECT session, tool, tokenizer, {', '.join(COUNTS)} FROM output_savings WHERE {OURS}"  # noqa: S608
FORGET = [
    f"DELETE FROM {table} WHERE {OURS} AND (session, {name}) IN "  # noqa: S608
    f"(SELECT session, {name} FROM {table} WHERE {OURS} AND at < ? ORDER BY at LIMIT {FORGET_MOST})"
    for table, name in (("output_calls", "call"), ("output_reads", "id"))
]


class Calls(ABC):
    @abstractmethod
    def _look(self, tenant: str, work: Callable[[Sql], T]) -> T:
        """Several reads of one moment, of what a tenant keeps."""

    @abstractmethod
    def _jot(self, tenant: str, work: Callable[[Sql], T]) -> T:
        """One transaction that does not wait for the disk."""

    def seen_call(self, scope: Scope, session: str, call: str) -> SeenCall | None:
        found = self._look(scope.tenant, lambda sql: sql.rows(SEEN, (*scope, session, call)))
        return SeenCall._make(found[0]) if found else None

    def note_call(self, scope: Scope, note: CallNote, forget_before: int) -> None:
        def work(sql: Sql) -> None:
            if note.call:
                call = (*scope, note.session, note.call)
                sql.rows(NEW_CALL, call)
                sql.rows(LAST_CALL, (note.id, note.digest, note.at, *call))
            counts = (1, int(note.kept), int(note.repeated), 0, note.observed, note.returned, 0)
            _add(sql, (*scope, note.session, note.tool, note.tokenizer), counts)
            for forget in FORGET:
                sql.rows(forget, (*scope, *scope, forget_before))

        self._jot(scope.tenant, work)

    def note_read(self, scope: Scope, note: ReadNote) -> tuple[Any, ...]:
        def work(sql: Sql) -> tuple[Any, ...]:
            sql.rows(TOUCH, (note.at, note.at, *scope, note.id))
            read = (*scope, note.session, note.id)
            sql.rows(NEW_READS, read)
            found = sql.rows(READS, read)
            earlier = json.loads(found[0][0])
            latest = to_json([*earlier, note.what][-limits.OUTPUT_READS_NOTED :])
            sql.rows(LAST_READS, (latest, note.at, *read))
            _add(sql, (*scope, note.session, note.tool, note.tokenizer), (0, 0, 0, 1, 0, 0, note.tokens))
            return tuple(earlier)

        return self._jot(scope.tenant, work)

    def savings(self, scope: Scope, session: str | None = None) -> tuple[Savings, ...]:
        which, values = ("", ()) if session is None else (" AND session = ?", (session,))
        sought = f"{SAVINGS}{which} ORDER BY session, tool, tokenizer"
        found = self._look(scope.tenant, lambda sql: sql.rows(sought, (*scope, *values)))
        return tuple(Savings._make(row) for row in found)


def _add(sql: Sql, name: Row, counts: Row) -> None:
    sql.rows(NEW_SAVINGS, name)
    sql.rows(ADD, (*counts, *name))
