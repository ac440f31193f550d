"""`python -m torture`: run the goals and print one row each; `--seeded`: see that they notice what they must."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from torture.goals import GOALS
from torture.kit import ROOT, Goal, Outcome
from torture.page import machine, moment, replace
from torture.seeded import BUGS
from torture.seeded import main as seeded

SCALES = ("ci", "minutes", "full")


def run(goal: Goal, size: int) -> tuple[Outcome, float]:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"torture-{goal.name}-", ignore_cleanup_errors=True) as folder:
        os.environ["HOME"] = folder  # whoever runs this has files of their own, and a folder they are in
        try:
            os.chdir(folder)
            made = goal.run(Path(folder), size)
        except Exception as problem:  # noqa: BLE001 - whatever a goal could not finish is a miss of it
            made = Outcome(f"size {size:,}", "did not finish", (f"{type(problem).__name__}: {problem}"[:500],))
        os.chdir(ROOT)
    return made, time.monotonic() - began


def verdict(made: Outcome) -> str:
    if made.skipped:
        return f"skipped: {made.skipped}"
    return "missed" if made.misses else "kept"


def main() -> int:
    parser = argparse.ArgumentParser("torture", description=__doc__)
    parser.add_argument("goals", nargs="*", metavar="GOAL", help=f"of: {', '.join(GOALS)}; all when none is named")
    parser.add_argument("--scale", choices=SCALES, default="minutes")
    parser.add_argument("--size", type=int, help="how often to try, whatever the scale says")
    parser.add_argument("--seeded", action="store_true", help="put bugs into a copy and see which goals notice")
    parser.add_argument("--bug", action="append", help="only this one of the seeded bugs")
    parser.add_argument("--write", metavar="FILE", help="replace the table in this file")
    asked = parser.parse_args()
    if asked.seeded:
        rows, good = seeded(asked.bug)
    else:
        rows, good = [], True
        for name in asked.goals or GOALS:
            goal = GOALS[name]
            began = moment()
            made, took = run(goal, asked.size or getattr(goal, asked.scale))
            rows.append((goal.promise, made.cases, made.figure, verdict(made), f"{took:,.0f} s", began))
            print(" | ".join((name, *rows[-1])), flush=True)
            for words in made.misses:
                print(f"    {words}", flush=True)
            good = good and not made.misses
    if asked.write:
        order = [bug.name for bug in BUGS] if asked.seeded else [goal.promise for goal in GOALS.values()]
        said = f"{moment()[:16]} UTC, load {moment()[18:]}, {machine()}." if asked.seeded else f"{machine()}."
        replace(ROOT / asked.write, "seeded" if asked.seeded else "goals", said, rows, order)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
