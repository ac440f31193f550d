"""How much the server does at once: worker threads, calls per principal, and what a tenant may keep.

Threads: a process computes in one thread at a time, and every further thread that wants to makes each of them slower.
Eight keep the processor busy while others wait for the store, which has no more connections either (POOL_MAX in
stores/postgres/connections.py). Writes have threads of their own, fewer than there are connections, so that reads are
answered while all writers wait for a process that holds the lock of the store. So do calls that wait for another
session, and those that take long.

Rates: a token bucket holds the calls of some seconds, so that a burst passes and a flood does not. Each process has its
own buckets, so a server of several processes allows as many times as much.

Quotas: usage is counted now and then, so a limit is passed by a little before it holds.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread

from limpet import errors
from limpet.doors.http import policy, refusals
from limpet.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.responses import Response

    from limpet.api import Limpet, Run
    from limpet.catalogue.operation import Operation
    from limpet.doors.http.principal import Principal
    from limpet.redaction import Masking
    from limpet.settings import ServerRules
    from limpet.store import Store, Usage

T = TypeVar("T")
READING_AT_ONCE = 8  # threads; later calls wait in line, which costs nothing
WRITING_AT_ONCE = 6  # threads; two connections are left for reads
WRITE_PLACE_SECONDS = 5  # a write waits for one of these threads, then it is refused; the store has its own bound
LONG_AT_ONCE = 4  # threads of calls that take seconds
WAITING_AT_ONCE = 200  # threads that sleep; later calls wait for one to end
BURST_SECONDS = 15  # of calls that may come at once: an agent that starts reads a lot
BUCKETS = 10_000  # principals that are remembered; one that is forgotten begins with a full bucket
COUNTED_SECONDS = 10  # between two counts of a tenant's entries
TENANTS = 10_000  # whose counts are remembered


class _Lanes(NamedTuple):
    """Made where the event loop is known."""

    reading: anyio.CapacityLimiter
    writing: anyio.CapacityLimiter
    waiting: anyio.CapacityLimiter
    long: anyio.CapacityLimiter
    any: anyio.CapacityLimiter  # for calls that have a place already


class Threads:
    """For one thread: the event loop's. Calls under way are counted here, when a request has come in completely."""

    def __init__(self, rates: Rates) -> None:
        self._made: _Lanes | None = None
        self._rates = rates

    async def run(self, principal: Principal, operation: object, work: Callable[[], T]) -> T:
        """Do a call in a thread. What is no operation reads."""
        if operation in policy.WRITING and operation not in policy.LONG:
            return await self.write(principal, work)
        lanes = self._lanes()
        limiter = lanes.waiting if operation in policy.WAITING else lanes.reading
        with self._rates.under_way(principal, "read"):
            return await anyio.to_thread.run_sync(work, limiter=lanes.long if operation in policy.LONG else limiter)

    async def write(self, principal: Principal, work: Callable[[], T]) -> T:
        """Do a write in a thread, or refuse it because too many have been waiting for too long."""
        with self._rates.under_way(principal, "write"):
            async with self._place():
                return await anyio.to_thread.run_sync(work, limiter=self._lanes().any)

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """One of the places of writers, within a bounded time."""
        limiter, holder = self._lanes().writing, object()
        try:
            limiter.acquire_on_behalf_of_nowait(holder)
        except anyio.WouldBlock:
            with anyio.move_on_after(WRITE_PLACE_SECONDS) as waited:
                await limiter.acquire_on_behalf_of(holder)
            if waited.cancelled_caught:
                raise errors.writes_waiting(WRITING_AT_ONCE) from None
        try:
            yield
        finally:
            limiter.release_on_behalf_of(holder)

    def _lanes(self) -> _Lanes:
        if self._made is None:
            counts = (READING_AT_ONCE, WRITING_AT_ONCE, WAITING_AT_ONCE, LONG_AT_ONCE, math.inf)
            self._made = _Lanes(*map(anyio.CapacityLimiter, counts))
        return self._made


class Rates:
    """For one thread: the event loop's."""

    def __init__(self, rules: ServerRules, clock: Callable[[], float] = time.monotonic) -> None:
        self._rules = rules
        self._clock = clock
        self._pace = rules.calls_per_minute / 60  # calls a second
        self._most = max(1.0, self._pace * BURST_SECONDS)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # calls left, and when that was
        self._under_way: dict[tuple[str, str], int] = {}

    def refusal(self, principal: Principal) -> Response | None:
        """Take one call out of the bucket, or say when there will be one."""
        if not principal.limited:
            return None
        now = self._clock()
        left, then = self._buckets.pop(principal.id, (self._most, now))
        left = min(self._most, left + (now - then) * self._pace)
        self._buckets[principal.id] = (left - 1 if left >= 1 else left, now)
        while len(self._buckets) > BUCKETS:
            self._buckets.popitem(last=False)
        if left >= 1:
            return None
        seconds = max(1, math.ceil((1 - left) / self._pace))
        return refusals.too_often(seconds, f"{self._rules.calls_per_minute:,} calls a minute")

    @contextmanager
    def under_way(self, principal: Principal, lane: str) -> Iterator[None]:
        """Count a call while it is under way, or refuse it. Reads and writes are counted apart: writes that wait for
        the store must not keep a token from reading."""
        if not principal.limited:
            yield
            return
        key, most = (principal.id, lane), self._rules.calls_at_once
        busy = self._under_way.get(key, 0)
        if busy >= most:
            raise refusals.Refused(refusals.too_many_at_once(most, lane))
        self._under_way[key] = busy + 1
        try:
            yield
        finally:
            if left := self._under_way.pop(key) - 1:
                self._under_way[key] = left


class Quotas:
    """Asked before every operation that a served project runs, so no route can forget it."""

    def __init__(self, store: Store, rules: ServerRules, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._limits = (("entries", rules.quota_entries), ("bytes of outputs", rules.quota_bytes))
        self._clock = clock
        self._lock = Lock()
        self._usages: OrderedDict[str, tuple[Usage, float]] = OrderedDict()

    def watch(self, limpet: Limpet) -> None:
        """Ask before every operation of this Limpet, and of those of other projects that come from it."""
        if any(limit for _, limit in self._limits):
            limpet.observe(self._around)

    def _around(self, limpet: Limpet, run: Run) -> Run:
        """A tenant that is full can still read and make room."""
        tenant = limpet.scope.tenant

        def within(
            operation: Operation,
            arguments: Mapping[str, Any],
            session: str | None,
            by: str,
            masking: Masking | None = None,
        ) -> Any:
            if not (operation.read_only or operation.frees):
                self._check(tenant)
            return run(operation, arguments, session, by, masking)

        return within

    def _check(self, tenant: str) -> None:
        for (what, limit), used in zip(self._limits, self._usage(tenant), strict=True):
            if limit and used >= limit:
                raise errors.over_quota(used, what, limit)

    def _usage(self, tenant: str) -> Usage:
        with self._lock:
            usage, until = self._usages.get(tenant, (None, 0.0))
            if usage is not None and self._clock() < until:
                return usage
            if usage is not None:  # while it is counted again, others go by the old count
                self._usages[tenant] = (usage, self._clock() + COUNTED_SECONDS)
        usage = self._store.usage(tenant)
        with self._lock:
            self._usages[tenant] = (usage, self._clock() + COUNTED_SECONDS)
            while len(self._usages) > TENANTS:
                self._usages.popitem(last=False)
        return usage
