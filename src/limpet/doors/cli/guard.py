"""The outermost frame of the command line: every way a command can end becomes an exit code and at most one line.

0 done, 1 a fault in Limpet, 2 bad input, 3 not found, 4 conflict, 5 trouble with the store, 130 interrupted,
141 the reader of the output went away.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from limpet import settings
from limpet.errors import LimpetError

INTERRUPTED = 130
READER_GONE = 141


def guarded(work: Callable[[], int], *, as_json: bool = False) -> int:
    """The exit code of the work, or of what stopped it."""
    try:
        code = work()
        sys.stdout.flush()
    except LimpetError as problem:
        _report(problem.code, problem.message, as_json)
        return problem.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return READER_GONE
    except Exception as problem:
        if settings.debug():
            import traceback

            traceback.print_exc()
        what = f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
        _report(
            "internal",
            f"something went wrong inside Limpet ({what}). Nothing more was done. Please report it; "
            f"LIMPET_DEBUG=1 shows where it happened.",
            as_json,
        )
        return 1
    return code


def _report(code: str, message: str, as_json: bool) -> None:
    # Late, so that a server that never fails does not pay for it.
    from limpet.doors.cli import render

    if as_json:
        line = render.as_json({"error": {"code": code, "message": message}})
    else:
        line = f"limpet: {render.one_line(message)}"
    render.to_stderr(line)


def _drop_output() -> None:
    """Nobody reads any more. What is still in the buffer must not be complained about when the interpreter ends."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        return
