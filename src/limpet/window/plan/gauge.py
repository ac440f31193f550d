"""What fills the window, by section: a value for programs, a bar for people."""

from __future__ import annotations

from collections.abc import Mapping

from limpet.record import NamedTuple

FREE = "free"
OVER = "over the limit"
_NAME_MAX = 28  # columns for a section's name
_FULL, _PARTS = "█", " ▏▎▍▌▋▊▉"  # a column of the bar can be filled in eighths


class GaugeRow(NamedTuple):
    """One section: its tokens, and their share of the limit as a fraction (more than 1 if it alone is too large)."""

    name: str
    tokens: int
    share: float


class Gauge(NamedTuple):
    """Sizes are tokens."""

    limit: int
    used: int
    sections: Mapping[str, int]
    left_out: tuple[str, ...] = ()  # sections that were cut, and how to read the rest
    reused: int = 0  # at the start of the request, unchanged since the last one: what a prompt cache can serve

    @property
    def free(self) -> int:
        """Tokens left; negative if the window is too full."""
        return self.limit - self.used

    @property
    def rows(self) -> tuple[GaugeRow, ...]:
        return tuple(GaugeRow(name, tokens, self._share(tokens)) for name, tokens in self.sections.items())

    def _share(self, tokens: int) -> float:
        return tokens / self.limit if self.limit > 0 else 0.0


def bar(gauge: Gauge, *, width: int = 40, plain: bool = False) -> str:
    """A line per section with a bar, then the free space. `plain` draws in ASCII."""
    left = GaugeRow(
        FREE if gauge.free >= 0 else OVER, abs(gauge.free), abs(gauge.free) / gauge.limit if gauge.limit else 0
    )
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


def _percent(tokens: int, limit: int) -> str:
    if limit <= 0:
        return "-"
    percent = 100 * tokens / limit
    # A small share is not shown as 0 %, and an almost full window not as 100 %.
    if 0 < percent < 1:
        return "<1%"
    return f"{int(percent)}%" if percent < 100 else f"{round(percent)}%"


def _drawn(share: float, width: int, plain: bool) -> str:
    eighths = min(width * 8, max(1 if share > 0 else 0, round(share * width * 8)))
    if plain:
        return "#" * -(-eighths // 8)
    return _FULL * (eighths // 8) + _PARTS[eighths % 8].strip()
