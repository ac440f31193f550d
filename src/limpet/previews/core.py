"""What all previews share: the cleaned text in lines, and a sheet with a budget of tokens."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import overload

from limpet.previews.failures import FailureLine, failure_lines
from limpet.record import NamedTuple
from limpet.text import tokens
from limpet.text.marks import Marks
from limpet.text.safe import printable

LONGEST_LINE = 220  # Characters of one line that a preview shows.
ANSI = re.compile(r"\x1b(?:\[[0-9;?]{0,40}[A-Za-z]|\][^\x07\x1b]{0,500}(?:\x07|\x1b\\)|[()][A-Z0-9])")
# A frame of a progress bar: what it is for, how far it is, and a bar or a rate.
BAR = re.compile(r"([^\d%]{0,80}?)\s{0,40}\d{1,3}(?:\.\d{1,2})?%(?=.{0,200}(?:[|#=█▏▎▍▌▋▊▉━>]|\d/\d|/s))")
_SAMPLE_CHARS = 400
_BLOCK = 4_096  # Characters of a big text whose line ends are counted together.
BIG = (
    640_000  # Characters: of a longer text a sample is looked at, so that keeping it costs little more than writing it.
)
_MOST_WHOLE = 40_000  # Lines: of more, evenly chosen ones are looked at where each needs a pattern.
_MOST_BIG = 64  # The same for a big text.
_SAMPLE_PARTS, _SAMPLE_LINES = 8, 6  # Places of a big text that its sample is taken from, and lines from each.
_SAMPLE_PART = 4_000  # Characters that are looked at for these lines.


class Preview(NamedTuple):
    """What an agent sees of a stored output."""

    shape: str
    text: str
    failures: int


class OutputText:
    """An output as the shapes read it: no byte order mark, no colours, lines end with a line feed."""

    def __init__(self, content: str, marks: Marks | None = None) -> None:
        original = content
        content = content.removeprefix("\ufeff")
        self.size = len(content)
        if "\x1b" in content:
            content = ANSI.sub("", content)
        if "\r" in content:
            content = content.replace("\r\n", "\n").replace("\r", "\n")
        self.content = content
        self.big = len(content) > BIG
        self._marks = marks if content is original else None

    @cached_property
    def lines(self) -> Sequence[str]:
        if self.big:
            return Lines(self._body)
        lines = self.content.split("\n")
        while lines and not lines[-1].strip():
            lines.pop()
        return lines

    @cached_property
    def _body(self) -> str:
        """The content without blanks at its end."""
        return self.content.rstrip()

    @property
    def empty(self) -> bool:
        return not self.content or self.content.isspace()

    @cached_property
    def line_count(self) -> int:
        if self.big:
            return len(self.lines)
        content = self._body
        return content.count("\n") + 1 if content else 0

    @cached_property
    def failures(self) -> list[FailureLine]:
        if not isinstance(self.lines, Lines):
            return failure_lines(self.content, self._marks)
        # Where every character is a byte, the lines have been counted already.
        lines = failure_lines(self.content, self._marks, self.lines.number_at if self.content.isascii() else None)
        self.lines.cache.update(lines)
        return lines

    @cached_property
    def sample(self) -> list[str]:
        """Lines with something in them from the beginning, the middle and the end, none of them long."""
        if self.big:
            return self._big_sample()
        lines = self.lines
        if len(lines) <= 240:
            chosen: Iterable[str] = lines
        else:
            middle = len(lines) // 2
            chosen = [*lines[:120], *lines[middle : middle + 60], *lines[-60:]]
        return [line[:_SAMPLE_CHARS] for line in chosen if line.strip()]

    def _big_sample(self) -> list[str]:
        """The same without cutting all of the text into lines."""
        content, last = self._body, _SAMPLE_PARTS - 1
        lines = content[:_SAMPLE_PART].split("\n")[:_SAMPLE_LINES]
        for part in range(1, last):
            start = content.find("\n", len(content) * part // last) + 1
            lines += content[start : start + _SAMPLE_PART].split("\n")[:_SAMPLE_LINES] if start else []
        if "\n" in content[-_SAMPLE_PART:]:
            lines += content[-_SAMPLE_PART:].split("\n")[1:][-_SAMPLE_LINES:]
        return [line[:_SAMPLE_CHARS] for line in lines if line.strip()]

    def most(self, usual: int) -> int:
        """How many lines, rows or values a shape may read, given its usual number."""
        return min(usual, _MOST_BIG) if self.big else usual

    @property
    def bracketed(self) -> bool:
        """Whether it begins and ends as JSON does."""
        start = self.content[:200].lstrip()[:1]
        end = self.content[-200:].rstrip()[-1:]
        return start + end in {"{}", "[]"}

    @cached_property
    def parsed(self) -> object:
        """The JSON value, or NO_JSON."""
        if not self.bracketed:
            return NO_JSON
        try:
            value: object = json.loads(self.content)
        except (ValueError, RecursionError):
            return NO_JSON
        return value

    def numbered(self) -> Iterator[tuple[int, str]]:
        """All lines with their numbers, or evenly chosen ones when there are very many."""
        lines = self.lines
        return ((at, lines[at]) for at in range(0, len(lines), self.step))

    @cached_property
    def step(self) -> int:
        return 1 + len(self.lines) // self.most(_MOST_WHOLE)

    @property
    def part(self) -> str:
        """The note for a count over `numbered` lines."""
        return f" among every {ordinal(self.step)} line" if self.step > 1 else ""


class Lines(Sequence[str]):
    """The lines of a big text, each cut out on demand: few are needed, and splitting all of them takes long."""

    def __init__(self, content: str) -> None:
        self._content = content
        places = range(0, len(content), _BLOCK)
        self.cache: dict[int, str] = {}  # lines already cut out: most are needed again
        self._starts = [0, *accumulate(content.count("\n", at, at + _BLOCK) for at in places)]
        self._next = (0, 0)  # the line after the last that was cut out, and where it begins

    def __len__(self) -> int:
        return self._starts[-1] + 1 if self._content else 0

    @overload
    def __getitem__(self, at: int) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> list[str]: ...

    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self._line(each) for each in range(*at.indices(len(self)))]
        return self._line(range(len(self))[at])

    def number_at(self, start: int) -> int:
        """Which line begins at this character."""
        block = start // _BLOCK
        return self._starts[block] + self._content.count("\n", block * _BLOCK, start)

    def _line(self, number: int) -> str:
        """The line after so many line ends, which is looked for in the block where the last of these is."""
        cached = self.cache.get(number)
        if cached is not None:
            return cached
        content, (following, start) = self._content, self._next
        if number != following:
            block = bisect_left(self._starts, number) - 1 if number else 0
            ends = number - self._starts[block]
            # All after so many line ends of the block: splitting is several times faster than finding one by one.
            start = min(len(content), (block + 1) * _BLOCK)
            start -= len(content[block * _BLOCK : start].split("\n", ends)[ends])
        end = content.find("\n", start)
        end = len(content) if end < 0 else end
        self._next = number + 1, end + 1
        line = self.cache[number] = content[start:end]
        return line

    def __iter__(self) -> Iterator[str]:
        at = 0
        while (end := self._content.find("\n", at)) >= 0:
            yield self._content[at:end]
            at = end + 1
        yield self._content[at:]


class _NoJson:
    pass


NO_JSON = _NoJson()


class Sheet:
    """A page with a budget of tokens. Lines that do not fit are dropped; the rest is sorted by section and number."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.left = budget
        self.gaps = True  # Whether missing lines between two that are shown are marked.
        self._parts: list[tuple[int, int, int, str]] = []
        self._taken: set[int] = set()

    def add(self, text: str, at: int = 0) -> bool:
        """Add a line to the section `at` if it fits."""
        text = printable(text)
        cost = tokens.count(text + "\n")
        if cost > self.left:
            return False
        self.left -= cost
        self._parts.append((at, len(self._parts), -1, text))
        return True

    def add_line(self, number: int, text: str, at: int = 0, length: int = LONGEST_LINE) -> bool:
        """Add a line of the output to the section `at`, which is sorted by line number."""
        if number in self._taken:
            return True
        text = printable(clip(text, length))
        cost = tokens.count(text + "\n") + (2 if self.gaps else 0)  # for the sign that lines are missing before it
        if cost > self.left:
            return False
        self.left -= cost
        self._taken.add(number)
        self._parts.append((at, number, number, text))
        return True

    def add_all(self, texts: Iterable[str], at: int = 0, share: float = 1.0) -> int:
        """Add lines while they fit into this share of the remaining budget. Returns how many were added."""
        floor = self.left * (1 - share)
        done = 0
        for text in texts:
            if self.left <= floor or not self.add(text, at):
                break
            done += 1
        return done

    def add_lines(
        self, lines: Iterable[tuple[int, str]], at: int = 0, share: float = 1.0, length: int = LONGEST_LINE
    ) -> int:
        """The same for lines of the output. A line that does not fit is skipped; the third such line ends it."""
        floor = self.left * (1 - share)
        done = missed = 0
        for number, text in lines:
            if self.left <= floor or missed == 3:
                break
            if not text.strip():
                continue
            if self.add_line(number, text, at, length):
                done += 1
            else:
                missed += 1
        return done

    def text(self) -> str:
        """The page as text."""
        parts = list(self._parts)
        while True:
            text = _joined(sorted(parts), self.gaps)
            if tokens.count(text) <= self.budget or not parts:
                return text
            parts.pop()  # Joined lines can cost a little more than the sum of their costs.


def _joined(parts: Sequence[tuple[int, int, int, str]], gaps: bool) -> str:
    out: list[str] = []
    section, last = None, -1
    for at, _, number, text in parts:
        if gaps and number >= 0 and ((at == section and number != last + 1) or (at != section and number > 0 and out)):
            out.append("…")
        section = at
        if number >= 0:
            last = number
        out.append(text)
    return "\n".join(out)


def clip(line: str, length: int = LONGEST_LINE) -> str:
    """The line without blanks at its end, or the beginning of a long one."""
    line = line[: length + 200].rstrip() if len(line) > length + 200 else line.rstrip()
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def number(value: float) -> str:
    """12,345 or 3.25."""
    if isinstance(value, int) or (abs(value) < 1e15 and value == int(value)):
        return f"{int(value):,}" if abs(value) >= 10_000 else str(int(value))
    return f"{value:.6g}"


def plural(count: int, word: str) -> str:
    """2 rows, 1 row."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 11th, 251st."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def spread(count: int, most: int) -> list[int]:
    """Up to `most` indexes, evenly spread over 0 … count - 1."""
    if count <= most:
        return list(range(count))
    return sorted({round(at * (count - 1) / max(1, most - 1)) for at in range(most)})
