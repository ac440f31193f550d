"""Texts inside Markdown: escaped so that whatever a text says, it is read back as it was and changes no structure.

An entry's text stands on one line. Line breaks become <br>, which every viewer shows as one; a backslash stands before
what would otherwise mean something to us. Quotes of code are code spans or fences, which take any text as it is.
"""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

BREAK = "<br>"
_PUNCTUATION = r"!-/:-@\[-`{-~"
_BACKSLASH = re.compile(rf"\\(?=[{_PUNCTUATION}]|\n|\Z)")
_SPECIAL = re.compile(r"<(?=br[ \t]*/?>|!--)|#\Z", re.IGNORECASE)
_LEADING = re.compile(r"(?=#{1,6}(?:\s|\Z)|>|~{3}|`{3}|[-+*](?:\s|\Z)|=+\Z|-+\Z|\[[ xX]\])")
_TOKEN = re.compile(rf"\\([{_PUNCTUATION}])|(<br[ \t]*/?>)", re.IGNORECASE)
_RUN = re.compile(r"`+")


def clean(text: str) -> str:
    """A text as it is kept: lines end with \\n, nothing blank at either end."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def one_line(text: str) -> str:
    return " ".join(text.split())


def escape(text: str, *, cell: bool = False) -> str:
    """One line of Markdown that `unescape` reads back as the text, which is clean."""
    # Doubled before others are added, so that an even run of backslashes never escapes what follows it.
    safe = _BACKSLASH.sub(r"\\\\", text)
    safe = _SPECIAL.sub(lambda found: "\\" + found.group(), safe)
    if cell:
        safe = safe.replace("|", "\\|")
    safe = _LEADING.sub(r"\\", safe, count=1) if _LEADING.match(safe) else safe
    return safe.replace("\n", BREAK)


def unescape(text: str) -> str:
    return _TOKEN.sub(lambda found: found[1] or "\n", text)


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
    found = _SPAN.match(text)
    if found is None:
        return None
    content = found[2]
    if content[0] == content[-1] == " " and content.strip(" "):
        content = content[1:-1]
    return content, found.end()


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
    found = _split(line, offset, [])
    if columns and len(found) > columns:
        spans = [span.span() for span in _SPAN.finditer(line)]
        kept = _split(line, offset, spans)
        if len(kept) == columns:
            return kept
    return found


def _split(line: str, offset: int, whole: list[tuple[int, int]]) -> tuple[Cell, ...]:
    bars, at = [], 0
    while at < len(line):
        if line[at] == "\\":
            at += 2
            continue
        if line[at] == "|" and not any(start <= at < end for start, end in whole):
            bars.append(at)
        at += 1
    edges = [-1, *bars, len(line)]
    parts = [(first + 1, second) for first, second in itertools.pairwise(edges)]
    if len(parts) > 1 and not line[: parts[0][1]].strip(" \t"):
        parts = parts[1:]
    if len(parts) > 1 and not line[parts[-1][0] :].strip(" \t"):
        parts = parts[:-1]
    made = []
    for start, end in parts:
        raw = line[start:end]
        left = start + len(raw) - len(raw.lstrip(" \t"))
        text = raw.strip(" \t")
        made.append(Cell(offset + left, offset + left + len(text), text))
    return tuple(made)


def row(values: list[str]) -> str:
    """A row of a table whose cells are escaped here."""
    return "| " + " | ".join(escape(value, cell=True) for value in values) + " |"
