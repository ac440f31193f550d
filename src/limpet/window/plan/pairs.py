"""Calls and their results: which result answers which call, and results put directly after their calls.

Ids alone do not tell: some models number their calls anew in each turn. A result answers the nearest message before it
that has an unanswered call of that id and, within that message, the first such call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from limpet.window.messages import ASSISTANT, TOOL, Call, Message, Part, Result


class Place(NamedTuple):
    """A part of a conversation: the message's number and the part's number in it."""

    message: int
    part: int


def answers(messages: Sequence[Message]) -> Mapping[Place, Place]:
    """For each result that has a call, where that call stands. Results that are not here are orphans."""
    waiting: dict[str, list[list[Place]]] = {}  # by id: the unanswered calls, grouped by message, newest group last
    found: dict[Place, Place] = {}
    for at, message in enumerate(messages):
        for number, part in enumerate(message.parts):
            place = Place(at, number)
            if isinstance(part, Call) and message.role == ASSISTANT:
                groups = waiting.setdefault(part.id, [])
                if groups and groups[-1][0].message == at:
                    groups[-1].append(place)
                else:
                    groups.append([place])
            elif isinstance(part, Result) and message.role == TOOL and (groups := waiting.get(part.call_id, [])):
                found[place] = groups[-1].pop(0)
                if not groups[-1]:
                    groups.pop()
    return found


def together(messages: Sequence[Message], *, turns: bool = False) -> tuple[Message, ...]:
    """The same messages with every result directly after the message of its call.

    With `turns`, assistant messages that follow each other count as one: their results may stand after the last. Only
    results that stand elsewhere are moved, to the end of the results that are in place.
    """
    owners = {result: call.message for result, call in answers(messages).items()}
    anchors = list(_anchors(messages))
    last = _turn_ends(messages) if turns else range(len(messages))
    moved: dict[int, list[Message]] = {}
    kept: list[Message | None] = list(messages)
    for at, message in enumerate(messages):
        away = {
            number: last[owners[place]]
            for number in range(len(message.parts))
            if (place := Place(at, number)) in owners and last[owners[place]] != anchors[at]
        }
        if away:
            stay = tuple(part for number, part in enumerate(message.parts) if number not in away)
            kept[at] = message._replace(parts=stay) if stay else None
            for number, target in away.items():
                part = (message.parts[number],)
                alone = Message(TOOL, part) if stay else message._replace(parts=part)
                moved.setdefault(target, []).append(alone)
    if not moved:
        return tuple(messages)
    return tuple(_laid_out(messages, kept, anchors, moved))


def _laid_out(
    messages: Sequence[Message],
    kept: Sequence[Message | None],
    anchors: Sequence[int],
    moved: Mapping[int, list[Message]],
) -> Iterator[Message]:
    for at, message in enumerate(kept):
        if message is not None:
            yield message
        if at + 1 == len(messages) or messages[at + 1].role != TOOL:
            yield from moved.get(anchors[at], ())


def _anchors(messages: Sequence[Message]) -> Iterator[int]:
    """For each message, the number of the message whose results it may hold: the last one before that holds none."""
    anchor = -1
    for at, message in enumerate(messages):
        if message.role != TOOL:
            anchor = at
        yield anchor


def _turn_ends(messages: Sequence[Message]) -> Sequence[int]:
    """For each message, the number of the last of the assistant messages that follow each other from there on."""
    ends = list(range(len(messages)))
    for at in range(len(messages) - 2, -1, -1):
        if messages[at].role == messages[at + 1].role == ASSISTANT:
            ends[at] = ends[at + 1]
    return ends


def in_place(messages: Sequence[Message], result: Place, call: Place, *, turns: bool = False) -> bool:
    """Whether nothing but results stands between a call's message (with `turns`: its turn) and its result."""
    at = result.message - 1
    while at > call.message and messages[at].role == TOOL:
        at -= 1
    while turns and at > call.message and messages[at].role == ASSISTANT:
        at -= 1
    return at == call.message


def with_ids(messages: Sequence[Message], new_id: Callable[[Place, str, Part], str]) -> tuple[Message, ...]:
    """The same messages with other ids: `new_id` is asked for each call and each orphan, results follow their call."""
    owners = answers(messages)
    ids: dict[Place, str] = {}
    out = []
    for at, message in enumerate(messages):
        parts: list[Part] = []
        for number, part in enumerate(message.parts):
            place = Place(at, number)
            if isinstance(part, Call):
                ids[place] = new_id(place, part.id, part)
                parts.append(part if ids[place] == part.id else part._replace(id=ids[place]))
            elif isinstance(part, Result):
                own = ids[owners[place]] if place in owners else new_id(place, part.call_id, part)
                parts.append(part if own == part.call_id else part._replace(call_id=own))
            else:
                parts.append(part)
        changed = any(new is not old for new, old in zip(parts, message.parts, strict=True))
        out.append(message._replace(parts=tuple(parts)) if changed else message)
    return tuple(out)
