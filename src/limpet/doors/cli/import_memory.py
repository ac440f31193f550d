"""`limpet import server-memory` and its like: what another memory tool kept is taken into this project's memory."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from limpet import limits
from limpet.doors.cli import render
from limpet.doors.cli.context import State
from limpet.doors.cli.transfer import PROGRESS_AFTER_SECONDS, PROGRESS_EVERY_SECONDS
from limpet.importers import memories, reading

BY = "import/peer"


def run(state: State, tool: str, source: str, *, dry_run: bool) -> None:
    found = reading.read(reading.READERS[tool], source)
    done = memories.add_facts(state.hold.context(by=BY), found.facts, dry_run=dry_run, told=_teller())
    reply: dict[str, Any] = {
        "tool": tool,
        "source": os.path.abspath(source),
        "project": state.hold.scope.project,
        "dry_run": dry_run,
        **done._asdict(),
        "kept": list(done.kept[: limits.UNREAD_NAMED]),
        "kept_count": len(done.kept),
        "unread": [one._asdict() for one in found.unread[: limits.UNREAD_NAMED]],
        "unread_count": len(found.unread),
    }
    state.answer(reply, lambda screen: _draw(screen, reply))


def _draw(screen: render.Screen, reply: dict[str, Any]) -> None:
    would = "would be " if reply["dry_run"] else ""
    screen.line(
        f"{reply['source']}: {reply['added']:,} {would}added to the memory of project {reply['project']}, "
        f"{reply['updated']:,} {would}brought up to date, {reply['known']:,} were there already"
    )
    for key in reply["kept"]:
        screen.line(f"  {key} stays as it is: it was changed here")
    _more(screen, reply["kept_count"] - len(reply["kept"]))
    for one in reply["unread"]:
        screen.line(f"  {one['part']} was not read: {one['why']}")
    _more(screen, reply["unread_count"] - len(reply["unread"]))


def _more(screen: render.Screen, count: int) -> None:
    if count > 0:
        screen.line(f"  and {count:,} more")


def _teller() -> Callable[[int, int], None]:
    """Says how far it is, on a terminal and when it takes long."""
    began = shown = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if sys.stderr.isatty() and now - began > PROGRESS_AFTER_SECONDS and now - shown > PROGRESS_EVERY_SECONDS:
            shown = now
            end = "\n" if done >= total else ""
            sys.stderr.write(f"\r{done:,} of {total:,} kept{end}")
            sys.stderr.flush()

    return tell
