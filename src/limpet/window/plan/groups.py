"""Calls and their results: the groups that may not be split, which result answers which call, and putting results
directly after their calls.

Providers refuse a request that has a call without its result, or the reverse. So a conversation is cut between groups:
an assistant message with calls and the results that follow it, or any other message alone.

Ids alone do not pair calls and results, because some models number their calls from one in each turn. A result answers
the nearest message before it that has an unanswered call of that id and, within that message, the first such call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from limpet.window.messages import ASSISTANT, TOOL, Call, Message, Part, Result


class PartIndex(NamedTuple):
    """The index of a message in its conversation, and of a part in that message."""

    message: int
    part: int


# --- groups -----------------------------------------------------------------------------------------------------------


def groups(messages: Sequence[Message]) -> list[range]:
    """The whole conversation in order, as ranges between which it may be cut."""
    ranges: list[range] = []
    start = 0
    while start < len(messages):
        stop = start + 1
        message = messages[start]
        if message.role == ASSISTANT and message.calls():
            while stop < len(messages) and messages[stop].role == TOOL:
                stop += 1
        ranges.append(range(start, stop))
        start = stop
    return ranges


def expand(messages: Sequence[Message], first: int, last: int) -> tuple[int, int]:
    """The range widened to include every group it touches. Both ends are included."""
    touched = [group for group in groups(messages) if group.start <= last and group.stop > first]
    return (touched[0].start, touched[-1].stop - 1) if touched else (first, last)


def unpaired(messages: Sequence[Message]) -> frozenset[str]:
    """Ids of calls without a result and of results without a call before them."""
    open_calls: set[str] = set()
    orphans: set[str] = set()
    for message in messages:
        # Plain loops instead of `calls` and `results`: every step scans its whole conversation here.
        for part in message.parts:
            if isinstance(part, Call):
                open_calls.add(part.id)
        for part in message.parts:
            if isinstance(part, Result):
                (open_calls.discard if part.call_id in open_calls else orphans.add)(part.call_id)
    return frozenset(orphans | open_calls)


# --- pairs ------------------------------------------------------------------------------------------------------------


def answers(messages: Sequence[Message]) -> Mapping[PartIndex, PartIndex]:
    """Maps each result that has a call to that call. Results that are missing here are orphans."""
    waiting: dict[str, list[list[PartIndex]]] = {}  # by id: unanswered calls, one list per message, newest last
    pairs: dict[PartIndex, PartIndex] = {}
    for number, message in enumerate(messages):
        for part_number, part in enumerate(message.parts):
            index = PartIndex(number, part_number)
            if isinstance(part, Call) and message.role == ASSISTANT:
                calls = waiting.setdefault(part.id, [])
                if calls and calls[-1][0].message == number:
                    calls[-1].append(index)
                else:
                    calls.append([index])
            elif isinstance(part, Result) and message.role == TOOL and (calls := waiting.get(part.call_id, [])):
                pairs[index] = calls[-1].pop(0)
                if not calls[-1]:
                    calls.pop()
    return pairs


def together(messages: Sequence[Message], *, turns: bool = False) -> tuple[Message, ...]:
    """The same messages with every result directly after the message of its call.

    With `turns`, consecutive assistant messages count as one: their results may follow the last of them. A result that
    is elsewhere moves to the end of the results that are in place; all others stay.
    """
    owners = {result: call.message for result, call in answers(messages).items()}
    anchors = list(_anchors(messages))
    last = _turn_ends(messages) if turns else range(len(messages))
    moved: dict[int, list[Message]] = {}
    staying: list[Message | None] = list(messages)
    for number, message in enumerate(messages):
        away = {
            part_number: last[owners[index]]
            for part_number in range(len(message.parts))
            if (index := PartIndex(number, part_number)) in owners and last[owners[index]] != anchors[number]
        }
        if away:
            stay = tuple(part for part_number, part in enumerate(message.parts) if part_number not in away)
            staying[number] = message._replace(parts=stay) if stay else None
            for part_number, target in away.items():
                part = (message.parts[part_number],)
                alone = Message(TOOL, part) if stay else message._replace(parts=part)
                moved.setdefault(target, []).append(alone)
    if not moved:
        return tuple(messages)
    return tuple(_laid_out(messages, staying, anchors, moved))


def _laid_out(
    messages: Sequence[Message],
    staying: Sequence[Message | None],
    anchors: Sequence[int],
    moved: Mapping[int, list[Message]],
) -> Iterator[Message]:
    for number, message in enumerate(staying):
        if message is not None:
            yield message
        if number + 1 == len(messages) or messages[number + 1].role != TOOL:
            yield from moved.get(anchors[number], ())


def _anchors(messages: Sequence[Message]) -> Iterator[int]:
    """For each message, the number of the message whose results it may hold: the last one that is not a tool's."""
    anchor = -1
    for number, message in enumerate(messages):
        if message.role != TOOL:
            anchor = number
        yield anchor


def _turn_ends(messages: Sequence[Message]) -> Sequence[int]:
    """For each message, the number of the last of the consecutive assistant messages that begin there."""
    ends = list(range(len(messages)))
    for number in range(len(messages) - 2, -1, -1):
        if messages[number].role == messages[number + 1].role == ASSISTANT:
            ends[number] = ends[number + 1]
    return ends


def in_place(messages: Sequence[Message], result: PartIndex, call: PartIndex, *, turns: bool = False) -> bool:
    """Whether nothing but results is between a call's message (with `turns`: its turn) and its result."""
    number = result.message - 1
    while number > call.message and messages[number].role == TOOL:
        number -= 1
    while turns and number > call.message and messages[number].role == ASSISTANT:
        number -= 1
    return number == call.message


def with_ids(messages: Sequence[Message], new_id: Callable[[PartIndex, str, Part], str]) -> tuple[Message, ...]:
    """The same messages with other ids. `new_id` chooses one for each call and each orphan; results follow their
    call."""
    owners = answers(messages)
    ids: dict[PartIndex, str] = {}
    renamed = []
    for number, message in enumerate(messages):
        parts: list[Part] = []
        for part_number, part in enumerate(message.parts):
            index = PartIndex(number, part_number)
            if isinstance(part, Call):
                ids[index] = new_id(index, part.id, part)
                parts.append(part if ids[index] == part.id else part._replace(id=ids[index]))
            elif isinstance(part, Result):
                id = ids[owners[index]] if index in owners else new_id(index, part.call_id, part)
                parts.append(part if id == part.call_id else part._replace(call_id=id))
            else:
                parts.append(part)
        changed = any(new is not old for new, old in zip(parts, message.parts, strict=True))
        renamed.append(message._replace(parts=tuple(parts)) if changed else message)
    return tuple(renamed)
