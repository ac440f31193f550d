"""Folds as people and agents see them: what is folded, what fills the window, and bringing messages back.

What reads messages is imported when it is needed: every server starts with this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from limpet import errors, limits
from limpet.catalogue.operation import Context, Json
from limpet.model import FOLD, TASK, Draft, Entry, iso

if TYPE_CHECKING:
    from limpet.window.messages import Message
    from limpet.window.plan.controller import Gauge


class Folds(NamedTuple):
    folds: tuple[Entry, ...]
    messages: int  # of the session


class Restored(NamedTuple):
    first: int  # positions from 1, both included
    last: int
    content: str
    cut: bool


def list_folds(ctx: Context) -> Folds:
    """What stands in the window in place of messages, oldest first."""
    from limpet.window import transcript

    found = [one for one in transcript.entries(ctx) if one.done or one.kind == FOLD]
    shown = [one for one in found if one.extra.get("how") != transcript.WARN]
    return Folds(tuple(shown), transcript.count(ctx))


def uncompact(ctx: Context, first: int, last: int | None = None) -> Restored:
    """Bring messages back into the window, as they were. Positions count from 1; calls come with their results."""
    from limpet.text import tokens
    from limpet.window import transcript
    from limpet.window.plan.checks import words
    from limpet.window.plan.groups import whole

    end = first if last is None else last
    history = [one.message for one in transcript.messages(ctx)]
    if not 1 <= first <= end <= len(history):
        raise errors.nothing_folded(first, end, len(history))
    start, stop = whole(history, first - 1, end - 1)
    found = False
    while hiding := _hiding(ctx, history, start, stop):  # what a fold hid may be hidden by an earlier one too
        found = True
        for entry in hiding:
            ctx.store.edit(ctx.scope, entry.kind, entry.key, _showing(start, stop), ctx.stamp("uncompact"))
    if not found:
        raise errors.nothing_folded(first, end, len(history))
    text, cut = tokens.cut(words(history[start : stop + 1]), limits.OUTPUT_READ_TOKENS)
    return Restored(start + 1, stop + 1, text, cut)


def show_window(ctx: Context) -> Gauge:
    """What fills the window of the session, by section, as far as the store knows."""
    from limpet.window.window import stored_gauge

    return stored_gauge(ctx)


def _hiding(ctx: Context, history: list[Message], first: int, last: int) -> list[Entry]:
    """The folds that hide something of this range from sight."""
    from limpet.window import transcript
    from limpet.window.plan.folding import blocks

    entries = transcript.entries(ctx)
    keys = {
        block.key
        for block in blocks(transcript.folds(entries, history))
        for at in range(max(first, block.first), min(last, block.last) + 1)
        if not any(low <= at <= high for low, high in block.shown)
    }
    return [entry for entry in entries if entry.key in keys or _lines(entry, first, last)]


def _lines(entry: Entry, first: int, last: int) -> list[str]:
    """The cleared results of this range."""
    lines = entry.extra.get("lines", {})
    return [place for place in lines if first <= int(place.partition(" ")[0]) <= last]


def _showing(first: int, last: int) -> Any:
    from limpet.window import transcript

    def decide(before: Entry | None) -> Draft | None:
        if before is None:
            return None
        extra, done = dict(before.extra), before.done
        if places := _lines(before, first, last):
            extra["lines"] = {place: line for place, line in extra["lines"].items() if place not in places}
            done = not extra["lines"]
        elif before.kind == TASK or (first <= extra["first"] and extra["last"] <= last):
            return transcript.opened(before)
        else:
            extra["shown"] = _joined([*map(tuple, extra.get("shown", ())), (first, last)])
        return Draft(before.content, before.session, before.tags, done, before.pinned, extra)

    return decide


def _joined(ranges: list[tuple[int, int]]) -> list[list[int]]:
    """Ranges in order, those that touch made one."""
    found: list[list[int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1][1] = max(found[-1][1], last)
        else:
            found.append([first, last])
    return found


# --- answers ----------------------------------------------------------------------------------------------------------


def fold_json(entry: Entry) -> Json:
    extra = entry.extra
    return {
        "id": entry.key,
        "how": extra.get("how", "task"),
        "first": extra["first"] + 1,
        "last": extra["last"] + 1,
        "score": extra.get("score"),
        "missing": len(extra.get("missing", ())),
        "before": extra.get("before"),
        "after": extra.get("after"),
        "at": iso(extra.get("ended_at", entry.created_at)),
        "text": entry.content,
    }


def gauge_json(gauge: Gauge) -> Json:
    return {
        "limit": gauge.limit,
        "used": gauge.used,
        "percent": round(100 * gauge.used / gauge.limit, 1),
        "sections": dict(gauge.sections),
        "left_out": list(gauge.left_out),
    }


def restored_json(value: Restored) -> Json:
    answer: Json = {"first": value.first, "last": value.last, "content": value.content}
    return answer | ({"cut": True} if value.cut else {})


def folds_json(value: Folds) -> Json:
    return {"folds": [fold_json(entry) for entry in value.folds], "messages": value.messages}
