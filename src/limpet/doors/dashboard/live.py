"""Server-sent events: tells an open page that something in its project changed. The page then reloads itself.

One small message a change, nothing of what changed: what may be seen is decided where pages are made. A stream ends
when whoever opened it is not let in any more, when the server stops, and after some minutes anyway; browsers open it
again by themselves.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from starlette.responses import Response, StreamingResponse

from limpet import limits
from limpet.doors.dashboard.frame import HEADERS
from limpet.errors import LimpetError
from limpet.upkeep import paging

if TYPE_CHECKING:
    from limpet.catalogue.operation import Context
    from limpet.doors.http.principal import Principal

RETRY_MS = 3_000  # after which a browser opens the stream again
ALIVE_SECONDS = 15  # a comment so often keeps proxies from closing a stream in which nothing happens


class Live:
    def __init__(self, stopping: Callable[[], bool]) -> None:
        self._stopping = stopping
        self._open: dict[str, int] = {}  # streams of each principal

    def stream(
        self,
        context: Callable[[], Context],
        principal: Principal,
        who: Callable[[], Awaitable[Principal | None]],
        *,
        seconds: int = limits.LIVE_STREAM_SECONDS,
    ) -> Response:
        """`who` says who the visitor is now; the stream ends when that changes.

        With `seconds=0` it tells how things are now, and ends.
        """
        if sum(self._open.values()) >= limits.LIVE_STREAMS or self._open.get(principal.id, 0) >= limits.LIVE_EACH:
            # 204 tells browsers not to ask again: the page stays as it is until it is reloaded.
            return Response(status_code=204, headers=dict(HEADERS))
        kind = "text/event-stream; charset=utf-8"
        return StreamingResponse(
            self._events(context, principal, who, seconds), headers={**HEADERS, "content-type": kind}
        )

    async def _events(
        self,
        context: Callable[[], Context],
        principal: Principal,
        who: Callable[[], Awaitable[Principal | None]],
        seconds: int,
    ) -> AsyncIterator[bytes]:
        self._open[principal.id] = self._open.get(principal.id, 0) + 1
        try:
            yield f"retry: {RETRY_MS}\n\n".encode()
            last_number, until, spoke = "", time.monotonic() + seconds, time.monotonic()
            while not (last_number and time.monotonic() >= until) and not self._stopping():
                if await who() != principal:
                    yield b"event: over\ndata: signed out\n\n"
                    return
                try:
                    number = await anyio.to_thread.run_sync(lambda: paging.change_number(context()))
                except LimpetError:
                    return  # the browser comes back, and perhaps the store has too
                if number != last_number:
                    yield f"event: {'change' if last_number else 'now'}\ndata: {number}\n\n".encode()
                    last_number, spoke = number, time.monotonic()
                elif time.monotonic() - spoke > ALIVE_SECONDS:
                    yield b": still here\n\n"
                    spoke = time.monotonic()
                if seconds:
                    await anyio.sleep(limits.LIVE_POLL_SECONDS)
        finally:
            if left := self._open.pop(principal.id) - 1:
                self._open[principal.id] = left
