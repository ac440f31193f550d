"""The outputs of the embedded store: the statements that differ from those of other stores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from limpet.catalogue.late import LateModule
from limpet.light import TYPE_CHECKING
from limpet.model import MESSAGE, Scope
from limpet.store import CandidateQuery, Candidates
from limpet.stores.shared.chunks import Piece
from limpet.stores.shared.outputs import ONE, SqlOutputs
from limpet.stores.shared.sql import Proof, Row
from limpet.stores.sqlite.connection import Connection
from limpet.stores.sqlite.index import may_contain, tidy

if TYPE_CHECKING:
    from limpet.stores.sqlite import candidates as search
else:
    search = LateModule("stores.sqlite.candidates")  # imported at the first search: hooks and most commands need none

# Ids are ASCII digits and letters, so SQLite's own folding suffices. The key of memory is part of its text.
CITES = "instr(lower(e.key || char(10) || e.content), ?)"

# The statements of this module are built from constants; every value is a parameter.
CITED = f"SELECT 1 FROM {{source}} e.tenant = ? AND e.project = ? AND e.kind <> '{MESSAGE}' AND {CITES} LIMIT 1"  # noqa: S608
NEW_PIECE = (
    "INSERT INTO output_pieces (tenant, project, id, start, size, line, head) VALUES (?, ?, ?, ?, ?, ?, ?) "
    "RETURNING rowid"
)


class SqliteOutputs(SqlOutputs[Connection]):
    def candidates(self, scope: Scope, query: CandidateQuery) -> Candidates:
        return self._transactions.snapshot(scope.tenant, lambda con: search.piece_candidates(con, scope, query))

    def _add_piece(self, sql: Connection, scope: Scope, id: str, piece: Piece) -> None:
        ((doc,),) = sql.rows(NEW_PIECE, (*scope, id, *piece[:4]))
        sql.rows("INSERT INTO output_terms (rowid, text) VALUES (?, ?)", (doc, " ".join(piece.terms)))

    def _remove_pieces(self, sql: Connection, scope: Scope, id: str) -> None:
        for row in sql.rows(f"DELETE FROM output_pieces WHERE {ONE} RETURNING rowid", (*scope, id)):  # noqa: S608
            sql.rows("DELETE FROM output_terms WHERE rowid = ?", row)

    def _bury(self, sql: Connection, scope: Scope, doomed: Iterable[tuple[str, str]], by: str, now: int) -> Proof:
        sql.frees = True
        proof = super()._bury(sql, scope, doomed, by, now)
        if proof is not None and by:  # an explicit deletion; pruning must stay fast
            tidy(sql, "output_terms")
        return proof

    def _cited(self, sql: Connection, scope: Scope, ids: Sequence[str]) -> frozenset[str]:
        cited = set()
        for id in ids:
            match = may_contain(sql, id)
            sources: list[tuple[str, Row]] = [("entries e WHERE", ())]  # when hundreds of words contain it
            if match is not None:
                indexed = "terms t JOIN entries e ON e.rowid = t.rowid WHERE terms MATCH ? AND"
                sources = [(indexed, (match,)), ("entries e WHERE e.rowid > (SELECT last FROM indexed) AND", ())]
            for source, values in sources:
                if id not in cited and sql.rows(CITED.format(source=source), (*values, *scope, id)):
                    cited.add(id)
        return frozenset(cited)
