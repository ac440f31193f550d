"""Opening the store for a hook, once."""

from __future__ import annotations

import time

from limpet import limits, wiring
from limpet.catalogue.check import a_name
from limpet.catalogue.operation import Context
from limpet.clients import session_id
from limpet.doors.hooks.triage import Hook
from limpet.model import Scope

BY = "agent/hook"
LOCK_SHARE = 0.8  # of the time limit of a hook


def opened(hook: Hook) -> Context:
    if hook.context is None:
        chosen = hook.settings
        session = hook.event.session or chosen.session or session_id() or "hooks"
        hook.context = Context(
            # A little less than the hook's own limit, so that it can say what it waited for.
            wiring.choose_store(chosen.store, lock_wait=LOCK_SHARE * chosen.bounds.hooks.seconds),
            Scope(chosen.tenant, chosen.project),
            a_name("session_id", session, limits.SESSION_MAX_CHARS),
            BY,
            time.time_ns() // 1_000_000,
            chosen.bounds,
            chosen.skills,
            chosen.root,
        )
    return hook.context
