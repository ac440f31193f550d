"""Tenants in PostgreSQL: row-level security, from the client's side.

Every table shows a row to the tenant that `limpet.tenant` names (migration 0006), so a statement that forgets to filter
by tenant finds and changes nothing of other tenants. Every transaction says it again, a single read too: a pooler in
transaction mode gives the next transaction to another connection, and Citus hands `SET LOCAL` on to its workers, but
neither `set_config` nor what was set before the transaction. It is a statement of its own, because Citus would hand on
all of a message. The statements travel together (`together`), so it costs no round trip.

Two kinds of reads bypass the policy. The health check reads the whole store. And searches for words and substrings ask
for document numbers, because their indexes cannot be used under the policy; the documents are then read under it. Such
statements are not prepared: a plan that was made without the policy must not be used again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any
from weakref import WeakSet

from psycopg import Cursor, Pipeline
from psycopg.pq import TransactionStatus
from psycopg.sql import Literal

from limpet.record import NamedTuple
from limpet.store import Finding
from limpet.stores.postgres.schema import NEWEST, Con, refuse_newer

Row = tuple[Any, ...]
Values = Row | Mapping[str, Any]
Statement = tuple[str, Values]
VIEW = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
IDLE = TransactionStatus.IDLE
SIGN = "="  # before a tenant's name in the setting, so that an empty name differs from no name
READ = "BEGIN READ ONLY"
UNFILTERED = "SET LOCAL limpet.unfiltered = 'on'"
FILTERED = "SET LOCAL limpet.unfiltered = 'off'"
BYPASSES = "SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user"
TENANTS = "SELECT count(*) FROM (SELECT DISTINCT tenant FROM projects LIMIT 2) few"
in_moment: WeakSet[Con] = WeakSet()  # connections whose transaction goes on after a read: see PostgresDatabase.moment
OPEN_TABLES = (
    "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant' "
    "WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%s) AND c.relkind IN ('r', 'p') "
    "AND NOT (c.relrowsecurity AND c.relforcerowsecurity) ORDER BY 1"
)


@lru_cache(1_000)
def set_tenant(tenant: str) -> str:
    """The statement that says whose rows the transaction sees."""
    return f"SET LOCAL limpet.tenant = {Literal(SIGN + tenant).as_string().strip()}"


@contextmanager
def together(con: Con) -> Iterator[Pipeline]:
    """Statements that travel together, in one round trip. Their results are there after it."""
    with con.pipeline() as pipeline:
        # psycopg ends a pipeline with a Flush after the Sync. The server takes it for the next command and stops the
        # timer of idle_in_transaction_session_timeout, so a process that is stopped now would keep its lock forever.
        fetch = type(pipeline)._fetch_gen
        pipeline._fetch_gen = lambda **_: fetch(pipeline, flush=False)  # type: ignore[method-assign]
        yield pipeline


def send(pipeline: Pipeline, *statements: str) -> None:
    """Send statements without values and result, inside `together`: at a fifth of what `execute` costs."""
    for statement in statements:
        pipeline.command_queue.append(partial(pipeline.pgconn.send_query_params, statement.encode(), None))
        pipeline.result_queue.append(None)


class Unfiltered(NamedTuple):
    """A search for the numbers of texts, or for counts and words of the query: the policy is off for it."""

    query: str
    values: Row


def begin(con: Con, place: str, how: str, tenant: str, first: Sequence[Statement] = ()) -> list[list[Row]]:
    """Begin a transaction that sees the rows of one tenant, and run its first statements; the rows of each.

    A schema that a newer version has brought in since this process connected is refused.
    """
    with together(con) as pipeline:
        send(pipeline, how, set_tenant(tenant))
        newest = con.execute(f"SELECT {NEWEST}")
        cursors = sent(con, pipeline, first)
    refuse_newer(place, newest.fetchall()[0][0])
    return rows_of(cursors)


def ask(con: Con, *statements: Statement, last: bool = False) -> list[list[Row]]:
    """The rows of each statement, in one round trip. With the `last` ones of a transaction travels its end."""
    with together(con) as pipeline:
        cursors = sent(con, pipeline, statements)
        if last and con not in in_moment:
            send(pipeline, "COMMIT")
    return rows_of(cursors)


def end(con: Con) -> None:
    """End a transaction of reads, unless its last statements did."""
    if con not in in_moment and con.info.transaction_status == TransactionStatus.INTRANS:
        con.execute("COMMIT")


def sent(con: Con, pipeline: Pipeline, statements: Sequence[Statement]) -> list[Cursor[Row]]:
    """Cursors of statements that are sent now, inside `together`."""
    cursors = []
    unfiltered = False
    for statement in statements:
        if isinstance(statement, Unfiltered) != unfiltered:  # Citus asks another server each time
            unfiltered = not unfiltered
            send(pipeline, UNFILTERED if unfiltered else FILTERED)
        cursors.append(con.execute(*statement, prepare=False if unfiltered else None))
    if unfiltered:
        send(pipeline, FILTERED)
    return cursors


def rows_of(cursors: Sequence[Cursor[Row]]) -> list[list[Row]]:
    return [cursor.fetchall() if cursor.description else [] for cursor in cursors]


def numbers(con: Con, query: str, values: Row, *, last: bool = False) -> list[Row]:
    """The result of a search in numbers, counts and words of the query."""
    return ask(con, Unfiltered(query, values), last=last)[0]


def separation(con: Con, tables: tuple[str, ...]) -> Finding:
    """Whether row-level security holds. Part of the health check, which sees all tenants."""
    superuser, bypasses = con.execute(BYPASSES).fetchall()[0]
    unprotected = [row[0] for row in con.execute(OPEN_TABLES, (list(tables),)).fetchall()]
    if superuser or bypasses:
        why = f"the role {con.info.user} {'is a superuser' if superuser else 'has the right BYPASSRLS'}"
        cure = "let an ordinary role own the tables, and use that one"
    elif unprotected:
        why, cure = f"it is switched off for {', '.join(unprotected)}", "switch it on: ENABLE and FORCE"
    else:
        return Finding("tenants", True, "row-level security keeps them apart")
    alone = con.execute(TENANTS).fetchall()[0][0] < 2
    plight = "there is but one tenant" if alone else "nothing but our own statements keeps tenants apart"
    return Finding("tenants", alone, f"row-level security does not hold, because {why}; {plight}. {cure.capitalize()}")
