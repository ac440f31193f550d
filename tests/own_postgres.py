"""PostgreSQL servers of one test alone, which may do to them what it likes: one, or one with a standby.

They are children of the process that runs the test, and end with it even when it is killed.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

import postgres

STANDBY = "standby"
OWNER, DATABASE = "keeper", "limpet"
WAIT_SECONDS = 60
SETTINGS = postgres.SERVER_SETTINGS | {"max_connections": "60", "wal_level": "replica", "max_wal_senders": "4"}
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_libc = ctypes.CDLL(None, use_errno=True)


def _end_with_us() -> None:
    _libc.prctl(DIE_WITH_PARENT, signal.SIGQUIT)


def _runs(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    return False


class Node:
    """One of the two servers, in a folder that has its socket too."""

    def __init__(self, run: Path, name: str, programs: Path | None = None) -> None:
        self.who = postgres._server_user()
        self.home = run / name
        self.home.mkdir(mode=0o700)
        if self.who:
            os.chown(self.home, self.who["user"], self.who["group"])
        self.programs = programs or postgres._programs(run, self.home, self.who)
        self.data = self.home / "data"
        self.log = run / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None

        place = f"host={self.home}&port={postgres.PORT}"
        self.admin_url = f"postgresql://postgres@/postgres?{place}"
        self.url = f"postgresql://{OWNER}@/{DATABASE}?{place}"

    def make(self, program: str, *words: str) -> None:
        done = subprocess.run(
            [str(self.programs / program), "-D", str(self.data), "-U", "postgres", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=self.home,
            env=postgres._environment(),
            check=False,
            **self.who,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def initialise(self) -> None:
        order = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        self.make("initdb", "-A", "trust", "-E", "UTF8", "--no-sync", *order)

    def start(self, **more: str) -> None:
        settings = SETTINGS | {"unix_socket_directories": str(self.home), **more}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [str(self.programs / "postgres"), "-D", str(self.data), *(f"--{k}={v}" for k, v in settings.items())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.home,
                env=postgres._environment(),
                start_new_session=True,
                preexec_fn=_end_with_us,  # noqa: PLW1509 - no thread of ours forks at the same time
                **self.who,
            )
        postgres._wait_until_ready(self.process, self.admin_url, self.log)

    def make_database(self) -> None:
        """For a role that is nothing special, as one should have for a store."""
        self.ask(f"CREATE ROLE {OWNER} LOGIN")
        self.ask(f"CREATE DATABASE {DATABASE} OWNER {OWNER}")

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        return self._ask(self.admin_url, sql)

    def _ask(self, url: str, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(url, autocommit=True) as con:
            cursor = con.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def ask_store(self, sql: str) -> list[tuple[Any, ...]]:
        """As the role that owns the store."""
        return self._ask(self.url, sql)

    def until(self, sql: str) -> Any:
        """The first value of the query's answer, as soon as it is there and true."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not ((found := self.ask(sql)) and found[0][0]):
            assert time.monotonic() < deadline, (sql, self.log.read_text(errors="replace")[-2000:])
            time.sleep(0.02)
        return found[0][0]

    def kill(self) -> None:
        """As if its power was cut, but that what it wrote to the disk is there.

        All of its processes: one that serves a client goes on for a moment when only the one above it is gone.
        """
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)  # so that it starts no more of them
        pid = self.process.pid
        ended = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        for one in ended:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        deadline = time.monotonic() + WAIT_SECONDS
        while any(_runs(one) for one in ended):
            assert time.monotonic() < deadline, ended
            time.sleep(0.01)

    def shut_down(self) -> None:
        """In good order, with everything on the disk."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        self.process.wait(WAIT_SECONDS)

    def stop(self) -> None:
        """At once: nobody needs what it holds any more."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(postgres.STOP_SECONDS)


class Pair:
    def __init__(self, primary: Node, standby: Node) -> None:
        self.primary = primary
        self.standby = standby
        # Whichever of them takes writes: this is all that a client has to know.
        self.url = (
            f"postgresql://{OWNER}@/{DATABASE}?host={primary.home},{standby.home}"
            f"&port={postgres.PORT},{postgres.PORT}&target_session_attrs=read-write"
        )

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        """The primary goes on, and nothing of it reaches the standby any more."""
        sender = int(self.primary.until(f"SELECT pid FROM pg_stat_replication WHERE application_name = '{STANDBY}'"))
        os.kill(sender, signal.SIGSTOP)
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                os.kill(sender, signal.SIGKILL)

    def follow(self, **more: str) -> None:
        """Start the standby."""
        follow = f"host={self.primary.home} port={postgres.PORT} user=postgres application_name={STANDBY}"
        self.standby.start(primary_conninfo=follow, synchronous_standby_names="", **more)

    def caught_up(self) -> None:
        """Wait until the standby shows all that the primary has kept by now."""
        # A change of no store's: its commit waits for the disk, so that nothing before it is still on its way there.
        self.primary.ask("SELECT pg_logical_emit_message(true, 'test', '')")
        (written,) = self.primary.ask("SELECT pg_current_wal_flush_lsn()")[0]
        self.standby.until(f"SELECT pg_last_wal_replay_lsn() >= '{written}'")

    def pause(self) -> None:
        """The standby gets what the primary writes, and does not show it."""
        self.standby.ask("SELECT pg_wal_replay_pause()")
        self.standby.until("SELECT pg_get_wal_replay_pause_state() = 'paused'")

    def resume(self) -> None:
        self.standby.ask("SELECT pg_wal_replay_resume()")

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def take_over(self) -> None:
        self.primary.kill()
        self.standby.until("SELECT pg_promote(true, 60)")


@contextmanager
def _folder() -> Iterator[Path]:
    run = Path(tempfile.mkdtemp(prefix="limpet-own-", dir=postgres._base()))
    run.chmod(0o711)  # the servers' user must be able to pass through to its own folders
    try:
        yield run
    finally:
        shutil.rmtree(run, ignore_errors=True)


@contextmanager
def alone() -> Iterator[Node]:
    """One server."""
    with _folder() as run:
        node = Node(run, "one")
        try:
            node.initialise()
            node.start()
            node.make_database()
            yield node
        finally:
            node.stop()


@contextmanager
def pair(*, synchronous: bool) -> Iterator[Pair]:
    """A primary, and a standby that follows it. Synchronous: a commit waits until it is on the disk of both."""
    with _folder() as run:
        primary = Node(run, "one")
        standby = Node(run, "two", primary.programs)
        try:
            primary.initialise()
            primary.start()
            primary.make_database()
            place = ("-h", str(primary.home), "-p", str(postgres.PORT))
            standby.make("pg_basebackup", *place, "-c", "fast", "-R", "--no-sync")
            both = Pair(primary, standby)
            both.follow()
            if synchronous:
                primary.ask(f"ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'")
                primary.ask("SELECT pg_reload_conf()")
            state = "sync" if synchronous else "async"
            there = f"SELECT count(*) FROM pg_stat_replication WHERE sync_state = '{state}' AND state = 'streaming'"
            primary.until(there)
            yield both
        finally:
            primary.stop()
            standby.stop()
