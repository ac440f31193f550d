"""Markdown and other prose with headings: the headings, how each section begins, and what its code shows."""

from __future__ import annotations

import re
from typing import NamedTuple

from limpet.previews.core import Sheet, Text, clip, plural

_HEADING = re.compile(r"^#{1,6} +\S")
_MARK = re.compile(r"^\s{0,3}(?:[-*+] +\S|\d{1,3}[.)] +\S|> |```|~~~|\|.*\|$)|\]\(\S{1,300}\)|\*\*\S|`[^`\n]{1,80}`")


class _Section(NamedTuple):
    heading: tuple[int, str] | None
    prose: list[tuple[int, str]]
    code: list[tuple[int, str]]


def score(text: Text) -> float:
    """Headings outside code, and other marks."""
    sample = text.sample
    if not sample:
        return 0.0
    headings = sum(bool(_HEADING.match(line)) for line in sample)
    fenced = sum(line.lstrip()[:3] in {"```", "~~~"} for line in sample)
    marks = sum(bool(_MARK.search(line)) for line in sample)
    if not headings:
        return 0.55 if fenced >= 2 or marks * 2 > len(sample) else 0.0
    comments = not fenced and headings * 3 > len(sample) and marks * 5 < len(sample)
    return (
        0.3 if comments else min(0.9, 0.5 + headings / len(sample) + marks / len(sample) + (0.2 if fenced >= 2 else 0))
    )


def render(text: Text, sheet: Sheet) -> None:
    """All headings as far as they fit, the first lines of each section, then code, in turns."""
    sections = _sections(text)
    headings = [each.heading for each in sections if each.heading]
    coded = sum(bool(each.code) for each in sections)
    sheet.add(f"{plural(len(headings), 'heading')}, {plural(coded, 'section')} with code{text.part}", at=0)
    deep = sorted(headings, key=lambda each: (len(each[1]) - len(each[1].lstrip("#")), each[0]))
    done = sheet.add_lines(deep, at=1, share=0.45, length=120)
    if done < len(headings):
        sheet.add(f"… {plural(len(headings) - done, 'more heading')}", at=2)
    for depth in range(8):
        for section in sections:
            for lines in (section.code[depth * 2 : depth * 2 + 2], section.prose[depth : depth + 1]):
                for at, line in lines:
                    if sheet.left < 15:
                        return
                    sheet.add_line(at, line, at=1, length=160 if len(sections) < 12 else 110)
    last = text.lines[-3:]
    sheet.add_lines(enumerate(last, len(text.lines) - len(last)), at=1)


def _sections(text: Text) -> list[_Section]:
    sections = [_Section(None, [], [])]
    fence = ""
    for at, line in text.numbered():
        bare = line.strip()
        mark = bare[:3]
        if mark in {"```", "~~~"} and (not fence or (mark == fence and len(bare) == 3)):
            fence = "" if fence else mark
        elif fence:
            if len(bare) > 3 and not bare.startswith(("import ", "//", "#", "/*", "*")) and len(sections[-1].code) < 40:
                sections[-1].code.append((at, line))
        elif _HEADING.match(line):
            sections.append(_Section((at, clip(line, 160)), [], []))
        elif bare and not bare.startswith("---") and len(sections[-1].prose) < 40:
            sections[-1].prose.append((at, line))
    return sections
