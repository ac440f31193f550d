"""The ledger of a task: what was done in it, so that work that is folded away is not done again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from limpet.text import tokens
from limpet.window.messages import ASSISTANT, USER, Message
from limpet.window.plan.actions import COMMAND, EFFECT, READ, deeds
from limpet.window.plan.groups import units

ANSWERED, FILES, COMMANDS, EFFECTS, FAILED = "answered", "files read", "commands run", "side effects", "failed"
ORDER = (FAILED, EFFECTS, ANSWERED, FILES, COMMANDS)
MOST = 30  # of one kind: the rest would not fit anyway
_KINDS = {READ: FILES, COMMAND: COMMANDS, EFFECT: EFFECTS}


def ledger(messages: Sequence[Message], budget: int) -> str:
    """A few lines: what failed, what was changed, what was answered, which files were read, which commands ran."""
    rows: dict[str, dict[str, None]] = {name: {} for name in ORDER}
    for unit in units(messages):
        for deed in deeds([messages[at] for at in unit]):
            if deed.failed:
                rows[FAILED][f"{deed.what or deed.call} ({deed.failed})"] = None
            elif deed.kind in _KINDS:
                rows[_KINDS[deed.kind]][deed.what] = None
    for asked, said in pairwise(messages):
        if asked.role == USER and said.role == ASSISTANT and said.text().strip():
            rows[ANSWERED][_short(" ".join(said.text().split()), 160)] = None
    lines: list[str] = []
    for name in ORDER:
        items = list(rows[name])[-MOST:]
        while items:
            line = f"- {name}: {'; '.join(items)}"
            if tokens.count("\n".join([*lines, line])) <= budget:
                lines.append(line)
                break
            items = items[1:]  # the last ones are what the next step builds on
    return "\n".join(lines)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
