"""The preview of an output: every shape gives a score for the text, and the one with the highest score renders it.

A text of no other shape shows its beginning and end, failures, totals and evenly chosen lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from limpet.previews import json_shape, listings, outlines, records, runs, tables
from limpet.previews.core import BAR, OutputText, Preview, Sheet, clip, plural, spread
from limpet.previews.failures import excerpt
from limpet.record import NamedTuple
from limpet.text import tokens
from limpet.text.marks import Marks
from limpet.text.safe import printable

_EDGE = 400  # characters at each end that may say how a command ended
_EXIT = re.compile(
    r"(?i)^\W{0,8}(?:process |command )?(?:exit(?:ed)?(?: with)?(?: code| status)?)[ :=]{1,3}(-?\d{1,5})\W{0,3}$"
)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\ufffd]")
_INTEGER = re.compile(r"-?\d{1,15}")
_MONOTONOUS = 4  # lines from which a stretch is shown as one
_TOTAL = re.compile(r"(?i)^\W{0,6}(?:grand )?(?:total|summary|result|conclusion|average)s?\b")


def text_score(text: OutputText) -> float:
    """Always possible, and lower than any other shape's score."""
    return 0.2


def _is_binary(text: OutputText) -> bool:
    """Whether much of the beginning is control characters."""
    head = text.content[:4000]
    return bool(head) and len(_CONTROL.findall(head)) * 20 > len(head)


def render_text(text: OutputText, sheet: Sheet) -> None:
    """Head and tail, failures, totals, then lines from evenly chosen places."""
    if _is_binary(text):
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
    stretches = monotonous(lines, {line.number for line in text.failures}) if not text.big else []
    dull = {at for each in stretches for at in range(each.first, each.last + 1)}
    sheet.add_lines(((each.first, each.words) for each in stretches), at=1, share=0.4)
    head = [(at, line) for at, line in enumerate(lines[:60]) if line.strip() and at not in dull]
    tail = [at for at in range(len(lines) - 1, max(-1, len(lines) - 12), -1) if lines[at].strip() and at not in dull]
    totals = [(at, line) for at, line in text.numbered() if _TOTAL.match(line[:60])]
    length = 220 if len(lines) > 3 else 1200
    sheet.add_lines(totals[-3:], at=1, share=0.2)
    sheet.add_lines(((at, lines[at]) for at in tail[:5]), at=1, share=0.3, length=length)
    sheet.add_lines(head[:10], at=1, share=0.5, length=length)
    others = [at for at in spread(len(lines), 40) if lines[at].strip() and at not in dull]
    sheet.add_lines(((at, lines[at]) for at in others), at=1, share=0.6)
    sheet.add_lines(head[10:], at=1)


class Stretch(NamedTuple):
    """Lines that are shown as one: a sequence of numbers, the same line again, frames of a progress bar."""

    first: int
    last: int
    words: str


def monotonous(lines: Sequence[str], failing: Collection[int] = ()) -> list[Stretch]:
    """The stretches of lines that say no more than one line would. A line that reports a failure ends one."""
    stretches: list[Stretch] = []
    first = 0
    while first < len(lines):
        last = first
        step = _step(lines, first)
        while last + 1 < len(lines) and last + 1 not in failing and _continues(lines, last, step):
            last += 1
        if last - first + 1 >= _MONOTONOUS and first not in failing and lines[first].strip():
            stretches.append(Stretch(first, last, _as_one(lines, first, last, step)))
        first = last + 1
    return stretches


def _step(lines: Sequence[str], at: int) -> int | None:
    """By how much the number of the next line exceeds this one's, where lines are numbers."""
    pair = [line.strip() for line in lines[at : at + 2]]
    if len(pair) < 2 or not all(_INTEGER.fullmatch(each) for each in pair):
        return None
    return int(pair[1]) - int(pair[0])


def _continues(lines: Sequence[str], at: int, step: int | None) -> bool:
    line, following = lines[at].strip(), lines[at + 1].strip()
    if step is not None and _INTEGER.fullmatch(following):
        return int(following) - int(line) == step
    if line == following:
        return True
    bar, following_bar = BAR.match(line[:300]), BAR.match(following[:300])
    return bar is not None and following_bar is not None and bar[1] == following_bar[1]


def _as_one(lines: Sequence[str], first: int, last: int, step: int | None) -> str:
    count = f"{last - first + 1:,}"
    begin, end = clip(lines[first].strip(), 60), clip(lines[last].strip(), 100)
    if step is not None and step != 0:
        return f"{begin} … {end} ({count} numbers, each {step} more)"
    return f"{end} ({count} times the same line)" if begin == clip(end, 60) else f"{end} (the last of {count} frames)"


def _size(text: OutputText) -> str:
    """`2,000 lines, 171,239 characters`."""
    return f"{plural(text.line_count, 'line')}, {text.size:,} characters"


class Shape(NamedTuple):
    """A shape of text: its name, its score for a text, and its preview."""

    name: str
    score: Callable[[OutputText], float]
    render: Callable[[OutputText, Sheet], None]


# On a tie, the earlier one wins.
SHAPES = (
    Shape("json", json_shape.json_score, json_shape.render_json),
    Shape("json lines", json_shape.json_lines_score, json_shape.render_json_lines),
    Shape("diff", listings.diff_score, listings.render_diff),
    Shape("html", outlines.html_score, outlines.render_html),
    Shape("history", records.history_score, records.render_history),
    Shape("plan", records.plan_score, records.render_plan),
    Shape("run", runs.run_score, runs.render_run),
    Shape("trace", runs.trace_score, runs.render_trace),
    Shape("log", runs.log_score, runs.render_log),
    Shape("settings", records.settings_score, records.render_settings),
    Shape("table", tables.table_score, tables.render_table),
    Shape("grep", listings.grep_score, listings.render_grep),
    Shape("listing", listings.tree_score, listings.render_tree),
    Shape("code", outlines.code_score, outlines.render_code),
    Shape("markdown", outlines.markdown_score, outlines.render_markdown),
    Shape("text", text_score, render_text),
)
_CERTAIN = 0.95
_HINTS = {
    "pytest": "run",
    "test": "run",
    "build": "run",
    "grep": "grep",
    "diff": "diff",
    "log": "log",
    "tree": "listing",
}
_HINT = 0.06  # What the tool's name adds: enough to break a tie, not enough to overrule the text.


def scores(text: OutputText, tool: str = "") -> dict[str, float]:
    """The score of each shape, up to the first that is certain."""
    if _is_binary(text):
        return {"text": 1.0}
    name = tool.lower()
    hinted = {shape for word, shape in _HINTS.items() if word in name}
    results: dict[str, float] = {}
    for shape in SHAPES:
        value = shape.score(text)
        results[shape.name] = value + (_HINT if value and shape.name in hinted else 0.0)
        if value >= _CERTAIN:
            break
    return results


def detect(text: OutputText, tool: str = "") -> Shape:
    """The shape with the highest score."""
    results = scores(text, tool)
    best = max(results.values())
    return next(shape for shape in SHAPES if results.get(shape.name) == best)


def preview(content: str, *, tool: str = "", budget: int = 400, marks: Marks | None = None) -> Preview:
    """What an agent should see of an output: at most `budget` tokens, the same for the same content and tool.

    `marks` are the results of `find_marks` for the content, if they exist already.
    """
    text = OutputText(content, marks)
    failures = len(text.failures)
    shape = detect(text, tool)
    head = _head(shape.name, text, failures, budget)
    sheet = Sheet(budget - tokens.count(head + "\n"))
    if sheet.left > 0 and not text.empty:
        shape.render(text, sheet)
    body = sheet.text()
    rendered = f"{head}\n{body}" if body else head
    # The sum of both counts can differ from the count of both by a token; the bound holds in any case.
    while tokens.count(rendered) > budget and "\n" in rendered:
        rendered = rendered.rpartition("\n")[0]
    return Preview(shape.name, rendered, failures)


def _head(shape: str, text: OutputText, failures: int, budget: int) -> str:
    """The first line. When the budget is tiny, the failures are what remains of it."""
    full = f"{shape}, {_size(text)}" if not text.empty else "empty"
    code = _exit_code(text)
    full = f"exit code {code}; {full}" if code else full
    failed = plural(failures, "failure line") if failures else ""
    short = f"{failures} failed" if failures else shape
    for head in (f"{full}, {failed}" if failed else full, failed or shape, short):
        if tokens.count(head) <= budget:
            return head
    return ""


def _exit_code(text: OutputText) -> str:
    """The exit code that a client or a shell wrote before or after what a command printed."""
    edges = text.content[:_EDGE].split("\n")[:3], text.content[-_EDGE:].split("\n")[-4:]
    for line in (*edges[0], *reversed(edges[1])):
        if match := _EXIT.search(line[:_EDGE]):
            return match[1]
    return ""
