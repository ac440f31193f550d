"""The command line: `main`.

Commands are declared as data in commands/ and read by command.py. Most of them are one call of one operation (plain.py)
whose reply is drawn by replies.py; the others name a function of their own.
"""

from __future__ import annotations

import gc
import sys

from limpet import __version__


def main(argv: list[str] | None = None) -> int:
    """Do what the arguments say; the exit code."""
    args = sys.argv[1:] if argv is None else list(argv)
    if args == ["--version"]:
        sys.stdout.write(f"limpet {__version__}\n")
        return 0
    from limpet.doors.cli.commands import function, recognise  # late: programs ask for the version again and again

    recognised = recognise(args)
    if recognised is not None and recognised[0].standalone:
        gc.disable()  # the process ends before there is anything to collect
        return function(recognised[0])(**recognised[2]) or 0
    from limpet.doors.cli.run import run  # late: hooks run all the time, and need neither a store nor a screen

    return run(args, recognised)
