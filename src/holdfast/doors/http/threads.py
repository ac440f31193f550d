"""Which threads do the work. Calls that wait for somebody else have their own, so that they hold up none that work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from holdfast.doors.http import policy

T = TypeVar("T")
WAITING_AT_ONCE = 200  # threads that only sleep; those who come later wait for one to end


class Threads:
    def __init__(self) -> None:
        self._waiting: anyio.CapacityLimiter | None = None

    async def run(self, operation: object, work: Callable[[], T]) -> T:
        if operation not in policy.WAITING:
            return await anyio.to_thread.run_sync(work)
        if self._waiting is None:
            self._waiting = anyio.CapacityLimiter(WAITING_AT_ONCE)
        return await anyio.to_thread.run_sync(work, limiter=self._waiting)
