"""Promises that tests of the suite already hold to: run here as goals, against whichever source this process uses."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from torture.kit import ROOT, Outcome, Tally, surroundings


def tests(*names: str) -> Callable[[Path, int], Outcome]:
    """A goal whose cases are tests. The size is how many of the files are run, none meaning that it is not tried."""

    def run(folder: Path, size: int) -> Outcome:
        if not size:
            return Outcome("none", "none", skipped="in the suite itself at this scale")
        absent = [name for name in names if name.endswith(".py") and not (ROOT / name).exists()]
        if absent:
            return Outcome("none", "none", skipped=f"there is no {', '.join(absent)} yet")
        command = [sys.executable, "-m", "pytest", "-n0", "-p", "no:cacheprovider", f"--basetemp={folder / 'tests'}"]
        done = subprocess.run(
            [*command, "--tb=line", *names],
            cwd=ROOT,
            env=surroundings(),
            capture_output=True,
            text=True,
            timeout=1_800,
            check=False,
        )
        said = {kind: int(number) for number, kind in re.findall(r"(\d+) (passed|failed|errors?)", done.stdout)}
        tally = Tally()
        for line in re.findall(r"^(?:FAILED|ERROR) .*", done.stdout, re.MULTILINE):
            tally.miss("failed", line)
        if done.returncode and not tally.counts:
            tally.miss("failed", done.stdout[-300:] + done.stderr[-300:])
        return tally.outcome(f"{sum(said.values()):,} tests", "failed")

    return run
