"""`holdfast audit` and `holdfast purge`: what should not be kept, and how it goes."""

from __future__ import annotations

import click

from holdfast.doors.cli.build import NUMBER, Group, command, pass_state
from holdfast.doors.cli.state import State


def add_to(root: Group) -> None:
    _add_audit(root)


def _add_audit(root: Group) -> None:
    @command(root, "audit", "holdfast audit\nholdfast audit --only secret --json")
    @click.option("--only", multiple=True, metavar="WHAT", help="secret, duplicate, unread or stale; may be repeated.")
    @click.option(
        "--stale-days", type=NUMBER, metavar="N", help="Unchanged for so many days is stale; 90 unless given."
    )
    @click.option("--limit", type=NUMBER, metavar="N", help="At most so many of each.")
    @pass_state
    def audit(state: State, only: tuple[str, ...], stale_days: int | None, limit: int | None) -> None:
        reply = state.call("audit", {"only": list(only) or None, "stale_days": stale_days, "limit": limit})
        rows = [(one["finding"], one["kind"], one["id"], one["reason"]) for one in reply["findings"]]
        state.answer(reply, lambda screen: screen.table(("finding", "kind", "id", "reason"), rows))
        if not state.json:
            counted = ", ".join(f"{name} {count:,}" for name, count in reply["counts"].items())
            state.notice(f"{counted}; looked at {reply['looked_at']['entries']:,} entries. {reply['not_known']}")
            for skipped in reply.get("skipped", ()):
                state.notice(f"{skipped}.")
