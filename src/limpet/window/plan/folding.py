"""Folds: text that is shown in place of messages, and the window that messages and folds make together.

Messages are kept, each at a position of its session. A fold covers positions and says what is shown instead; it does
not change a message. A compaction appends one fold, and removing the fold brings the messages back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from limpet.model import EMPTY
from limpet.window.messages import Message, Result, Text, user

CLEAR = "clear"  # tool results, each replaced by one line
TASK = "task"  # a finished task, replaced by one line and a ledger
COMPACT = "compact"  # everything up to a position, replaced by a summary
REWIND = "rewind"  # messages the caller dropped; nothing replaces them


class Fold(NamedTuple):
    key: str
    how: str
    first: int  # positions, both included
    last: int
    text: str = ""  # shown in place of the messages; nothing is shown if it is empty
    lines: Mapping[str, str] = EMPTY  # of CLEAR: `result_key` -> its line
    shown: tuple[tuple[int, int], ...] = ()  # ranges inside it that stay visible, after the text


class WindowItem(NamedTuple):
    """One message of the window and the positions it represents."""

    message: Message
    first: int
    last: int
    fold: str = ""  # the key of the fold it comes from


def result_key(position: int, call_id: str) -> str:
    """The key of one result. Call ids alone are not unique: some hosts count them from one in every turn."""
    return f"{position} {call_id}"


def view(messages: Sequence[Message], folds: Iterable[Fold]) -> list[WindowItem]:
    """The window: the folds, and every message that no fold covers, in order."""
    all_folds = list(folds)
    lines = {key: line for fold in all_folds for key, line in fold.lines.items()}
    items: list[WindowItem] = []
    position = 0
    for block in blocks(all_folds):
        items += _unfolded(messages, position, block.first - 1, lines)
        if block.text:
            items.append(WindowItem(user(block.text), block.first, block.last, block.key))
        for first, last in block.shown:
            items += _unfolded(messages, max(first, block.first), min(last, block.last), lines)
        position = block.last + 1
    return items + _unfolded(messages, position, len(messages) - 1, lines)


def blocks(folds: Iterable[Fold]) -> list[Fold]:
    """The visible folds in order: each replaces those inside it, and none overlaps another."""
    visible: list[Fold] = []
    # A later fold reaches further, because messages are appended at the end.
    for fold in sorted(folds, key=lambda fold: (fold.last, -fold.first)):
        if fold.how != CLEAR:
            visible = _with(visible, fold)
    return visible


def _with(visible: list[Fold], fold: Fold) -> list[Fold]:
    """Add a fold that reaches further: it replaces those it covers, and starts after one it overlaps in part."""
    first = max([fold.first, *(block.last + 1 for block in visible if block.first < fold.first)])
    if first > fold.last:
        return visible
    return [*(block for block in visible if block.last < first), fold._replace(first=first)]


def _unfolded(messages: Sequence[Message], first: int, last: int, lines: Mapping[str, str]) -> list[WindowItem]:
    positions = range(first, min(last, len(messages) - 1) + 1)
    return [WindowItem(cleared(messages[position], position, lines), position, position) for position in positions]


def cleared(message: Message, position: int, lines: Mapping[str, str]) -> Message:
    """The message with each cleared result replaced by its line."""
    if not lines or not message.results():
        return message
    parts = tuple(
        part._replace(parts=(Text(lines[result_key(position, part.call_id)]),))
        if isinstance(part, Result) and result_key(position, part.call_id) in lines
        else part
        for part in message.parts
    )
    return message if parts == message.parts else message._replace(parts=parts)


def task_line(description: str, summary: str, ledger: str, *, cancelled: bool = False) -> str:
    """What is shown in place of a finished task."""
    line = f"[{'Cancelled' if cancelled else 'Task'}: {description} — {summary}]"
    return f"{line}\n{ledger}" if ledger else line
