"""What a run found, a record a figure. Subjects print their own tables; the page is made of these records alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bench.measure import TABLES, Table, Verdict, span

LESS, MORE = "", " ↑"  # which direction is the better one; most figures are times and sizes
EVEN = 0.02  # the share of a figure by which it may be off before anybody is ahead


class Figure(NamedTuple):
    """One row: ours beside a floor or a peer of the same run, as it is shown."""

    what: str
    ours: str
    beside: str = ""  # whose the other figure is; empty where only a goal stands beside ours
    theirs: str = ""
    ratio: str = ""  # ours to theirs
    goal: str = ""
    verdict: str = ""  # met or MISSED; beside a peer without a goal: ahead, even or behind


class Found(NamedTuple):
    """Everything a subject has to say."""

    floors: list[Figure]
    peers: list[Figure]
    tables: list[Table]  # as printed: what the page shows of a subject without figures
    words: list[str]  # what else is to be known, as that something was not measured, and why
    plots: list[tuple[str, str]]  # what it shows, and where it is, from the root of the repository


_now = Found([], [], TABLES, [], [])


def taken() -> Found:
    """What was found since this was last asked."""
    found = Found(_now.floors[:], _now.peers[:], _now.tables[:], _now.words[:], _now.plots[:])
    for part in _now:
        part.clear()
    return found


def compare(
    what: str,
    ours: float,
    beside: str,
    theirs: float,
    goal: str = "",
    *,
    show: Callable[[float], str] = span,
    peer: bool = False,
    better: str = LESS,
) -> None:
    """Ours beside theirs. The goal is what `verdict` said of it."""
    ratio = f"{ours / theirs:.2f}x{better}" if theirs else "-"
    made = Figure(what, show(ours), beside, show(theirs), ratio, *_judged(goal))
    if peer and not made.verdict:
        made = made._replace(verdict=_standing(ours, theirs, better))
    (_now.peers if peer else _now.floors).append(made)


def alone(what: str, ours: str, goal: str) -> None:
    """A figure with a goal of its own and nobody beside it."""
    _now.floors.append(Figure(what, ours, "", "", "", *_judged(goal)))


def remark(words: str) -> None:
    """Something to know about the figures, said in the run and on the page: what was not measured, and why."""
    print(f"\n{words}")
    _now.words.append(words)


def plot(title: str, path: str) -> None:
    """A picture that belongs to the subject; the path is relative to the root of the repository."""
    _now.plots.append((title, path))


def _judged(goal: str) -> tuple[str, str]:
    """The goal and the verdict of it, each in a cell of its own."""
    if not isinstance(goal, Verdict):
        return goal, ""
    return goal.goal, "met" if goal.met else "MISSED"


def _standing(ours: float, theirs: float, better: str) -> str:
    if abs(ours - theirs) <= EVEN * abs(theirs):
        return "even"
    return "ahead" if (ours < theirs) == (better == LESS) else "behind"
