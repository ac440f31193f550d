"""`limpet init`, `install`, `uninstall`, `status`, `on` and `off`: give Limpet to coding agents, or take it away."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from typing import Any

from limpet import clients, errors, settings
from limpet.clients import install as installer
from limpet.clients.base import CodingAgent
from limpet.clients.edits import InstallTarget, has_hooks
from limpet.doors.cli import glance
from limpet.doors.cli.commands import Misuse
from limpet.doors.cli.render import Screen, exists, shown_place
from limpet.doors.cli.run import Invocation
from limpet.home.folders import OFF
from limpet.home.lasting import warnings
from limpet.home.place import locate

Json = dict[str, Any]
TWICE = (
    "Claude Code has Limpet twice, installed and as a plugin. The plugin's hooks stay quiet, but the tools may be "
    "listed twice: remove one, with `limpet uninstall claude-code` or `claude plugin uninstall limpet@limpet`."
)


def _start() -> tuple[str, ...]:
    """How a client starts us."""
    return ("limpet",) if shutil.which("limpet") else (sys.executable, "-m", "limpet")


# --- init -------------------------------------------------------------------------------------------------------------


def init(cli: Invocation, folder: str | None) -> None:
    if folder is not None:
        if cli.store:
            raise Misuse("--store and a folder cannot both be given.")
        if not os.path.isdir(folder):
            raise errors.bad_name("folder", folder, "there is no such folder")
        os.chdir(folder)
    existed = exists(cli.settings.store)
    cli.hold.store.create()
    start = [*_start(), "mcp"]
    reply = {
        "store": shown_place(cli.hold.store.place),
        "project": cli.settings.name if cli.settings.own_store else cli.settings.project,
        "folder": cli.settings.root,
        "made": not existed,
        "mcp": start,
    }
    cli.answer(reply, lambda screen: _explain(screen, reply, start))


def _explain(screen: Screen, reply: Json, start: list[str]) -> None:
    screen.line(f"{reply['store']} {'is ready' if reply['made'] else 'was there already'}", "bold")
    screen.line(f"It is the memory of {reply['folder']}.")
    screen.line("")
    screen.line("Next, give it to an agent. In the project's MCP configuration (.mcp.json or the like):")
    screen.line(f"  {json.dumps(_entry(start), ensure_ascii=False)}")
    screen.line("or, for Claude Code:")
    screen.line(f"  claude mcp add limpet -- {' '.join(start)}")
    screen.line("A client that does not start in the project needs to be told where it is:")
    screen.line(f"  {json.dumps(_entry(start, {'LIMPET_FOLDER': reply['folder']}), ensure_ascii=False)}")
    screen.line("")
    screen.line("`limpet context` shows what a new session begins with, `limpet doctor` whether all is well.")


def _entry(start: list[str], env: dict[str, str] | None = None) -> Json:
    return {"mcpServers": {"limpet": {"command": start[0], "args": start[1:], **({"env": env} if env else {})}}}


# --- install, uninstall and status ------------------------------------------------------------------------------------


def install(cli: Invocation, client: str | None, user: bool | None, dry_run: bool, guidance: bool, skill: bool) -> None:
    options = {"guidance": guidance, "skill": skill}
    if client is None:
        status(cli)
    elif client == "generic":
        entry = _entry([*_start(), "mcp"])
        cli.answer(entry, lambda screen: screen.block(json.dumps(entry, indent=2)))
    else:
        _change(cli, client, bool(user), dry_run, tuple(name for name, on in options.items() if on), takes_out=False)


def uninstall(cli: Invocation, client: str, user: bool | None, dry_run: bool) -> None:
    _change(cli, client, bool(user), dry_run, (), takes_out=True)


def _places(user: bool) -> tuple[str, str]:
    """The scope and its folder."""
    if user:
        return "user", os.path.expanduser("~")
    return "project", locate(os.getcwd(), settings.paths(settings.process_environment()).shared).root


def _change(
    cli: Invocation, name: str, user: bool, dry_run: bool, options: tuple[str, ...], *, takes_out: bool
) -> None:
    if name not in clients.names():
        raise errors.unknown_client(name, [*clients.names(), "generic"])
    client = clients.find(name)
    data = settings.data_folder()
    target = InstallTarget(*_places(user), _start())
    if not takes_out and installer.plugin_enabled(client, _places(False)[1], _places(True)[1]):
        raise errors.plugin_installed(client.title)
    if takes_out:
        changes = installer.plan_uninstall(client, target, data)
    else:
        changes = installer.plan_install(client, target, options)
    if takes_out and not dry_run:
        installer.apply_uninstall(changes, data, target.root)
    elif not dry_run:
        installer.apply_install(changes, data)
    files = [{"path": change.path, "changed": change.needed} for change in changes]
    reply: Json = {"client": name, "scope": target.scope, "dry_run": dry_run, "files": files}

    def draw(screen: Screen) -> None:
        for change in changes:
            if dry_run:
                screen.block(installer.rendered(change) or f"{change.path}: nothing to change")
            else:
                screen.line(f"{change.path}: {'written' if change.needed else 'nothing to change'}")
        if not takes_out and client.advice:
            screen.line(client.advice)

    cli.answer(reply, draw)


def status(cli: Invocation) -> None:
    statuses = [_client_status(client) for client in clients.every()]
    if any(row.get("twice") for row in statuses):
        cli.notice(TWICE)
    rows = [
        (row["client"], *(_word(row[name]) for name in ("used_here", "project", "user")), _extras(row))
        for row in statuses
    ]
    titles = ("client", "used here", "project", "user", "beside")
    chosen = cli.settings
    remarks = [*chosen.remarks, *warnings(chosen)]
    name = chosen.name if chosen.own_store else chosen.project
    project = {"name": name, "folder": chosen.root, "store": shown_place(chosen.store), "exists": exists(chosen.store)}
    seen = glance.of_project(cli)

    def draw(screen: Screen) -> None:
        screen.line(f"{name}, in {chosen.root}: {project['store'] if project['exists'] else 'nothing is kept yet'}")
        for remark in remarks:
            screen.line(remark)
        for line in glance.lines(seen):
            screen.line(line)
        screen.table(titles, rows)

    cli.answer({"project": project, "remarks": remarks, **seen, "clients": statuses}, draw)


def _client_status(client: CodingAgent) -> Json:
    row: Json = {"client": client.name, "title": client.title}
    row["used_here"] = os.path.isdir(os.path.join(os.path.expanduser("~"), client.home_folder))
    for user in (False, True):
        target = InstallTarget(*_places(user), _start())
        try:
            row[target.scope] = installer.is_installed(client, target)
        except errors.BadInput as problem:
            row[target.scope] = problem.message
        for extra in installer.installed_extras(client, target):
            row.setdefault(extra, []).append(target.scope)
    folders = _places(False)[1], _places(True)[1]
    if client.plugin_settings(*folders):
        row["plugin"] = installer.plugin_enabled(client, *folders)
        row["twice"] = row["plugin"] and has_hooks(client, *folders)
    return row


def _extras(row: Json) -> str:
    scopes = [f"{name} ({', '.join(row[name])})" for name in ("guidance", "skill") if name in row]
    return ", ".join([*scopes, *(["plugin"] if row.get("plugin") else [])])


def _word(value: bool | str) -> str:
    return value if isinstance(value, str) else "yes" if value else "no"


# --- hooks ------------------------------------------------------------------------------------------------------------


def switch_off(cli: Invocation) -> None:
    _switch(cli, on=False)


def switch_on(cli: Invocation) -> None:
    _switch(cli, on=True)


def _switch(cli: Invocation, *, on: bool) -> None:
    data = cli.settings.data
    if data is not None and not (on and data.path is None):
        path = os.path.join(data.make(), OFF)
        try:
            if on:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
            else:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        except OSError as problem:
            raise errors.bad_config_file(path, problem.strerror or str(problem)) from None
    word = "on" if on else "off"
    cli.answer({"hooks": word}, lambda screen: screen.line(f"The hooks of coding agents are {word} in this project."))
