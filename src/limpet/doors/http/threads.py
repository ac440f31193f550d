"""Which threads do the work. Calls that wait for somebody else, and those that take long, hold up none of the others.

Only one thread of a process computes at a time, and every thread more that wants to makes each of them slower. Eight
are enough to have work for the processor while others wait for the store, which has no more connections either
(POOL_MAX in stores/postgres/connections.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from limpet.doors.http import policy

T = TypeVar("T")
WORKING_AT_ONCE = 8  # threads that compute; those who come later wait in line, which costs nothing
WAITING_AT_ONCE = 200  # threads that only sleep; those who come later wait for one to end


class Threads:
    def __init__(self) -> None:
        self._working: anyio.CapacityLimiter | None = None
        self._waiting: anyio.CapacityLimiter | None = None

    async def run(self, operation: object, work: Callable[[], T]) -> T:
        if self._working is None or self._waiting is None:  # made where the event loop is known
            self._working = anyio.CapacityLimiter(WORKING_AT_ONCE)
            self._waiting = anyio.CapacityLimiter(WAITING_AT_ONCE)
        if operation in policy.LONG:
            return await anyio.to_thread.run_sync(work)
        limiter = self._waiting if operation in policy.WAITING else self._working
        return await anyio.to_thread.run_sync(work, limiter=limiter)
