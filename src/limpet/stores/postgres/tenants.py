"""Whose rows a PostgreSQL connection sees: row-level security, from our side.

Every table shows a row only to the tenant that `limpet.tenant` names (migration 0006), so a statement that forgets to
ask for its tenant still finds and changes nothing of others. A transaction says it with its BEGIN, a single read when
the connection worked for another tenant before, so nobody waits for an answer more.

Two things read past that rule, and only read. The health check goes over the whole store. And searches for words and
substrings ask for numbers, because no index for them can be used under the rule; what the numbers stand for is then
read under it. Such statements are never kept prepared: a plan that was made without the rule must not be used again.
"""

from __future__ import annotations

from typing import Any

from psycopg import ClientCursor

from limpet.store import Finding
from limpet.stores.postgres.schema import Con

Row = tuple[Any, ...]
VIEW = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
SIGN = "="  # before a tenant's name in the setting, so that an empty one is not taken for none
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


def begin(con: Con, how: str, tenant: str, then: str = "", values: Row = ()) -> list[Row]:
    """Begin a transaction that sees the rows of one tenant, and ask something at once. All of it travels together."""
    cursor = ClientCursor(con)
    cursor.execute(f"{how}; {LOCALLY.format('tenant', '%s')}; {then}", (f"{SIGN}{tenant}", *values))
    while cursor.nextset():
        pass  # the answer to what was asked last is the one that counts
    return cursor.fetchall() if then else []


def numbers(con: Con, query: str, values: Row) -> list[Row]:
    """What a search answers with numbers, counts and words that were asked for. The rule is off for it alone.

    All of it is one message, which is a transaction by itself where none is under way.
    """
    cursor = ClientCursor(con)
    cursor.execute(f"{UNFILTERED}; {query}; {FILTERED}", values)
    cursor.nextset()
    return cursor.fetchall()


def separation(con: Con, tables: tuple[str, ...]) -> Finding:
    """Whether the server keeps tenants apart by itself. Asked by the health check, which sees all of them."""
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
