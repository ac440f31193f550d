"""`limpet pad …`: a session's notepad, and `limpet scratch`, the scratchpad of its task.

And `limpet prompt …`: the system prompt is a text that is edited in the same way, by other operations.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import click

from limpet.doors.cli.build import NUMBER, Group, command, group, pass_state
from limpet.doors.cli.context import State, line_from, lines_from
from limpet.doors.cli.render import Screen
from limpet.errors import LimpetError

Json = dict[str, Any]
EXPECT = click.option("--if-version", "version", type=NUMBER, metavar="N", help="Only if this is still its version.")


class Sheet(NamedTuple):
    """A text and the operations on it."""

    what: str
    read: str
    write: str
    edit: str
    history: str
    restore: str
    session: Callable[[State], str]
    in_session: bool  # whether each session has its own


PAD = Sheet(
    "notepad", "read_notepad", "write_notepad", "update_notepad", "notepad_history", "restore_notepad", State.pad, True
)
PROMPT = Sheet(
    "system prompt",
    "read_system_prompt",
    "write_system_prompt",
    "edit_system_prompt",
    "system_prompt_history",
    "restore_system_prompt",
    State.writing,
    False,
)


def add_to(root: Group) -> None:
    pad = group(root, "pad", "The notepad of a session: its plan and progress, in every model call.")
    prompt = group(root, "prompt", "The system prompt of a project: what its agents are always told.")
    for noun, sheet in ((pad, PAD), (prompt, PROMPT)):
        _add_reading(noun, sheet)
        _add_writing(noun, sheet)
        _add_editing(noun, sheet)

    @command(root, "scratch", "limpet scratch --mode append 'tried tabs, no luck'", session=True)
    @click.argument("text", required=False)
    @click.option("--mode", metavar="MODE", help="read, replace, append or clear. Read when there is no text.")
    @pass_state
    def scratch(state: State, text: str | None, mode: str | None) -> None:
        mode = "read" if text is None and mode is None else mode
        content = None if text is None else line_from(text, state)
        session = state.writing() if mode is None else state.pad()
        reply = state.call("scratch_note", {"content": content, "mode": mode}, session)
        state.answer(reply, lambda screen: screen.block(reply.get("content") or reply.get("note_id", "")))


def _add_reading(noun: Group, sheet: Sheet) -> None:
    @command(noun, "show", f"limpet {noun.name} show", session=sheet.in_session)
    @pass_state
    def show(state: State) -> None:
        reply = state.call(sheet.read, {}, sheet.session(state))
        state.answer(reply, lambda screen: screen.block(reply["content"]))

    @command(noun, "history", f"limpet {noun.name} history --diff 3", session=sheet.in_session)
    @click.option("--diff", "version", type=NUMBER, metavar="N", help="Show what changed since version N.")
    @click.option("--limit", type=NUMBER, metavar="N", help="At most so many versions.")
    @pass_state
    def history(state: State, version: int | None, limit: int | None) -> None:
        reply = state.call(sheet.history, {"version": version, "limit": limit}, sheet.session(state))
        columns = ("version", "at", "by", "operation", "characters")
        if version is None:
            rows = [[item[name] for name in columns] for item in reply["versions"]]
            state.answer(reply, lambda screen: screen.table(columns, rows))
        else:
            state.answer(reply, lambda screen: screen.diff(reply["diff"]))

    @command(noun, "restore", f"limpet {noun.name} restore 3", session=True)
    @click.argument("version", type=NUMBER)
    @pass_state
    def restore(state: State, version: int) -> None:
        _answer(state, sheet, state.call(sheet.restore, {"version": version}, sheet.session(state)))


def _add_writing(noun: Group, sheet: Sheet) -> None:
    @command(
        noun,
        "write",
        f"limpet {noun.name} write '# Plan'\nlimpet {noun.name} write - < plan.md",
        "Standard input is taken exactly as it is; an argument is made a whole line.",
        session=True,
    )
    @click.argument("text", required=False)
    @EXPECT
    @pass_state
    def write(state: State, text: str | None, version: int | None) -> None:
        arguments = {"content": lines_from(text, state), "expected_version": version}
        _answer(state, sheet, state.call(sheet.write, arguments, sheet.session(state)))

    for name, where in (("append", "at the end"), ("prepend", "at the beginning")):
        _add_adding(noun, sheet, name, where)


def _add_adding(noun: Group, sheet: Sheet, name: str, where: str) -> None:
    @command(noun, name, f"limpet {noun.name} {name} '- [ ] casts'", f"This adds text {where}.", session=True)
    @click.argument("text", required=False)
    @EXPECT
    @pass_state
    def add(state: State, text: str | None, version: int | None) -> None:
        arguments = {"operation": name, "content": lines_from(text, state), "expected_version": version}
        _answer(state, sheet, state.call(sheet.edit, arguments, sheet.session(state)))


def _add_editing(noun: Group, sheet: Sheet) -> None:
    @command(
        noun,
        "edit",
        f"limpet {noun.name} edit --find '- [ ] casts' --replace '- [x] casts'\nlimpet {noun.name} edit",
        f"Without options your editor opens; if the {sheet.what} changed meanwhile, nothing is overwritten.",
        session=True,
    )
    @click.option("--find", metavar="TEXT", help="The text to replace, once.")
    @click.option("--replace", metavar="TEXT", help="What to put in its place.")
    @click.option("--delete", metavar="TEXT", help="The text to delete, once.")
    @click.option("--all", "everywhere", is_flag=True, help="Wherever it occurs.")
    @EXPECT
    @pass_state
    def edit(
        state: State, find: str | None, replace: str | None, delete: str | None, everywhere: bool, version: int | None
    ) -> None:
        options = {"replace_all": everywhere or None, "expected_version": version}
        if delete is not None and (find is not None or replace is not None):
            raise click.UsageError("--delete stands alone: leave --find and --replace out.")
        if delete is not None:
            change: Json = {"operation": "delete", "content": delete, **options}
        elif find is not None or replace is not None:
            change = {"operation": "find_replace", "find": find, "replace": replace, **options}
        elif sys.stdin.isatty() and sys.stdout.isatty():
            _edit_by_hand(state, sheet)
            return
        else:
            raise click.UsageError("Give --find and --replace, or --delete; on a terminal, nothing opens your editor.")
        _answer(state, sheet, state.call(sheet.edit, change, sheet.session(state)))


def _edit_by_hand(state: State, sheet: Sheet) -> None:
    """The person's editor on a private file. If the result cannot be saved the file stays, so that no work is lost."""
    session = sheet.session(state)
    before = state.call(sheet.read, {}, session)
    path = _private_file(before["content"])
    keep = False
    try:
        click.edit(filename=path)
        with open(path, "rb") as file:
            after = file.read().decode("utf-8", "surrogateescape")
        # Editors end the last line; that alone is no change.
        if after in (before["content"], before["content"] + "\n"):
            state.notice("nothing was changed.")
        else:
            arguments = {"content": after, "expected_version": before["version"]}
            _answer(state, sheet, state.call(sheet.write, arguments, session))
    except LimpetError:
        keep = True
        state.notice(f"your text was not saved; it is kept in {path}.")
        raise
    finally:
        if not keep:
            os.unlink(path)


def _private_file(content: str) -> str:
    import tempfile

    handle, path = tempfile.mkstemp(prefix="limpet-notepad-", suffix=".md")  # readable by its owner alone
    with os.fdopen(handle, "wb") as file:
        file.write(content.encode())
    return path


def _answer(state: State, sheet: Sheet, reply: Json) -> None:
    def draw(screen: Screen) -> None:
        screen.line(f"{sheet.what} is at version {reply['version']} (about {reply['tokens']:,} tokens)")

    state.answer(reply, draw)
    if reply.get("warning") and not state.json:
        state.notice(reply["warning"])
