"""Tenants in PostgreSQL: row-level security, from the client's side.

Every table shows a row to the tenant that `limpet.tenant` names (migration 0006), so a statement that forgets to filter
by tenant finds and changes nothing of other tenants. A transaction sets it with its BEGIN, a single read when the
connection worked for another tenant before; neither needs another round trip.

Two kinds of reads bypass the policy. The health check reads the whole store. And searches for words and substrings ask
for document numbers, because their indexes cannot be used under the policy; the documents are then read under it. Such
statements are not prepared: a plan that was made without the policy must not be used again.
"""

from __future__ import annotations

from typing import Any

from psycopg import ClientCursor

from limpet.store import Finding
from limpet.stores.postgres.schema import NEWEST, Con, refuse_newer

Row = tuple[Any, ...]
VIEW = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
SIGN = "="  # before a tenant's name in the setting, so that an empty name differs from no name
SET_TENANT = f"SELECT set_config('limpet.tenant', '{SIGN}' || %s, false)"
LOCALLY = "SELECT set_config('limpet.{}', {}, true)"
UNFILTERED = LOCALLY.format("unfiltered", "'on'")
FILTERED = LOCALLY.format("unfiltered", "'off'")
BYPASSES = "SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user"
TENANTS = "SELECT count(*) FROM (SELECT DISTINCT tenant FROM projects LIMIT 2) few"
OPEN_TABLES = (
    "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant' "
    "WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%s) AND c.relkind IN ('r', 'p') "
    "AND NOT (c.relrowsecurity AND c.relforcerowsecurity) ORDER BY 1"
)


def begin(con: Con, place: str, how: str, tenant: str, then: str = "", values: Row = ()) -> list[Row]:
    """Begin a transaction that sees the rows of one tenant, and run a statement. All of it is one round trip.

    A schema that a newer version has brought in since this process connected is refused.
    """
    cursor = ClientCursor(con)
    cursor.execute(f"{how}; {LOCALLY.format('tenant', '%s')}, {NEWEST}; {then}", (f"{SIGN}{tenant}", *values))
    cursor.nextset()
    refuse_newer(place, cursor.fetchall()[0][1])
    while cursor.nextset():
        pass  # the result of the last statement is the one that counts
    return cursor.fetchall() if then else []


def numbers(con: Con, query: str, values: Row) -> list[Row]:
    """The result of a search in numbers, counts and words of the query. The policy is off for this statement.

    All of it is one message, which is a transaction of its own where none is open.
    """
    cursor = ClientCursor(con)
    cursor.execute(f"{UNFILTERED}; {query}; {FILTERED}", values)
    cursor.nextset()
    return cursor.fetchall()


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
