"""Many at once: processes on one file, clocks that stand still, calls that break off, and who opens the files."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import socket
import subprocess
import sys
import threading
from pathlib import Path

import holdfast
from holdfast import errors
from holdfast.library import Holdfast
from holdfast.model import MEMORY, NOTE, SESSION, Draft, Entry, Stamp
from holdfast.store import EventQuery, Listing
from journeys.test_writers import WORKER
from torture.child import FROZEN
from torture.kills import post, serve
from torture.kit import PROJECT, SEED, TIMED, Outcome, Tally, child, opened, pipes, sound

PROCESSES = 50
LONGEST_SECONDS = 2.0
# Between writers that queue nobody goes twice in a row, unless the others were not there in time.
MOST_IN_A_ROW = 0.5
STARVED = 25  # in a queue all wait alike, on a busy machine too


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


def processes(folder: Path, writes: int) -> Outcome:
    store, tally, worst, usual = folder / "holdfast.db", Tally(), 0.0, 0.0
    with opened(store):
        pass
    many = min(PROCESSES, max(6, writes // 10))
    each = max(2, writes // many // 2)
    for code, out, err in released(*(("turns", store, f"writer{n}", each) for n in range(many))):
        if code or err:
            tally.miss("crashed", err.decode()[-200:])
        for line in out.decode().splitlines():
            kind, value, *rest = line.split()
            if kind == "error":
                tally.miss("lock errors" if value == "store_busy" else "errors", value)
            else:
                worst, usual = max(worst, float(value)), max(usual, float(rest[0]))
    with opened(store) as hold:
        counter = hold.store.read(hold.scope, MEMORY, "counter")
        notes = hold.store.tally(hold.scope, NOTE, "").total
        for found in (int(counter.content) if counter else 0, notes):
            if found != many * each:
                tally.miss("lost", f"{found:,} of {many * each:,}")
        sound(hold, tally)
        events = hold.store.events(hold.scope, EventQuery(limit=10_000_000))
    share = in_a_row([event.session for event in reversed(events) if event.kind != SESSION])
    if share > MOST_IN_A_ROW:
        tally.miss("overtaking", f"{share:.0%} of the turns went to whoever had just written")
    if worst > LONGEST_SECONDS and worst > STARVED * usual:
        tally.miss("overtaking", f"one write took {worst:.1f} s, the usual one {usual:.2f} s")
    if worst > LONGEST_SECONDS:
        tally.miss(TIMED, f"the longest took {worst:.1f} s, the usual one {usual:.2f} s")
    more = f"worst wait {worst:.2f} s, {share:.0%} twice in a row"
    return tally.outcome(f"{many} processes, {2 * many * each:,} writes", "lock errors", "lost", more=more)


def in_a_row(turns: list[str]) -> float:
    """How often a writer went twice, while all were at work."""
    first = max(turns.index(name) for name in set(turns))
    last = min(len(turns) - 1 - turns[::-1].index(name) for name in set(turns))
    busy = turns[first : last + 1]
    same = sum(one == other for one, other in itertools.pairwise(busy))
    return same / max(1, len(busy) - 1)


def clock(folder: Path, ids: int) -> Outcome:
    """Eight processes whose clocks stand still; then one whose clock goes wherever it likes."""
    store, tally = folder / "holdfast.db", Tally()
    with opened(store):
        pass
    made: list[str] = []
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
    with holdfast.open(str(store), project=PROJECT, session="lies", clock=lambda: now) as hold:
        told = []
        for number in range(max(len(steps), ids // 20)):
            now = FROZEN + steps[number % len(steps)]
            told.append(hold.session().notes.add(f"{number}").id)
        shown = [entry["id"] for entry in hold.call("list_notes", {"session_id": "lies", "limit": 50})["notes"]]
        if len({*told, *made}) != len(told) + len(made):
            tally.miss("collisions", "after a step of the clock")
        if shown != told[::-1][: len(shown)]:
            tally.miss("out of order", "a list after steps of the clock")
        sound(hold, tally)
    return tally.outcome(f"{len(made) + len(told):,} ids, 8 processes", "collisions", "out of order")


def broken_off(folder: Path, calls: int) -> Outcome:
    """Calls that fail in the middle beside calls that do not, and clients that hang up. Half a change is a miss."""
    store, tally = folder / "holdfast.db", Tally()
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
        notes = [one.content for one in hold.store.list(hold.scope, Listing((NOTE,), limit=1_000_000)).entries]
        if len(notes) != len(set(notes)):
            tally.miss("doubled")
        sound(hold, tally)
    return tally.outcome(f"{calls:,} calls failing among others, {hung:,} clients hung up", "halves", "lost", "stuck")


def _fail_in_threads(hold: Holdfast, calls: int, tally: Tally) -> None:
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
                hold.store.edit_all(hold.scope, pair, stamp)
                told.add(key)
            except errors.NotFound:
                pass
            except errors.HoldfastError as problem:
                tally.miss("lost", problem.code)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(8):
        for at in range(max(1, calls // 8)):
            key = f"{number}-{at}"
            there = [hold.store.read(hold.scope, MEMORY, f"{side}{key}") is not None for side in "ab"]
            if there != [key in told] * 2:
                tally.miss("lost" if key in told else "halves", key)


def files(folder: Path, rounds: int) -> Outcome:
    """Nobody but SQLite opens the database's files: closing one would drop the locks of the whole process."""
    tally, seen = Tally(), 0
    for number in range(rounds):
        home = folder / str(number)
        home.mkdir()
        done = subprocess.run(
            [sys.executable, WORKER, "audited", str(home / "holdfast.db"), str(home)],
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
