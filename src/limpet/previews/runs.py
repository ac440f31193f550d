"""Test and build output: how it ended, every failure with its reason as far as it fits, and the summary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from limpet.previews.core import BIG, Sheet, Text, plural
from limpet.previews.failures import FailureLine, excerpt

# Signs of a run, in three patterns: signs at the beginning of a line are not searched for elsewhere, and where every
# alternative begins with a distinct character, the engine skips quickly.
_STARTS = re.compile(
    r"(?:PASS|FAIL|ok|FAILED|---|===) {1,3}(?:\S{1,200}|[A-Z]{3,5}:)|--- (?:FAIL|PASS|SKIP):|=== RUN"
    r"|Ran \d{1,9} tests? in|Test Suites:|Tests:? {1,8}\d|test result:|test \S{1,200} \.\.\. "
    r"|running \d{1,9} tests?|\s{0,8}(?:✓|✗|✕|✔|✘|×|⚠|❌|●) ?\S|(?:error|warning)(?:\[\w{1,12}\])?:"  # noqa: RUF001
    r"|\s{0,4}\d{1,7}:\d{1,5}\s{1,4}(?:error|warning)\s|\[(?:ERROR|INFO|WARNING)\] |make(?:\[\d\])?: "
    r"|npm (?:ERR!|WARN|error|warn)|(?:ok|not ok) \d| +(?:Compiling|Finished|Checking|Running) "
    r"|\S{1,200}::\S{1,200} (?:PASSED|FAILED|ERROR|SKIPPED)|[.sFE]{0,5}\.{3}[.sFExX]{5,} ?(?:\[ {0,3}\d{1,3}%\])?$"
    r"|\S{1,300}:\d{1,7}:\d{1,5}: [A-Z]{1,4}\d{1,4} |Found \d{1,7} errors?"
)
_SIGNS = re.compile(
    r"=== (?:test session starts|FAILURES|ERRORS|short test summary|warnings summary)"
    r"|== .{0,80}\b(?:passed|failed)\b|✖ \d{1,7} problems?|exit (?:code|status)"
    r"|error TS\d{1,6}:|: (?:fatal )?(?:error|warning|note)(?:\[[\w-]{1,40}\])?:"
    r"|BUILD (?:SUCCESS|FAILURE|FAILED|SUCCESSFUL)"
)
_COUNTS = re.compile(r"\d(?<!\w\d)\d{0,8} (?:passing|failing|passed|failed)\b")
_SUMMARY = re.compile(
    r"(?i)\b\d{1,9} (?:passed|failed|passing|failing|skipped|errors?|warnings?|problems?|tests?|todo)\b"
    r"|^\W{0,8}(?:tests?|test suites|test files|duration|time|snapshots|ran all|total|coverage|summary|result)"
    r"\b.{0,3}[: ]"
    r"|^ran \d|^ok$|^FAILED \(|test result:|build (?:success|fail|completed|finished)"
    r"|exit(?:ed)? (?:with )?(?:code|status)"
    r"|^found \d|^all files|^process (?:completed|finished|exited)|^done in|finished in|\bin \d{1,7}(?:\.\d{1,4})?s\b"
)
_EARLY = re.compile(r"\W{0,6}(?:collected|running) \d")
_WARNING = re.compile(r"(?i)^\W{0,8}warn(?:ing)?\b|: warning\b|\bwarning:|^\s{0,8}⚠|\bdeprecat")
_DETAIL = re.compile(
    r"^\s{0,12}(?:→|at |>|E {3}|Expected|Received|expected|received|assert|[-+] |\||-->|File \"|Error|got|want|#)"
)
_TAG = re.compile(r"<(testsuites|testsuite|testcase|failure|error|skipped)\b([^<>]{0,4000})(/?)>")
_ATTRIBUTE = re.compile(r"([\w:.-]{1,60})=\"([^\"<]{0,2000})\"")
_RULE = re.compile(r"[\s=_*#-]{0,400}")
_COVERED = re.compile(r"^\s{0,8}\S{1,200}(?:\s{1,60}\|?\s{0,60}\d{1,9}){1,5}\s{1,60}(\d{1,3})(?:\.\d{1,2})?%")
_PASSED = re.compile(r"^\s{0,12}(?:✓|✔|ok\b|PASS|--- PASS)|.{0,250}\bPASSED\b|.{0,250}\.\.\. ok$")
_PROGRESS = re.compile(r"[.sFExX]{5,300}\s{0,80}(?:\[\s{0,3}\d{1,3}%\])?")
_MOST_XML = 4_000_000
_BEGINNING = 140


def score(text: Text) -> float:
    """How many lines look like those of a test runner, a compiler or a build."""
    if "<testsuite" in text.content[:2000]:
        return 0.99
    # The signs of a run are near the beginning of its lines; in big texts it is expensive to look further.
    sample = [line[:_BEGINNING] for line in text.sample] if text.big else text.sample
    hits = sum(map(_sign, sample))
    if not hits:
        return 0.0
    ended = any(_sign(line) or _SUMMARY.search(line) for line in sample[-6:])
    if hits < 2 and not ended:
        return 0.0
    return min(0.97, 0.25 + 1.2 * hits / len(sample) + (0.3 if ended and hits >= 2 else 0.0))


def _sign(line: str) -> bool:
    return bool(_STARTS.match(line) or _SIGNS.search(line) or _COUNTS.search(line))


def render(text: Text, sheet: Sheet) -> None:
    """The summary, the failures with their reasons, the warnings, the beginning."""
    if "<testsuite" in text.content[:2000]:
        _junit(text, sheet)
        return
    lines = text.lines
    sheet.gaps = False
    if not text.failures:
        sheet.add("no failure found", at=0)
    tail = [
        at
        for at in range(len(lines) - 1, max(-1, len(lines) - 14), -1)
        if lines[at].strip() and _SUMMARY.search(lines[at][:300])
    ]
    early = [at for at, line in enumerate(lines[:400]) if len(line) < 300 and _EARLY.match(line)]
    failing = {line.number for line in text.failures}
    closing = [
        at
        for at in range(len(lines) - 1, max(-1, len(lines) - 4), -1)
        if at not in failing and not _PASSED.match(lines[at][:300])
    ]
    sheet.add_lines(
        ((at, lines[at]) for at in dict.fromkeys([*tail, *closing, *early[:1]])), at=9, share=0.3, length=130
    )
    listed = _failures(text, sheet)
    more = len(text.failures) - listed
    if more > 0:
        sheet.add(f"… and {plural(more, 'more failure line')}", at=5)
    warnings = [(at, line) for at, line in text.numbered() if _warns(line[:300])]
    if warnings and sheet.left > 20:
        sheet.add(plural(len(warnings), "warning line") + text.part, at=6)
        sheet.add_lines(((at, line.strip()) for at, line in warnings), at=6, share=0.7, length=150)
    _coverage(text, sheet)
    opening = ((at, line) for at, line in enumerate(lines[:60]) if not _PROGRESS.fullmatch(line[:300]))
    if sheet.left > 40:
        sheet.add_lines(opening, at=1, length=150)


def _warns(line: str) -> bool:
    # Most lines do not, and the words it takes are found many times faster than the pattern is.
    lower = line.lower()
    return bool(("warn" in lower or "deprecat" in lower or "⚠" in line) and _WARNING.search(line))


def _coverage(text: Text, sheet: Sheet) -> None:
    """A table of coverage: its header and the files that are covered least."""
    covered = [(int(hit.group(1)), at) for at, line in text.numbered() if (hit := _COVERED.match(line[:300]))]
    if len(covered) < 3:
        return
    first = min(at for _, at in covered)
    head = [(at, text.lines[at]) for at in range(max(0, first - 2), first)]
    sheet.add_lines(((at, line) for at, line in head if not _RULE.fullmatch(line[:300])), at=7, length=120)
    sheet.add_lines(((at, text.lines[at]) for _, at in sorted(covered)), at=7, length=100)


def _failures(text: Text, sheet: Sheet) -> int:
    """Show what failed: first every failure line, then what is said below each. How many of the lines were shown."""
    lines, chosen = text.lines, _distinct(text.failures)
    reserve = 12 if len(chosen) > 3 else 0
    sheet.left -= reserve
    numbers: set[int] = set()
    few = len(chosen) <= 12
    length = 205 if few else 120  # Where not all fit, more of them say more than all of each.
    order: Iterator[FailureLine] | Sequence[FailureLine] = chosen if few else _varied(chosen)
    floor = sheet.left * (0.35 if few else 0.08)
    missed = 0
    for line in order:
        if sheet.left <= floor or missed > 4:
            break
        content = excerpt(line.text, length - 5) if len(line.text) > 2 * length else line.text
        if sheet.add_line(line.number, content, at=5, length=length):
            numbers.add(line.number)
        else:
            missed += 1
    for line in chosen:
        if sheet.left < 30:
            break
        below = [(at, lines[at]) for at in range(line.number + 1, min(len(lines), line.number + 7))]
        sheet.add_lines((each for each in below if _DETAIL.search(each[1][:200])), at=5, length=140)
    sheet.left += reserve
    same = {line.text.strip() for line in chosen if line.number in numbers}
    return sum(line.number in numbers or line.text.strip() in same for line in text.failures)


def _distinct(failures: Sequence[FailureLine]) -> list[FailureLine]:
    """Every text once, and rules and headings between `=====` last: they say nothing that the others do not."""
    first: dict[str, FailureLine] = {}
    for line in failures:
        first.setdefault(line.text.strip(), line)
    bare = [line for line in first.values() if len(re.sub(r"[\W_]", "", line.text[:300])) < 12]
    dull = {line.number for line in bare}
    return [*(line for line in first.values() if line.number not in dull), *bare]


def _varied(failures: Sequence[FailureLine]) -> Iterator[FailureLine]:
    """One failure of every kind first (by code and by words), then the others."""
    kinds: dict[str, list[FailureLine]] = {}
    for line in failures:
        words = re.sub(r"['\"`][^'\"`]{0,200}['\"`]|\d{1,9}|\S{0,120}[/\\]\S{0,200}", "#", line.text[:300])
        kinds.setdefault(words[:80], []).append(line)
    for group in sorted(kinds.values(), key=lambda each: (-len(each), each[0].number)):
        yield group[0]
    for line in failures:
        words = re.sub(r"['\"`][^'\"`]{0,200}['\"`]|\d{1,9}|\S{0,120}[/\\]\S{0,200}", "#", line.text[:300])
        if kinds[words[:80]][0] is not line:
            yield line


def _junit(text: Text, sheet: Sheet) -> None:
    """A JUnit report: the suites with their counts, the cases that failed, the slowest ones."""
    cases: list[tuple[float, str]] = []
    failed: list[str] = []
    suites: list[str] = []
    case = ""
    most = BIG // 4 if text.big else _MOST_XML
    for element in _TAG.finditer(text.content[:most]):
        tag, raw = element.group(1), element.group(2)
        if tag.startswith("testsuite"):
            suites.append(f"<{tag} {raw.strip().rstrip('/')}>")
            continue
        attributes = dict(_ATTRIBUTE.findall(raw))
        if tag == "testcase":
            case = f"{attributes.get('classname', '')}::{attributes.get('name', '')}"
            seconds = attributes.get("time", "0")
            cases.append((float(seconds) if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", seconds) else 0.0, case))
        elif tag in {"failure", "error"}:
            body = text.content[element.end() : element.end() + 200].split("</", 1)[0] if not element.group(3) else ""
            failed.append(f"{tag}: {case}: {attributes.get('message') or ' '.join(body.split())}")
    counted = "" if len(text.content) <= most else " in the part that was read"
    sheet.add(f"JUnit report, {plural(len(cases), 'case')}, {len(failed):,} failed{counted}", at=0)
    sheet.add_all((excerpt(suite, 260) for suite in suites), at=1, share=0.4)
    listed = sheet.add_all((excerpt(each, 200) for each in failed), at=2, share=0.8)
    if len(failed) > listed:
        sheet.add(f"… and {plural(len(failed) - listed, 'more failure')}", at=3)
    slowest = sorted(cases, key=lambda each: -each[0])[:12]
    sheet.add_all((f"{seconds:.3f}s {name}" for seconds, name in slowest), at=4, share=0.8)
