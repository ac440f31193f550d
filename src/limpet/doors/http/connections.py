"""Connections of the server: how many there are, and how long one may take to send a request or to read its answer.

uvicorn bounds how long an idle connection stays, and nothing else. Here the head of a request has to come within some
seconds, its body has to go on coming, and an answer has to be read. When all places are taken, a new connection takes
the place of the one whose request has been incomplete for longest; if there is none, it is refused. So a client without
a credential can neither keep others out nor use up the descriptors of the process.
"""

from __future__ import annotations

import asyncio
import resource
from collections import OrderedDict
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0  # from the first moment to the end of the head: a slow line needs one
BODY_SECONDS = 10.0  # without a byte of the body
BODY_MOST_SECONDS = 120.0  # for the whole body: 16 MiB at 140 kB a second
READ_SECONDS = 60.0  # without the client taking any of an answer that is longer than the buffers
CONNECTIONS_MAX = 4_096  # of one process; each costs some 50 kB
CONNECTIONS_MIN = 16  # even where descriptors are few
OTHER_DESCRIPTORS = 128  # left for the store, its replies, files and threads
ACCEPTED_AT_ONCE = 64  # connections accepted before the first of them is looked at

_REFUSED = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\nRetry-After: 5\r\n"
    b"Content-Length: %d\r\n\r\n%s"
)
_BODY = b'{"error":"too_many_connections","message":"this server has as many connections as it can. Call again later."}'


def connections_max() -> int:
    """As many as the descriptors of this process allow."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return max(CONNECTIONS_MIN, min(CONNECTIONS_MAX, soft - OTHER_DESCRIPTORS - ACCEPTED_AT_ONCE))


class BoundedProtocol(H11Protocol):
    """A connection with bounds."""

    most = CONNECTIONS_MAX  # set by `bounded`
    incomplete: OrderedDict[BoundedProtocol, None]  # those that have not sent a whole request, oldest first

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None  # for what the client sends
        self._body_until = 0.0
        self._reading: asyncio.TimerHandle | None = None  # for what it reads

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most and not self._make_room():
            transport.write(_REFUSED % (len(_BODY), _BODY))
            transport.close()
            return
        self._expect_head()

    def _make_room(self) -> bool:
        if not self.incomplete:
            return False
        self.incomplete.popitem(last=False)[0].transport.abort()
        return True

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if self.conn.their_state is h11.IDLE:
            self._expect_head()
        else:
            self._look()

    def _expect_head(self) -> None:
        self.incomplete[self] = None
        self._body_until = 0.0
        self._set(HEAD_SECONDS)

    def _look(self) -> None:
        """Set the time for what has to come next."""
        state = self.conn.their_state
        if state is h11.SEND_BODY:
            now = self.loop.time()
            self._body_until = self._body_until or now + BODY_MOST_SECONDS
            self.incomplete.setdefault(self)
            self._set(max(1.0, min(BODY_SECONDS, self._body_until - now)))
        elif state is not h11.IDLE:  # there the time for the head goes on
            self.incomplete.pop(self, None)
            self._set(None)

    def _set(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        if self.conn.their_state is h11.SEND_BODY and self.flow.read_paused:
            self._look()  # the client waits for us to read
        else:
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reading = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def connection_lost(self, exc: Exception | None) -> None:
        self.incomplete.pop(self, None)
        self._set(None)
        if self._reading is not None:
            self._reading.cancel()
        super().connection_lost(exc)


def bounded() -> type[BoundedProtocol]:
    """The protocol for one server."""
    return type("Bounded", (BoundedProtocol,), {"most": connections_max(), "incomplete": OrderedDict()})
