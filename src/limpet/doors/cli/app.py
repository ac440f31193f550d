"""The click program: every command below one root, and how it is run."""

from __future__ import annotations

import click

from limpet import __version__
from limpet.doors.cli import (
    access_tokens,
    agent_state,
    audit,
    backups,
    build,
    demo,
    hooks,
    install,
    journal,
    memory,
    notes,
    outputs,
    pad,
    recall,
    render,
    sandbox,
    savings,
    servers,
    sessions,
    setup,
    skills,
    tool_pins,
    tools,
    transfer,
    window,
)
from limpet.doors.cli.context import State
from limpet.doors.cli.guard import INTERRUPTED

ABOUT = """Working memory for AI agents: notes, notepad, memory and handoff that outlive the context window.

\b
Start here:
  limpet demo          see what it does, in a minute
  limpet init          make a store for the project you are in
  limpet serve         let agents in over HTTP; `limpet mcp` is for clients that start it themselves
  limpet COMMAND -h    what a command does, with an example
"""


def program() -> build.Group:
    root = build.group(None, "limpet", ABOUT)
    root.context_settings = {"help_option_names": ["-h", "--help"]}
    click.version_option(__version__, prog_name="limpet", message="%(prog)s %(version)s")(root)
    nouns = (notes, pad, memory, outputs, journal, savings, window, sandbox, skills, agent_state, sessions)
    for module in (
        setup,
        recall,
        audit,
        *nouns,
        transfer,
        backups,
        servers,
        access_tokens,
        tool_pins,
        install,
        hooks,
        tools,
        demo,
    ):
        module.add_to(root)
    return root


def run(args: list[str], *, as_json: bool) -> int:
    """The exit code of the command the arguments name."""
    state = State()
    try:
        code = program().main(args, prog_name="limpet", standalone_mode=False, obj=state)
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
