"""What a question to one text asks for, beyond its words: a total, an extreme, an end, a reason, a kind of tool.

The words of such a question often do not occur in the line that answers it. "How many failed" is answered by a summary
line, "the slowest" by the line with the greatest duration, and "the type checker" by what mypy printed. Each function
gives the units that answer such a question; `ask` adds them to those that have the words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from heapq import nlargest
from itertools import islice

from limpet.recall.question import Term, folded, term_stem
from limpet.recall.units import Units
from limpet.record import NamedTuple

_MOST_UNITS = 60_000  # units whose quantities are compared
_MOST_CHARS = 6_000_000  # characters of a text that is searched for quantities at all
_HEAD, _TAIL = 80, 600  # units of a long text that are searched for totals
_UNIT_CHARS = 400  # of a unit that are examined
_QUANTITY_CHARS = 240  # of a line in which its quantity is looked for
_EXTREMES = 3  # units with the greatest quantities: the first may be a total

_TOTAL = re.compile(
    r"\bhow many\b|\btotals?\b|\bin all\b|\boverall\b|\bsummary\b|\bnumber of\b|\bcount\b|\bresult of\b|\bdid .{1,40}\b"
    r"(?:pass|succeed)\b",
    re.I,
)
_REASON = re.compile(
    r"\bwhy\b|\bcause|\breason|\b(?:what|which) (?:exception|error)\b|\bwhat (?:went|is|was) wrong|\bwhat broke"
    r"|\brefused\b|\bwhat happened",
    re.I,
)
_SETTING = re.compile(r"\bsetting|\bconfig|\benv\b|\benvironment|\boption|\bparameter|\bstarted with|\bcommand\b", re.I)
_LAST = re.compile(r"\b(?:last|final)\b")  # not where it is a part of a name, such as First Load
_FIRST = re.compile(r"\bfirst\b")
_GREATEST = re.compile(
    r"\b(?:slowest|longest|largest|biggest|highest|greatest|heaviest|strongest|hottest|tallest|most|max(?:imum)?)\b",
    re.I,
)
_LEAST = re.compile(
    r"\b(?:fastest|quickest|shortest|smallest|lowest|weakest|coldest|least|fewest|min(?:imum)?)\b", re.I
)
_TIME = re.compile(r"\b(?:slowest|fastest|longest|quickest|shortest)\b", re.I)
_BULK = re.compile(r"\b(?:largest|biggest|smallest|heaviest)\b", re.I)

SUMMARY_LINE = re.compile(
    r"\b\d[\d,]{0,12} (?:passed|failed|passing|failing|skipped|ignored|errors?|warnings?|problems?|tests?|packages?"
    r"|files?|failures?|issues?|deadlocks?|vulnerabilities|insertions|deletions|rows|items|succeeded|previous errors)\b"
    r"|^\W{0,8}(?:total|grand total|summary|result|found|added|ran|done|tests|files|passed|failed|coverage)\b.{0,80}\d"
    r"|\bsummary\b.{0,40}\d|^# (?:tests|pass|fail|skipped|todo|cancelled|suites) \d|\b(?:tests|failures)=\"?\d"
    r"|\b100%.{0,120}\d/\d|^\W{0,8}result: \w|\btest result: ",
    re.I | re.M,
)
FAILING = re.compile(
    r"\b(?:error|fatal|panic|panicked|critical|severe|exception|failed|failure|denied|refused|cannot|could not|invalid"
    r"|unable|expected|caused by|detail|hint|assert|undefined|undeclared|no such|not found|timed? ?out)\b"
    r"|[a-z](?:Error|Exception)\b|^E   |^not ok\b",
    re.I,
)
# The same where the line says so in the form of an error of its own.
RAISED = re.compile(
    r"^E   |\b(?:error|fatal|panic|ERROR|FATAL|SEVERE|CRITICAL)(?:\[\w{1,12}\])?:\s|[a-z](?:Error|Exception)\b"
    r"|panicked at|^\s*error: |\bassertion\b|^not ok\b|DETAIL:|Caused by:|failed:|because "
)
# The line of a program or a runner that repeats what it was given: it has the words, and says nothing of the outcome.
ECHO = re.compile(r"^\s*(?:\[command\]|\$ |\+ |> |env: )|(?:\b[\w.-]{2,40}=\S{1,80}[ ,]+){2}[\w.-]{2,40}=")

# Words for kinds of tools, and how the tools name themselves in what they print.
_TOOLS = {
    "type check": ("mypy", "pyright", "tsc", "types", "typecheck", "flow", "ty"),
    "lint": ("lint", "ruff check", "eslint", "flake8", "pylint", "clippy", "shellcheck", "golangci", "stylelint"),
    "package manager": ("pip", "uv pip", "npm", "yarn", "pnpm", "poetry", "cargo add", "apt", "install", "resolved"),
    "test runner": (
        "pytest",
        "jest",
        "vitest",
        "mocha",
        "test session",
        "unit tests",
        "cargo test",
        "go test",
        "prove",
    ),
    "unit test": ("pytest", "jest", "vitest", "mocha", "test session", "cargo test", "go test", "prove"),
    "formatter": ("ruff format", "black", "prettier", "gofmt", "rustfmt", "reformatted", "format"),
    "compiler": ("gcc", "g++", "clang", "rustc", "javac", "tsc", "compiling"),
    "native build": ("gcc", "g++", "clang", "make", "cmake", "ninja"),
    "build tool": ("make", "cmake", "ninja", "gradle", "maven", "webpack", "vite", "bazel"),
    "bundler": ("webpack", "vite", "rollup", "esbuild", "parcel"),
    "version control": ("git", "commit", "checkout", "head is now"),
    "debugger": ("gdb", "lldb"),
    "security scan": ("audit", "bandit", "trivy", "snyk", "vulnerabilities"),
    "coverage": ("coverage", "cov", "stmts"),
}

_DURATION = re.compile(
    r"(?<![\w.])(\d{1,12}(?:\.\d{1,9})?)\s?(ns|us|µs|ms|s|secs?|seconds?|min|minutes?|h|hours?)(?![\w/])"
)
_SECONDS = {"n": 1e-9, "u": 1e-6, "µ": 1e-6, "ms": 1e-3, "s": 1.0, "mi": 60.0, "h": 3600.0}
_VOLUME = re.compile(r"(?<![\w.])(\d[\d,]{0,15}(?:\.\d{1,6})?)\s?(bytes|[kKMGT]?i?B|[KMGT])(?!\w)")
_FACTOR = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_LISTED = re.compile(r"[-l][-rwxsStT]{9}\S?\s+\d+\s+\S+\s+\S+\s+(\d{1,15})()\s")  # by `ls -l`
_DIFFSTAT = re.compile(r" \S[^|]{0,200}\|\s+(\d{1,9})() [+-]+\s*\Z")  # by `git diff --stat`
_LEADING = re.compile(r"\s*(\d{1,15}(?:\.\d{1,6})?)([KMGT]?)\s+\S")
_FIELD = re.compile(r"[\"']?([A-Za-z_][\w.-]{0,40})[\"']?\s?[=:]\s?[\"']?(-?\d{1,15}(?:\.\d{1,9})?)(?![\w.:-])")
_NUMBER = re.compile(r"[-+]?\d[\d,]{0,15}(?:\.\d{1,9})?%?")
_TIME_NAMES = {"ms", "time", "duration", "elapsed", "latency", "seconds", "took", "sec", "runtime", "wall"}
_BULK_NAMES = {"size", "bytes", "length", "kb", "mb", "volume", "rss"}
_NAMES_FOR = {
    "memory": {"rss", "mem", "memory"},
    "cpu": {"cpu"},
    "cost": {"cost", "price"},
    "amount": {"amount", "total"},
}


class Intent(NamedTuple):
    """What a question asks for."""

    total: bool
    reason: bool
    setting: bool
    extreme: int  # 1 for the greatest, -1 for the least, 0 for neither
    kind: str  # of the extreme: "time", "bulk" or "" for the column that the question names
    end: int  # 1 for the last, -1 for the first, 0 for neither


def intent_of(question: str) -> Intent:
    extreme = 1 if _GREATEST.search(question) else -1 if _LEAST.search(question) else 0
    kind = "time" if _TIME.search(question) else "bulk" if _BULK.search(question) else ""
    end = 1 if _LAST.search(question) else -1 if _FIRST.search(question) else 0
    return Intent(
        _TOTAL.search(question) is not None,
        _REASON.search(question) is not None,
        _SETTING.search(question) is not None,
        extreme,
        kind,
        end,
    )


def tool_terms(question: str) -> list[tuple[Term, ...]]:
    """For each kind of tool in the question, the terms that may mean it."""
    low = folded(question)
    groups: list[tuple[Term, ...]] = []
    for kind, names in _TOOLS.items():
        if kind in low:
            groups.append(tuple(Term(name, term_stem(name) if name.isalpha() else "", 1.0) for name in names))
    return groups


def totals(units: Units) -> list[int]:
    """The summary lines of a text; of a long one, those near its beginning and its end."""
    if units.count <= _MOST_UNITS and len(units.text) <= _MOST_CHARS // 3:
        places = (match.start() for match in islice(SUMMARY_LINE.finditer(units.text), 2_000))
        return list(dict.fromkeys(units.at(place) for place in places))
    near = [*range(min(_HEAD, units.count)), *range(max(_HEAD, units.count - _TAIL), units.count)]
    return [unit for unit in near if SUMMARY_LINE.search(units[unit][:_UNIT_CHARS])]


def ends(units: Units, end: int) -> list[int]:
    """The first or the last unit with something in it, not counting the names of columns."""
    order = range(units.count - 1, -1, -1) if end > 0 else range(1 if units.separated() else 0, units.count)
    return list(islice((unit for unit in order if not units.blank(unit)), 1))


def extremes(units: Units, intent: Intent, stems: frozenset[str]) -> list[int]:
    """The units with the greatest or the least quantities of the kind that is asked for, the best first."""
    if not intent.extreme or units.count > _MOST_UNITS or len(units.text) > _MOST_CHARS:
        return []
    names = _names(intent, stems)
    for quantities in (_columns(units, names), _fields(units, names), _quantities(units, intent.kind)):
        pairs = list(quantities)
        if len(pairs) >= 2:
            ranked = nlargest(4 * _EXTREMES, pairs, key=lambda pair: (intent.extreme * pair[0], -pair[1]))
            return list(dict.fromkeys(unit for _, unit in ranked))[:_EXTREMES]
    return []


def extreme_fields(text: str, intent: Intent, stems: frozenset[str]) -> list[int]:
    """Where the greatest or the least values of such a field are, in a text that was not cut into units yet."""
    if not intent.extreme or len(text) > _MOST_CHARS:
        return []
    pairs = _values(text, _names(intent, stems))
    return [place for _, place in nlargest(_EXTREMES, pairs, key=lambda pair: (intent.extreme * pair[0], -pair[1]))]


def _names(intent: Intent, stems: frozenset[str]) -> frozenset[str]:
    """Stems of the columns or fields that may hold the quantity."""
    usual = _TIME_NAMES if intent.kind == "time" else _BULK_NAMES if intent.kind == "bulk" else set()
    related = {name for word, names in _NAMES_FOR.items() if term_stem(word) in stems for name in names}
    return frozenset({*stems, *map(term_stem, usual | related)})


def _columns(units: Units, names: frozenset[str]) -> Iterator[tuple[float, int]]:
    """The values of the column that the header names: separated by signs, or lined up with blanks."""
    header = units[0] if units.count else ""
    sign = next((sign for sign in (",", "\t", ";", "|") if units.separated() and header.count(sign)), None)
    cells = header.split(sign) if sign else header.split()
    column = next((at for at, cell in enumerate(cells) if _stems(cell) & names), None)
    if column is None or (sign is None and (len(cells) < 3 or any(map(str.isdigit, header)))):
        return
    for unit in range(1, units.count):
        row = units[unit].split(sign, len(cells))
        if len(row) > column and _NUMBER.fullmatch(cell := row[column].strip(' "')):
            yield float(cell.strip("%").replace(",", "")), unit


def _stems(name: str) -> set[str]:
    return {term_stem(folded(part)) for part in re.findall(r"[A-Za-z]+", name)}


def _fields(units: Units, names: frozenset[str]) -> Iterator[tuple[float, int]]:
    """The values of fields with a name that fits, and their units."""
    return ((value, units.at(place)) for value, place in _values(units.text, names))


def _values(text: str, names: frozenset[str]) -> Iterator[tuple[float, int]]:
    """The values of fields with a name that fits, and where they are: `"ms":12`, `size=4096`."""
    fitting: dict[str, bool] = {}
    for match in _FIELD.finditer(text):
        name = match[1]
        if name not in fitting:
            fitting[name] = bool(_stems(name.replace("_", " ")) & names)
        if fitting[name]:
            yield float(match[2]), match.start()


def _quantity(line: str) -> re.Match[str] | None:
    """How much a line of a listing counts, and in which unit."""
    return _LEADING.match(line) or _LISTED.match(line) or _DIFFSTAT.match(line)


def _quantities(units: Units, kind: str) -> Iterable[tuple[float, int]]:
    """Durations or volumes with their units, else the numbers that lines begin with."""
    if kind == "time":
        return [
            (float(match[1]) * _SECONDS.get(match[2][:2], _SECONDS.get(match[2][0], 1.0)), units.at(match.start()))
            for match in _DURATION.finditer(units.text)
        ]
    leading = [
        (float(match[1]) * _FACTOR.get(match[2].lower(), 1), unit)
        for unit in range(units.count)
        if (match := _quantity(units[unit][:_QUANTITY_CHARS]))
    ]
    if len(leading) * 2 >= units.count or kind != "bulk":
        return leading if len(leading) * 3 >= units.count else []
    return [
        (float(match[1].replace(",", "")) * _FACTOR.get(match[2][0].lower(), 1), units.at(match.start()))
        for match in _VOLUME.finditer(units.text)
    ]
