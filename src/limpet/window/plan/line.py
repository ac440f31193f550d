"""The line of a conversation: which of the stored messages lead to the last one.

A caller may go back and take another way, so the messages of a session form a tree: each follows the one before it
unless it says otherwise. The window shows one line of the tree, from the beginning to its head. The messages of other
lines stay where they are, and a line that is taken up again has all of its messages.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

Line = Sequence[int]  # positions, ascending; a range if nothing was ever abandoned
BEGINNING = -1  # the position before the first message


def parent(position: int, parents: Mapping[int, int]) -> int:
    """The position of the message that this one follows."""
    return parents.get(position, position - 1)


def line_to(head: int, parents: Mapping[int, int]) -> Line:
    """The positions from the beginning to `head`."""
    if not any(position <= head for position in parents):
        return range(head + 1)
    positions: list[int] = []
    while head > BEGINNING:
        positions.append(head)
        head = parent(head, parents)
    positions.reverse()
    return positions


def within(line: Line, first: int, last: int) -> Sequence[int]:
    """The part of a line from `first` to `last`, both included."""
    return line[bisect_left(line, first) : bisect_right(line, last)]


def contains(line: Line, position: int) -> bool:
    if isinstance(line, range):
        return position in line
    index = bisect_left(line, position)
    return index < len(line) and line[index] == position


def before(line: Line, position: int) -> int:
    """The last position of a line before this one."""
    index = bisect_left(line, position)
    return line[index - 1] if index else BEGINNING
