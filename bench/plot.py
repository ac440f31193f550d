"""A line plot with logarithmic axes as SVG text, without any dependency, for pages that are read on GitHub.

The ground is transparent and every colour is of middle brightness, so that the plot can be read on a light page and on
a dark one. Lines are told apart by their mark and by a label at their end, not by colour alone. The same figures give
the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 40, 50  # room around the lines; labels stand on the right
COLOURS = ("#3b82f6", "#d97706", "#16a34a", "#a855f7", "#ef4444", "#0d9488", "#c026d3", "#808890")
INK, FAINT = "#808890", "#80889040"
LABEL_STEP = 15  # between two labels that would else stand on each other
PREFIXES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
Series = Mapping[str, Sequence[tuple[float, float]]]


class Axes(NamedTuple):
    title: str
    across: str
    up: str  # "seconds" are shown with a unit that suits them


def lines(series: Series, axes: Axes) -> str:
    """One line for each name, through its points. All figures must be above zero."""
    every = [point for points in series.values() for point in points]
    x = _Scale([point[0] for point in every], LEFT, WIDTH - RIGHT)
    y = _Scale([point[1] for point in every], HEIGHT - BOTTOM, TOP)
    parts = [_head(axes), *_across(x, axes), *_up(y, axes)]
    ends = _apart({name: y.at(points[-1][1]) for name, points in series.items()})
    for number, (name, points) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        places = [(x.at(across), y.at(up)) for across, up in points]
        path = " ".join(f"{left:.1f},{top:.1f}" for left, top in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [_mark(number, left, top, colour) for left, top in places]
        label = f'<text x="{WIDTH - RIGHT + 12}" y="{ends[name] + 4:.1f}" fill="{colour}">{escape(name)}</text>'
        left, top = places[-1]
        lead = f'<path d="M{left + 5:.1f},{top:.1f} L{WIDTH - RIGHT + 9},{ends[name]:.1f}" stroke="{FAINT}"/>'
        parts += [lead, label]
    return "\n".join([*parts, "</svg>", ""])


class _Scale:
    """From figures to places, by their logarithms; whole powers of ten have a line."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        self.low, self.high = math.floor(_log(min(values))), math.ceil(_log(max(values)))
        if self.low == self.high:
            self.high += 1
        self._begin, self._end = begin, end

    def at(self, value: float) -> float:
        share = (_log(value) - self.low) / (self.high - self.low)
        return self._begin + share * (self._end - self._begin)

    def powers(self) -> list[int]:
        return list(range(self.low, self.high + 1))


def _log(value: float) -> float:
    return round(math.log10(value), 9)  # so that 1000 is three, whatever the last bit says


def _head(axes: Axes) -> str:
    style = 'font-family="system-ui, sans-serif" font-size="12"'
    title = f'<text x="{LEFT}" y="22" fill="{INK}" font-size="14" font-weight="600">{escape(axes.title)}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" aria-label="{escape(axes.title)}" {style}>\n{title}'
    )


def _across(x: _Scale, axes: Axes) -> list[str]:
    made = []
    for power in x.powers():
        at = x.at(10.0**power)
        made.append(f'<path d="M{at:.1f},{TOP} V{HEIGHT - BOTTOM}" stroke="{FAINT}"/>')
        made.append(
            f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" fill="{INK}" text-anchor="middle">{10**power:,}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    made.append(
        f'<text x="{middle:.1f}" y="{HEIGHT - 10}" fill="{INK}" text-anchor="middle">{escape(axes.across)}</text>'
    )
    return made


def _up(y: _Scale, axes: Axes) -> list[str]:
    made = []
    for power in y.powers():
        at = y.at(10.0**power)
        made.append(f'<path d="M{LEFT},{at:.1f} H{WIDTH - RIGHT}" stroke="{FAINT}"/>')
        shown = _seconds(power) if axes.up == "seconds" else f"{10.0**power:,g}"
        made.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" fill="{INK}" text-anchor="end">{shown}</text>')
    return made


def _seconds(power: int) -> str:
    for least, unit in PREFIXES:
        if power >= round(math.log10(least)):
            return f"{10 ** (power - round(math.log10(least))):,} {unit}"
    return f"1e{power} s"


def _mark(number: int, left: float, top: float, colour: str) -> str:
    """A disc, a square or a diamond."""
    if number % 3 == 0:
        return f'<circle cx="{left:.1f}" cy="{top:.1f}" r="4" fill="{colour}"/>'
    turned = f' transform="rotate(45 {left:.1f} {top:.1f})"' if number % 3 == 2 else ""
    return f'<rect x="{left - 3.5:.1f}" y="{top - 3.5:.1f}" width="7" height="7" fill="{colour}"{turned}/>'


def _apart(wanted: Mapping[str, float]) -> dict[str, float]:
    """Where labels stand: near the ends of their lines, and never on each other."""
    placed: dict[str, float] = {}
    last = -math.inf
    for name, at in sorted(wanted.items(), key=lambda item: item[1]):
        last = max(at, last + LABEL_STEP)
        placed[name] = last
    over = last - (HEIGHT - BOTTOM)
    if over > 0:  # they were pushed out at the bottom: push back from there
        limit = math.inf
        for name in reversed(placed):
            limit = placed[name] = min(placed[name], limit - LABEL_STEP, HEIGHT - BOTTOM)
    return placed
