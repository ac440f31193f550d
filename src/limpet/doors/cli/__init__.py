"""The command line: `main`.

Commands are declared and read in commands/. Most of them are one call of one operation (plain.py) whose reply is drawn
by replies.py; the others name a function of their own.

Modules are imported by name here, when it is clear which ones the words need: agents wait for every hook, and programs
ask for the version again and again.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module

from limpet import __version__


def main(argv: list[str] | None = None) -> int:
    """Do what the arguments say; the exit code."""
    _open_streams()
    args = _usual(sys.argv[1:] if argv is None else list(argv))
    if args == ["--version"]:
        return _show_version()
    if (hook := _hook(args)) is not None:
        gc.disable()  # the process ends before there is anything to collect
        return int(import_module("limpet.doors.hooks.process").main(*hook))
    commands = import_module("limpet.doors.cli.commands")
    recognised = commands.recognise(args)
    if recognised is not None and recognised[0].standalone:
        gc.disable()
        return int(commands.function(recognised[0])(**recognised[2]) or 0)
    return int(import_module("limpet.doors.cli.run").run(args, recognised))


def _show_version() -> int:
    try:
        sys.stdout.write(f"limpet {__version__}\n")
        sys.stdout.flush()
    except OSError as problem:
        render, run = (import_module(f"limpet.doors.cli.{name}") for name in ("render", "run"))
        return int(run.ended_by(render.unwritten(problem)))
    return 0


def _open_streams() -> None:
    """A replacement for each standard stream that is closed at the start (`>&-`). Otherwise the next file that is
    opened takes its number, and a program that we start would write into it."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_WRONLY if number else os.O_RDONLY)  # takes the lowest number that is free
            setattr(sys, name, os.fdopen(handle, "w" if number else "r", encoding="utf-8"))


def _usual(args: list[str]) -> list[str]:
    """The words with what people type by habit in our own form: `help note add`, `version`, `window --json`."""
    if args in (["-V"], ["version"]):
        return ["--version"]
    if args[:1] == ["help"]:
        return [*args[1:], "--help"]
    if args[:1] == ["review"] and (len(args) == 1 or (args[1].startswith("--") and args[1] != "--help")):
        return ["review", "list", *args[1:]]
    if args[:1] == ["window"] and args[1:2] and args[1].startswith("--") and args[1] != "--help":
        return ["window", "show", *args[1:]]
    return args


def _hook(args: list[str]) -> tuple[str | None, str] | None:
    """The client, if it is named, and the event of a hook as agents call it. Other words are left to the parser."""
    if args[:1] != ["hook"] or len(args) not in (2, 4):
        return None
    client = args[2] if len(args) == 4 and args[1] == "--client" else None
    if (client is None) != (len(args) == 2) or args[-1].startswith("-"):
        return None
    return client, args[-1]
