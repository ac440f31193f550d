"""A real PostgreSQL for a benchmark: the server that the tests start, with the memory that a team would give it.

It syncs every commit, as in production; only what a commit need not wait for (checkpoints) is set wider than for tests.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from bench.measure import ROOT, cpu_of

sys.path.append(str(ROOT / "tests"))  # where the tests' own way of starting one is
from postgres import RUN_VARIABLE, SERVER_VARIABLE, SETTINGS_VARIABLE, Run, database_url, server_url

SETTINGS = {
    "shared_buffers": "1GB",
    "effective_cache_size": "4GB",
    "maintenance_work_mem": "256MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
}


class Cluster:
    """One server; every `database` is a new one."""

    def __init__(self, url: str, home: Path | None) -> None:
        self.url = url
        self._home = home

    def database(self, name: str) -> str:
        unique = f"{name}_{uuid.uuid4().hex[:8]}"
        with psycopg.connect(self.url, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {unique} TEMPLATE template0")
        return database_url(self.url, unique)

    def version(self) -> str:
        with psycopg.connect(self.url) as admin:
            return str(admin.info.parameter_status("server_version"))

    def cpu(self) -> float | None:
        """CPU seconds of the server's living processes; those of ended ones are counted by nobody."""
        if self._home is None or not sys.platform.startswith("linux"):
            return None
        inside = str(self._home)
        return sum(
            cpu_of(int(path.name)) or 0.0
            for path in Path("/proc").iterdir()
            if path.name.isdecimal() and _folder_of(path).startswith(inside)
        )


def _folder_of(process: Path) -> str:
    try:
        return os.readlink(process / "cwd")
    except OSError:
        return ""


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A server that lives as long as the block, or the one named in LIMPET_TEST_POSTGRES."""
    os.environ[SETTINGS_VARIABLE] = json.dumps(SETTINGS)
    run = None if RUN_VARIABLE in os.environ else Run.begin()
    try:
        home = None if SERVER_VARIABLE in os.environ else Path(os.environ[RUN_VARIABLE]) / "server"
        yield Cluster(server_url(), home)
    finally:
        if run is not None:
            run.end()
        del os.environ[SETTINGS_VARIABLE]
