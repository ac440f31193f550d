"""A process that adds notes and is watched from outside: by strace, or by seven others that do the same.

    python -m bench.child ours|floor STORE NOTES THREADS [FIRST]

It opens the store, says "ready", waits for a line, adds the notes, and prints what happened as JSON. Started with a
terminal's or no input, it does not wait.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import apsw

from bench import corpus
from bench.corpus import Note
from bench.measure import mark, percentile
from bench.stores import SESSION, Raw, open_ours
from limpet.errors import LimpetError

BUSY_MS = 30_000


def adders(which: str, path: Path, threads: int) -> list[Callable[[Note], object]]:
    """One function a thread. Limpet is shared by all threads; the floor needs a connection for each."""
    if which == "floor":
        return [Raw(path, BUSY_MS).add for _ in range(threads)]
    hold = open_ours(path)

    def add(note: Note) -> object:
        return hold.call("add_note", {"content": note.content, "tags": note.tags}, session=SESSION)["note_id"]

    return [add] * threads


def main() -> None:
    which, store, count, threads = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    first = int(sys.argv[5]) if len(sys.argv) > 5 else 0
    share = corpus.notes(first + count * threads)[first:]
    adding = adders(which, store, threads)
    # The first add of a process prepares statements; it is not what is counted.
    adding[0](Note(f"process {os.getpid()} begins", []))
    print("ready", flush=True)
    sys.stdin.readline()
    waits: list[float] = []
    ids: list[object] = []
    errors: list[str] = []

    def work(add: Callable[[Note], object], notes: list[Note]) -> None:
        for note in notes:
            began = time.perf_counter()
            try:
                ids.append(add(note))
            except (LimpetError, apsw.Error) as problem:
                errors.append(f"{type(problem).__name__}: {problem}")
            waits.append(time.perf_counter() - began)

    parts = [share[at * count : (at + 1) * count] for at in range(threads)]
    mark()
    began, cpu = time.perf_counter(), time.process_time()
    if threads == 1:
        work(adding[0], parts[0])
    else:
        running = [threading.Thread(target=work, args=pair) for pair in zip(adding, parts, strict=True)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    mark()
    report = {
        "ids": ids,
        "errors": errors,
        "wall": wall,
        "cpu": cpu,
        "worst": max(waits),
        "p50": percentile(waits, 0.5),
    }
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
