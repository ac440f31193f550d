"""The server behind `limpet wrap` and `limpet gateway`, and the pipes that carry its lines.

A `Link` is one MCP server, however it is reached: a process (`ProcessLink`), an address (`upstream_http`), or several
servers that look like one (`gateway`). Lines go in, lines come out; the wrapper does not know which kind it has.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Protocol

from limpet import errors, settings
from limpet.doors.proxy import bounds
from limpet.record import NamedTuple

LINGER_SECONDS = 60.0  # to wait for answers after the client has closed its end and still reads
SILENT_SECONDS = 5.0  # … without hearing anything: a call that hangs must not keep the proxy
POLL_SECONDS = 0.1  # between two checks for the end, once it has begun
READ_BYTES = 1 << 20
PIPE_BYTES = 1 << 20  # the most that Linux allows every user; with 64 KiB, 10 MB take 160 turns
SIGNALLED = 128  # added to the number of a signal that ended something, as shells do
UPSTREAM_ENDED = -32000  # in the range JSON-RPC leaves to servers

Events = SimpleQueue[str]  # "client" and "upstream" have ended, "signal", "child", "job"


class Work(Protocol):
    """The work under way, as far as the end depends on it."""

    def give_up_late(self) -> float | None:
        """Let the originals of late jobs through. The time at which the next one is due."""

    def unanswered(self) -> bool:
        """Whether the client still waits for something."""

    def keeping(self) -> bool:
        """Whether a result has not been handed on yet."""

    def heard(self) -> float:
        """When the upstream last sent a line; now, while that is being passed on."""

    def close_upstream(self) -> bool:
        """Close the upstream's input if nothing waits to be sent there; whether it is closed."""


class End(NamedTuple):
    """How a link ended: the exit code, and the error for requests without an answer."""

    code: int
    message: str


class Link(Protocol):
    """One MCP server."""

    def owner(self, tool: str) -> tuple[str, str]:
        """The server of a tool, and the server's own name of it."""

    def write(self, line: bytes) -> None:
        """Send a message with its line end. It is dropped if the server no longer reads."""

    def lines(self) -> Iterator[bytes]:
        """The messages of the server, until it ends."""

    def close(self) -> bool:
        """Close the server's input; False if that is not possible yet."""

    def wait(self, work: Work, to_client: Pipe) -> End:
        """Wait until the link has ended. Called once, by the main thread, which handles signals."""


class Pipe:
    """One end of a pipe that several threads write to, a whole message at a time."""

    def __init__(self, descriptor: int, broken: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._broken = broken
        self._lock = threading.Lock()
        self._open = True
        self._closed = False

    def write(self, data: bytes) -> None:
        """Write all of it. It is dropped if the other end is closed."""
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
        """False while another thread is blocked in the middle of a message."""
        if not self._lock.acquire(timeout=POLL_SECONDS):
            return False
        try:
            self._open = False
            if not self._closed:  # the descriptor may already be in use again
                self._closed = True
                os.close(self._descriptor)
        finally:
            self._lock.release()
        return True

    def is_read(self) -> bool:
        """Whether the other end is open."""
        poll = select.poll()
        poll.register(self._descriptor, 0)
        return self._open and not poll.poll(0)


Substitute = Callable[[bytes, bytes], bytes]  # the beginning of a message that is too long, and its end once known


def lines(descriptor: int, substitute: Substitute = bounds.too_long) -> Iterator[bytes]:
    """Every line with its end; when the stream ends also a last one without.

    A line that is too long is skipped, and replaced by what `substitute` makes of it. One that does not end at all ends
    the stream.
    """
    parts: list[bytes] = []
    size, amount, after = 0, READ_BYTES >> 4, b""
    while True:
        data = after or _read(descriptor, amount)
        after = b""
        if not data:
            if parts:
                yield b"".join(parts)
            return
        if len(data) == amount:
            amount = READ_BYTES
        end = data.find(b"\n")
        if end < 0:
            parts.append(data)
            size += len(data)
            if size > bounds.MESSAGE_MAX_BYTES:
                head = b"".join(parts[:8])[: bounds.EDGE_BYTES]  # the first reads may be short
                rest = yield from _skipped(descriptor, head, parts.pop()[-bounds.EDGE_BYTES :], substitute)
                if rest is None:
                    return
                parts, size, after = [], 0, rest
            continue
        if end == len(data) - 1 and not parts:  # the usual case: one message, read at once
            yield data
            continue
        *full_lines, rest = data.split(b"\n")
        for line in full_lines:
            yield b"".join((*parts, line, b"\n"))
            parts = []
        if rest:
            parts.append(rest)
        size = len(rest)


def _skipped(descriptor: int, head: bytes, tail: bytes, substitute: Substitute) -> Generator[bytes, None, bytes | None]:
    """Read to the end of a line without keeping it. Returns what was read after it; None at the end of the stream."""
    answer = substitute(head, b"")
    if answer:
        yield answer
    skipped = 0
    while skipped < bounds.SKIPPED_MAX_BYTES:
        data = _read(descriptor, READ_BYTES)
        if not data:
            return None
        line, end, rest = data.partition(b"\n")
        tail = (tail + line)[-bounds.EDGE_BYTES :]
        skipped += len(line)
        if end:
            if not answer and (late := substitute(head, tail)):
                yield late
            return rest
    say("a message did not end, so the server that sends it is ended")
    return None


def _read(descriptor: int, amount: int) -> bytes:
    try:
        return os.read(descriptor, amount)
    except OSError:
        return b""


def queued(queue: SimpleQueue[bytes | None]) -> Iterator[bytes]:
    """The lines of a queue, until None."""
    while (line := queue.get()) is not None:
        yield line


def widen(descriptor: int) -> None:
    """Let a pipe hold more, where the system supports that."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def take_signals(events: Events) -> list[int]:
    """From now on, SIGTERM and SIGINT are events; the list has the signals."""
    taken: list[int] = []

    def on_signal(which: int, _frame: object) -> None:
        taken.append(which)
        events.put("signal")

    for which in (signal.SIGTERM, signal.SIGINT):
        signal.signal(which, on_signal)
    return taken


def until_client_leaves(events: Events, signals: list[int], work: Work, to_client: Pipe) -> int:
    """Wait until the client has left and has the answers it still reads; for links without a process."""
    left: float | None = None
    while True:
        due = work.give_up_late()
        pause = POLL_SECONDS if left is not None else None if due is None else max(due - time.monotonic(), 0.0)
        with suppress(Empty):
            if events.get(timeout=pause) == "client" and left is None:
                left = time.monotonic()
        if signals:
            return SIGNALLED + signals[0]
        if left is not None:
            waits = work.keeping() or (work.unanswered() and to_client.is_read() and not _is_silent(work, left))
            if not waits or time.monotonic() > left + LINGER_SECONDS:
                return 0


def _is_silent(work: Work, left: float) -> bool:
    """Whether nothing has come from the upstream for long enough after the client has closed its end."""
    return time.monotonic() > max(left, work.heard()) + SILENT_SECONDS


# --- a process --------------------------------------------------------------------------------------------------------

LEAVE_SECONDS = 5.0  # for a process to end by itself; clients allow two seconds and then send SIGTERM
TERM_SECONDS = 2.0  # for it to end after SIGTERM
QUIET_SECONDS = 2.0  # the output of a process that has ended is read for so long if another one holds it open


class ProcessLink:
    """A server that is a process, started and ended by the main thread.

    The end of its output decides, not its exit: a launcher may be gone while the server it started goes on. All signals
    to it and the wait for it happen in the main thread, so a signal cannot reach another process that got the same id.
    """

    def __init__(self, command: Sequence[str], name: str, events: Events) -> None:
        self._command = command
        self._name = name
        self._events = events
        self._signals = take_signals(events)
        signal.signal(signal.SIGCHLD, lambda *_: events.put("child"))
        server_in, input_end = os.pipe()
        self._output, server_out = os.pipe()
        # A server that no longer reads has ended or soon will; the end of its output decides.
        self._input = Pipe(input_end, lambda: None)
        try:
            self._pid = os.posix_spawnp(
                command[0],
                list(command),
                settings.child_environment(),
                file_actions=[(os.POSIX_SPAWN_DUP2, server_in, 0), (os.POSIX_SPAWN_DUP2, server_out, 1)],
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # ignored by Python, which a child would inherit
            )
        except OSError as problem:
            why = f"it cannot be started: {problem.strerror}"
            raise errors.bad_setting("command", command[0], why) from None
        finally:
            os.close(server_in)
            os.close(server_out)
        for descriptor in (input_end, self._output):
            widen(descriptor)
        self._status: int | None = None
        self._ends: list[tuple[float, int]] = []  # signals to send, with their time, unless it has ended by then

    def owner(self, tool: str) -> tuple[str, str]:
        return self._name, tool

    def write(self, line: bytes) -> None:
        self._input.write(line)

    def lines(self) -> Iterator[bytes]:
        return lines(self._output)

    def close(self) -> bool:
        return self._input.close()

    def wait(self, work: Work, to_client: Pipe) -> End:
        """Wait until the process has ended and the client has all of its output."""
        status = self._wait(work, to_client)
        how = f"was ended by signal {-status}" if status < 0 else f"ended with exit code {status}"
        message = f"The server {self._command[0]} {how} before it answered. Start it again, then repeat the call."
        return End(status if status >= 0 else SIGNALLED - status, message)

    def _wait(self, work: Work, to_client: Pipe) -> int:
        """The status of the process, negative for a signal."""
        events: dict[str, float] = {}  # the time of the first event of each kind
        while True:
            due = work.give_up_late()
            pause = POLL_SECONDS if events else None if due is None else max(due - time.monotonic(), 0.0)
            with suppress(Empty):
                event = self._events.get(timeout=pause)
                if event not in ("job", "child"):
                    events.setdefault(event, time.monotonic())
            now = time.monotonic()
            self._reap(events, now)
            while self._signals:
                self._send(self._signals.pop(0))
                self._plan(now + LEAVE_SECONDS, signal.SIGKILL)
            if "upstream" in events:
                work.close_upstream()
                self._plan(now + TERM_SECONDS, signal.SIGTERM, signal.SIGKILL)
            if "client" in events:
                left = events["client"]
                needed = (not work.close_upstream() or work.unanswered()) and not _is_silent(work, left)
                if not (needed and to_client.is_read() and now < left + LINGER_SECONDS):
                    self._plan(now + LEAVE_SECONDS, signal.SIGTERM, signal.SIGKILL)
            while self._ends and self._ends[0][0] <= now:
                self._send(self._ends.pop(0)[1])
            if self._status is not None and self._all_said(events, work, now):
                return self._status

    def _plan(self, first: float, *which: int) -> None:
        """Plan these signals, one after another, unless some are planned already."""
        if not self._ends and self._status is None:
            self._ends = [(first + TERM_SECONDS * index, signal_) for index, signal_ in enumerate(which)]

    def _send(self, which: int) -> None:
        if self._status is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, which)

    def _reap(self, events: dict[str, float], now: float) -> None:
        if self._status is None:
            with suppress(ChildProcessError):
                pid, status = os.waitpid(self._pid, os.WNOHANG)
                if pid:
                    self._status = os.waitstatus_to_exitcode(status)
                    events["ended"] = now

    def _all_said(self, events: dict[str, float], work: Work, now: float) -> bool:
        if now > events["ended"] + LINGER_SECONDS or ("signal" in events and now > events["ended"] + TERM_SECONDS):
            return True
        if work.keeping():
            return False
        return "upstream" in events or now > max(events["ended"], work.heard()) + QUIET_SECONDS


# --- helpers ----------------------------------------------------------------------------------------------------------


class Workers:
    """A pool of threads that grows to the number needed at once, up to a limit."""

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
    """Write one line to standard error, without control characters, which could act on a terminal."""
    plain = "".join(character if character.isprintable() else " " for character in text)
    with suppress(OSError):
        os.write(2, f"limpet {who}: {' '.join(plain.split())}\n".encode("utf-8", "replace"))
