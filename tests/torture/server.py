"""A PostgreSQL server whose processes are killed while others write."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path

import psycopg

from limpet import errors
from limpet.model import NOTE, Draft, Scope, Stamp
from limpet.store import Decide, EventQuery, Listing
from limpet.wiring import choose_store
from postgres import RUN_VARIABLE, Run, database_url, server_url
from torture.kit import PROJECT, SEED, Outcome, Tally

OURS = "FROM pg_stat_activity WHERE application_name = 'limpet' AND datname = current_database()"
RECOVERY_SECONDS = 60.0


def backends(folder: Path, kills: int) -> Outcome:
    """Most are asked to end; every tenth is killed, which takes the whole server down for a moment."""
    run = None if RUN_VARIABLE in os.environ else Run.begin()
    try:
        name = f"torture_{uuid.uuid4().hex}"
        with psycopg.connect(server_url(), autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return _backends(database_url(server_url(), name), kills)
    finally:
        if run is not None:
            run.end()


def _backends(url: str, kills: int) -> Outcome:
    tally, scope, over = Tally(), Scope("local", PROJECT), threading.Event()
    told: set[str] = set()
    refused = 0
    store = choose_store(url)

    def note(text: str, session: str) -> Decide:
        return lambda _before: Draft(text, session)

    def write(number: int) -> None:
        nonlocal refused
        stamp, at = Stamp("agent/test", "test", f"s{number}", 1_000), 0
        while not over.is_set():
            at += 1
            text = f"{number} {at}"
            try:
                store.entries.edit(scope, NOTE, None, note(text, f"s{number}"), stamp)
                told.add(text)
            except errors.StoreProblem:
                refused += 1  # named, and what became of it is not promised
            except Exception as problem:  # noqa: BLE001 - the point is that there is none
                tally.miss("crashes", repr(problem))
                return

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    try:
        done = _kill(url, kills, lambda: len(told), tally)
    finally:
        over.set()
        for writer in writers:
            writer.join()
    there = [entry.content for entry in store.entries.list(scope, Listing((NOTE,), limit=10_000_000)).entries]
    for text in told - {*there}:
        tally.miss("lost", text)
    for _ in range(len(there) - len({*there})):
        tally.miss("doubled")
    seqs = [event.seq for event in store.entries.events(scope, EventQuery(limit=10_000_000))]
    if seqs != list(range(len(seqs), 0, -1)) or not all(finding.ok for finding in store.check()):
        tally.miss("corrupt")
    store.close()
    return tally.outcome(f"{done:,} kills, {len(told):,} acknowledged", "lost", "doubled", more=f"{refused:,} refused")


def _kill(url: str, kills: int, count: object, tally: Tally) -> int:
    chance, done = random.Random(SEED), 0
    for number in range(kills):
        before = count()  # type: ignore[operator]
        with suppress(psycopg.Error), psycopg.connect(url, autocommit=True) as admin:
            pids = [row[0] for row in admin.execute(f"SELECT pid {OURS}").fetchall()]
            if pids and number % 10 == 9:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(chance.choice(pids), signal.SIGKILL)
                    done += 1
            elif pids:
                admin.execute("SELECT pg_terminate_backend(%s)", (chance.choice(pids),))
                done += 1
        until = time.monotonic() + RECOVERY_SECONDS
        while count() == before and time.monotonic() < until:  # type: ignore[operator]
            time.sleep(0.005)
        if count() == before:  # type: ignore[operator]
            tally.miss("no recovery", f"after kill {number}")
            break
        time.sleep(chance.uniform(0, 0.02))
    return done
