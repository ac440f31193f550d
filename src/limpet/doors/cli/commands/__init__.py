"""Every command, under the heading of what people want to do. A heading's module is imported when it is needed."""

from __future__ import annotations

from importlib import import_module

from limpet.doors.cli.command import JSON, Command, Group, completed, is_option, parse, shared

TYPE_CHECKING = False  # see limpet/__init__.py
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

# The first words under each heading, in the order of `limpet --help`.
HEADINGS = {
    "remember": ("note", "memory", "handoff", "pad", "prompt", "scratch", "state", "skill", "journal"),
    "find": ("recall", "tags", "context"),
    "look": ("session", "history", "undo", "window", "task", "output", "savings", "sandbox", "demo"),
    "connect": (
        *("init", "install", "uninstall", "status", "trust", "untrust", "project", "mcp", "serve", "dashboard", "wrap"),
        *("gateway", "hook", "off", "on", "tools", "seals", "completion"),
    ),
    "look_after": ("doctor", "audit", "purge", "export", "import", "backup", "restore", "token"),
}
MOST_WORDS = 3  # of a command
PLAIN = "limpet.doors.cli.plain:run"  # for commands that are one call of one operation


def under(heading: str) -> tuple[Command | Group, ...]:
    commands: tuple[Command | Group, ...] = import_module(f"limpet.doors.cli.commands.{heading}").COMMANDS
    return commands


def every() -> Iterator[Command | Group]:
    for heading in HEADINGS:
        yield from under(heading)


def match(words: list[str]) -> tuple[Command, list[str]] | None:
    """The command that the words begin with, and the words after it."""
    heading = next((name for name, firsts in HEADINGS.items() if words[0] in firsts), None) if words else None
    if heading is None:
        return None
    commands = {command.words: command for command in under(heading) if isinstance(command, Command)}
    for count in range(MOST_WORDS, 0, -1):
        if command := commands.get(" ".join(words[:count])):
            return command, words[count:]
    return None


def recognise(args: list[str]) -> tuple[Command, dict[str, Any], dict[str, Any]] | None:
    """A well-formed command, the shared options and its own values; None when click has to look at the words."""
    first = 0
    while first < len(args) and is_option(args[first]):
        first += 1 if "=" in args[first] or args[first] == JSON.flags else 2
    before = parse(shared(), args[:first])
    matched = match(args[first:])
    if before is None or matched is None:
        return None
    command, words = matched
    values = parse((*command.params, *shared(command)), words)
    own = None if values is None else completed(command.params, values)
    if values is None or own is None:
        return None
    after = {param.name: values[param.name] for param in shared(command) if param.name in values}
    return command, {**before, **after}, own


def function(command: Command) -> Callable[..., int | None]:
    """What the command runs. Its module is imported now, with everything it needs."""
    module, _, name = (command.run or PLAIN).partition(":")
    run: Callable[..., int | None] = getattr(import_module(module), name)
    return run
