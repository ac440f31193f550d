"""`GET /health`: whether the store answers reads and accepts writes. It tries both, without changing anything.

A try may take as long as a writer waits for the lock of the store, so it goes on beside the request: one at a time, in
a thread of its own. The answer comes at once and says how the last one ended, or since when one has been waiting. The
route is public, so it names no place.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from starlette.responses import JSONResponse

from limpet.api import wall_clock
from limpet.doors.http import refusals
from limpet.errors import LimpetError, StoreBusy
from limpet.model import iso
from limpet.upkeep import access_tokens

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from limpet.doors.http.gate import Visit
    from limpet.store import Store

OK, WAITING, FAILING = "ok", "waiting", "failing"
FRESH_SECONDS = 1.0  # how long an outcome is reported before the next try, so that asking often costs nothing
ANSWER_SECONDS = 0.1  # for a try to end while the request waits; a healthy one takes milliseconds
LATE_SECONDS = 2.0  # a try that takes longer is reported; under heavy load writers queue for less


class Health:
    def __init__(self, store: Store) -> None:
        self._reads = _Probe(lambda: access_tokens.latest_changes(store))
        self._writes = _Probe(store.probe_write)

    async def handle(self, _request: Request, _visit: Visit) -> ASGIApp:
        reads, writes = await asyncio.gather(self._reads.state(), self._writes.state())
        if (reads, writes) == (OK, OK):
            return JSONResponse({"status": OK})
        since = min(iso(probe.since) for probe in (self._reads, self._writes) if probe.since is not None)
        message = f"reads: {reads}, writes: {writes}, since {since}. Look at the store, and at what has it open."
        states = {"status": FAILING, "reads": reads, "writes": writes, "since": since, "message": message}
        return JSONResponse(states, 503, headers={**refusals.NO_STORE, "Retry-After": "5"})


class _Probe:
    """One way to try the store."""

    def __init__(self, attempt: Callable[[], object]) -> None:
        self._attempt = attempt
        self._task: asyncio.Task[None] | None = None
        self._began = (0.0, 0)  # the last try, by both clocks
        self._last = OK
        self.since: int | None = None  # when a try began that did not end well, with no good one after it

    async def state(self) -> str:
        if self._task is None or (self._task.done() and time.monotonic() - self._began[0] >= FRESH_SECONDS):
            self._began = (time.monotonic(), wall_clock())
            self._task = asyncio.create_task(self._try())
        await asyncio.wait({self._task}, timeout=ANSWER_SECONDS)
        if not self._task.done() and time.monotonic() - self._began[0] >= LATE_SECONDS:
            self._note(WAITING)
        return self._last

    async def _try(self) -> None:
        limiter = anyio.CapacityLimiter(1)  # apart from the threads of calls, which may all be waiting
        try:
            await anyio.to_thread.run_sync(self._attempt, limiter=limiter, abandon_on_cancel=True)
        except LimpetError as problem:
            self._note(WAITING if isinstance(problem, StoreBusy) else FAILING)
        else:
            self._note(OK)

    def _note(self, state: str) -> None:
        self._last = state
        self.since = None if state == OK else self.since or self._began[1]
