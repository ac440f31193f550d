"""Forgetting for good in the embedded store: texts of earlier versions, and what is left behind in the file."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from limpet.model import Scope
from limpet.stores.sqlite.database import Database

ERASE = (
    "UPDATE events SET before = NULL, detail = json_set(detail, '$.erased', json('true')) "
    "WHERE tenant = ? AND project = ? AND seq = ? AND before IS NOT NULL"
)
UNUSED_TAGS = "DELETE FROM tallies WHERE tenant = ? AND project = ? AND tag <> '' AND count = 0"


class SqliteErase:
    _db: Database
    _labels: dict[tuple[str, ...], str]

    def erase(self, scope: Scope, seqs: Sequence[int]) -> int:
        def work(con: apsw.Connection) -> int:
            erased = 0
            for seq in seqs:
                con.execute(ERASE, (*scope, seq))
                erased += con.changes()
            con.execute(UNUSED_TAGS, tuple(scope))
            return erased

        erased = self._db.write(work)
        self._labels.clear()
        return erased

    def scrub(self) -> bool:
        def work(con: apsw.Connection) -> None:
            for index in ("terms", "output_terms"):
                con.execute(f"INSERT INTO {index} ({index}) VALUES ('optimize')")  # noqa: S608 - names of ours

        self._db.write(work)
        return self._db.rewrite()
