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

from limpet.model import Scope
from limpet.stores.shared import rows
from limpet.stores.shared.outputs import OURS, Sql
from limpet.stores.shared.rows import E_FIELDS, Row
from limpet.vectors import Unmeant, Vector

T = TypeVar("T")
BATCH = 400  # vectors that are written in one transaction: some milliseconds

# The texts of this module are put together from constants of ours only; every value is a parameter.
NEW_MODEL = "INSERT INTO vector_models (tenant, project, model, last) VALUES (?, ?, ?, 0) ON CONFLICT DO NOTHING"
OTHER_MODEL = f"UPDATE vector_models SET model = ? WHERE {OURS}"  # noqa: S608
NEXT = f"UPDATE vector_models SET last = last + 1 WHERE {OURS} AND model = ? RETURNING last"  # noqa: S608
VECTORS = f"SELECT number, doc, body FROM vectors WHERE {OURS} AND number > ? ORDER BY number, doc"  # noqa: S608
NEW_VECTORS, ONE_VECTOR = "INSERT INTO vectors (tenant, project, number, doc, body) VALUES", "(?, ?, ?, ?, ?)"
NO_VECTOR = f"DELETE FROM vectors WHERE {OURS} AND doc"  # noqa: S608
NO_LONGER = f"DELETE FROM vectors_waiting WHERE {OURS} AND doc"  # noqa: S608


class Vectors(ABC):
    place: str
    doc_column: str  # of `entries`: the number of a text

    @abstractmethod
    def _rows(self, tenant: str, sql: str, values: Sequence[object]) -> list[Row]:
        """The rows of one read."""

    @abstractmethod
    def _jot_alone(self, scope: Scope, work: Callable[[Sql], T]) -> T:
        """One transaction, alone in its project, that does not wait for the disk."""

    @property
    def _waiting(self) -> str:
        one = f"e.tenant = w.tenant AND e.project = w.project AND e.{self.doc_column} = w.doc"
        return f"FROM vectors_waiting w JOIN entries e ON {one}"

    def without_vector(self, scope: Scope, model: str, most: int) -> tuple[Unmeant, ...]:
        # One row at least, which says whose vectors these are.
        sought = (
            f"SELECT m.model, w.* FROM (SELECT max(model) AS model FROM vector_models WHERE {OURS}) m LEFT JOIN "  # noqa: S608
            f"(SELECT w.doc, {E_FIELDS} {self._waiting} WHERE w.tenant = ? AND w.project = ? "
            "ORDER BY w.doc DESC LIMIT ?) w ON 1 = 1 ORDER BY w.doc DESC"
        )
        asked = (*scope, *scope, most)
        found = self._rows(scope.tenant, sought, asked)
        if found[0][0] != model:
            self._jot_alone(scope, lambda sql: self._begin_anew(sql, scope, model))
            found = self._rows(scope.tenant, sought, asked)
        return tuple(
            Unmeant(doc, bytes(row[-1]), rows.indexed_text(rows.to_entry(self.place, scope, tuple(row))))
            for _, doc, *row in found
            if doc is not None
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
        fit = [(text.doc, body) for text, body in made if (text.doc, text.hash) in found]
        if fit:
            docs, signs = [doc for doc, _ in fit], ", ".join("?" * len(fit))
            sql.rows(f"{NO_LONGER} IN ({signs})", (*scope, *docs))
            sql.rows(f"{NO_VECTOR} IN ({signs})", (*scope, *docs))  # of a text that had the number before, if any
            values = [value for doc, body in fit for value in (*scope, *numbers[0], doc, body)]
            sql.rows(f"{NEW_VECTORS} {', '.join([ONE_VECTOR] * len(fit))}", values)
        return len(fit)

    def _rows_near(self, scope: Scope, sql: str, values: Sequence[object]) -> list[Row]:
        """All rows of one read of a project, by whoever has it."""
        return self._rows(scope.tenant, sql, values)

    def vectors(self, scope: Scope, after: int) -> list[Vector]:
        return [Vector(*row) for row in self._rows_near(scope, VECTORS, (*scope, after))]
