"""Under load, processes are killed that others rely on: PostgreSQL's backends, the HTTP server, one of its workers.

Nothing that an agent was told is kept may be lost, and nothing may be there twice.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from contract.kit import put
from doors.team_kit import PROJECT, TENANT, stored, team_server
from doors.test_workers import workers_of
from journeys.agents import SCOPE, Agents, held
from limpet.model import MEMORY
from limpet.wiring import choose_store
from own_postgres import Node, alone

OURS = "FROM pg_stat_activity WHERE application_name = 'limpet'"
EVERY_TENTH = 10  # is killed outright, after which PostgreSQL ends all the others and recovers


def kill_a_backend(node: Node, dice: random.Random, *, outright: bool) -> bool:
    """Whether there was one to kill."""
    with suppress(psycopg.OperationalError):  # it is just recovering from the last one
        found = node.ask(f"SELECT pid {OURS}")
        if not found:
            return False
        (pid,) = dice.choice(found)
        if not outright:
            return node.ask(f"SELECT pg_terminate_backend({pid})") == [(True,)]
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return True
    return False


def backends_are_killed(kills: int, folder: Path) -> None:
    dice = random.Random(20_260_303)
    with alone() as node:
        token = stored(node.url, "write").secret
        with team_server(node.url, folder) as url:
            agents = Agents(url, token)
            try:
                for number in range(1, kills + 1):
                    agents.until_more(3)
                    while not kill_a_backend(node, dice, outright=number % EVERY_TENTH == EVERY_TENTH // 2):
                        time.sleep(0.01)
                agents.until_more(20)
            finally:
                agents.end()
        assert agents.acknowledged >= 3 * kills
        held(agents, node.url)


@pytest.mark.timeout(300)
def test_backends_are_killed_while_agents_write(tmp_path: Path) -> None:
    backends_are_killed(6, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_hundred_backends_are_killed_while_agents_write(tmp_path: Path) -> None:
    backends_are_killed(100, tmp_path)


def test_what_is_lost_or_doubled_is_noticed(store_url: str) -> None:
    """So that the tests here can fail."""
    store = choose_store(store_url)
    for key, text in {"a": "one", "b": "two"}.items():
        put(store, SCOPE, key, text)
    put(store, SCOPE, "fact", "is so", kind=MEMORY)
    agents = Agents("", "", count=0)
    agents.notes, agents.memory = ["one", "two"], {"fact": "is so"}
    held(agents, store_url)
    agents.notes.append("three")
    with pytest.raises(AssertionError, match="acknowledged and lost"):
        held(agents, store_url)
    agents.notes.pop()
    agents.memory["other"] = "is so too"
    with pytest.raises(AssertionError):
        held(agents, store_url)
    del agents.memory["other"]
    put(store, SCOPE, "c", "two")
    with pytest.raises(AssertionError, match="there twice"):
        held(agents, store_url)
    store.close()


class Served:
    """`limpet serve --team` on a port that stays the same however often it is started."""

    def __init__(self, store: str, folder: Path, workers: int) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = folder / "serve.log"
        words = ["serve", "--store", store, "--project", PROJECT, "--port", str(self.port), "--json", "--team"]
        self._command = [sys.executable, "-m", "limpet", *words, "--profile", "full", "--workers", str(workers)]
        self.process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        """As a supervisor does: again, until the port is free. The workers of a killed server end by themselves."""
        env = {**os.environ, "LIMPET_TENANT": TENANT, "LIMPET_SET": "server.calls_per_minute=10000000"}
        deadline = time.monotonic() + 60
        while True:
            with self._log.open("a", encoding="utf-8") as log:
                process = subprocess.Popen(
                    self._command, stdout=subprocess.PIPE, stderr=log, text=True, env=env, cwd=self._log.parent
                )
            assert process.stdout is not None
            if said := process.stdout.readline():
                assert json.loads(said)["url"].startswith(self.url)
                return process
            process.communicate()
            assert time.monotonic() < deadline, self._log.read_text(encoding="utf-8")
            time.sleep(0.1)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def restart(self) -> None:
        self.kill()
        self.process = self._start()

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=40)


def a_server_is_killed(store: str, folder: Path, kills: int, workers: int) -> None:
    dice = random.Random(kills)
    token = stored(store, "write").secret
    server = Served(store, folder, workers)
    try:
        agents = Agents(server.url, token)
        try:
            for number in range(kills):
                agents.until_more(5)
                time.sleep(dice.uniform(0, 0.05))  # anywhere in a call
                below = workers_of(server.process) if workers > 1 else []
                if below and number % 2 == 0:
                    os.kill(dice.choice(below), signal.SIGKILL)
                else:
                    server.restart()
            agents.until_more(20)
        finally:
            agents.end()
    finally:
        server.stop()
    assert agents.retries > 0, "nobody noticed that anything was killed"
    assert agents.acknowledged >= 5 * kills
    held(agents, store)


needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="children are found in /proc")


@needs_proc
@pytest.mark.timeout(300)
def test_a_worker_and_then_the_server_are_killed_while_agents_write(postgres_url: str, tmp_path: Path) -> None:
    a_server_is_killed(postgres_url, tmp_path, 2, workers=2)


@needs_proc
@pytest.mark.slow
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("workers", [1, 2])
def test_servers_are_killed_many_times_while_agents_write(store_url: str, tmp_path: Path, workers: int) -> None:
    a_server_is_killed(store_url, tmp_path, 25, workers)


@needs_proc
def test_workers_end_when_their_parent_was_killed(tmp_path: Path) -> None:
    server = Served(str(tmp_path / "limpet.db"), tmp_path, 2)
    below = workers_of(server.process)
    assert len(below) == 2
    server.kill()
    deadline = time.monotonic() + 30
    while any(_lives(pid) for pid in below):
        assert time.monotonic() < deadline, "a worker holds the port of a server that is gone"
        time.sleep(0.02)


def _lives(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        # One that ended and that nobody has asked about yet is there by name only.
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    return False
