"""`limpet token …`: who may come in to the HTTP server of this store."""

from __future__ import annotations

from typing import Any

import click

from limpet.doors.cli import render
from limpet.doors.cli.build import Group, command, group, pass_state
from limpet.doors.cli.context import BY, State

EXPIRES = "30d"


def add_to(root: Group) -> None:
    noun = group(root, "token", "Tokens for the HTTP server: who may come in, where, and until when.")

    @command(
        noun,
        "create",
        "limpet token create --name alice --scope write --project parser --expires 30d\n"
        "limpet token create --name ci --scope read --project '*' --expires never",
        "Make a token for the project and print it. It is shown this once; only a hash of it is kept. "
        "--project '*' is every project of the tenant.",
    )
    @click.option("--name", required=True, metavar="NAME", help="Who it is for; the history of every change shows it.")
    @click.option("--scope", required=True, metavar="SCOPE", help="read, write, or admin, each with what is before it.")
    @click.option(
        "--also", multiple=True, metavar="PROJECT", help="Another project it is for, beside that of --project."
    )
    @click.option("--tenant", metavar="NAME", help="Whose projects these are. [default: the tenant of the settings]")
    @click.option("--expires", default=EXPIRES, metavar="TIME", help=f"12h, 30d, 8w or never. [default: {EXPIRES}]")
    @pass_state
    def create(state: State, name: str, scope: str, also: tuple[str, ...], tenant: str | None, expires: str) -> None:
        from limpet.upkeep import access_tokens  # late, as everything that only one command needs

        now = state.hold.clock()
        projects = (state.settings.project, *also)
        asked = access_tokens.wanted(name, tenant or state.settings.tenant, scope, projects, expires, now)
        made = access_tokens.create(state.hold.store, asked, by=BY, now=now)
        reply = {**access_tokens.shown(made.token, now), "token": made.secret}
        state.answer(reply, lambda screen: _explain(screen, reply))

    _add_looking(noun)


def _add_looking(noun: Group) -> None:
    @command(noun, "list", "limpet token list", "The tokens there are, and when each was last used, to the hour.")
    @click.option("--tenant", metavar="NAME", help="Only those of this tenant. [default: all]")
    @pass_state
    def list_(state: State, tenant: str | None) -> None:
        from limpet.upkeep import access_tokens

        now = state.hold.clock()
        found = [access_tokens.shown(token, now) for token in access_tokens.listed(state.hold.store, tenant)]
        columns = ("id", "name", "tenant", "scope", "projects", "state", "expires", "last used")
        rows = [
            (
                *(one["id"], one["name"], one["tenant"], one["scope"], ", ".join(one["projects"]), one["state"]),
                *(one["expires_at"] or "never", one["used_at"] or "never"),
            )
            for one in found
        ]
        state.answer({"tokens": found}, lambda screen: screen.table(columns, rows))

    @command(noun, "revoke", "limpet token revoke 3f9a1c2b77e0", "Close a token for good; servers notice in a second.")
    @click.argument("id")
    @pass_state
    def revoke(state: State, id: str) -> None:
        from limpet.upkeep import access_tokens

        now = state.hold.clock()
        reply = access_tokens.shown(access_tokens.revoke(state.hold.store, id, tenant=None, by=BY, now=now), now)
        state.answer(reply, lambda screen: screen.line(f"{reply['id']} ({reply['name']}) is revoked"))

    @command(noun, "history", "limpet token history", "Who made and revoked tokens, and when; newest first.")
    @click.option("--tenant", metavar="NAME", help="Only those of this tenant. [default: all]")
    @pass_state
    def history(state: State, tenant: str | None) -> None:
        from limpet.upkeep import access_tokens

        rows = [access_tokens.told(event) for event in access_tokens.history(state.hold.store, tenant)]
        columns = ("at", "by", "operation", "id", "name", "tenant")
        state.answer({"events": rows}, lambda screen: screen.table(columns, [tuple(row.values()) for row in rows]))


def _explain(screen: render.Screen, reply: dict[str, Any]) -> None:
    screen.line(reply["token"], "bold")
    until = f"until {reply['expires_at']}" if reply["expires_at"] else "without an end"
    screen.line(f"{reply['name']} may {reply['scope']} in {', '.join(reply['projects'])} {until}")
    screen.line("This is the only time it is shown. `limpet serve --team` lets it in.", "yellow")
