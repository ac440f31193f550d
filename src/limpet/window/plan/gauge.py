"""What fills the window, section by section: rows for programs, a bar for people, one line for agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

FREE = "free"
OVER = "over the limit"
_NAME_MAX = 28  # columns for a section's name
_FULL, _PARTS = "█", " ▏▎▍▌▋▊▉"  # a column of the bar can be filled in eighths


class Row(NamedTuple):
    """One section: its tokens, and their share of the limit as a fraction (more than 1 when it alone is too large)."""

    name: str
    tokens: int
    share: float


class Gauge(NamedTuple):
    rows: tuple[Row, ...]
    used: int
    limit: int

    @property
    def free(self) -> int:
        """Tokens left; below zero when the window is too full."""
        return self.limit - self.used


def measure(sections: Sequence[tuple[str, int]], limit: int) -> Gauge:
    """The sections in the order given; those of the same name are added up, empty ones stay."""
    added: dict[str, int] = {}
    for name, tokens in sections:
        added[name] = added.get(name, 0) + tokens
    rows = tuple(Row(name, tokens, tokens / limit if limit > 0 else 0.0) for name, tokens in added.items())
    return Gauge(rows, sum(added.values()), limit)


def bar(gauge: Gauge, *, width: int = 40, plain: bool = False) -> str:
    """A line for each section with a bar, then what is free. `plain` draws with ASCII signs only."""
    left = Row(FREE if gauge.free >= 0 else OVER, abs(gauge.free), abs(gauge.free) / gauge.limit if gauge.limit else 0)
    rows = [*gauge.rows, left]
    names = min(_NAME_MAX, max(len(row.name) for row in rows))
    digits = max(len(f"{row.tokens:,}") for row in rows)
    lines = [f"window: {gauge.used:,} of {gauge.limit:,} tokens ({_percent(gauge.used, gauge.limit)})"]
    for row in rows:
        drawn = _drawn(row.share, width, plain)
        name = row.name if len(row.name) <= names else row.name[: names - 1] + "…"
        lines.append(
            f"{name:<{names}}  {row.tokens:>{digits},}  {_percent(row.tokens, gauge.limit):>6}  {drawn}".rstrip()
        )
    return "\n".join(lines)


def line(gauge: Gauge) -> str:
    """The same in one line that costs an agent few tokens; sections without anything are left out."""
    state = f"{gauge.free} free" if gauge.free >= 0 else f"{-gauge.free} {OVER}"
    parts = ", ".join(f"{row.name} {row.tokens}" for row in gauge.rows if row.tokens)
    head = f"window {_percent(gauge.used, gauge.limit)} ({gauge.used}/{gauge.limit} tokens, {state})"
    return f"{head}: {parts}" if parts else head


def _percent(tokens: int, limit: int) -> str:
    if limit <= 0:
        return "-"
    percent = 100 * tokens / limit
    # Nothing that is there is shown as nothing, and nothing short of full as full.
    if 0 < percent < 1:
        return "<1%"
    return f"{int(percent)}%" if percent < 100 else f"{round(percent)}%"


def _drawn(share: float, width: int, plain: bool) -> str:
    eighths = min(width * 8, max(1 if share > 0 else 0, round(share * width * 8)))
    if plain:
        return "#" * -(-eighths // 8)
    return _FULL * (eighths // 8) + _PARTS[eighths % 8].strip()
