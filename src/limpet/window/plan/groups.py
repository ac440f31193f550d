"""Units: the messages that may only be kept or dropped together.

A call of a tool and its result belong together: providers refuse a request that has one without the other. So whatever
cuts a conversation cuts it between units, and a unit is an assistant's message with calls and the results that follow
it, or any other message alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from limpet.window.messages import ASSISTANT, TOOL, Call, Message, Result


def units(messages: Sequence[Message]) -> list[range]:
    """All of it in order, cut where it may be cut."""
    found: list[range] = []
    at = 0
    while at < len(messages):
        stop = at + 1
        message = messages[at]
        if message.role == ASSISTANT and message.calls():
            while stop < len(messages) and messages[stop].role == TOOL:
                stop += 1
        found.append(range(at, stop))
        at = stop
    return found


def unpaired(messages: Sequence[Message]) -> frozenset[str]:
    """Ids of calls without a result and of results without a call before them."""
    open_calls: set[str] = set()
    alone: set[str] = set()
    for message in messages:
        # Plain loops, not `calls` and `results`: every step of an agent looks through its whole conversation here.
        for part in message.parts:
            if isinstance(part, Call):
                open_calls.add(part.id)
        for part in message.parts:
            if isinstance(part, Result):
                (open_calls.discard if part.call_id in open_calls else alone.add)(part.call_id)
    return frozenset(alone | open_calls)


def whole(messages: Sequence[Message], first: int, last: int) -> tuple[int, int]:
    """The range made wide enough to hold every unit it touches. Both ends are included."""
    touched = [unit for unit in units(messages) if unit.start <= last and unit.stop > first]
    return (touched[0].start, touched[-1].stop - 1) if touched else (first, last)
