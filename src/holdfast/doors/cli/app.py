"""The click program: every command below one root, and how it is run."""

from __future__ import annotations

import click

from holdfast import __version__
from holdfast.doors import render
from holdfast.doors.cli import (
    backups,
    build,
    care,
    demo,
    find,
    hooks,
    hygiene,
    install,
    journal,
    memory,
    notes,
    outputs,
    pad,
    sandbox,
    savings,
    seals,
    servers,
    sessions,
    skills,
    tokens,
    tools,
    transfer,
    values,
    window,
)
from holdfast.doors.cli.guard import INTERRUPTED
from holdfast.doors.cli.state import State

ABOUT = """Working memory for AI agents: notes, notepad, memory and handoff that outlive the context window.

\b
Start here:
  holdfast demo          see what it does, in a minute
  holdfast init          make a store for the project you are in
  holdfast serve         let agents in over HTTP; `holdfast mcp` is for clients that start it themselves
  holdfast COMMAND -h    what a command does, with an example
"""


def program() -> build.Group:
    root = build.group(None, "holdfast", ABOUT)
    root.context_settings = {"help_option_names": ["-h", "--help"]}
    click.version_option(__version__, prog_name="holdfast", message="%(prog)s %(version)s")(root)
    nouns = (notes, pad, memory, outputs, journal, savings, window, sandbox, skills, values, sessions)
    for module in (care, find, hygiene, *nouns, transfer, backups, servers, tokens, seals, install, hooks, tools, demo):
        module.add_to(root)
    return root


def run(args: list[str], *, as_json: bool) -> int:
    """The exit code of the command the arguments name."""
    state = State()
    try:
        code = program().main(args, prog_name="holdfast", standalone_mode=False, obj=state)
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as problem:
        if as_json:
            render.to_stderr(render.as_json({"error": {"code": "usage", "message": problem.format_message()}}))
        else:
            problem.show()
        return problem.exit_code
    except render.OutputClosed as problem:
        raise BrokenPipeError from problem
    finally:
        state.close()
    return code if isinstance(code, int) else 0
