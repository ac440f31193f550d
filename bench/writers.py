"""Eight processes that add notes to one file at the same time: how fast, how fair, and whether anything is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple, cast

from bench import stores
from bench.figures import MORE, alone, compare
from bench.measure import ROOT, Sizes, clean_environment, ratio, span, table, verdict
from bench.stores import Raw, open_ours

PROCESSES = 8
FLOOR = "BEGIN IMMEDIATE with a busy timeout"


class Race(NamedTuple):
    rate: float  # adds a second, all processes together
    cpu: float  # seconds an add
    errors: int
    lost: int
    worst: float
    p50: float


def run(sizes: Sizes) -> None:
    each = sizes.pick(1_000, 60)
    races: dict[str, list[Race]] = {"ours": [], "floor": []}
    for _ in range(sizes.pick(3, 1)):
        for who, found in races.items():
            found.append(_race(who, each))
    fastest = {who: max(found) for who, found in races.items()}
    lines = []
    for who, found in races.items():
        best = fastest[who]
        lost, errors = (sum(getattr(race, name) for race in found) for name in ("lost", "errors"))
        goal = verdict(lost + errors, 0, "0 lost, 0 errors") if who == "ours" else ""
        shown = [f"{best.rate:,.0f}/s", ratio(best.rate, fastest["floor"].rate), span(best.cpu), str(errors), str(lost)]
        worst = min(race.worst for race in found)
        lines.append([who, *shown, goal, span(best.p50), span(worst), span(max(race.worst for race in found))])
    adds = [fastest[who].rate for who in ("ours", "floor")]
    compare("adds a second, all together", adds[0], FLOOR, adds[1], show="{:,.0f}/s".format, better=MORE)
    gone = [sum(race.lost + race.errors for race in found) for found in races.values()]
    tried = f"{len(races['ours']) * PROCESSES} processes x {each:,} adds"
    alone(f"lost or refused: {tried}", str(gone[0]), verdict(gone[0], 0, "0"))
    waits = [min(race.worst for race in found) for found in races.values()]
    compare("the longest wait of a writer, best round", waits[0], FLOOR, waits[1])
    heads = ("who", "adds", "x floor", "CPU", "errors", "lost", "goal", "p50 wait", "worst wait, best round", "ever")
    title = f"{PROCESSES} processes x {each:,} durable adds to one file (floor: BEGIN IMMEDIATE, busy timeout 30 s)"
    table(title, heads, lines)


def _race(who: str, each: int) -> Race:
    path = stores.folder("writers") / "store.db"
    if who == "ours":
        open_ours(path).close()
    else:
        Raw(path).close()
    processes = []
    for number in range(PROCESSES):
        command = [sys.executable, "-m", "bench.child", who, str(path), str(each), "1", str(number * each)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        processes.append(subprocess.Popen(command, cwd=ROOT, env=clean_environment(), **cast(Any, pipes)))
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    began = time.perf_counter()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    reports = [json.loads(process.communicate()[0]) for process in processes]
    wall = time.perf_counter() - began
    ids = [str(one) for report in reports for one in report["ids"]]
    errors = sum(len(report["errors"]) for report in reports)
    kept = _kept(who, path)
    lost = len(ids) - len(set(ids) & kept)
    cpu = sum(report["cpu"] for report in reports) / max(1, len(ids))
    worst, p50 = max(report["worst"] for report in reports), min(report["p50"] for report in reports)
    return Race(len(ids) / wall, cpu, errors, lost, worst, p50)


def _kept(who: str, path: Path) -> set[str]:
    """The ids that are really in the file."""
    if who == "ours":
        with open_ours(path) as hold:
            lines = (json.loads(line) for line in hold.export_lines())
            return {line["entry"]["key"] for line in lines if line.get("entry", {}).get("kind") == "note"}
    raw = Raw(path)
    kept = {str(row[0]) for row in raw.con.execute("SELECT id FROM notes")}
    raw.close()
    return kept
