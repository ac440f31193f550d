"""One step of a window: measure, decide, act, until there is a request to send.

The messages are stored before anything is decided, and a compaction adds a single fold after it was verified. If a
process dies in between, the next one finds either the old window or the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from limpet import errors, limits, prompts
from limpet.catalogue.operation import Context
from limpet.outputs import keep as output_keep
from limpet.record import NamedTuple
from limpet.redaction import Masking
from limpet.session import records
from limpet.text import safe, tokens
from limpet.window import sections, transcript
from limpet.window.conversation import Candidate, Conversation
from limpet.window.messages import TOOL, Message
from limpet.window.plan import compaction, controller, facts
from limpet.window.plan.compaction import Clearable, FoldPlan, LongText
from limpet.window.plan.context import DEFINITIONS, HANDOFF, HEAD, HISTORY, LATE, PROMPT, request
from limpet.window.plan.controller import Clear, Compact, Proceed, State, Step, TooBig, Warn
from limpet.window.plan.counts import MESSAGE
from limpet.window.plan.facts import CheckReport, addendum, checks, run_checks, words
from limpet.window.plan.folding import CLEAR
from limpet.window.plan.gauge import Gauge
from limpet.window.plan.rules import unpaired
from limpet.window.sections import CallerSections, Sections, StableSections
from limpet.window.transcript import WARN, FoldRecord

Summarise = Callable[[list[Message]], str]
LINE_TOKENS = 60  # of the line that replaces a cleared result
REFERENCE_TOKENS = 380  # of a reference with its preview, which replaces a result that the model has not read yet
TAILS = (100, 50, 25, 0)  # percentages of the usual tail that are tried in turn


class StepInput(NamedTuple):
    """What the caller passed for this step."""

    prompt: Sequence[Message]
    sections: CallerSections
    limit: int
    ratio: float = 1.0  # of the provider's token count to the estimate
    summarise: Summarise | None = None
    shorten: bool = False  # whether a message that is too long may be replaced by its preview
    tool_tokens: int = 0  # of the tool definitions that go with the request, as estimated
    recalled: str = ""  # what fits the last prompt

    @property
    def scaled_tools(self) -> int:
        return round(self.tool_tokens * self.ratio)

    @property
    def room(self) -> int:
        """What the window has for messages. Percentages are of this: no compaction makes the tools smaller."""
        return self.limit - self.scaled_tools


class Attempt(NamedTuple):
    """A compaction that was tried: the window it would leave, and what is wrong with it."""

    candidate: Candidate
    facts: facts.Facts
    checked: CheckReport
    size: int
    problems: tuple[str, ...]

    def record(self, before: int, step_input: StepInput, tasks: int) -> FoldRecord:
        """The fold as it is stored."""
        fold = self.candidate.fold
        missing = tuple(check.text for check in self.checked.missing)
        return FoldRecord(
            fold.how,
            fold.first,
            fold.last,
            shown=fold.shown,
            facts=self.facts,
            score=None if self.checked.score is None else round(self.checked.score, 4),
            missing=missing[: limits.FACTS_KEPT],
            before=before + step_input.tool_tokens,
            after=self.size + step_input.tool_tokens,
            limit=step_input.limit,
            tasks=tasks or None,
        )


class Compacted(NamedTuple):
    """What a compaction that was asked for did. Positions count from 1; nothing was folded if `fold` is empty."""

    fold: str  # its key
    first: int
    last: int
    freed: int  # tokens
    score: float | None
    missing: tuple[str, ...]
    gauge: Gauge
    problems: tuple[str, ...] = ()  # why nothing was folded


class StepRunner:
    def __init__(
        self,
        ctx: Context,
        conversation: Conversation,
        stable: StableSections,
        step_input: StepInput,
        working: Context | None = None,
    ) -> None:
        self.ctx = ctx
        self.working = working or ctx  # where the notepad, the pins and the outputs are
        self.conversation = conversation
        self.input = step_input
        self.rules = ctx.bounds.window
        self.stable = stable
        self.sections: Sections = sections.sections(self.working, stable, step_input.sections, step_input.recalled)
        self.problems: tuple[str, ...] = ()
        self.warning = ""
        self._cleared = self._freed = 0
        self._nothing_to_clear = False

    def run(self) -> Step:
        if self.input.room <= 0:
            advice = errors.tools_too_big(self.input.scaled_tools, self.input.limit).message
            return TooBig(self._request(), self.gauge(), advice)
        while True:
            state = self._state()
            if controller.void(state, self.rules):
                self._void_warning()
                continue
            choice = controller.decide(state, self.rules)
            if choice == controller.CLEAR:
                self._clear()
            elif choice == controller.COMPACT:
                if (compacted := self._compact(state)) is not None:
                    return compacted
                self._note_attempt(state)
            elif choice == controller.SHORTEN:
                self._shorten()
            elif choice == controller.TOO_BIG:
                return TooBig(self._request(), self.gauge(), self._advice(state))
            elif choice == controller.WARN:
                return self._warn(state)
            elif self._cleared:
                return Clear(self._request(), self.gauge(), self._cleared, self._freed)
            else:
                return Proceed(self._request(), self.gauge(), self.problems)

    # --- measuring ----------------------------------------------------------------------------------------------------

    def _state(self) -> State:
        used, limit = self.used(), self.input.room
        warning = self.conversation.warning()
        clearable = 0
        if used * 100 >= limit * self.rules.clear_percent and not self._nothing_to_clear:
            clearable = sum(map(_saving, self._clearable(used)))
        return State(
            used,
            limit,
            clearable,
            warning is not None,
            warning is not None and self.conversation.answered(warning),
            not self.problems,
            used > limit and bool(self._long_texts()),
            self._is_task_due(),
        )

    def _is_task_due(self) -> bool:
        most = self.rules.compact_after_tasks
        return 0 < most <= self.conversation.tasks_since_compaction()

    def _note_attempt(self, state: State) -> None:
        """After a compaction that could not be made: if tasks asked for it, the next one waits for another task."""
        if state.tasks_due:
            self.conversation.tasks_tried = self.conversation.tasks_ended()
            if not (state.warned and state.answered) and state.used * 100 < state.limit * self.rules.full_percent:
                self.problems = ()  # the window is not full, so nothing is wrong with it

    def used(self) -> int:
        """Tokens of the messages of the request, scaled to the provider's count where that is known."""
        return round(self.estimate() * self.input.ratio)

    def estimate(self) -> int:
        return sum(self.sizes())

    def sizes(self) -> list[int]:
        """Tokens of each message of the request."""
        return self._sizes(self.conversation.sizes)

    def _sizes(self, history: Sequence[int]) -> list[int]:
        parts = self.sections.parts
        sizes = [parts.sizes[HANDOFF]] if parts.first else []
        sizes += map(self.conversation.measure, self.input.prompt)
        sizes += [sum(parts.sizes.get(name, 0) for name in HEAD[1:])] if parts.head else []
        sizes += history
        sizes.append(MESSAGE + sum(parts.sizes.get(name, 0) for name in LATE))
        return sizes + ([MESSAGE + tokens.count(self.warning)] if self.warning else [])

    def gauge(self) -> Gauge:
        """What fills the window, by section."""
        sizes: dict[str, int] = dict(self.sections.parts.sizes)
        if self.input.prompt:
            sizes[PROMPT] = sizes.get(PROMPT, 0) + sum(map(self.conversation.measure, self.input.prompt))
        for name, size in self.conversation.by_role.items():
            sizes[name] = sizes.get(name, 0) + size
        if self.input.tool_tokens:
            sizes[DEFINITIONS] = self.input.tool_tokens
        return Gauge(self.input.limit, self.used() + self.input.scaled_tools, sizes, self.sections.parts.left_out)

    def _request(self, candidate: Candidate | None = None) -> tuple[Message, ...]:
        history = [item.message for item in self.conversation.items] if candidate is None else candidate.messages
        return tuple(request(self.sections.parts, self.input.prompt, history, self.warning))

    # --- warning ------------------------------------------------------------------------------------------------------

    def _warn(self, state: State) -> Warn:
        if not state.warned:
            position = self.conversation.length
            record = FoldRecord(WARN, position, position, limit=self.input.limit)
            self.conversation.add_fold(self.ctx, transcript.fold_draft(self.ctx, record), "warn")
        self.warning = prompts.prompt("warning")
        if open_tasks := records.open_tasks(self.ctx):
            self.warning += "\n" + prompts.prompt("open_task").format(task=open_tasks[-1].content)
        return Warn(self._request(), self.gauge())

    def _void_warning(self) -> None:
        if (warning := self.conversation.warning()) is not None:
            self.conversation.remove(self.ctx, warning.key, "void_warning")

    # --- clearing -----------------------------------------------------------------------------------------------------

    def _clearable(self, used: int) -> list[Clearable]:
        if not self.ctx.bounds.outputs.enabled:
            return []  # without outputs, no reference could bring a result back
        items, count = self.conversation.items, self.conversation.count
        results = compaction.clearable(items, count, keep=self.rules.keep_results)
        if used * 100 >= self.input.room * self.rules.full_percent:
            most = self.input.room * self.rules.tail_percent // 100
            keys = {result.key for result in results}
            results += [result for result in compaction.oversized(items, count, most=most) if result.key not in keys]
        return results

    def _clear(self) -> None:
        """Store the results as outputs and replace each by a line, with a single fold."""
        results = self._clearable(self.used())
        self._nothing_to_clear = True  # everything that can be cleared in this step is cleared now
        if not results:
            return
        lines = self._lines(results)
        record = FoldRecord(CLEAR, 0, self.conversation.length - 1, lines)
        self.conversation.add_fold(self.ctx, transcript.fold_draft(self.ctx, record), "clear_results")
        self._cleared += len(lines)
        self._freed += sum(map(_saving, results))

    def _lines(self, results: Sequence[Clearable]) -> dict[str, str]:
        # A line shortens the arguments, and half a secret would not be recognised.
        results = [result._replace(call=transcript.masked_call(Masking(), result.call)) for result in results]
        fresh = [result for result in results if not result.output_id]
        calls = [
            (safe.storable(result.call.name), result.text, safe.storable(result.call.arguments)) for result in fresh
        ]
        stored = dict(zip((result.key for result in fresh), output_keep.put_outputs(self.working, calls), strict=True))
        lines: dict[str, str] = {}
        for result in results:
            output = stored.get(result.key)
            if output is None:
                lines[result.key] = compaction.cleared_line(result, result.output_id, result.preview)
            elif result.read:
                lines[result.key] = compaction.cleared_line(result, output.id, output.preview)
            else:
                lines[result.key] = output_keep.reference(output)
        return lines

    # --- messages that are too long -----------------------------------------------------------------------------------

    def _long_texts(self) -> list[LongText]:
        if not self.input.shorten or not self.ctx.bounds.outputs.enabled:
            return []
        most = self.input.room * self.rules.tail_percent // 100
        return compaction.long_texts(self.conversation.items, self.conversation.sizes, most=most)

    def _shorten(self) -> None:
        """Store the long messages as outputs and show the preview of each, with a reference, in its place."""
        texts = self._long_texts()
        outputs = output_keep.put_outputs(self.working, [(f"{text.role} message", text.text, "") for text in texts])
        opening = prompts.prompt("long_message")
        lines = {
            text.key: f"{opening}\n{output_keep.reference(output)}" for text, output in zip(texts, outputs, strict=True)
        }
        record = FoldRecord(CLEAR, 0, self.conversation.length - 1, lines)
        self.conversation.add_fold(self.ctx, transcript.fold_draft(self.ctx, record), "shorten")
        self.problems = ()  # the window is another one, so it may be compacted now
        self._cleared += len(lines)
        self._freed += sum(max(0, text.tokens - REFERENCE_TOKENS) for text in texts)

    def _advice(self, state: State) -> str:
        largest, size = max(self.gauge().sections.items(), key=lambda section: section[1])
        helps = largest in HISTORY.values() and not self.input.shorten
        too_big = errors.request_too_big if helps else errors.request_stays_too_big
        return too_big(self.gauge().used, self.input.limit, largest, size).message

    # --- compacting ---------------------------------------------------------------------------------------------------

    def _compact(self, state: State) -> Compact | None:
        """Fold the old messages, if the resulting request passes. None if none passes; `problems` says why."""
        self._read_stable()
        before = self.estimate()
        attempt = self._attempts()
        if attempt is None and state.used > state.limit and not state.shortenable:
            attempt = self._attempts(percent=self.rules.full_percent)  # better than a request that cannot be sent
        if attempt is None:
            return None
        fold, checked = attempt.candidate.fold, attempt.checked
        return Compact(
            *self._folded(attempt, before),
            fold.last - fold.first + 1,
            before - attempt.size,
            checked.score,
            tuple(check.text for check in checked.missing),
            state.warned,
        )

    def compact(self) -> Compacted:
        """Fold the old messages on request, however full the window is."""
        self._read_stable()
        before = self.estimate()
        attempt = self._attempts(before)
        if attempt is None:
            return Compacted("", 0, 0, 0, None, (), self.gauge(), self.problems)
        fold, checked = attempt.candidate.fold, attempt.checked
        _, gauge, key = self._folded(attempt, before)
        missing = tuple(check.text for check in checked.missing)
        return Compacted(key, fold.first + 1, fold.last + 1, before - attempt.size, checked.score, missing, gauge)

    def _read_stable(self) -> None:
        """The prompt cache is lost anyway, so the stable sections may change now."""
        self.stable = sections.read_stable(self.working)
        self.sections = sections.sections(self.working, self.stable, self.input.sections, self.input.recalled)

    def _folded(self, attempt: Attempt, before: int) -> tuple[tuple[Message, ...], Gauge, str]:
        """The request after this compaction, what fills it, and the key of the fold."""
        record = attempt.record(before, self.input, self.conversation.tasks_ended())
        draft = transcript.fold_draft(self.ctx, record, attempt.candidate.fold.text)
        entry = self.conversation.add_fold(self.ctx, draft, "compact")
        return self._request(), self.gauge(), entry.key

    def _attempts(self, size: int | None = None, percent: int | None = None) -> Attempt | None:
        """The first attempt that passes, each with a shorter tail.

        The percentages are of the window, or of a request of `size` tokens that is to become smaller. It must get below
        `percent`, by default the target.
        """
        whole = self.input.room if size is None else min(self.input.room, round(size * self.input.ratio))
        tail = whole * self.rules.tail_percent / self.input.ratio / 100
        target = self.input.room * (percent or self.rules.target_percent) // 100
        target = target if size is None else min(target, whole - 1)
        for share in TAILS:
            plan = compaction.plan(self.conversation.items, self.conversation.sizes, tail=int(tail * share / 100))
            if plan is None:
                self.problems = self.problems or ("there is nothing to fold",)
                continue
            attempt = self._attempt(plan, target)
            self.problems = attempt.problems
            if not self.problems:
                return attempt
        return None

    def _attempt(self, plan: FoldPlan, most: int) -> Attempt:
        gathered = self.conversation.facts_of(self.conversation.items[: plan.cut])
        heading = self._heading(plan)
        candidate = self.conversation.with_fold(plan.fold("", heading))
        budget = self._summary_budget(candidate, most)
        spare = budget * limits.ADDENDUM_PERCENT // 100
        text = f"{heading}\n{self._summary(plan, gathered, budget - spare)}"
        candidate, sent = self._with_text(candidate, text)
        # A fact in a tool result does not count as remembered, even if the number happens to be the same.
        checked = run_checks(checks(gathered), words(message for message in sent if message.role != TOOL))
        if more := addendum(checked.missing, spare):
            candidate, sent = self._with_text(candidate, f"{text}\n{more}")
            checked = CheckReport(checked.total, run_checks(checked.missing, more).missing)
        size = sum(self._sizes(candidate.sizes))
        problems = compaction.verify(
            sent,
            pins=[compaction.pin(text) for text in self.sections.pins],
            request=plan.request,
            unpaired_before=unpaired([item.message for item in self.conversation.items]),
            tokens=round(size * self.input.ratio),
            most=most,
        )
        return Attempt(candidate, gathered, checked, size, problems)

    def _with_text(self, candidate: Candidate, text: str) -> tuple[Candidate, tuple[Message, ...]]:
        """The candidate with another summary, and the request that would be sent."""
        candidate = self.conversation.with_text(candidate, text)
        return candidate, self._request(candidate)

    def _summary_budget(self, candidate: Candidate, most: int) -> int:
        budget = min(limits.SUMMARY_MAX_TOKENS, self.input.room * self.rules.summary_percent // 100)
        if self.input.summarise is None:
            return budget
        # A model's summary was paid for; it is not cut while there is room for it.
        room = int(most / self.input.ratio) - sum(self._sizes(candidate.sizes))
        return max(budget, min(room, limits.SUMMARY_MAX_TOKENS))

    def _heading(self, plan: FoldPlan) -> str:
        heading = prompts.prompt("fold").format(first=plan.first + 1, last=plan.last + 1)
        for task in records.open_tasks(self.ctx):
            heading += f"\nOpen task: {task.content}"
        return heading

    def _summary(self, plan: FoldPlan, gathered: facts.Facts, budget: int) -> str:
        """The caller's summary if it gives one, else our own. An error in the caller's must not stop a compaction."""
        standing = self.sections.parts.late
        if self.input.summarise is not None:
            try:
                text = self.input.summarise([item.message for item in self.conversation.items[: plan.cut]])
                if text.strip():
                    return facts.shortened(text.strip(), standing, budget)
            except Exception:  # noqa: BLE001, S110 - a failing model is the caller's concern; our summary needs none
                pass
        return facts.summarise(facts.besides(gathered, standing), budget)


def _saving(result: Clearable) -> int:
    """Tokens that clearing this result frees."""
    return max(0, result.tokens - (LINE_TOKENS if result.read else REFERENCE_TOKENS))


def stored_runner(
    ctx: Context, conversation: Conversation, step_input: StepInput | None = None, working: Context | None = None
) -> StepRunner:
    """A step outside of a request: as the last one was, or as far as the store knows."""
    if step_input is None:
        step_input = StepInput((), CallerSections(), conversation.last_limit() or ctx.bounds.window.limit)
    return StepRunner(ctx, conversation, sections.read_stable(working or ctx), step_input, working)
