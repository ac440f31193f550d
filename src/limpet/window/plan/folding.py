"""Folds: text that is shown in place of messages, and the window that messages and folds make together.

Messages are kept, each at a position of its session. A fold covers positions and says what is shown instead; it does
not change a message. A compaction appends one fold, and removing the fold brings the messages back.

The window shows one line of the conversation (`line.py`). A fold belongs to the line on which its last message is, so
it goes and comes back with that line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from limpet.model import EMPTY
from limpet.record import NamedTuple
from limpet.window.messages import USER, Message, Result, Text, user
from limpet.window.plan.line import BEGINNING, Line, contains, within

CLEAR = "clear"  # tool results, each replaced by one line
TASK = "task"  # a finished task, replaced by one line and a ledger
COMPACT = "compact"  # everything up to a position, replaced by a summary
EDIT = "edit"  # messages that the caller changed, replaced by its own; or some that it added in between
RESTORE = "restore"  # not a fold: messages of an abandoned line that are shown again
REWIND = "rewind"  # not a fold: the caller went back to a message and has said nothing new yet


class Fold(NamedTuple):
    key: str
    how: str
    first: int  # positions, both included
    last: int
    text: str = ""  # shown in place of the messages; nothing is shown if it is empty
    lines: Mapping[str, str] = EMPTY  # of CLEAR: `result_key` -> its line
    shown: tuple[tuple[int, int], ...] = ()  # ranges inside it that stay visible, after the text
    messages: tuple[Message, ...] = ()  # of EDIT; if `last` is before `first` they are added there


class WindowItem(NamedTuple):
    """One message of the window and the positions it represents."""

    message: Message
    first: int
    last: int
    fold: str = ""  # the key of the fold it comes from


WHOLE_TEXT = "(text)"  # in place of a call id: the line replaces the text of a message that was too long


def result_key(position: int, call_id: str) -> str:
    """The key of one result. Call ids alone are not unique: some hosts count them from one in every turn."""
    return f"{position} {call_id}"


def view(messages: Sequence[Message], folds: Iterable[Fold], line: Line | None = None) -> list[WindowItem]:
    """The window: the folds, and every message of the line that no fold covers, in order."""
    line = range(len(messages)) if line is None else line
    all_folds = list(folds)
    source = _Source(messages, line, all_folds)
    visible = blocks(fold for fold in all_folds if contains(line, fold.last))
    items = [] if visible and not within(line, 0, visible[0].first - 1) else source.added_after(BEGINNING)
    position = 0
    for block in visible:
        items += source.unfolded(position, block.first - 1)
        if block.text:
            items.append(WindowItem(user(block.text), block.first, block.last, block.key))
        for first, last in sorted({*block.shown, *_changed_since(block, all_folds)}):
            items += source.unfolded(max(first, block.first), min(last, block.last))
        position = block.last + 1
    return items + source.unfolded(position, len(messages) - 1)


def _changed_since(block: Fold, folds: Sequence[Fold]) -> list[tuple[int, int]]:
    """Where the caller changed messages of the user after a compaction: its summary does not know their new text.

    They are shown as those that stay visible are. The next compaction reads and folds them.
    """
    if block.how != COMPACT:
        return []
    since = next(index for index, fold in enumerate(folds) if fold.key == block.key)
    return [
        (fold.first, fold.last)
        for fold in folds[since + 1 :]
        if fold.how == EDIT and block.first <= fold.first <= fold.last <= block.last
        if all(message.role == USER for message in fold.messages)
        if not any(first <= fold.last and fold.first <= last for first, last in block.shown)
    ]


def blocks(folds: Iterable[Fold]) -> list[Fold]:
    """The visible folds in order: each replaces those inside it, and none overlaps another."""
    # A later fold reaches further, because messages are appended at the end.
    hiding = (fold for fold in folds if fold.how not in (CLEAR, EDIT))
    in_order = sorted(hiding, key=lambda fold: (fold.last, -fold.first))
    # One that begins where all begin replaces those before it: of a hundred compactions, the last counts.
    beginning = min((fold.first for fold in in_order), default=0)
    last_whole = max((index for index, fold in enumerate(in_order) if fold.first == beginning), default=0)
    visible: list[Fold] = []
    for fold in in_order[last_whole:]:
        visible = _with(visible, fold)
    return visible


def _with(visible: list[Fold], fold: Fold) -> list[Fold]:
    """Add a fold that reaches further: it replaces those it covers, and starts after one it overlaps in part."""
    first = max([fold.first, *(block.last + 1 for block in visible if block.first < fold.first)])
    if first > fold.last:
        return visible
    return [*(block for block in visible if block.last < first), fold._replace(first=first)]


class _Source:
    """The messages of a line as they are without blocks: cleared, and with what the caller changed."""

    def __init__(self, messages: Sequence[Message], line: Line, folds: Sequence[Fold]) -> None:
        self.messages = messages
        self.line = line
        self.lines = {key: text for fold in folds for key, text in fold.lines.items()}
        self.edits: dict[int, Fold | None] = {}  # by position; None: it is part of the edit before
        self.added: dict[int, list[Fold]] = {}  # by the position after which they are shown
        for fold in folds:
            if fold.how == EDIT and fold.last < fold.first:
                self.added.setdefault(fold.last, []).append(fold)
            elif fold.how == EDIT:
                covered = within(line, fold.first, fold.last)
                self.edits |= dict.fromkeys(covered) | dict.fromkeys(covered[:1], fold)

    def unfolded(self, first: int, last: int) -> list[WindowItem]:
        items: list[WindowItem] = []
        for position in within(self.line, first, last):
            if position not in self.edits:
                message = cleared(self.messages[position], position, self.lines)
                items.append(WindowItem(message, position, position))
            elif (edit := self.edits[position]) is not None:
                items += self._edited(edit, edit.first, edit.last)
            if position in self.added:
                items += self.added_after(position)
        return items

    def added_after(self, position: int) -> list[WindowItem]:
        place = max(position, 0)
        return [item for fold in self.added.get(position, ()) for item in self._edited(fold, place, place)]

    def _edited(self, fold: Fold, first: int, last: int) -> list[WindowItem]:
        return [WindowItem(cleared(message, first, self.lines), first, last) for message in fold.messages]


def cleared(message: Message, position: int, lines: Mapping[str, str]) -> Message:
    """The message with each cleared result replaced by its line, and a text that was too long by its reference."""
    if not lines:
        return message
    if not message.results():
        line = lines.get(result_key(position, WHOLE_TEXT))
        others = (part for part in message.parts if not isinstance(part, Text))
        return message if line is None else message._replace(parts=(Text(line), *others))
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
