"""Embeddings of entries, stored after the entries are written. Every method, once for all stores.

A new or changed text is in `vectors_waiting` from the transaction that wrote it until its vector is stored, so a crash
in between loses none. Vectors are computed outside of any transaction, so writers never wait for a model. A text that
changed in the meantime is still in `vectors_waiting` afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from limpet.light import Any
from limpet.model import Scope
from limpet.store import Unembedded, Vector, VectorState
from limpet.stores.shared import rows
from limpet.stores.shared.rows import E_FIELDS
from limpet.stores.shared.sql import IN_PROJECT, S, Sql, Transactions

BATCH = 400  # vectors written in one transaction: some milliseconds
MOST_NAMED = 1_000  # texts that wait, named to a reader: a fraction of a millisecond

# The statements of this module are built from constants; every value is a parameter.
NEW_MODEL = "INSERT INTO vector_models (tenant, project, model, last) VALUES (?, ?, ?, 0) ON CONFLICT DO NOTHING"
OTHER_MODEL = f"UPDATE vector_models SET model = ? WHERE {IN_PROJECT}"  # noqa: S608
NEXT = f"UPDATE vector_models SET last = last + 1 WHERE {IN_PROJECT} AND model = ? RETURNING last"  # noqa: S608
OF_MODEL = f"EXISTS (SELECT 1 FROM vector_models WHERE {IN_PROJECT} AND model = ?)"  # noqa: S608
VECTORS = f"SELECT number, doc, body FROM vectors WHERE {IN_PROJECT} AND number > ? AND {OF_MODEL} ORDER BY number, doc"  # noqa: S608
STATE = (
    f"SELECT m.model, w.count FROM (SELECT coalesce(max(model), '') AS model FROM vector_models WHERE {IN_PROJECT}) m, "  # noqa: S608
    f"(SELECT count(*) AS count FROM vectors_waiting WHERE {IN_PROJECT}) w"
)
COUNT = f"SELECT count(*) FROM vectors WHERE {IN_PROJECT}"  # noqa: S608
SOME_WAITING = f"SELECT doc FROM vectors_waiting WHERE {IN_PROJECT} ORDER BY doc DESC LIMIT {MOST_NAMED}"  # noqa: S608
NEW_VECTORS, ONE_VECTOR = "INSERT INTO vectors (tenant, project, number, doc, body) VALUES", "(?, ?, ?, ?, ?)"
NO_VECTOR = f"DELETE FROM vectors WHERE {IN_PROJECT} AND doc"  # noqa: S608
NO_LONGER = f"DELETE FROM vectors_waiting WHERE {IN_PROJECT} AND doc"  # noqa: S608


class SqlVectors:
    def __init__(
        self, transactions: Transactions[S], doc_column: str, settle: Callable[[], object] = lambda: None
    ) -> None:
        """`doc_column` of `entries` is the number of a text. `settle` queues new texts where that is late."""
        self._transactions: Transactions[Any] = transactions
        self._place = transactions.place
        self._doc = doc_column
        self._settle = settle
        same = f"e.tenant = w.tenant AND e.project = w.project AND e.{doc_column} = w.doc"
        self._waiting = f"FROM vectors_waiting w JOIN entries e ON {same}"

    def missing(self, scope: Scope, model: str, most: int) -> tuple[Unembedded, ...]:
        self._settle()
        # At least one row, which names the model of the stored vectors.
        sql = (
            f"SELECT m.model, w.* FROM (SELECT max(model) AS model FROM vector_models WHERE {IN_PROJECT}) m LEFT JOIN "  # noqa: S608
            f"(SELECT w.doc, {E_FIELDS} {self._waiting} WHERE w.tenant = ? AND w.project = ? "
            "ORDER BY w.doc DESC LIMIT ?) w ON 1 = 1 ORDER BY w.doc DESC"
        )
        values = (*scope, *scope, most)
        waiting = self._transactions.rows(scope.tenant, sql, values)
        if waiting[0][0] != model:
            start_over = partial(self._start_over, scope=scope, model=model)
            self._transactions.write_soon(scope, start_over, alone=True, patient=False)
            waiting = self._transactions.rows(scope.tenant, sql, values)
        return tuple(
            Unembedded(doc, bytes(row[-1]), rows.indexed_text(rows.to_entry(self._place, scope, tuple(row))))
            for _, doc, *row in waiting
            if doc is not None
        )

    def _start_over(self, sql: Sql, scope: Scope, model: str) -> None:
        sql.rows(f"DELETE FROM vectors WHERE {IN_PROJECT}", scope)  # noqa: S608
        texts = f"SELECT tenant, project, {self._doc} FROM entries WHERE {IN_PROJECT} AND content <> ''"  # noqa: S608
        sql.rows(f"INSERT INTO vectors_waiting (tenant, project, doc) {texts} ON CONFLICT DO NOTHING", scope)
        sql.rows(NEW_MODEL, (*scope, model))
        sql.rows(OTHER_MODEL, (model, *scope))

    def keep(self, scope: Scope, model: str, embedded: Sequence[tuple[Unembedded, bytes]]) -> int:
        count = 0
        in_order = sorted(embedded)  # by document number, which fills the pages of table and index
        for start in range(0, len(in_order), BATCH):
            work = partial(self._keep_batch, scope=scope, model=model, batch=in_order[start : start + BATCH])
            count += self._transactions.write_soon(scope, work, alone=True, patient=False)
        return count

    def _keep_batch(self, sql: Sql, scope: Scope, model: str, batch: Sequence[tuple[Unembedded, bytes]]) -> int:
        """Store the vectors of texts that have not changed and still wait."""
        numbers = sql.rows(NEXT, (*scope, model))
        if not numbers:
            return 0  # another process started over with another model
        placeholders = ", ".join("?" * len(batch))
        same = (
            f"SELECT w.doc, e.hash {self._waiting} WHERE w.tenant = ? AND w.project = ? AND w.doc IN ({placeholders})"
        )
        current = {(doc, bytes(hash)) for doc, hash in sql.rows(same, (*scope, *(text.doc for text, _ in batch)))}
        fit = [(text.doc, body) for text, body in batch if (text.doc, text.hash) in current]
        if fit:
            docs, placeholders = [doc for doc, _ in fit], ", ".join("?" * len(fit))
            sql.rows(f"{NO_LONGER} IN ({placeholders})", (*scope, *docs))
            sql.rows(f"{NO_VECTOR} IN ({placeholders})", (*scope, *docs))  # of a deleted text with the same number
            values = [value for doc, body in fit for value in (*scope, *numbers[0], doc, body)]
            sql.rows(f"{NEW_VECTORS} {', '.join([ONE_VECTOR] * len(fit))}", values)
        return len(fit)

    def after(self, scope: Scope, model: str, number: int) -> list[Vector]:
        values = (*scope, number, *scope, model)
        return [Vector(*row) for row in self._transactions.replica_rows(scope, VECTORS, values)]

    def state(self, scope: Scope) -> VectorState:
        self._settle()
        ((model, waiting),) = self._transactions.replica_rows(scope, STATE, (*scope, *scope))
        docs = self._transactions.replica_rows(scope, SOME_WAITING, scope) if waiting else []
        return VectorState(model, waiting, tuple(doc for (doc,) in docs))

    def count(self, scope: Scope) -> int:
        ((count,),) = self._transactions.replica_rows(scope, COUNT, scope)
        return int(count)
