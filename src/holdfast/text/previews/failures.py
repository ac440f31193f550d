"""Which lines of an output say that something failed. Every preview shows or counts all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_LONGEST_LOOK = 20_000  # Of a longer line, only this much after each trigger word is looked at.
_LOOKS_PER_LINE = 50  # And at most this many trigger words: one line with a million of them is one line.

# A line is only looked at when it contains one of these. Finding fixed words is many times faster than any pattern.
_TRIGGERS = (
    *("error", "fail", "panic", "fatal", "exception", "traceback", "critical", "emerg", "severe", "err!"),
    *("not ok", "timed out", "etimedout", "econnrefused", "timeout", "exit", "non-zero", "killed", "caused by:"),
    *("segmentation", "core dumped"),
)
_MARKS = ("✗", "✕", "✘", "✖", "❌", "×", "🔴")  # noqa: RUF001

# Every alternative starts with a fixed word and has bounded repetitions, so that the work is linear.
# These begin with a word; a zero or a "no" before it makes it no failure.
_WORD = re.compile(
    r"(?<![-/.\w])(?=[A-Za-z1-9*])(?:"
    r"(?:ERROR|FATAL|CRITICAL|EMERG|PANIC|SEVERE|FAIL|FAILED|FAILURE|FAILURES|ERRORS)(?![-/.]?\w)"
    r"(?!\s{0,3}[=:]\s{0,3}0\b)"
    r"|npm ERR!|(?:npm|yarn|pnpm) error\b"
    r"|(?:[Ff]atal [Ee]rror|[Ee]rror|[Ff]atal|[Ff]ailure|[Ff]ailed|[Pp]anic)(?:\[[\w.:-]{1,40}\])?:(?!:)"
    r"(?!\s{0,3}(?:0|null|none|None|false|\"\")(?:\b|\W|$))"
    r"|error(?:\s{1,2}[A-Z]{1,8}\d{1,6}\b|\[\w{1,12}\])"
    r"|[A-Za-z_][\w.]{0,200}(?:Error|Exception)(?::(?!:)|$)"
    r"|Traceback \(most recent call last\)|Caused by:|Exception in thread"
    r"|not ok \d|Segmentation fault|core dumped|Killed$|\*\*\* \[.{1,200}\] Error \d"
    r"|(?:[1-9]\d{0,8}) (?:tests? |specs? |examples? )?(?:failed|failures?|errors?|failing)\b"
    r"|(?:failed|failures|errors|Failed|Failures|Errors)[=:]\s{0,3}\"?[1-9]"
    r"|[Ee]xit(?:ed)?(?: with)?(?: code| status| value)?[ :=]{1,3}-?[1-9]\d{0,5}\b|non-zero (?:exit|return|code|status)"
    r"|(?:[Tt]imed out|ETIMEDOUT|ECONNREFUSED)\b"
    r"|Failed (?:to|password)\b|failed to\b"
    r")"
)
_NONE = re.compile(r"(?:\b0|\b[Nn]o|\d\.0) $")
# These are values of a field, or signs of their own.
_VALUE = re.compile(
    r"thread '[^'\n]{0,200}' panicked at|^panic:|panicked at"
    r"|[\[,|\t\"'=(<]\s?(?:error|fatal|critical|crit|emerg|alert|failed|failure|timeout)\s?(?:[\],|\t')>;]|\"(?!\s?:)|$)"
    r"|\b(?:level|lvl|severity|status|state|outcome|result|conclusion)[\"']?\s?[=:]\s?[\"']?"
    r"(?:error|err|fatal|critical|fail|failed|failure)\b"
    r"|<(?:failure|error)[ >]|\d:\d{1,6}\s{1,4}error\s"
)
_MARKED = re.compile(r"^[ \t│|├└─]{0,40}(?:✗|✕|✘|✖|❌|×|🔴) ?\S")  # noqa: RUF001
_ASSERTION = re.compile(r"^E {3}\s{0,20}\S")  # How pytest shows the reason of a failure.
_SERVER_ERROR = re.compile(r'(?i:http)/\d(?:\.\d)?" 5\d\d\b')


class Line(NamedTuple):
    """One line and its number, from 0."""

    number: int
    text: str


def failure_lines(content: str) -> list[Line]:
    """Every line that says that something failed, in order: one pass over the text per trigger word."""
    # Only ASCII letters change here, so that places in both texts are the same.
    low = content if not content else content.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
    places: dict[int, list[int]] = {}
    for word in _TRIGGERS:
        _collect(low, word, places)
    signs: dict[int, list[int]] = {}
    for sign in () if content.isascii() else _MARKS:
        _collect(content, sign, signs)
    for answer in ('http/1.1" 5', 'http/2.0" 5', 'http/1.0" 5', 'http/2" 5'):
        _collect(low, answer, signs)
    _collect(content, "\nE   ", signs)
    if content.startswith("E   "):
        signs.setdefault(0, []).append(0)
    found: list[Line] = []
    number, counted = 0, 0
    for start in sorted({*places, *signs}):
        end = content.find("\n", start)
        end = len(content) if end < 0 else end
        if _signed(content, start, end, signs.get(start, ())) or _fails(content, start, end, places.get(start, ())):
            number += content.count("\n", counted, start)
            counted = start
            found.append(Line(number, content[start:end].rstrip("\r")))
    return found


def excerpt(line: str, length: int) -> str:
    """The line, or of a long one the part that says what failed."""
    line = line.strip()
    if len(line) <= length:
        return line
    start = max(0, _first(line[:_LONGEST_LOOK]) - length // 3)
    start = 0 if start < 20 else start
    return ("…" if start else "") + line[start : start + length] + "…"


def _first(line: str) -> int:
    """Where the line first says that something failed, or -1."""
    for found in _WORD.finditer(line):
        if not _NONE.search(line[max(0, found.start() - 5) : found.start()]):
            return found.start()
    value = _VALUE.search(line)
    return value.start() if value else -1


def _collect(content: str, word: str, places: dict[int, list[int]]) -> None:
    """Note where the lines that contain the word start, and where in them it stands."""
    start, line_end, count = 0, -1, 0
    looks: list[int] = []
    at = content.find(word)
    while at >= 0:
        if word[0] == "\n":
            at += 1
        if at > line_end:
            start = content.rfind("\n", 0, at) + 1
            line_end = content.find("\n", at)
            line_end = len(content) if line_end < 0 else line_end
            looks = places.setdefault(start, [])
            count = 0
        looks.append(at)
        count += 1
        # In an ordinary line the first place is enough, as the whole line is looked at.
        enough = line_end - start <= _LONGEST_LOOK or count >= _LOOKS_PER_LINE
        at = content.find(word, max(line_end - (word[0] == "\n"), at) if enough else at + len(word))


def _signed(content: str, start: int, end: int, looks: Sequence[int]) -> bool:
    """Whether a line with a sign of failure has it where it counts."""
    if not looks:
        return False
    head = content[start : min(end, start + 200)]
    if _MARKED.match(head) or _ASSERTION.match(head):
        return True
    return any(_SERVER_ERROR.match(content, at, end) for at in looks)


def _fails(content: str, start: int, end: int, looks: Sequence[int]) -> bool:
    """Whether a line with a trigger word says that something failed."""
    if not looks:
        return False
    if end - start <= _LONGEST_LOOK:
        return _first(content[start:end].rstrip("\r")) >= 0
    # The parts begin early enough for what stands before the word to be seen.
    return any(_first(content[max(start, at - 220) : min(end, at + 200)]) >= 0 for at in looks)
