"""Any other text: its beginning and end, failures and totals, and evenly chosen lines. Also binary data."""

from __future__ import annotations

import re

from limpet.previews.core import Sheet, Text, clip, plural, spread
from limpet.previews.failures import excerpt
from limpet.text.safe import printable

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\ufffd]")
_TOTAL = re.compile(r"(?i)^\W{0,6}(?:grand )?(?:total|summary|result|conclusion|average)s?\b")


def score(text: Text) -> float:
    """Always possible, and lower than any other shape's score."""
    return 0.2


def binary(text: Text) -> bool:
    """Whether much of the beginning is control characters."""
    head = text.content[:4000]
    return bool(head) and len(_CONTROL.findall(head)) * 20 > len(head)


def render(text: Text, sheet: Sheet) -> None:
    """Head and tail, failures, totals, then lines from evenly chosen places."""
    if binary(text):
        sheet.add(f"binary-looking; begins {clip(printable(text.content[:200]), 80)!a}", at=0)
        return
    lines = text.lines
    if not lines:
        return
    longest = 0 if text.big and len(lines) > 3 else max(map(len, lines))
    if longest > 5000:
        sheet.add(f"longest line {longest:,} characters", at=0)
    failing = [(line.number, excerpt(line.text, 200)) for line in text.failures]
    sheet.add_lines(failing[:30], at=1, share=0.3)
    head = [(at, line) for at, line in enumerate(lines[:60]) if line.strip()]
    tail = [(at, lines[at]) for at in range(len(lines) - 1, max(-1, len(lines) - 12), -1) if lines[at].strip()]
    totals = [(at, line) for at, line in text.numbered() if _TOTAL.match(line[:60])]
    length = 220 if len(lines) > 3 else 1200
    sheet.add_lines(totals[-3:], at=1, share=0.2)
    sheet.add_lines(tail[:5], at=1, share=0.3, length=length)
    sheet.add_lines(head[:10], at=1, share=0.5, length=length)
    others = [at for at in spread(len(lines), 40) if lines[at].strip()]
    sheet.add_lines(((at, lines[at]) for at in others), at=1, share=0.6)
    sheet.add_lines(head[10:], at=1)


def size(text: Text) -> str:
    """`2,000 lines, 171,239 characters`."""
    return f"{plural(text.line_count, 'line')}, {text.size:,} characters"
