"""Limpet in `limpet wrap` and `limpet gateway`: it keeps results, reads them back, expands references, pins tools.

The store is opened when a result is first kept or read, so a server whose results are small does not pay for it. Every
method may raise; the original message then goes through.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from limpet import errors
from limpet.doors.proxy.rewrite import READ_TOOLS
from limpet.outputs.policy import Policy, least, policy
from limpet.protocol.jsonrpc import Json
from limpet.settings import OutputRules

if TYPE_CHECKING:
    from limpet.api import Limpet, Session
    from limpet.settings import Settings
    from limpet.upkeep.tool_pins import ToolPin

BY = "agent/wrap"  # the author of what is kept, in the history


class Backend:
    def __init__(
        self,
        settings: Callable[[], Settings],
        session: str | None,
        *,
        strict: bool = False,
        keep_schemas: bool = False,
    ) -> None:
        self.strict = strict
        self.keep_schemas = keep_schemas  # tools with an output schema are left alone
        self.least = OutputRules().threshold_bytes  # smaller results pass, unless a call says how much is free
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
            # The upstream works without Limpet. The problem is reported whenever a result would have been kept.
            self._problem = problem

    def tools(self) -> Sequence[Json]:
        """The definitions of the tools that read what is kept."""
        if self._tools is None:
            table = import_module("limpet.catalogue.table")  # late: the upstream is started first
            self._tools = [
                {
                    "name": operation.name,
                    "description": operation.description(),
                    "inputSchema": operation.input_schema(),
                    "annotations": operation.annotations(),
                }
                for operation in map(table.find, READ_TOOLS)
            ]
        return self._tools

    def see_tools(self, server: str, tools: Mapping[str, Json], complete: bool) -> tuple[ToolPin, ...]:
        return self._session().hold.see_tools(server, tools, complete=complete)

    def policy(self, tool: str, free_tokens: int | None) -> Policy:
        """What is kept of a tool's results."""
        if self._problem is not None:
            raise self._problem
        rules = self._settings.bounds.outputs
        decided = policy(rules, tool, free_tokens)
        return decided if rules.enabled else decided._replace(threshold=None)

    def keep(self, tool: str, content: str, call: str, *, redact: bool, reader: str) -> str:
        """Store a big result; the text that takes its place. `reader` is the name of the tool that reads it."""
        ctx = self._session().ctx()
        keep_big = import_module("limpet.outputs.keep").keep_big  # late, as the store
        return str(keep_big(ctx, tool, content, call, redact=redact, reader=reader).text)

    def expand(self, uri: str) -> str:
        return self._session().outputs.expand(uri)

    def read(self, tool: str, arguments: Mapping[str, Any]) -> str:
        session = self._session()
        table = import_module("limpet.catalogue.table")
        operation = table.find(tool)
        return str(session.hold.answer(operation, table.as_meant(operation, arguments), session.id, BY))

    def close(self) -> None:
        if self._open is not None:
            with suppress(errors.LimpetError):
                self._open[0].close()

    def _session(self) -> Session:
        with self._lock:
            if self._problem is not None:
                raise self._problem
            if self._open is None:
                wiring = import_module("limpet.wiring")  # late: see above
                hold: Limpet = wiring.open_with(self._settings, session=self._session_id)
                self._open = hold, hold.session(by=BY)
            return self._open[1]
