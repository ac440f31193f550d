"""How fast the machine is: tells a call that waits for something from one that a busy machine gives no time.

While something takes long, the simplest command is run beside it, again and again, on a store of its own that nobody
else uses. Where that takes long too, it is the machine, and what is watched may take as many times longer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

NOTICED = 0.2  # what is done in this part of its time is not looked at
USUAL_SECONDS = 1.0  # more than the simplest command takes on a machine that has time: a third of it


class Slow(Exception):
    """Something took longer than the machine explains."""


class Pace:
    def __init__(self, simplest: Callable[[], object]) -> None:
        self.simplest = simplest

    @contextmanager
    def watched(self, what: str, seconds: float) -> Iterator[None]:
        """Raises Slow when the block took more than so many seconds, or as many times more as the machine is slow."""
        done, longest = threading.Event(), 0.0

        def watch() -> None:
            nonlocal longest
            while not done.wait(NOTICED * seconds):
                began = time.monotonic()
                self.simplest()
                longest = max(longest, time.monotonic() - began)

        watcher, began = threading.Thread(target=watch, daemon=True), time.monotonic()
        watcher.start()
        try:
            yield
        finally:
            took = time.monotonic() - began
            done.set()
            watcher.join()
        if took > seconds * max(1.0, longest / USUAL_SECONDS):
            raise Slow(f"{what} took {took:.0f} s, and the simplest command {longest:.1f} s meanwhile")
