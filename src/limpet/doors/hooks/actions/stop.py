"""After a turn: see whether the session needs a draft of a handoff. Agents do not announce every end of a session."""

from __future__ import annotations

from limpet.doors.hooks.context import opened
from limpet.doors.hooks.triage import Hook, Outcome, end_action
from limpet.session import hook_state


def run(hook: Hook) -> Outcome:
    needed = not hook.store_exists() or hook_state.can_draft(opened(hook))
    return Outcome(next_action="draft" if needed else end_action(hook))
