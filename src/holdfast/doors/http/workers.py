"""Several processes that serve one port.

The parent opens the port, starts the workers and waits; it never opens the store, and starts a worker that died anew.
Whoever is told to stop finishes the requests under way: SIGTERM and SIGINT go to every worker, and the parent ends when
all have.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

STOP_SECONDS = 15  # after which a worker that does not end is killed; it has 5 for requests under way
SOON_SECONDS = 2  # a worker that ends before that never worked: starting it again would not help


class Workers:
    """`work` serves until it is told to stop, and calls what it is given once it can be reached."""

    def __init__(self, count: int, work: Callable[[Callable[[], None]], None]) -> None:
        self._count = count
        self._work = work
        self._running: dict[int, float] = {}  # when each was started, by its process id
        self._stopping = False

    def run(self, ready: Callable[[], None]) -> int:
        """Until told to stop; `ready` is called when every worker can be reached. What to exit with."""
        reader, writer = os.pipe()
        previous = {which: signal.signal(which, self._stop) for which in (signal.SIGTERM, signal.SIGINT)}
        try:
            for _ in range(self._count):
                self._start(reader, writer)
            if self._all_ready(reader):
                ready()
            return self._wait(reader, writer)
        finally:
            for which, handler in previous.items():
                signal.signal(which, handler)
            os.close(reader)
            os.close(writer)

    def _start(self, reader: int, writer: int) -> None:
        began = time.monotonic()
        if child := os.fork():
            self._running[child] = began
            return
        code = 1
        try:
            for which in (signal.SIGTERM, signal.SIGINT):
                signal.signal(which, signal.SIG_DFL)
            os.close(reader)
            self._work(lambda: _say(writer))
            code = 0
        except BaseException:
            # The outermost frame of this process. Its reason is for the log; the parent sees that it ended.
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)

    def _all_ready(self, reader: int) -> bool:
        told = 0
        os.set_blocking(reader, False)
        while told < self._count and not self._stopping:
            try:
                told += len(os.read(reader, self._count))
            except BlockingIOError:
                if self._ended(os.WNOHANG)[0]:
                    self._stop()
                time.sleep(0.01)
        return told >= self._count

    def _wait(self, reader: int, writer: int) -> int:
        failed = 0
        until = 0.0
        while self._running:
            if self._stopping and not until:
                until = time.monotonic() + STOP_SECONDS
            child, lived, code = self._ended(os.WNOHANG if self._stopping else 0)
            if self._stopping:
                if not child:
                    self._kill_late(until)
                continue
            if child and lived < SOON_SECONDS:
                failed = code or 1
                self._stop()
            elif child:
                self._start(reader, writer)
        return failed

    def _ended(self, how: int) -> tuple[int, float, int]:
        """A worker that ended: its process, how long it lived, and its code; zeros if there is none."""
        try:
            child, status = os.waitpid(-1, how)
        except ChildProcessError:
            self._running.clear()
            return 0, 0.0, 0
        if child not in self._running:
            return 0, 0.0, 0
        return child, time.monotonic() - self._running.pop(child), os.waitstatus_to_exitcode(status)

    def _kill_late(self, until: float) -> None:
        time.sleep(0.02)
        if time.monotonic() > until:
            self._tell(signal.SIGKILL)

    def _stop(self, *_signal: object) -> None:
        self._stopping = True
        self._tell(signal.SIGTERM)

    def _tell(self, which: signal.Signals) -> None:
        for child in list(self._running):
            os.kill(child, which)


def _say(writer: int) -> None:
    os.write(writer, b".")
