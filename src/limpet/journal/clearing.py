"""Replacing a tool result by one line once its findings are written down.

The full text is stored as an output, so the line always leads back to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from limpet.outputs import keep as output_keep
from limpet.previews.core import OutputText
from limpet.previews.preview import detect
from limpet.record import NamedTuple

if TYPE_CHECKING:
    from limpet.catalogue.operation import Context

SEARCH, FILE, TREE, JSON, RUN = "search", "file", "tree", "json", "run"
MOST_MATCHES = 20  # results of a search that may stay as they are
MOST_LINES = 100  # lines of a file that may stay
_SHAPES = {"grep": SEARCH, "listing": TREE, "json": JSON, "json lines": JSON, "run": RUN}
_HIT = re.compile(r"^([^\s:]{1,300}):\d{1,8}[:-]", re.MULTILINE)
_RESULT = re.compile(r"\b(\d{1,9}) (failed|failing|failures?|errors?|passed|passing|skipped|ok)\b", re.IGNORECASE)


class Cleared(NamedTuple):
    trigger: str
    line: str


def clear_result(ctx: Context, tool: str, content: str) -> Cleared | None:
    """Store a tool's result and return the line that replaces it; None when it is small enough to stay as it is."""
    if trigger(tool, content) is None:
        return None
    rules = ctx.bounds.outputs._replace(threshold_bytes=1)  # small or not, the line must lead back to it
    stored = output_keep.keep_output(ctx._replace(bounds=ctx.bounds._replace(outputs=rules)), tool, content)
    return clear(tool, content, stored.output.id if stored.output else "")


def trigger(tool: str, content: str) -> str | None:
    """Why a result should be cleared; None when it is small enough to stay."""
    text = OutputText(content)
    kind = _SHAPES.get(detect(text, tool).name, FILE)
    if kind == SEARCH:
        return SEARCH if len(_HIT.findall(text.content)) > MOST_MATCHES else None
    if kind == FILE:
        return FILE if text.line_count > MOST_LINES else None
    return kind


def clear(tool: str, content: str, output: str = "") -> Cleared | None:
    """The line that replaces a result; `output` is the id of the stored result."""
    why = trigger(tool, content)
    if why is None:
        return None
    text = OutputText(content)
    counted = {SEARCH: _search, FILE: _file, TREE: _tree, JSON: _json, RUN: _run}[why](text)
    link = f" Whole result: hold://{output}" if output else ""
    return Cleared(why, f"{tool}: {counted}.{link}")


def _many(number: int, noun: str, more: str = "") -> str:
    return f"{number:,} {noun if number == 1 else more or noun + 's'}"


def _search(text: OutputText) -> str:
    files = _HIT.findall(text.content)
    return f"{_many(len(files), 'match', 'matches')} in {_many(len(set(files)), 'file')}"


def _file(text: OutputText) -> str:
    return _many(text.line_count, "line")


def _tree(text: OutputText) -> str:
    return f"{_many(text.line_count, 'entry', 'entries')} listed"


def _json(text: OutputText) -> str:
    try:
        value = json.loads(text.content)
    except ValueError:
        return _many(text.line_count, "JSON line")
    if isinstance(value, list):
        return f"a JSON list of {_many(len(value), 'item')}"
    if isinstance(value, dict):
        names = ", ".join(list(value)[:5])
        return f"a JSON object with {_many(len(value), 'key')} ({names}{', …' if len(value) > 5 else ''})"
    return "a JSON value"


def _run(text: OutputText) -> str:
    """The counts of the run's own summary; without failures among them, the number of failure lines."""
    results = dict(_results(text))
    failing = len(text.failures)
    words = [f"{count:,} {name}" for name, count in results.items()]
    if failing and not any(name.startswith(("fail", "error")) for name in results):
        words.append(_many(failing, "failure line"))
    return ", ".join(words) or f"{_many(text.line_count, 'line')}, no failure found"


def _results(text: OutputText) -> Iterator[tuple[str, int]]:
    """The counts of the last line that has any, failures first."""
    for line in reversed(text.lines):
        counts = [(name.lower(), int(count)) for count, name in _RESULT.findall(line[:400])]
        if counts:
            yield from sorted(counts, key=lambda pair: not pair[0].startswith(("fail", "error")))
            return
