"""What the values of one column have in common: range, distinct values, gaps. Tables and JSON rows use it alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from limpet.previews.core import clip, number

MOST_ROWS = 2_000  # Rows that are profiled; of more, evenly chosen ones.
_NUMBER = re.compile(r"[-+]?\d{1,18}(?:\.\d{0,18})?(?:[eE][-+]?\d{1,3})?")
_OPAQUE = re.compile(r"[A-Za-z0-9+/_=-]{16,}")
_FEW = 6
# Asked of every value, and a tuple answers in half the time of a union.
NESTED = (dict, list)
_NUMBERS = (int, float)


def as_number(value: object) -> float | None:
    """The value as a number when it is one or is written like one."""
    if isinstance(value, str):
        bare = value.strip()  # which knows more blanks than `float`
        return float(bare) if _NUMBER.fullmatch(bare) else None
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        return None
    return value if abs(value) < 1e300 else None


def opaque(value: object) -> bool:
    """Whether the value is an address or a code that tells a reader nothing."""
    if not isinstance(value, str):
        return False
    if value.startswith(("http://", "https://", "data:", "git@", "git://")):
        return True
    if not _OPAQUE.fullmatch(value) or " " in value:
        return False
    return any(letter.isdigit() for letter in value) or value.endswith("=")


def profile(name: str, values: Sequence[object], as_numbers: Sequence[float | None]) -> str:
    """One line about a column: `age: 3-90`, `state: open 12, closed 3`, `name: 311 distinct, e.g. …`."""
    present = [value for value in values if value is not None and value != ""]
    gaps = len(values) - len(present)
    tail = f", {gaps:,} empty" if gaps else ""
    if not present:
        return f"{name}: all empty"
    numbers = [each for each in as_numbers if each is not None]
    simple = [clip(str(value), 40) for value in present if not isinstance(value, NESTED)]
    counts = Counter(simple)
    if len(numbers) == len(present) and len(counts) > _FEW:
        return f"{name}: {number(min(numbers))} to {number(max(numbers))}{tail}"
    if len(counts) == 1 and len(simple) == len(present):
        return f"{name}: {simple[0]}{' (always)' if len(present) > 1 else ''}{tail}"
    if simple and len(counts) <= _FEW and len(counts) * 2 <= len(simple):
        return f"{name}: " + ", ".join(f"{value} {times}" for value, times in _ordered(counts)) + tail
    return f"{name}: {_many(simple, counts) if simple else _nested(present)}{tail}"


def _many(simple: Sequence[str], counts: Counter[str]) -> str:
    """Many different values: from when to when for dates, else how many and the most frequent one."""
    ordered = _dates(simple)
    if ordered:
        return f"{ordered[0]} to {ordered[1]}"
    top, times = _ordered(counts)[0]
    often = f", most often {top} {times}" if times > 1 and times * 20 > len(simple) else ""
    return f"{len(counts):,} distinct{often}"


def _ordered(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def _dates(values: Sequence[str]) -> tuple[str, str] | None:
    if all(len(value) >= 8 and value[:4].isdigit() and value[4] in "-/" for value in values):
        return min(values), max(values)
    return None


def _nested(values: Sequence[object]) -> str:
    lists = [value for value in values if isinstance(value, list)]
    if lists:
        sizes = [len(value) for value in lists]
        return f"list of {min(sizes)}-{max(sizes)}" if min(sizes) != max(sizes) else f"list of {sizes[0]}"
    keys = Counter(key for value in values if isinstance(value, dict) for key in list(value)[:20])
    return "{" + ", ".join(clip(str(key), 30) for key, _ in keys.most_common(6)) + "}"
