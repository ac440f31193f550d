"""At the end of a session: archive it."""

from __future__ import annotations

from contextlib import suppress

from limpet.doors.hooks.context import opened
from limpet.doors.hooks.triage import Hook, Outcome
from limpet.errors import NotFound
from limpet.session.sessions import archive_session


def run(hook: Hook) -> Outcome:
    ctx = opened(hook)
    with suppress(NotFound):  # a session without a write has no entry
        archive_session(ctx, ctx.session)
    return Outcome()
