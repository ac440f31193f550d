"""The window of a session, for a loop that calls a model. Three methods suffice for any loop.

`next` takes the conversation and returns what to send, `sent` confirms that it was answered, and `uncompact` brings
messages back. The caller may continue its own list or the messages of the last answer.

Below are the answers to a model's tool calls, where an error is a result that the model can act on, and the operations
on folds: list them, show what fills the window, and bring messages back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from limpet import errors, limits
from limpet.catalogue import table
from limpet.catalogue.operation import Context, Json
from limpet.memory import handoff
from limpet.model import FOLD, TASK, Draft, Entry, iso
from limpet.outputs import keep as output_keep
from limpet.outputs import read as output_read
from limpet.recall import unasked
from limpet.record import NamedTuple
from limpet.session.records import TaskRecord
from limpet.store import Decide
from limpet.text import brief, tokens
from limpet.window import sections, transcript
from limpet.window.conversation import Conversation, Count
from limpet.window.messages import TOOL, USER, Call, Message, Result, Text
from limpet.window.plan import folding
from limpet.window.plan.context import shared, split
from limpet.window.plan.controller import Step
from limpet.window.plan.counts import ESTIMATE, Meter, ToolDefinition, exact
from limpet.window.plan.facts import words
from limpet.window.plan.gauge import Gauge
from limpet.window.plan.line import contains, within
from limpet.window.plan.rules import expand, repair
from limpet.window.sections import CallerSections, StableSections
from limpet.window.step import Compacted, StepInput, StepRunner, Summarise, stored_runner
from limpet.window.transcript import WARN, FoldRecord, StoredMessage

FOLLOW_TRIES = 20  # more than loops work in one session at the same moment
RATIOS = (0.5, 2.5)  # bounds for scaling the estimate to a provider's count; beyond, one of the two is wrong


class Window:
    """`context` is the session of the transcript; `working` is the one whose notepad, pins and handoff are shown, if
    several agents with a transcript each work in one session."""

    def __init__(
        self,
        context: Callable[[], Context],
        *,
        count: Count | None = None,
        working: Callable[[], Context] | None = None,
    ) -> None:
        self._context = context
        self._working = working or context
        # Each message is counted once and its size stored with it, so the exact count costs little where it can be had.
        self._meter = Meter(tokenizer=exact() or ESTIMATE)
        self._conversation = Conversation(count or self._meter.message)
        self._stable: StableSections | None = None
        self._request: tuple[Message, ...] = ()  # the last one, as the transcript has it
        self._repaired: tuple[Message, ...] = ()  # the same as the caller got it, with orphans repaired
        self._request_size = 0  # of the tool definitions too
        self._ratio = 1.0
        self._input: StepInput | None = None  # of the last request
        self._prompt = ""  # the last prompt, and what was recalled for it
        self._recalled = ""

    def next(
        self,
        messages: Sequence[Message],
        *,
        limit: int | None = None,
        used: int | None = None,
        given: CallerSections | None = None,
        summarise: Summarise | None = None,
        shorten: bool = False,
        exact: bool = False,
        tools: Sequence[ToolDefinition] = (),
    ) -> Step:
        """What to send next, and why.

        `limit` is the model's window in tokens, `used` the provider's count for the last request. An empty list
        continues where the session stopped. `summarise` may write the summaries; facts that it leaves out are added.
        With `shorten`, a message that no window has room for is kept as an output and its preview is sent; without it
        the answer is `TooBig`. `exact`: what the list left out is not shown either; otherwise it may be just the last
        part. `tools` are those that go with the request, Limpet's and yours: their definitions fill the window too.
        """
        ctx = self._context()
        if limit is not None and limit <= 0:
            raise errors.bad_limit(limit)
        if used is not None:
            self._calibrate(used)
        prompt, talk = split(self._as_stored(messages))
        self._follow(ctx, talk, exact=exact)
        working = self._working()
        stable = self._stable or sections.read_stable(working)
        limit = limit or ctx.bounds.window.limit
        recalled = self._recalled_for(working, talk, stable)
        size = self._meter.definitions(tools)
        sections_given = given or CallerSections()
        step_input = StepInput(prompt, sections_given, limit, self._ratio, summarise, shorten, size, recalled)
        self._input = step_input
        runner = StepRunner(ctx, self._conversation, stable, step_input, working)
        step = runner.run()
        self._stable = runner.stable
        common = shared(self._request, step.messages)
        sizes = runner.sizes()
        self._repaired = _repaired(step.messages, common if self._repaired is self._request else 0)
        self._request, self._request_size = step.messages, sum(sizes) + size
        reused = sum(sizes[:common]) + (size if common else 0)
        return step._replace(messages=self._repaired, gauge=step.gauge._replace(reused=reused))

    def _recalled_for(self, ctx: Context, talk: Sequence[Message], stable: StableSections) -> str:
        """What clearly fits the last prompt. It stays until the next one, so that the bytes of a request stay too."""
        if talk and talk[-1].role == USER and (prompt := talk[-1].text()) != self._prompt:
            above = f"{stable.first}\n{stable.memory}\n{sections.changed(ctx, stable)}"
            recalled = unasked.unasked(ctx, prompt, above)
            self._prompt, self._recalled = prompt, recalled.text
            unasked.record_shown(ctx, recalled)
        return self._recalled

    def sent(self, used: int | None = None) -> None:
        """Confirm that the last request was answered, with the provider's count. The handoff in it is now used."""
        if used is not None:
            self._calibrate(used)
        if self._stable is not None:
            handoff.use(self._working(), self._stable.handoffs)

    @property
    def shows_handoff(self) -> bool:
        """Whether the last request contained a handoff, which `sent` then marks as used."""
        return self._stable is not None and bool(self._stable.handoffs)

    def keep(self, messages: Sequence[Message], *, exact: bool = False) -> None:
        """Store the conversation when a loop ends or pauses; otherwise its last answer waits for the next request."""
        self._follow(self._context(), split(self._as_stored(messages))[1], exact=exact)

    def add(self, messages: Sequence[Message]) -> None:
        """Append messages to the conversation."""
        ctx = self._context()
        self._conversation.refresh(ctx)
        self._conversation.append(ctx, messages)

    def leave(self, count: int) -> None:
        """Drop the last messages from the window. They stay in the transcript."""
        ctx = self._context()
        self._conversation.refresh(ctx)
        self._conversation.drop(ctx, count)

    def uncompact(self, first: int, last: int | None = None) -> RestoredMessages:
        """Bring messages back into the window from the next request on. Positions count from 1."""
        return uncompact(self._context(), first, last)

    def compact(self) -> Compacted:
        """Fold all but the recent messages now, however full the window is. The answer says what was folded."""
        return self._runner().compact()

    def messages(self) -> list[Message]:
        """The conversation as the window has it now, for a process that continues the session."""
        self._conversation.refresh(self._context())
        return [item.message for item in self._conversation.items]

    def gauge(self) -> Gauge:
        """What fills the window, by section."""
        return self._runner().gauge()

    def _runner(self) -> StepRunner:
        """A step outside of a request, with the prompt, the tools and the limit of the last one."""
        ctx = self._context()
        self._conversation.refresh(ctx)
        return stored_runner(ctx, self._conversation, self._input, self._working())

    def _follow(self, ctx: Context, talk: Sequence[Message], *, exact: bool) -> None:
        """Store what is new. If another process has just added messages, look again at what is new."""
        for attempt in range(1, FOLLOW_TRIES + 1):
            self._conversation.refresh(ctx)
            try:
                self._conversation.reconcile(ctx, talk, exact=exact)
                break
            except errors.Conflict:
                if attempt == FOLLOW_TRIES:
                    raise

    def _as_stored(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The caller's messages with the last repairs undone: the transcript has the originals."""
        count = len(self._repaired)
        if self._repaired is self._request or tuple(messages[:count]) != self._repaired:
            return messages
        return [*self._request, *messages[count:]]

    def _calibrate(self, used: int) -> None:
        if self._request_size:
            self._ratio = min(max(used / self._request_size, RATIOS[0]), RATIOS[1])


def _repaired(messages: tuple[Message, ...], unchanged: int) -> tuple[Message, ...]:
    """The messages as a provider accepts them, the same tuple if nothing was wrong. The first `unchanged` were sent
    before as they are.

    A caller's mistake, or a process that died between a call and its result, leaves half a pair.
    """
    while unchanged and (unchanged == len(messages) or messages[unchanged].role == TOOL):
        unchanged -= 1  # a result is checked with its call
    rest = messages[unchanged:]
    repaired = repair(rest)[0]
    return messages if repaired == rest else messages[:unchanged] + repaired


# --- answers to tool calls --------------------------------------------------------------------------------------------

Handler = Callable[[Mapping[str, Any]], Any]


def answer_call(call: Call, run: Callable[[dict[str, Any]], str]) -> Result:
    """The result of a call, also if it fails, so that every call has a result."""
    try:
        arguments = json.loads(call.arguments or "{}")
        if not isinstance(arguments, dict):
            raise errors.wrong_type(call.name, "arguments", arguments, "an object")
        return Result(call.id, (Text(run(arguments)),))
    except errors.LimpetError as problem:
        return Result(call.id, (Text(problem.message),), error=True)
    except Exception as problem:  # noqa: BLE001 - the caller's own tools: any exception becomes a result
        return Result(call.id, (Text(f"{type(problem).__name__}: {problem}"),), error=True)


def run_handler(ctx: Context, call: Call, handlers: Mapping[str, Handler]) -> Result:
    """The result of a call by the handler of its name. Big results of the caller's tools become references."""

    def run(arguments: dict[str, Any]) -> str:
        if call.name not in handlers:
            raise errors.unknown_operation(call.name, f"Tools that exist: {', '.join(handlers)}.")
        if call.name in table.OPERATIONS:
            return as_text(handlers[call.name](arguments))
        text = as_text(handlers[call.name](output_read.expanded(ctx, arguments)))
        return output_keep.keep_output(ctx, call.name, text, call.arguments).text

    return answer_call(call, run)


def as_text(answer: Any) -> str:
    """What a handler returned, as the model reads it."""
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, default=str)


# --- operations on folds ----------------------------------------------------------------------------------------------


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
    stored = transcript.messages(ctx)
    history = [message.message for message in stored]
    if not 1 <= first <= end <= len(history):
        raise _nothing_folded(first, end, len(history))
    start, stop = expand(history, first - 1, end - 1)
    changed = _restore(ctx, stored, start, stop)
    while hiding := _hiding(ctx, stored, start, stop):  # below a fold there may be an earlier one
        changed = True
        for entry in hiding:
            ctx.store.entries.edit(ctx.scope, entry.kind, entry.key, _showing(start, stop), ctx.stamp("uncompact"))
    if not changed:
        raise _nothing_folded(first, end, len(history))
    text, cut = tokens.cut(words(history[start : stop + 1]), limits.OUTPUT_READ_TOKENS)
    return RestoredMessages(start + 1, stop + 1, text, cut)


def _nothing_folded(first: int, end: int, total: int) -> errors.LimpetError:
    messages = f"message {first:,}" if first == end else f"the messages {first:,} to {end:,}"
    return errors.nothing_folded(messages, brief.counted(total, "message"))


def show_window(ctx: Context) -> Gauge:
    """What fills the window of the session, by section, as far as the store knows."""
    return _stored(ctx).gauge()


def compact_window(ctx: Context) -> Compacted:
    """Fold all but the recent messages of the session, as far as the store knows its window."""
    return _stored(ctx).compact()


def _stored(ctx: Context) -> StepRunner:
    conversation = Conversation(Meter(tokenizer=exact() or ESTIMATE).message)
    conversation.refresh(ctx)
    return stored_runner(ctx, conversation)


def _restore(ctx: Context, stored: Sequence[StoredMessage], first: int, last: int) -> bool:
    """Show the messages of this range that are on an abandoned line; whether there were any."""
    positions = transcript.line(stored, transcript.entries(ctx)).positions()
    if len(within(positions, first, last)) == last - first + 1:
        return False
    draft = transcript.fold_draft(ctx, FoldRecord(folding.RESTORE, first, last))
    ctx.store.entries.edit(ctx.scope, FOLD, None, lambda before: draft, ctx.stamp("uncompact"))
    return True


def _hiding(ctx: Context, stored: Sequence[StoredMessage], first: int, last: int) -> list[Entry]:
    """The folds that hide messages of this range."""
    entries = transcript.entries(ctx)
    positions = transcript.line(stored, entries).positions()
    folds = transcript.folds(entries, [message.message for message in stored])
    keys = {
        block.key
        for block in folding.blocks(fold for fold in folds if contains(positions, fold.last))
        for position in within(positions, max(first, block.first), min(last, block.last))
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
    fold, at = _fold_record(entry)
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


def _fold_record(entry: Entry) -> tuple[FoldRecord, int]:
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


def compacted_json(value: Compacted) -> Json:
    left = {"used": value.gauge.used, "limit": value.gauge.limit}
    if not value.fold:
        return {"ok": False, "folded": 0, **left, "reason": "; ".join(value.problems)}
    folded: Json = {"ok": True, "folded": value.last - value.first + 1, "first": value.first, "last": value.last}
    return {**folded, "freed": value.freed, **left, **({"left_out": len(value.missing)} if value.missing else {})}


ABOUT_WINDOW: Mapping[str, Callable[[Window], Json]] = {  # the same operations, answered by a window
    "show_window": lambda window: gauge_json(window.gauge()),
    "compact_window": lambda window: compacted_json(window.compact()),
}


def restored_json(value: RestoredMessages) -> Json:
    answer: Json = {"first": value.first, "last": value.last, "content": value.content}
    return answer | ({"cut": True} if value.cut else {})


def restored_text(_ctx: Context, value: RestoredMessages) -> str:
    cut = " (cut to fit)" if value.cut else ""
    return f"Messages {value.first} to {value.last}, as they were{cut}:\n{value.content}"


def folds_json(value: Folds) -> Json:
    return {"folds": [fold_json(entry) for entry in value.folds], "messages": value.messages}
