"""Many threads and many processes at once: no change is lost, and every number is given out once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contract.kit import NOTES, always, delete, everything, key_of, keys, new_scope, put, stamp
from contract.worker import count_on
from limpet.model import MEMORY, NOTE, SESSION, Draft, Entry, Scope
from limpet.store import EventQuery, Listing, Store
from limpet.wiring import choose_store

THREADS = 8
EDITS = 50


def at_once(work: Callable[[int], object], threads: int = THREADS) -> list[object]:
    """Run the work in many threads that start together; what any of them raises comes out."""
    start = threading.Barrier(threads)

    def run(number: int) -> object:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))


def assert_sound(store: Store, scope: Scope) -> None:
    """Everything that must hold after any amount of work."""
    events = store.entries.events(scope, EventQuery(limit=100_000))
    assert [event.seq for event in events] == list(range(len(events), 0, -1))
    times = [event.at for event in events]
    assert times == sorted(times, reverse=True)
    chains: dict[tuple[str, str], Entry | None] = {}
    for event in reversed(events):
        assert event.before == chains.get((event.kind, event.key))
        chains[event.kind, event.key] = event.after
    for kind in (NOTE, MEMORY, SESSION):
        page = store.entries.list(scope, Listing((kind,), include_done=True, limit=100_000))
        there = {entry.key: entry for (of, _), entry in chains.items() if of == kind and entry}
        assert {entry.key: entry for entry in page.entries} == there
        assert store.entries.tally(scope, kind, "").total == page.total == len(there)
    assert all(finding.ok for finding in store.check()), store.check()


def test_no_update_is_lost_between_threads(store: Store, scope: Scope) -> None:
    def work(number: int) -> None:
        for _ in range(EDITS):
            store.entries.edit(scope, MEMORY, "counter", count_on, stamp(session=f"s{number}"))

    at_once(work)
    entry = store.entries.read(scope, MEMORY, "counter")
    assert entry is not None
    assert (entry.content, entry.version) == (str(THREADS * EDITS), THREADS * EDITS)
    assert_sound(store, scope)


def test_keys_made_at_once_are_all_different(store: Store, scope: Scope) -> None:
    made = at_once(lambda number: [key_of(put(store, scope, None, f"{number}")) for _ in range(20)])
    every = [key for some in made for key in some]  # type: ignore[attr-defined]
    assert len(set(every)) == THREADS * 20
    for some in made:
        assert some == sorted(some)  # type: ignore[call-overload]
    assert store.entries.tally(scope, NOTE, "s") == (THREADS * 20, 0)


def test_random_work_in_many_threads_leaves_the_store_sound(store: Store, scope: Scope) -> None:
    def work(number: int) -> None:
        chance = random.Random(number)
        for _ in range(30):
            key = f"k{chance.randrange(5)}"
            tags = tuple(chance.sample(("A", "b", "c"), chance.randrange(3)))
            draft = Draft(f"{chance.random()}", f"s{chance.randrange(3)}", tags, chance.random() < 0.3)
            if chance.random() < 0.2:
                delete(store, scope, key, session=draft.session)
            else:
                store.entries.edit(scope, NOTE, key, always(draft), stamp(session=draft.session))
            store.entries.list(scope, NOTES)
            store.entries.containing(scope, NOTES, "0.1")

    at_once(work)
    assert_sound(store, scope)


def test_one_refusal_does_not_touch_the_work_of_others(store: Store, scope: Scope) -> None:
    class Refused(Exception):
        pass

    def refuse(before: Entry | None) -> Draft:
        raise Refused

    def work(number: int) -> None:
        for _ in range(20):
            if number % 2:
                with pytest.raises(Refused):
                    store.entries.edit(scope, NOTE, None, refuse, stamp(session="refused"))
            else:
                put(store, scope, None, "kept")

    at_once(work)
    assert store.entries.tally(scope, NOTE, "") == (20 * THREADS // 2, 0)
    assert store.entries.read(scope, SESSION, "refused") is None
    assert_sound(store, scope)


def test_projects_do_not_wait_for_each_other_wrongly(store: Store) -> None:
    scopes = [new_scope() for _ in range(THREADS)]
    at_once(lambda number: [put(store, scopes[number], None, "x") for _ in range(20)])
    for scope in scopes:
        assert_sound(store, scope)


def test_a_load_and_a_write_into_the_same_new_project_exclude_each_other(store: Store) -> None:
    from limpet import errors

    for _ in range(5):
        scope = new_scope()
        entry = Entry(NOTE, "loaded", "s", "x", (), False, False, "agent", {}, 1, 5, 5)

        def work(number: int, scope: Scope = scope, entry: Entry = entry) -> str:
            try:
                if number % 2:
                    put(store, scope, f"k{number}", "x", session="")
                    return "wrote"
                store.load(scope, [entry], [])
            except errors.Conflict:
                return "refused"
            return "loaded"

        outcome = at_once(work, 4)
        assert outcome.count("wrote") == 2
        loaded = outcome.count("loaded")
        assert loaded <= 1
        assert (store.entries.read(scope, NOTE, "loaded") is not None) == bool(loaded)


@pytest.mark.parametrize("round", range(2))
def test_processes_that_start_at_once_on_a_store_that_does_not_exist(
    new_store_url: str, scope: Scope, round: int
) -> None:
    edits = 5
    tests = Path(__file__).resolve().parent.parent
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "contract.worker", new_store_url, *scope, f"w{number}", str(edits)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tests,
        )
        for number in range(8)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    made: list[str] = []
    for worker in workers:
        output, problems = worker.communicate(timeout=60)
        assert worker.returncode == 0, problems
        made += output.split()
    store = choose_store(new_store_url)
    counter = store.entries.read(scope, MEMORY, "counter")
    assert counter is not None
    assert counter.content == str(8 * edits)
    assert len(set(made)) == 8 * edits
    assert sorted(keys(store.entries.list(scope, NOTES).entries)) == sorted(made)
    assert_sound(store, scope)
    store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="There is no fork on this system.")
def test_a_store_may_be_used_on_both_sides_of_a_fork(store: Store, scope: Scope) -> None:
    put(store, scope, "k", "parent")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for n in range(10):
                put(store, scope, f"child{n}", "child")
            entry = store.entries.read(scope, NOTE, "k")
            code = 0 if entry is not None and entry.content == "parent" else 2
            store.close()
        finally:
            os._exit(code)
    for n in range(10):
        put(store, scope, f"parent{n}", "parent")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    put(store, scope, "k", "after")
    assert store.entries.tally(scope, NOTE, "").total == 21
    assert_sound(store, scope)
    assert len(everything(store, scope)) == 22 + 23
