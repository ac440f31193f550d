"""How often, and how much at once, a principal may call.

A bucket fills with calls at a steady pace and holds those of some seconds, so that a burst passes and a flood does not.
Buckets live in the process: a server of several processes allows as many times as much.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from limpet.doors.http import refusals

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response

    from limpet.doors.http.principal import Principal
    from limpet.limits import ServerRules

BURST_SECONDS = 15  # of calls that may come at once: an agent that starts reads a lot
BUCKETS = 10_000  # principals that are remembered; one that is forgotten begins with a full bucket


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
