"""Outputs that go by files: listings, search results and diffs.

Of a listing (`tree`, `find`, `ls -l`, `du`), how many files where and of which kind, and the biggest ones. Of search
results (`path:line:text`), the hits per file; of a diff, the lines added and removed per file; then the first hits or
the changed lines of each file in turn.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import zip_longest

from limpet.previews.core import OutputText, Sheet, clip, number, plural
from limpet.record import NamedTuple

_DRAWN = re.compile(r"^(?:[│|` \t\u00a0]{0,200})(?:├|└|\|--|`--|\+--)[─-]{0,4}\s?(.{1,300})$")
_LONG = re.compile(r"^[-dlbcps][-rwxsStT]{9}[.+@]?\s+\d{1,7}\s+\S{1,60}\s+\S{1,60}\s+(\d{1,15})\s+(.{1,400})$")
_SIZE = re.compile(r"\d{1,15}(?:\.\d{1,3})?[KMGT]?")
_BARE = re.compile(r"^[\w.@+-]{1,120}/?$")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class _Entry(NamedTuple):
    at: int
    path: str
    size: float


def tree_score(text: OutputText) -> float:
    """How many lines are entries of a listing."""
    sample = text.sample
    if len(sample) < 4:
        return 0.0
    hits = sum(bool(_DRAWN.match(line) or _LONG.match(line) or _path(line)) for line in sample) / len(sample)
    bare = sum(bool(_BARE.match(line)) and "." in line for line in sample) / len(sample)
    return 0.82 * max(hits, bare * 0.8) if max(hits, bare) > 0.7 else 0.0


def render_tree(text: OutputText, sheet: Sheet) -> None:
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


def _depth(text: OutputText, entry: _Entry) -> int:
    line = text.lines[entry.at]
    return entry.path.count("/") + (len(line) - len(line.lstrip("│├└─|`- \t\u00a0+"))) // 4


# --- search results ---------------------------------------------------------------------------------------------------

_HIT = re.compile(r"^((?:[A-Za-z]:)?[^\s:,\"|]{1,300}):\d{1,8}:|^([^\s:,\"|]{1,300})-\d{1,8}-")
_NAMED = re.compile(r"^()([^\s:,\"|]{0,300}[./][^\s:,\"|]{1,300}):(?=\S)(?!//)")
_FINDING = re.compile(r"^\S{1,300}:\d{1,8}:(?:\d{1,6}:)? (?:fatal |)(?:error|warning|note|info|[A-Z]{1,4}\d{2,5})\b")


def grep_score(text: OutputText) -> float:
    """How many lines start with a path and a line number."""
    sample = [line for line in text.sample if line != "--"]
    if len(sample) < 3:
        return 0.0
    hits = sum(bool(_hit(line)) for line in sample) / len(sample)
    findings = sum(bool(_FINDING.search(line)) for line in sample) / len(sample)
    return 0.9 * hits if hits > 0.6 and findings < 0.3 else 0.0


def render_grep(text: OutputText, sheet: Sheet) -> None:
    """Files by hits, then one hit of every file, then the second ones."""
    sheet.gaps = False
    files: dict[str, list[int]] = {}
    for at, line in text.numbered():
        match = _hit(line[:700])
        if match:
            files.setdefault(match.group(1) or match.group(2), []).append(at)
    total = sum(map(len, files.values()))
    sheet.add(f"{plural(total, 'hit')} in {plural(len(files), 'file')}{text.part}", at=0)
    most = sorted(files.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    if len(files) > 1:
        sheet.add_all((f"{clip(name, 120)}: {len(hits)}" for name, hits in most[:10]), at=1, share=0.3)
    turns = zip_longest(*(hits[:50] for hits in list(files.values())[:300]))
    sheet.add_lines(((at, text.lines[at]) for turn in turns for at in turn if at is not None), at=2, length=150)


def _hit(line: str) -> re.Match[str] | None:
    return _HIT.match(line) or _NAMED.match(line)


# --- diffs ------------------------------------------------------------------------------------------------------------

_HUNK = re.compile(r"^@@ -\d{1,9}(?:,\d{1,9})? \+\d{1,9}(?:,\d{1,9})? @@")
_NAME = re.compile(r"^diff --git a/(.{1,400}) b/(.{1,400})$")


class _File(NamedTuple):
    name: str
    changed: list[tuple[int, str]]
    hunks: list[tuple[int, str]]
    counts: list[int]  # added, removed


def diff_score(text: OutputText) -> float:
    """Certain with two signs of a diff."""
    head = text.sample[:300]
    signs = sum(line.startswith(("diff --git ", "--- ", "+++ ", "Index: ")) or bool(_HUNK.match(line)) for line in head)
    if signs < 2 or not any(_HUNK.match(line) for line in text.sample):
        return 0.0
    return 0.96


def render_diff(text: OutputText, sheet: Sheet) -> None:
    """How much each file changed, the text before the first file, then changed lines."""
    sheet.gaps = False
    files, before = _files(text)
    added, removed = sum(each.counts[0] for each in files), sum(each.counts[1] for each in files)
    sheet.add(f"{plural(len(files), 'file')} changed, {added:,} lines added, {removed:,} removed", at=0)
    sheet.add_lines(before[:12], at=1, share=0.25)
    ordered = sorted(files, key=lambda each: -sum(each.counts)) if len(files) > 20 else files
    done = sheet.add_all(
        (f"{clip(each.name, 120)} +{each.counts[0]} -{each.counts[1]}" for each in ordered), at=2, share=0.5
    )
    if done < len(files):
        sheet.add(f"… {plural(len(files) - done, 'more file')}", at=2)
    hunks = [[(at, line) for at, line in each.hunks if line.split("@@", 2)[-1].strip()] for each in files]
    sheet.add_lines(
        (each for turn in zip_longest(*hunks[:40]) for each in turn[:3] if each), at=3, share=0.3, length=140
    )
    turns = zip_longest(*(each.changed for each in files[:40]))
    sheet.add_lines((each for turn in turns for each in turn if each and len(each[1].strip()) > 3), at=3, length=140)


def _files(text: OutputText) -> tuple[list[_File], list[tuple[int, str]]]:
    files: list[_File] = []
    before: list[tuple[int, str]] = []
    in_hunk = False
    for at, line in enumerate(text.lines):
        named = _NAME.match(line[:900]) if line.startswith("diff --git ") else None
        bare = line.startswith("--- ") and text.lines[at + 1 : at + 2] and text.lines[at + 1].startswith("+++ ")
        if named or (bare and (in_hunk or not files)):
            name = named.group(2) if named else text.lines[at + 1][4:].split("\t")[0].removeprefix("b/")
            files.append(_File(name, [], [], [0, 0]))
            in_hunk = False
        elif not files:
            before.append((at, line))
        elif _HUNK.match(line):
            files[-1].hunks.append((at, line))
            in_hunk = True
        elif in_hunk and line[:1] in {"+", "-"}:
            files[-1].counts[line[0] == "-"] += 1
            if len(files[-1].changed) < 200:
                files[-1].changed.append((at, line))
    return files, before
