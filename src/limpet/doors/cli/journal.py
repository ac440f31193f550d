"""`limpet journal recover` without a store: hooks run it at every start and people wait for it."""

from __future__ import annotations

from datetime import UTC, datetime

from limpet.doors.cli import render
from limpet.doors.cli.invocation import Invocation
from limpet.journal.recover import in_project, recovered

LEVELS = (1, 2, 3)


def recover(cli: Invocation, level: int | str | None, query: str | None) -> int:
    if cli.json or isinstance(level, str) or level not in (None, *LEVELS) or not (query or "").isprintable():
        # The operation checks its arguments and renders its reply, which takes a store and longer.
        reply = cli.call("recover_notes", {"level": level, "query": query})
        cli.answer(reply, lambda screen: screen.block(reply["text"]))
        return 0
    journal = in_project(cli.settings.root, cli.settings.bounds.journal)
    render.PlainScreen().block(recovered(journal, level or 1, query or "", datetime.now(UTC)).text)
    return 0
