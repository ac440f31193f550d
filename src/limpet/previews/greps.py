"""Search results (`path:line:text`): how many hits in which files, and the first hits of each file in turn."""

from __future__ import annotations

import re
from itertools import zip_longest

from limpet.previews.core import Sheet, Text, clip, plural

_HIT = re.compile(r"^((?:[A-Za-z]:)?[^\s:,\"|]{1,300}):\d{1,8}:|^([^\s:,\"|]{1,300})-\d{1,8}-")
_NAMED = re.compile(r"^()([^\s:,\"|]{0,300}[./][^\s:,\"|]{1,300}):(?=\S)(?!//)")
_FINDING = re.compile(r"^\S{1,300}:\d{1,8}:(?:\d{1,6}:)? (?:fatal |)(?:error|warning|note|info|[A-Z]{1,4}\d{2,5})\b")


def score(text: Text) -> float:
    """How many lines start with a path and a line number."""
    sample = [line for line in text.sample if line != "--"]
    if len(sample) < 3:
        return 0.0
    hits = sum(bool(_match(line)) for line in sample) / len(sample)
    findings = sum(bool(_FINDING.search(line)) for line in sample) / len(sample)
    return 0.9 * hits if hits > 0.6 and findings < 0.3 else 0.0


def render(text: Text, sheet: Sheet) -> None:
    """Files by hits, then one hit of every file, then the second ones."""
    sheet.gaps = False
    files: dict[str, list[int]] = {}
    for at, line in text.numbered():
        match = _match(line[:700])
        if match:
            files.setdefault(match.group(1) or match.group(2), []).append(at)
    total = sum(map(len, files.values()))
    sheet.add(f"{plural(total, 'hit')} in {plural(len(files), 'file')}{text.part}", at=0)
    most = sorted(files.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    if len(files) > 1:
        sheet.add_all((f"{clip(name, 120)}: {len(hits)}" for name, hits in most[:10]), at=1, share=0.3)
    turns = zip_longest(*(hits[:50] for hits in list(files.values())[:300]))
    sheet.add_lines(((at, text.lines[at]) for turn in turns for at in turn if at is not None), at=2, length=150)


def _match(line: str) -> re.Match[str] | None:
    return _HIT.match(line) or _NAMED.match(line)
