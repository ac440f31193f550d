"""Checks: facts of the messages before a fold are searched for after it, and the missing ones are added.

A check is a file, an id, a number, an open item, a decision or a rule. It passes if its text is in the request that
would be sent. Every summary is judged by the same checks, whether a model or Limpet wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from limpet.text import tokens
from limpet.window.messages import Call, Message, Result, Text
from limpet.window.plan.facts import DECISIONS, FILES, IDS, NUMBERS, OPEN, RULES, plain

HEADING = "Also said before:"
# In the order in which the budget is given out: lines before names, names before bare numbers.
CHECKED = (RULES, OPEN, DECISIONS, IDS, FILES, NUMBERS)
LABELS = {RULES: "rule", OPEN: "open", DECISIONS: "decided", IDS: "ids", FILES: "files", NUMBERS: "numbers"}


class Check(NamedTuple):
    kind: str
    text: str


class CheckReport(NamedTuple):
    total: int
    missing: tuple[Check, ...]

    @property
    def score(self) -> float:
        """The share of checks that passed; 1 if there were none."""
        return 1.0 if not self.total else 1 - len(self.missing) / self.total


def checks(facts: Mapping[str, Sequence[str]]) -> tuple[Check, ...]:
    return tuple(Check(kind, line) for kind in CHECKED for line in facts.get(kind, ()))


def run_checks(expected: Sequence[Check], window: str) -> CheckReport:
    """Search the window for each of them. Whitespace and case make no difference."""
    normalised = plain(window)
    return CheckReport(len(expected), tuple(check for check in expected if plain(check.text) not in normalised))


def addendum(missing: Sequence[Check], budget: int) -> str:
    """The missing texts that fit into the budget: lines one by one, names in a row."""
    parts: list[str] = []
    left = budget - tokens.count(HEADING) - 1
    for kind in CHECKED:
        lines = [check.text for check in missing if check.kind == kind]
        in_a_row = kind in (IDS, FILES, NUMBERS)
        chosen: list[str] = []
        for line in reversed(lines):
            cost = tokens.count(line) + (2 if in_a_row and chosen else 6)  # a comma, or the start of the line
            if cost > left:
                break
            left -= cost
            chosen.insert(0, line)
        if chosen and in_a_row:
            parts.append(f"- {LABELS[kind]}: {', '.join(chosen)}")
        else:
            parts += [f"- {LABELS[kind]}: {line}" for line in chosen]
    return "\n".join([HEADING, *parts]) if parts else ""


def words(messages: Iterable[Message]) -> str:
    """All text that a model reads in these messages."""
    return "\n".join(text for message in messages for text in _texts(message))


def _texts(message: Message) -> Iterable[str]:
    for part in message.parts:
        match part:
            case Text():
                yield part.text
            case Call():
                yield part.arguments
            case Result():
                yield from (inner.text for inner in part.parts if isinstance(inner, Text))
