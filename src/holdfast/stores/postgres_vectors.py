"""The vectors of the store for teams: how the methods of vectors.py read and write a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from holdfast.model import Entry, Scope
from holdfast.stores import postgres_server
from holdfast.stores.outputs import Sql
from holdfast.stores.postgres_outputs import PostgresSql
from holdfast.stores.postgres_schema import TAKE_PROJECT, Con
from holdfast.stores.postgres_server import Server
from holdfast.stores.rows import Row, indexed_text
from holdfast.stores.vectors import Vectors

T = TypeVar("T")
# The texts of this module are put together from constants of ours only; every value is a parameter.
ONE = "FROM entries e WHERE e.tenant = %s AND e.project = %s AND e.kind = %s AND e.key = %s"
FORGET = f"DELETE FROM vectors WHERE tenant = %s AND project = %s AND doc = (SELECT e.doc {ONE})"  # noqa: S608
# After a change of an entry in the same statement: its text waits for a vector.
WAITS = "INSERT INTO vectors_waiting SELECT tenant, project, doc FROM changed ON CONFLICT DO NOTHING"
FORGET_WAITING = f"DELETE FROM vectors_waiting WHERE tenant = %s AND project = %s AND doc = (SELECT e.doc {ONE})"  # noqa: S608


class PostgresVectors(Vectors):
    _server: Server
    doc_column = "doc"

    def _jot_alone(self, scope: Scope, work: Callable[[Sql], T]) -> T:
        def lightly(con: Con) -> tuple[T, postgres_server.Proof]:
            # The lock puts the numbers of vectors in the order in which they can be seen.
            con.execute(TAKE_PROJECT, scope)
            con.execute("SET LOCAL synchronous_commit = off")
            # Should the answer to COMMIT get lost, the vectors may be lost too; their texts still wait then.
            return work(PostgresSql(con)), (("SELECT 1", ()),)

        return self._server.write(scope.tenant, lightly)


def forgotten(scope: Scope, before: Entry | None, after: Entry | None) -> Iterator[tuple[str, str, Row]]:
    """What a text was about goes with the text: parts of the statement that changes it, while its row says its number."""
    if before is None or (after is not None and indexed_text(before) == indexed_text(after)):
        return
    name = (*scope, before.kind, before.key)
    yield "forgotten", FORGET, (*scope, *name)
    if after is None:
        yield "awaited", FORGET_WAITING, (*scope, *name)
