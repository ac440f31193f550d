"""Logs: the time range, the number of lines per level, and similar lines folded into one line and a count."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from limpet.previews.core import Sheet, Text, clip, ordinal
from limpet.previews.failures import excerpt

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
_WARNING = re.compile(r"(?i)\bwarn(?:ing)?\b|\bdenied\b|\brefused\b|\binvalid\b|\bunable\b|\babnormal\w{0,4}\b")
_VARIABLE = re.compile(
    r"0x[0-9a-fA-F]{1,32}|\b[0-9a-f]{8,64}\b|\d{1,40}|\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|(?<==)[^\s,;]{1,200}"
)
_LEVELS = "TRACE DEBUG INFO NOTICE WARN ERROR CRITICAL FATAL ALERT EMERG"
_SAME = {"WARNING": "WARN", "ERR": "ERROR", "CRIT": "CRITICAL", "SEVERE": "ERROR"}
_SAME |= {"V": "TRACE", "D": "DEBUG", "I": "INFO", "W": "WARN", "E": "ERROR", "F": "FATAL"}
_HEADER = re.compile(r"[\"\w. ()%/-]{1,60}(?:[,;\t][\"\w. ()%/-]{0,60}){2,80}")
_MOST_LINES = 8_000


def score(text: Text) -> float:
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


def render(text: Text, sheet: Sheet) -> None:
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
    bad = [each for each in groups if each[0] in failing]
    _show(bad, lines, sheet, 1, share=0.5)
    warn = [each for each in groups if each[0] not in failing and _warns(lines[each[0]])]
    rest = [each for each in groups if each[0] not in failing]
    sheet.add_lines(
        [(0, lines[0]), *((at, lines[at]) for at in range(len(lines) - 1, max(0, len(lines) - 3), -1))],
        at=3,
        share=0.35,
        length=150,
    )
    _show(warn, lines, sheet, 2, share=0.35)
    rare = sorted(rest, key=lambda each: (each[1], each[0]))
    often = sorted(rest, key=lambda each: (-each[1], each[0]))
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


def _warns(line: str) -> bool:
    access = _ACCESS.search(line[:600])
    return access.group(2)[0] == "4" if access else bool(_WARNING.search(line[:300]))


def _fold(lines: Sequence[str], chosen: Sequence[int]) -> list[tuple[int, int, int]]:
    """(first line, how many, last line) for every kind of line, in order."""
    groups: dict[str, list[int]] = {}
    for at in chosen:
        key = fold_key(lines[at])
        group = groups.get(key)
        if group is None:
            groups[key] = [at, 1, at]
        else:
            group[1] += 1
            group[2] = at
    return [(group[0], group[1], group[2]) for group in groups.values()]


def _show(groups: Sequence[tuple[int, int, int]], lines: Sequence[str], sheet: Sheet, at: int, share: float) -> None:
    ordered = sorted(groups, key=lambda each: (-min(each[1], 3), each[0])) if at == 1 else groups
    floor = sheet.left * (1 - share)
    for first, times, _ in ordered:
        if sheet.left <= max(floor, 12):
            break
        line = lines[first]
        clock = _CLOCK.search(line[:60])
        prefix = f"×{times} " if times > 1 else f"{clock.group()} " if clock and message(line) != line.strip() else ""  # noqa: RUF001
        sheet.add(prefix + clip(excerpt(message(line), 170), 175 if at == 1 else 130), at=at)


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
