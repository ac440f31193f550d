"""Limpet behind the memory tool of Anthropic's SDK: notepad, notes, handoff, memory and kept outputs as its files.

    memory = LimpetMemoryTool(limpet.open())
    runner = client.beta.messages.tool_runner(model=…, max_tokens=…, messages=[…], tools=[memory])

The paths are names in the store; no file of the machine is looked at. What a command answers, and how it is refused, is
in the words that models know from this tool. upkeep/file_tree.py says what each path stands for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from limpet import errors, prompts
from limpet.api import Limpet, Session
from limpet.catalogue.check import storable
from limpet.catalogue.operation import Context
from limpet.errors import LimpetError
from limpet.outputs import outputs
from limpet.upkeep import file_tree

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
    from anthropic.types.beta import (
        BetaCacheControlEphemeralParam,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )
except ImportError as problem:
    raise errors.not_installed("the adapter for the Anthropic SDK", "anthropic") from problem

NUMBER_WIDTH = 6  # of a line's number, as the tool writes it
AROUND = 2  # lines shown before and after a change


class LimpetMemoryTool(BetaAbstractMemoryTool):
    """The memory tool over a project's memory and one session of it.

    `memory` is what `limpet.open()` gives, or one session of it.
    """

    def __init__(
        self, memory: Limpet | Session, *, cache_control: BetaCacheControlEphemeralParam | None = None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._commands = Commands(memory)

    def call(self, input: object) -> str:
        return self._commands.do(input)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return self._commands.do(command)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return self._commands.do(command)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return self._commands.do(command)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return self._commands.do(command)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return self._commands.do(command)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return self._commands.do(command)


class LimpetAsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for the async client. Both do the very same, here in a thread."""

    def __init__(
        self, memory: Limpet | Session, *, cache_control: BetaCacheControlEphemeralParam | None = None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._commands = Commands(memory)

    async def call(self, input: object) -> str:
        return await asyncio.to_thread(self._commands.do, input)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return await asyncio.to_thread(self._commands.do, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return await asyncio.to_thread(self._commands.do, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return await asyncio.to_thread(self._commands.do, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return await asyncio.to_thread(self._commands.do, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return await asyncio.to_thread(self._commands.do, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return await asyncio.to_thread(self._commands.do, command)


class Commands:
    """What the commands do, for both tools. What the model gave is checked here: the SDK passes it on as it came."""

    def __init__(self, memory: Limpet | Session) -> None:
        self._session = memory if isinstance(memory, Session) else memory.session()
        self._known: dict[str, Callable[[Context, dict[str, Any]], str]] = {
            "view": _view,
            "create": _create,
            "str_replace": _str_replace,
            "insert": _insert,
            "delete": _delete,
            "rename": _rename,
        }

    def do(self, given: Any) -> str:
        arguments = given if isinstance(given, dict) else given.to_dict()
        try:
            name = _string(arguments, "command")
            if name not in self._known:
                raise errors.not_one_of("memory", "command", name, tuple(self._known))
            return self._known[name](self._session.ctx(), arguments)
        except LimpetError as problem:
            raise ToolError(problem.message) from problem


def _string(given: dict[str, Any], name: str) -> str:
    if given.get(name) is None:
        raise errors.missing("memory", name)
    if not isinstance(given[name], str):
        raise errors.wrong_type("memory", name, given[name], "a string")
    return storable(name, given[name])


def _view(ctx: Context, given: dict[str, Any]) -> str:
    path = _string(given, "path")
    if (listed := file_tree.list_files(ctx, path)) is not None:
        return _listing(path, listed)
    wanted = given.get("view_range")
    if wanted is not None and not (isinstance(wanted, list) and all(type(line) is int for line in wanted)):
        raise errors.wrong_type("memory", "view_range", wanted, "a list of two line numbers")
    shown = file_tree.read_file(ctx, path, wanted)
    text = f"Here's the content of {path} with line numbers:\n{_numbered(shown.lines, shown.first)}"
    last = shown.first + len(shown.lines) - 1
    if shown.cut:
        return f"{text}\n[Line {last} is too long to be shown whole.]"
    if wanted is None and last < shown.total:
        return f"{text}\n[{last:,} of {shown.total:,} lines. view_range [{last + 1}, -1] shows more.]"
    return text


def _listing(path: str, listed: file_tree.Listed) -> str:
    lines = [f"Here're the files and directories up to {file_tree.LEVELS} levels deep in {path}:"]
    lines += [f"{outputs.size(file.size)}\t{file.path}" for file in listed.files]
    if listed.left_out:
        lines.append(f"[{listed.left_out:,} more are not shown.]")
    if path.strip("/") == file_tree.ROOT.strip("/"):
        lines.append(f"[{prompts.prompt('memory_files')}]")
    return "\n".join(lines)


def _numbered(lines: tuple[str, ...], first: int) -> str:
    return "\n".join(f"{number:>{NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _create(ctx: Context, given: dict[str, Any]) -> str:
    made = file_tree.create_file(ctx, _string(given, "path"), _string(given, "file_text"))
    return f"File created successfully at: {made}"


def _str_replace(ctx: Context, given: dict[str, Any]) -> str:
    path, old = _string(given, "path"), _string(given, "old_str")
    new = "" if given.get("new_str") is None else _string(given, "new_str")
    if not old:
        raise errors.empty("old_str", "Copy the text that is to be replaced from the file.")
    at: list[int] = []

    def change(text: str) -> str:
        at[:] = [place for place in range(len(text)) if text.startswith(old, place)]
        if not at:
            raise errors.text_not_there(path, old)
        if len(at) > 1:
            raise errors.text_not_unique(path, old, [text.count("\n", 0, place) + 1 for place in at])
        return text.replace(old, new)

    lines = file_tree.edit_file(ctx, path, change).split("\n")
    line = min("\n".join(lines).count("\n", 0, at[0]), len(lines) - 1)
    first = max(0, line - AROUND)
    some = tuple(lines[first : line + new.count("\n") + AROUND + 1])
    return f"The memory file has been edited. Here is the snippet showing the change:\n{_numbered(some, first + 1)}"


def _insert(ctx: Context, given: dict[str, Any]) -> str:
    path, text = _string(given, "path"), _string(given, "insert_text")
    line = given.get("insert_line")

    def change(before: str) -> str:
        lines = before.split("\n")
        if lines[-1] == "":
            lines.pop()
        if not isinstance(line, int) or isinstance(line, bool) or not 0 <= line <= len(lines):
            raise errors.bad_insert_line(line, len(lines))
        return "\n".join([*lines[:line], text.removesuffix("\n"), *lines[line:], ""])

    file_tree.edit_file(ctx, path, change)
    return f"The file {path} has been edited."


def _delete(ctx: Context, given: dict[str, Any]) -> str:
    path = _string(given, "path")
    file_tree.delete_file(ctx, path)
    return f"Successfully deleted {path}"


def _rename(ctx: Context, given: dict[str, Any]) -> str:
    old, new = _string(given, "old_path"), _string(given, "new_path")
    file_tree.rename_file(ctx, old, new)
    return f"Successfully renamed {old} to {new}"
