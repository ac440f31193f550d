"""PostgreSQL databases for tests: new ones, and migrated ones that are emptied and used again.

Making, migrating and dropping a database takes 150 ms; emptying one takes 10 ms. A test that gets a used database must
not be able to tell: its rows are deleted, its sequences start again, and a database whose schema a test has changed
(a trigger, a policy, a setting) is thrown away.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
from psycopg import sql

from limpet.stores.postgres import schema
from limpet.wiring import choose_store
from postgres import ORDINARY, as_ordinary, database_url

# Above this size deleted rows slow the next tests down.
LARGEST_BYTES = 64_000_000
# Every change of a schema leaves a row with another `xmin` in one of these catalogues.
_CATALOGUES = ("pg_class", "pg_attribute", "pg_constraint", "pg_trigger", "pg_policy", "pg_proc", "pg_namespace")
_FIRST_OWN_OID = 16384  # below are the objects that PostgreSQL itself makes
_IDENTITY = {"pg_attribute": "attrelid"}


def _fingerprint_query() -> str:
    parts = [
        f"SELECT '{catalogue} ' || {_IDENTITY.get(catalogue, 'oid')} || ' ' || xmin AS part FROM {catalogue} "
        f"WHERE {_IDENTITY.get(catalogue, 'oid')} >= {_FIRST_OWN_OID}"
        for catalogue in _CATALOGUES
    ]
    parts.append("SELECT 'public ' || xmin FROM pg_namespace WHERE nspname = 'public'")
    parts.append(
        "SELECT 'setting ' || s.setrole || s.setconfig::text FROM pg_db_role_setting s "
        "JOIN pg_database d ON d.oid = s.setdatabase WHERE d.datname = current_database()"
    )
    return f"SELECT md5(string_agg(part, ',' ORDER BY part)) FROM ({' UNION ALL '.join(parts)}) AS all_parts"


_FINGERPRINT = _fingerprint_query()
_DISCONNECT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
_DISCONNECT_SECONDS = 10
_RESTART_SEQUENCES = "SELECT setval(seqrelid::regclass, seqstart, false) FROM pg_sequence"
_EMPTY = ";".join(
    [
        "SET session_replication_role = replica",  # without triggers
        *(f"DELETE FROM {table}" for table in schema.TABLES),
        f"INSERT INTO limpet_schema (version) VALUES ({schema.SCHEMA})",
        _RESTART_SEQUENCES,
    ]
)


class Databases:
    """The databases of one test process on one server."""

    def __init__(self, server: str, admin: psycopg.Connection) -> None:
        self._server = server
        self._admin = admin
        self._free: list[str] = []
        self._fingerprints: dict[str, str] = {}

    @contextmanager
    def new(self) -> Iterator[str]:
        """The address of an empty database, which is gone afterwards."""
        name = self._create()
        yield as_ordinary(database_url(self._server, name))
        self._drop(name)

    @contextmanager
    def migrated(self) -> Iterator[str]:
        """The address of a database with the newest tables and no rows."""
        name = self._free.pop() if self._free else self._create_migrated()
        yield as_ordinary(database_url(self._server, name))
        if self._emptied(name):
            self._free.append(name)
        else:
            self._drop(name)

    def close(self) -> None:
        for name in self._free:
            self._drop(name)

    def _create(self) -> str:
        name = f"limpet_test_{uuid.uuid4().hex}"
        # Writing the copy to the log takes half the time of copying files, which forces two checkpoints.
        create = "CREATE DATABASE {} TEMPLATE template0 STRATEGY wal_log OWNER {}"
        self._admin.execute(sql.SQL(create).format(sql.Identifier(name), sql.Identifier(ORDINARY)))
        return name

    def _create_migrated(self) -> str:
        name = self._create()
        url = database_url(self._server, name)
        choose_store(as_ordinary(url)).close()
        with psycopg.connect(url) as con:
            self._fingerprints[name] = _fingerprint(con)
        return name

    def _drop(self, name: str) -> None:
        self._admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _disconnect(self, name: str) -> None:
        """End the connections that the test left open, and wait until they can no longer commit anything."""
        deadline = time.monotonic() + _DISCONNECT_SECONDS
        while self._admin.execute(_DISCONNECT, (name,)).fetchall() and time.monotonic() < deadline:
            time.sleep(0.002)

    def _emptied(self, name: str) -> bool:
        """Delete all rows. False if the database cannot be used again."""
        self._disconnect(name)
        with suppress(psycopg.Error), psycopg.connect(database_url(self._server, name), autocommit=True) as con:
            if _fingerprint(con) != self._fingerprints[name]:
                return False
            con.execute(_EMPTY)
            size = con.execute("SELECT pg_database_size(current_database())").fetchone()
            return size is not None and size[0] < LARGEST_BYTES
        return False


def _fingerprint(con: psycopg.Connection) -> str:
    row = con.execute(_FINGERPRINT).fetchone()
    assert row is not None
    return str(row[0])
