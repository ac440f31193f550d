"""Compaction: which messages are folded, what the window is afterwards, and whether that may be.

`plan` chooses, `verify` judges what would be sent. A plan that fails is not carried out: every pinned text must stand
in the request word for word, the last request of the user must be the very message it was, no call may lose its result,
and the request must be small enough for the fold to have been worth its while.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from limpet.window.messages import TOOL, USER, Message
from limpet.window.plan.checks import words
from limpet.window.plan.folding import COMPACT, Fold, Item
from limpet.window.plan.groups import units, unpaired
from limpet.window.plan.serialise import digest


class Plan(NamedTuple):
    """Items before `cut` are folded; of the positions that covers, `shown` stay in sight."""

    cut: int
    first: int
    last: int
    shown: tuple[tuple[int, int], ...]
    request: Message | None  # the last thing the user asked for

    def fold(self, key: str, text: str) -> Fold:
        return Fold(key, COMPACT, self.first, self.last, text, shown=self.shown)


class Pin(NamedTuple):
    text: str
    digest: str  # SHA-256, of when it was pinned


def pin(text: str) -> Pin:
    return Pin(text, _sha(text))


def plan(items: Sequence[Item], sizes: Sequence[int], *, tail: int) -> Plan | None:
    """Fold everything but the last `tail` tokens. None when there is nothing to fold that is not folded already."""
    cut = len(items)
    room = tail
    for unit in reversed(units([item.message for item in items])):
        cost = sum(sizes[at] for at in unit)
        if cost > room and cut < len(items):
            break
        room -= cost
        cut = unit.start
    folded = items[:cut]
    if not any(not item.fold for item in folded):
        return None
    first, last = min(item.first for item in folded), max(item.last for item in folded)
    asked = last_request(items)
    stay = [item for at, item in enumerate(items) if not item.fold and item.last <= last and (at >= cut or at == asked)]
    shown = _ranges([item.first for item in stay])
    return Plan(cut, first, last, shown, None if asked is None else items[asked].message)


def last_request(items: Sequence[Item]) -> int | None:
    """Where the user last asked for something."""
    for at in range(len(items) - 1, -1, -1):
        item = items[at]
        if item.message.role == USER and not item.fold and item.message.text().strip():
            return at
    return None


def verify(
    sent: Sequence[Message],
    *,
    pins: Iterable[Pin],
    asked: Message | None,
    alone_before: frozenset[str],
    tokens: int,
    most: int,
) -> tuple[str, ...]:
    """What is wrong with the request that would be sent; nothing when it may be."""
    text = words(message for message in sent if message.role != TOOL)
    problems = [
        f"the pinned text {pinned.text[:40]!r} is not in it as it was pinned"
        for pinned in pins
        if _sha(pinned.text) != pinned.digest or pinned.text not in text
    ]
    if asked is not None:
        wanted = digest(asked)
        if not any(message.role == USER and digest(message) == wanted for message in sent):
            problems.append("the last request of the user is not in it as it was")
    if lost := unpaired(sent) - alone_before:
        problems.append(f"{len(lost)} calls or results lost their other half")
    if tokens > most:
        problems.append(f"it would have {tokens:,} tokens and must have {most:,} or fewer")
    return tuple(problems)


def _ranges(positions: Sequence[int]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for at in sorted(positions):
        if found and found[-1][1] == at - 1:
            found[-1] = (found[-1][0], at)
        else:
            found.append((at, at))
    return tuple(found)


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
