"""From the Authorization header to a principal, or to None.

Three kinds of credentials: the token of a local server, which is all its own; tokens made by `limpet token create`;
and access tokens of an identity provider, where one is set up. A stored token that was found is remembered for some
seconds. Every half second the history of tokens is asked what changed, one question for all of them, and what did is
looked up again: so a revoked one ends within a second in every process.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections import OrderedDict
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import anyio.to_thread

from limpet import limits
from limpet.doors.http.principal import LEVELS, Principal
from limpet.errors import LimpetError
from limpet.model import PERSON
from limpet.record import NamedTuple
from limpet.upkeep import access_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limpet.api import Clock
    from limpet.doors.http.oauth import OAuth
    from limpet.store import Store

REMEMBERED = 10_000  # tokens in use at once in one process
KEYS_WAIT_SECONDS = 6  # for the keys of an identity provider; fetching them takes five at most, usually
REMEMBERED_SECONDS = 30  # then one is looked up again, though nothing is known to have changed
_TRUST_SECONDS = limits.TOKEN_TRUST_MS / 1_000


class Local(NamedTuple):
    """The one person of a local server. Without a token, every caller is that person."""

    principal: Principal
    token: bytes | None


class Credentials:
    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        local: Local | None,
        oauth: OAuth | None = None,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ticks = ticks
        self._store = store
        self._clock = clock
        self._local = local
        self._oauth = oauth
        self._cache: OrderedDict[bytes, tuple[access_tokens.Token, float]] = (
            OrderedDict()
        )  # until when it is remembered
        self._last: int | None = None  # the newest change of any token that was taken note of
        self._checked_at = -_TRUST_SECONDS  # when it was asked for
        self._asking = anyio.Lock()
        self._noting: asyncio.Task[None] | None = None
        self._fetching: asyncio.Future[None] | None = None

    async def principal(self, headers: Sequence[str]) -> Principal | None:
        """Who sends these Authorization headers; None when there is more than one."""
        if self._local is not None and self._local.token is None:
            return self._local.principal
        scheme, _, value = headers[0].partition(" ") if len(headers) == 1 else ("", "", "")
        presented = value.strip()
        if scheme.lower() != "bearer" or not presented:
            return None
        local = self._local
        # Compared as bytes: a header may hold any character.
        if local is not None and local.token is not None and hmac.compare_digest(presented.encode(), local.token):
            return local.principal
        if presented.startswith(access_tokens.PREFIX):
            return await self._stored(presented)
        return None if self._oauth is None else await self._provided(self._oauth, presented)

    async def _provided(self, oauth: OAuth, presented: str) -> Principal | None:
        """Who a token of the provider speaks for. One fetch of its keys serves all who wait, without threads."""
        known, due = oauth.key_state(presented)
        if due and (self._fetching is None or self._fetching.done()):
            fetch = anyio.to_thread.run_sync(oauth.refresh_keys, limiter=anyio.CapacityLimiter(1))
            self._fetching = asyncio.ensure_future(fetch)
        if not known and self._fetching is not None:
            await asyncio.wait({self._fetching}, timeout=KEYS_WAIT_SECONDS)
        return await anyio.to_thread.run_sync(oauth.principal, presented)

    async def _stored(self, presented: str) -> Principal | None:
        if self._ticks() >= self._checked_at + _TRUST_SECONDS:
            await self._hear()
        key = hashlib.sha256(presented.encode()).digest()  # so that no token stays in memory
        token, until = self._cache.get(key, (None, 0.0))
        if token is None or self._ticks() >= until:
            last, began = self._last, self._ticks()
            token = await anyio.to_thread.run_sync(access_tokens.recognised, self._store, presented)
            self._note_use(token)
            # If something was changed since, it may have been this one, after it was read.
            self._remember(key, token if last == self._last else None, began + REMEMBERED_SECONDS)
        return _principal(token) if token is not None and token.good(self._clock()) else None

    async def _hear(self) -> None:
        """Forget the tokens that were changed since this was last asked."""
        async with self._asking:
            began = self._ticks()  # what is changed from here on is heard of next time
            if began < self._checked_at + _TRUST_SECONDS:
                return  # another request has just asked
            changes = await anyio.to_thread.run_sync(access_tokens.latest_changes, self._store)
            last, newest = self._last or 0, max((seq for seq, _ in changes), default=0)
            new = [id for seq, id in changes if seq > last]
            if len(new) == limits.TOKEN_CHANGES_READ or newest < last:  # there may be more; or it is another store now
                self._cache.clear()
            for key in [key for key, (token, _) in self._cache.items() if token.id in new]:
                del self._cache[key]
            self._last, self._checked_at = newest, began

    def _note_use(self, token: access_tokens.Token | None) -> None:
        """Record the use beside the request, which does not wait for it: a read must not wait for the write lock."""
        now = self._clock()
        busy = self._noting is not None and not self._noting.done()  # then a later look-up records it
        if token is None or busy or not (token.good(now) and access_tokens.use_is_old(token.used_at, now)):
            return

        async def note() -> None:
            with suppress(LimpetError):  # a good token is accepted even when this cannot be written
                await anyio.to_thread.run_sync(
                    partial(access_tokens.note_use, self._store, token, now=now), limiter=anyio.CapacityLimiter(1)
                )

        self._noting = asyncio.create_task(note())

    def _remember(self, key: bytes, token: access_tokens.Token | None, until: float) -> None:
        self._cache.pop(key, None)
        if token is not None:
            self._cache[key] = (token, until)
            while len(self._cache) > REMEMBERED:
                self._cache.popitem(last=False)


def _principal(token: access_tokens.Token) -> Principal:
    return Principal(
        token.id,
        token.tenant,
        token.name,
        LEVELS[token.scope],
        token.projects,
        expires_at=token.expires_at,
        person=token.kind == PERSON,
    )
