"""JSON Lines, and JSON values written one after another: the same as rows of a JSON array."""

from __future__ import annotations

import json

from limpet.previews.core import Sheet, Text, clip, plural, spread
from limpet.previews.json_shape import Rows, biggest, show_rows

_MOST_LINES = 20_000
_MOST_VALUES = 2_000
_MOST_FIRST = 200_000  # Characters in which a second value must begin.


def score(text: Text) -> float:
    """How many of the lines are JSON objects; or that one JSON value follows on another."""
    if text.content[:200].lstrip()[:1] not in {"{", "["}:
        return 0.0
    sample = [line.strip() for line in text.sample[:60]]
    complete = [line for line in sample if line[:1] in "{[" and (line[-1:] in "}]" or len(line) >= 399)]
    if len(sample) >= 2 and len(complete) * 5 >= len(sample) * 4:
        return 0.95 if any(_value(line) is not None for line in text.lines[:5]) else 0.0
    return 0.85 if len(_values(text.content[:_MOST_FIRST], 2)) >= 2 else 0.0


def render(text: Text, sheet: Sheet) -> None:
    """The rows of the records, and how many lines are no JSON."""
    lines = text.lines if text.big else [line for line in text.lines if line.strip()]
    chosen = spread(len(lines), text.most(_MOST_LINES))
    values = [_value(lines[at]) for at in chosen]
    records = [value for value in values if isinstance(value, dict)]
    if len(records) * 2 > len(values):
        broken = sum(value is None for value in values)
        note = f", {plural(broken, 'line')} no JSON" if broken else ""
        sheet.add(f"one JSON object a line{note}", at=0)
        if broken:
            bad = next(lines[at] for at, value in zip(chosen, values, strict=True) if value is None)
            sheet.add(f"no JSON: {clip(bad, 120)}", at=1)
        rows: Rows | None = Rows("", records, None)
    else:
        sequence = _values(text.content, _MOST_VALUES)
        sheet.add(f"{plural(len(sequence), 'JSON value')} one after another", at=0)
        joined = [each for value in sequence for each in (value if isinstance(value, list) else [value])]
        rows = biggest(joined)
    if rows is not None:
        show_rows(rows, sheet, '": ' in text.content[:4000])


def _value(line: str) -> object:
    line = line.strip()
    if line[:1] not in {"{", "["}:
        return None
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value


def _values(content: str, most: int) -> list[object]:
    decoder = json.JSONDecoder()
    values: list[object] = []
    at = len(content) - len(content.lstrip())
    while at < len(content) and len(values) < most and content[at] in "{[":
        try:
            value, end = decoder.raw_decode(content, at)
        except (ValueError, RecursionError):
            break
        values.append(value)
        at = end
        while at < len(content) and content[at] in " \n\t,":
            at += 1
    return values
