"""Keep a big result: the model gets a preview and a reference in its place."""

from __future__ import annotations

from limpet.clients.base import HookAnswer
from limpet.doors.hooks.context import opened
from limpet.doors.hooks.triage import Hook, Outcome
from limpet.outputs.keep import keep_output


def run(hook: Hook) -> Outcome:
    event = hook.event
    kept = keep_output(opened(hook), event.tool or "tool", event.result or "", event.arguments)
    return Outcome() if kept.output is None else Outcome(HookAnswer(output=kept.text))
