"""A text cut into the units that a question is answered with, and how the units lie inside each other.

A unit is a line. A long line is cut further: JSON after each member, XML before each tag, anything else between words,
so that a 5 MB line is as readable as a log. What encloses a unit is told by depth: indentation, headings of Markdown,
files and hunks of a diff, and inside a long line its own brackets and tags. Depth is worked out only for the units that
are looked at, as most of a large text is not.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

LONG_LINE = 600  # characters; a longer line is cut into units
_PIECE = 240  # characters of a piece of plain text in a long line
_SHORTEST = 40  # characters; JSON members shorter than this are joined, for fewer units
_WALK = 2_000  # units walked over in search of what encloses a unit
_LEVELS = 12  # enclosing units that are looked at
_BLANKS = 20  # blank lines walked over to see how deep they lie
_CELLS = 200  # units looked at to tell a table from prose
_UNDER_HEADING = 1_000  # depth a level of headings adds: more than any indentation that is looked at

_MEMBER = re.compile(r'(?:[^",{}\[\]]|"(?:[^"\\]|\\.)*+(?:"|\Z))*+(,|[{\[][{\[\s]*+|[}\]][}\]\s]*+,?|\Z)', re.S)
_TAG = re.compile(r"<[^>]*>[^<]*(?:</[^>]*>\s*)*|[^<]+|<")
_WORDS = re.compile(rf".{{1,{_PIECE}}}(?:[\s,;]|\\n|\Z)|.{{1,{_PIECE}}}", re.S)
_HEADING = re.compile(r"(#{1,6})\s+\S|(diff --git |Index: )|(@@ )|(=+\s\S.*\S\s=+\s*\Z)|(_{3,} .+ _{3,}\s*\Z)")
_RULE = re.compile(r"[\s|+:=─━-]*[-=─━]{3}[\s|+:=─━-]*\Z")
_COLUMNS = re.compile(r"\S(?:\s{2,}|\t|\s*\|\s*)(?=\S)")


class Units:
    """The units of a text by number. `starts[i]` is where unit i begins; it ends where the next one begins."""

    def __init__(self, text: str) -> None:
        self.text = text
        lines = text.split("\n")
        line_starts = [0, *accumulate(len(line) + 1 for line in lines)]
        self.starts: list[int] = line_starts[:-1]
        self._inner: dict[int, int] = {}  # depth by unit, known for units inside long lines
        if any(len(line) > LONG_LINE for line in lines):
            self.starts = self._cut_long(lines, line_starts)
        self.line_starts = line_starts[:-1]
        self.starts.append(len(text) + 1)
        self.count = len(self.starts) - 1
        self._depths: dict[int, int] = {}
        self._headings: dict[int, int] | None = None
        self._parents: dict[int, int | None] = {}
        self._tops: dict[int, int | None] = {}

    def _cut_long(self, lines: list[str], line_starts: list[int]) -> list[int]:
        starts: list[int] = []
        for line, start in zip(lines, line_starts, strict=False):
            if len(line) <= LONG_LINE:
                starts.append(start)
                continue
            for at, depth in pieces(line):
                self._inner[len(starts)] = depth
                starts.append(start + at)
        return starts

    def __getitem__(self, unit: int) -> str:
        """The unit's text, without its newline."""
        return self.text[self.starts[unit] : self.starts[unit + 1]].rstrip("\r\n")

    def at(self, position: int) -> int:
        return bisect_right(self.starts, position, 0, self.count) - 1

    def line(self, unit: int) -> int:
        """The line a unit lies in, from 1."""
        return bisect_right(self.line_starts, self.starts[unit])

    def same_line(self, unit: int, other: int) -> bool:
        return self.line(unit) == self.line(other)

    def in_long_line(self, unit: int) -> bool:
        return unit in self._inner

    def first_of_line(self, unit: int) -> int:
        return self.at(self.line_starts[self.line(unit) - 1])

    def blank(self, unit: int) -> bool:
        return not self[unit].strip()

    def depth(self, unit: int) -> int:
        """How deep a unit lies. Blank lines lie as deep as what comes before them."""
        known = self._depths.get(unit)
        if known is not None:
            return known
        shown = self[unit]
        asked, first = unit, max(0, unit - _BLANKS)
        while unit > first and not shown.strip() and unit not in self._inner:
            unit -= 1
            shown = self[unit]
        own = self._inner.get(unit)
        depth = len(shown) - len(shown.lstrip()) if own is None else own
        level = _level(shown) if own is None else None
        depth = level * _UNDER_HEADING - 1 if level else depth + self._heading_above(unit) * _UNDER_HEADING
        self._depths[asked] = depth
        return depth

    def _heading_above(self, unit: int) -> int:
        """The level of the heading a unit stands under, 0 if there is none."""
        if self._headings is None:
            self._headings = self._find_headings()
            self._heading_units = sorted(self._headings)
        before = bisect_right(self._heading_units, unit)
        return self._headings[self._heading_units[before - 1]] if before else 0

    def _find_headings(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for mark in ("\n#", "\ndiff --git ", "\nIndex: ", "\n@@ ", "\n==", "\n___"):
            at = self.text.find(mark[1:]) if self.text.startswith(mark[1:]) else self.text.find(mark)
            while at >= 0 and len(found) < 100_000:
                unit = self.at(at + 1 if self.text[at] == "\n" else at)
                level = _level(self[unit])
                if level:
                    found[unit] = level
                at = self.text.find(mark, at + 1)
        return found

    def above(self, unit: int) -> list[int]:
        """What encloses a unit, nearest first."""
        found: list[int] = []
        at = self._parent(unit)
        while at is not None and len(found) < _LEVELS:
            found.append(at)
            at = self._parent(at)
        heading = self._enclosing_heading(found[-1] if found else unit)
        return [*found, heading] if heading is not None and heading not in found else found

    def _parent(self, unit: int) -> int | None:
        """The nearest unit before that lies less deep. What is known of units on the way is used to skip others."""
        if unit in self._parents:
            return self._parents[unit]
        depth = self._outer_depth(unit)
        at: int | None = unit - 1 if depth > 0 and unit > 0 else None
        for _ in range(_WALK):
            if at is None or (self.depth(at) < depth and not self.blank(at) and not _closes(self[at])):
                break
            skip = self._parents.get(at, -1) if self.depth(at) >= depth else -1
            at = skip if skip != -1 else at - 1 if at > 0 else None
        else:
            at = None
        self._parents[unit] = at
        return at

    def _outer_depth(self, unit: int) -> int:
        """The depth that encloses no more of a unit: for a heading that of its level."""
        depth = self.depth(unit)
        return depth - _UNDER_HEADING + 1 if depth % _UNDER_HEADING == _UNDER_HEADING - 1 else depth

    def _enclosing_heading(self, unit: int) -> int | None:
        if not self._headings:
            return None
        before = bisect_right(self._heading_units, unit)
        nearest = self._heading_units[before - 1] if before else None
        return None if nearest == unit else nearest

    def block(self, unit: int, most: int) -> range:
        """The unit and all that it encloses, with the closing bracket; longer than `most` units it is cut there."""
        depth = self._outer_depth(unit)
        end = unit + 1
        while end < self.count and end - unit < most and (self.depth(end) > depth or self.blank(end)):
            end += 1
        if end < self.count and end - unit > 1 and self.depth(end) == depth and _closes(self[end]):
            end += 1
        while end - 1 > unit and self.blank(end - 1):
            end -= 1
        return range(unit, end)

    def table_top(self, unit: int) -> int | None:
        """The header of the table with aligned columns that a unit stands in."""
        if unit in self._inner and self.first_of_line(unit) == unit:
            return None
        if not _COLUMNS.search(self[unit]):
            return None
        top, at = unit, unit - 1
        walked: list[int] = [unit]
        found: int | None = None
        while at >= 0 and unit - at < 5 * _WALK:
            if at in self._tops:
                found = self._tops[at]
                break
            shown = self[at]
            if not (_RULE.match(shown) or _COLUMNS.search(shown) or shown.startswith((" ", "\t"))):
                found = self._as_header(top)
                break
            if shown.strip() and not _RULE.match(shown):
                top = at
            walked.append(at)
            at -= 1
        else:
            found = self._as_header(top)
        self._tops.update(dict.fromkeys(walked, found))
        return found if found != unit else None

    def _as_header(self, top: int) -> int | None:
        shown = self[top]
        return top if re.search(r"[A-Za-z]{2}", shown) and sum(map(str.isdigit, shown)) * 5 < len(shown) else None

    def separated(self) -> bool:
        """Whether the text is a table with separators, so that its first line names the columns."""
        first = self[0] if self.count else ""
        for sign in (",", "\t", ";", "|"):
            columns = first.count(sign)
            if columns < 1 or re.search(r'[{\[]\s*"', first):
                continue
            rows = [
                self.text[a : b - 1] for a, b in zip(self.line_starts[1:_CELLS], self.line_starts[2:], strict=False)
            ]
            rows = [row for row in rows if row.strip()]
            if len(rows) >= 2 and sum(row.count(sign) >= columns for row in rows) >= 0.9 * len(rows):
                return _COLUMN_NAMES.search(first) is not None
        return False


_COLUMN_NAMES = re.compile(r"\A[^\d:=\[(]*[A-Za-z_][^:=\[(]*\Z")


def _level(shown: str) -> int | None:
    """The level of a heading: the number of signs in Markdown, 1 for the file of a diff, 2 for its hunks."""
    match = _HEADING.match(shown)
    if not match:
        return None
    return len(match[1]) if match[1] else 2 if match[3] or match[5] else 1


def _closes(shown: str) -> bool:
    return shown.strip()[:1] in ("}", "]", ")") or shown.lstrip().startswith("</")


def pieces(line: str) -> list[tuple[int, int]]:
    """Where the units of a long line begin, and how deep each of them lies."""
    head = line[:2_000]
    if head.lstrip()[:1] in ("{", "[") and re.search(r'"\s*:|\[\s*[{"\[\d]', head):
        return _json_pieces(line)
    if head.count("<") > 5 and re.search(r"</\w|/>", head):
        return _tag_pieces(line)
    return [(m.start(), 0 if m.start() == 0 else 1) for m in _WORDS.finditer(line)]


def _json_pieces(line: str) -> list[tuple[int, int]]:
    """A unit ends with a bracket or, when it is not too short for one, with a comma."""
    found: list[tuple[int, int]] = []
    depth, start = 0, 0
    for match in _MEMBER.finditer(line):
        end, last = match.end(), match[1]
        closing = last[:1] in ("}", "]")
        if end - start > LONG_LINE:
            found.append((start, depth))
            found.extend((m.start(), depth + 1) for m in list(_WORDS.finditer(line, start, end))[1:])
            start = end
        elif end - start > _SHORTEST or last != ",":
            found.append((start, depth - (closing and not line[start : match.start(1)].strip())))
            start = end
        if last != ",":
            depth += last.count("{") + last.count("[") - last.count("}") - last.count("]")
        if end >= len(line):
            break
    return found or [(0, 0)]


def _tag_pieces(line: str) -> list[tuple[int, int]]:
    """A unit begins with each opening tag; closing tags stay with what they close."""
    found: list[tuple[int, int]] = []
    depth = 0
    for match in _TAG.finditer(line):
        tag = match.group()
        found.append((match.start(), depth))
        if len(tag) > LONG_LINE:
            found.extend((m.start(), depth + 1) for m in list(_WORDS.finditer(line, *match.span()))[1:])
        opens = tag[:1] == "<" and tag[1:2] not in ("/", "?", "!") and tag.find("/>", 0, tag.find(">") + 1) < 0
        depth = max(0, depth + opens - tag.count("</"))
    return found
