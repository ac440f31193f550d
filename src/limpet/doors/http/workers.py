"""Several processes that serve one port.

The parent opens the port, starts the workers and waits. It does not open the store, and it restarts a worker that died.
SIGTERM and SIGINT go to every worker, which finishes the requests under way; the parent ends when all have. When the
parent is killed, its workers notice and stop too, because they share the port and no other server could bind it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

STOP_SECONDS = 15  # after which a worker that does not end is killed; it has 5 for requests under way
AGAIN_SECONDS = 0.5  # before a worker that died is restarted, so that one that always dies does not use a whole core
PID_BYTES = 8


class Workers:
    """`work` serves until the process is signalled, and calls its argument once it can be reached.

    A worker that ends before it could be reached is not restarted: it would fail again.
    """

    def __init__(self, count: int, work: Callable[[Callable[[], None]], None]) -> None:
        self._count = count
        self._work = work
        self._running: set[int] = set()  # by process id
        self._reached: set[int] = set()  # those that could be reached, also of those that ended since
        self._stopping = False
        self._life = (-1, -1)

    def run(self, ready: Callable[[], None]) -> int:
        """Run until signalled; call `ready` when every worker can be reached. Returns the exit code."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        self._life = os.pipe()  # nothing is ever written: it ends when the parent does
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
            for descriptor in (reader, writer, *self._life):
                os.close(descriptor)

    def _start(self, reader: int, writer: int) -> None:
        if child := os.fork():
            self._running.add(child)
            return
        code = 1
        try:
            for which in (signal.SIGTERM, signal.SIGINT):
                signal.signal(which, signal.SIG_DFL)
            os.close(reader)
            os.close(self._life[1])
            threading.Thread(target=_end_with, args=(self._life[0],), daemon=True).start()
            self._work(lambda: _say(writer))
            code = 0
        except BaseException:
            # The outermost frame of this process. Its reason is for the log; the parent sees that it ended.
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)

    def _all_ready(self, reader: int) -> bool:
        while not self._running <= self._heard(reader) and not self._stopping:
            if self._ended(os.WNOHANG)[0]:
                self._stop()
            time.sleep(0.01)
        return not self._stopping

    def _heard(self, reader: int) -> set[int]:
        """The workers that said they can be reached."""
        with suppress(BlockingIOError):
            while message := os.read(reader, PID_BYTES):
                self._reached.add(int.from_bytes(message, "big"))
        return self._reached

    def _wait(self, reader: int, writer: int) -> int:
        failed = 0
        until = 0.0
        while self._running:
            if self._stopping and not until:
                until = time.monotonic() + STOP_SECONDS
            child, code = self._ended(os.WNOHANG if self._stopping else 0)
            if self._stopping:
                if not child:
                    self._kill_late(until)
            elif child and child not in self._heard(reader):
                failed = code or 1
                self._stop()
            elif child:
                time.sleep(AGAIN_SECONDS)
                if not self._stopping:  # which may have been asked for in the meantime
                    self._start(reader, writer)
        return failed

    def _ended(self, how: int) -> tuple[int, int]:
        """A worker that ended and its code; zeros if there is none."""
        try:
            child, status = os.waitpid(-1, how)
        except ChildProcessError:
            self._running.clear()
            return 0, 0
        if child not in self._running:
            return 0, 0
        self._running.discard(child)
        return child, os.waitstatus_to_exitcode(status)

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


def _end_with(life: int) -> None:
    """Stop when the parent is gone."""
    os.read(life, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _say(writer: int) -> None:
    os.write(writer, os.getpid().to_bytes(PID_BYTES, "big"))
