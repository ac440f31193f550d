"""`limpet init`, `doctor` and `completion`: setting up, and finding out what is wrong."""

from __future__ import annotations

import json
import os
import sys

import click

from limpet import errors, settings
from limpet.doors.cli.build import Group, command, pass_state
from limpet.doors.cli.context import State
from limpet.doors.cli.render import Screen
from limpet.doors.cli.store_address import shown_place

COMPLETE_VARIABLE = "_LIMPET_COMPLETE"  # the name click derives from the program's
SHELLS = {
    "bash": 'eval "$(limpet completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(limpet completion zsh)"   # in ~/.zshrc',
    "fish": "limpet completion fish | source   # in ~/.config/fish/config.fish",
}


def add_to(root: Group) -> None:
    @command(
        root,
        "init",
        "cd my-project && limpet init",
        "Make a store for the project you are in, hidden from git, and say how to connect an agent.",
    )
    @click.argument("folder", required=False, type=click.Path(file_okay=False))
    @pass_state
    def init(state: State, folder: str | None) -> None:
        if folder is not None and state.store:
            raise click.UsageError("--store and a folder cannot both be given.")
        import shutil  # late, like all that only one command needs

        from limpet.doors.cli.doctor import exists

        store = _place(state, folder)
        state.store = store
        there = exists(store)
        start = ["limpet", "mcp"] if shutil.which("limpet") else [sys.executable, "-m", "limpet", "mcp"]
        reply = {"store": shown_place(store), "project": state.settings.project, "made": not there, "mcp": start}
        _ = state.hold
        state.answer(reply, lambda screen: _explain(screen, reply, start))

    @command(
        root,
        "doctor",
        "limpet doctor\nlimpet doctor --url https://memory.example.org",
        "Check settings, store, checksums and file permissions; with --url a server instead, from where its clients "
        "stand. Exits with 5 when something is wrong.",
    )
    @click.option("--url", metavar="ADDRESS", help="A server of `limpet serve`: reached, set up and let in well?")
    @click.option("--token", metavar="TOKEN", help="For --url. LIMPET_TOKEN keeps it out of `ps`.")
    @pass_state
    def doctor_(state: State, url: str | None, token: str | None) -> int:
        from limpet.doors.cli import doctor, doctor_server

        if token and not url:
            raise click.UsageError("--token goes with --url.")
        findings = doctor_server.examine(url, token or state.settings.token) if url else doctor.examine(state)
        well = all(finding.state != doctor.PROBLEM for finding in findings)
        reply = {"ok": well, "findings": [finding._asdict() for finding in findings]}
        state.answer(reply, lambda screen: screen.table(("", "what", "found"), findings))
        return 0 if well else errors.StoreProblem.exit_code

    @command(root, "completion", "\n".join(SHELLS.values()), "Print the script that lets a shell complete commands.")
    @click.argument("shell", type=click.Choice(tuple(SHELLS)))
    def completion(shell: str) -> None:
        from click.shell_completion import BashComplete, FishComplete, ZshComplete

        made = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}[shell]
        click.echo(made(root, {}, "limpet", COMPLETE_VARIABLE).source())


def _place(state: State, folder: str | None) -> str:
    """Where the store goes: where settings say, but into this very folder when it belongs to no project yet."""
    if folder is None and (state.store or settings.project_root(os.getcwd())):
        return state.settings.store
    base = os.path.abspath(folder or os.getcwd())
    if not os.path.isdir(base):
        raise errors.bad_name("folder", base, "there is no such folder")
    chosen = settings.load(None, state.project, folder=base)
    named = chosen.store != settings.load(None, state.project, folder=base, environment={}).store
    return chosen.store if named and folder is None else os.path.join(base, settings.FOLDER, "limpet.db")


def _explain(screen: Screen, reply: dict[str, object], start: list[str]) -> None:
    screen.line(f"{reply['store']} {'is ready' if reply['made'] else 'was there already'}", "bold")
    elsewhere = [*start, "--store", str(reply["store"]), "--project", str(reply["project"])]
    screen.line("")
    screen.line("Next, give it to an agent. In the project's MCP configuration (.mcp.json or the like):")
    screen.line(f"  {_snippet(start)}")
    screen.line("or, for Claude Code:")
    screen.line(f"  claude mcp add limpet -- {' '.join(start)}")
    screen.line("A client that does not start in the project needs to be told where it is:")
    screen.line(f"  {_snippet(elsewhere)}")
    screen.line("")
    screen.line("`limpet context` shows what a new session begins with, `limpet doctor` whether all is well.")


def _snippet(start: list[str]) -> str:
    return json.dumps({"mcpServers": {"limpet": {"command": start[0], "args": start[1:]}}}, ensure_ascii=False)
