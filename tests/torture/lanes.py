"""How a goal reaches its full size: shares of the cases side by side, and children forked from a warm parent.

A lane is a process with its own stores. It has imported everything and never opens a store itself: whoever writes and
whoever judges is forked from it, lives for one case, and opens the store as a new program would. What is saved is only
the start of Python.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from torture.kit import SEED, Tally, opened, verify

LANES = 3  # two cores, and one lane that waits for a disk or a file system
MEMORY = "/dev/shm"  # noqa: S108 - a folder with a random name is made in it


class Share(NamedTuple):
    """What a lane is given: an empty folder, how many cases, and a seed of its own."""

    folder: Path
    cases: int
    seed: int


class Made(NamedTuple):
    """What came out of a share: misses as a tally has them, and what else was counted."""

    counts: dict[str, int]
    words: list[str]
    numbers: dict[str, int]


def spread(
    work: Callable[[Share], Made], folder: Path, count: int, *, most: int, lanes: int = LANES
) -> tuple[Tally, dict[str, int]]:
    """Cut `count` into shares of at most `most`, run them side by side, and add up."""
    shares = []
    for number in range(max(1, min(lanes, count), -(-count // most))):
        home = folder / f"share{number}"
        home.mkdir()
        shares.append(home)
    each, over = divmod(count, len(shares))
    given = [Share(home, each + (at < over), SEED + at) for at, home in enumerate(shares)]
    tally, numbers = Tally(), dict[str, int]()
    (folder / "warm").mkdir()
    warm(folder / "warm")
    with ProcessPoolExecutor(min(lanes, len(given)), multiprocessing.get_context("fork")) as pool:
        for made in pool.map(work, given):
            tally.absorb(made.counts, made.words)
            for name, number in made.numbers.items():
                numbers[name] = numbers.get(name, 0) + number
    return tally, numbers


@contextmanager
def in_memory(folder: Path) -> Iterator[Path]:
    """A folder in memory where there is such a thing: for goals that no disk has a part in."""
    if not os.access(MEMORY, os.W_OK):
        yield folder
        return
    made = tempfile.mkdtemp(prefix="torture-", dir=MEMORY)
    try:
        yield Path(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def warm(folder: Path) -> None:
    """Import here whatever a child imports when it writes and looks, so that the next ones need not."""

    def work() -> None:
        with opened(folder / "limpet.db", "warm") as hold:
            session = hold.session()
            session.journal.init()
            session.notes.add("a note")
            session.outputs.keep("shell", "a line of it\n" * 1_000)
            session.journal.add("question", "warm?")
        verify(folder / "limpet.db", [], Tally())
        os.write(1, "\n".join(sorted(sys.modules)).encode())

    said, code = Forked(work).end()
    if not code:
        for name in said.decode().splitlines():
            with suppress(ImportError):  # names that are no modules of their own
                importlib.import_module(name)


class Forked:
    """A child that does one thing. What it says on its standard output is here; `go` is its standard input."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._said, says = os.pipe()
        hears, self._go = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.dup2(hears, 0)
            os.dup2(says, 1)
            for handle in (self._said, says, hears, self._go):
                os.close(handle)
            _live(work)
        os.close(says)
        os.close(hears)
        self.first = b""

    def line(self) -> bytes:
        """The next line, or nothing when the child is gone."""
        line = b""
        while not line.endswith(b"\n") and (byte := os.read(self._said, 1)):
            line += byte
        self.first += line
        return line

    def go(self) -> None:
        with suppress(BrokenPipeError):  # it is gone, and its last words say why
            os.write(self._go, b"g")

    def close(self) -> None:
        """Let go of its pipes, where whoever started it waits for its end itself."""
        os.close(self._go)
        os.close(self._said)

    def end(self, signal: int | None = None) -> tuple[bytes, int]:
        """All it said and how it ended, killed when a signal is named."""
        if signal is not None:
            os.kill(self.pid, signal)
        os.close(self._go)
        with os.fdopen(self._said, "rb") as said:
            rest = said.read()
        _, status = os.waitpid(self.pid, 0)
        return self.first + rest, os.waitstatus_to_exitcode(status)


def _live(work: Callable[[], object]) -> None:
    """A life of a forked child: nothing of the parent runs after it."""
    code = 1
    try:
        work()
        code = 0
    except BaseException as problem:  # noqa: BLE001 - it is said, and the parent counts it
        words = f"{type(problem).__name__}: {problem}".replace("\n", " ")
        os.write(1, f"crashed {words[:300]}\n".encode())
    finally:
        os._exit(code)


def judged(look: Callable[[Tally], None], tally: Tally) -> None:
    """Let a child look at a store, and count what it finds."""

    def work() -> None:
        found = Tally()
        look(found)
        os.write(1, json.dumps([found.counts, found.words]).encode() + b"\n")

    said, code = Forked(work).end()
    if code:
        tally.miss("corrupt", f"it cannot be looked at: {said.decode(errors='replace')[-200:]}")
    else:
        counts, words = json.loads(said)
        tally.absorb(counts, words)
