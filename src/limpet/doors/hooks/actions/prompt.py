"""Before a prompt: see whether a compaction removed the context, or somebody else changed the notepad."""

from __future__ import annotations

from limpet.doors.hooks.context import opened
from limpet.doors.hooks.triage import Hook, Outcome
from limpet.session import hook_state


def run(hook: Hook) -> Outcome:
    ctx = opened(hook)
    if hook_state.take(ctx):
        return Outcome(next_action="restore")
    return Outcome(next_action="" if hook_state.unseen_notepad(ctx) is None else "show_notepad")
