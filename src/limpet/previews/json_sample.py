"""A JSON list that is too long to be parsed for a preview: how it begins, and rows from all over it.

The beginning is parsed as far as it goes, which tells where the list stands, how a row looks and what stands between
two of them. Wherever that separator is found again, another row begins; so rows from any place can be read alone, and
counting the separators counts the rows.
"""

from __future__ import annotations

import json
from typing import NamedTuple

HEAD = 12_000  # Characters of the beginning that are parsed.
ROWS = 40  # Rows from all over the list.
_SPACE = " \t\r\n"
_DECODER = json.JSONDecoder()


class Sample(NamedTuple):
    """The value as far as its head tells, where its rows are, rows from all over them, and about how many there are."""

    value: object
    path: str
    rows: list[dict[str, object]]
    read: int  # rows in `value`
    total: int


class _Open(NamedTuple):
    """The list that goes on beyond the head: where it stands, its items, and what is between two of them."""

    path: str
    items: list[object]
    separator: str
    start: int
    end: int


def sample(content: str) -> Sample | None:
    """Rows of the list that makes most of the text; None when it is made otherwise."""
    opened: list[_Open] = []
    value = _partial(content[:HEAD], len(content) - len(content.lstrip()), "", opened)
    rows = [item for item in opened[0].items if isinstance(item, dict)] if opened else []
    if len(rows) < 3 or len(rows) < len(opened[0].items) or not opened[0].separator:
        return None
    cut, read, usual = opened[0], len(rows), set(rows[0])
    places = [len(content) * number // ROWS for number in range(1, ROWS)]
    for place in [*(place for place in places if place > cut.end), content.rfind(cut.separator)]:
        # What is in a row may be separated as rows are, and has other members.
        rows += [row for row in _row(content, cut.separator, place) if len(usual & set(row)) * 2 >= len(usual)]
    alike = content.count(cut.separator, cut.start, cut.end) + 1
    return Sample(value, cut.path, rows, read, round((content.count(cut.separator) + 1) * read / alike))


def _row(content: str, separator: str, place: int) -> list[dict[str, object]]:
    """The next row after this place, when one can be read there."""
    at = content.find(separator, max(0, place))
    try:
        value, _ = _DECODER.raw_decode(content, at + len(separator) - 1) if at >= 0 else (None, 0)
    except (ValueError, RecursionError):
        return []
    return [value] if isinstance(value, dict) else []


def _partial(head: str, at: int, path: str, opened: list[_Open]) -> object:
    """The value at this place. Of one that does not end in the head, what is there; the list that is cut is noted."""
    try:
        return _DECODER.raw_decode(head, at)[0]
    except (ValueError, RecursionError):
        pass
    if path.count("/") > 20:
        return None
    if head[at : at + 1] == "[":
        return _items(head, at + 1, path, opened)
    return _members(head, at + 1, path, opened) if head[at : at + 1] == "{" else None


def _items(head: str, at: int, path: str, opened: list[_Open]) -> list[object]:
    items: list[object] = []
    separator = ""
    begun = ended = at = _skip(head, at, "")
    while at < len(head):
        try:
            value, end = _DECODER.raw_decode(head, at)
        except (ValueError, RecursionError):
            break
        items.append(value)
        at = _skip(head, end, ",")
        separator = head[end - 1 : at + 1]
        ended = end
    opened.append(_Open(path, items, separator, begun, ended))
    return items


def _members(head: str, at: int, path: str, opened: list[_Open]) -> dict[str, object]:
    members: dict[str, object] = {}
    at = _skip(head, at, "")
    while at < len(head) and head[at] == '"' and not opened:
        try:
            name, end = _DECODER.raw_decode(head, at)
        except ValueError:
            break
        at = _skip(head, end, ":")
        try:
            members[name], end = _DECODER.raw_decode(head, at)
        except (ValueError, RecursionError):
            members[name] = _partial(head, at, f"{path}/{name}", opened)
            break
        at = _skip(head, end, ",")
    return members


def _skip(head: str, at: int, sign: str) -> int:
    """The place after blanks and at most one such sign."""
    while at < len(head) and head[at] in _SPACE:
        at += 1
    if sign and head[at : at + 1] == sign:
        at += 1
        while at < len(head) and head[at] in _SPACE:
            at += 1
    return at
