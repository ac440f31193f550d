"""What people can change here: one row per action, each one operation, so that checks and history are as everywhere.

A form is sent to /do/<action>. `session` names the field that says which session the operation works in; the other
fields are the operation's arguments, by name. Texts come with the line ends of forms and are stored with ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from limpet.catalogue.table import find

MOST_FIELDS = 24


class Action(NamedTuple):
    operation: str
    fields: tuple[str, ...]
    notice: str  # what is shown afterwards
    session: str = ""
    fixed: Mapping[str, Any] = {}


ACTIONS: Mapping[str, Action] = {
    "add_note": Action("add_note", ("content", "tags"), "The note is kept.", "session"),
    "edit_note": Action("update_note", ("id", "content", "tags"), "The note was changed."),
    "finish_note": Action("update_note", ("id",), "The note is done.", fixed={"done": True}),
    "reopen_note": Action("update_note", ("id",), "The note is open again.", fixed={"done": False}),
    "delete_note": Action("delete_note", ("id",), "The note was deleted; the history can bring it back."),
    "write_notepad": Action("write_notepad", ("content", "expected_version"), "The notepad was saved.", "session"),
    "restore_notepad": Action("restore_notepad", ("version",), "That version is the notepad again.", "session"),
    "write_memory": Action("write_memory", ("key", "content"), "Memory was saved."),
    "pin_memory": Action("pin_memory", ("key",), "It is pinned: every session sees it first.", fixed={"pinned": True}),
    "unpin_memory": Action("pin_memory", ("key",), "It is not pinned any more.", fixed={"pinned": False}),
    "write_handoff": Action("write_session_handoff", ("content", "line"), "The handoff was left.", "session"),
    "pin_text": Action("pin_text", ("content",), "It is pinned: every window of the session holds it.", "session"),
    "unpin_text": Action("unpin_text", ("id",), "It is not pinned any more.", "session"),
    "archive_session": Action("archive_session", ("id",), "The session was archived."),
    "resume_session": Action("begin_session", (), "The session is active again.", "session"),
    "uncompact": Action("uncompact", ("first", "last"), "These messages are back in the window.", "session"),
    "delete_output": Action("delete_output", ("id",), "The output was deleted; what it was stays on record."),
    "undo": Action("undo", ("seq",), "The change was undone."),
}


def arguments(action: Action, form: Mapping[str, str]) -> dict[str, Any]:
    """The operation's arguments out of a form. What is no number stays a text, for the operation to refuse."""
    kinds = {param.name: param.type for param in find(action.operation).params}
    values: dict[str, Any] = dict(action.fixed)
    for name in action.fields:
        if name in form:
            values[name] = _value(kinds[name], form[name].replace("\r\n", "\n"))
    return values


def _value(kind: str, text: str) -> Any:
    if kind == "integer":
        number = text.strip()
        return int(number) if number.isascii() and number.isdigit() and len(number) < 16 else text
    if kind == "strings":
        return [part for part in (part.strip() for part in text.replace("\n", ",").split(",")) if part]
    return text
