"""Probes: what was said before a fold is looked for after it, and what is missing is added.

A probe is a file, an id, a number, an open item, a decision or a rule. It passes when its text stands in the window
that would be sent. Probes judge any summary alike, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from limpet.text import tokens
from limpet.window.messages import Call, Message, Result, Text
from limpet.window.plan.facts import DECISIONS, FILES, IDS, NUMBERS, OPEN, RULES

HEADING = "Also said before:"
# In the order in which room is given out. Lines matter more than names, names more than bare numbers.
PROBED = (RULES, OPEN, DECISIONS, IDS, FILES, NUMBERS)
NAMED = {RULES: "rule", OPEN: "open", DECISIONS: "decided", IDS: "ids", FILES: "files", NUMBERS: "numbers"}


class Probe(NamedTuple):
    kind: str
    text: str


class Probed(NamedTuple):
    total: int
    missing: tuple[Probe, ...]

    @property
    def score(self) -> float:
        """The share that was found; 1 when there was nothing to look for."""
        return 1.0 if not self.total else 1 - len(self.missing) / self.total


def probes(facts: Mapping[str, Sequence[str]]) -> tuple[Probe, ...]:
    return tuple(Probe(kind, line) for kind in PROBED for line in facts.get(kind, ()))


def probe(wanted: Sequence[Probe], window: str) -> Probed:
    """Which of them stand in the window. Spaces and capitals make no difference."""
    read = plain(window)
    return Probed(len(wanted), tuple(one for one in wanted if plain(one.text) not in read))


def addendum(missing: Sequence[Probe], budget: int) -> str:
    """What is missing, as far as the budget goes: lines as they were, names in a row."""
    parts: list[str] = []
    left = budget - tokens.count(HEADING) - 1
    for kind in PROBED:
        lines = [one.text for one in missing if one.kind == kind]
        row = kind in (IDS, FILES, NUMBERS)
        kept: list[str] = []
        for line in reversed(lines):
            cost = tokens.count(line) + (2 if row and kept else 6)  # a comma, or the line's beginning
            if cost > left:
                break
            left -= cost
            kept.insert(0, line)
        if kept and row:
            parts.append(f"- {NAMED[kind]}: {', '.join(kept)}")
        else:
            parts += [f"- {NAMED[kind]}: {line}" for line in kept]
    return "\n".join([HEADING, *parts]) if parts else ""


def words(messages: Iterable[Message]) -> str:
    """Everything a model reads in them."""
    return "\n".join(piece for message in messages for piece in _pieces(message))


def _pieces(message: Message) -> Iterable[str]:
    for part in message.parts:
        match part:
            case Text():
                yield part.text
            case Call():
                yield part.arguments
            case Result():
                yield from (one.text for one in part.parts if isinstance(one, Text))


def plain(text: str) -> str:
    """A text as it is compared. The end of one that was cut short makes no difference either."""
    return " ".join(text.rstrip("…").split()).casefold()
