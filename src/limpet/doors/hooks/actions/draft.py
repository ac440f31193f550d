"""Draft a handoff for a session that did some work and wrote none."""

from __future__ import annotations

from limpet.doors.hooks import summary
from limpet.doors.hooks.context import opened
from limpet.doors.hooks.triage import Hook, Outcome, end_action
from limpet.session import hook_state


def run(hook: Hook) -> Outcome:
    ctx = opened(hook)
    text, source = summary.draft(ctx, hook.event.transcript)
    if text:
        hook_state.draft_handoff(ctx, text, source)
    return Outcome(next_action=end_action(hook))
