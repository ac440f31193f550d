"""Where the headings of a Markdown text are, and which of its lines are hidden in code, comments or front matter.

A line-based scanner and no Markdown library: libraries re-render, and what people wrote must not change by a byte. Only
\\n ends a line (a \\r before it belongs to the line end). Positions are characters of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

BOM = "\ufeff"
_LINE = (
    r" {0,3}(?:(?P<hash>#{1,6})(?=[ \t\r\n]|\Z)"
    r"|(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})"
    r"|(?P<comment><!--)"
    r"|<(?P<raw>pre|script|style|textarea)(?=[ \t\r\n>]|\Z)"
    r"|(?P<under>={1,}|-{3,})[ \t]*\r?$)"
)
_FIRST = re.compile(_LINE, re.MULTILINE | re.IGNORECASE)
_MARK = re.compile(r"\n" + _LINE, re.MULTILINE | re.IGNORECASE)  # a search for \n is much faster than one for ^
_FRONT = re.compile(r"(---|\+\+\+)[ \t]*\r?\n(?:.*\n)*?(?:\1|\.\.\.)[ \t]*\r?(?:\n|\Z)")
_CLASH = re.compile(r"^<{7} .*\n(?:.*\n)*?>{7} .*$", re.MULTILINE)
_NO_PARAGRAPH = re.compile(r" {0,3}(?:[#>|*+<=-]|`{3}|~{3}|\d{1,9}[.)](?:\s|$))| {4}|\t|\s*$")
_CLOSING = re.compile(r"[ \t]+#+[ \t]*$|^#+[ \t]*$")


class Heading(NamedTuple):
    level: int
    title: str
    start: int  # of the line, or of the title's line when it is underlined
    body: int  # where what it heads begins


class Line(NamedTuple):
    start: int
    end: int  # after its line end
    text: str  # without its line end
    hidden: bool  # inside code, a comment or front matter


class Document(NamedTuple):
    text: str
    headings: tuple[Heading, ...]
    hidden: tuple[tuple[int, int], ...]  # spans of whole lines, in order
    unclosed: tuple[int, ...]  # where code or a comment begins that never ends
    clashes: tuple[tuple[int, int], ...]  # spans between conflict markers

    @property
    def newline(self) -> str:
        """How lines end in most of the text."""
        windows = self.text.count("\r\n")
        return "\r\n" if windows * 2 > self.text.count("\n") else "\n"

    def line_number(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1

    def lines(self, start: int, end: int) -> Iterator[Line]:
        """The lines of a span that begins with a line."""
        while start < end:
            stop = self.text.find("\n", start) + 1 or len(self.text)
            content = self.text[start:stop].removesuffix("\n").removesuffix("\r")
            yield Line(start, stop, content, self.is_hidden(start))
            start = stop

    def is_hidden(self, at: int) -> bool:
        place = bisect_right(self.hidden, (at, len(self.text) + 1)) - 1
        return place >= 0 and at < self.hidden[place][1]

    def before_unclosed(self, at: int) -> int:
        """`at`, or where code or a comment begins that never ends: what is written behind that is hidden too."""
        return min(at, *self.unclosed) if self.unclosed else at

    def end_of(self, heading: Heading) -> int:
        """Where the next heading of the same or a higher level begins."""
        for other in self.headings[self.headings.index(heading) + 1 :]:
            if other.level <= heading.level:
                return other.start
        return len(self.text)

    def own_end(self, heading: Heading) -> int:
        """Where the next heading of any level begins."""
        after = self.headings.index(heading) + 1
        return self.headings[after].start if after < len(self.headings) else len(self.text)


def scan(text: str) -> Document:
    headings: list[Heading] = []
    hidden: list[tuple[int, int]] = []
    unclosed: list[int] = []
    clashes = tuple(found.span() for found in _CLASH.finditer(text)) if "<<<<<<< " in text else ()
    at = len(BOM) if text.startswith(BOM) else 0
    if front := _FRONT.match(text, at):
        hidden.append((at, front.end()))
        at = front.end()
    first = _FIRST.match(text, at)  # the only line without a line end before it, unless front matter was
    while mark := first or _MARK.search(text, max(0, at - 1)):
        start, line_end = mark.start() + (mark[0][0] == "\n"), _after_line(text, mark.end())
        first = None
        end = line_end
        if mark["hash"]:
            title = text[mark.end() : line_end].strip()
            headings.append(Heading(len(mark["hash"]), _CLOSING.sub("", title), start, line_end))
        elif mark["under"]:
            if underlined := _underlined(text, at, start, clashes):
                level = 1 if mark["under"][0] == "=" else 2
                headings.append(Heading(level, text[underlined:start].strip(), underlined, line_end))
        else:
            found = _hidden_end(text, mark, line_end)
            if found is None:
                unclosed.append(start)
            end = len(text) if found is None else found
            hidden.append((start, end))
        at = end
    return Document(text, tuple(headings), tuple(hidden), tuple(unclosed), clashes)


def _after_line(text: str, at: int) -> int:
    return text.find("\n", at) + 1 or len(text)


def _hidden_end(text: str, mark: re.Match[str], line_end: int) -> int | None:
    """Where the code or comment that begins here ends; None when it never does."""
    if fence := mark["fence"]:
        closing = re.compile(rf"^ {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*\r?$", re.MULTILINE)
        closed = closing.search(text, line_end)
        return _after_line(text, closed.end()) if closed else None
    if mark["comment"]:
        place = text.find("-->", mark.end() - 2)
        return _after_line(text, place) if place >= 0 else None
    closed = re.compile(r"</(?:pre|script|style|textarea)>", re.IGNORECASE).search(text, mark.end())
    return _after_line(text, closed.end()) if closed else None


def _underlined(text: str, since: int, at: int, clashes: tuple[tuple[int, int], ...]) -> int | None:
    """Where the title begins that the line at `at` underlines; None when it is a rule, a table or a conflict marker."""
    if any(start <= at < end for start, end in clashes):
        return None
    start = text.rfind("\n", 0, max(0, at - 1)) + 1
    if start < since or start >= at or _NO_PARAGRAPH.match(text[start:at].rstrip("\r\n")):
        return None
    return start or None
