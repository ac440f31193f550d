"""Three PostgreSQL servers with tenants spread over them, as docs/spread.sql tells an operator to set them up.

The coordinator is the ordinary server of the test run, so four servers run in all.
"""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

import postgres
from limpet.wiring import choose_store
from postgres import ORDINARY, as_ordinary, database_url, ordinary_role

NODES, PARTS = 3, 6
PART_ROLE = "limpet_part"
SPREAD_SQL = Path(__file__).parent.parent / "docs" / "spread.sql"
CLEAR = """
DO $$ DECLARE kept record; BEGIN
    FOR kept IN SELECT schemaname AS part, tablename AS name FROM pg_tables
        WHERE schemaname LIKE 'part_%' AND tablename <> 'limpet_schema'
    LOOP EXECUTE format('DELETE FROM %I.%I', kept.part, kept.name); END LOOP;
END $$"""
OPTIONS = "-c lock_timeout=30000 -c statement_timeout=60000 -c idle_in_transaction_session_timeout=60000"


class Spread(NamedTuple):
    coordinator: str  # addresses of the database on each server, for a superuser
    nodes: tuple[str, ...]

    @contextmanager
    def database(self) -> Iterator[str]:
        """The address of an empty store that is spread over the nodes, for an ordinary role."""
        for node in self.nodes:
            _run(node, CLEAR)
        yield as_ordinary(self.coordinator)


@contextmanager
def started(run: Path) -> Iterator[Spread]:
    """Three servers more, and a store that is spread over them. It is emptied for each test, because to make one for
    each, on four servers, takes seconds."""
    name = f"limpet_spread_{uuid.uuid4().hex}"
    servers: list[subprocess.Popen[bytes]] = []
    try:
        urls = []
        for node in range(NODES):
            folder = run / f"node{node}-{name[-4:]}"
            folder.mkdir()
            folder.chmod(0o711)
            server, url = postgres._start_server(folder)
            servers.append(server)
            postgres._wait_until_ready(server, url, folder / "server.log")
            _make_node(url, name, node)
            urls.append(database_url(url, name))
        spread = Spread(make_coordinator(name, urls), tuple(urls))
        spread_over(spread)
        yield spread
        _run(postgres.server_url(), f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        for server in servers:
            postgres._stop_server(server)


def _run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as con:
        for statement in statements:
            con.execute(statement)


def _make_node(url: str, name: str, node: int) -> None:
    _run(url, f"CREATE ROLE {PART_ROLE} LOGIN BYPASSRLS", f"CREATE DATABASE {name} OWNER {PART_ROLE}")
    there = database_url(url, name)
    _run(there, *(f"CREATE SCHEMA part_{part} AUTHORIZATION {PART_ROLE}" for part in range(node, PARTS, NODES)))
    make_parts(there, node)


def make_coordinator(name: str, nodes: Sequence[str]) -> str:
    """A database with the tables of an empty store, which knows the nodes; its address."""
    with psycopg.connect(postgres.server_url(), autocommit=True) as admin:
        ordinary_role(admin)
        admin.execute(f"CREATE DATABASE {name} OWNER {ORDINARY}")
    here = database_url(postgres.server_url(), name)
    choose_store(as_ordinary(here)).close()
    setup = ["CREATE EXTENSION postgres_fdw"]
    for node, url in enumerate(nodes):
        info = conninfo_to_dict(url)
        place = f"host '{info['host']}', port '{info['port']}', dbname '{info['dbname']}', options '{OPTIONS}'"
        setup.append(f"CREATE SERVER node{node} FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({place})")
        mapping = f"SERVER node{node} OPTIONS (user '{PART_ROLE}', password_required 'false')"
        setup.append(f"CREATE USER MAPPING FOR {ORDINARY} {mapping}")
        setup.append(f"CREATE USER MAPPING FOR CURRENT_USER {mapping}")  # for those who look behind the store's back
        setup.append(f"GRANT USAGE ON FOREIGN SERVER node{node} TO {ORDINARY}")
    _run(here, *setup)
    return here


def spread_over(spread: Spread, parts: int = PARTS) -> None:
    names = ", ".join(f"'node{node}'" for node in range(NODES))
    _run(as_ordinary(spread.coordinator), SPREAD_SQL.read_text(), f"CALL limpet_spread(ARRAY[{names}], {parts})")


def make_parts(url: str, node: int) -> None:
    """Open each part of a node as a store: it comes to exist, or to the newest schema."""
    for part in range(node, PARTS, NODES):
        options = quote(f"-c search_path=part_{part}")
        choose_store(f"{postgres._as(url, PART_ROLE)}&options={options}").close()
