"""Folds: what stands in the window in place of messages, and the window that messages and folds make together.

Messages are kept for good, each at a position of its session. A fold covers positions and says what is shown instead;
it never changes a message. So a compaction is one fold appended, and taking the fold away gives the messages back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from limpet.model import EMPTY
from limpet.window.messages import Message, Result, Text, user

CLEAR = "clear"  # results of tools, each made one line
TASK = "task"  # a finished task, made one line and a ledger
COMPACT = "compact"  # everything up to a place, made a summary
REWIND = "rewind"  # messages the caller took back; nothing stands in their place


class Fold(NamedTuple):
    key: str
    how: str
    first: int  # positions, both included
    last: int
    text: str = ""  # what stands there; nothing when it is empty
    lines: Mapping[str, str] = EMPTY  # of CLEAR: `place` of a result -> its line
    shown: tuple[tuple[int, int], ...] = ()  # ranges inside it that are shown all the same, after the text


class Item(NamedTuple):
    """One message of the window and the positions it stands for."""

    message: Message
    first: int
    last: int
    fold: str = ""  # the key of the fold it comes from


def place(position: int, call_id: str) -> str:
    """The name of one result. Call ids alone are not unique: some hosts count them from one in every turn."""
    return f"{position} {call_id}"


def view(messages: Sequence[Message], folds: Iterable[Fold]) -> list[Item]:
    """The window: every message that no fold covers, and the folds in their places."""
    given = list(folds)
    lines = {place: line for fold in given for place, line in fold.lines.items()}
    items: list[Item] = []
    at = 0
    for block in blocks(given):
        items += _plain(messages, at, block.first - 1, lines)
        if block.text:
            items.append(Item(user(block.text), block.first, block.last, block.key))
        for first, last in block.shown:
            items += _plain(messages, max(first, block.first), min(last, block.last), lines)
        at = block.last + 1
    return items + _plain(messages, at, len(messages) - 1, lines)


def blocks(folds: Iterable[Fold]) -> list[Fold]:
    """The folds that can be seen, in order: each swallows those inside it, and none overlaps another."""
    found: list[Fold] = []
    # What was folded later reaches further, because messages only ever come at the end.
    for fold in sorted(folds, key=lambda fold: (fold.last, -fold.first)):
        if fold.how != CLEAR:
            found = _with(found, fold)
    return found


def _with(known: list[Fold], fold: Fold) -> list[Fold]:
    """The blocks and one that reaches further: it swallows those it covers, and begins after one it only touches."""
    first = max([fold.first, *(block.last + 1 for block in known if block.first < fold.first)])
    if first > fold.last:
        return known
    return [*(block for block in known if block.last < first), fold._replace(first=first)]


def _plain(messages: Sequence[Message], first: int, last: int, lines: Mapping[str, str]) -> list[Item]:
    return [Item(cleared(messages[at], at, lines), at, at) for at in range(first, min(last, len(messages) - 1) + 1)]


def cleared(message: Message, position: int, lines: Mapping[str, str]) -> Message:
    """The message with those of its results that were cleared as one line each."""
    if not lines or not message.results():
        return message
    parts = tuple(
        part._replace(parts=(Text(lines[place(position, part.call_id)]),))
        if isinstance(part, Result) and place(position, part.call_id) in lines
        else part
        for part in message.parts
    )
    return message if parts == message.parts else message._replace(parts=parts)


def task_line(description: str, summary: str, ledger: str, *, cancelled: bool = False) -> str:
    """What is left of a task in the window."""
    line = f"[{'Cancelled' if cancelled else 'Task'}: {description} — {summary}]"
    return f"{line}\n{ledger}" if ledger else line
