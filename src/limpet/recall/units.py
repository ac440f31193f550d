"""A text cut into the units that a question is answered with, and how the units are nested.

A unit is a line. A long line is cut further: JSON after each member, XML before each tag, anything else between words,
so that a 5 MB line is as readable as a log. Nesting follows from depth: indentation, headings, and inside a long line
its own brackets and tags. Headings are those of Markdown and TOML, files and hunks of a diff, commits of a history,
steps of a job, statements of a session, threads of a trace. Depth is computed lazily, because most units of a large
text are not examined.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from itertools import count as counted
from operator import add

LONG_LINE = 600  # characters; a longer line is cut into units
_PIECE = 240  # characters of a piece of plain text in a long line
_SHORTEST = 40  # characters; JSON members shorter than this are joined, for fewer units
_WALK = 2_000  # units walked over in search of what encloses a unit
_VERY_LONG = 1_000_000  # characters; a line longer than this is cut where the words of the question are
_REACH = 2_000  # characters before such a place, in which its object or tag may begin
_LEVELS = 12  # enclosing units that are examined
_BLANKS = 20  # blank lines walked over to get their depth
_CELLS = 200  # units examined to distinguish a table from prose
_UNDER_HEADING = 1_000  # depth a level of headings adds: more than any indentation

_MEMBER = re.compile(r'(?:[^",{}\[\]]|"(?:[^"\\]|\\.)*+(?:"|\Z))*+(,|[{\[][{\[\s]*+|[}\]][}\]\s]*+,?|\Z)', re.S)
_TAG = re.compile(r"<[^>]*>[^<]*(?:</[^>]*>\s*)*|[^<]+|<")
_WORDS = re.compile(rf".{{1,{_PIECE}}}(?:[\s,;]|\\n|\Z)|.{{1,{_PIECE}}}", re.S)
_STATEMENTS = "SELECT INSERT UPDATE DELETE CREATE ALTER DROP EXPLAIN VACUUM SET select insert update create explain"
# Levels: the number of signs in Markdown; 1 where no group is named below.
_HEADING = re.compile(
    r"(?P<signs>#{1,6}) \S"
    r"|(?P<second>@@ |_{3,} .+ _{3,}\s*\Z|---- .+ ----\s*\Z|thread '[^'\n]{0,200}' .*panicked at )"
    r"|diff --git |Index: |=+\s\S.*\S\s=+\s*\Z"
    r"|commit [0-9a-f]{7,40}\b|\[{1,2}[\w.\"'-]{1,80}\]{1,2}\s*\Z|goroutine \d{1,9} \["
    r"|##\[group\]|::group::|Step \d{1,4}\b(?!.*(?:finished|done|ok))|> Task :|==> |\[\d{1,4}/\d{1,4}\] "
    rf"|(?:{'|'.join(_STATEMENTS.split())}) .*;\s*\Z"
)
_COMMIT, _FILE, _HUNK = "commit ", "diff --git ", "@@ "
_FILES = 6  # of a commit whose changes are looked at
_NAMES_FILE = re.compile(
    r"index [0-9a-f]{4,64}\.\.|--- |\+\+\+ "
)  # between the heading of a file in a diff and its hunks
_CHANGE = 60  # lines of a change in each direction that are examined
_CHANGE_NEAR = 3  # lines of a hunk from one that is as it was to the change that it is beside
_FIRST = frozenset("#@_-=[:>" + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "cdegistu")  # what a line with a heading begins with
_TAP = re.compile(r"(?m)^(?:not )?ok \d")  # where a line that begins with a number sign is a comment
_ITEM = re.compile(r"\s*- [\w\"'$.-]{1,80}:(?:\s|\Z)")  # of a list in YAML, which may be as far left as its name
_FIELDS = re.compile(r"(?:[A-Z][\w-]{1,40}: \S.*\n(?:[ \t].*\n)*){3}")
_TRIED = 200_000  # lines that may be headings
_FRAME_END = re.compile(r"\r+")
_RULE = re.compile(r"[\s|+:=─━-]*[-=─━]{3}[\s|+:=─━-]*\Z")
_COLUMNS = re.compile(r"\S(?:\s{2,}|\t|\s*\|\s*)(?=\S)")


class Units:
    """The units of a text by number. `starts[i]` is where unit i begins; it ends where the next one begins."""

    def __init__(self, text: str, windows: Callable[[], Sequence[tuple[int, int]]] = list) -> None:
        """`windows` gives the parts of the text, in order, in which a very long line is cut; elsewhere it is left."""
        self.text = text
        lines = self._lines = text.split("\n")
        sizes = list(map(len, lines))
        line_starts = [0, *map(add, accumulate(sizes), counted(1))]
        self.starts: list[int] = line_starts[:-1]
        self._inner: dict[int, int] = {}  # depth by unit, for units inside long lines
        self.uncut: set[int] = set()  # parts of a very long line that are no units to be shown
        if max(sizes) > LONG_LINE:
            self.starts = self._cut_long(lines, line_starts, windows)
        self.line_starts = line_starts[:-1]
        self.starts.append(len(text) + 1)
        self.count = len(self.starts) - 1
        self._depths: dict[int, int] = {}
        self._headings: dict[int, int] | None = None
        self._parents: dict[int, int | None] = {}
        self._tops: dict[int, int | None] = {}
        self._comments = _TAP.search(text, 0, 40_000) is not None

    def _cut_long(
        self, lines: list[str], line_starts: list[int], windows: Callable[[], Sequence[tuple[int, int]]]
    ) -> list[int]:
        starts: list[int] = []
        parts: Sequence[tuple[int, int]] | None = None
        for line, start in zip(lines, line_starts, strict=False):
            if len(line) <= LONG_LINE:
                starts.append(start)
            elif len(line) <= _VERY_LONG:
                self._add_pieces(starts, line, start, 0)
            else:
                parts = windows() if parts is None else parts
                self._cut_windows(starts, line, start, parts)
        return starts

    def _add_pieces(self, starts: list[int], line: str, start: int, base: int) -> None:
        for at, depth in pieces(line):
            self._inner[len(starts)] = base + depth
            starts.append(start + at)

    def _cut_windows(self, starts: list[int], line: str, start: int, windows: Sequence[tuple[int, int]]) -> None:
        """Cuts a very long line in its windows, each from the beginning of an object or a tag on."""
        done = 0
        for low, high in windows:
            begin, end = max(done, low - start), min(len(line), high - start)
            if begin >= end:
                continue
            opening = max(line.rfind("{", done, begin + 1), line.rfind("<", done, begin + 1))
            begin = opening if opening >= 0 and begin - opening <= _REACH else begin
            if begin > done:
                self._leave(starts, start + done)
            self._add_pieces(starts, line[begin:end], start + begin, _LEVELS)
            done = end
        if done < len(line):
            self._leave(starts, start + done)

    def _leave(self, starts: list[int], at: int) -> None:
        self.uncut.add(len(starts))
        self._inner[len(starts)] = 0
        starts.append(at)

    def __getitem__(self, unit: int) -> str:
        """The unit's text, without its newline."""
        return self.text[self.starts[unit] : self.starts[unit + 1]].rstrip("\r\n")

    def at(self, position: int) -> int:
        return bisect_right(self.starts, position, 0, self.count) - 1

    def line(self, unit: int) -> int:
        """The line of a unit, from 1."""
        return bisect_right(self.line_starts, self.starts[unit])

    def same_line(self, first: int, second: int) -> bool:
        return self.line(first) == self.line(second)

    def in_long_line(self, unit: int) -> bool:
        return unit in self._inner

    def first_of_line(self, unit: int) -> int:
        return self.at(self.line_starts[self.line(unit) - 1])

    def blank(self, unit: int) -> bool:
        return unit in self.uncut or not self[unit].strip()

    def depth(self, unit: int) -> int:
        """The depth of a unit. Blank lines have the depth of what comes before them."""
        cached = self._depths.get(unit)
        if cached is not None:
            return cached
        text = self[unit]
        argument, first = unit, max(0, unit - _BLANKS)
        while unit > first and not text.strip() and unit not in self._inner:
            unit -= 1
            text = self[unit]
        own = self._inner.get(unit)
        depth = len(text) - len(text.lstrip()) + (_ITEM.match(text) is not None) if own is None else own
        level = self.heading(unit) if own is None else None
        depth = level * _UNDER_HEADING - 1 if level else depth + self._heading_above(unit) * _UNDER_HEADING
        self._depths[argument] = depth
        return depth

    def heading(self, unit: int, usual: int | None = None) -> int | None:
        """The level of a unit that is a heading; `usual` for any other."""
        return self._all_headings().get(unit, usual)

    def in_hunk(self, unit: int) -> bool:
        """Whether a unit is a line of a hunk of a diff."""
        return self._heading_text(unit).startswith(_HUNK)

    def repeats_name(self, unit: int) -> bool:
        """Whether a unit says once more what the heading above it says: the lines of a diff that name its file."""
        return _NAMES_FILE.match(self[unit]) is not None and self._heading_text(unit).startswith(_FILE)

    def change(self, unit: int) -> range:
        """The lines that were removed and added together, of which a line of a hunk is one, or that are next to it."""
        near = (at for step in range(_CHANGE_NEAR + 1) for at in ((unit + step, unit - step) if step else (unit,)))
        first = next((at for at in near if self._changed(at)), None)
        if first is None:
            return range(unit, unit)
        last = next((at for at in range(first, first + _CHANGE) if not self._changed(at + 1)), first + _CHANGE)
        first = next((at for at in range(first, first - _CHANGE, -1) if not self._changed(at - 1)), first - _CHANGE)
        return range(first, last + 1)

    def changes_below(self, unit: int) -> list[list[int]]:
        """By file, the lines that a commit or a file of a diff changes, if the unit is its heading or its message."""
        self._all_headings()
        at = bisect_right(self._heading_units, unit) - 1
        top = self._beginning(self._heading_units[at]) if at >= 0 else ""
        if not top.startswith((_COMMIT, _FILE)):
            return []
        files: list[list[int]] = [] if top.startswith(_COMMIT) else [[]]
        for below, end in pairwise([*self._heading_units[at + 1 :], self.count]):
            text = self._beginning(below)
            if text.startswith(_HUNK) and files:
                most = min(end, below + _WALK - len(files[-1]))
                files[-1] += [line for line in range(below + 1, most) if self._changed(line)]
            elif text.startswith(_FILE) and top.startswith(_COMMIT) and len(files) < _FILES:
                files.append([])
            else:
                break
        return [lines for lines in files if lines]

    def _changed(self, unit: int) -> bool:
        return 0 <= unit < self.count and self[unit][:1] in ("+", "-") and self.in_hunk(unit)

    def _heading_text(self, unit: int) -> str:
        """The beginning of the heading above a unit that is none itself."""
        self._all_headings()
        before = bisect_right(self._heading_units, unit)
        heading = self._heading_units[before - 1] if before else unit
        return "" if heading == unit else self._beginning(heading)

    def _beginning(self, unit: int) -> str:
        return self.text[self.starts[unit] : self.starts[unit] + _SHORTEST]

    def _heading_above(self, unit: int) -> int:
        """The level of the heading above a unit, 0 if there is none."""
        headings = self._all_headings()
        before = bisect_right(self._heading_units, unit)
        return headings[self._heading_units[before - 1]] if before else 0

    def _all_headings(self) -> dict[int, int]:
        if self._headings is None:
            self._headings = self._find_headings()
            self._heading_units = sorted(self._headings)
        return self._headings

    def _find_headings(self) -> dict[int, int]:
        headings: dict[int, int] = {}
        lines = self._lines
        for number in [at for at, line in enumerate(lines) if line[:1] in _FIRST][:_TRIED]:
            start = self.line_starts[number]
            level = self._level(lines[number]) if len(lines[number]) <= LONG_LINE else None
            if level is None and number and not lines[number - 1].strip() and _FIELDS.match(self.text, start):
                level = 1  # a paragraph of fields is a record with its first line as its name
            if level:
                headings[self.at(start)] = level
        return headings

    def _level(self, text: str) -> int | None:
        """The level of a heading; None for any other line."""
        match = _HEADING.match(text)
        if match is None or (self._comments and match["signs"]):
            return None
        return len(match["signs"]) if match["signs"] else 2 if match["second"] else 1

    def above(self, unit: int) -> list[int]:
        """The units that enclose a unit, nearest first."""
        parents: list[int] = []
        at = self._parent(unit)
        while at is not None and len(parents) < _LEVELS:
            parents.append(at)
            at = self._parent(at)
        heading = self._enclosing_heading(parents[-1] if parents else unit)
        return [*parents, heading] if heading is not None and heading not in parents else parents

    def _parent(self, unit: int) -> int | None:
        """The nearest previous unit of less depth. Cached parents of units on the way are used to skip others."""
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
        """The depth outside a unit: for a heading that of its level."""
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
        depth, level = self._outer_depth(unit), self.heading(unit, 0) or 0
        end = unit + 1
        while end < self.count and end - unit < most and (self.depth(end) > depth or self.blank(end)):
            if level and level >= (self.heading(end) or level + 1):
                break
            end += 1
        if end < self.count and end - unit > 1 and self.depth(end) == depth and _closes(self[end]):
            end += 1
        while end - 1 > unit and self.blank(end - 1):
            end -= 1
        return range(unit, end)

    def table_top(self, unit: int) -> int | None:
        """The header of the table with aligned columns that a unit is in."""
        if unit in self._inner and self.first_of_line(unit) == unit:
            return None
        if not _COLUMNS.search(self[unit]) or self.in_hunk(unit):
            return None
        top, at = unit, unit - 1
        walked: list[int] = [unit]
        header: int | None = None
        while at >= 0 and unit - at < 5 * _WALK:
            if at in self._tops:
                header = self._tops[at]
                break
            text = self[at]
            if not (_RULE.match(text) or _COLUMNS.search(text) or text.startswith((" ", "\t"))):
                header = self._as_header(top)
                break
            if text.strip() and not _RULE.match(text):
                top = at
            walked.append(at)
            at -= 1
        else:
            header = self._as_header(top)
        self._tops.update(dict.fromkeys(walked, header))
        return header if header != unit else None

    def _as_header(self, top: int) -> int | None:
        text = self[top]
        return top if re.search(r"[A-Za-z]{2}", text) and sum(map(str.isdigit, text)) * 5 < len(text) else None

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


def _closes(text: str) -> bool:
    return text.strip()[:1] in ("}", "]", ")") or text.lstrip().startswith("</")


def pieces(line: str) -> list[tuple[int, int]]:
    """Where the units of a long line begin, and the depth of each."""
    head = line[:2_000]
    if "\r" in head[:-1]:  # frames that overwrite each other on a screen
        return [(0, 0), *((match.end(), 1) for match in _FRAME_END.finditer(line) if match.end() < len(line))]
    if head.lstrip()[:1] in ("{", "[") and re.search(r'"\s*:|\[\s*[{"\[\d]', head):
        return _json_pieces(line)
    if head.count("<") > 5 and re.search(r"</\w|/>", head):
        return _tag_pieces(line)
    return [(m.start(), 0 if m.start() == 0 else 1) for m in _WORDS.finditer(line)]


def _json_pieces(line: str) -> list[tuple[int, int]]:
    """A unit ends with a bracket or, when it is not too short for one, with a comma."""
    pieces: list[tuple[int, int]] = []
    depth, start = 0, 0
    for match in _MEMBER.finditer(line):
        end, last = match.end(), match[1]
        closing = last[:1] in ("}", "]")
        if end - start > LONG_LINE:
            pieces.append((start, depth))
            pieces.extend((m.start(), depth + 1) for m in list(_WORDS.finditer(line, start, end))[1:])
            start = end
        elif end - start > _SHORTEST or last != ",":
            pieces.append((start, depth - (closing and not line[start : match.start(1)].strip())))
            start = end
        if last != ",":
            depth += last.count("{") + last.count("[") - last.count("}") - last.count("]")
        if end >= len(line):
            break
    return pieces or [(0, 0)]


def _tag_pieces(line: str) -> list[tuple[int, int]]:
    """A unit begins with each opening tag; closing tags stay with what they close."""
    pieces: list[tuple[int, int]] = []
    depth = 0
    for match in _TAG.finditer(line):
        tag = match.group()
        pieces.append((match.start(), depth))
        if len(tag) > LONG_LINE:
            pieces.extend((m.start(), depth + 1) for m in list(_WORDS.finditer(line, *match.span()))[1:])
        opens = tag[:1] == "<" and tag[1:2] not in ("/", "?", "!") and tag.find("/>", 0, tag.find(">") + 1) < 0
        depth = max(0, depth + opens - tag.count("</"))
    return pieces
