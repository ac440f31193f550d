"""Before a compaction: keep a summary of the conversation, and note that the context has to be given back."""

from __future__ import annotations

from limpet.doors.hooks import summary
from limpet.doors.hooks.context import opened
from limpet.doors.hooks.triage import Hook, Outcome
from limpet.session import hook_state


def run(hook: Hook) -> Outcome:
    text, source = summary.checkpoint(hook.event.transcript)
    if text or hook.store_exists():
        hook_state.before_compact(opened(hook), text, source)
    return Outcome()
