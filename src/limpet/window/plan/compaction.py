"""Compaction: which messages are folded, and whether the window that results may be sent.

`plan` chooses, `verify` judges the resulting request. A plan that fails verification is not carried out: every pinned
text must be in the request word for word, the user's last request must be unchanged, no call may lose its result, and
the request must be small enough for the fold to pay.

Clearing comes before it: old tool results are replaced by one line with a reference that brings them back. A result is
cleared if the model has answered since, if it is not among the most recent ones, and if the line is much shorter than
it. For test runs, trees, long listings and JSON the line says what the result was and how many failures it has, so that
a failed command does not look like one that passed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence

from limpet import limits
from limpet.record import NamedTuple
from limpet.window.messages import ASSISTANT, TOOL, USER, Call, Message, Result, Text
from limpet.window.plan.facts import words
from limpet.window.plan.folding import COMPACT, WHOLE_TEXT, Fold, WindowItem, result_key
from limpet.window.plan.rules import groups, unpaired
from limpet.window.plan.serialise import digest


class FoldPlan(NamedTuple):
    """Items before `cut` are folded; of the positions this covers, those in `shown` stay visible."""

    cut: int
    first: int
    last: int
    shown: tuple[tuple[int, int], ...]
    request: Message | None  # the user's last request

    def fold(self, key: str, text: str) -> Fold:
        return Fold(key, COMPACT, self.first, self.last, text, shown=self.shown)


class Pin(NamedTuple):
    text: str
    digest: str  # SHA-256 of the text when it was pinned


def pin(text: str) -> Pin:
    return Pin(text, _sha(text))


def plan(items: Sequence[WindowItem], sizes: Sequence[int], *, tail: int) -> FoldPlan | None:
    """Fold all but the last `tail` tokens. None if everything before them is folded already."""
    cut = len(items)
    room = tail
    for group in reversed(groups([item.message for item in items])):
        cost = sum(sizes[index] for index in group)
        if cost > room and cut < len(items):
            break
        room -= cost
        cut = group.start
    while 0 < cut < len(items) and items[cut].first <= items[cut - 1].last:
        cut -= 1  # what a caller added shares the position of the message before it
    folded = items[:cut]
    if not any(not item.fold for item in folded):
        return None
    first, last = min(item.first for item in folded), max(item.last for item in folded)
    request = last_request(items)
    visible = [
        item
        for index, item in enumerate(items)
        if not item.fold and item.last <= last and (index >= cut or index == request)
    ]
    shown = _ranges([item.first for item in visible])
    return FoldPlan(cut, first, last, shown, None if request is None else items[request].message)


def last_request(items: Sequence[WindowItem]) -> int | None:
    """The index of the user's last request."""
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if item.message.role == USER and not item.fold and item.message.text().strip():
            return index
    return None


def verify(
    sent: Sequence[Message],
    *,
    pins: Iterable[Pin],
    request: Message | None,
    unpaired_before: frozenset[str],
    tokens: int,
    most: int,
) -> tuple[str, ...]:
    """What is wrong with the request that would be sent; empty if it may be."""
    text = words(message for message in sent if message.role != TOOL)
    problems = [
        f"the pinned text {pinned.text[:40]!r} is not in it as it was pinned"
        for pinned in pins
        if _sha(pinned.text) != pinned.digest or pinned.text not in text
    ]
    if request is not None:
        expected = digest(request)
        if not any(message.role == USER and digest(message) == expected for message in sent):
            problems.append("the last request of the user is not in it as it was")
    if lost := unpaired(sent) - unpaired_before:
        problems.append(f"{len(lost)} calls or results lost their other half")
    if tokens > most:
        problems.append(f"it would have {tokens:,} tokens and must have {most:,} or fewer")
    return tuple(problems)


def _ranges(positions: Sequence[int]) -> tuple[tuple[int, int], ...]:
    ranges: list[tuple[int, int]] = []
    for position in sorted(positions):
        if ranges and ranges[-1][1] == position - 1:
            ranges[-1] = (ranges[-1][0], position)
        else:
            ranges.append((position, position))
    return tuple(ranges)


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# --- clearing ---------------------------------------------------------------------------------------------------------

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


class LongText(NamedTuple):
    """A message that alone fills much of the window."""

    key: str  # see `folding.result_key`
    role: str
    text: str
    tokens: int


def long_texts(items: Sequence[WindowItem], sizes: Sequence[int], *, most: int) -> list[LongText]:
    """The messages of more than `most` tokens that are neither folds nor results."""
    return [
        LongText(result_key(item.first, WHOLE_TEXT), item.message.role, item.message.text(), size)
        for item, size in zip(items, sizes, strict=True)
        if size > most and not item.fold and not item.message.results() and item.message.text().strip()
    ]


def cleared_line(result: Clearable, id: str, preview: str) -> str:
    """The line that replaces a result: the call, the first lines of its preview, and how to get it back."""
    head, _, rest = preview.partition("\n")
    detail = next((text for text in map(_one_line, rest.split("\n")) if text), "")
    outcome = f"{_one_line(head)}: {_short(detail, 120)}" if detail else _one_line(head)
    return f"{MARK}{result.call.name}({_first_argument(result.call)}) → {outcome} — hold://{id}]"


def _results_of(
    items: Sequence[WindowItem], group: range, count: Callable[[Message], int], *, read: bool
) -> list[Clearable]:
    calls = {call.id: call for call in items[group.start].message.calls()}
    results: list[Clearable] = []
    for index in group:
        for part in items[index].message.results():
            text = _result_text(part)
            if len(text) < limits.CLEAR_RESULT_CHARS or text.startswith(MARK):
                continue
            call = calls.get(part.call_id) or Call(part.call_id, "tool", "")
            size = count(Message(TOOL, (part,)))
            results.append(Clearable(result_key(items[index].first, part.call_id), call, text, size, read))
    return results


def _has_results(items: Sequence[WindowItem], group: range) -> bool:
    return any(items[index].message.results() for index in group)


def _result_text(result: Result) -> str:
    """Its text; empty if it has an image, which a line could not bring back."""
    texts = [part.text for part in result.parts if isinstance(part, Text)]
    return "\n".join(texts) if len(texts) == len(result.parts) else ""


def _first_argument(call: Call) -> str:
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
