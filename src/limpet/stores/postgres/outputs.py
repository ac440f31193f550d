"""The outputs of a PostgreSQL store: the statements that differ, and transactions for the parts that stores share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from limpet import limits
from limpet.model import MESSAGE, Scope
from limpet.store import CandidateQuery, Candidates, Document
from limpet.stores.postgres import connections
from limpet.stores.postgres.candidates import PIECES, tsvector, word_positions
from limpet.stores.postgres.connections import PostgresDatabase, Rows
from limpet.stores.postgres.replica import ReplicaReads
from limpet.stores.postgres.schema import TAKE_PROJECT, Con
from limpet.stores.postgres.tenants import Statement, numbers
from limpet.stores.shared.candidates import PIECE_DOCUMENT, collect, to_piece_document
from limpet.stores.shared.chunks import Piece
from limpet.stores.shared.outputs import NEW_PROJECT, ONE, SqlOutputs
from limpet.stores.shared.sql import Proof, Row

T = TypeVar("T")
UNSYNCED = "SET LOCAL synchronous_commit = off"
IMPATIENT = f"SET LOCAL lock_timeout = '{limits.SIDE_WAIT_SECONDS * 1_000:.0f}ms'"
LOCK = "SELECT 1 FROM projects WHERE tenant = %s AND project = %s FOR UPDATE"
CITED = (
    "SELECT s.id FROM unnest(%s::text[]) AS s (id) WHERE EXISTS (SELECT 1 FROM entries e "  # noqa: S608
    f"WHERE e.tenant = %s AND e.project = %s AND e.kind <> '{MESSAGE}' AND e.folded LIKE '%%' || s.id || '%%')"
)

# The statements of this module are built from constants; every value is a parameter.
NEW_PIECE = (
    "INSERT INTO output_pieces (tenant, project, id, start, size, line, head, terms) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, CAST(? AS tsvector))"
)
DOCUMENTS = (
    f"SELECT p.doc, {PIECE_DOCUMENT} FROM output_pieces p "  # noqa: S608
    "JOIN outputs o ON o.tenant = p.tenant AND o.project = p.project "
    "AND o.id = p.id WHERE p.tenant = %s AND p.project = %s AND p.doc = ANY(%s)"
)
COUNT_PIECES = "SELECT count(*) FROM output_pieces WHERE tenant = %s AND project = %s"


class PostgresSql:
    """An open transaction for statements with `?` as placeholder."""

    def __init__(self, con: Con) -> None:
        self.con = con

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        # Binary: bytes arrive as they are and not as text of twice the length.
        cursor = self.con.execute(placeholders(sql), values, binary=True)
        return cursor.fetchall() if cursor.description else []

    def many(self, sql: str, values: Iterable[Row]) -> None:
        with self.con.cursor() as cursor:
            cursor.executemany(placeholders(sql), values)


def placeholders(sql: str) -> str:
    """The statement with psycopg's placeholder. No shared statement contains either of them otherwise."""
    return sql.replace("?", "%s")


class PostgresTransactions:
    """The database as the parts that both stores share see it."""

    def __init__(self, db: PostgresDatabase, replica: ReplicaReads) -> None:
        self._db = db
        self._replica = replica
        self.place = db.place

    def rows(self, tenant: str, sql: str, values: Sequence[object]) -> list[Row]:
        return self._db.rows(tenant, placeholders(sql), tuple(values), binary=True)

    def replica_rows(self, scope: Scope, sql: str, values: Sequence[object]) -> list[Row]:
        return self._replica.rows(scope, placeholders(sql), tuple(values), list, binary=True)

    def snapshot(self, tenant: str, work: Callable[[PostgresSql], T]) -> T:
        return self._db.snapshot(tenant, lambda con, _: work(PostgresSql(con)))

    def write(
        self,
        scope: Scope,
        work: Callable[[PostgresSql], tuple[T, Proof]],
        *,
        repeatable: bool = True,
        patient: bool = True,
    ) -> T:
        def locked(con: Con, answers: Rows) -> tuple[T, connections.Proof]:
            # Writers of a project queue at its row. If nothing is changed after all, a new row is not committed.
            taken = answers[-1]
            while not taken:
                con.execute(placeholders(NEW_PROJECT), (*scope, 0))
                taken = con.execute(TAKE_PROJECT, scope).fetchall()
            result, proof = work(PostgresSql(con))
            return result, ((LOCK, scope), (placeholders(proof[0]), proof[1])) if proof else ()

        first: list[Statement] = [*([] if patient else [(IMPATIENT, ())]), (TAKE_PROJECT, tuple(scope))]
        return self._db.write(scope.tenant, locked, first=first, repeatable=repeatable)

    def write_soon(
        self, scope: Scope, work: Callable[[PostgresSql], T], *, alone: bool = False, patient: bool = True
    ) -> T:
        def unsynced(con: Con, _: object) -> tuple[T, connections.Proof]:
            # If the answer to COMMIT is lost, the write may be lost too. Running it twice would be worse.
            return work(PostgresSql(con)), (("SELECT 1", ()),)

        # The lock puts the numbers of vectors in the order in which they become visible.
        first: list[Statement] = [(UNSYNCED, ()), *([] if patient else [(IMPATIENT, ())])]
        first += [(TAKE_PROJECT, tuple(scope))] if alone else []
        return self._db.write(scope.tenant, unsynced, first=first)


class PostgresOutputs(SqlOutputs[PostgresSql]):
    def __init__(self, transactions: PostgresTransactions, replica: ReplicaReads) -> None:
        super().__init__(transactions)
        self._replica = replica

    def candidates(self, scope: Scope, query: CandidateQuery) -> Candidates:
        def work(con: Con, counted: Rows) -> Candidates:
            total = counted[0][0][0]
            words = word_positions(con, PIECES, query, tuple(scope), total)

            def load(docs: Sequence[int]) -> dict[int, Document]:
                loaded = con.execute(DOCUMENTS, (*scope, [*docs])).fetchall()
                return {row[0]: to_piece_document(row) for row in loaded}

            return collect(query, words, [], load, total)

        return self._replica.reads(scope, work, (COUNT_PIECES, tuple(scope)))

    def _add_piece(self, sql: PostgresSql, scope: Scope, id: str, piece: Piece) -> None:
        sql.rows(NEW_PIECE, (*scope, id, *piece[:4], tsvector(piece.terms)))

    def _remove_pieces(self, sql: PostgresSql, scope: Scope, id: str) -> None:
        sql.rows(f"DELETE FROM output_pieces WHERE {ONE}", (*scope, id))  # noqa: S608

    def _cited(self, sql: PostgresSql, scope: Scope, ids: Sequence[str]) -> frozenset[str]:
        return frozenset(id for (id,) in numbers(sql.con, CITED, ([*ids], *scope)))
