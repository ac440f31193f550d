"""The shape of an output: every shape gives a score, and the highest one wins."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from limpet.previews import (
    code,
    diffs,
    greps,
    html,
    json_lines,
    json_shape,
    logs,
    markdown,
    plain,
    runs,
    tables,
    traces,
    trees,
)
from limpet.previews.core import Sheet, Text


class Shape(NamedTuple):
    """A shape of text: its name, its score for a text, and its preview."""

    name: str
    score: Callable[[Text], float]
    render: Callable[[Text, Sheet], None]


# On a tie, the earlier one wins.
SHAPES = (
    Shape("json", json_shape.score, json_shape.render),
    Shape("json lines", json_lines.score, json_lines.render),
    Shape("diff", diffs.score, diffs.render),
    Shape("html", html.score, html.render),
    Shape("run", runs.score, runs.render),
    Shape("trace", traces.score, traces.render),
    Shape("log", logs.score, logs.render),
    Shape("table", tables.score, tables.render),
    Shape("grep", greps.score, greps.render),
    Shape("listing", trees.score, trees.render),
    Shape("code", code.score, code.render),
    Shape("markdown", markdown.score, markdown.render),
    Shape("text", plain.score, plain.render),
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


def scores(text: Text, tool: str = "") -> dict[str, float]:
    """The score of each shape, up to the first that is certain."""
    if plain.binary(text):
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


def detect(text: Text, tool: str = "") -> Shape:
    """The shape with the highest score."""
    results = scores(text, tool)
    best = max(results.values())
    return next(shape for shape in SHAPES if results.get(shape.name) == best)
