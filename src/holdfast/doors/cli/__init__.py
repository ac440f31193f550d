"""The command line: `main`. Commands are in one file a noun; commands.py says which operation each of them is.

`holdfast --version`, `holdfast mcp` and `holdfast journal recover` must start at once, because people, clients and
hooks wait for them again and again. They are recognised here by hand, before click is imported. Whatever looks unusual
goes to click, which knows them too.
"""

from __future__ import annotations

import sys


def main(argv: list[str] | None = None) -> int:
    """Do what the arguments say; the exit code."""
    args = sys.argv[1:] if argv is None else list(argv)
    if args == ["--version"]:
        from holdfast import __version__

        sys.stdout.write(f"holdfast {__version__}\n")
        return 0
    from holdfast.doors.cli.guard import guarded

    if args[:2] == ["journal", "recover"]:
        from holdfast.doors.cli import quick

        asked = quick.recognise(args[2:])
        if asked is not None:
            return guarded(lambda: quick.run(asked))
    from holdfast.doors.cli import stdio

    # An error may come before the options are read, so whether it is to be JSON is decided by looking.
    as_json = "--json" in args[: args.index("--")] if "--" in args else "--json" in args
    wanted = stdio.recognise(args)
    if wanted is not None:
        return guarded(lambda: stdio.run(wanted))

    def with_click() -> int:
        from holdfast.doors.cli.app import run

        return run(args, as_json=as_json)

    return guarded(with_click, as_json=as_json)
