"""For agents that announce no compaction: give the context back with the next result of a tool."""

from __future__ import annotations

from limpet.doors.hooks.context import opened
from limpet.doors.hooks.triage import Hook, Outcome, keep_action
from limpet.session import hook_state


def run(hook: Hook) -> Outcome:
    return Outcome(next_action="restore" if hook_state.take(opened(hook)) else keep_action(hook))
