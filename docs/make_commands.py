"""Writes docs/commands.md from the declarations of the command line. `make docs` runs it, as a test checks."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import click

from limpet.doors.cli import commands
from limpet.doors.cli.click_program import ClickCommand, program

HERE = pathlib.Path(__file__).parent
HEAD = """# Commands

Generated from the command line's own declarations by `make docs`. `limpet COMMAND -h` shows the same at a terminal.
Every command also takes `--store`, `--project`, `--session` where it says so, and `--json`.

Exit codes: 0 done, 1 a fault in Limpet or a check that found something, 2 bad input, 3 not found, 4 it was changed by
somebody else meanwhile, 5 trouble with the store, 130 interrupted.
"""


def page() -> str:
    root = program()
    lines = [HEAD]
    for heading, names in commands.HEADINGS.items():
        lines += [f"## {heading.replace('_', ' ').capitalize()}", ""]
        for name in names:
            for words, command in below(name, root.commands[name]):
                lines += section(words, command)
    return "\n".join(lines)


def below(words: str, command: click.Command) -> Iterator[tuple[str, ClickCommand]]:
    """The commands that do something, with all their words."""
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from below(f"{words} {name}", child)
    elif isinstance(command, ClickCommand):
        yield words, command


def section(words: str, command: ClickCommand) -> list[str]:
    about = (command.help or "").partition("\b\nExample:")[0].strip()
    context = click.Context(command, info_name=f"limpet {words}")
    usage = " ".join(["limpet", words, *command.collect_usage_pieces(context)])
    lines = [f"### limpet {words}", "", about, "", "```console", f"$ {usage}"]
    if command.row.example:
        lines += ["", *(f"$ {line}" for line in command.row.example.split("\n"))]
    lines += ["```", ""]
    own = [
        record for param in command.params if param not in command.shared if (record := param.get_help_record(context))
    ]
    lines += [f"- `{names}`: {text}" if text else f"- `{names}`" for names, text in own if "--help" not in names]
    return [*lines, ""] if own else lines


if __name__ == "__main__":
    (HERE / "commands.md").write_text(page(), encoding="utf-8")
