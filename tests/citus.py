"""A store on a Citus cluster that is there already: `make test-citus CITUS=postgresql://postgres@coordinator/database`.

The address is that of a superuser, of a database that tests may empty. The store is distributed once for a run and
emptied for each test, because to distribute it takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from limpet.stores.postgres import schema
from limpet.stores.postgres.store import PostgresStore
from postgres import ORDINARY, as_ordinary, ordinary_role

PARTS = 4  # of each table; to empty 32 of them takes seconds
RIGHTS = f"GRANT ALL ON SCHEMA public TO {ORDINARY}; GRANT CREATE ON DATABASE {{}} TO {ORDINARY}"
DROP = "DROP TABLE IF EXISTS {} CASCADE; DROP FUNCTION IF EXISTS limpet_protect, limpet_unfiltered CASCADE"


def make(url: str) -> None:
    """Make a store anew in the database, and distribute it."""
    with psycopg.connect(url, autocommit=True) as admin:
        ordinary_role(admin)
        for right in RIGHTS.format(admin.info.dbname).split("; "):
            admin.execute("SELECT run_command_on_all_nodes(%s)", (right,))
        for drop in DROP.format(", ".join(schema.TABLES)).split("; "):
            admin.execute(drop)
    with_parts = f"{as_ordinary(url)}{'&' if '?' in url else '?'}options=-c%20citus.shard_count%3D{PARTS}"
    store = PostgresStore(with_parts)
    store.distribute()
    store.close()


@contextmanager
def emptied(url: str) -> Iterator[str]:
    """The address of the store without a row, for an ordinary role."""
    with psycopg.connect(url) as admin:  # one transaction: a commit on all servers takes a while
        for table in schema.TABLES[1:]:
            admin.execute(f"DELETE FROM {table}")
    yield as_ordinary(url)
