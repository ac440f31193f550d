"""Limpet as `limpet wrap` and `limpet gateway` use it: what is kept, read back and put in place of references.

The store is opened when something is first kept or read: a server that never says much never pays for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from limpet import errors
from limpet.doors.proxy import rewrite as rules
from limpet.outputs.policy import least, policy
from limpet.protocol.jsonrpc import Json

if TYPE_CHECKING:
    from limpet.api import Limpet, Session
    from limpet.settings import Settings
    from limpet.upkeep.tool_pins import Seal

BY = "agent/wrap"  # who kept something, in the history


class Outputs:
    """Limpet as the wrapper uses it. The store is opened when something is first kept or read."""

    def __init__(self, settings: Callable[[], Settings], session: str | None, *, strict: bool = False) -> None:
        from limpet.settings import OutputRules

        self.strict = strict
        self.least = OutputRules().threshold_bytes
        self._session_id = session
        self._lock = threading.Lock()
        self._open: tuple[Limpet, Session] | None = None
        self._problem: errors.LimpetError | None = None
        self._tools: list[Json] | None = None
        try:
            self._settings = settings()
            self.strict = strict or self._settings.strict
            self.least = least(self._settings.bounds.outputs)
        except errors.LimpetError as problem:
            # The upstream works without us. What is wrong is said whenever something would have been kept.
            self._problem = problem

    def _session(self) -> Session:
        from limpet import wiring  # late: an upstream that never says much never pays for it

        with self._lock:
            if self._problem is not None:
                raise self._problem
            if self._open is None:
                hold = wiring.open_with(self._settings, session=self._session_id)
                self._open = hold, hold.session(by=BY)
            return self._open[1]

    def tools(self) -> Sequence[Json]:
        from limpet.catalogue.table import find  # late: the upstream is started first

        if self._tools is None:
            found = [find(name) for name in rules.READ_TOOLS]
            self._tools = [
                {
                    "name": operation.name,
                    "description": operation.description(),
                    "inputSchema": operation.input_schema(),
                    "annotations": operation.annotations(),
                }
                for operation in found
            ]
        return self._tools

    def see(self, server: str, tools: Mapping[str, Json], complete: bool) -> tuple[Seal, ...]:
        return self._session().hold.see_tools(server, tools, complete=complete)

    def threshold(self, tool: str, free: int | None) -> int | None:
        if self._problem is not None:
            raise self._problem
        return policy(self._settings.bounds.outputs, tool, free).threshold

    def keep(self, tool: str, content: str, call: str, free: int | None) -> str:
        return self._session().outputs.keep(tool, content, call=call, free_tokens=free).text

    def expand(self, uri: str) -> str:
        return self._session().outputs.expand(uri)

    def read(self, tool: str, arguments: Mapping[str, Any]) -> Json:
        session = self._session()
        return session.hold.call(tool, arguments, session=session.id, by=BY)

    def close(self) -> None:
        if self._open is not None:
            with suppress(errors.LimpetError):
                self._open[0].close()
