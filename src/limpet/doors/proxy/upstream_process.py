"""The upstream of `limpet wrap` as a process: how it is started, what carries its lines, and how it ends.

The end of its output is what counts, not its exit: a launcher may be gone while the server it started goes on. All
signals to it and the wait for it happen in the main thread, so a signal can never reach another process that got the
same number.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from queue import Empty

from limpet import errors, settings
from limpet.doors.proxy import upstream
from limpet.doors.proxy.upstream import LINGER_SECONDS, LOOK_SECONDS, SIGNALLED, End, Events, Pipe, Work

LEAVE_SECONDS = 5.0  # what an upstream has to end by itself; clients grant two seconds and then send us SIGTERM
TERM_SECONDS = 2.0  # … and after SIGTERM
QUIET_SECONDS = 2.0  # an upstream that has ended, whose output somebody still holds open, is read for so long


class Upstream:
    """The process of the upstream, started and ended by the main thread."""

    def __init__(self, command: Sequence[str], name: str, events: Events) -> None:
        self._command = command
        self._name = name
        self._events = events
        self._signals = upstream.take_signals(events)
        signal.signal(signal.SIGCHLD, lambda *_: events.put("child"))
        their_in, ours_in = os.pipe()
        self._output, their_out = os.pipe()
        # A server that reads no more has ended or soon will; the end of its output is what counts.
        self._input = Pipe(ours_in, lambda: None)
        try:
            self._pid = os.posix_spawnp(
                command[0],
                list(command),
                settings.child_environment(),
                file_actions=[(os.POSIX_SPAWN_DUP2, their_in, 0), (os.POSIX_SPAWN_DUP2, their_out, 1)],
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores these, and a child would inherit that
            )
        except OSError as problem:
            why = f"it cannot be started: {problem.strerror}"
            raise errors.bad_setting("command", command[0], why) from None
        finally:
            os.close(their_in)
            os.close(their_out)
        for descriptor in (ours_in, self._output):
            upstream.widen(descriptor)
        self._status: int | None = None
        self._ends: list[tuple[float, int]] = []  # which signal is sent when, unless it has ended by then

    def owner(self, tool: str) -> tuple[str, str]:
        return self._name, tool

    def write(self, line: bytes) -> None:
        self._input.write(line)

    def lines(self) -> Iterator[bytes]:
        return upstream.lines(self._output)

    def close(self) -> bool:
        return self._input.close()

    def wait(self, work: Work, to_client: Pipe) -> End:
        """Until the upstream has ended and all it said is with the client."""
        status = self._wait(work, to_client)
        how = f"was ended by signal {-status}" if status < 0 else f"ended with exit code {status}"
        told = f"The server {self._command[0]} {how} before it answered. Start it again, then repeat the call."
        return End(status if status >= 0 else SIGNALLED - status, told)

    def _wait(self, work: Work, to_client: Pipe) -> int:
        """The status of the process, negative for a signal."""
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
