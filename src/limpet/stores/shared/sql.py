"""How the parts that both stores share reach their database.

SQLite and PostgreSQL agree on the SQL of outputs, call log and vectors, except for the placeholder. Shared statements
use `?`; a store that needs another placeholder translates it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from limpet.light import Any, Protocol, TypeVar
from limpet.model import KINDS, Scope
from limpet.store import Usage

Row = tuple[Any, ...]
Proof = tuple[str, Row] | None  # a read that returns a row if the change was committed; None: nothing was changed
T = TypeVar("T")

# The statements of this module are built from constants; every value is a parameter.
IN_PROJECT = "tenant = ? AND project = ?"
# Joined with projects, so that the totals of projects are read and not those of every session and tag.
ENTRIES_OF = (
    "SELECT CAST(coalesce(sum(t.count), 0) AS bigint) FROM projects p JOIN tallies t ON t.tenant = p.tenant AND "  # noqa: S608
    f"t.project = p.project AND t.kind IN ({', '.join('?' * len(KINDS))}) AND t.session = '' AND t.tag = '' "
    "WHERE p.tenant = ?"
)
BYTES_OF = "SELECT CAST(coalesce(sum(size), 0) AS bigint) FROM outputs WHERE tenant = ?"


class Sql(Protocol):
    """An open transaction."""

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]: ...

    def many(self, sql: str, values: Iterable[Row]) -> None: ...


S = TypeVar("S", bound=Sql)
S_co = TypeVar("S_co", bound=Sql, covariant=True)


class Transactions(Protocol[S_co]):
    """Every way in which a shared part reads or writes: one call is one transaction."""

    @property
    def place(self) -> str: ...

    def rows(self, tenant: str, sql: str, values: Sequence[object]) -> list[Row]:
        """The rows of one read."""

    def replica_rows(self, scope: Scope, sql: str, values: Sequence[object]) -> list[Row]:
        """The rows of one read, which a replica may answer."""

    def snapshot(self, tenant: str, work: Callable[[S_co], T]) -> T:
        """Several reads that see the same moment."""

    def write(
        self, scope: Scope, work: Callable[[S_co], tuple[T, Proof]], *, repeatable: bool = True, patient: bool = True
    ) -> T:
        """A write that holds the lock of its project and is on disk when this returns. The work may run more than once,
        unless it is not `repeatable`. A write that is not `patient` belongs to a read: it is refused after a moment
        when others hold the lock."""

    def write_soon(self, scope: Scope, work: Callable[[S_co], T], *, alone: bool = False, patient: bool = True) -> T:
        """A write that is committed without fsync. `alone`: it holds the lock of its project."""


def usage(sql: Sql, tenant: str) -> Usage:
    return Usage(sql.rows(ENTRIES_OF, (*KINDS, tenant))[0][0], sql.rows(BYTES_OF, (tenant,))[0][0])
