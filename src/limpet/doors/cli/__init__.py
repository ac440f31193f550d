"""The command line: `main`. Commands are in one file a noun; commands.py says which operation each of them is.

`limpet --version`, `limpet mcp`, `limpet hook` and `limpet journal recover` must start at once,
because people and clients wait for them again and again. They are recognised here by hand, before click is imported.
Whatever looks unusual goes to click, which knows them too.
"""

from __future__ import annotations

import sys


def main(argv: list[str] | None = None) -> int:
    """Do what the arguments say; the exit code."""
    args = sys.argv[1:] if argv is None else list(argv)
    if args == ["--version"]:
        from limpet import __version__

        sys.stdout.write(f"limpet {__version__}\n")
        return 0
    if args[:1] == ["hook"] and (hook := _hook(args[1:])) is not None:
        import gc

        gc.disable()  # the process is gone before there is anything to collect
        from limpet.doors.hooks import process

        process.main(*hook)
    from limpet.doors.cli.guard import guarded

    if args[:2] == ["journal", "recover"]:
        from limpet.doors.cli import fast_journal

        asked = fast_journal.recognise(args[2:])
        if asked is not None:
            return guarded(lambda: fast_journal.run(asked))
    from limpet.doors.cli import fast_start

    # An error may come before the options are read, so whether it is to be JSON is decided by looking.
    as_json = "--json" in args[: args.index("--")] if "--" in args else "--json" in args
    wanted = fast_start.recognise(args)
    if wanted is not None:
        return guarded(lambda: fast_start.run(wanted))

    def with_click() -> int:
        from limpet.doors.cli.app import run

        return run(args, as_json=as_json)

    return guarded(with_click, as_json=as_json)


def _hook(words: list[str]) -> tuple[str | None, str] | None:
    """The client, if it is named, and the event; None when there is anything unusual, which is left to click."""
    if len(words) == 1 and not words[0].startswith("-"):
        return None, words[0]
    return (words[1], words[2]) if len(words) == 3 and words[0] == "--client" else None
