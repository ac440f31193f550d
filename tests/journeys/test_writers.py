"""Many writers at once: processes on one file, threads in one process, forks, and calls piled up at one server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import limpet
from journeys.stdio import Server, environment
from limpet import errors
from limpet.api import Limpet
from limpet.model import NOTE, Draft, Entry, Stamp

WORKER = str(Path(__file__).parent / "worker.py")
PROCESSES = 8


def worker(*args: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, WORKER, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        start_new_session=True,  # so that its children can be killed with it
    )


def notes_in(hold: Limpet) -> dict[str, str]:
    """Every note of the project; a checksum that does not match would raise."""
    records = [json.loads(line).get("entry", {}) for line in hold.export_lines()]
    return {record["key"]: record["content"] for record in records if record.get("kind") == "note"}


def write_at_once(store: str, count: int) -> None:
    """Eight processes that open the store and write, all released in the same moment."""
    workers = [worker("write", store, f"writer{number}", str(count)) for number in range(PROCESSES)]
    for process in workers:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in workers:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    for process in workers:
        _, err = process.communicate(timeout=600)
        assert process.returncode == 0, err.decode()
        assert err == b""


def expect_all(store: str, count: int) -> None:
    with limpet.open(store, project="demo") as hold:
        found = notes_in(hold)
        wanted = {f"writer{writer} {number}" for writer in range(PROCESSES) for number in range(count)}
        assert len(found) == PROCESSES * count
        assert set(found.values()) == wanted
        tags = hold.call("list_tags", {"session_id": "*"})
        assert [item["count"] for item in tags["tags"]] == [count] * PROCESSES
        assert tags["total_notes"] == PROCESSES * count
        for writer in range(PROCESSES):
            of_one = [key for key, text in sorted(found.items()) if text.startswith(f"writer{writer} ")]
            order = [found[key] for key in of_one]
            assert order == [f"writer{writer} {number}" for number in range(count)], "ids do not increase"
        assert all(finding.ok for finding in hold.check())


def test_eight_processes_start_at_once_on_a_store_that_does_not_exist(new_store_url: str) -> None:
    count = 25 if new_store_url.startswith("postgresql") else 100
    write_at_once(new_store_url, count)
    expect_all(new_store_url, count)


def test_the_first_moment_of_a_store_is_safe(tmp_path: Path) -> None:
    finished(worker("first_moment", str(tmp_path), "20"), 60)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_first_moment_of_a_store_is_safe_again_and_again(tmp_path: Path) -> None:
    finished(worker("first_moment", str(tmp_path), "500"), 800)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_eight_processes_write_a_thousand_notes_each(store_url: str) -> None:
    write_at_once(store_url, 1_000)
    expect_all(store_url, 1_000)


# --- one process ------------------------------------------------------------------------------------------------------


def in_threads(*works: Callable[[], Any]) -> list[Any]:
    """Run all at once; what each returned or raised."""
    results: list[Any] = [None] * len(works)
    start = threading.Barrier(len(works))

    def run(at: int) -> None:
        start.wait()
        try:
            results[at] = works[at]()
        except errors.LimpetError as problem:
            results[at] = problem

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_eight_threads_lose_nothing_and_share_no_failure(store_url: str) -> None:
    with limpet.open(store_url, project="demo", session="one") as hold:

        def writer(number: int) -> tuple[dict[str, str], int]:
            kept, refused = {}, 0
            for at in range(40):
                text = f"{number} {at}"
                kept[hold.session(f"s{number}").notes.add(text, ["t"]).id] = text
                try:
                    hold.call("delete_note", {"id": "note_0"})
                except errors.NotFound:
                    refused += 1
            return kept, refused

        results = in_threads(*(lambda number=number: writer(number) for number in range(8)))
        assert [refused for _, refused in results] == [40] * 8
        wanted = {id: text for kept, _ in results for id, text in kept.items()}
        assert len(wanted) == 320
        assert notes_in(hold) == wanted
        assert all(finding.ok for finding in hold.check())


def test_a_failing_writer_does_not_fail_those_it_shares_a_commit_with(tmp_path: Path) -> None:
    with limpet.open(str(tmp_path / "limpet.db"), project="demo", session="one") as hold:
        hold.session().begin()
        queued = threading.Event()
        running = threading.Event()

        def first(before: Entry | None) -> Draft:
            running.set()
            queued.wait(10)  # until the others are in line behind us
            return Draft("first", "one")

        def add(text: str) -> Callable[[], str]:
            return lambda: hold.session().notes.add(text).id

        def fail() -> object:
            return hold.call("update_note", {"id": "note_0", "content": "x"})

        def broken() -> object:
            def decide(before: Entry | None) -> Draft:
                raise ZeroDivisionError("a fault of ours")

            with pytest.raises(ZeroDivisionError):
                hold.store.entries.edit(hold.scope, NOTE, None, decide, Stamp("test", "add_note", "one", 0))
            return "raised"

        stamp = Stamp("test", "add_note", "one", 0)
        leader = threading.Thread(target=lambda: hold.store.entries.edit(hold.scope, NOTE, None, first, stamp))
        leader.start()
        assert running.wait(10)
        timer = threading.Timer(0.5, queued.set)
        timer.start()
        results = in_threads(add("a"), fail, add("b"), broken, add("c"), fail, add("d"))
        leader.join()
        timer.join()
        ids = {result for result in results if isinstance(result, str)} - {"raised"}
        problems = [result for result in results if isinstance(result, errors.LimpetError)]
        assert results[3] == "raised"
        assert [problem.code for problem in problems] == ["no_note", "no_note"]
        found = notes_in(hold)
        assert sorted(found.values()) == ["a", "b", "c", "d", "first"]
        assert ids < found.keys()


# --- forks ------------------------------------------------------------------------------------------------------------


def finished(process: subprocess.Popen[bytes], timeout: float) -> str:
    """A worker must end well and in time; otherwise it and its children are killed. What it complained of."""
    try:
        _, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    assert process.returncode == 0, err.decode()
    return err.decode()


def test_a_fork_after_opening_works_on_both_sides(store_url: str) -> None:
    finished(worker("fork_plain", store_url), 60)
    with limpet.open(store_url, project="demo") as hold:
        wanted = {f"{name} {number}" for name in ("parent", "child") for number in range(20)} | {"before", "after"}
        assert Counter(notes_in(hold).values()) == Counter(wanted)
        assert all(finding.ok for finding in hold.check())


def test_a_fork_does_not_mind_stores_that_are_gone(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    assert finished(worker("fork_gone", store), 60) == ""
    with limpet.open(store, project="demo") as hold:
        assert sorted(notes_in(hold).values()) == ["before", "child 0", "child 1", "parent 0", "parent 1"]
        assert all(finding.ok for finding in hold.check())


def test_a_child_goes_on_after_its_parent_has_closed_the_store(store_url: str) -> None:
    finished(worker("fork_close", store_url), 60)
    with limpet.open(store_url, project="demo") as hold:
        assert sorted(notes_in(hold).values()) == sorted(["before", "parent", *(f"child {n}" for n in range(20))])
        assert all(finding.ok for finding in hold.check())


def test_a_fork_in_the_middle_of_a_write_repeats_and_blocks_nothing(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    finished(worker("fork_writing", store), 20)
    with limpet.open(store, project="demo") as hold:
        assert sorted(notes_in(hold).values()) == ["child", "slow", "waiting"]
        assert all(finding.ok for finding in hold.check())


def test_a_fork_while_another_thread_imports_leaves_a_child_that_can_import() -> None:
    finished(worker("fork_importing", ""), 20)


def test_imports_and_forks_that_wait_for_each_other_go_on() -> None:
    finished(worker("fork_in_import", ""), 20)


# --- one server -------------------------------------------------------------------------------------------------------


def test_a_hundred_calls_piled_up_are_all_kept(store_url: str) -> None:
    with Server(store_url, "--session", "one") as server:
        numbers = [
            server.ask("tools/call", {"name": "add_note", "arguments": {"content": f"call {n}"}}) for n in range(100)
        ]
        replies = [server.read() for _ in numbers]
        assert [reply["id"] for reply in replies] == numbers
        ids = [reply["result"]["structuredContent"]["note_id"] for reply in replies]
        assert server.leave() == 0
    with limpet.open(store_url, project="demo") as hold:
        assert notes_in(hold) == {id: f"call {number}" for number, id in enumerate(ids)}
        assert ids == sorted(set(ids))


def test_a_client_that_goes_away_loses_nothing_it_was_told_of(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    with Server(store) as server:
        for number in range(100):
            server.ask("tools/call", {"name": "add_note", "arguments": {"content": f"call {number}"}})
        assert server.leave() == 0
    with limpet.open(store, project="demo") as hold:
        assert sorted(notes_in(hold).values()) == sorted(f"call {number}" for number in range(100))
