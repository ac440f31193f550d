"""`limpet journal recover` without click and without a store: hooks run it at every start and people wait for it."""

from __future__ import annotations

from typing import NamedTuple


class Asked(NamedTuple):
    level: int = 1
    query: str = ""


def recognise(words: list[str]) -> Asked | None:
    """The options after `journal recover`, or None when there is anything unusual, which is left to click."""
    level, query, rest = "1", "", list(words)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name not in ("--level", "--query") or not (equals or rest):
            return None
        value = value if equals else rest.pop(0)
        if name == "--level":
            level = value
        else:
            query = value
    return Asked(int(level), query) if level in ("1", "2", "3") and query.isprintable() else None


def run(asked: Asked) -> int:
    """Print what the journal says at this level."""
    from datetime import UTC, datetime

    from limpet import settings
    from limpet.doors.cli import render
    from limpet.journal.recover import Journal, recovered

    chosen = settings.load()
    found = recovered(Journal(chosen.root, chosen.bounds.journal), asked.level, asked.query, datetime.now(UTC))
    render.PlainScreen().block(found.text)
    return 0
