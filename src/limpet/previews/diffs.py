"""Diffs: the files with what was added and removed, then the changed lines of each in turn."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import NamedTuple

from limpet.previews.core import Sheet, Text, clip, plural

_HUNK = re.compile(r"^@@ -\d{1,9}(?:,\d{1,9})? \+\d{1,9}(?:,\d{1,9})? @@")
_NAME = re.compile(r"^diff --git a/(.{1,400}) b/(.{1,400})$")


class _File(NamedTuple):
    name: str
    changed: list[tuple[int, str]]
    hunks: list[tuple[int, str]]
    counts: list[int]  # added, removed


def score(text: Text) -> float:
    """Certain with two signs of a diff."""
    head = text.sample[:300]
    signs = sum(line.startswith(("diff --git ", "--- ", "+++ ", "Index: ")) or bool(_HUNK.match(line)) for line in head)
    if signs < 2 or not any(_HUNK.match(line) for line in text.sample):
        return 0.0
    return 0.96


def render(text: Text, sheet: Sheet) -> None:
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


def _files(text: Text) -> tuple[list[_File], list[tuple[int, str]]]:
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
