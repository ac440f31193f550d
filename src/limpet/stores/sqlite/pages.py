"""Leafing through entries in the embedded store: from the newest to the oldest, by key, without counting them all."""

from __future__ import annotations

from limpet.model import Entry, Scope
from limpet.stores.shared import rows
from limpet.stores.shared.rows import FIELDS
from limpet.stores.sqlite.database import Database

# The primary key is in this order, so that a page costs the same wherever it is.
EARLIER = (
    f"SELECT {FIELDS} FROM entries WHERE tenant = ? AND project = ? AND kind = ? AND key < ? "  # noqa: S608
    "AND done <= ? ORDER BY key DESC LIMIT ?"
)


class SqlitePages:
    _db: Database
    place: str

    def earlier(
        self, scope: Scope, kind: str, before: str | None, *, include_done: bool = False, limit: int = 50
    ) -> tuple[Entry, ...]:
        found = self._db.rows(
            EARLIER, (*scope, kind, rows.LAST_KEY if before is None else before, int(include_done), limit)
        )
        return tuple(rows.to_entry(self.place, scope, row) for row in found)
