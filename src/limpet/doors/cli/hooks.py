"""`limpet hook`, `off` and `on`: what coding agents run by themselves, and how people switch it off."""

from __future__ import annotations

import contextlib
import os

import click

from limpet import errors, settings
from limpet.doors.cli.build import Group, command, pass_state
from limpet.doors.cli.context import State


def add_to(root: Group) -> None:
    @command(
        root,
        "hook",
        "limpet hook --client claude-code session-start",
        "Answer one event of a coding agent: a JSON object on standard input, one on standard output. The agents call "
        "this themselves. It ends with 0 whatever happens; what goes wrong is in hooks.log in your data folder.",
    )
    @click.option("--client", metavar="NAME", help="The coding agent. [default: the one that started it]")
    @click.argument("event")
    @pass_state
    def hook(state: State, client: str | None, event: str) -> None:
        from limpet.doors.hooks import process

        process.main(client, event)

    @command(root, "off", "limpet off", "Switch the hooks of coding agents off in this project. Nothing is deleted.")
    @pass_state
    def off(state: State) -> None:
        _switch(state, on=False)

    @command(root, "on", "limpet on", "Switch the hooks of coding agents on again in this project.")
    @pass_state
    def on(state: State) -> None:
        _switch(state, on=True)


def _switch(state: State, *, on: bool) -> None:
    path = settings.off_file(os.getcwd())
    try:
        if on:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        else:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            with open(path, "a", encoding="utf-8"):
                pass
    except OSError as problem:
        raise errors.bad_config_file(path, problem.strerror or str(problem)) from None
    word = "on" if on else "off"
    state.answer({"hooks": word}, lambda screen: screen.line(f"The hooks of coding agents are {word} in this project."))
