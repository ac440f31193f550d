"""The journal: changing a file of 1 MB, recovering from the command line, and racing people's editors.

The floor of a change is what any safe write costs: read, write beside it, sync, rename, sync the folder. The floor of a
start is an interpreter that does nothing. A race counts lines: none that a person saved may be missing at the end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from bench.figures import alone, compare
from bench.measure import OUT, ROOT, Sizes, clean_environment, in_turns, ratio, repository, span, table, verdict
from limpet.journal import file as journal_file
from limpet.journal.document import edit, entries
from limpet.journal.document.entries import Decision, Evidence, Item, Ref
from limpet.journal.document.markup import scan
from limpet.journal.document.sections import template
from limpet.journal.file import JournalFile, find, read, update
from limpet.journal.state import of_project

CHANGE = 0.150  # seconds, for a file of 1 MB
TIMES, MORE = 2.0, 0.060  # of an interpreter that does nothing, and seconds on top
STYLES = ("truncate", "rename", "append", "backup")
EDITOR = ROOT / "tests" / "operations" / "editor.py"


def run(sizes: Sizes) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    _changing(sizes)
    _starting(sizes)
    _racing(sizes)


def _place(name: str) -> JournalFile:
    folder = str(repository(OUT / name))
    return find(folder, "NOTES.md", of_project(folder))


def _long(size: int) -> str:
    """A journal of that many characters: decisions, items and prose, as it grows when nobody rotates it."""
    parts = [template()]
    number = 0
    while sum(map(len, parts)) < size:
        number += 1
        quote = Evidence(f"def step_{number}(value):", Ref(f"src/part_{number % 50}.py", number, number))
        entry = Decision(
            f"2026-01-01T00:{number // 60 % 60:02d}:{number % 60:02d}Z", f"Step {number}", "d", "r", (quote,)
        )
        parts.append(edit.decision_block(entry, 4) + "\n" + "Some words about it, at length. " * 20 + "\n\n")
    head, tail = parts[0].split("### Pending Questions")
    return f"{head}{''.join(parts[1:])}### Pending Questions{tail}"


def _changing(sizes: Sizes) -> None:
    ours, floor = _place("journal-ours"), _place("journal-floor")
    text = _long(1 << 20)
    for place in (ours, floor):
        Path(place.path).write_text(text)

    def change(at: int) -> None:
        update(ours, lambda now: edit.add_question(now, Item(f"number {at}?")))

    def plainly(at: int) -> None:
        now = Path(floor.path).read_bytes()
        beside = f"{floor.path}.new"
        with open(beside, "wb") as file:
            file.write(now + b"- [ ] one more\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, floor.path)
        journal_file._sync(os.path.dirname(floor.path))

    found = in_turns({"ours": change, "floor": plainly}, sizes.pick(5, 2), sizes.pick(20, 4))
    mine, least = found["ours"], found["floor"]
    goal = verdict(mine.p50, CHANGE, f"≤ {span(CHANGE)}")
    compare("a change of a journal of 1 MB", mine.p50, "read, write, fsync, rename", least.p50, goal)
    cells = ["parse, add an entry, write", span(mine.p50), goal, span(mine.p99), span(mine.cpu)]
    columns = ("what", "p50", "goal", "p99", "CPU", "floor p50", "x floor")
    table(
        f"A change of a journal of {len(text):,} bytes",
        columns,
        [[*cells, span(least.p50), ratio(mine.p50, least.p50)]],
    )


def _starting(sizes: Sizes) -> None:
    place = _place("journal-start")
    example = ROOT / "tests" / "unit" / "example_notes.md"
    Path(place.path).write_text(example.read_text(encoding="utf-8"), encoding="utf-8")
    folder = os.path.dirname(place.path)
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "limpet journal recover": [str(Path(sys.executable).with_name("limpet")), "journal", "recover"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(sizes.pick(40, 5)):
        for name, command in commands.items():
            began = time.perf_counter()
            subprocess.run(command, cwd=folder, env=clean_environment(), stdout=subprocess.DEVNULL, check=True)
            times[name].append(time.perf_counter() - began)
    floor, mine = (min(times[name]) for name in commands)
    most = TIMES * floor + MORE
    goal = verdict(mine, most, f"≤ {TIMES:.0f}x + {span(MORE)} = {span(most)}")
    compare("`limpet journal recover`, level 1", mine, "python -c pass", floor, goal)
    table(
        "Level 1 from the command line",
        ("command", "best", "goal", "floor"),
        [["recover", span(mine), goal, span(floor)]],
    )


def _racing(sizes: Sizes) -> None:
    count = sizes.pick(400, 20)
    lines = []
    for style in STYLES:
        place = _place(f"journal-{style}")
        by_hand, agent, seconds = race(place, style, count)
        shown = verdict(by_hand, 0, "0 lost")
        gone = verdict(by_hand + agent, 0, "0")
        alone(f"lines lost, {count} saves by an editor ({style}) against an agent", str(by_hand + agent), gone)
        lines.append([style, str(count), str(by_hand), shown, str(agent), span(seconds / count)])
    columns = ("editor", "saves and changes", "lines by hand lost", "goal", "entries of the agent lost", "a change")
    table("People's editors against an agent", columns, lines)


def race(place: JournalFile, style: str, count: int) -> tuple[int, int, float]:
    """How many lines of each are missing at the end, and how long our changes took."""
    Path(place.path).write_text(f"{template()}\n## By hand\n")
    editor = subprocess.Popen(
        [sys.executable, str(EDITOR), style, place.path, str(count), "1"], stdout=subprocess.DEVNULL
    )
    began = time.perf_counter()
    for number in range(count):
        update(place, lambda text, number=number: edit.add_question(text, Item(f"agent {number}?")))  # type: ignore[misc]
    seconds = time.perf_counter() - began
    editor.wait()
    update(place, lambda text: text)
    text = read(place) or ""
    by_hand = {f"- by hand {style} {number}" for number in range(count)} - set(text.split("\n"))
    asked = {one.entry.text for one in entries.questions(scan(text))}
    return len(by_hand), len({f"agent {number}?" for number in range(count)} - asked), seconds
