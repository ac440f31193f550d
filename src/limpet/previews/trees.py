"""Listings of files (`tree`, `find`, `ls -l`, `du`): how many where and of which kind, and the biggest ones."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from limpet.previews.core import Sheet, Text, clip, number, plural

_DRAWN = re.compile(r"^(?:[│|` \t\u00a0]{0,200})(?:├|└|\|--|`--|\+--)[─-]{0,4}\s?(.{1,300})$")
_LONG = re.compile(r"^[-dlbcps][-rwxsStT]{9}[.+@]?\s+\d{1,7}\s+\S{1,60}\s+\S{1,60}\s+(\d{1,15})\s+(.{1,400})$")
_SIZE = re.compile(r"\d{1,15}(?:\.\d{1,3})?[KMGT]?")
_BARE = re.compile(r"^[\w.@+-]{1,120}/?$")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class _Entry(NamedTuple):
    at: int
    path: str
    size: float


def score(text: Text) -> float:
    """How many lines are entries of a listing."""
    sample = text.sample
    if len(sample) < 4:
        return 0.0
    hits = sum(bool(_DRAWN.match(line) or _LONG.match(line) or _path(line)) for line in sample) / len(sample)
    bare = sum(bool(_BARE.match(line)) and "." in line for line in sample) / len(sample)
    return 0.82 * max(hits, bare * 0.8) if max(hits, bare) > 0.7 else 0.0


def render(text: Text, sheet: Sheet) -> None:
    """Counts by directory and kind, the biggest, then entries from all over the listing."""
    sheet.gaps = False
    files = [entry for at, line in text.numbered() if (entry := _entry(at, line))]
    tops = Counter(_top(each.path) for each in files if "/" in each.path.lstrip("./"))
    kinds = Counter(each.path.rsplit(".", 1)[-1].lower() for each in files if "." in each.path.rsplit("/", 1)[-1][1:])
    total = sum(each.size for each in files)
    sheet.add(
        plural(len(files), "entry").replace("entrys", "entries")
        + (f", {number(total)} bytes" if total else "")
        + text.part,
        at=0,
    )
    if tops:
        sheet.add(
            clip("directories: " + ", ".join(f"{name} {times}" for name, times in tops.most_common(12)), 240), at=0
        )
    if kinds:
        sheet.add(clip("kinds: " + ", ".join(f".{name} {times}" for name, times in kinds.most_common(10)), 160), at=0)
    biggest = sorted((each for each in files if each.size), key=lambda each: (-each.size, each.at))
    if biggest:
        sheet.add("biggest:", at=1)
        sheet.add_all((clip(text.lines[each.at].strip(), 150) for each in biggest[:30]), at=1, share=0.55)
    ends = [*range(2), *range(len(text.lines) - 2, len(text.lines))]
    sheet.add_lines(((at, text.lines[at]) for at in ends if 0 <= at < len(text.lines)), at=2, length=150)
    shallow = sorted(files, key=lambda each: (_depth(text, each), each.at))
    sheet.add_lines(((each.at, text.lines[each.at]) for each in shallow), at=2, length=150)


def _entry(at: int, line: str) -> _Entry | None:
    line = line[:900]
    drawn = _DRAWN.match(line)
    if drawn:
        return _Entry(at, drawn.group(1).strip(), 0)
    long = _LONG.match(line)
    if long:
        return _Entry(at, long.group(2).split()[-1], 0 if line[0] == "d" else float(long.group(1)))
    path = _path(line)
    if path:
        return _Entry(at, *path)
    return _Entry(at, line.strip(), 0) if _BARE.match(line) else None


def _path(line: str) -> tuple[str, float] | None:
    """The path at the end of a line, after at most four other words, and the size when the line starts with one."""
    words = line.split()
    if not words or ":" in words[-1] or "://" in line:
        return None
    start = next((at for at, word in enumerate(words[:5]) if "/" in word and not word[0].isdigit()), None)
    if start is None or len(words) - start > 4 or (start and not words[0][0].isdigit()):
        return None
    size = words[0] if start and _SIZE.fullmatch(words[0]) else None
    return " ".join(words[start:]), _size(size)


def _size(text: str | None) -> float:
    if not text:
        return 0
    return float(text[:-1]) * _UNITS[text[-1]] if text[-1] in _UNITS else float(text)


def _top(path: str) -> str:
    return path.removeprefix("./").strip("/").split("/", 1)[0] + "/"


def _depth(text: Text, entry: _Entry) -> int:
    line = text.lines[entry.at]
    return entry.path.count("/") + (len(line) - len(line.lstrip("│├└─|`- \t\u00a0+"))) // 4
