"""The vectors of the store for teams: how the methods of vectors.py read and write a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from limpet.model import Entry, Scope
from limpet.stores.postgres import connections
from limpet.stores.postgres.outputs import PostgresSql
from limpet.stores.postgres.replica import PostgresNear
from limpet.stores.postgres.schema import TAKE_PROJECT, Con
from limpet.stores.shared.outputs import Sql
from limpet.stores.shared.rows import Row, indexed_text
from limpet.stores.shared.vectors import Vectors

T = TypeVar("T")
# The texts of this module are put together from constants of ours only; every value is a parameter.
# Parts of the statement that changes an entry (postgres_writing.py), which names their values.
OF_TEXT = "tenant = %(tenant)s AND project = %(project)s AND doc = %(doc)s"
FORGET = f"forgotten AS (DELETE FROM vectors WHERE {OF_TEXT})"  # noqa: S608
FORGET_WAITING = f"awaited AS (DELETE FROM vectors_waiting WHERE {OF_TEXT})"  # noqa: S608
WAITS = "INSERT INTO vectors_waiting SELECT tenant, project, doc FROM changed ON CONFLICT DO NOTHING"


class PostgresVectors(Vectors, PostgresNear):
    doc_column = "doc"

    def _rows_near(self, scope: Scope, sql: str, values: Sequence[object]) -> list[Row]:
        return self._near(scope, lambda con: PostgresSql(con).rows(sql, values))

    def _jot_alone(self, scope: Scope, work: Callable[[Sql], T]) -> T:
        def lightly(con: Con, _: object) -> tuple[T, connections.Proof]:
            # Should the answer to COMMIT get lost, the vectors may be lost too; their texts still wait then.
            return work(PostgresSql(con)), (("SELECT 1", ()),)

        # The lock puts the numbers of vectors in the order in which they can be seen.
        first = f"SET LOCAL synchronous_commit = off; {TAKE_PROJECT}"
        return self._server.write_after(scope.tenant, (first, scope), lightly)


def forgotten(before: Entry | None, after: Entry | None) -> list[str]:
    """What a text was about goes with the text."""
    if before is None or (after is not None and indexed_text(before) == indexed_text(after)):
        return []
    return [FORGET] if after is not None else [FORGET, FORGET_WAITING]
