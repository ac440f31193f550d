"""Show the model the notepad after somebody else changed it."""

from __future__ import annotations

from limpet import limits
from limpet.clients.base import HookAnswer
from limpet.doors.hooks.context import opened
from limpet.doors.hooks.fitting import Section, fitted, measure_of
from limpet.doors.hooks.triage import Hook, Outcome
from limpet.session import hook_state, notepad


def run(hook: Hook) -> Outcome:
    ctx = opened(hook)
    pad = notepad.read_notepad(ctx)
    text = f"The notepad was changed by somebody else.\n\n{notepad.section(pad)}"
    section = Section(text, 9_000, "read_notepad gives all of it")
    answer = fitted([section], limits.HOOK_CONTEXT_CHARS, measure_of(hook.event.client))
    return Outcome(HookAnswer(answer), lambda: hook_state.mark_shown(ctx, pad.version))
