"""/metrics: the numbers of this process, and what its own tenant keeps. Off unless the server was asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.to_thread
from starlette.responses import Response

from limpet.doors.http import refusals
from limpet.model import FOLD
from limpet.telemetry import TEXT, Metrics

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from limpet.api import Limpet
    from limpet.doors.http.gate import Visit


class Numbers:
    def __init__(self, home: Limpet, metrics: Metrics | None) -> None:
        self._home = home
        self._metrics = metrics

    async def handle(self, request: Request, visit: Visit) -> ASGIApp:
        # The numbers cover the whole server, so other tenants do not get them.
        if self._metrics is None or visit.principal.tenant != self._home.scope.tenant:
            return refusals.no_route(request.scope["path"])
        gauges = await anyio.to_thread.run_sync(self._gauges)
        text = self._metrics.text(gauges, self._home.store.searches())
        return Response(text, headers={**refusals.NO_STORE, "content-type": TEXT})

    def _gauges(self) -> dict[str, tuple[str, int]]:
        scope = self._home.scope
        usage = self._home.store.usage(scope.tenant)
        return {
            "entries": ("Entries that the server's own tenant keeps.", usage.entries),
            "output_bytes": ("Bytes of the outputs it keeps, before compression.", usage.output_bytes),
            "compactions": (
                "Folds in the server's own project.",
                self._home.store.entries.tally(scope, FOLD, "").total,
            ),
        }


def counted(app: ASGIApp, metrics: Metrics) -> ASGIApp:
    """The application, with every answer counted by its status."""

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        async def counted_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                metrics.answered(message["status"])
            await send(message)

        await app(scope, receive, counted_send)

    return run
