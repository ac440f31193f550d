"""What programs print while they run: tests and builds, stack traces, logs.

Of tests and builds, how they ended, every failure with its reason as far as it fits, and the summary. Of a trace, what
was raised, where in one's own code, and through which frames. Of a log, the time range, the number of lines per level,
and similar lines folded into one line and a count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from limpet.previews.core import BIG, OutputText, Sheet, clip, ordinal, plural
from limpet.previews.failures import FailureLine, excerpt
from limpet.record import NamedTuple

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
    r"|^# (?:tests|pass|fail|skipped|todo|cancelled|duration_ms) \d|^Result: |^Files=\d|^Failed tests?: "
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
_TAP = re.compile(
    r"(?m)^(?:TAP version \d|1\.\.\d{1,6}\s*$)[^\x00]{0,2000}?^(?:not )?ok \d"
)  # the Test Anything Protocol


def run_score(text: OutputText) -> float:
    """How many lines look like those of a test runner, a compiler or a build."""
    if "<testsuite" in text.content[:2000]:
        return 0.99
    if _TAP.search(text.content, 0, 4000):
        return 0.95
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


def render_run(text: OutputText, sheet: Sheet) -> None:
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


def _coverage(text: OutputText, sheet: Sheet) -> None:
    """A table of coverage: its header and the files that are covered least."""
    covered = [(int(hit.group(1)), at) for at, line in text.numbered() if (hit := _COVERED.match(line[:300]))]
    if len(covered) < 3:
        return
    first = min(at for _, at in covered)
    head = [(at, text.lines[at]) for at in range(max(0, first - 2), first)]
    sheet.add_lines(((at, line) for at, line in head if not _RULE.fullmatch(line[:300])), at=7, length=120)
    sheet.add_lines(((at, text.lines[at]) for _, at in sorted(covered)), at=7, length=100)


def _failures(text: OutputText, sheet: Sheet) -> int:
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


def _junit(text: OutputText, sheet: Sheet) -> None:
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


# --- stack traces -----------------------------------------------------------------------------------------------------

_FRAME = re.compile(
    r"^\s{0,20}(?:File \"[^\"\n]{1,400}\", line \d|at (?:async )?[\w.$<>\[\]/ ]{1,300}[(:]|at \S{1,300}:\d"
    r"|#\d{1,4} |\d{1,4}: {1,2}\S|\.\.\. \d{1,5} more|from \S{1,300}:\d{1,7}:in |\S{1,300}\.go:\d{1,7}|goroutine \d)"
)
_RAISED = re.compile(
    r"^\s{0,8}(?:[A-Za-z_$][\w.$]{0,200}(?:Error|Exception|Warning|Interrupt|Exit|Throwable|Fault)\b|panic:|thread '"
    r"|Caused by:|Exception in thread|Unhandled|Uncaught|fatal error:|SIG[A-Z]{3,5})"
)
_FOREIGN = re.compile(
    r"site-packages|dist-packages|node_modules|<frozen|/lib/python|java\.base|^\s{0,8}at (?:java|sun|jdk|org\.spring)"
)


def trace_score(text: OutputText) -> float:
    """How many lines are frames, when something was raised."""
    sample = text.sample
    frames = sum(bool(_FRAME.search(line)) for line in sample)
    raised = any(_RAISED.search(line) or "Traceback (most" in line for line in sample)
    if frames < 2 or not raised:
        return 0.0
    return min(0.9, 0.45 + frames / len(sample))


def render_trace(text: OutputText, sheet: Sheet) -> None:
    """What was raised, the frames of one's own code nearest to it, the first and the last lines."""
    lines = text.lines
    raised = [(at, line) for at, line in text.numbered() if _RAISED.search(line[:300])]
    frames = [(at, line) for at, line in text.numbered() if _FRAME.search(line[:300])]
    sheet.add(f"{plural(len(frames), 'frame')}, {plural(len(raised), 'exception line')}{text.part}", at=0)
    first: dict[str, tuple[int, str]] = {}
    for at, line in raised:
        first.setdefault(line.strip()[:200], (at, line))
    distinct = list(first.values())
    sheet.add_lines([(at, excerpt(line, 200)) for at, line in [*distinct[-1:], *distinct[:-1]]], at=1, share=0.6)
    own = [each for each in frames if not _FOREIGN.search(each[1][:400])]
    near = sorted(own or frames, key=lambda each: min((abs(each[0] - at) for at, _ in raised[:50]), default=each[0]))
    for at, line in near:
        if sheet.left < 30:
            break
        sheet.add_line(at, line, at=1, length=160)
        if at + 1 < len(lines) and line.lstrip().startswith("File "):
            sheet.add_line(at + 1, lines[at + 1], at=1, length=160)
    sheet.add_lines(
        [*enumerate(lines[:3]), *((at, lines[at]) for at in range(max(0, len(lines) - 3), len(lines)))], at=1
    )


# --- logs -------------------------------------------------------------------------------------------------------------

_STAMP = re.compile(
    r"\[?(?:"
    r"\d{4}[-/]\d\d[-/]\d\d(?:[T ,-]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[ ]?[-+]\d\d:?\d\d)?)?"
    r"|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d"
    r"(?: \d\d:\d\d:\d\d)?(?: \d{4})?"
    r"|\d\d/(?:\d\d|[A-Z][a-z]{2})/\d{2,4}[: ]\d\d:\d\d:\d\d(?: [-+]\d{4})?"
    r"|\d{6} \d{6}|\d\d:\d\d:\d\d(?:[.,]\d{1,6})?|\d{2}-\d{2} \d\d:\d\d:\d\d\.\d{3}|\d{10}(?:\.\d{1,6})?(?= )"
    r")\]?"
)
_DIGIT = re.compile(r"\d")
_CLOCK = re.compile(r"\d\d:\d\d:\d\d")
# Every alternative begins with a sign or a letter of its own, so that most places are passed over at a glance.
_LEVEL = re.compile(
    r"[TDINWECFSA](?<!\w[A-Z])(?:(?<=T)RACE|(?<=D)EBUG|(?<=I)NFO|(?<=N)OTICE|(?<=W)ARN(?:ING)?|(?<=E)(?:RR(?:OR)?|MERG)"
    r"|(?<=C)RIT(?:ICAL)?|(?<=F)ATAL|(?<=S)EVERE|(?<=A)LERT)\b"
    r"|[\[=\"](?:trace|debug|info|notice|warn|warning|error|err|critical|crit|fatal|alert|emerg)[\]\" ,]"
    r"| (?:info|warn|warning|error|debug)(?=[ :])"
    r"| [VDIWEF](?=[/ ] ?\w)"
)
_ACCESS = re.compile(
    r'"(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|CONNECT|PROPFIND) (\S{1,2000})[^"\n]{0,200}" (\d{3})\b'
)
_LOG_WARNING = re.compile(r"(?i)\bwarn(?:ing)?\b|\bdenied\b|\brefused\b|\binvalid\b|\bunable\b|\babnormal\w{0,4}\b")
_VARIABLE = re.compile(
    r"0x[0-9a-fA-F]{1,32}|\b[0-9a-f]{8,64}\b|\d{1,40}|\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|(?<==)[^\s,;]{1,200}"
)
_LEVELS = "TRACE DEBUG INFO NOTICE WARN ERROR CRITICAL FATAL ALERT EMERG"
_SAME = {"WARNING": "WARN", "ERR": "ERROR", "CRIT": "CRITICAL", "SEVERE": "ERROR"}
_SAME |= {"V": "TRACE", "D": "DEBUG", "I": "INFO", "W": "WARN", "E": "ERROR", "F": "FATAL"}
_HEADER = re.compile(r"[\"\w. ()%/-]{1,60}(?:[,;\t][\"\w. ()%/-]{0,60}){2,80}")
_MOST_LINES = 8_000
_LONG_WORD = 24  # characters of a word beyond which its last form is not shown


def log_score(text: OutputText) -> float:
    """How many lines have a time near their beginning."""
    sample = text.sample
    if len(sample) < 4:
        return 0.0
    # Every time has a digit in it, and looking for one is many times faster.
    stamped = sum(bool(_DIGIT.search(line, 0, 60) and _STAMP.search(line[:60])) for line in sample) / len(sample)
    if stamped < 0.4 or sum(bool(_CLOCK.search(line[:80])) for line in sample) / len(sample) < 0.3:
        levelled = sum(bool(_LEVEL.search(line[:120])) for line in sample) / len(sample)
        if stamped < 0.4 or levelled < 0.3:
            return 0.75 * levelled if levelled > 0.7 else 0.0
    # Rows of a table have times as well; what then differs is that the first line names the columns.
    header = bool(_HEADER.fullmatch(sample[0][:300])) and not _STAMP.search(sample[0][:60])
    return 0.55 + 0.35 * stamped - (0.2 if header else 0.0)


def render_log(text: OutputText, sheet: Sheet) -> None:
    """Times and levels, then folded lines: failures, warnings, rare ones, frequent ones, the first and the last."""
    sheet.gaps = False
    lines = text.lines
    near = range(min(200, len(lines)))
    first, last = (_first_stamp(lines[at] for at in order) for order in (near, (-1 - at for at in near)))
    if first:
        sheet.add(f"from {first} to {last or '?'}", at=0)
    most = text.most(_MOST_LINES)
    step = 1 + len(lines) // most
    chosen = [at for at in range(0, len(lines), step) if lines[at].strip()]
    part = f" (in every {ordinal(step)} line)" if step > 1 else ""
    levels, statuses = _levels(lines[at] for at in chosen)
    if statuses:
        sheet.add(
            "status" + part + ": " + ", ".join(f"{code} {times}" for code, times in sorted(statuses.items())), at=0
        )
    if levels:
        ordered = sorted(levels.items(), key=lambda pair: (_LEVELS.find(pair[0]), pair[0]))
        sheet.add("levels" + part + ": " + ", ".join(f"{name} {times:,}" for name, times in ordered), at=0)
    failing = {line.number for line in text.failures}
    groups = _fold(lines, sorted({*chosen, *(line.number for line in text.failures[:most])}))
    bad = [each for each in groups if each.first in failing]
    _show(bad, lines, sheet, 1, share=0.5)
    warn = [each for each in groups if each.first not in failing and _log_warns(lines[each.first])]
    rest = [each for each in groups if each.first not in failing]
    sheet.add_lines(
        [(0, lines[0]), *((at, lines[at]) for at in range(len(lines) - 1, max(0, len(lines) - 3), -1))],
        at=3,
        share=0.35,
        length=150,
    )
    _show(warn, lines, sheet, 2, share=0.35)
    rare = sorted(rest, key=lambda each: (each.times, each.first))
    often = sorted(rest, key=lambda each: (-each.times, each.first))
    mixed = [each for pair in zip(often, rare, strict=True) for each in pair]
    warned = {id(each) for each in warn}
    _show([each for each in dict.fromkeys(mixed) if id(each) not in warned], lines, sheet, 2, share=1.0)


def fold_key(line: str) -> str:
    """The common part of lines that differ in numbers, codes and quoted values."""
    access = _ACCESS.search(line[:3000])
    if access:
        return _VARIABLE.sub("#", access.group(1)[:200]) + " " + access.group(2)
    stamp = _STAMP.search(line[:60])
    body = line[stamp.end() if stamp else 0 :][:240]
    # The first words say what happened, later ones to whom: lines as long with the same beginning are alike.
    if '"' not in body and "'" not in body:  # without quoted values the number of words does not change
        words = body.split()
        return f"{len(words)} " + _VARIABLE.sub("#", " ".join(words[:6]))
    words = _VARIABLE.sub("#", body).split()
    return f"{len(words)} " + " ".join(words[:6])


def message(line: str) -> str:
    """The line without its time."""
    stamp = _STAMP.search(line[:80])
    if stamp is None or (stamp.start() > 2 and not _ACCESS.search(line[:600])):
        return line.strip()
    before = line[: stamp.start()].replace(" - - ", " ")
    return (before + line[stamp.end() :].lstrip(" ,:-")).strip()


def _log_warns(line: str) -> bool:
    access = _ACCESS.search(line[:600])
    return access.group(2)[0] == "4" if access else bool(_LOG_WARNING.search(line[:300]))


class _Group(NamedTuple):
    """Lines of one kind: the first, how many there are, and the last one that reads differently."""

    first: int
    times: int
    varied: int | None


def _fold(lines: Sequence[str], chosen: Sequence[int]) -> list[_Group]:
    """Every kind of line, in order."""
    groups: dict[str, _Group] = {}
    for at in chosen:
        key = fold_key(lines[at])
        group = groups.get(key)
        if group is None:
            groups[key] = _Group(at, 1, None)
        else:
            same = group.varied is None and message(lines[at]) == message(lines[group.first])
            groups[key] = _Group(group.first, group.times + 1, None if same else at)
    return list(groups.values())


def _show(groups: Sequence[_Group], lines: Sequence[str], sheet: Sheet, at: int, share: float) -> None:
    ordered = sorted(groups, key=lambda each: (-min(each.times, 3), each.first)) if at == 1 else groups
    floor = sheet.left * (1 - share)
    for group in ordered:
        if sheet.left <= max(floor, 12):
            break
        line = lines[group.first]
        clock = _CLOCK.search(line[:60])
        text = message(line)
        prefix = f"{clock.group()} " if clock and text != line.strip() else ""
        if group.varied is not None:
            prefix, text = f"×{group.times} like ", _ranging(text, message(lines[group.varied]))  # noqa: RUF001
        elif group.times > 1:
            prefix = f"×{group.times} "  # noqa: RUF001
        sheet.add(prefix + clip(excerpt(text, 170), 175 if at == 1 else 130), at=at)


def _ranging(first: str, last: str) -> str:
    """The first of several similar lines, with what differs in the last one beside it: `order 5001…5030 paid`."""
    before, after = first.split(), last.split()
    if len(before) != len(after):
        return first
    pairs = zip(before, after, strict=True)
    return " ".join(old if old == new or len(new) > _LONG_WORD else f"{old}…{new}" for old, new in pairs)


def _levels(lines: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
    levels: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    for line in lines:
        access = _ACCESS.search(line[:600])
        if access:
            statuses[access.group(2)] += 1
            continue
        level = _LEVEL.search(line[:160])
        if level:
            name = level.group().strip('[]=" ,').upper()
            levels[_SAME.get(name, name)] += 1
    return levels, statuses


def _first_stamp(lines: Iterable[str]) -> str:
    for line in lines:
        stamp = _STAMP.search(line[:80])
        if stamp:
            return stamp.group().strip("[]")
    return ""
