"""The page of figures: one section a subject, made of what a run found, kept until that subject is run again.

The page itself is the only memory of earlier runs. A section has up to two parts, ours beside floors and ours beside
peers, each with when and where it was measured; a run replaces the parts it measured and leaves all others alone. What
stands above the sections is counted from them, so that nothing is on the page that no run has printed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.figures import Figure, Found
from bench.measure import ROOT

HEADS = ("What", "Ours", "Beside", "Theirs", "Ratio", "Goal", "Verdict")
PART = re.compile(
    r"<!-- (?P<name>[^:\n]+): written by the run -->\n(?P<body>.*?)\n<!-- end of (?P=name) -->", re.DOTALL
)
WHEN = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d) UTC, \d+ s, load ([\d.]+)")
PEERS = ", peers"  # behind the name of a subject
MISSED, BEHIND = "**MISSED**", "**behind**"
LOUD = {"MISSED": MISSED, "behind": BEHIND}
OPENING = """\
# Benchmarks

Written by `make bench`; nothing here is typed by hand. Ours stands beside the least that the same work can cost (a
floor), or beside another tool (a peer), measured in the same run on the same machine. **Ratio** is ours to theirs: less
is better, except where ↑ says that more is. A **goal** is what we hold ourselves to, and a goal that is not met says
MISSED; beside a peer without a goal it says *ahead*, *even* or *behind*.

```console
$ make bench WRITE=docs/benchmarks.md                        # all subjects, a quarter of an hour or more
$ make bench NAMES="start notes" WRITE=docs/benchmarks.md    # some of them; the others stay as they are
$ make bench PEERS=1 WRITE=docs/benchmarks.md                # with other tools, which pip and npm fetch
$ make bench QUICK=1                                         # a short look, printed only
```

A run prints more than this page holds: 99th percentiles, CPU time, every table. Times are the best of several rounds,
taken in turns with the floor or peer, because other programs only ever make them worse. Each part says when it was
measured and how busy the machine was; on a busy one ratios of short operations move by a third. Data that is not ours
to pass on (LoCoMo, outputs of tools) is looked for where `BENCH_DATA` says; what was not measured is absent, or says
why.
"""


class Row(NamedTuple):
    """A figure with the part it is in."""

    part: str
    figure: Figure

    @property
    def subject(self) -> str:
        return self.part.removesuffix(PEERS)


def write(path: Path, subject: str, about: str, found: Found, where: str, order: Sequence[str]) -> None:
    """Put what a run found of a subject on the page, which is made if it is not there."""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    parts = kept(before)
    if any(found[:3]) or not {subject, f"{subject}{PEERS}"} & set(parts):
        parts |= _made(subject, about, found, where, path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(parts, order), encoding="utf-8")


def kept(text: str) -> dict[str, str]:
    """The parts of a page, by their names."""
    return {match["name"]: match["body"] for match in PART.finditer(text)}


def rows(parts: dict[str, str]) -> list[Row]:
    """Every figure on the page."""
    made = []
    for name, body in parts.items():
        for line in body.splitlines():
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if len(cells) == len(HEADS) and tuple(cells) != HEADS and not cells[0].startswith("---"):
                made.append(Row(name, Figure(*cells)))
    return made


def page(parts: dict[str, str], order: Sequence[str]) -> str:
    """The whole page: the subjects in their order, and after them what only an earlier page knows."""
    subjects = {row.removesuffix(PEERS): None for row in [*order, *parts]}
    named = [name for subject in subjects for name in (subject, f"{subject}{PEERS}") if name in parts]
    found = {name: parts[name] for name in named}
    sections = []
    for name, body in found.items():
        subject = name.removesuffix(PEERS)
        below = name != subject and subject in found
        head = f"### {subject} beside peers\n\n" if below else f"## {subject}\n\n"
        sections.append(f"{head}<!-- {name}: written by the run -->\n{body}\n<!-- end of {name} -->\n")
    return "\n".join([OPENING, _summary(found), *sections])


# --- a part -----------------------------------------------------------------------------------------------------------


def _made(subject: str, about: str, found: Found, where: str, folder: Path) -> dict[str, str]:
    """The parts of a subject that this run measured."""
    if not any(found):
        return {}
    floors, peers = ("\n\n".join([where, _figures(part)]) for part in (found.floors, found.peers))
    parts = {}
    if found.floors or not found.peers:
        shown = [floors] if found.floors else [where, *map(_table, found.tables)]
        pictures = [f"![{title}]({os.path.relpath(ROOT / path, folder)})" for title, path in found.plots]
        parts[subject] = "\n\n".join([about, *shown, *pictures, *found.words])
    if found.peers:
        alone = not found.floors
        parts[f"{subject}{PEERS}"] = "\n\n".join([*([about] if alone else []), peers, *(found.words if alone else [])])
    return parts


def _figures(figures: Iterable[Figure]) -> str:
    return _lines(HEADS, [(*one[:-1], LOUD.get(one.verdict, one.verdict)) for one in figures])


def _table(table: tuple[str, Sequence[str], Sequence[Sequence[str]]]) -> str:
    title, heads, lines = table
    return f"### {title}\n\n{_lines(heads, lines)}"


def _lines(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    made = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in [heads, *lines]]
    return "\n".join([made[0], "|---" * len(heads) + "|", *made[1:]])


# --- what is counted --------------------------------------------------------------------------------------------------


def _summary(parts: dict[str, str]) -> str:
    found = rows(parts)
    lines = []
    for name in dict.fromkeys(row.subject for row in found):
        of = [row.figure.verdict for row in found if row.subject == name]
        counts = [str(of.count(verdict)) for verdict in ("met", MISSED, "ahead", "even", BEHIND)]
        lines.append([f"[{name}](#{name})", str(len(of)), *counts, _when(parts, name)])
    total = [str(sum(int(line[at]) for line in lines)) for at in range(1, 7)]
    heads = ("Subject", "Figures", "Goals met", "Missed", "Ahead of a peer", "Even", "Behind", "Measured")
    said = ["## In short", _lines(heads, [*lines, ["all", *total, ""]])]
    for title, verdict in (("Missed", MISSED), ("Behind a peer", BEHIND)):
        bad = [row for row in found if row.figure.verdict == verdict]
        said.append(f"### {title}")
        said.append("\n".join(f"- {_told(row)}" for row in bad) or "None.")
    return "\n\n".join(said) + "\n"


def _when(parts: dict[str, str], subject: str) -> str:
    """When a subject was measured, and at which load; of its peers too where that was another time."""
    said = (WHEN.search(parts.get(name, "")) for name in (subject, f"{subject}{PEERS}"))
    return ", peers ".join(dict.fromkeys(f"{found[1]}, load {found[2]}" for found in said if found))


def _told(row: Row) -> str:
    one = row.figure
    beside = f", {one.ratio} of {one.beside} ({one.theirs})" if one.beside else ""
    goal = f"; goal {one.goal}" if one.goal else ""
    return f"{row.subject}: {one.what}: {one.ours}{beside}{goal}"
