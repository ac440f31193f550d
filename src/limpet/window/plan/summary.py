"""The summary without a model: the facts of the folded messages within a budget, the newest first to be kept.

Nothing is rephrased. Each kind of fact has a share of the budget; the others may use what it leaves. Facts that do not
fit are counted, so that the reader knows there is more to search for. A line that is in every request anyway, such as
one of the notepad, is not repeated: it would take the place of one that is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from limpet.text import tokens
from limpet.window.plan.checks import plain
from limpet.window.plan.facts import (
    ASKS,
    CHANGES,
    COMMANDS,
    DECISIONS,
    FAILURES,
    FIGURES,
    FILES,
    IDS,
    OPEN,
    RULES,
    TASKS,
    Facts,
)

# Kind of fact: its heading, and its guaranteed percentage of the budget. The rest of the budget is given out in this
# order: first what an agent would get wrong without, last what it could look up.
SECTIONS: Mapping[str, tuple[str, int]] = {
    RULES: ("Rules", 18),
    OPEN: ("Open", 14),
    DECISIONS: ("Decided", 16),
    ASKS: ("Asked for", 14),
    FIGURES: ("Figures", 14),
    FAILURES: ("Failed", 6),
    TASKS: ("Tasks", 6),
    CHANGES: ("Changed", 4),
    FILES: ("Files", 4),
    IDS: ("Names and ids", 3),
    COMMANDS: ("Commands", 1),
}
ORDER = (ASKS, RULES, DECISIONS, OPEN, FIGURES, TASKS, FAILURES, CHANGES, COMMANDS, FILES, IDS)
IN_A_ROW = (FILES, IDS)  # names, listed in one line
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])?\s*(?:\[[ xX]\])?\s*")
FENCE = "```"
REPEAT_MIN_CHARS = 16  # of a line that counts as a repetition: shorter ones are headings and common words


def summarise(facts: Mapping[str, Sequence[str]], budget: int) -> str:
    """The facts as text of at most `budget` tokens."""
    chosen, left_out = _chosen(facts, budget - 40)  # for the headings and the last line
    parts = [_part(kind, chosen[kind]) for kind in ORDER if chosen.get(kind)]
    if left_out:
        names = ", ".join(f"{count} {SECTIONS[kind][0].lower()}" for kind, count in left_out.items())
        parts.append(f"Not repeated here, but kept and searchable: {names}.")
    text = "\n".join(parts)
    return tokens.cut(text, budget)[0] if tokens.count(text) > budget else text


def besides(facts: Mapping[str, Sequence[str]], standing: str) -> Facts:
    """The facts that are not in the text that every request contains."""
    present = plain(standing)
    return {kind: [line for line in lines if plain(line) not in present] for kind, lines in facts.items()}


def shortened(text: str, standing: str, budget: int) -> str:
    """A model's summary cut to the budget. Lines that every request contains anyway are dropped first."""
    if tokens.count(text) <= budget:
        return text
    present, code = plain(standing), False
    lines: list[str] = []
    for line in text.split("\n"):
        code ^= line.lstrip().startswith(FENCE)
        bare = plain(_BULLET.sub("", line, count=1))
        if code or len(bare) < REPEAT_MIN_CHARS or bare not in present:
            lines.append(line)
    return tokens.cut("\n".join(lines), budget)[0]


def _part(kind: str, lines: Sequence[str]) -> str:
    heading = SECTIONS[kind][0]
    if kind in IN_A_ROW:
        return f"{heading}: {', '.join(lines)}"
    return "\n".join([f"{heading}:", *(f"- {line}" for line in lines)])


def _chosen(facts: Mapping[str, Sequence[str]], budget: int) -> tuple[dict[str, list[str]], dict[str, int]]:
    """The facts that fit, each kind in its own order, and how many of each kind do not."""
    used: set[str] = set()
    waiting: dict[str, list[tuple[str, int]]] = {}
    for kind in SECTIONS:
        fresh = [line for line in facts.get(kind, ()) if line not in used]
        used.update(fresh)
        if kind == ASKS:
            fresh = fresh[1:] + fresh[:1]  # the first request is what all the work is for, so it counts as the newest
        waiting[kind] = [(line, tokens.count(line) + 2) for line in fresh]  # for the dash and the line end
    taken: dict[str, list[str]] = {kind: [] for kind in SECTIONS}
    left = budget
    for kind, (_, share) in SECTIONS.items():
        left -= _take(waiting[kind], taken[kind], min(left, budget * share // 100))
    for kind in SECTIONS:
        left -= _take(waiting[kind], taken[kind], left)
    chosen = {kind: set(lines) for kind, lines in taken.items()}
    ordered = {kind: [line for line in facts.get(kind, ()) if line in chosen[kind]] for kind in taken}
    return ordered, {kind: len(lines) for kind, lines in waiting.items() if lines}


def _take(waiting: list[tuple[str, int]], taken: list[str], room: int) -> int:
    """Move as many lines as there is room for, the newest first, and return their cost."""
    spent = 0
    while waiting and spent + waiting[-1][1] <= room:
        line, cost = waiting.pop()
        taken.append(line)
        spent += cost
    return spent
