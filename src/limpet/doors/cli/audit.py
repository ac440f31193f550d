"""`limpet audit` and `limpet purge`: what should not be kept, and how it goes."""

from __future__ import annotations

import click

from limpet.doors.cli.build import NUMBER, Group, command, pass_state
from limpet.doors.cli.context import State


def add_to(root: Group) -> None:
    _add_audit(root)
    _add_purge(root)


def _add_audit(root: Group) -> None:
    @command(root, "audit", "limpet audit\nlimpet audit --only secret --json")
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


def _add_purge(root: Group) -> None:
    @command(
        root,
        "purge",
        "limpet purge --origin import --since 7d --dry-run\nlimpet purge --origin 'tool/web_*'\nlimpet undo",
        "Look with --dry-run first. With --session only what this session wrote goes.",
        session=True,
    )
    @click.option("--origin", required=True, metavar="WHO", help="agent, person, import, tool, tool/NAME or agent/mcp.")
    @click.option("--since", metavar="WHEN", help="A day (2026-03-02), a time, or an age (12h, 7d, 2w).")
    @click.option("--dry-run", is_flag=True, help="Only say what would go.")
    @click.option("--forever", is_flag=True, help="Out of history too; nothing brings it back.")
    @pass_state
    def purge(state: State, origin: str, since: str | None, dry_run: bool, forever: bool) -> None:
        arguments = {"origin": origin, "since": since, "session": state.session, "dry_run": dry_run, "forever": forever}
        reply = state.call("purge", arguments)
        rows = [(one["kind"], one["id"], one["session"], one["at"]) for one in reply["entries"]]
        state.answer(reply, lambda screen: screen.table(("kind", "id", "session", "at"), rows))
        if not state.json:
            counted = ", ".join(f"{count:,} {name}" for name, count in reply["counts"].items()) or "nothing"
            back = "; `limpet undo` brings entries back" if reply.get("purge") and not forever else ""
            state.notice(f"{counted} {'would go' if dry_run else 'taken out'}{back}.")
            for remark in reply["remarks"]:
                state.notice(remark)
