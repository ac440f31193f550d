"""The window of a session, for a loop that calls a model: three calls suffice for any loop.

`next` is given the conversation and says what to send, `sent` is told that it was answered, and `uncompact` brings
messages back. The caller may go on with its own list or with the messages of the last answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from limpet.catalogue.operation import Context
from limpet.memory import handoff
from limpet.window import folds, sections
from limpet.window.conversation import Book, Count
from limpet.window.messages import TOOL, Message
from limpet.window.plan.context import shared, split
from limpet.window.plan.controller import Gauge, Step
from limpet.window.plan.counts import Meter
from limpet.window.plan.rules import repair
from limpet.window.sections import Frozen, Given
from limpet.window.step import Caller, Summarise, Turn, looked_at

RATIOS = (0.5, 2.5)  # between which a provider's count may move our estimate; beyond, one of the two is wrong


class Window:
    def __init__(self, context: Callable[[], Context], *, count: Count | None = None) -> None:
        self._context = context
        self._book = Book(count or Meter().message)
        self._frozen: Frozen | None = None
        self._sent: tuple[Message, ...] = ()  # the last request as the transcript has it
        self._given: tuple[Message, ...] = ()  # the same as the caller got it, with orphans mended
        self._sent_size = 0
        self._ratio = 1.0

    def next(
        self,
        messages: Sequence[Message],
        *,
        limit: int | None = None,
        used: int | None = None,
        given: Given | None = None,
        summarise: Summarise | None = None,
    ) -> Step:
        """What to send next, and why.

        `limit` is the model's window in tokens, `used` what the provider counted for the last request. An empty list
        goes on where the session stopped. `summarise` may write the summaries; whatever it leaves out is added.
        """
        ctx = self._context()
        if used is not None:
            self._calibrate(used)
        prompt, talk = split(self._unmended(messages))
        self._book.take_up(ctx)
        self._book.follow(ctx, talk)
        if self._frozen is None:
            self._frozen = sections.freeze(ctx)
        caller = Caller(prompt, given or Given(), limit or ctx.bounds.window.limit, self._ratio, summarise)
        turn = Turn(ctx, self._book, self._frozen, caller)
        step = turn.step()
        self._frozen = turn.frozen
        common = shared(self._sent, step.messages)
        reused = sum(turn.sizes()[:common])
        self._given = _mended(step.messages, common if self._given is self._sent else 0)
        self._sent, self._sent_size = step.messages, turn.estimate()
        return step._replace(messages=self._given, gauge=step.gauge._replace(reused=reused))

    def sent(self, used: int | None = None) -> None:
        """Say that the last request was answered, and what the provider counted. The handoff in it is now used up."""
        if used is not None:
            self._calibrate(used)
        if self._frozen is not None and self._frozen.handoff is not None:
            handoff.use_handoff(self._context(), self._frozen.handoff)

    @property
    def shows_handoff(self) -> bool:
        """Whether the last request had a handoff in it, which `sent` then uses up."""
        return self._frozen is not None and self._frozen.handoff is not None

    def keep(self, messages: Sequence[Message]) -> None:
        """Keep the conversation as it is, where a loop ends or pauses: the last answer would else come with the next
        request only."""
        ctx = self._context()
        self._book.take_up(ctx)
        self._book.follow(ctx, split(self._unmended(messages))[1])

    def add(self, messages: Sequence[Message]) -> None:
        """Keep what was said after all that is there already."""
        ctx = self._context()
        self._book.take_up(ctx)
        self._book.follow(ctx, [*(item.message for item in self._book.items), *messages])

    def leave(self, count: int) -> None:
        """Leave the last messages behind, as a conversation that goes another way does. They stay in the transcript."""
        ctx = self._context()
        self._book.take_up(ctx)
        self._book.leave(ctx, count)

    def uncompact(self, first: int, last: int | None = None) -> folds.Restored:
        """Bring messages back into the window from the next request on. Positions count from 1."""
        return folds.uncompact(self._context(), first, last)

    def messages(self) -> list[Message]:
        """The conversation as the window has it now: what a process that takes the session up goes on with."""
        self._book.take_up(self._context())
        return [item.message for item in self._book.items]

    def gauge(self) -> Gauge:
        """What fills the window, by section."""
        return stored_gauge(self._context(), self._book)

    def _unmended(self, messages: Sequence[Message]) -> Sequence[Message]:
        """What we mended for the provider is not what was said: a caller that goes on with it means the original."""
        count = len(self._given)
        if self._given is self._sent or tuple(messages[:count]) != self._given:
            return messages
        return [*self._sent, *messages[count:]]

    def _calibrate(self, used: int) -> None:
        if self._sent_size:
            self._ratio = min(max(used / self._sent_size, RATIOS[0]), RATIOS[1])


def _mended(messages: tuple[Message, ...], sound: int) -> tuple[Message, ...]:
    """The messages as a provider takes them, the very same ones if nothing was wrong with them. Those at the beginning
    were sent before as they are.

    A caller's slip, or a process that died between a call and its result: no provider takes half a pair.
    """
    while sound and (sound == len(messages) or messages[sound].role == TOOL):
        sound -= 1  # a result is looked at with its call
    rest = messages[sound:]
    mended = repair(rest)[0]
    return messages if mended == rest else messages[:sound] + mended


def stored_gauge(ctx: Context, book: Book | None = None) -> Gauge:
    known = Book(Meter().message) if book is None else book
    known.take_up(ctx)
    return looked_at(ctx, known)
