"""For agents that do not give a server the session: add it to the arguments of a call of Limpet's own tools."""

from __future__ import annotations

import json

from limpet.catalogue.table import find
from limpet.clients.base import HookAnswer
from limpet.doors.hooks.triage import OWN_PREFIX, Hook, Outcome
from limpet.errors import LimpetError


def run(hook: Hook) -> Outcome:
    event = hook.event
    arguments = json.loads(event.arguments or "{}")
    try:
        operation = find(event.tool.rpartition(OWN_PREFIX)[2])
    except LimpetError:
        return Outcome()  # another server's tool
    if not operation.in_session or arguments.get("session_id"):
        return Outcome()
    return Outcome(HookAnswer(arguments={**arguments, "session_id": event.session}))
