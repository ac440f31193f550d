"""`limpet pad edit` and `limpet prompt edit`: replace or delete a passage, or open the person's editor."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any, NamedTuple

import click

from limpet.doors.cli import replies
from limpet.doors.cli.command import ACTIVE, WRITING, Misuse
from limpet.doors.cli.invocation import Invocation
from limpet.errors import LimpetError


class EditedText(NamedTuple):
    """The operations on a text, and which session they are called for."""

    read: str
    write: str
    edit: str
    calls_for: str


PAD = EditedText("read_notepad", "write_notepad", "update_notepad", ACTIVE)
PROMPT = EditedText("read_system_prompt", "write_system_prompt", "edit_system_prompt", WRITING)


def edit_pad(cli: Invocation, /, **options: Any) -> int:
    return _edit(cli, PAD, **options)


def edit_prompt(cli: Invocation, /, **options: Any) -> int:
    return _edit(cli, PROMPT, **options)


def _edit(
    cli: Invocation,
    document: EditedText,
    find: str | None,
    replace: str | None,
    delete: str | None,
    everywhere: bool,
    expected_version: int | None,
) -> int:
    change: dict[str, Any] = {"replace_all": everywhere or None, "expected_version": expected_version}
    if delete is not None and (find is not None or replace is not None):
        raise Misuse("--delete stands alone: leave --find and --replace out.")
    if delete is not None:
        return _change(cli, document.edit, {"operation": "delete", "content": delete, **change}, document.calls_for)
    if find is not None or replace is not None:
        change |= {"operation": "find_replace", "find": find, "replace": replace}
        return _change(cli, document.edit, change, document.calls_for)
    if sys.stdin.isatty() and sys.stdout.isatty():
        return _edit_by_hand(cli, document)
    raise Misuse("Give --find and --replace, or --delete; on a terminal, nothing opens your editor.")


def _change(cli: Invocation, operation: str, arguments: dict[str, Any], calls_for: str) -> int:
    return replies.show(cli, operation, cli.call(operation, arguments, cli.session_for(calls_for)), arguments)


def _edit_by_hand(cli: Invocation, document: EditedText) -> int:
    """Open the person's editor on a private file. If the result cannot be saved the file stays: no work is lost."""
    session = cli.session_for(document.calls_for)
    before = cli.call(document.read, {}, session)
    path = _private_file(before["content"])
    saved = True
    try:
        click.edit(filename=path)
        with open(path, "rb") as file:
            after = file.read().decode("utf-8", "surrogateescape")
        # Editors end the last line; that alone is no change.
        if after in (before["content"], before["content"] + "\n"):
            cli.notice("nothing was changed.")
            return 0
        arguments = {"content": after, "expected_version": before["version"]}
        return replies.show(cli, document.write, cli.call(document.write, arguments, session), arguments)
    except LimpetError:
        saved = False
        cli.notice(f"your text was not saved; it is kept in {path}.")
        raise
    finally:
        if saved:
            os.unlink(path)


def _private_file(content: str) -> str:
    handle, path = tempfile.mkstemp(prefix="limpet-notepad-", suffix=".md")  # readable by its owner alone
    with os.fdopen(handle, "wb") as file:
        file.write(content.encode())
    return path
