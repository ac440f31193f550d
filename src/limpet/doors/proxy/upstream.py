"""What `limpet wrap` and `limpet gateway` need from whatever stands behind them, and what carries the lines.

A `Link` is one MCP server, however it is reached: a process (wrap_process.py), an address (wrap_http.py), or many of
both that look like one (gateway.py). Lines go in, lines come out; the wrapper does not know which kind it has.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import NamedTuple, Protocol

from limpet import errors

LINGER_SECONDS = 60.0  # how long answers are waited for when the client has closed its end and still reads
LOOK_SECONDS = 0.1  # how often the end is looked for once it has begun
READ_BYTES = 1 << 20
PIPE_BYTES = 1 << 20  # the most that Linux grants everybody; 64 KiB would mean 160 turns for 10 MB
SIGNALLED = 128  # added to the number of a signal that ended something, as shells do
UPSTREAM_ENDED = -32000  # in the range JSON-RPC leaves to servers

Events = SimpleQueue[str]  # "client" and "upstream" have ended, "signal", "child", "job"


class Work(Protocol):
    """What the end has to know about the work under way."""

    def give_up_late(self) -> float | None:
        """Let the originals of late jobs through; when the next one is due."""

    def unanswered(self) -> bool:
        """Whether the client still waits for something."""

    def keeping(self) -> bool:
        """Whether a result has not been handed on yet."""

    def heard(self) -> float:
        """When the upstream last said something; now, while that is still being handed on."""

    def close_upstream(self) -> bool:
        """Close the upstream's input if nothing waits to be sent there; whether it is closed."""


class End(NamedTuple):
    """How it ended: our exit code, and what those who still wait for an answer are told."""

    code: int
    told: str


class Link(Protocol):
    """One MCP server behind us."""

    def owner(self, tool: str) -> tuple[str, str]:
        """Whose tool it is, and what its owner calls it."""

    def write(self, line: bytes) -> None:
        """Send a message with its line end. What nobody takes any more is dropped."""

    def lines(self) -> Iterator[bytes]:
        """What comes back, until nothing more can come."""

    def close(self) -> bool:
        """Say that nothing more will be written; False when that cannot be said yet."""

    def wait(self, work: Work, to_client: Pipe) -> End:
        """Until there is nothing left to wait for. Called once, by the main thread, which takes the signals."""


class Pipe:
    """One end of a pipe that several threads write to, a whole message at a time."""

    def __init__(self, descriptor: int, broken: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._broken = broken
        self._lock = threading.Lock()
        self._open = True
        self._closed = False

    def write(self, data: bytes) -> None:
        """Write it all. What nobody reads any more is dropped."""
        with self._lock:
            if not self._open:
                return
            try:
                done = os.write(self._descriptor, data)
                while done < len(data):
                    done += os.write(self._descriptor, memoryview(data)[done:])
            except OSError:
                self._open = False
                self._broken()

    def close(self) -> bool:
        """False while somebody is in the middle of a message that is not being read."""
        if not self._lock.acquire(timeout=LOOK_SECONDS):
            return False
        try:
            self._open = False
            if not self._closed:  # a second time the number may already be somebody else's
                self._closed = True
                os.close(self._descriptor)
        finally:
            self._lock.release()
        return True

    def is_read(self) -> bool:
        """Whether somebody has the other end open."""
        look = select.poll()
        look.register(self._descriptor, 0)
        return self._open and not look.poll(0)


def lines(descriptor: int) -> Iterator[bytes]:
    """Every line with its end; when the stream ends also a last one without."""
    parts: list[bytes] = []
    amount = READ_BYTES >> 4
    while True:
        try:
            data = os.read(descriptor, amount)
        except OSError:
            data = b""
        if not data:
            if parts:
                yield b"".join(parts)
            return
        if len(data) == amount:
            amount = READ_BYTES
        end = data.find(b"\n")
        if end < 0:
            parts.append(data)
            continue
        if end == len(data) - 1 and not parts:  # the usual case: one message, read at once
            yield data
            continue
        *whole, rest = data.split(b"\n")
        for line in whole:
            yield b"".join((*parts, line, b"\n"))
            parts = []
        if rest:
            parts.append(rest)


def queued(queue: SimpleQueue[bytes | None]) -> Iterator[bytes]:
    """The lines of a queue, until None."""
    while (line := queue.get()) is not None:
        yield line


def widen(descriptor: int) -> None:
    """Let a pipe hold more, where the system has that."""
    import fcntl

    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def take_signals(events: Events) -> list[int]:
    """From now on a request to end is an event, and stands in this list."""
    taken: list[int] = []

    def on_signal(which: int, _frame: object) -> None:
        taken.append(which)
        events.put("signal")

    for which in (signal.SIGTERM, signal.SIGINT):
        signal.signal(which, on_signal)
    return taken


def until_client_leaves(events: Events, signals: list[int], work: Work, to_client: Pipe) -> int:
    """Wait where there is no process whose end decides: for the client, and for the answers it still reads."""
    left: float | None = None
    while True:
        due = work.give_up_late()
        pause = LOOK_SECONDS if left is not None else None if due is None else max(due - time.monotonic(), 0.0)
        with suppress(Empty):
            if events.get(timeout=pause) == "client" and left is None:
                left = time.monotonic()
        if signals:
            return SIGNALLED + signals[0]
        if left is not None:
            waits = work.keeping() or (work.unanswered() and to_client.is_read())
            if not waits or time.monotonic() > left + LINGER_SECONDS:
                return 0


class Workers:
    """Threads that do one thing after another, of which there are only as many as were ever needed at once."""

    def __init__(self, most: int = 4) -> None:  # hashing and compressing run beside each other; commits queue anyway
        self._most = most
        self._work: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._workers = self._idle = 0
        self._count = threading.Lock()

    def do(self, work: Callable[[], object]) -> None:
        with self._count:
            more = self._idle <= self._work.qsize() and self._workers < self._most
            self._workers += more
        self._work.put(work)
        if more:
            threading.Thread(target=self._worker, daemon=True).start()

    def _worker(self) -> None:
        while True:
            with self._count:
                self._idle += 1
            work = self._work.get()
            with self._count:
                self._idle -= 1
            try:
                work()
            except Exception as problem:
                complain(problem)


def complain(problem: Exception, then: str = "The message went through as it was.") -> None:
    known = isinstance(problem, errors.LimpetError)
    say(f"{problem if known else f'something went wrong inside ({type(problem).__name__}: {problem}).'} {then}")


def say(text: str, who: str = "wrap") -> None:
    """One line on standard error. Names and texts of strangers come out without anything that acts on a terminal."""
    plain = "".join(one if one.isprintable() else " " for one in text)
    with suppress(OSError):
        os.write(2, f"limpet {who}: {' '.join(plain.split())}\n".encode("utf-8", "replace"))
