"""A process that holds the write lock and does not let go: it is waited for once, and by readers not at all."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import limpet
from contract.kit import NOTES, put
from limpet import errors, limits
from limpet.model import NOTE, Scope
from limpet.stores.sqlite.connection import Connection
from limpet.stores.sqlite.database import Database
from limpet.stores.sqlite.store import SqliteStore

STOPPED_WRITER = """
import sys
from limpet.stores.sqlite.database import Database

def work(con):
    con.execute("CREATE TABLE IF NOT EXISTS half_done (x)")
    print("in its transaction", flush=True)
    sys.stdin.read()

Database(sys.argv[1]).write(work)
"""


@contextmanager
def held(path: Path) -> Iterator[None]:
    """The lock, held by something that is not a Limpet process."""
    with open(f"{path}.lock", "rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def seconds_of(call: object) -> float:
    began = time.monotonic()
    call()  # type: ignore[operator]
    return time.monotonic() - began


def refused(store: SqliteStore, scope: Scope) -> tuple[float, errors.StoreBusy]:
    began = time.monotonic()
    with pytest.raises(errors.StoreBusy) as caught:
        put(store, scope, None, "late")
    return time.monotonic() - began, caught.value


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()


@pytest.fixture
def path(tmp_path: Path, scope: Scope) -> Path:
    store = SqliteStore(str(tmp_path / "limpet.db"))
    put(store, scope, "k", "tea at four")
    store.close()
    return tmp_path / "limpet.db"


def read_everything(store: SqliteStore, scope: Scope) -> None:
    assert store.entries.read(scope, NOTE, "k") is not None
    assert store.entries.list(scope, NOTES).total == 1
    assert store.entries.containing(scope, NOTES, "four").total == 1
    assert list(store.entries.dump(scope))


def test_reads_do_not_wait_for_a_held_lock(path: Path, scope: Scope) -> None:
    with held(path):
        store = SqliteStore(str(path))
        waiting = [threading.Thread(target=lambda: put(store, scope, None, "waits")) for _ in range(12)]
        for thread in waiting:
            thread.start()
        time.sleep(0.3)
        assert seconds_of(lambda: read_everything(store, scope)) < 0.2
    for thread in waiting:
        thread.join(20)
    assert store.entries.list(scope, NOTES).total == 13
    store.close()


def test_reads_do_not_wait_for_a_writer_that_was_stopped_in_its_transaction(path: Path, scope: Scope) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", STOPPED_WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"in its transaction\n"
        writer.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        store = SqliteStore(str(path), lock_wait=0.6)
        read_everything(store, scope)
        with limpet.open(str(path), project=scope.project) as hold:
            hold.session().notes.search("four")
        assert time.monotonic() - began < 2  # with the import of what searches
        assert seconds_of(lambda: read_everything(store, scope)) < 0.2
        _, problem = refused(store, scope)
        if sys.platform == "linux":
            assert f"process {writer.pid} has held the write lock" in problem.message
        store.close()
    finally:
        writer.send_signal(signal.SIGCONT)
        writer.communicate(timeout=30)


def test_what_a_read_writes_on_the_side_gives_up_after_a_moment(path: Path, scope: Scope) -> None:
    with limpet.open(str(path), project="p", session="s") as hold:
        kept = hold.session().outputs.keep("shell", "line of output\n" * 4_000).output
        assert kept is not None
    with held(path), limpet.open(str(path), project="p", session="s") as hold:
        hold.call("recall", {"query": "warm up"})
        began = time.monotonic()
        assert hold.call("read_output", {"id": kept.id, "lines": "1-2"})["content"]
        assert hold.call("recall", {"query": "output"})
        assert time.monotonic() - began < 1


def test_a_wait_for_the_lock_is_bounded_and_leaks_nothing(path: Path, scope: Scope) -> None:
    store = SqliteStore(str(path), lock_wait=0.3)
    put(store, scope, "other", "opens every file there is")
    with held(path):
        threads, files = threading.active_count(), descriptors()
        for _ in range(3):
            took, problem = refused(store, scope)
            assert took < 1
            assert problem.code == "store_busy"
        assert (threading.active_count(), descriptors()) == (threads, files)
    put(store, scope, None, "and it goes on")
    store.close()


def test_threads_that_queue_behind_a_waiting_one_wait_no_longer_than_it(path: Path, scope: Scope) -> None:
    store = SqliteStore(str(path), lock_wait=1.0)
    took: list[float] = []
    with held(path):
        threads = [threading.Thread(target=lambda: took.append(refused(store, scope)[0])) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert len(took) == 8
    assert max(took) < 2
    store.close()


def test_a_held_lock_is_remembered_so_the_next_process_answers_at_once(path: Path, scope: Scope) -> None:
    with held(path):
        first = SqliteStore(str(path), lock_wait=1.0)
        took, _ = refused(first, scope)
        assert took >= 1
        second = SqliteStore(str(path), lock_wait=1.0)
        took, problem = refused(second, scope)
        assert took < 0.2
        assert "Nothing was changed" in problem.message
        patient = SqliteStore(str(path), lock_wait=2.0)  # counts what the others waited
        took, _ = refused(patient, scope)
        assert 0.2 < took < 1.5
    for store in (first, second, patient):  # the note ends with the hold
        put(store, scope, None, "free again")
    with held(path):
        third = SqliteStore(str(path), lock_wait=0.7)
        took, _ = refused(third, scope)
        assert took >= 0.7
    for store in (first, second, patient, third):
        store.close()


def test_closing_does_not_wait_for_a_held_lock(path: Path, scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLOSE_WAIT_SECONDS", 0.1)
    store = SqliteStore(str(path))
    put(store, scope, "last", "before the end")
    with held(path):
        assert seconds_of(store.close) < 1
    again = SqliteStore(str(path))
    assert again.entries.read(scope, NOTE, "last") is not None
    again.close()


def test_a_job_that_sqlite_refuses_does_not_fail_the_others_of_its_group(path: Path) -> None:
    db = Database(str(path))
    db.write(lambda con: con.execute("CREATE TABLE counted (name TEXT PRIMARY KEY)").fetchall())
    outcomes: dict[str, object] = {}
    begun, queued = threading.Event(), threading.Event()

    def blocker(con: Connection) -> None:
        begun.set()
        queued.wait(20)

    def run(name: str, sql: str) -> None:
        try:
            outcomes[name] = db.write(lambda con: con.rows(sql) or "done")
        except errors.StoreProblem as problem:
            outcomes[name] = type(problem)

    leader = threading.Thread(target=lambda: db.write(blocker))
    leader.start()
    assert begun.wait(20)
    jobs = {str(n): f"INSERT INTO counted VALUES ('{n}')" for n in range(6)}
    jobs["bad"] = "INSERT INTO counted SELECT NULL FROM no_such_table"
    jobs["twice"] = "INSERT INTO counted VALUES ('3')"
    threads = [threading.Thread(target=run, args=job) for job in jobs.items()]
    for thread in threads:
        thread.start()
    until = time.monotonic() + 20
    while len(db._jobs) < len(jobs) and time.monotonic() < until:
        time.sleep(0.005)
    queued.set()
    for thread in (leader, *threads):
        thread.join(20)
    refusals = {name for name, outcome in outcomes.items() if outcome != "done"}
    assert "bad" in refusals
    assert len(refusals) == 2  # and one of the two that add the same row
    assert db.rows("SELECT count(*) FROM counted", ()) == [(6,)]
    db.close()
