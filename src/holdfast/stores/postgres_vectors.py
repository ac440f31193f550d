"""The vectors of the store for teams: how the methods of vectors.py read and write a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from holdfast.model import Entry, Scope
from holdfast.stores import postgres_server
from holdfast.stores.outputs import Sql
from holdfast.stores.postgres_outputs import PostgresSql
from holdfast.stores.postgres_replica import PostgresNear
from holdfast.stores.postgres_schema import TAKE_PROJECT, Con
from holdfast.stores.rows import indexed_text
from holdfast.stores.vectors import Vectors

T = TypeVar("T")
# The texts of this module are put together from constants of ours only; every value is a parameter.
ONE = "FROM entries e WHERE e.tenant = %s AND e.project = %s AND e.kind = %s AND e.key = %s"
FORGET = f"DELETE FROM vectors WHERE tenant = %s AND project = %s AND doc = (SELECT e.doc {ONE})"  # noqa: S608
FORGET_WAITING = f"DELETE FROM vectors_waiting WHERE tenant = %s AND project = %s AND doc = (SELECT e.doc {ONE})"  # noqa: S608


class PostgresVectors(Vectors, PostgresNear):
    doc_column = "doc"

    def _look_near(self, scope: Scope, work: Callable[[Sql], T]) -> T:
        return self._near(scope, lambda con: work(PostgresSql(con)))

    def _jot_alone(self, scope: Scope, work: Callable[[Sql], T]) -> T:
        def lightly(con: Con) -> tuple[T, postgres_server.Proof]:
            # The lock puts the numbers of vectors in the order in which they can be seen.
            con.execute(TAKE_PROJECT, scope)
            con.execute("SET LOCAL synchronous_commit = off")
            # Should the answer to COMMIT get lost, the vectors may be lost too; their texts still wait then.
            return work(PostgresSql(con)), (("SELECT 1", ()),)

        return self._server.write(scope.tenant, lightly)


def forget_vector(con: Con, scope: Scope, before: Entry | None, after: Entry | None) -> None:
    """What a text was about goes with the text, while its row is still there to say its number."""
    if before is None or (after is not None and indexed_text(before) == indexed_text(after)):
        return
    name = (*scope, before.kind, before.key)
    con.execute(FORGET, (*scope, *name))
    if after is None:
        con.execute(FORGET_WAITING, (*scope, *name))


def waiting(change: str) -> str:
    """The same change of an entry, after which its text waits for a vector: one statement, which knows its number."""
    return (
        f"WITH changed AS ({change} RETURNING tenant, project, doc) "  # noqa: S608
        "INSERT INTO vectors_waiting SELECT tenant, project, doc FROM changed ON CONFLICT DO NOTHING"
    )
