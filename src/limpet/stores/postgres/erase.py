"""Forgetting for good in PostgreSQL: texts of earlier versions."""

from __future__ import annotations

from collections.abc import Sequence

from limpet.model import Scope
from limpet.stores.postgres.connections import Proof, Server
from limpet.stores.postgres.schema import TAKE_PROJECT, Con

ERASE = (
    "UPDATE events SET before = NULL, detail = (CAST(detail AS jsonb) || '{\"erased\": true}')::text "
    "WHERE tenant = %s AND project = %s AND seq = ANY(%s) AND before IS NOT NULL RETURNING seq"
)
ERASED = "SELECT 1 FROM events WHERE tenant = %s AND project = %s AND seq = %s AND before IS NULL"
UNUSED_TAGS = "DELETE FROM tallies WHERE tenant = %s AND project = %s AND tag <> '' AND count = 0"


class PostgresErase:
    _server: Server

    def erase(self, scope: Scope, seqs: Sequence[int]) -> int:
        def work(con: Con) -> tuple[int, Proof]:
            con.execute(TAKE_PROJECT, scope)
            erased = con.execute(ERASE, (*scope, list(seqs))).fetchall()
            con.execute(UNUSED_TAGS, scope)
            return len(erased), ((ERASED, (*scope, erased[-1][0])),) if erased else ()

        return self._server.write(scope.tenant, work)

    def scrub(self) -> bool:
        """The server's files, its log and its copies are not ours: its own vacuum clears them in its own time."""
        return False
