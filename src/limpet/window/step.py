"""One step of a window: look, decide, carry out, until there is something to send.

The messages are in the store before anything is decided, and a compaction is a single fold that is added after it was
verified. Whatever happens in between, a process that comes later finds the old window or the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from limpet import limits, prompts
from limpet.catalogue.operation import Context
from limpet.outputs import outputs
from limpet.session import tasks
from limpet.text import terminal, tokens
from limpet.window import sections, transcript
from limpet.window.conversation import Book
from limpet.window.messages import TOOL, Message
from limpet.window.plan import clearing, compaction, controller, facts, summary
from limpet.window.plan.checks import Probed, addendum, probe, probes, words
from limpet.window.plan.clearing import Clearable
from limpet.window.plan.compaction import Plan
from limpet.window.plan.context import HANDOFF, HEAD, LATE, PROMPT, request
from limpet.window.plan.controller import Clear, Compact, Gauge, Proceed, State, Step, Warn
from limpet.window.plan.counts import MESSAGE
from limpet.window.plan.folding import CLEAR, Fold, Item
from limpet.window.plan.groups import unpaired
from limpet.window.sections import Frozen, Given, Sections

Summarise = Callable[[list[Message]], str]
LINE_TOKENS = 60  # of the line that replaces a cleared result
REFERENCE_TOKENS = 380  # of a reference with its preview, which replaces one that nobody has read yet
TAILS = (100, 50, 25, 0)  # percentages of the usual tail that are tried one after the other


class Caller(NamedTuple):
    """What the loop brought along for this step."""

    prompt: Sequence[Message]
    given: Given
    limit: int
    ratio: float = 1.0  # of the provider's count to our estimate
    summarise: Summarise | None = None


class Folded(NamedTuple):
    """A compaction that passed, before it is kept."""

    fold: Fold
    facts: facts.Facts
    probed: Probed
    size: int


class Turn:
    def __init__(self, ctx: Context, book: Book, frozen: Frozen, caller: Caller) -> None:
        self.ctx = ctx
        self.book = book
        self.caller = caller
        self.rules = ctx.bounds.window
        self.frozen = frozen
        self.sections: Sections = sections.sections(ctx, frozen, caller.given)
        self.problems: tuple[str, ...] = ()
        self.warning = ""
        self._cleared = self._freed = 0
        self._stuck = False  # nothing is left to clear

    def step(self) -> Step:
        while True:
            state = self._state()
            if controller.void(state, self.rules):
                self._void()
                continue
            choice = controller.decide(state, self.rules)
            if choice == controller.CLEAR:
                self._clear()
            elif choice == controller.COMPACT:
                if (done := self._compact(state)) is not None:
                    return done
            elif choice == controller.WARN:
                return self._warn(state)
            elif self._cleared:
                return Clear(self._request(), self.gauge(), self._cleared, self._freed)
            else:
                return Proceed(self._request(), self.gauge(), self.problems)

    # --- looking ------------------------------------------------------------------------------------------------------

    def _state(self) -> State:
        used, limit = self.used(), self.caller.limit
        warning = self.book.warning()
        clearable = 0
        if used * 100 >= limit * self.rules.clear_percent and not self._stuck:
            clearable = sum(max(0, one.tokens - _stays(one)) for one in self._clearable(used))
        return State(
            used,
            limit,
            clearable,
            warning is not None,
            warning is not None and self.book.answered(warning),
            not self.problems,
        )

    def used(self, items: Sequence[Item] | None = None) -> int:
        """Tokens of the request, by the provider's measure where that is known."""
        return round(self.estimate(items) * self.caller.ratio)

    def estimate(self, items: Sequence[Item] | None = None) -> int:
        return sum(self.sizes(items))

    def sizes(self, items: Sequence[Item] | None = None) -> list[int]:
        """Tokens of each message of the request."""
        parts = self.sections.parts
        sizes = [parts.sizes[HANDOFF]] if parts.first else []
        sizes += map(self.book.measure, self.caller.prompt)
        sizes += [sum(parts.sizes.get(name, 0) for name in HEAD[1:])] if parts.head else []
        sizes += self.book.sizes if items is None else map(self.book.size, items)
        sizes.append(MESSAGE + sum(parts.sizes.get(name, 0) for name in LATE))
        return sizes + ([MESSAGE + tokens.count(self.warning)] if self.warning else [])

    def gauge(self) -> Gauge:
        """What fills the window, by section."""
        sizes: dict[str, int] = dict(self.sections.parts.sizes)
        if self.caller.prompt:
            sizes[PROMPT] = sizes.get(PROMPT, 0) + sum(map(self.book.measure, self.caller.prompt))
        for name, size in self.book.by_role.items():
            sizes[name] = sizes.get(name, 0) + size
        return Gauge(self.caller.limit, self.used(), sizes, self.sections.parts.left_out)

    def _request(self, items: Sequence[Item] | None = None) -> tuple[Message, ...]:
        history = [item.message for item in (self.book.items if items is None else items)]
        return tuple(request(self.sections.parts, self.caller.prompt, history, self.warning))

    # --- warning ------------------------------------------------------------------------------------------------------

    def _warn(self, state: State) -> Warn:
        if not state.warned:
            at = self.book.length
            draft = transcript.fold_draft(self.ctx, Fold("", transcript.WARN, at, at), limit=self.caller.limit)
            self.book.record(self.ctx, draft, "warn")
        self.warning = prompts.prompt("warning")
        if found := tasks.open_tasks(self.ctx):
            self.warning += "\n" + prompts.prompt("open_task").format(task=found[-1].content)
        return Warn(self._request(), self.gauge())

    def _void(self) -> None:
        if (warning := self.book.warning()) is not None:
            self.book.take_back(self.ctx, warning.key, "void_warning")

    # --- clearing -----------------------------------------------------------------------------------------------------

    def _clearable(self, used: int) -> list[Clearable]:
        if not self.ctx.bounds.outputs.enabled:
            return []  # without the outputs nothing would bring a result back in one call
        found = clearing.clearable(self.book.items, self.book.count, keep=self.rules.keep_results)
        if used * 100 >= self.caller.limit * self.rules.full_percent:
            most = self.caller.limit * self.rules.tail_percent // 100
            known = {one.place for one in found}
            bigger = clearing.oversized(self.book.items, self.book.count, most=most)
            found += [one for one in bigger if one.place not in known]
        return found

    def _clear(self) -> None:
        """Keep the results as outputs and put lines in their places, all with one fold."""
        found = self._clearable(self.used())
        self._stuck = True  # whatever can be cleared in this step is being cleared now
        if not found:
            return
        fresh = [one for one in found if not one.kept]
        calls = [(terminal.storable(one.call.name), one.text, terminal.storable(one.call.arguments)) for one in fresh]
        kept = outputs.put_outputs(self.ctx, calls)
        made = {one.place: output for one, output in zip(fresh, kept, strict=True)}
        lines: dict[str, str] = {}
        for one in found:
            if one.place not in made:
                lines[one.place] = clearing.line(one, one.kept, one.shown)
            elif one.read:
                lines[one.place] = clearing.line(one, made[one.place].id, made[one.place].preview)
            else:
                lines[one.place] = outputs.reference(made[one.place])
        fold = Fold("", CLEAR, 0, self.book.length - 1, lines=lines)
        self.book.record(self.ctx, transcript.fold_draft(self.ctx, fold), "clear_results")
        self._cleared += len(lines)
        self._freed += sum(max(0, one.tokens - _stays(one)) for one in found)

    # --- compacting ---------------------------------------------------------------------------------------------------

    def _compact(self, state: State) -> Compact | None:
        """Fold what is old, if what would be sent then passes. None when nothing passes; `problems` says why."""
        # The beginning of the request is lost to the cache anyway, so whatever stood still may move now.
        self.frozen = sections.freeze(self.ctx)
        self.sections = sections.sections(self.ctx, self.frozen, self.caller.given)
        before = self.estimate()
        folded = self._folded()
        if folded is None:
            return None
        missing = tuple(one.text for one in folded.probed.missing)
        more = {
            "facts": folded.facts,
            "score": round(folded.probed.score, 4),
            "missing": missing[: limits.FACTS_KEPT],
            "before": before,
            "after": folded.size,
            "limit": self.caller.limit,
        }
        entry = self.book.record(self.ctx, transcript.fold_draft(self.ctx, folded.fold, **more), "compact")
        return Compact(
            self._request(),
            self.gauge(),
            entry.key,
            folded.fold.last - folded.fold.first + 1,
            before - folded.size,
            folded.probed.score,
            missing,
            state.warned,
        )

    def _folded(self) -> Folded | None:
        tail = self.caller.limit * self.rules.tail_percent / self.caller.ratio / 100
        for share in TAILS:
            plan = compaction.plan(self.book.items, self.book.sizes, tail=int(tail * share / 100))
            if plan is None:
                self.problems = self.problems or ("there is nothing to fold",)
                continue
            folded, self.problems = self._tried(plan)
            if not self.problems:
                return folded
        return None

    def _tried(self, plan: Plan) -> tuple[Folded, tuple[str, ...]]:
        """The fold of a plan, and what is wrong with it."""
        said = self.book.facts_of(self.book.items[: plan.cut])
        heading = self._heading(plan)
        most = self.caller.limit * self.rules.target_percent // 100
        budget = min(limits.SUMMARY_MAX_TOKENS, self.caller.limit * self.rules.summary_percent // 100)
        if self.caller.summarise is not None:  # what a model was paid for is not cut while there is room for it
            room = int(most / self.caller.ratio) - self.estimate(self.book.would_be(plan.fold("", heading)))
            budget = max(budget, min(room, limits.SUMMARY_MAX_TOKENS))
        spare = budget * limits.ADDENDUM_PERCENT // 100
        text = f"{heading}\n{self._summary(plan, said, budget - spare)}"
        wanted = probes(said)
        # What a tool said does not count as remembered, even where it happens to hold the same number.
        sent = self._request(self.book.would_be(plan.fold("", text)))
        found = probe(wanted, words(message for message in sent if message.role != TOOL))
        if more := addendum(found.missing, spare):
            text = f"{text}\n{more}"
            left = probe(found.missing, more)
            found = Probed(found.total, left.missing)
        fold = plan.fold("", text)
        items = self.book.would_be(fold)
        size = self.estimate(items)
        problems = compaction.verify(
            self._request(items),
            pins=[compaction.pin(one) for one in self.sections.pins],
            asked=plan.request,
            alone_before=unpaired([item.message for item in self.book.items]),
            tokens=round(size * self.caller.ratio),
            most=most,
        )
        return Folded(fold, said, found, size), problems

    def _heading(self, plan: Plan) -> str:
        heading = prompts.prompt("fold").format(first=plan.first + 1, last=plan.last + 1)
        for task in tasks.open_tasks(self.ctx):
            heading += f"\nOpen task: {task.content}"
        return heading

    def _summary(self, plan: Plan, said: facts.Facts, budget: int) -> str:
        """The caller's summary if it gives one, else our own. Whatever goes wrong in it must not stop a compaction."""
        standing = self.sections.parts.late
        if self.caller.summarise is not None:
            try:
                text = self.caller.summarise([item.message for item in self.book.items[: plan.cut]])
                if text.strip():
                    return summary.shortened(text.strip(), standing, budget)
            except Exception:  # noqa: BLE001, S110 - a model's trouble is the caller's; ours needs no model
                pass
        return summary.summarise(summary.besides(said, standing), budget)


def _stays(one: Clearable) -> int:
    return LINE_TOKENS if one.read else REFERENCE_TOKENS


def looked_at(ctx: Context, book: Book) -> Gauge:
    """The gauge of a window that somebody looks at without taking a step."""
    limit = book.last_limit() or ctx.bounds.window.limit
    return Turn(ctx, book, sections.freeze(ctx), Caller((), Given(), limit)).gauge()
