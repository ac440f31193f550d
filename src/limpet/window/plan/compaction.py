"""Compaction: which messages are folded, and whether the window that results may be sent.

`plan` chooses, `verify` judges the resulting request. A plan that fails verification is not carried out: every pinned
text must be in the request word for word, the user's last request must be unchanged, no call may lose its result, and
the request must be small enough for the fold to pay.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from limpet.window.messages import TOOL, USER, Message
from limpet.window.plan.checks import words
from limpet.window.plan.folding import COMPACT, Fold, WindowItem
from limpet.window.plan.groups import groups, unpaired
from limpet.window.plan.serialise import digest


class FoldPlan(NamedTuple):
    """Items before `cut` are folded; of the positions this covers, those in `shown` stay visible."""

    cut: int
    first: int
    last: int
    shown: tuple[tuple[int, int], ...]
    request: Message | None  # the user's last request

    def fold(self, key: str, text: str) -> Fold:
        return Fold(key, COMPACT, self.first, self.last, text, shown=self.shown)


class Pin(NamedTuple):
    text: str
    digest: str  # SHA-256 of the text when it was pinned


def pin(text: str) -> Pin:
    return Pin(text, _sha(text))


def plan(items: Sequence[WindowItem], sizes: Sequence[int], *, tail: int) -> FoldPlan | None:
    """Fold all but the last `tail` tokens. None if everything before them is folded already."""
    cut = len(items)
    room = tail
    for group in reversed(groups([item.message for item in items])):
        cost = sum(sizes[index] for index in group)
        if cost > room and cut < len(items):
            break
        room -= cost
        cut = group.start
    folded = items[:cut]
    if not any(not item.fold for item in folded):
        return None
    first, last = min(item.first for item in folded), max(item.last for item in folded)
    request = last_request(items)
    visible = [
        item
        for index, item in enumerate(items)
        if not item.fold and item.last <= last and (index >= cut or index == request)
    ]
    shown = _ranges([item.first for item in visible])
    return FoldPlan(cut, first, last, shown, None if request is None else items[request].message)


def last_request(items: Sequence[WindowItem]) -> int | None:
    """The index of the user's last request."""
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if item.message.role == USER and not item.fold and item.message.text().strip():
            return index
    return None


def verify(
    sent: Sequence[Message],
    *,
    pins: Iterable[Pin],
    request: Message | None,
    unpaired_before: frozenset[str],
    tokens: int,
    most: int,
) -> tuple[str, ...]:
    """What is wrong with the request that would be sent; empty if it may be."""
    text = words(message for message in sent if message.role != TOOL)
    problems = [
        f"the pinned text {pinned.text[:40]!r} is not in it as it was pinned"
        for pinned in pins
        if _sha(pinned.text) != pinned.digest or pinned.text not in text
    ]
    if request is not None:
        expected = digest(request)
        if not any(message.role == USER and digest(message) == expected for message in sent):
            problems.append("the last request of the user is not in it as it was")
    if lost := unpaired(sent) - unpaired_before:
        problems.append(f"{len(lost)} calls or results lost their other half")
    if tokens > most:
        problems.append(f"it would have {tokens:,} tokens and must have {most:,} or fewer")
    return tuple(problems)


def _ranges(positions: Sequence[int]) -> tuple[tuple[int, int], ...]:
    ranges: list[tuple[int, int]] = []
    for position in sorted(positions):
        if ranges and ranges[-1][1] == position - 1:
            ranges[-1] = (ranges[-1][0], position)
        else:
            ranges.append((position, position))
    return tuple(ranges)


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
