"""A store that is spread over the servers of a Citus cluster: whether it is, and how it becomes so.

Every table with a tenant is distributed by it, so that all rows of a tenant are on one server and every statement of
the store is sent to that one. Where a tenant's rows live, and moving them, is up to Citus.
"""

from __future__ import annotations

from psycopg.sql import SQL, Identifier

from limpet import errors
from limpet.store import Distribution, Finding
from limpet.stores.postgres.schema import TABLES, Con
from limpet.stores.postgres.tenants import UNFILTERED

TENANT_TABLES = TABLES[1:]  # all but the one that says which migrations have run
EXTENSION = "SELECT extversion FROM pg_extension WHERE extname = 'citus'"
ONE_DISTRIBUTED = "SELECT 1 FROM pg_dist_partition WHERE logicalrelid = '{}'::regclass"
DISTRIBUTED = (
    "SELECT c.relname FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid "
    "WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%s)"
)
WORKERS = "SELECT nodename || ':' || nodeport FROM pg_dist_node WHERE noderole = 'primary' AND isactive {} ORDER BY 1"
SHARDS = (
    "SELECT nodename || ':' || nodeport, count(*) FROM citus_shards "
    "WHERE table_name = 'projects'::regclass GROUP BY 1 ORDER BY 1"
)
OWNED = (
    "SELECT c.relname FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%s) "
    "AND NOT pg_has_role(c.relowner, 'MEMBER') ORDER BY 1"
)


def is_distributed(con: Con) -> bool:
    return bool(con.execute(EXTENSION).fetchall()) and bool(_distributed(con))


def _distributed(con: Con) -> set[str]:
    return {name for (name,) in con.execute(DISTRIBUTED, ([*TENANT_TABLES],)).fetchall()}


def plan(con: Con, place: str) -> Distribution:
    """Look whether the store can be distributed, and what there is to do. Inside a transaction that is unfiltered."""
    if not con.execute(EXTENSION).fetchall():
        raise errors.not_distributed(
            place, "its database has no extension citus: a superuser runs CREATE EXTENSION citus on every server"
        )
    workers = tuple(name for (name,) in con.execute(WORKERS.format("AND shouldhaveshards")).fetchall())
    if not workers:
        raise errors.not_distributed(
            place,
            "no server is there to take rows: a superuser runs SELECT citus_add_node('host', 5432) for each worker",
        )
    if foreign := con.execute(OWNED, ([*TENANT_TABLES],)).fetchall():
        raise errors.not_distributed(place, f"its role does not own the table {foreign[0][0]}")
    done = _distributed(con)
    left = [table for table in TENANT_TABLES if table not in done]
    counts = [con.execute(SQL("SELECT count(*) FROM {}").format(Identifier(table))).fetchall() for table in left]
    return Distribution(
        tuple((table, count[0][0]) for table, count in zip(left, counts, strict=True)), workers, len(done)
    )


def distribute(con: Con, place: str, *, dry_run: bool = False) -> Distribution:
    """Distribute all tables that are not yet, inside a transaction. Writers wait meanwhile."""
    con.execute("SET LOCAL statement_timeout = 0")  # rows are moved
    con.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    con.execute(UNFILTERED)
    planned = plan(con, place)
    if dry_run or not planned.tables:
        return planned
    con.execute("LOCK TABLE projects IN SHARE ROW EXCLUSIVE MODE")
    beside = next(iter(_distributed(con)), "none")  # all rows of a tenant stay together
    for table, _ in planned.tables:
        name = Identifier(table)
        # Rows are moved by COPY, which is refused where row-level security holds for who runs it.
        con.execute(SQL("ALTER TABLE {} NO FORCE ROW LEVEL SECURITY").format(name))
        con.execute("SELECT create_distributed_table(%s, 'tenant', colocate_with => %s)", (table, beside))
        con.execute(SQL("ALTER TABLE {} FORCE ROW LEVEL SECURITY").format(name))
        beside = table
    return planned


def follow(con: Con, place: str) -> None:
    """Distribute what a migration has added to a store that is distributed."""
    if is_distributed(con):
        with con.transaction():
            distribute(con, place)


def check(con: Con) -> tuple[Finding, ...]:
    """What the health check says of a store that is distributed; nothing of one that is not."""
    if not is_distributed(con):
        return ()
    left = sorted({*TENANT_TABLES} - _distributed(con))
    if left:
        cure = "run `limpet store distribute`, as after every upgrade that brings tables"
        return (Finding("distributed", False, f"{', '.join(left)} is on the coordinator alone; {cure}"),)
    shards = ", ".join(f"{node} has {count} of its parts" for node, count in con.execute(SHARDS).fetchall())
    return (Finding("distributed", True, f"every table is distributed by tenant: {shards}"),)
