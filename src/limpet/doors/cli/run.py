"""Run the command that the words name. Every way it can end becomes an exit code and at most one line.

0 done, 1 a fault in Limpet, 2 bad input, 3 not found, 4 conflict, 5 trouble with the store, 130 interrupted,
141 the reader of the output went away.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing
from importlib import import_module
from typing import Any

from limpet import settings
from limpet.doors.cli import render
from limpet.doors.cli.command import Command, Misuse
from limpet.doors.cli.commands import function
from limpet.doors.cli.invocation import Invocation
from limpet.errors import LimpetError

INTERRUPTED = 130
READER_GONE = 141
CLICK = "limpet.doors.cli.click_program"  # for help, completion and mistakes; importing it takes 50 ms and more


def run(args: list[str], recognised: tuple[Command, dict[str, Any], dict[str, Any]] | None) -> int:
    """Run the command that was recognised, or let click look at the words; the exit code."""
    # An error may come before the options are read, so whether it is to be JSON is decided by looking.
    as_json = "--json" in (args[: args.index("--")] if "--" in args else args)
    cli = Invocation()
    try:
        with closing(cli):
            if recognised is None:
                code = import_module(CLICK).run(args, cli, as_json=as_json)
            else:
                cli.command, options, values = recognised
                cli.take(options)
                code = function(cli.command)(cli, **values)
        sys.stdout.flush()
        return code or 0
    except Misuse as problem:
        return int(import_module(CLICK).refuse(cli.command, str(problem), as_json=as_json))
    except (Exception, KeyboardInterrupt) as problem:
        return ended_by(problem, as_json=as_json)


def ended_by(problem: BaseException, *, as_json: bool = False) -> int:
    """Report what stopped a command; its exit code."""
    if isinstance(problem, LimpetError):
        _report(problem.code, problem.message, as_json)
        return problem.exit_code
    if isinstance(problem, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(problem, (BrokenPipeError, render.OutputClosed)):
        _drop_output()
        return READER_GONE
    if settings.debug():
        sys.excepthook(type(problem), problem, problem.__traceback__)
    what = f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
    _report(
        "internal",
        f"something went wrong inside Limpet ({what}). Nothing more was done. Please report it; "
        f"LIMPET_DEBUG=1 shows where it happened.",
        as_json,
    )
    return 1


def _report(code: str, message: str, as_json: bool) -> None:
    if as_json:
        render.to_stderr(render.as_json({"error": {"code": code, "message": message}}))
    else:
        render.to_stderr(f"limpet: {render.one_line(message)}")


def _drop_output() -> None:
    """Discard what is still in the buffer: the interpreter would complain about it when it ends."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        return
