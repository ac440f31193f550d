"""Operations on folds: list them, show what fills the window, and bring messages back."""

from __future__ import annotations

from typing import NamedTuple

from limpet import errors, limits
from limpet.catalogue.operation import Context, Json
from limpet.model import FOLD, TASK, Draft, Entry, iso
from limpet.session.records import TaskRecord
from limpet.store import Decide
from limpet.text import tokens
from limpet.window import step, transcript
from limpet.window.conversation import Conversation
from limpet.window.messages import Message
from limpet.window.plan import folding
from limpet.window.plan.checks import words
from limpet.window.plan.counts import Meter
from limpet.window.plan.gauge import Gauge
from limpet.window.plan.groups import expand
from limpet.window.records import WARN, FoldRecord


class Folds(NamedTuple):
    folds: tuple[Entry, ...]
    messages: int  # of the session


class RestoredMessages(NamedTuple):
    first: int  # positions from 1, both included
    last: int
    content: str
    cut: bool


def list_folds(ctx: Context) -> Folds:
    """What is shown in the window in place of messages, oldest first."""
    current = [entry for entry in transcript.entries(ctx) if entry.done or entry.kind == FOLD]
    folds = [entry for entry in current if entry.extra.get("how") != WARN]
    return Folds(tuple(folds), transcript.count(ctx))


def uncompact(ctx: Context, first: int, last: int | None = None) -> RestoredMessages:
    """Bring messages back into the window as they were. Positions count from 1; calls come with their results."""
    end = first if last is None else last
    history = [stored.message for stored in transcript.messages(ctx)]
    if not 1 <= first <= end <= len(history):
        raise errors.nothing_folded(first, end, len(history))
    start, stop = expand(history, first - 1, end - 1)
    changed = False
    while hiding := _hiding(ctx, history, start, stop):  # below a fold there may be an earlier one
        changed = True
        for entry in hiding:
            ctx.store.entries.edit(ctx.scope, entry.kind, entry.key, _showing(start, stop), ctx.stamp("uncompact"))
    if not changed:
        raise errors.nothing_folded(first, end, len(history))
    text, cut = tokens.cut(words(history[start : stop + 1]), limits.OUTPUT_READ_TOKENS)
    return RestoredMessages(start + 1, stop + 1, text, cut)


def show_window(ctx: Context) -> Gauge:
    """What fills the window of the session, by section, as far as the store knows."""
    conversation = Conversation(Meter().message)
    conversation.refresh(ctx)
    return step.stored_gauge(ctx, conversation)


def _hiding(ctx: Context, history: list[Message], first: int, last: int) -> list[Entry]:
    """The folds that hide messages of this range."""
    entries = transcript.entries(ctx)
    keys = {
        block.key
        for block in folding.blocks(transcript.folds(entries, history))
        for position in range(max(first, block.first), min(last, block.last) + 1)
        if not any(low <= position <= high for low, high in block.shown)
    }
    return [entry for entry in entries if entry.key in keys or _clears(entry, first, last)]


def _clears(entry: Entry, first: int, last: int) -> bool:
    """Whether it cleared results of this range."""
    return entry.kind == FOLD and bool(FoldRecord.from_json(entry.extra).lines_in(first, last))


def _showing(first: int, last: int) -> Decide:
    """The change that makes a fold show this range."""

    def decide(before: Entry | None) -> Draft | None:
        if before is None or before.kind == TASK:
            return transcript.unfolded(before)
        fold = FoldRecord.from_json(before.extra)
        if keys := fold.lines_in(first, last):
            lines = {key: line for key, line in (fold.lines or {}).items() if key not in keys}
            return before.revised(done=not lines, extra=fold._replace(lines=lines).to_json())
        if first <= fold.first and fold.last <= last:
            return transcript.unfolded(before)
        return before.revised(extra=fold.with_shown(first, last).to_json())

    return decide


# --- answers ----------------------------------------------------------------------------------------------------------


def fold_json(entry: Entry) -> Json:
    fold, at = _record(entry)
    return {
        "id": entry.key,
        "how": fold.how,
        "first": fold.first + 1,
        "last": fold.last + 1,
        "score": fold.score,
        "missing": len(fold.missing or ()),
        "before": fold.before,
        "after": fold.after,
        "at": iso(at),
        "text": entry.content,
    }


def _record(entry: Entry) -> tuple[FoldRecord, int]:
    """A fold or an ended task as a fold, and when that was."""
    if entry.kind == FOLD:
        return FoldRecord.from_json(entry.extra), entry.created_at
    task = TaskRecord.from_json(entry.extra)
    last = task.first - 1 if task.last is None else task.last
    return FoldRecord(folding.TASK, task.first, last), task.ended_at or entry.created_at


def gauge_json(gauge: Gauge) -> Json:
    return {
        "limit": gauge.limit,
        "used": gauge.used,
        "percent": round(100 * gauge.used / gauge.limit, 1),
        "sections": dict(gauge.sections),
        "left_out": list(gauge.left_out),
    }


def restored_json(value: RestoredMessages) -> Json:
    answer: Json = {"first": value.first, "last": value.last, "content": value.content}
    return answer | ({"cut": True} if value.cut else {})


def folds_json(value: Folds) -> Json:
    return {"folds": [fold_json(entry) for entry in value.folds], "messages": value.messages}
