"""A database that is there already, for the contract of the stores: `make test-database DATABASE=postgresql://…`.

The address is that of a superuser, of a database that tests may empty: an older PostgreSQL, one behind a pooler, one on
a Citus cluster. The store is made once for a run and emptied for each test. Where the database has the extension citus,
it is distributed, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from limpet.stores.postgres import schema
from limpet.stores.postgres.distribute import EXTENSION
from limpet.stores.postgres.store import PostgresStore
from postgres import ORDINARY, as_ordinary, ordinary_role

PARTS = 4  # of each table; to empty 32 of them takes seconds
RIGHTS = (f"GRANT ALL ON SCHEMA public TO {ORDINARY}", f"GRANT CREATE ON DATABASE {{}} TO {ORDINARY}")
DROP = (
    f"DROP TABLE IF EXISTS {', '.join(schema.TABLES)} CASCADE",
    "DROP FUNCTION IF EXISTS limpet_protect, limpet_unfiltered CASCADE",
)
ON_ALL = "SELECT run_command_on_all_nodes(%s)"


def make(url: str) -> None:
    """Make a store anew in the database, and distribute it where that can be done."""
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as admin:
        ordinary_role(admin)
        is_cluster = bool(admin.execute(EXTENSION).fetchall())
        (name,) = admin.execute("SELECT current_database()").fetchall()[0]
        for right in (text.format(name) for text in RIGHTS):
            admin.execute(*((ON_ALL, (right,)) if is_cluster else (right,)))
        for drop in DROP:
            admin.execute(drop)
    store = PostgresStore(f"{as_ordinary(url)}{'&' if '?' in url else '?'}options=-c%20citus.shard_count%3D{PARTS}")
    if is_cluster:
        store.distribute()
    store.close()


@contextmanager
def emptied(url: str) -> Iterator[str]:
    """The address of the store without a row, for an ordinary role."""
    with psycopg.connect(url, prepare_threshold=None) as admin:  # one transaction: on a cluster a commit takes a while
        for table in schema.TABLES[1:]:
            admin.execute(f"DELETE FROM {table}")
    yield as_ordinary(url)
