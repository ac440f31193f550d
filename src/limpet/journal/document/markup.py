"""A journal as Markdown: where its headings are, which lines are hidden, and how texts are escaped in it.

The scanner is line-based and gives positions instead of a tree, because the file is edited in place: what people wrote
must not change by a byte. Only \\n ends a line (a \\r before it belongs to the line end). Positions count characters.

The text of an entry is one line. Line breaks in it become <br>, which every viewer shows as one, and a backslash
precedes characters that would change the structure. Quoted code goes into code spans or fences, which take any text.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import lru_cache

from limpet.light import re
from limpet.record import NamedTuple

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
_CLASH_MARK = re.compile(r"^([<>])\1{6} .*$", re.MULTILINE)
_NO_PARAGRAPH = re.compile(r" {0,3}(?:[#>|*+<=-]|`{3}|~{3}|\d{1,9}[.)](?:\s|$))| {4}|\t|\s*$")


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


class JournalDocument(NamedTuple):
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
        return bisect_left(_line_ends(self.text), at) + 1

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
        for at in range(self._after(heading), len(self.headings)):
            if self.headings[at].level <= heading.level:
                return self.headings[at].start
        return len(self.text)

    def own_end(self, heading: Heading) -> int:
        """Where the next heading of any level begins."""
        after = self._after(heading)
        return self.headings[after].start if after < len(self.headings) else len(self.text)

    def _after(self, heading: Heading) -> int:
        """The index of the heading that follows."""
        return bisect_right(self.headings, heading.start, key=_start_of)


def _start_of(heading: Heading) -> int:
    return heading.start


@lru_cache(maxsize=2)  # of the text at hand; linting asks for thousands of lines
def _line_ends(text: str) -> list[int]:
    return [match.start() for match in re.finditer("\n", text)]


def scan(text: str) -> JournalDocument:
    headings: list[Heading] = []
    hidden: list[tuple[int, int]] = []
    unclosed: list[int] = []
    clashes = _clashes(text)
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
            title = _without_closing(text[mark.end() : line_end].strip())
            headings.append(Heading(len(mark["hash"]), title, start, line_end))
        elif mark["under"]:
            if underlined := _underlined(text, at, start, clashes):
                level = 1 if mark["under"][0] == "=" else 2
                headings.append(Heading(level, text[underlined:start].strip(), underlined, line_end))
        else:
            hidden_end = _hidden_end(text, mark, line_end)
            if hidden_end is None:
                unclosed.append(start)
            end = len(text) if hidden_end is None else hidden_end
            hidden.append((start, end))
        at = end
    return JournalDocument(text, tuple(headings), tuple(hidden), tuple(unclosed), clashes)


def _clashes(text: str) -> tuple[tuple[int, int], ...]:
    """The spans from the first mark of a conflict to its last. One pass: a file may have thousands without an end."""
    spans = []
    begin = None
    for mark in _CLASH_MARK.finditer(text) if "<<<<<<< " in text else ():
        if mark[1] == "<":
            begin = mark.start() if begin is None else begin
        elif begin is not None:
            spans.append((begin, mark.end()))
            begin = None
    return tuple(spans)


def _without_closing(title: str) -> str:
    """A title without the signs that may close its line."""
    bare = title.rstrip("#")
    return bare.rstrip(" \t") if not bare or bare[-1] in " \t" else title


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
    clash = bisect_right(clashes, (at, len(text))) - 1
    if clash >= 0 and at < clashes[clash][1]:
        return None
    start = text.rfind("\n", 0, max(0, at - 1)) + 1
    if start < since or start >= at or _NO_PARAGRAPH.match(text[start:at].rstrip("\r\n")):
        return None
    return start or None


# --- escaping ---------------------------------------------------------------------------------------------------------

BREAK = "<br>"
_PUNCTUATION = r"!-/:-@\[-`{-~"
_BACKSLASH = re.compile(rf"\\(?=[{_PUNCTUATION}]|\n|\Z)")
_SPECIAL = re.compile(r"<(?=br[ \t]*/?>|!--)|#\Z", re.IGNORECASE)
_LEADING = re.compile(r"(?=#{1,6}(?:\s|\Z)|>|~{3}|`{3}|[-+*](?:\s|\Z)|=+\Z|-+\Z|\[[ xX]\])")
_TOKEN = re.compile(rf"\\([{_PUNCTUATION}])|(<br[ \t]*/?>)", re.IGNORECASE)
_RUN = re.compile(r"`+")
_BAR = re.compile(r"[|\\]")


def clean(text: str) -> str:
    """A text as it is kept: lines end with \\n, nothing blank at either end."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def one_line(text: str) -> str:
    return " ".join(text.split())


def escape(text: str, *, cell: bool = False) -> str:
    """One line of Markdown that `unescape` reads back as the text, which is clean."""
    # Doubled before others are added, so that an even run of backslashes never escapes what follows it.
    safe = _BACKSLASH.sub(r"\\\\", text)
    safe = _SPECIAL.sub(lambda match: "\\" + match.group(), safe)
    if cell:
        safe = safe.replace("|", "\\|")
    safe = _LEADING.sub(r"\\", safe, count=1) if _LEADING.match(safe) else safe
    return safe.replace("\n", BREAK)


def unescape(text: str) -> str:
    return _TOKEN.sub(lambda match: match[1] or "\n", text)


# --- code -------------------------------------------------------------------------------------------------------------


def code_span(text: str) -> str:
    """One line of code, in as many backticks as it takes."""
    runs = {len(run) for run in _RUN.findall(text)}
    ticks = "`" * next(size for size in range(1, len(runs) + 2) if size not in runs)
    padded = text[:1] == "`" or text[-1:] == "`" or (text[:1] == text[-1:] == " " and text.strip(" "))
    return f"{ticks} {text} {ticks}" if padded else f"{ticks}{text}{ticks}"


_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)


def leading_span(text: str) -> tuple[str, int] | None:
    """The code span a text begins with, and where it ends."""
    match = _SPAN.match(text)
    if match is None:
        return None
    content = match[2]
    if content[0] == content[-1] == " " and content.strip(" "):
        content = content[1:-1]
    return content, match.end()


def fence(lines: str, indent: str) -> str:
    """Lines of code as a fenced block below a list item."""
    longest = max((len(run) for run in _RUN.findall(lines)), default=0)
    ticks = "`" * max(3, longest + 1)
    body = "".join(f"{indent}{line}\n" if line else "\n" for line in lines.split("\n"))
    return f"{indent}{ticks}\n{body}{indent}{ticks}\n"


# --- tables -----------------------------------------------------------------------------------------------------------


class Cell(NamedTuple):
    start: int  # of its text, without the spaces around it
    end: int
    raw: str


def cells(line: str, offset: int = 0, *, columns: int = 0) -> tuple[Cell, ...]:
    """The cells of a row. Where a bare pipe in code makes too many, code is kept whole if that gives `columns`."""
    split = _split(line, offset, [])
    if columns and len(split) > columns:
        joined = _split(line, offset, _code_spans(line))
        if len(joined) == columns:
            return joined
    return split


def _code_spans(line: str) -> list[tuple[int, int]]:
    """Where code is: from a run of backticks to the next one of the same length. One pass over the runs."""
    runs = [match.span() for match in _RUN.finditer(line)]
    places: dict[int, list[int]] = {}
    for number, (start, end) in enumerate(runs):
        places.setdefault(end - start, []).append(number)
    spans, at = [], 0
    while at < len(runs):
        same = places[runs[at][1] - runs[at][0]]
        closing = bisect_right(same, at)
        if closing < len(same):
            spans.append((runs[at][0], runs[same[closing]][1]))
            at = same[closing]
        at += 1
    return spans


def _split(line: str, offset: int, spans: list[tuple[int, int]]) -> tuple[Cell, ...]:
    bars, escaped, span = [], -1, 0
    for mark in _BAR.finditer(line):
        at = mark.start()
        while span < len(spans) and spans[span][1] <= at:
            span += 1
        if at == escaped:
            continue
        if line[at] == "\\":
            escaped = at + 1
        elif span == len(spans) or at < spans[span][0]:
            bars.append(at)
    edges = [-1, *bars, len(line)]
    parts = [(first + 1, second) for first, second in itertools.pairwise(edges)]
    if len(parts) > 1 and not line[: parts[0][1]].strip(" \t"):
        parts = parts[1:]
    if len(parts) > 1 and not line[parts[-1][0] :].strip(" \t"):
        parts = parts[:-1]
    result = []
    for start, end in parts:
        raw = line[start:end]
        left = start + len(raw) - len(raw.lstrip(" \t"))
        text = raw.strip(" \t")
        result.append(Cell(offset + left, offset + left + len(text), text))
    return tuple(result)


def row(values: list[str]) -> str:
    """A row of a table whose cells are escaped here."""
    return "| " + " | ".join(escape(value, cell=True) for value in values) + " |"
