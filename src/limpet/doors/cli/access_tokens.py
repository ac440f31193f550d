"""`limpet token …`: access tokens of the HTTP server of this store."""

from __future__ import annotations

from typing import Any

from limpet.doors.cli.invocation import BY, Invocation
from limpet.doors.cli.render import Screen
from limpet.upkeep import access_tokens


def create(cli: Invocation, name: str, scope: str, also: tuple[str, ...], tenant: str | None, expires: str) -> None:
    now = cli.hold.clock()
    projects = (cli.settings.project, *also)
    request = access_tokens.token_request(name, tenant or cli.settings.tenant, scope, projects, expires, now)
    created = access_tokens.create(cli.hold.store, request, by=BY, now=now)
    reply = {**access_tokens.token_json(created.token, now), "token": created.secret}
    cli.answer(reply, lambda screen: _explain(screen, reply))


def list_tokens(cli: Invocation, tenant: str | None) -> None:
    now = cli.hold.clock()
    tokens = [access_tokens.token_json(token, now) for token in access_tokens.listed(cli.hold.store, tenant)]
    columns = ("id", "name", "tenant", "scope", "projects", "state", "expires", "last used")
    rows = [
        (
            *(token["id"], token["name"], token["tenant"], token["scope"], ", ".join(token["projects"])),
            *(token["state"], token["expires_at"] or "never", token["used_at"] or "never"),
        )
        for token in tokens
    ]
    cli.answer({"tokens": tokens}, lambda screen: screen.table(columns, rows))


def revoke(cli: Invocation, id: str) -> None:
    now = cli.hold.clock()
    reply = access_tokens.token_json(access_tokens.revoke(cli.hold.store, id, tenant=None, by=BY, now=now), now)
    cli.answer(reply, lambda screen: screen.line(f"{reply['id']} ({reply['name']}) is revoked"))


def history(cli: Invocation, tenant: str | None) -> None:
    rows = [access_tokens.change_json(event) for event in access_tokens.history(cli.hold.store, tenant)]
    columns = ("at", "by", "operation", "id", "name", "tenant")
    cli.answer({"events": rows}, lambda screen: screen.table(columns, [tuple(row.values()) for row in rows]))


def _explain(screen: Screen, reply: dict[str, Any]) -> None:
    screen.line(reply["token"], "bold")
    until = f"until {reply['expires_at']}" if reply["expires_at"] else "without an end"
    screen.line(f"{reply['name']} may {reply['scope']} in {', '.join(reply['projects'])} {until}")
    screen.line("This is the only time it is shown. `limpet serve --team` lets it in.", "yellow")
