"""What was measured of growth, as tables and plots. Pure: the same figures give the same text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bench import plot
from bench.measure import span, verdict

SQLITE, ONE_SESSION, POSTGRES = "SQLite", "SQLite, one session", "PostgreSQL"
FLAT = 0.2  # the exponent of what a person calls
Table = tuple[str, tuple[str, ...], list[list[str]]]  # title, heads, rows


class Point(NamedTuple):
    """One store at one size. Times are seconds by operation: p50, p99, and of the processor."""

    store: str
    entries: int
    times: dict[str, tuple[float, float, float]]
    counts: dict[str, int]
    load_seconds: float
    disk_bytes: int
    empty_mb: float
    rss_mb: float


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the line through the logarithms, by least squares."""
    across, up = ([math.log(point[axis]) for point in points] for axis in (0, 1))
    middle, height = sum(across) / len(across), sum(up) / len(up)
    spread = sum((one - middle) ** 2 for one in across)
    return sum((a - middle) * (b - height) for a, b in zip(across, up, strict=True)) / spread


def tables(found: Sequence[Point]) -> list[Table]:
    """Title, heads and rows: one table a store for times, and one for what is kept."""
    made = []
    for store in dict.fromkeys(point.store for point in found):
        points = [point for point in found if point.store == store]
        sizes = [f"{point.entries:,}: p50 / p99 / CPU" for point in points]
        heads = ["operation", *sizes, "exponent of p50", "of CPU", f"≤ {FLAT}"]
        rows = []
        for name in points[0].times:
            shown = [" / ".join(map(span, point.times[name])) for point in points]
            slopes = _slopes(points, name)
            rows.append([name, *shown, *(f"{one:.2f}" for one in slopes), "yes" if max(slopes) <= FLAT else "NO"])
        made.append((f"{store}: time of a call, by entries in one project", tuple(heads), rows))
    heads = ["store", "entries", "loaded in", "entries/s", "disk", "disk an entry", "memory: opened", "memory: used"]
    rows = [_kept(point) for point in found]
    return [*made, ("What a store of notes takes (memory is that of the process that uses it)", tuple(heads), rows)]


def ends(found: Sequence[Point]) -> Iterator[tuple[str, str, Point, Point, str]]:
    """Of each store and operation the smallest point, the largest, and whether it grows slower than what is kept."""
    for store in dict.fromkeys(point.store for point in found):
        points = [point for point in found if point.store == store]
        for name in points[0].times:
            slope = max(_slopes(points, name))
            yield store, name, points[0], points[-1], verdict(slope, FLAT, f"exponent ≤ {FLAT}")


def _slopes(points: Sequence[Point], name: str) -> list[float]:
    """Of the median, and of processor time."""
    curves = ([(point.entries, point.times[name][which]) for point in points] for which in (0, 2))
    return [round(exponent(curve), 2) + 0.0 for curve in curves]


def _kept(point: Point) -> list[str]:
    speed = point.entries / point.load_seconds
    disk = [f"{point.disk_bytes / 1e6:,.0f} MB", f"{point.disk_bytes / point.entries:,.0f} B"]
    memory = [f"{point.empty_mb:.0f} MB", f"{point.rss_mb:.0f} MB"]
    return [point.store, f"{point.entries:,}", f"{point.load_seconds:.0f} s", f"{speed:,.0f}", *disk, *memory]


def plots(found: Sequence[Point]) -> dict[str, str]:
    """A plot a store, by the name of its file."""
    made = {}
    for store in dict.fromkeys(point.store for point in found):
        points = [point for point in found if point.store == store]
        series = {name: [(point.entries, point.times[name][0]) for point in points] for name in points[0].times}
        axes = plot.Axes(f"{store}: median of one call", "entries in one project", "seconds")
        made[f"growth-{store.lower().replace(', ', '-').replace(' ', '-')}.svg"] = plot.lines(series, axes)
    return made


def from_record(record: Sequence[dict[str, Any]]) -> list[Point]:
    """Points as they were kept."""
    return [Point(**{**one, "times": {name: tuple(times) for name, times in one["times"].items()}}) for one in record]
