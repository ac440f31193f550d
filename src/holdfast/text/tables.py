"""A text as a table: CSV, TSV, a Markdown table, a JSON list of objects (or an object with one inside), JSON Lines."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

_SEPARATORS = ("\t", ",", ";", "|")


def table(text: str) -> tuple[list[str], list[list[str]]] | None:
    """Header and rows, or None when the text is no table."""
    records = _records(text)
    if records is not None:
        names = list(dict.fromkeys(name for record in records for name in record))
        return names, [[_cell(record.get(name)) for name in names] for record in records]
    plain = text.lstrip("\ufeff")
    head = plain.split("\n", 1)[0]
    separator = max(_SEPARATORS, key=head.count)
    if not head.count(separator):
        return None
    found = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(plain, newline=""), delimiter=separator)]
    found = [row for row in found if row]
    if separator == "|":  # Markdown: empty cells at both ends, and a line of dashes below the header
        found = [row[1:-1] if row[0] == row[-1] == "" else row for row in found]
        found = [row for row in found if not all(set(cell) <= set(":- ") for cell in row)]
    return (found[0], found[1:]) if found else None


def _records(text: str) -> list[dict[str, Any]] | None:
    """Objects of a JSON list, of the only list in a JSON object, or one a line."""
    if not text.lstrip("\ufeff \t\r\n").startswith(("[", "{")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        try:
            value = [json.loads(line) for line in text.split("\n") if line.strip()]
        except (ValueError, RecursionError):
            return None
    if isinstance(value, dict):
        lists = [inner for inner in value.values() if isinstance(inner, list)]
        value = lists[0] if len(lists) == 1 else [value]
    return [one for one in value if isinstance(one, dict)] or None


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
