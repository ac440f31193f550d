"""A text as a table: CSV, TSV, a Markdown table (the first of a document), a JSON list of objects, JSON Lines.

Of a JSON object the longest list of objects in it is the table.
"""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

_SEPARATORS = ("\t", ",", ";", "|")
# The line of dashes below the header of a Markdown table; at least one bar tells it from a mere rule.
_RULE = re.compile(
    r"^[ \t]{0,8}(?=[^\n]{0,400}\|)\|?[ \t]{0,40}:?-{1,200}:?"
    r"(?:[ \t]{0,40}\|[ \t]{0,40}:?-{1,200}:?){0,200}[ \t]{0,40}\|?[ \t\r]{0,8}$",
    re.MULTILINE,
)
_BAR = re.compile(r"(?<!\\)\|")


def table(text: str) -> tuple[list[str], list[list[str]]] | None:
    """Header and rows, or None when the text is no table."""
    records = _records(text)
    if records is not None:
        names = list(dict.fromkeys(name for record in records for name in record))
        return names, [[_cell(record.get(name, "")) for name in names] for record in records]
    plain = text.lstrip("\ufeff")
    drawn = _drawn(plain)
    if drawn is not None:
        return drawn
    head = plain.split("\n", 1)[0]
    separator = max(_SEPARATORS, key=head.count)
    if not head.count(separator):
        return None
    rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(plain, newline=""), delimiter=separator)]
    rows = [row for row in rows if row]
    return (rows[0], rows[1:]) if rows else None


def _drawn(text: str) -> tuple[list[str], list[list[str]]] | None:
    """The first Markdown table: a line with bars, a line of dashes below it, and the lines with bars that follow."""
    rule = _RULE.search(text)
    if rule is None:
        return None
    start = text.rfind("\n", 0, rule.start() - 1) + 1 if rule.start() else 0
    header = _cells(text[start : max(start, rule.start() - 1)])
    rows: list[list[str]] = []
    at = rule.end() + 1
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end]
        if "|" not in line:
            break
        rows.append(_cells(line))
        at = end + 1
    return (header, rows) if len(header) > 1 or text[start : rule.start()].lstrip().startswith("|") else None


def _cells(line: str) -> list[str]:
    """The cells of a line of a Markdown table; a bar after a backslash is part of one."""
    bare = line.strip().removeprefix("|")
    bare = bare if bare.endswith("\\|") else bare.removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in _BAR.split(bare)]


def _records(text: str) -> list[dict[str, Any]] | None:
    """Objects of a JSON list, of the longest such list in a JSON object, or one a line."""
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
        document = value
        lists = [inner for inner in value.values() if isinstance(inner, list)]
        value = max(lists, key=lambda inner: sum(isinstance(item, dict) for item in inner), default=[])
        value = value if any(isinstance(item, dict) for item in value) else [document]
    return [item for item in value if isinstance(item, dict)] or None


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
