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
from limpet.clients.edits import InstallTarget, has_hooks, hooks_in
from limpet.clients.install import FileChange
from limpet.doors.cli import glance
from limpet.doors.cli.commands import Misuse
from limpet.doors.cli.projects import alone
from limpet.doors.cli.render import Screen, exists, shown_place
from limpet.doors.cli.run import Invocation
from limpet.home.folders import OFF, Home
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


def install(
    cli: Invocation,
    client: str | None,
    user: bool | None,
    shared: bool,
    dry_run: bool,
    guidance: bool,
    skill: bool,
) -> None:
    options = tuple(name for name, on in {"guidance": guidance, "skill": skill}.items() if on)
    if shared and user:
        raise Misuse("--shared is for a project's files, so --user cannot go with it.")
    if client is None:
        _offer(cli, user, shared, dry_run, options)
    elif client == "generic":
        entry = _entry([*_start(), "mcp"])
        cli.answer(entry, lambda screen: screen.block(json.dumps(entry, indent=2)))
    else:
        _install(cli, _agent(client), user, shared, dry_run, options)


def _agent(name: str) -> CodingAgent:
    if name not in clients.names():
        raise errors.unknown_client(name, [*clients.names(), "generic"])
    return clients.find(name)


def _target(client: CodingAgent, user: bool | None, shared: bool = False) -> InstallTarget:
    """Where to install. An agent without files in projects has it in the home folder, unless that was excluded."""
    home = os.path.expanduser("~")
    if user or (user is None and not shared and "project" not in client.scopes):
        return InstallTarget("user", home, _start(), home)
    if "project" not in client.scopes:
        raise errors.no_project_files(client.title, client.name)
    return InstallTarget("shared" if shared else "project", _project(), _start(), home)


def _project() -> str:
    return locate(os.getcwd(), settings.paths(settings.process_environment()).shared).root


def _install(
    cli: Invocation, client: CodingAgent, user: bool | None, shared: bool, dry_run: bool, options: tuple[str, ...]
) -> None:
    target = _target(client, user, shared)
    if installer.plugin_enabled(client, _project(), target.home):
        raise errors.plugin_installed(client.title)
    second = target._replace(scope="project" if shared else "shared")
    moved = client.local_files and target.scope != "user" and hooks_in(client, second)
    with _alone(dry_run):
        changes = installer.plan_install(client, second if moved else target, options)
        if not dry_run:
            installer.apply_install(changes, settings.data_folder(), target.root)
    words = _words_after(client, target, changes, moved=moved)
    _tell(cli, client, target.scope, dry_run, changes, tuple(map(_done, changes)), words)


def uninstall(cli: Invocation, client: str, user: bool | None, dry_run: bool) -> None:
    agent = _agent(client)
    target, data = _target(agent, user), settings.data_folder()
    scopes = ("project", "shared") if target.scope == "project" and agent.local_files else (target.scope,)
    with _alone(dry_run):
        planned = (installer.plan_uninstall(agent, target._replace(scope=scope), data) for scope in scopes)
        changes = tuple({change.path: change for plan in planned for change in plan}.values())
        if not dry_run:
            installer.apply_uninstall(changes, data, target.root)
    words = () if any(change.needed for change in changes) else _elsewhere(agent, target.scope)
    _tell(cli, agent, target.scope, dry_run, changes, tuple(map(_undone, changes)), words)


def _alone(dry_run: bool) -> contextlib.AbstractContextManager[None]:
    """Installations in several projects change the same files in the home folder."""
    return contextlib.nullcontext() if dry_run else alone(Home(settings.data_folder()))


def _tell(
    cli: Invocation,
    client: CodingAgent,
    scope: str,
    dry_run: bool,
    changes: tuple[FileChange, ...],
    done: tuple[str, ...],
    words: tuple[str, ...],
) -> None:
    files = [
        {"path": change.path, "changed": change.needed, "done": what}
        for change, what in zip(changes, done, strict=True)
    ]
    reply: Json = {"client": client.name, "scope": scope, "dry_run": dry_run, "files": files, "next": list(words)}

    def draw(screen: Screen) -> None:
        for change, what in zip(changes, done, strict=True):
            if dry_run:
                screen.block(installer.rendered(change) or f"{change.path}: nothing to change")
            else:
                screen.line(f"{change.path}: {what}")
        for word in words:
            screen.line(word)

    cli.answer(reply, draw)


def _done(change: FileChange) -> str:
    return "nothing to change" if not change.needed else "made" if change.before is None else "changed"


def _undone(change: FileChange) -> str:
    if not change.needed:
        return "nothing of Limpet is in it"
    if change.after is None:
        return "removed"
    return "given back as it was before" if change.restores else "Limpet's part taken out, the rest left as it is"


def _words_after(
    client: CodingAgent, target: InstallTarget, changes: tuple[FileChange, ...], *, moved: bool
) -> tuple[str, ...]:
    """What a person should know or do after an installation."""
    words = []
    if moved:
        words.append("This project has it in other files already; they stay. To change that, `limpet uninstall` first.")
    team = [change.path for change in changes if change.path.startswith(os.path.join(target.root, ""))]
    if target.scope != "user" and team and not (client.local_files and target.scope == "project"):
        words.append("Whoever has this project's files gets these too; --user keeps them on this machine.")
    if target.command[0] != "limpet":
        words.append(
            f"`limpet` is not on the PATH, so these files start {target.command[0]}, which is on this machine alone. "
            "Put limpet on the PATH and install again before anybody else gets them."
        )
    if client.advice:
        words.append(f"Next: {client.advice[0].lower()}{client.advice[1:]}")
    return tuple(words)


def _elsewhere(client: CodingAgent, scope: str) -> tuple[str, ...]:
    """Where it is installed, if not in the scope that was named."""
    user = scope != "user"
    if not _has_scope(client, user=user) or not any(_installed_in(client, user=user)):
        return ()
    return (f"It is installed {'in your home folder: --user' if user else 'in this project: leave --user out'}.",)


def _offer(cli: Invocation, user: bool | None, shared: bool, dry_run: bool, options: tuple[str, ...]) -> None:
    """Without a name: the agents that are on this machine, and on a terminal the question for each."""
    present = [client for client in clients.every() if _is_used(client)]
    missing = [client for client in present if not _is_there(client)]
    if missing and not cli.json and sys.stdin.isatty() and sys.stdout.isatty():
        for client in missing:
            cli.notice(f"Install Limpet for {client.title}? Type yes or no:")
            if sys.stdin.readline().strip().lower() in ("yes", "y"):
                _install(cli, client, user, shared, dry_run, options)
        return
    rows = [(client.name, "no" if client in missing else "yes", _command_for(client, missing)) for client in present]
    reply = {"found": [{"client": name, "installed": state == "yes", "command": words} for name, state, words in rows]}

    def draw(screen: Screen) -> None:
        if rows:
            screen.table(("client", "installed", "to install it"), rows)
        else:
            screen.line(f"None of the coding agents that Limpet knows is here: {', '.join(clients.names())}.")
            screen.line("`limpet install NAME` installs it all the same; `limpet install generic` is for any other.")

    cli.answer(reply, draw)


def _command_for(client: CodingAgent, missing: list[CodingAgent]) -> str:
    return f"limpet install {client.name}" if client in missing else ""


def _is_used(client: CodingAgent) -> bool:
    """Whether the agent is on this machine."""
    folder = os.path.join(os.path.expanduser("~"), client.home_folder)
    return bool(client.home_folder and os.path.isdir(folder)) or any(map(shutil.which, client.programs))


def _is_there(client: CodingAgent) -> bool:
    states = [state for user in (False, True) for state in _installed_in(client, user=user)]
    return True in states or installer.plugin_enabled(client, _project(), os.path.expanduser("~"))


def _has_scope(client: CodingAgent, *, user: bool) -> bool:
    return ("user" if user else "project") in client.scopes


def _installed_in(client: CodingAgent, *, user: bool) -> list[bool | str]:
    """Whether it is installed, for each place of a scope; a text says why a file cannot be read."""
    if not _has_scope(client, user=user):
        return [False]
    target = _target(client, user)
    scopes = ("project", "shared") if target.scope == "project" and client.local_files else (target.scope,)
    return [_state(client, target._replace(scope=scope)) for scope in scopes]


def _state(client: CodingAgent, target: InstallTarget) -> bool | str:
    try:
        return installer.is_installed(client, target)
    except errors.BadInput as problem:
        return problem.message


def status(cli: Invocation) -> None:
    statuses = [_client_status(client) for client in clients.every()]
    if any(row.get("twice") for row in statuses):
        cli.notice(TWICE)
    rows = [
        (row["client"], *(_word(row[name]) for name in ("used_here", "project", "user")), _extras(row))
        for row in statuses
    ]
    absent = [row[0] for row in rows if set(row[1:]) <= {"no", ""}]
    rows = [row for row in rows if row[0] not in absent]
    titles = ("agent", "on this machine", "in this project", "everywhere", "also")
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
        if rows:
            screen.table(titles, rows)
        if absent:
            screen.line(f"Not on this machine: {', '.join(absent)}.")
        if not any(row["project"] or row["user"] for row in statuses):
            screen.line("No agent has Limpet yet: `limpet install` connects one.")

    cli.answer({"project": project, "remarks": remarks, **seen, "clients": statuses}, draw)


def _client_status(client: CodingAgent) -> Json:
    row: Json = {"client": client.name, "title": client.title, "used_here": _is_used(client)}
    for user in (False, True):
        scope = "user" if user else "project"
        states = _installed_in(client, user=user)
        row[scope] = True if True in states else next((state for state in states if isinstance(state, str)), False)
        if _has_scope(client, user=user):
            for extra in installer.installed_extras(client, _target(client, user)):
                row.setdefault(extra, []).append(scope)
    folders = _project(), os.path.expanduser("~")
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
