"""The outputs of the store for teams: how the methods of outputs.py read and write a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from limpet.model import MESSAGE, Scope
from limpet.store import Fact, Gathered, Seek
from limpet.stores.postgres import connections
from limpet.stores.postgres.recall import PIECES, vector, words_in
from limpet.stores.postgres.replica import PostgresNear
from limpet.stores.postgres.schema import TAKE_PROJECT, Con
from limpet.stores.postgres.tenants import numbers
from limpet.stores.shared.call_log import Calls
from limpet.stores.shared.candidates import PIECE_FACTS, gathered, to_piece_fact
from limpet.stores.shared.output_pieces import Piece
from limpet.stores.shared.output_rows import Row
from limpet.stores.shared.output_transfer import OutputTransfer
from limpet.stores.shared.outputs import NEW_PROJECT, ONE, Outputs, Proof, Sql

T = TypeVar("T")
LOCK = "SELECT 1 FROM projects WHERE tenant = %s AND project = %s FOR UPDATE"
CITED = (
    "SELECT s.id FROM unnest(%s::text[]) AS s (id) WHERE EXISTS (SELECT 1 FROM entries e "  # noqa: S608
    f"WHERE e.tenant = %s AND e.project = %s AND e.kind <> '{MESSAGE}' AND e.folded LIKE '%%' || s.id || '%%')"
)

# The texts of this module are put together from constants of ours only; every value is a parameter.
NEW_PIECE = (
    "INSERT INTO output_pieces (tenant, project, id, start, size, line, head, terms) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, CAST(? AS tsvector))"
)
KNOWN_PIECES = (
    f"SELECT p.doc, {PIECE_FACTS} FROM output_pieces p JOIN outputs o ON o.tenant = p.tenant AND o.project = p.project "  # noqa: S608
    "AND o.id = p.id WHERE p.tenant = %s AND p.project = %s AND p.doc = ANY(%s)"
)
COUNT_PIECES = "SELECT count(*) FROM output_pieces WHERE tenant = %s AND project = %s"


class PostgresSql:
    def __init__(self, con: Con) -> None:
        self.con = con

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        # Bytes come as they are and not as a text of twice their length.
        cursor = self.con.execute(_theirs(sql), values, binary=True)
        return cursor.fetchall() if cursor.description else []

    def many(self, sql: str, values: Iterable[Row]) -> None:
        with self.con.cursor() as cursor:
            cursor.executemany(_theirs(sql), values)


class PostgresOutputs(Outputs, Calls, OutputTransfer, PostgresNear):
    def _look(self, tenant: str, work: Callable[[Sql], T]) -> T:
        return self._server.view(tenant, lambda con: work(PostgresSql(con)))

    def _rows(self, tenant: str, sql: str, values: Sequence[object]) -> list[Row]:
        return self._server.reads(tenant, lambda con: PostgresSql(con).rows(sql, values))

    def _change(self, scope: Scope, work: Callable[[Sql], tuple[T, Proof]], *, repeatable: bool = True) -> T:
        def locked(con: Con) -> tuple[T, connections.Proof]:
            # Writers of a project stand in line at its row. If nothing is changed after all, a new one is not kept.
            while not con.execute(TAKE_PROJECT, scope).fetchall():
                con.execute(_theirs(NEW_PROJECT), (*scope, 0))
            result, proof = work(PostgresSql(con))
            return result, ((LOCK, scope), (_theirs(proof[0]), proof[1])) if proof else ()

        return self._server.write(scope.tenant, locked, repeatable=repeatable)

    def _jot(self, tenant: str, work: Callable[[Sql], T]) -> T:
        def lightly(con: Con) -> tuple[T, connections.Proof]:
            con.execute("SET LOCAL synchronous_commit = off")
            # Should the answer to COMMIT get lost, the note may be lost too. To make it twice would be worse.
            return work(PostgresSql(con)), (("SELECT 1", ()),)

        return self._server.write(tenant, lightly)

    def _add_piece(self, sql: Sql, scope: Scope, id: str, piece: Piece) -> None:
        sql.rows(NEW_PIECE, (*scope, id, *piece[:4], vector(piece.terms)))

    def _forget_pieces(self, sql: Sql, scope: Scope, id: str) -> None:
        sql.rows(f"DELETE FROM output_pieces WHERE {ONE}", (*scope, id))  # noqa: S608

    def gather_outputs(self, scope: Scope, seek: Seek) -> Gathered:
        def work(con: Con) -> Gathered:
            total = con.execute(COUNT_PIECES, scope).fetchall()[0][0]
            words = words_in(con, PIECES, seek, tuple(scope), total)

            def look(docs: Sequence[int]) -> dict[int, Fact]:
                known = con.execute(KNOWN_PIECES, (*scope, list(docs))).fetchall()
                return {row[0]: to_piece_fact(row) for row in known}

            return gathered(seek, words, [], look, total)

        return self._near(scope, work)

    def _cited(self, sql: Sql, scope: Scope, ids: list[str]) -> frozenset[str]:
        assert isinstance(sql, PostgresSql)  # noqa: S101 - made by the two methods above
        return frozenset(id for (id,) in numbers(sql.con, CITED, (ids, *scope)))


def _theirs(sql: str) -> str:
    """The statement with the driver's own sign for a value. None of ours holds either sign otherwise."""
    return sql.replace("?", "%s")
