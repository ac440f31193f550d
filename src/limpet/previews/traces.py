"""Stack traces: what was raised, where in one's own code, and through which frames."""

from __future__ import annotations

import re

from limpet.previews.core import Sheet, Text, plural
from limpet.previews.failures import excerpt

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


def score(text: Text) -> float:
    """How many lines are frames, when something was raised."""
    sample = text.sample
    frames = sum(bool(_FRAME.search(line)) for line in sample)
    raised = any(_RAISED.search(line) or "Traceback (most" in line for line in sample)
    if frames < 2 or not raised:
        return 0.0
    return min(0.9, 0.45 + frames / len(sample))


def render(text: Text, sheet: Sheet) -> None:
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
