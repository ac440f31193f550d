"""Clearing: old tool results are replaced by one line with a reference that brings them back.

A result is cleared if the model has answered since, if it is not among the most recent ones, and if the line is much
shorter than it. For test runs, trees, long listings and JSON the line says what the result was and how many failures it
has, so that a failed command does not look like one that passed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from limpet import limits
from limpet.window.messages import ASSISTANT, TOOL, Call, Message, Result, Text
from limpet.window.plan.folding import WindowItem, result_key
from limpet.window.plan.groups import groups

MARK = "[Cleared "
_REFERENCE = re.compile(r"📁 Output cached: ([0-9a-f]{12,64}) \(([^)]*)\)")
_SPACES = re.compile(r"\s+")


class Clearable(NamedTuple):
    """A result that may become a line."""

    key: str  # see `folding.result_key`
    call: Call
    text: str
    tokens: int
    read: bool  # whether the model has answered since

    @property
    def output_id(self) -> str:
        """The id of the output it already refers to, or nothing."""
        match = _REFERENCE.match(self.text)
        return match[1] if match else ""

    @property
    def preview(self) -> str:
        """The preview inside such a reference."""
        match = _REFERENCE.match(self.text)
        return (self.text[match.end() :].lstrip(", \n") or match[2]) if match else ""


def clearable(items: Sequence[WindowItem], count: Callable[[Message], int], *, keep: int) -> list[Clearable]:
    """The results that may be cleared, oldest first: not those of the last `keep` groups, and none the model has not
    answered."""
    with_results = [group for group in groups([item.message for item in items]) if _has_results(items, group)]
    answered = max((index for index, item in enumerate(items) if item.message.role == ASSISTANT), default=-1)
    results: list[Clearable] = []
    for group in with_results[: max(0, len(with_results) - keep)]:
        if group.stop <= answered:
            results += _results_of(items, group, count, read=True)
    return results


def oversized(items: Sequence[WindowItem], count: Callable[[Message], int], *, most: int) -> list[Clearable]:
    """Results of more than `most` tokens, read or not: no window has room for them."""
    results: list[Clearable] = []
    for group in groups([item.message for item in items]):
        if _has_results(items, group):
            results += [result for result in _results_of(items, group, count, read=False) if result.tokens > most]
    return results


def line(result: Clearable, id: str, preview: str) -> str:
    """The line that replaces a result: the call, the first lines of its preview, and how to get it back."""
    head, _, rest = preview.partition("\n")
    detail = next((text for text in map(_one_line, rest.split("\n")) if text), "")
    outcome = f"{_one_line(head)}: {_short(detail, 120)}" if detail else _one_line(head)
    return f"{MARK}{result.call.name}({_arguments(result.call)}) → {outcome} — hold://{id}]"


def _results_of(
    items: Sequence[WindowItem], group: range, count: Callable[[Message], int], *, read: bool
) -> list[Clearable]:
    calls = {call.id: call for call in items[group.start].message.calls()}
    results: list[Clearable] = []
    for index in group:
        for part in items[index].message.results():
            text = _text(part)
            if len(text) < limits.CLEAR_RESULT_CHARS or text.startswith(MARK):
                continue
            call = calls.get(part.call_id) or Call(part.call_id, "tool", "")
            size = count(Message(TOOL, (part,)))
            results.append(Clearable(result_key(items[index].first, part.call_id), call, text, size, read))
    return results


def _has_results(items: Sequence[WindowItem], group: range) -> bool:
    return any(items[index].message.results() for index in group)


def _text(result: Result) -> str:
    """Its text; empty if it has an image, which a line could not bring back."""
    texts = [part.text for part in result.parts if isinstance(part, Text)]
    return "\n".join(texts) if len(texts) == len(result.parts) else ""


def _arguments(call: Call) -> str:
    """The first argument, which is usually the telling one: a path, a command, a query."""
    try:
        arguments = json.loads(call.arguments) if call.arguments else {}
    except ValueError:
        arguments = call.arguments
    if isinstance(arguments, dict):
        arguments = next((value for value in arguments.values() if isinstance(value, str | int | float)), "")
    return _short(_one_line(str(arguments)), 80)


def _one_line(text: str) -> str:
    return _SPACES.sub(" ", text).strip()


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
