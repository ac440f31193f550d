"""Clearing: results of tools that were read long ago become one line and a reference that brings them back.

A result is cleared when the model has answered since, when it is not among the most recent ones, and when the line is
much shorter than it. Test runs, trees, long listings and JSON say in the line what they were and how many failures they
hold, so that a failed command never looks like one that passed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from limpet import limits
from limpet.window.messages import ASSISTANT, TOOL, Call, Message, Result, Text
from limpet.window.plan.folding import Item, place
from limpet.window.plan.groups import units

MARK = "[Cleared "
_KEPT = re.compile(r"📁 Output cached: ([0-9a-f]{12,64}) \(([^)]*)\)")
_SPACES = re.compile(r"\s+")


class Clearable(NamedTuple):
    """One result that may become a line."""

    place: str
    call: Call
    text: str
    tokens: int
    read: bool  # whether the model has answered since

    @property
    def kept(self) -> str:
        """The id of the output it already refers to, or nothing."""
        found = _KEPT.match(self.text)
        return found[1] if found else ""

    @property
    def shown(self) -> str:
        """The preview inside such a reference."""
        found = _KEPT.match(self.text)
        return (self.text[found.end() :].lstrip(", \n") or found[2]) if found else ""


def clearable(items: Sequence[Item], count: Callable[[Message], int], *, keep: int) -> list[Clearable]:
    """What may be cleared, oldest first. The last `keep` units with results stay, and so does what nobody has read."""
    groups = [unit for unit in units([item.message for item in items]) if _results(items, unit)]
    answered = max((at for at, item in enumerate(items) if item.message.role == ASSISTANT), default=-1)
    found: list[Clearable] = []
    for unit in groups[: max(0, len(groups) - keep)]:
        if unit.stop <= answered:
            found += _of(items, unit, count, read=True)
    return found


def oversized(items: Sequence[Item], count: Callable[[Message], int], *, most: int) -> list[Clearable]:
    """Results that alone are bigger than `most` tokens, read or not: no window has room for them."""
    found: list[Clearable] = []
    for unit in units([item.message for item in items]):
        if _results(items, unit):
            found += [one for one in _of(items, unit, count, read=False) if one.tokens > most]
    return found


def line(one: Clearable, id: str, preview: str) -> str:
    """What stands in its place: what it was and how it went, by its preview, and how to get it back."""
    head, _, rest = preview.partition("\n")
    telling = next((text for text in map(_one_line, rest.split("\n")) if text), "")
    said = f"{_one_line(head)}: {_short(telling, 120)}" if telling else _one_line(head)
    return f"{MARK}{one.call.name}({_arguments(one.call)}) → {said} — hold://{id}]"


def _of(items: Sequence[Item], unit: range, count: Callable[[Message], int], *, read: bool) -> list[Clearable]:
    calls = {call.id: call for call in items[unit.start].message.calls()}
    found: list[Clearable] = []
    for at in unit:
        for part in items[at].message.results():
            text = _text(part)
            if len(text) < limits.CLEAR_RESULT_CHARS or text.startswith(MARK):
                continue
            call = calls.get(part.call_id) or Call(part.call_id, "tool", "")
            size = count(Message(TOOL, (part,)))
            found.append(Clearable(place(items[at].first, part.call_id), call, text, size, read))
    return found


def _results(items: Sequence[Item], unit: range) -> bool:
    return any(items[at].message.results() for at in unit)


def _text(result: Result) -> str:
    """Its words. A result with a picture in it is left alone: a line could not bring that back."""
    texts = [part.text for part in result.parts if isinstance(part, Text)]
    return "\n".join(texts) if len(texts) == len(result.parts) else ""


def _arguments(call: Call) -> str:
    """The first argument, which is nearly always the one that tells: a path, a command, a query."""
    try:
        given = json.loads(call.arguments) if call.arguments else {}
    except ValueError:
        given = call.arguments
    if isinstance(given, dict):
        given = next((value for value in given.values() if isinstance(value, str | int | float)), "")
    return _short(_one_line(str(given)), 80)


def _one_line(text: str) -> str:
    return _SPACES.sub(" ", text).strip()


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
