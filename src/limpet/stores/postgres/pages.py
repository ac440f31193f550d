"""Leafing through entries in PostgreSQL: from the newest to the oldest, by key, without counting them all."""

from __future__ import annotations

from limpet.model import Entry, Scope
from limpet.stores.postgres.connections import Server
from limpet.stores.shared import rows
from limpet.stores.shared.rows import FIELDS

EARLIER = (
    f"SELECT {FIELDS} FROM entries WHERE tenant = %s AND project = %s AND kind = %s "  # noqa: S608
    "AND key < %s AND done <= %s ORDER BY key DESC LIMIT %s"
)


class PostgresPages:
    _server: Server
    place: str

    def earlier(
        self, scope: Scope, kind: str, before: str | None, *, include_done: bool = False, limit: int = 50
    ) -> tuple[Entry, ...]:
        found = self._server.rows(
            scope.tenant,
            EARLIER,
            (*scope, kind, rows.LAST_KEY if before is None else before, include_done, limit),
        )
        return tuple(rows.to_entry(self.place, scope, row) for row in found)
