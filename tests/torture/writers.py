"""Many at once: processes on one file, clocks that stand still, calls that break off, and who opens the files."""

from __future__ import annotations

import http.client
import json
import random
import socket
import subprocess
import sys
import threading
from bisect import bisect_left
from functools import partial
from pathlib import Path

import limpet
from journeys.test_writers import WORKER
from limpet import errors
from limpet.api import Limpet
from limpet.model import MEMORY, NOTE, Draft, Entry, Stamp
from limpet.store import Listing
from torture.child import FROZEN, turns
from torture.kills import post, serve
from torture.kit import PROJECT, SEED, TIMED, Outcome, Tally, acknowledged, child, opened, pipes, sound, verify
from torture.lanes import Forked, in_memory, judged, warm

PROCESSES = 50
LONGEST_SECONDS = 2.0
QUEUERS = 12
MOST_OVERTAKEN = 20 * QUEUERS  # a queue of them twenty times; without one it is nearly everybody


def released(*starts: tuple[object, ...]) -> list[tuple[int, bytes, bytes]]:
    """Start children, let all go in one moment, and give what each said."""
    started = [child(*args) for args in starts]
    for one in started:
        assert one.stdout is not None
        assert one.stdout.readline() == b"ready\n"
    for one in started:
        assert one.stdin is not None
        one.stdin.write(b"go\n")
        one.stdin.flush()
    said = [one.communicate(timeout=3_600) for one in started]
    return [(one.returncode, out, err) for one, (out, err) in zip(started, said, strict=True)]


def _written(folder: Path, many: int, each: int, hold: float, tally: Tally) -> list[tuple[float, float]]:
    """Writers forked from one parent, which never had the store open, and let go in one moment. Their waits."""
    store = folder / "limpet.db"
    (folder / "warm").mkdir()
    warm(folder / "warm")
    judged(partial(verify, store, []), tally)  # which makes it
    writers = [Forked(partial(turns, str(store), f"writer{n}", each, hold)) for n in range(many)]
    for writer in writers:
        if writer.line() != b"ready\n":
            tally.miss("crashed", writer.first)
    for writer in writers:
        writer.go()
    waits: list[tuple[float, float]] = []
    for writer in writers:
        said, code = writer.end()
        if code:
            tally.miss("crashed", said[-200:])
        for kind, value, more in (line for line in acknowledged(said) if len(line) == 3):
            if kind == "wrote":
                waits.append((float(value), float(more)))
            else:
                tally.miss("lock errors" if value == "store_busy" else "errors", f"{value} after {more} s")
    with opened(store) as hold_:
        counter = hold_.store.entries.read(hold_.scope, MEMORY, "counter")
        notes = hold_.store.entries.tally(hold_.scope, NOTE, "").total - 1  # and that of the one who made the store
        for found in (int(counter.content) if counter else 0, notes):
            if found != many * each:
                tally.miss("lost", f"{found:,} of {many * each:,}")
        sound(hold_, tally)
    return waits


def processes(folder: Path, writes: int) -> Outcome:
    tally = Tally()
    many = min(PROCESSES, max(6, writes // 10))
    each = max(2, writes // many // 2)
    took = sorted(done - asked for asked, done in _written(folder, many, each, 0.0, tally))
    worst, usual = took[-1], took[len(took) // 2]
    if worst > LONGEST_SECONDS:
        tally.miss(TIMED, f"the longest took {worst:.1f} s, the usual one {usual:.2f} s")
    more = f"worst wait {worst:.2f} s, 99 of 100 below {took[len(took) * 99 // 100]:.2f} s, the usual one {usual:.3f} s"
    return tally.outcome(f"{many} processes, {2 * many * each:,} writes", "lock errors", "lost", more=more)


def queue(folder: Path, writes: int) -> Outcome:
    """Writers that keep the others waiting. flock lets somebody slip in now and then; nobody may be left behind."""
    tally, each = Tally(), max(2, writes // QUEUERS // 2)
    with in_memory(folder) as memory:
        passed = overtaken(_written(memory, QUEUERS, each, 0.003, tally))
    if passed > MOST_OVERTAKEN:
        tally.miss("starved", f"{passed:,} writes that were asked for later went before one")
    more = f"at most {passed:,} that were asked for later went before one"
    return tally.outcome(f"{QUEUERS} processes, {2 * QUEUERS * each:,} writes", "lock errors", "starved", more=more)


def overtaken(waits: list[tuple[float, float]]) -> int:
    """Of all writes, the one before which most went that were asked for later: how many. No clock has a say in it."""
    later: list[float] = []  # when those were done that were asked for later, in order
    most = 0
    for _, done in sorted(waits, reverse=True):
        at = bisect_left(later, done)
        most = max(most, at)
        later.insert(at, done)
    return most


def clock(folder: Path, ids: int) -> Outcome:
    """Eight processes whose clocks stand still; then one whose clock goes wherever it likes."""
    with in_memory(folder) as memory:
        return _with_clocks(memory / "limpet.db", ids)


def _with_clocks(store: Path, ids: int) -> Outcome:
    tally, made = Tally(), list[str]()
    with opened(store):
        pass
    for code, out, err in released(*(("ids", store, f"w{n}", max(1, ids // 8)) for n in range(8))):
        if code or err:
            tally.miss("refused", err.decode()[-200:])
        own = out.decode().split()
        if own != sorted(own):
            tally.miss("out of order", own[:3])
        made += own
    if len(set(made)) != len(made):
        tally.miss("collisions", len(made) - len(set(made)))
    year, now = 365 * 86_400_000, FROZEN
    steps = [0, -3_600_000, -10 * year, 100 * year, -100 * year, 1, 0]
    with limpet.open(str(store), project=PROJECT, session="lies", clock=lambda: now) as hold:
        told = []
        for number in range(max(len(steps), ids // 20)):
            now = FROZEN + steps[number % len(steps)]
            told.append(hold.session().notes.add(f"{number}").id)
        shown = [
            entry["id"]
            for entry in hold.call("list_notes", {"this_session": True, "session_id": "lies", "limit": 50})["notes"]
        ]
        if len({*told, *made}) != len(told) + len(made):
            tally.miss("collisions", "after a step of the clock")
        if shown != told[::-1][: len(shown)]:
            tally.miss("out of order", "a list after steps of the clock")
        sound(hold, tally)
    return tally.outcome(f"{len(made) + len(told):,} ids, 8 processes", "collisions", "out of order")


def broken_off(folder: Path, calls: int) -> Outcome:
    """Calls that fail in the middle beside calls that do not, and clients that hang up. Half a change is a miss."""
    store, tally = folder / "limpet.db", Tally()
    with opened(store) as hold:
        hold.session().begin()
        _fail_in_threads(hold, calls, tally)
    hung = max(4, calls // 10)
    process, place = serve(str(store), "hung")
    try:
        chance = random.Random(SEED)
        host, port = place.split(":")
        for number in range(hung):
            body = json.dumps({"content": f"hung {number}"}).encode()
            head = f"POST /api/v1/operations/add_note HTTP/1.1\r\nHost: {place}\r\nContent-Type: application/json\r\n"
            with socket.create_connection((host, int(port))) as line:
                line.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                if chance.random() < 0.5:
                    line.recv(1)
        status, answer = post(place, "add_note", b'{"content": "after them"}')
        if status != 200:
            tally.miss("stuck", answer)
    except (OSError, http.client.HTTPException) as problem:
        tally.miss("stuck", problem)
    finally:
        process.terminate()
        process.communicate(timeout=30)
    with opened(store) as hold:
        notes = [one.content for one in hold.store.entries.list(hold.scope, Listing((NOTE,), limit=1_000_000)).entries]
        if len(notes) != len(set(notes)):
            tally.miss("doubled")
        sound(hold, tally)
    return tally.outcome(f"{calls:,} calls failing among others, {hung:,} clients hung up", "halves", "lost", "stuck")


def _fail_in_threads(hold: Limpet, calls: int, tally: Tally) -> None:
    told: set[str] = set()
    stamp = Stamp("agent/test", "test", "", 1_000)

    def refuse(before: Entry | None) -> Draft:
        raise errors.no_note("note_0")

    def work(number: int) -> None:
        for at in range(max(1, calls // 8)):
            key = f"{number}-{at}"
            pair = [(MEMORY, f"a{key}", lambda _: Draft("x")), (MEMORY, f"b{key}", lambda _: Draft("y"))]
            if at % 2:
                pair[1] = (MEMORY, f"b{key}", refuse)
            try:
                hold.store.entries.edit_all(hold.scope, pair, stamp)
                told.add(key)
            except errors.NotFound:
                pass
            except errors.LimpetError as problem:
                tally.miss("lost", problem.code)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(8):
        for at in range(max(1, calls // 8)):
            key = f"{number}-{at}"
            there = [hold.store.entries.read(hold.scope, MEMORY, f"{side}{key}") is not None for side in "ab"]
            if there != [key in told] * 2:
                tally.miss("lost" if key in told else "halves", key)


def files(folder: Path, rounds: int) -> Outcome:
    """Nobody but SQLite opens the database's files: closing one would drop the locks of the whole process."""
    tally, seen = Tally(), 0
    for number in range(rounds):
        home = folder / str(number)
        home.mkdir()
        done = subprocess.run(
            [sys.executable, WORKER, "audited", str(home / "limpet.db"), str(home)],
            **{k: v for k, v in pipes().items() if k == "env"},  # type: ignore[call-overload]
            capture_output=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            tally.miss("failed", done.stderr[-300:])
        for line in done.stdout.decode().splitlines():
            if line.startswith("opened "):
                tally.miss("opened", line)
            seen += line.startswith("created ")
    if not seen:
        tally.miss("not watched", "not even the making of the file was seen")
    return tally.outcome(f"{rounds} rounds of everything there is", "opened")
