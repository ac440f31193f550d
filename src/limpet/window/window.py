"""The window of a session, for a loop that calls a model. Three methods suffice for any loop.

`next` takes the conversation and returns what to send, `sent` confirms that it was answered, and `uncompact` brings
messages back. The caller may continue its own list or the messages of the last answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from limpet.catalogue.operation import Context
from limpet.memory import handoff
from limpet.window import folds, sections
from limpet.window.conversation import Conversation, Count
from limpet.window.messages import TOOL, Message
from limpet.window.plan.context import shared, split
from limpet.window.plan.controller import Step
from limpet.window.plan.counts import Meter
from limpet.window.plan.gauge import Gauge
from limpet.window.plan.rules import repair
from limpet.window.sections import CallerSections, StableSections
from limpet.window.step import StepInput, StepRunner, Summarise, stored_gauge

RATIOS = (0.5, 2.5)  # bounds for scaling the estimate to a provider's count; beyond, one of the two is wrong


class Window:
    def __init__(self, context: Callable[[], Context], *, count: Count | None = None) -> None:
        self._context = context
        self._conversation = Conversation(count or Meter().message)
        self._stable: StableSections | None = None
        self._request: tuple[Message, ...] = ()  # the last one, as the transcript has it
        self._repaired: tuple[Message, ...] = ()  # the same as the caller got it, with orphans repaired
        self._request_size = 0
        self._ratio = 1.0

    def next(
        self,
        messages: Sequence[Message],
        *,
        limit: int | None = None,
        used: int | None = None,
        given: CallerSections | None = None,
        summarise: Summarise | None = None,
    ) -> Step:
        """What to send next, and why.

        `limit` is the model's window in tokens, `used` the provider's count for the last request. An empty list
        continues where the session stopped. `summarise` may write the summaries; facts that it leaves out are added.
        """
        ctx = self._context()
        if used is not None:
            self._calibrate(used)
        prompt, talk = split(self._as_stored(messages))
        self._conversation.refresh(ctx)
        self._conversation.reconcile(ctx, talk)
        stable = self._stable or sections.read_stable(ctx)
        limit = limit or ctx.bounds.window.limit
        step_input = StepInput(prompt, given or CallerSections(), limit, self._ratio, summarise)
        runner = StepRunner(ctx, self._conversation, stable, step_input)
        step = runner.run()
        self._stable = runner.stable
        common = shared(self._request, step.messages)
        sizes = runner.sizes()
        self._repaired = _repaired(step.messages, common if self._repaired is self._request else 0)
        self._request, self._request_size = step.messages, sum(sizes)
        return step._replace(messages=self._repaired, gauge=step.gauge._replace(reused=sum(sizes[:common])))

    def sent(self, used: int | None = None) -> None:
        """Confirm that the last request was answered, with the provider's count. The handoff in it is now used."""
        if used is not None:
            self._calibrate(used)
        if self._stable is not None and self._stable.handoff is not None:
            handoff.use_handoff(self._context(), self._stable.handoff)

    @property
    def shows_handoff(self) -> bool:
        """Whether the last request contained a handoff, which `sent` then marks as used."""
        return self._stable is not None and self._stable.handoff is not None

    def keep(self, messages: Sequence[Message]) -> None:
        """Store the conversation when a loop ends or pauses; otherwise its last answer waits for the next request."""
        ctx = self._context()
        self._conversation.refresh(ctx)
        self._conversation.reconcile(ctx, split(self._as_stored(messages))[1])

    def add(self, messages: Sequence[Message]) -> None:
        """Append messages to the conversation."""
        ctx = self._context()
        self._conversation.refresh(ctx)
        self._conversation.reconcile(ctx, [*(item.message for item in self._conversation.items), *messages])

    def leave(self, count: int) -> None:
        """Drop the last messages from the window. They stay in the transcript."""
        ctx = self._context()
        self._conversation.refresh(ctx)
        self._conversation.drop(ctx, count)

    def uncompact(self, first: int, last: int | None = None) -> folds.RestoredMessages:
        """Bring messages back into the window from the next request on. Positions count from 1."""
        return folds.uncompact(self._context(), first, last)

    def messages(self) -> list[Message]:
        """The conversation as the window has it now, for a process that continues the session."""
        self._conversation.refresh(self._context())
        return [item.message for item in self._conversation.items]

    def gauge(self) -> Gauge:
        """What fills the window, by section."""
        ctx = self._context()
        self._conversation.refresh(ctx)
        return stored_gauge(ctx, self._conversation)

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
