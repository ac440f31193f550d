"""A journal of any shape is read in linear time: four times the text takes about four times as long."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from limpet.journal.document import edit, lint, merge, recover, removal
from limpet.journal.document.entries import Debt, Decision, Identifier, Item
from limpet.journal.document.markup import scan

SMALL, TIMES = 12_000, 4
MOST = 3 * TIMES  # a quadratic step takes 16 times as long; what a busy machine adds is below this
FLOOR_SECONDS = 0.05  # below this, nothing is measured

LOG = "## Session Continuity\n### Decision Log\n"
GOALS = "## Active Sub-Goals\n"
DEBT = "## Discovered Technical Debt\n| ID | Description | Severity | Found By | Sprint |\n|---|---|---|---|---|\n"
ROWS = "## Session Continuity Log\n| Timestamp | Agent | Summary |\n|---|---|---|\n"
PLACES = "### Lightweight Identifiers\n| Identifier | Purpose | Last Verified |\n|---|---|---|\n"


def lines(text: str, before: str = "") -> Callable[[int], str]:
    return lambda size: before + text * (size // len(text))


def runs(before: str) -> Callable[[int], str]:
    """Runs of backticks, each longer than the one before, none of which ends."""
    return lambda size: before + " ".join("`" * length for length in range(1, int((2 * size) ** 0.5))) + "|x|y|\n"


def rotated(text: str) -> None:
    moved = edit.choose_old(text, 10, 20)
    edit.add_to_archive(edit.new_archive("NOTES.md"), moved)
    edit.without_moved(text, moved, "NOTES.archive.md")


SHAPES = {
    "conflicts": lines("<<<<<<< a\n=======\n>>>>>>> b\n"),
    "conflicts that never end": lines("<<<<<<< a\nx\n"),
    "underlined": lines("a\n===\n"),
    "rules": lines("===\n"),
    "headings": lines("## a\n"),
    "a title of spaces": lambda size: f"## a{' ' * size}b\n",
    "a title of signs": lambda size: f"## a{' #' * (size // 2)}b\n",
    "fences": lines("```\nx\n```\n"),
    "longer and longer fences": lambda size: "".join(f"{'`' * n}\n" for n in range(3, int((2 * size) ** 0.5))),
    "comments": lines("<!--\n-->\n"),
    "decisions": lines("#### 2026-01-02T03:04:05Z - One\n**Decision**: a\n", LOG),
    "decisions with headings": lines("#### 2026-01-02 - One\n##### x\n", LOG),
    "evidence": lines("- `a` [src/a.py:1]\n", f"{LOG}#### 2026-01-02T03:04:05Z - One\n**Evidence**:\n"),
    "items": lines("- [ ] a (blocking: b)\n", GOALS),
    "one long item": lines("  b\n", f"{GOALS}- a\n"),
    "blank lines": lines("\n", f"{GOALS}- a\n"),
    "notes that never end": lines("(blocking: ", f"{GOALS}- "),
    "backslashes": lines("\\", f"{GOALS}- (blocking: "),
    "rows": lines("| TD-001 | a | LOW | b | c |\n", DEBT),
    "places": lines("| src/a.py:1 | a | no |\n", PLACES),
    "log rows": lines("| x | a | b |\n", ROWS),
    "code in a row": lines("`|`|", DEBT),
    "backticks in a row": runs(f"{DEBT}|"),
    "a delimiter of spaces": lambda size: f"## Discovered Technical Debt\n| a | b |\n-{' ' * size}x\n",
    "one line": lines("a"),
    "few signs": lines('{"a":[\n'),
    "lines of their own": lambda size: "".join(f"{number}\n" for number in range(size // 6)),
}
WORK: dict[str, Callable[[str], object]] = {
    "scan": scan,
    "lint": lambda text: lint.lint(text, "/r"),
    "fix": lambda text: lint.fixed(text, "/r"),
    "level 1": lambda text: recover.recover(text, 1),
    "level 2": lambda text: recover.recover(text, 2),
    "question": lambda text: edit.add_question(text, Item("q")),
    "debt": lambda text: edit.add_debt(text, Debt("TD-1", "x")),
    "identifier": lambda text: edit.add_identifier(text, Identifier("a", "b")),
    "decision": lambda text: edit.add_decision(text, Decision("2026-01-01", "a", "b", "c")),
    "rotate": rotated,
    "purge": lambda text: removal.without(text, ["- [ ] a\n"]),
    "what undo needs": lambda text: removal.hunks_between(text, f"x\n{text}y\n"),
    "merge": lambda text: merge.merge(text, f"x\n{text}y\n", f"z\n{text.replace('a', 'q', 1)}w\n"),
}


def turned_round(text: str) -> str:
    """Every second line before the one that it followed."""
    every = text.splitlines(keepends=True)
    return "".join(line for at in range(0, len(every), 2) for line in reversed(every[at : at + 2]))


def other_signs(text: str) -> str:
    return text.translate(str.maketrans('{:"a', 'b,"c'))


WORK |= {
    "merge of lines turned round": lambda text: merge.merge("", text, turned_round(text)),
    "merge of another text": lambda text: merge.merge("", text, other_signs(text)),
    "merge into another text": lambda text: merge.merge(text, f"x\n{text}y\n", other_signs(text)),
}


def seconds(work: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    work(text)
    return time.process_time() - began


def is_slow(work: Callable[[str], object], shape: Callable[[int], str]) -> bool:
    few, many = seconds(work, shape(SMALL)), seconds(work, shape(SMALL * TIMES))
    return many > FLOOR_SECONDS and many > MOST * max(few, FLOOR_SECONDS / TIMES)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_shape_of_a_journal_takes_more_than_linear_time(shape: str) -> None:
    # A pause of the garbage collector or a busy machine is not there every time.
    slow = [name for name, work in WORK.items() if all(is_slow(work, SHAPES[shape]) for _ in range(4))]
    assert not slow


def test_texts_of_few_signs_are_compared_in_linear_time() -> None:
    """Of two insertions the beginnings are compared closely, which took ten seconds at their full length."""
    shape, work = lines('{"a":[\n'), WORK["merge of another text"]

    def is_slow_when_short() -> bool:
        few, many = seconds(work, shape(500)), seconds(work, shape(500 * TIMES))
        return many > MOST * max(few, FLOOR_SECONDS / TIMES)

    assert not all(is_slow_when_short() for _ in range(4))
