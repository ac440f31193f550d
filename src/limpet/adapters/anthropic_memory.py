"""A backend for the memory tool of Anthropic's SDK: notepad, notes, handoff, memory and outputs as its files.

    memory = LimpetMemoryTool(limpet.open(), "parser")
    runner = client.beta.messages.tool_runner(model=…, max_tokens=…, messages=[…], tools=[memory])

The paths are names in the store; no file of the machine is read. Answers and errors use the wording that models know
from this tool. upkeep/file_tree.py defines the paths.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from limpet import errors, prompts
from limpet.api import Limpet, Session
from limpet.catalogue.operation import Context, storable
from limpet.errors import LimpetError
from limpet.outputs import keep as output_keep
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
SHARED = "memory-tool"  # the session of tools that were given none
AROUND = 2  # lines shown before and after a change


class LimpetMemoryTool(BetaAbstractMemoryTool):
    """The memory tool over a project's memory and one session of it.

    `memory` is what `limpet.open()` returns, or one session of it. Without a session the tool works in the one of the
    conversation that it is given to, or else in that of `limpet.open(session=…)`, or in one that all such tools share.
    """

    def __init__(
        self,
        memory: Limpet | Session,
        session_id: str | None = None,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._commands, self._cache_control = Commands(memory, session_id), cache_control

    def in_session(self, session: Session) -> LimpetMemoryTool:
        """The tool for a conversation, unless it has a session of its own."""
        if self._commands.has_session:
            return self
        return LimpetMemoryTool(session, cache_control=self._cache_control)

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
    """The same for the async client, in a thread."""

    def __init__(
        self,
        memory: Limpet | Session,
        session_id: str | None = None,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._commands, self._cache_control = Commands(memory, session_id), cache_control

    def in_session(self, session: Session) -> LimpetAsyncMemoryTool:
        """The tool for a conversation, unless it has a session of its own."""
        if self._commands.has_session:
            return self
        return LimpetAsyncMemoryTool(session, cache_control=self._cache_control)

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
    """The commands of both tools. The model's arguments are checked here: the SDK passes them on unchecked."""

    def __init__(self, memory: Limpet | Session, session_id: str | None) -> None:
        hold = memory.hold if isinstance(memory, Session) else memory
        own = session_id or (memory.id if isinstance(memory, Session) else None)
        self.has_session = own is not None
        # A random session would not be found by the next process, and its files with it.
        self._session = hold.session(own or (hold.default_session if hold.has_named_session else SHARED))
        self._by_name: dict[str, Callable[[Context, dict[str, Any]], str]] = {
            "view": _view,
            "create": _create,
            "str_replace": _str_replace,
            "insert": _insert,
            "delete": _delete,
            "rename": _rename,
        }

    def do(self, command: Any) -> str:
        arguments = command if isinstance(command, dict) else command.to_dict()
        try:
            name = _string(arguments, "command")
            if name not in self._by_name:
                raise errors.not_one_of("memory", "command", name, tuple(self._by_name))
            return self._by_name[name](self._session.ctx(), arguments)
        except LimpetError as problem:
            raise ToolError(problem.message) from problem


def _string(arguments: dict[str, Any], name: str) -> str:
    if arguments.get(name) is None:
        raise errors.missing("memory", name)
    if not isinstance(arguments[name], str):
        raise errors.wrong_type("memory", name, arguments[name], "a string")
    return storable(name, arguments[name])


def _view(ctx: Context, arguments: dict[str, Any]) -> str:
    path = _string(arguments, "path")
    if (listed := file_tree.list_files(ctx, path)) is not None:
        return _listing(path, listed)
    view_range = arguments.get("view_range")
    if view_range is not None and not (isinstance(view_range, list) and all(type(line) is int for line in view_range)):
        raise errors.wrong_type("memory", "view_range", view_range, "a list of two line numbers")
    part = file_tree.read_file(ctx, path, view_range)
    text = f"Here's the content of {path} with line numbers:\n{_numbered(part.lines, part.first)}"
    last = part.first + len(part.lines) - 1
    if part.cut:
        return f"{text}\n[Line {last} is too long to be shown whole.]"
    if view_range is None and last < part.total:
        return f"{text}\n[{last:,} of {part.total:,} lines. view_range [{last + 1}, -1] shows more.]"
    return text


def _listing(path: str, listed: file_tree.FileList) -> str:
    lines = [f"Here're the files and directories up to {file_tree.LEVELS} levels deep in {path}:"]
    lines += [f"{output_keep.size(file.size)}\t{file.path}" for file in listed.files]
    if listed.left_out:
        lines.append(f"[{listed.left_out:,} more are not shown.]")
    if path.strip("/") == file_tree.ROOT.strip("/"):
        lines.append(f"[{prompts.prompt('memory_files')}]")
    return "\n".join(lines)


def _numbered(lines: tuple[str, ...], first: int) -> str:
    return "\n".join(f"{number:>{NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _create(ctx: Context, arguments: dict[str, Any]) -> str:
    created = file_tree.create_file(ctx, _string(arguments, "path"), _string(arguments, "file_text"))
    return f"File created successfully at: {created}"


def _str_replace(ctx: Context, arguments: dict[str, Any]) -> str:
    path, old = _string(arguments, "path"), _string(arguments, "old_str")
    new = "" if arguments.get("new_str") is None else _string(arguments, "new_str")
    if not old:
        raise errors.empty("old_str", "Copy the text that is to be replaced from the file.")
    offsets: list[int] = []

    def change(text: str) -> str:
        offsets[:] = [offset for offset in range(len(text)) if text.startswith(old, offset)]
        if not offsets:
            raise errors.text_not_there(path, old)
        if len(offsets) > 1:
            raise errors.text_not_unique(path, old, [text.count("\n", 0, offset) + 1 for offset in offsets])
        return text.replace(old, new)

    lines = file_tree.edit_file(ctx, path, change).split("\n")
    line = min("\n".join(lines).count("\n", 0, offsets[0]), len(lines) - 1)
    first = max(0, line - AROUND)
    some = tuple(lines[first : line + new.count("\n") + AROUND + 1])
    return f"The memory file has been edited. Here is the snippet showing the change:\n{_numbered(some, first + 1)}"


def _insert(ctx: Context, arguments: dict[str, Any]) -> str:
    path, text = _string(arguments, "path"), _string(arguments, "insert_text")
    line = arguments.get("insert_line")

    def change(before: str) -> str:
        lines = before.split("\n")
        if lines[-1] == "":
            lines.pop()
        if not isinstance(line, int) or isinstance(line, bool) or not 0 <= line <= len(lines):
            raise errors.bad_insert_line(line, len(lines))
        return "\n".join([*lines[:line], text.removesuffix("\n"), *lines[line:], ""])

    file_tree.edit_file(ctx, path, change)
    return f"The file {path} has been edited."


def _delete(ctx: Context, arguments: dict[str, Any]) -> str:
    path = _string(arguments, "path")
    file_tree.delete_file(ctx, path)
    return f"Successfully deleted {path}"


def _rename(ctx: Context, arguments: dict[str, Any]) -> str:
    old, new = _string(arguments, "old_path"), _string(arguments, "new_path")
    file_tree.rename_file(ctx, old, new)
    return f"Successfully renamed {old} to {new}"
