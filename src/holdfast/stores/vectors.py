"""The vectors of a store: what texts are about, made after they are written. Every method, once for all stores.

A text that is new or changed stands in `vectors_waiting` from the transaction that wrote it until its vector is kept,
so no crash in between loses one. Making vectors is done outside of any transaction: nobody who writes waits for it.
What was written anew in the meantime still waits afterwards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from holdfast.model import Scope
from holdfast.stores import rows
from holdfast.stores.outputs import OURS, Sql
from holdfast.stores.rows import E_FIELDS
from holdfast.vectors import Unmeant, Vector

T = TypeVar("T")
BATCH = 400  # vectors that are written in one transaction: some milliseconds

# The texts of this module are put together from constants of ours only; every value is a parameter.
MODEL = f"SELECT model FROM vector_models WHERE {OURS}"  # noqa: S608
NEW_MODEL = "INSERT INTO vector_models (tenant, project, model, last) VALUES (?, ?, ?, 0) ON CONFLICT DO NOTHING"
OTHER_MODEL = f"UPDATE vector_models SET model = ? WHERE {OURS}"  # noqa: S608
NEXT = f"UPDATE vector_models SET last = last + 1 WHERE {OURS} AND model = ? RETURNING last"  # noqa: S608
VECTORS = f"SELECT number, doc, body FROM vectors WHERE {OURS} AND number > ? ORDER BY number, doc"  # noqa: S608
NEW_VECTOR = "INSERT INTO vectors (tenant, project, number, doc, body) VALUES (?, ?, ?, ?, ?)"
NO_VECTOR = f"DELETE FROM vectors WHERE {OURS} AND doc = ?"  # noqa: S608
NO_LONGER = f"DELETE FROM vectors_waiting WHERE {OURS} AND doc = ?"  # noqa: S608


class Vectors(ABC):
    place: str
    doc_column: str  # of `entries`: the number of a text

    @abstractmethod
    def _look(self, tenant: str, work: Callable[[Sql], T]) -> T:
        """Several reads of one moment, of what a tenant keeps."""

    @abstractmethod
    def _jot_alone(self, scope: Scope, work: Callable[[Sql], T]) -> T:
        """One transaction, alone in its project, that does not wait for the disk."""

    @property
    def _waiting(self) -> str:
        one = f"e.tenant = w.tenant AND e.project = w.project AND e.{self.doc_column} = w.doc"
        return f"FROM vectors_waiting w JOIN entries e ON {one}"

    def without_vector(self, scope: Scope, model: str, most: int) -> tuple[Unmeant, ...]:
        if self._look(scope.tenant, lambda sql: sql.rows(MODEL, scope)) != [(model,)]:
            self._jot_alone(scope, lambda sql: self._begin_anew(sql, scope, model))
        waiting = (
            f"SELECT w.doc, e.hash, {E_FIELDS} {self._waiting} "
            "WHERE w.tenant = ? AND w.project = ? ORDER BY w.doc DESC LIMIT ?"
        )
        found = self._look(scope.tenant, lambda sql: sql.rows(waiting, (*scope, most)))
        return tuple(
            Unmeant(doc, bytes(hash), rows.indexed_text(rows.to_entry(self.place, scope, tuple(row))))
            for doc, hash, *row in found
        )

    def _begin_anew(self, sql: Sql, scope: Scope, model: str) -> None:
        sql.rows(f"DELETE FROM vectors WHERE {OURS}", scope)  # noqa: S608
        all_texts = f"SELECT tenant, project, {self.doc_column} FROM entries WHERE {OURS} AND content <> ''"  # noqa: S608
        sql.rows(f"INSERT INTO vectors_waiting (tenant, project, doc) {all_texts} ON CONFLICT DO NOTHING", scope)
        sql.rows(NEW_MODEL, (*scope, model))
        sql.rows(OTHER_MODEL, (model, *scope))

    def keep_vectors(self, scope: Scope, model: str, made: Sequence[tuple[Unmeant, bytes]]) -> int:
        kept = 0
        made = sorted(made)  # in the order of their keys, so that the pages of table and index are filled
        for at in range(0, len(made), BATCH):
            batch = made[at : at + BATCH]
            kept += self._jot_alone(scope, partial(self._keep_some, scope=scope, model=model, made=batch))
        return kept

    def _keep_some(self, sql: Sql, scope: Scope, model: str, made: Sequence[tuple[Unmeant, bytes]]) -> int:
        """Keep those whose texts are still the same and still wait."""
        numbers = sql.rows(NEXT, (*scope, model))
        if not numbers:
            return 0  # somebody else began anew with another model
        signs = ", ".join("?" * len(made))
        same = f"SELECT w.doc, e.hash {self._waiting} WHERE w.tenant = ? AND w.project = ? AND w.doc IN ({signs})"
        found = {(doc, bytes(hash)) for doc, hash in sql.rows(same, (*scope, *(text.doc for text, _ in made)))}
        fit = [(*scope, *numbers[0], text.doc, body) for text, body in made if (text.doc, text.hash) in found]
        sql.many(NO_LONGER, [(*scope, row[3]) for row in fit])
        sql.many(NO_VECTOR, [(*scope, row[3]) for row in fit])  # of a text that had the number before, if any
        sql.many(NEW_VECTOR, fit)
        return len(fit)

    def _look_near(self, scope: Scope, work: Callable[[Sql], T]) -> T:
        """The same, of a project, by whoever has it."""
        return self._look(scope.tenant, work)

    def vectors(self, scope: Scope, after: int) -> list[Vector]:
        return [Vector(*row) for row in self._look_near(scope, lambda sql: sql.rows(VECTORS, (*scope, after)))]
