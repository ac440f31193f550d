"""The lines of an output that report a failure. Every preview shows or counts all of them."""

from __future__ import annotations

from collections.abc import Callable

from limpet.light import re
from limpet.record import NamedTuple
from limpet.text.marks import Marks, find_marks

_LONGEST_LOOK = 20_000  # Of a longer line, the surroundings of each candidate are searched.
_LOOKS_PER_LINE = 500  # And at most this many hints: one line with a million of them is one line.

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
_HELPS = re.compile(
    r"(?i)error|fail|panic|fatal|exception|traceback|critical|emerg|severe|err!|not ok|timed out|etimedout|econnrefused"
    r"|timeout|exit|non-zero|killed|caused by:|segmentation|core dumped|\[(?:crit|alert)\]"
)
_MARKED = re.compile(r"^[ \t│|├└─]{0,40}(?:✗|✕|✘|✖|❌|×|🔴) ?\S")  # noqa: RUF001
_ASSERTION = re.compile(r"^E {3}\s{0,20}\S")  # How pytest shows the reason of a failure.
_SERVER_ERROR = re.compile(r'(?i:http)/\d(?:\.\d)?" 5\d\d\b')

# The same for RE2, which reads every byte of a text once. It has no look-around, so it matches a little more than the
# patterns above and nothing less; its matches are checked with them. A blank is one that does not end the line.
_BLANK = r"[ \t\r\f\v]"
PATTERN = "|".join(
    (
        r"\b(?:ERROR|FATAL|CRITICAL|EMERG|PANIC|SEVERE|FAIL|FAILED|FAILURE|FAILURES|ERRORS)\b",
        r"\bnpm ERR!|\b(?:npm|yarn|pnpm) error\b",
        r"\b(?:[Ff]atal [Ee]rror|[Ee]rror|[Ff]atal|[Ff]ailure|[Ff]ailed|[Pp]anic)(?:\[[\w.:-]{1,40}\])?:",
        rf"\berror(?:{_BLANK}{{1,2}}[A-Z]{{1,8}}\d|\[\w{{1,12}}\])",
        r"(?:Error|Exception)(?::|\r*$)",
        r"Traceback \(most recent call last\)|Caused by:|Exception in thread|panicked at",
        r"not ok \d|Segmentation fault|core dumped|Killed\r*$|\] Error \d",
        r"\d (?:tests? |specs? |examples? )?(?:failed|failures?|errors?|failing)\b",
        rf"\b(?:failed|failures|errors|Failed|Failures|Errors)[=:]{_BLANK}{{0,3}}\"?[1-9]",
        r"\b[Ee]xit(?:ed)?(?: with)?(?: code| status| value)?[ :=]{1,3}-?[1-9]|non-zero (?:exit|return|code|status)",
        r"(?:[Tt]imed out|ETIMEDOUT|ECONNREFUSED)\b|\bFailed (?:to|password)\b|\bfailed to\b",
        (
            rf"[\[,|\t\"'=(<]{_BLANK}?(?:error|fatal|critical|crit|emerg|alert|failed|failure|timeout){_BLANK}?"
            rf"(?:[\],|\t')>;]|\"(?:[^\s:]|{_BLANK}[^:\n]|{_BLANK}?$)|$)"
        ),
        (
            rf"\b(?:level|lvl|severity|status|state|outcome|result|conclusion)[\"']?{_BLANK}?[=:]{_BLANK}?[\"']?"
            r"(?:error|err|fatal|critical|fail|failed|failure)\b"
        ),
        rf"<(?:failure|error)[ >]|\d:\d{{1,6}}{_BLANK}{{1,4}}error(?:{_BLANK}|$)",
        r"(?i:http)/\d(?:\.\d)?\" 5\d\d\b|^E {3}",
        r"^(?:[ \t|]|│|├|└|─){0,40}(?:✗|✕|✘|✖|❌|×|🔴)",  # noqa: RUF001
    )
)


class FailureLine(NamedTuple):
    """One line and its number, from 0."""

    number: int
    text: str


def failure_lines(
    content: str, marks: Marks | None = None, number_at: Callable[[int], int] | None = None
) -> list[FailureLine]:
    """Every line that reports a failure, in order.

    `marks` are the results of `find_marks` for the content, if they exist already. `number_at` gives the number of the
    line at a byte, if the caller has something faster than counting.
    """
    if marks is None:
        marks = find_marks(content.encode("utf-8", "surrogatepass"), failure=PATTERN)
    data, failing = marks.data, []
    end = number = counted = looks = 0
    start = -1
    for at in marks.failures:
        if at >= end or start < 0:
            start = data.rfind(b"\n", 0, at) + 1
            end = data.find(b"\n", at)
            end, looks = len(data) if end < 0 else end, 0
        elif looks < 0 or looks >= _LOOKS_PER_LINE:  # decided already
            continue
        long = end - start > _LONGEST_LOOK
        looks = looks + 1 if long else -1
        # The part of a long line begins early enough to include the words before the candidate.
        part = data[max(start, at - 220) : min(end, at + 200)] if long else data[start:end]
        text = part.decode("utf-8", "replace" if long else "surrogatepass").rstrip("\r")
        if _fails(text):
            number = number_at(start) if number_at else number + data.count(b"\n", counted, start)
            counted, looks = start, -1
            line = data[start:end].decode("utf-8", "surrogatepass").rstrip("\r") if long else text
            failing.append(FailureLine(number, line))
    return failing


def excerpt(line: str, length: int) -> str:
    """The line, or of a long one the part that says what failed."""
    line = line.strip()
    if len(line) <= length:
        return line
    start = max(0, _first(line[:_LONGEST_LOOK]) - length // 3)
    start = 0 if start < 20 else start
    return ("…" if start else "") + line[start : start + length] + "…"


def _first(line: str) -> int:
    """Where the line first reports a failure, or -1."""
    for match in _WORD.finditer(line):
        if not _NONE.search(line[max(0, match.start() - 5) : match.start()]):
            return match.start()
    value = _VALUE.search(line)
    return value.start() if value else -1


def _fails(line: str) -> bool:
    """Whether a candidate line reports a failure."""
    if _first(line) >= 0:
        # These two are levels of a log in brackets; elsewhere they are words like others, unless another one helps.
        return not ("crit" in line or "alert" in line) or bool(_HELPS.search(line))
    head = line[:200]
    return bool(_MARKED.match(head) or _ASSERTION.match(head) or _SERVER_ERROR.search(line))
