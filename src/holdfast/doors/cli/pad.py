"""`holdfast pad …`: a session's notepad, and `holdfast scratch`, the scratchpad of its task."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from holdfast.doors.cli.build import NUMBER, Group, command, group, pass_state
from holdfast.doors.cli.state import State, line_from, lines_from
from holdfast.doors.render import Screen
from holdfast.errors import HoldfastError

Json = dict[str, Any]
EXPECT = click.option("--if-version", "version", type=NUMBER, metavar="N", help="Only if this is still its version.")


def add_to(root: Group) -> None:
    noun = group(root, "pad", "The notepad of a session: its plan and progress, in every model call.")
    _add_reading(noun)
    _add_writing(noun)
    _add_editing(noun)

    @command(root, "scratch", "holdfast scratch --mode append 'tried tabs, no luck'", session=True)
    @click.argument("text", required=False)
    @click.option("--mode", metavar="MODE", help="read, replace, append or clear. Read when there is no text.")
    @pass_state
    def scratch(state: State, text: str | None, mode: str | None) -> None:
        mode = "read" if text is None and mode is None else mode
        content = None if text is None else line_from(text, state)
        session = state.writing() if mode is None else state.pad()
        reply = state.call("scratch_note", {"content": content, "mode": mode}, session)
        state.answer(reply, lambda screen: screen.block(reply.get("content") or reply.get("note_id", "")))


def _add_reading(noun: Group) -> None:
    @command(noun, "show", "holdfast pad show --session parser", session=True)
    @pass_state
    def show(state: State) -> None:
        reply = state.call("read_notepad", {}, state.pad())
        state.answer(reply, lambda screen: screen.block(reply["content"]))

    @command(noun, "history", "holdfast pad history --diff 3", session=True)
    @click.option("--diff", "version", type=NUMBER, metavar="N", help="Show what changed since version N.")
    @click.option("--limit", type=NUMBER, metavar="N", help="At most so many versions.")
    @pass_state
    def history(state: State, version: int | None, limit: int | None) -> None:
        reply = state.call("notepad_history", {"version": version, "limit": limit}, state.pad())
        columns = ("version", "at", "by", "operation", "characters")
        if version is None:
            rows = [[item[name] for name in columns] for item in reply["versions"]]
            state.answer(reply, lambda screen: screen.table(columns, rows))
        else:
            state.answer(reply, lambda screen: screen.diff(reply["diff"]))

    @command(noun, "restore", "holdfast pad restore 3", session=True)
    @click.argument("version", type=NUMBER)
    @pass_state
    def restore(state: State, version: int) -> None:
        _answer(state, state.call("restore_notepad", {"version": version}, state.pad()))


def _add_writing(noun: Group) -> None:
    @command(
        noun,
        "write",
        "holdfast pad write '# Plan'\nholdfast pad write - < plan.md",
        "Standard input is taken exactly as it is; an argument is made a whole line.",
        session=True,
    )
    @click.argument("text", required=False)
    @EXPECT
    @pass_state
    def write(state: State, text: str | None, version: int | None) -> None:
        arguments = {"content": lines_from(text, state), "expected_version": version}
        _answer(state, state.call("write_notepad", arguments, state.pad()))

    for name, where in (("append", "at the end"), ("prepend", "at the beginning")):
        _add_adding(noun, name, where)


def _add_adding(noun: Group, name: str, where: str) -> None:
    @command(noun, name, f"holdfast pad {name} '- [ ] casts'", f"This adds text {where}.", session=True)
    @click.argument("text", required=False)
    @EXPECT
    @pass_state
    def add(state: State, text: str | None, version: int | None) -> None:
        arguments = {"operation": name, "content": lines_from(text, state), "expected_version": version}
        _answer(state, state.call("update_notepad", arguments, state.pad()))


def _add_editing(noun: Group) -> None:
    @command(
        noun,
        "edit",
        "holdfast pad edit --find '- [ ] casts' --replace '- [x] casts'\nholdfast pad edit",
        "Without options your editor opens; if the notepad changed meanwhile, nothing is overwritten.",
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
            _edit_by_hand(state)
            return
        else:
            raise click.UsageError("Give --find and --replace, or --delete; on a terminal, nothing opens your editor.")
        _answer(state, state.call("update_notepad", change, state.pad()))


def _edit_by_hand(state: State) -> None:
    """The person's editor on a private file. If the result cannot be saved the file stays, so that no work is lost."""
    session = state.pad()
    before = state.call("read_notepad", {}, session)
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
            _answer(state, state.call("write_notepad", arguments, session))
    except HoldfastError:
        keep = True
        state.notice(f"your text was not saved; it is kept in {path}.")
        raise
    finally:
        if not keep:
            os.unlink(path)


def _private_file(content: str) -> str:
    import tempfile

    handle, path = tempfile.mkstemp(prefix="holdfast-notepad-", suffix=".md")  # readable by its owner alone
    with os.fdopen(handle, "wb") as file:
        file.write(content.encode())
    return path


def _answer(state: State, reply: Json) -> None:
    def draw(screen: Screen) -> None:
        screen.line(f"notepad is at version {reply['version']} (about {reply['tokens']:,} tokens)")

    state.answer(reply, draw)
    if reply.get("warning") and not state.json:
        state.notice(reply["warning"])
