"""The system prompt: a project's lasting instructions to its agents, edited and versioned like the notepad."""

from __future__ import annotations

from typing import Any

from limpet import limits
from limpet.catalogue.operation import Caller, Context
from limpet.model import SYSTEM_PROMPT, Notepad, Version
from limpet.session import notepad
from limpet.session.notepad import EditableText, Edited, Versions
from limpet.text.safe import as_data

ADVICE = "Move the long part to a skill or to memory."
SHEET = EditableText(
    SYSTEM_PROMPT, "system prompt", "main", "", limits.PROMPT_MAX_CHARS, limits.PROMPT_BUDGET_TOKENS, ADVICE
)


def system_prompt(ctx: Context) -> str:
    """The text for the next model call, empty if there is none. Equal prompts give equal bytes."""
    prompt = read_system_prompt(ctx)
    return as_data(prompt.content, prompt.origin)


def read_system_prompt(ctx: Context) -> Notepad:
    return notepad.read(ctx, SHEET)


def write_system_prompt(ctx: Context, content: str, expected_version: int | None = None) -> Edited:
    return notepad.edit(ctx, SHEET, "write_system_prompt", lambda before: content, expected_version, anew=True)


def edit_system_prompt(
    ctx: Context,
    operation: str,
    content: str | None = None,
    find: str | None = None,
    replace: str | None = None,
    replace_all: bool = False,
    expected_version: int | None = None,
) -> Edited:
    change = notepad.text_edit("edit_system_prompt", SHEET.what, operation, content, find, replace, replace_all)
    return notepad.edit(ctx, SHEET, "edit_system_prompt", change, expected_version)


def system_prompt_history(ctx: Context, version: int | None = None, limit: int = limits.HISTORY_SHOWN) -> Versions:
    """Versions, newest first; with `version`, also what changed from it to now."""
    return notepad.versions(ctx, SHEET, version, limit)


def restore_system_prompt(ctx: Context, version: int) -> Edited:
    return notepad.restore(ctx, SHEET, "restore_system_prompt", version)


class SystemPrompt:
    """`session.prompt`, the project's system prompt."""

    def __init__(self, session: Caller) -> None:
        self._session = session

    def read(self) -> str:
        return self._session.do(read_system_prompt).content

    def write(self, content: str, *, expected_version: int | None = None) -> Edited:
        return self._session.do(write_system_prompt, content=content, expected_version=expected_version)

    def edit(self, operation: str, **arguments: Any) -> Edited:
        return self._session.do(edit_system_prompt, operation=operation, **arguments)

    def history(self, *, limit: int = limits.HISTORY_SHOWN) -> tuple[Version, ...]:
        return self._session.do(system_prompt_history, limit=limit).versions

    def diff(self, version: int) -> str:
        return self._session.do(system_prompt_history, version=version).diff

    def restore(self, version: int) -> Edited:
        return self._session.do(restore_system_prompt, version=version)
