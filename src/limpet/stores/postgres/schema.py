"""The tables of a PostgreSQL store: whether they are Limpet's, their version, and how they are created.

Any number of processes may start at once on an empty database: one creates the tables, the others wait for it. A
database of a later Limpet, or with tables of another program, is left untouched.
"""

from __future__ import annotations

import os
import re
from itertools import pairwise
from typing import Any

import psycopg

from limpet import errors

Con = psycopg.Connection[tuple[Any, ...]]
SCHEMA = 9  # the newest migration; a test keeps it equal to the files
MIGRATIONS = os.path.join(os.path.dirname(__file__), "migrations")
TABLES = (
    *("limpet_schema", "projects", "entries", "entry_tags", "tallies", "events"),
    *("outputs", "output_chunks", "output_tombstones", "output_pieces"),
    *("output_calls", "output_reads", "output_savings"),
    *("vectors", "vectors_waiting", "vector_models"),
    *("retries", "uses"),
)
# The lock of a project, for changes that leave its row as it is. The row is written all the same: on a server where a
# transaction sees one moment, a waiting transaction would otherwise continue with data from before the wait.
TAKE_PROJECT = "UPDATE projects SET clock = clock WHERE tenant = %s AND project = %s RETURNING 1"
NEWEST = "(SELECT max(version) FROM limpet_schema)"
LOCK_NUMBER = 0x4C696D706574  # "Limpet": the name of our advisory lock, as a number


def prepare(con: Con, place: str) -> bool:
    """Make sure that the tables exist in the current version: usually one read. `con` is in autocommit mode. True if
    there was something to do."""
    try:
        version = _version(con, place)
    except psycopg.errors.UndefinedTable:
        version = 0
    if version < SCHEMA:
        with con.transaction():
            _migrate(con, place)
    return version < SCHEMA


def _version(con: Con, place: str) -> int:
    try:
        versions = con.execute("SELECT version FROM limpet_schema").fetchall()
    except (psycopg.errors.UndefinedColumn, psycopg.errors.WrongObjectType) as problem:
        raise errors.not_a_store(place, "its table limpet_schema is not ours") from problem
    if len(versions) != 1 or not isinstance(versions[0][0], int):
        raise errors.not_a_store(place, "its table limpet_schema is not ours")
    version: int = versions[0][0]
    refuse_newer(place, version)
    return version


def refuse_newer(place: str, version: int | None) -> None:
    if version is not None and version > SCHEMA:
        raise errors.store_too_new(place, version, SCHEMA)


def _migrate(con: Con, place: str) -> None:
    """Inside a transaction: all missing migrations, or none. Waits for another process that is migrating."""
    con.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK_NUMBER,))
    con.execute("SET LOCAL statement_timeout = 0")  # building an index may take long
    exists = con.execute("SELECT to_regclass('limpet_schema') IS NOT NULL").fetchone() == (True,)
    if exists:
        # Every transaction reads the version first. This waits for those of an older Limpet: what they write after the
        # migration would lack what it adds. Those that begin now wait, and then see that they are too old.
        con.execute("LOCK TABLE limpet_schema IN ACCESS EXCLUSIVE MODE")
    version = _version(con, place) if exists else _nothing_of_others(con, place)
    if version == SCHEMA:
        return
    for number in range(version + 1, SCHEMA + 1):
        try:
            for statement in statements(migration(number)):
                con.execute(statement, prepare=False)
        except psycopg.errors.DuplicateTable as problem:  # created by another program
            raise errors.not_a_store(place, f"{problem.diag.message_primary}, made by another program") from problem
    con.execute("DELETE FROM limpet_schema")
    con.execute("INSERT INTO limpet_schema (version) VALUES (%s)", (SCHEMA,))


def _nothing_of_others(con: Con, place: str) -> int:
    """Version 0, after a check that there are no tables of another program."""
    (encoding,) = con.execute("SELECT current_setting('server_encoding')").fetchall()[0]
    if encoding != "UTF8":
        raise errors.not_a_store(place, f"its encoding is {encoding}, and Limpet needs a database in UTF8")
    taken = con.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = current_schema() AND c.relname = ANY(%s) ORDER BY 1",
        (list(TABLES),),
    ).fetchall()
    if taken:
        raise errors.not_a_store(place, f"it has a table {taken[0][0]} of another program")
    return 0


def statements(text: str) -> list[str]:
    """The statements of a migration. Citus hands some on to its servers, and would hand on all of one message."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    ends = re.compile(r"\$\$.*?\$\$|;$", re.DOTALL | re.MULTILINE)
    marks = [0, *(end.end() for end in ends.finditer(lines) if end[0] == ";"), len(lines)]
    return [part for start, end in pairwise(marks) if (part := lines[start:end].strip())]


def migration(number: int) -> str:
    """The text of a migration."""
    (name,) = [name for name in os.listdir(MIGRATIONS) if name.startswith(f"{number:04d}_")]
    with open(os.path.join(MIGRATIONS, name), encoding="utf-8") as file:
        return file.read()
