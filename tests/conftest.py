"""What every test may use: an empty home, store addresses, and a real PostgreSQL.

* `store_url`: runs the test twice, with a SQLite path and with a PostgreSQL address.
* `postgres_url`: the address of an empty store in PostgreSQL; see `databases.py`.
* `new_store_url`, `new_postgres_url`: the same, but no tables exist yet.

The server starts when the first test asks for it, once for all workers. LIMPET_TEST_POSTGRES=postgresql://...
uses a server that is already there; its user must be a superuser. The tests themselves connect as an ordinary role
that owns the database, because superusers see the rows of every tenant whatever the tables say.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import other_database
import profiles
from databases import Databases
from postgres import RUN_VARIABLE, SERVER_VARIABLE, Run, ordinary_role, server_cpu_seconds, server_url

RUN = pytest.StashKey[Run]()
STARTED = pytest.StashKey[float]()
IN_MEMORY = pytest.StashKey[Path]()
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of its own is made in it
MEMORY_NEEDED = 3 << 30  # bytes; a run holds about a third of it at once

profiles.load()

# Nearly all that a run makes lives until its end: looking for garbage as often as usual takes a twentieth of its time.
gc.set_threshold(50_000, 20, 50)

# The tests start hundreds of processes, and each would compile the whole package again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--database", help="the address of a database that may be emptied, for all tests with PostgreSQL")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--database"):
        items[:] = [item for item in items if item.get_closest_marker("one_server") is None]


def pytest_configure(config: pytest.Config) -> None:
    """In every process: forget the caller's settings. In the controlling process only: open the test run."""
    own = {RUN_VARIABLE, SERVER_VARIABLE}
    for name in list(os.environ):
        for_us = name.startswith("LIMPET_") and name not in own
        for_libpq = name.startswith("PG") and SERVER_VARIABLE not in os.environ
        if for_us or for_libpq or name.startswith("XDG_"):
            del os.environ[name]
    if config.getoption("--database"):
        os.environ[SERVER_VARIABLE] = config.getoption("--database")  # who may look behind the store's back
    if not hasattr(config, "workerinput"):
        _keep_temporary_files_in_memory(config)
        config.stash[RUN] = Run.begin()
        config.stash[STARTED] = time.monotonic()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what the run cost. On a busy machine the CPU seconds can be compared with another run, the wall time not."""
    times = os.times()
    tests = times.user + times.system + times.children_user + times.children_system
    server = server_cpu_seconds(config.stash[RUN].directory)
    wall = time.monotonic() - config.stash[STARTED]
    terminalreporter.write_line(f"wall {wall:.0f} s, CPU {tests + server:.0f} s (PostgreSQL {server:.0f} s of it)")


def _keep_temporary_files_in_memory(config: pytest.Config) -> None:
    """Half of a run would be spent waiting for a disk to sync stores that nobody needs a minute later."""
    if "TMPDIR" in os.environ or config.option.basetemp or not os.access(MEMORY, os.W_OK | os.X_OK):
        return
    if shutil.disk_usage(MEMORY).free >= MEMORY_NEEDED:
        folder = Path(tempfile.mkdtemp(prefix="tests-", dir=MEMORY))
        folder.chmod(0o711)  # PostgreSQL runs as another user, who passes through
        os.environ["TMPDIR"] = str(folder)
        tempfile.tempdir = None  # so that it is looked up again
        config.stash[IN_MEMORY] = folder


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop what the test run started and take its files out of memory, also after failures."""
    run = config.stash.get(RUN, None)
    if run is not None:
        run.end()
    folder = config.stash.get(IN_MEMORY, None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of all homes. It is the home of fixtures that several tests share, and they work in it too."""
    folder = tmp_path_factory.mktemp("homes")
    (folder / "work").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.chdir(folder / "work")
        yield folder


@pytest.fixture(autouse=True)
def home(_homes: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty home directory for each test, so that no test touches the caller's own files.

    Work begins in a folder in it: servers that start in the home itself work in no project.
    """
    directory = _homes / uuid.uuid4().hex
    (directory / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(directory))
    monkeypatch.chdir(directory / "work")
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def _databases() -> Iterator[Databases]:
    url = server_url()
    with psycopg.connect(url, autocommit=True) as admin:
        ordinary_role(admin)
        databases = Databases(url, admin)
        yield databases
        databases.close()


@pytest.fixture(scope="session")
def other_url(request: pytest.FixtureRequest) -> str:
    """A database that is there already, with a store."""
    url = str(request.config.getoption("--database"))
    other_database.make(url)
    return url


@contextmanager
def _database(request: pytest.FixtureRequest, *, migrated: bool) -> Iterator[str]:
    if request.config.getoption("--database"):
        with other_database.emptied(request.getfixturevalue("other_url")) as url:
            yield url
        return
    databases: Databases = request.getfixturevalue("_databases")
    with databases.migrated() if migrated else databases.new() as url:
        yield url


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a PostgreSQL database with the tables of a store and no rows."""
    with _database(request, migrated=True) as url:
        yield url


@pytest.fixture
def new_postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a PostgreSQL database without tables. Slow: for tests of what happens when a store is created."""
    with _database(request, migrated=False) as url:
        yield url


@pytest.fixture(scope="module")
def module_postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a PostgreSQL database for all the tests of a module."""
    with _database(request, migrated=True) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store; the test runs once for each kind of store."""
    if request.param == "sqlite":
        return str(tmp_path / "limpet.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(params=["sqlite", "postgres"])
def new_store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that does not exist yet; the test runs once for each kind of store."""
    if request.param == "sqlite":
        return str(tmp_path / "limpet.db")
    url: str = request.getfixturevalue("new_postgres_url")
    return url
