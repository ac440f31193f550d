"""`limpet install`, `uninstall` and `status`: Limpet in the configuration of coding agents."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from limpet import errors, settings
from limpet.doors.cli.build import Group, command, pass_state
from limpet.doors.cli.context import State
from limpet.doors.cli.render import Screen

Json = dict[str, Any]
_SCOPE = click.option(
    "--user/--project-only", "user", default=None, help="In your home folder, or (the default) in this project alone."
)
_TWICE = (
    "Claude Code has Limpet twice, installed and as a plugin. The plugin's hooks stay quiet, but the tools may be "
    "listed twice: remove one, with `limpet uninstall claude-code` or `claude plugin uninstall limpet@limpet`."
)
_DRY = click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")


def add_to(root: Group) -> None:
    @command(
        root,
        "install",
        "limpet install claude-code\nlimpet install codex --user --dry-run\nlimpet install generic",
        "Put Limpet into a coding agent's configuration: its MCP server and its hooks. Everything else in the files "
        "stays as it is, and `limpet uninstall` gives them back as they were. Without a client, it lists them.",
    )
    @click.argument("client", required=False)
    @_SCOPE
    @_DRY
    @click.option("--guidance", is_flag=True, help="Also tell agents how to use it: AGENTS.md, CLAUDE.md or GEMINI.md.")
    @click.option("--skill", is_flag=True, help="Also put a skill (SKILL.md) where the agent looks for skills.")
    @pass_state
    def install(state: State, /, client: str | None, user: bool | None, dry_run: bool, **extras: bool) -> None:
        wanted = tuple(name for name, asked in extras.items() if asked)
        if client is None:
            _status(state)
        elif client == "generic":
            _generic(state)
        else:
            _change(state, client, bool(user), dry_run, wanted, takes_out=False)

    @command(
        root,
        "uninstall",
        "limpet uninstall claude-code",
        "Take Limpet out of a coding agent's configuration. A file nobody changed since is given back byte for byte; "
        "from any other only our own part is removed. Notes and everything else that was kept stay.",
    )
    @click.argument("client")
    @_SCOPE
    @_DRY
    @pass_state
    def uninstall(state: State, client: str, user: bool | None, dry_run: bool) -> None:
        _change(state, client, bool(user), dry_run, (), takes_out=True)

    @command(root, "status", "limpet status", "Show which coding agents have Limpet, here and in your home folder.")
    @pass_state
    def status(state: State) -> None:
        _status(state)


def _start() -> tuple[str, ...]:
    import shutil  # late, like all that only one command needs

    return ("limpet",) if shutil.which("limpet") else (sys.executable, "-m", "limpet")


def _places(user: bool) -> tuple[str, str]:
    """The scope and its folder."""
    if user:
        return "user", os.path.expanduser("~")
    return "project", settings.project_root(os.getcwd()) or os.getcwd()


def _change(state: State, name: str, user: bool, dry_run: bool, wanted: tuple[str, ...], *, takes_out: bool) -> None:
    from limpet.clients import install, plugin
    from limpet.clients.registry import CLIENTS, Where

    if name not in CLIENTS:
        raise errors.unknown_client(name, [*CLIENTS, "generic"])
    client = CLIENTS[name]
    data = settings.data_folder()
    where = Where(*_places(user), _start())
    if name == "claude-code" and not takes_out and plugin.enabled(_places(False)[1], _places(True)[1]):
        raise errors.plugin_installed(client.title)
    changes = install.plan_uninstall(client, where, data) if takes_out else install.plan_install(client, where, wanted)
    if not dry_run:
        (install.apply_uninstall if takes_out else install.apply_install)(changes, data)
    files = [{"path": change.path, "changed": change.needed} for change in changes]
    reply: Json = {"client": name, "scope": where.scope, "dry_run": dry_run, "files": files}

    def draw(screen: Screen) -> None:
        for change in changes:
            if dry_run:
                screen.block(install.shown(change) or f"{change.path}: nothing to change")
            else:
                screen.line(f"{change.path}: {'written' if change.needed else 'nothing to change'}")
        if not takes_out and client.advice:
            screen.line(client.advice)

    state.answer(reply, draw)


def _status(state: State) -> None:
    from limpet.clients import extras, install, plugin
    from limpet.clients.registry import CLIENTS, Where

    found = []
    for client in CLIENTS.values():
        row: Json = {"client": client.name, "title": client.title}
        row["used_here"] = os.path.isdir(os.path.join(os.path.expanduser("~"), client.mark))
        for user in (False, True):
            where = Where(*_places(user), _start())
            try:
                row[where.scope] = install.installed(client, where)
            except errors.BadInput as problem:
                row[where.scope] = problem.message
            for name in extras.present(client.name, where):
                row.setdefault(name, []).append(where.scope)
        if client.name == "claude-code":
            row["plugin"] = plugin.enabled(_places(False)[1], _places(True)[1])
            row["twice"] = row["plugin"] and plugin.hooks_beside(client.name, _places(False)[1], _places(True)[1])
        found.append(row)
    for row in found:
        if row.get("twice"):
            state.notice(_TWICE)
    rows = [
        (row["client"], *(_word(row[name]) for name in ("used_here", "project", "user")), _more(row)) for row in found
    ]
    titles = ("client", "used here", "project", "user", "beside")
    state.answer({"clients": found}, lambda screen: screen.table(titles, rows))


def _more(row: Json) -> str:
    extra = [f"{name} ({', '.join(row[name])})" for name in ("guidance", "skill") if name in row]
    return ", ".join([*extra, *(["plugin"] if row.get("plugin") else [])])


def _word(value: bool | str) -> str:
    return value if isinstance(value, str) else "yes" if value else "no"


def _generic(state: State) -> None:
    start = _start()
    entry = {"mcpServers": {"limpet": {"command": start[0], "args": [*start[1:], "mcp"]}}}
    import json

    state.answer(entry, lambda screen: screen.block(json.dumps(entry, indent=2)))
