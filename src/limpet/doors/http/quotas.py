"""How much a tenant may keep. It is counted now and then, so a limit is passed by a little before it holds."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING

import anyio.to_thread

from limpet.doors.http import policy, refusals
from limpet.doors.http.principal import Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response

    from limpet.doors.http.gate import Visit
    from limpet.limits import ServerRules
    from limpet.store import Store, Usage

COUNTED_SECONDS = 10  # between two counts of a tenant's entries
TENANTS = 10_000  # whose counts are remembered


class Quotas:
    def __init__(self, store: Store, rules: ServerRules, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._limits = (("entries", rules.quota_entries), ("bytes of outputs", rules.quota_bytes))
        self._clock = clock
        self._known: OrderedDict[str, tuple[Usage, float]] = OrderedDict()

    async def refusal(self, visit: Visit, operation: str) -> Response | None:
        """Why a tenant that is full may not do this. Reading and making room is always possible."""
        writes = policy.OPERATIONS.get(operation, Level.ADMIN) > Level.READ and operation not in policy.FREEING
        if not (writes and visit.principal.limited and any(limit for _, limit in self._limits)):
            return None
        usage = await self._usage(visit.principal.tenant)
        for (what, limit), used in zip(self._limits, usage, strict=True):
            if limit and used >= limit:
                return refusals.over_quota(what, used, limit)
        return None

    async def _usage(self, tenant: str) -> Usage:
        usage, until = self._known.get(tenant, (None, 0.0))
        if usage is None or self._clock() >= until:
            usage = await anyio.to_thread.run_sync(self._store.usage, tenant)
            self._known[tenant] = (usage, self._clock() + COUNTED_SECONDS)
            while len(self._known) > TENANTS:
                self._known.popitem(last=False)
        return usage
