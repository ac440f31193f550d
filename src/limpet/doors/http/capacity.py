"""How much the server does at once: worker threads, calls per principal, and what a tenant may keep.

Threads: a process computes in one thread at a time, and every further thread that wants to makes each of them slower.
Eight keep the processor busy while others wait for the store, which has no more connections either (POOL_MAX in
stores/postgres/connections.py). Calls that wait for another session, and those that take long, have threads of their
own and do not hold up the others.

Rates: a token bucket holds the calls of some seconds, so that a burst passes and a flood does not. Each process has its
own buckets, so a server of several processes allows as many times as much.

Quotas: usage is counted now and then, so a limit is passed by a little before it holds.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread

from limpet import errors
from limpet.doors.http import policy, refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.responses import Response

    from limpet.api import Limpet, Run
    from limpet.catalogue.operation import Operation
    from limpet.doors.http.principal import Principal
    from limpet.settings import ServerRules
    from limpet.store import Store, Usage

T = TypeVar("T")
WORKING_AT_ONCE = 8  # threads that compute; later calls wait in line, which costs nothing
WAITING_AT_ONCE = 200  # threads that sleep; later calls wait for one to end
BURST_SECONDS = 15  # of calls that may come at once: an agent that starts reads a lot
BUCKETS = 10_000  # principals that are remembered; one that is forgotten begins with a full bucket
COUNTED_SECONDS = 10  # between two counts of a tenant's entries
TENANTS = 10_000  # whose counts are remembered


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


class Rates:
    """For one thread: the event loop's."""

    def __init__(self, rules: ServerRules, clock: Callable[[], float] = time.monotonic) -> None:
        self._rules = rules
        self._clock = clock
        self._pace = rules.calls_per_minute / 60  # calls a second
        self._most = max(1.0, self._pace * BURST_SECONDS)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # calls left, and when that was
        self._under_way: dict[str, int] = {}

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

    def begin(self, principal: Principal) -> Response | None:
        """Count a call as under way, or refuse it. What was begun is to be ended."""
        if not principal.limited:
            return None
        busy = self._under_way.get(principal.id, 0)
        if busy >= self._rules.calls_at_once:
            return refusals.too_many_at_once(self._rules.calls_at_once)
        self._under_way[principal.id] = busy + 1
        return None

    def end(self, principal: Principal) -> None:
        if principal.limited:
            left = self._under_way.pop(principal.id) - 1
            if left:
                self._under_way[principal.id] = left


class Quotas:
    """Asked before every operation that a served project runs, so no route can forget it."""

    def __init__(self, store: Store, rules: ServerRules, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._limits = (("entries", rules.quota_entries), ("bytes of outputs", rules.quota_bytes))
        self.any = any(limit for _, limit in self._limits)
        self._clock = clock
        self._lock = Lock()
        self._usages: OrderedDict[str, tuple[Usage, float]] = OrderedDict()

    def around(self, limpet: Limpet, run: Run) -> Run:
        """For `Limpet.observe`. A tenant that is full can still read and make room."""
        tenant = limpet.scope.tenant

        def within(operation: Operation, arguments: Mapping[str, Any], session: str | None, by: str) -> Any:
            if not (operation.read_only or operation.frees):
                self._check(tenant)
            return run(operation, arguments, session, by)

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
