"""Outputs made of records: the history of a repository, settings (YAML, TOML, fields in paragraphs), query plans.

Of a history, how many commits by whom and from when to when, and the subjects. Of settings, the outline and the values
nearest to the top; of many tables of one kind, what each is called. Of a session with a database, what failed, how long
statements took, and what each plan does first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from limpet.previews.core import OutputText, Sheet, clip, plural
from limpet.previews.failures import excerpt
from limpet.record import NamedTuple

_COMMIT = re.compile(r"^commit ([0-9a-f]{7,40})\b")
_AUTHOR = re.compile(r"^Author: +([^<\n]{1,80})")
_DATE = re.compile(r"^(?:Author)?Date: +(\S.{5,40})")


class _Commit(NamedTuple):
    id: str
    author: str
    date: str
    subject: str


def history_score(text: OutputText) -> float:
    """Commits with an author each."""
    sample = text.sample
    if not sample or not sample[0].startswith("commit "):
        return 0.0
    commits = sum(_COMMIT.match(line) is not None for line in sample)
    authors = sum(_AUTHOR.match(line) is not None for line in sample)
    return 0.97 if commits >= 2 and authors * 2 >= commits and _COMMIT.match(sample[0]) else 0.0


def render_history(text: OutputText, sheet: Sheet) -> None:
    """Who and when, then the subject of each commit, the newest first and then from all over."""
    sheet.gaps = False
    commits = list(_commits(text))
    if not commits:
        return
    sheet.add(f"{plural(len(commits), 'commit')} from {commits[-1].date} to {commits[0].date}", at=0)
    authors = Counter(each.author for each in commits if each.author)
    listed = ", ".join(f"{name} {times}" for name, times in authors.most_common(8))
    sheet.add(clip(f"authors: {listed}", 240), at=0)
    lines = [f"{each.id[:9]} {clip(each.subject, 90)} ({each.author})" for each in commits]
    near = lines[:12]
    done = sheet.add_all(near, at=1, share=0.5)
    rest = lines[done:]
    step = 1 + len(rest) // 24
    done += sheet.add_all(rest[::step], at=2)
    if done < len(commits):
        sheet.add(f"… {plural(len(commits) - done, 'more commit')}", at=3)


def _commits(text: OutputText) -> Iterator[_Commit]:
    values = ["", "", "", ""]
    for line in text.lines:
        commit = _COMMIT.match(line)
        if commit:
            if values[0]:
                yield _Commit(*values)
            values = [commit[1], "", "", ""]
        elif author := _AUTHOR.match(line):
            values[1] = author[1].strip()
        elif date := _DATE.match(line):
            values[2] = date[1].strip()
        elif not values[3] and line.startswith("    ") and line.strip():
            values[3] = line.strip()
    if values[0]:
        yield _Commit(*values)


# --- settings ---------------------------------------------------------------------------------------------------------

_YAML = re.compile(r"^\s{0,40}(?:- )?[\w\"'$./@{}-]{1,80}:(?:\s|$)|^\s{0,40}- \S")
_TOP = re.compile(r"^[\w\"'$./-]{1,80}:(?:\s|$)")
_TABLE = re.compile(r"^\[{1,2}([\w.\"'-]{1,80})\]{1,2}$")
_ASSIGNED = re.compile(r"^([\w.\"'-]{1,60})\s?=\s?(.{1,200})")
_FIELD = re.compile(r"^[A-Z][\w-]{1,40}: \S")
_CALLED = re.compile(r"^(?:name|Package|Name|id|title)\s?[:=]\s?(.{1,100})")
_STATED = re.compile(r"^(?:version|Version)\s?[:=]\s?(.{1,60})")


def settings_score(text: OutputText) -> float:
    """How many lines are names with values, by indentation (YAML), in tables (TOML) or in paragraphs."""
    sample = text.sample
    if len(sample) < 8:
        return 0.0
    total = len(sample)
    if sum(":" in line or "=" in line for line in sample) * 3 < total:
        return 0.0
    tables = sum(_TABLE.match(line) is not None for line in sample)
    if tables >= 2 and sum(_ASSIGNED.match(line) is not None for line in sample) + tables >= 0.35 * total:
        return 0.9
    fields = sum(_FIELD.match(line) is not None or line[:1] == " " for line in sample)
    if fields >= 0.9 * total and sum(map(_begins_paragraph, sample)) >= 2:
        return 0.7
    named = sum(_YAML.match(line) is not None for line in sample)
    nested = sum(line[:1] == " " for line in sample)
    if nested < 0.3 * total or sum(_TOP.match(line) is not None for line in sample) < 1:
        return 0.0
    return 0.86 if named >= 0.85 * total else 0.5 if named >= 0.6 * total else 0.0


def _begins_paragraph(line: str) -> bool:
    return _CALLED.match(line) is not None


def render_settings(text: OutputText, sheet: Sheet) -> None:
    """Tables by name with their first values, or the lines nearest to the top with what is below them."""
    sheet.gaps = False
    tables = Counter(match[1] for line in text.lines if (match := _TABLE.match(line)))
    calls = _called(text)
    if tables:
        listed = ", ".join(f"{name} {times}" if times > 1 else name for name, times in tables.most_common(10))
        sheet.add(clip(f"tables: {listed}", 200), at=0)
    if len(calls) >= 4:
        sheet.add(f"{plural(len(calls), 'record')}:", at=1)
        done = sheet.add_lines(calls, at=1, share=0.7, length=80)
        if done < len(calls):
            sheet.add(f"… {plural(len(calls) - done, 'more record')}", at=2)
        sheet.add_lines(enumerate(text.lines[:12]), at=0, length=120)
        return
    lines = [(at, line) for at, line in text.numbered() if line.strip() and not line.lstrip().startswith("#")]
    for depth in (0, 2, 4, 6, 8):
        sheet.add_lines([each for each in lines if _indent(each[1]) == depth], at=1, share=0.6, length=110)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _called(text: OutputText) -> list[tuple[int, str]]:
    """What each record is called, with its version when that follows."""
    lines: Sequence[str] = text.lines
    calls: list[tuple[int, str]] = []
    for at, line in text.numbered():
        match = _CALLED.match(line[:200])
        if match:
            near = (each for each in lines[at + 1 : at + 4] if _STATED.match(each[:100]))
            version = _STATED.match(next(near, "")[:100])
            calls.append((at, f"{match[1].strip()} {version[1].strip() if version else ''}".replace('"', "").strip()))
    return calls


# --- query plans ------------------------------------------------------------------------------------------------------

_PLAN = re.compile(r"\(cost=\d|^\s*QUERY PLAN\s*$|^Run Time: real|^(?:\|  |\s)*[|`]--(?:SCAN|SEARCH|USE TEMP)")
_TIMES = re.compile(r"Execution Time: |Planning Time: |^Time: \d|^Run Time: ")
_STATEMENT = re.compile(
    r"(?i)^(?:select|insert|update|delete|create|alter|drop|explain|vacuum|set|reset|with|pragma|analyze)\b.{3,}"
)
_NODE = re.compile(r"\(cost=|[|`]--")
_TELLS = re.compile(r"Sort Method|Rows Removed|Workers Launched|Heap Fetches|Index Cond|Disk: |DETAIL|Settings:")


def plan_score(text: OutputText) -> float:
    """Plans of queries, with their times."""
    return 0.93 if sum(_PLAN.search(line) is not None for line in text.sample) >= 2 else 0.0


def render_plan(text: OutputText, sheet: Sheet) -> None:
    """What failed, then each statement with its time and the first step of its plan, then what the plans say."""
    sheet.gaps = False
    lines = text.lines
    statements = [(at, line) for at, line in text.numbered() if _STATEMENT.match(line)]
    times = [(at, line.strip()) for at, line in text.numbered() if _TIMES.search(line[:100])]
    sheet.add(f"{plural(len(statements), 'statement')}, {plural(len(times), 'time')}{text.part}", at=0)
    failing = [(line.number, excerpt(line.text, 160)) for line in text.failures]
    below = [(at + 1, lines[at + 1]) for at, _ in failing if at + 1 < len(lines) and "DETAIL" in lines[at + 1]]
    sheet.add_lines(failing, at=1, share=0.4, length=170)
    sheet.add_lines(below, at=1, share=0.3, length=140)
    slow = [each for each in times if "Execution" in each[1]] or times
    sheet.add_lines(slow, at=1, share=0.3)
    sheet.add_lines(statements, at=1, share=0.45, length=80)
    nodes = [(at, line) for at, line in text.numbered() if _NODE.search(line[:300])]
    sheet.add_lines([each for each in nodes if _TELLS.search(each[1]) or "Scan" in each[1]], at=1, share=0.5, length=90)
    sheet.add_lines([(at, line) for at, line in text.numbered() if _TELLS.search(line[:200])], at=1, length=100)
