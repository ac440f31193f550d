"""The upstream of `holdfast wrap` as a process: how it is started, what carries its lines, and how it ends.

The end of its output is what counts, not its exit: a launcher may be gone while the server it started goes on. All
signals to it and the wait for it happen in the main thread, so a signal can never reach another process that got the
same number.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Protocol

from holdfast import errors

LEAVE_SECONDS = 5.0  # what an upstream has to end by itself; clients grant two seconds and then send us SIGTERM
TERM_SECONDS = 2.0  # … and after SIGTERM
LINGER_SECONDS = 60.0  # how long answers are waited for when the client has closed its end and still reads
QUIET_SECONDS = 2.0  # an upstream that has ended, whose output somebody still holds open, is read for so long
LOOK_SECONDS = 0.1  # how often the above is looked at
READ_BYTES = 1 << 20
PIPE_BYTES = 1 << 20  # the most that Linux grants everybody; 64 KiB would mean 160 turns for 10 MB


class Pipe:
    """One end of a pipe that several threads write to, a whole message at a time."""

    def __init__(self, descriptor: int, broken: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._broken = broken
        self._lock = threading.Lock()
        self._open = True

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
            with suppress(OSError):
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


def widen(descriptor: int) -> None:
    """Let a pipe hold more, where the system has that."""
    import fcntl

    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def given_environment() -> dict[bytes, bytes]:
    """What the client gave us, less what is ours."""
    env = {name: value for name, value in os.environb.items() if not name.startswith(b"HOLDFAST_")}
    # In a plain C locale Python sets LC_CTYPE for itself and its children. Nobody gave us that.
    if b"LC_CTYPE" in env and sys.platform == "linux":
        with suppress(OSError), open("/proc/self/environ", "rb") as file:
            if not any(entry.startswith(b"LC_CTYPE=") for entry in file.read().split(b"\0")):
                del env[b"LC_CTYPE"]
    return env


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


class Upstream:
    """The process of the upstream, started and ended by the main thread."""

    def __init__(self, command: Sequence[str], events: SimpleQueue[str]) -> None:
        self._events = events
        self._signals: list[int] = []
        for which in (signal.SIGTERM, signal.SIGINT):
            signal.signal(which, self._on_signal)
        signal.signal(signal.SIGCHLD, lambda *_: events.put("child"))
        their_in, self.input = os.pipe()
        self.output, their_out = os.pipe()
        try:
            self._pid = os.posix_spawnp(
                command[0],
                list(command),
                given_environment(),
                file_actions=[(os.POSIX_SPAWN_DUP2, their_in, 0), (os.POSIX_SPAWN_DUP2, their_out, 1)],
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores these, and a child would inherit that
            )
        except OSError as problem:
            why = f"it cannot be started: {problem.strerror}"
            raise errors.bad_setting("command", command[0], why) from None
        finally:
            os.close(their_in)
            os.close(their_out)
        self._status: int | None = None
        self._ends: list[tuple[float, int]] = []  # which signal is sent when, unless it has ended by then

    def _on_signal(self, which: int, _frame: object) -> None:
        self._signals.append(which)
        self._events.put("signal")

    def wait(self, work: Work, to_client: Pipe) -> int:
        """Until the upstream has ended and all it said is with the client; its status, negative for a signal."""
        seen: dict[str, float] = {}  # when each thing happened first
        while True:
            due = work.give_up_late()
            pause = LOOK_SECONDS if seen else None if due is None else max(due - time.monotonic(), 0.0)
            with suppress(Empty):
                event = self._events.get(timeout=pause)
                if event not in ("job", "child"):
                    seen.setdefault(event, time.monotonic())
            now = time.monotonic()
            self._reap(seen, now)
            while self._signals:
                self._send(self._signals.pop(0))
                self._plan(now + LEAVE_SECONDS, signal.SIGKILL)
            if "upstream" in seen:
                work.close_upstream()
                self._plan(now + TERM_SECONDS, signal.SIGTERM, signal.SIGKILL)
            if "client" in seen:
                wanted = not work.close_upstream() or work.unanswered()
                if not (wanted and to_client.is_read() and now < seen["client"] + LINGER_SECONDS):
                    self._plan(now + LEAVE_SECONDS, signal.SIGTERM, signal.SIGKILL)
            while self._ends and self._ends[0][0] <= now:
                self._send(self._ends.pop(0)[1])
            if self._status is not None and self._all_said(seen, work, now):
                return self._status

    def _plan(self, first: float, *which: int) -> None:
        """Send these signals from then on, one after another, unless something is planned already."""
        if not self._ends and self._status is None:
            self._ends = [(first + TERM_SECONDS * later, one) for later, one in enumerate(which)]

    def _send(self, which: int) -> None:
        if self._status is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, which)

    def _reap(self, seen: dict[str, float], now: float) -> None:
        if self._status is None:
            with suppress(ChildProcessError):
                found, status = os.waitpid(self._pid, os.WNOHANG)
                if found:
                    self._status = os.waitstatus_to_exitcode(status)
                    seen["ended"] = now

    def _all_said(self, seen: dict[str, float], work: Work, now: float) -> bool:
        if now > seen["ended"] + LINGER_SECONDS or ("signal" in seen and now > seen["ended"] + TERM_SECONDS):
            return True
        if work.keeping():
            return False
        return "upstream" in seen or now > max(seen["ended"], work.heard()) + QUIET_SECONDS
