"""What may be done to a client's file, as values, and what the file's text is after it and without it.

Ours is told from theirs by what it says: an entry named `limpet`, a hook whose command runs `limpet hook`, a block
between two marks, or a whole file that we wrote. So an installation can be taken out again although people changed the
file since.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from limpet.text import json_edit

NAME = "limpet"
HOOK = "hook --client"  # stands in every hook command of ours and in nobody else's
BEGIN = ">>> limpet: `limpet uninstall` removes what is between these marks"
END = "<<< limpet"


class Entry(NamedTuple):
    """A member named `limpet` in the object at the path."""

    path: tuple[str, ...]
    value: Any


class Hook(NamedTuple):
    """An item of the list at the path that runs one of our hooks."""

    path: tuple[str, ...]
    value: Any


class Member(NamedTuple):
    """A member some clients insist on. It is set where it is missing, and stays when we go unless we made the file."""

    path: tuple[str, ...]
    value: Any


class Block(NamedTuple):
    """Lines at the end of a file, between two marks; for formats with comments, which begin and end so."""

    lines: str
    opens: str = "# "
    closes: str = ""

    @property
    def marks(self) -> tuple[str, str]:
        return f"{self.opens}{BEGIN}{self.closes}", f"{self.opens}{END}{self.closes}"


class Whole(NamedTuple):
    """A file that is ours alone."""

    text: str


def is_ours(text: str, whole: Whole) -> bool:
    """Whether a file of that name is one we wrote, of whichever version. People may have one too."""
    return HOOK in text or text.splitlines()[:2] == whole.text.splitlines()[:2]


Edit = Entry | Hook | Member | Block | Whole


class Unreadable(ValueError):
    """The file is not what its client would read either; it is left alone. Says why."""


def with_edits(text: str, edits: tuple[Edit, ...]) -> str:
    """The text with all of it in. Doing it again changes nothing; an older edit of ours is replaced."""
    for edit in edits:
        text = _with(text, edit)
    return text


def without_edits(text: str, edits: tuple[Edit, ...]) -> str:
    """The text without any of it. An empty text: nothing is left that anybody wrote."""
    for edit in edits:
        text = _without(text, edit)
    return text


def _with(text: str, edit: Edit) -> str:
    if isinstance(edit, Whole):
        return edit.text
    if isinstance(edit, Block):
        return _with_block(_without(text, edit), edit)
    return _json(_put, text, edit)


def _put(text: str, edit: Entry | Hook | Member) -> str:
    if isinstance(edit, Entry):
        return json_edit.put(text, (*edit.path, NAME), edit.value)
    if isinstance(edit, Member):
        there = json_edit.find(text, edit.path) if text.strip() else None
        return text if there else json_edit.put(text, edit.path, edit.value)
    node = json_edit.find(text, edit.path) if text.strip() else None
    if node is not None and edit.value in json_edit.value(text, node):
        return text
    return json_edit.append(_take(text, edit), edit.path, edit.value)


def _without(text: str, edit: Edit) -> str:
    if isinstance(edit, Whole):
        return ""
    if isinstance(edit, Block):
        return _without_block(text, edit)
    return _json(_take, text, edit) if text.strip() else text


def _take(text: str, edit: Entry | Hook | Member) -> str:
    if isinstance(edit, Member) or not text.strip():
        return text
    if isinstance(edit, Entry):
        text = json_edit.drop(text, edit.path, lambda name, value: name == NAME)
    else:
        text = json_edit.drop(text, edit.path, lambda name, value: HOOK in json.dumps(value))
    return _prune(text, edit.path)


def _prune(text: str, path: tuple[str, ...]) -> str:
    """Without the objects and lists on the way that are now empty; they mean nothing to any client."""
    while path:
        node = json_edit.find(text, path)
        if node is None or node.members or node.kind == "value":
            return text
        last = path[-1]
        path = path[:-1]
        text = json_edit.drop(text, path, lambda name, value, last=last: name == last and not value)  # type: ignore[misc]
    return text


def _json(change: Callable[[str, Any], str], text: str, edit: Entry | Hook | Member) -> str:
    try:
        return change(text, edit)
    except json_edit.NotJson as problem:
        raise Unreadable(str(problem)) from None


def _with_block(text: str, edit: Block) -> str:
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    begin, end = edit.marks
    return f"{text}{gap}{begin}\n{edit.lines.strip()}\n{end}\n"


def _without_block(text: str, edit: Block) -> str:
    begin, end = edit.marks
    start = text.find(begin)
    stop = text.find(end, start)
    if start < 0 or stop < 0:
        return text
    before = text[:start]
    if before.endswith("\n\n"):
        before = before[:-1]  # the empty line that we set between
    return before + text[stop + len(end) :].removeprefix("\r").removeprefix("\n")
