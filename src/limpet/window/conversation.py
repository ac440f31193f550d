"""The book of a session: its messages and folds as one process knows them, so that a step costs what is new.

It follows the caller's conversation. The caller may bring that as it all happened or as the last answer gave it back;
where it goes another way than before, what it left behind is folded to nothing and stays in the transcript.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_

from limpet.catalogue.operation import Context
from limpet.model import FOLD, TASK, Draft, Entry
from limpet.window import transcript
from limpet.window.messages import ASSISTANT, TOOL, Message
from limpet.window.plan import facts
from limpet.window.plan.checks import words
from limpet.window.plan.context import FOLDS, HISTORY
from limpet.window.plan.folding import CLEAR, COMPACT, REWIND, Fold, Item, view
from limpet.window.plan.groups import units
from limpet.window.plan.serialise import digest
from limpet.window.transcript import WARN, Stored

Count = Callable[[Message], int]
SIZES_KEPT = 2_000  # of texts that were counted; more than a window has folds and cleared results


class Book:
    def __init__(self, count: Count) -> None:
        self.count = count
        self.items: list[Item] = []
        self.sizes: list[int] = []  # tokens of each item
        self.by_role: dict[str, int] = {}  # the same added up
        self._shown: list[Message] = []  # the message of each item
        self._stale = False  # messages were taken over that the items do not show yet
        self._history: list[Stored] = []
        self._entries: list[Entry] = []
        self._sizes: dict[str, int] = {}  # by what is said
        self._facts: dict[tuple[int, int], facts.Facts] = {}  # by first and last position of a unit

    # --- following ----------------------------------------------------------------------------------------------------

    def take_up(self, ctx: Context) -> None:
        """See what the store has that this process has not: at first everything, later what others did."""
        total, found = transcript.count(ctx), transcript.entries(ctx)
        more = total > len(self._history)
        if more:
            self._history += transcript.messages(ctx, len(self._history), total)
        if more or found != self._entries:
            self._entries = found
            self._refold()

    def follow(self, ctx: Context, talk: Sequence[Message]) -> None:
        """Keep what is new in the caller's conversation. An empty one means: go on where the session stopped."""
        if not talk:
            return
        known = len(self._history)
        at, gone = self._parting(talk)
        if self._stale:
            self._refold()
        if gone < known:
            self._rewind(ctx, gone)
        fresh = [transcript.made(self.count(message), message) for message in talk[at:]]
        if not fresh:
            return
        transcript.append(ctx, known, fresh)
        self._history += fresh
        if any(entry.kind == TASK and entry.done for entry in self._entries):
            self._refold()  # the call that ended a task may be among them
        else:
            self._show([Item(one.message, place, place) for place, one in enumerate(fresh, known)])
        self.facts_of(self.items[-len(fresh) :])

    def leave(self, ctx: Context, count: int) -> None:
        """Leave the last items of the window behind."""
        if count and self.items:
            self._rewind(ctx, min(item.first for item in self.items[-count:]))

    def _rewind(self, ctx: Context, gone: int) -> None:
        for fold in transcript.folds(self._entries, self._messages()):
            if fold.how != CLEAR and fold.first < gone <= fold.last:
                self.take_back(ctx, fold.key, "rewind")  # it speaks of what is about to go
        self.record(ctx, transcript.fold_draft(ctx, Fold("", REWIND, gone, self.length - 1)), "rewind")

    def _parting(self, talk: Sequence[Message]) -> tuple[int, int]:
        """How many of the caller's messages are known, and from which position on the known ones are left behind."""
        known = len(self._history)
        if len(talk) >= len(self.items) and all(map(is_, talk, self._shown)):
            return len(self.items), known  # as it nearly always is, without a look at any text
        at = self._agree(talk, [(item.message, None if item.fold else item.first) for item in self.items])
        if at == len(self.items):
            return at, known
        as_kept = self._agree(talk, [(one.message, place) for place, one in enumerate(self._history)])
        if as_kept == known:
            return as_kept, known
        if as_kept > at:
            while as_kept and as_kept < len(talk) and talk[as_kept].role == TOOL:
                as_kept -= 1  # a result that changed takes its call along
            return as_kept, as_kept
        while at and at < len(talk) and talk[at].role == TOOL:
            at -= 1
        gone = min(item.first for item in self.items[at:])
        return (0, 0) if any(item.last >= gone for item in self.items[:at]) else (at, gone)

    def _agree(self, talk: Sequence[Message], known: Sequence[tuple[Message, int | None]]) -> int:
        """How many messages at the beginning are the known ones, each with its position unless it is a fold's.

        Those of the caller are taken over: in what comes from the store, secrets are masked.
        """
        agreed = 0
        for message, (mine, position) in zip(talk, known, strict=False):
            if message is not mine and message != mine:
                if position is None or digest(message) != self._history[position].digest:
                    break
                self._history[position] = self._history[position]._replace(message=message)
                self._stale = True
            agreed += 1
        return agreed

    def record(self, ctx: Context, draft: Draft, operation: str) -> Entry:
        """One fold or warning, kept; the window is as it says from now on."""
        said = self._messages()[draft.extra["first"] : draft.extra["last"] + 1] if draft.content else []
        made = draft._replace(origin=transcript.origin_of(ctx, said))
        change = ctx.store.edit(ctx.scope, FOLD, None, lambda before: made, ctx.stamp(operation))
        self._entries.append(change.entry)
        self._refold()
        return change.entry

    def take_back(self, ctx: Context, key: str, operation: str) -> None:
        """One fold or warning less."""
        (entry,) = [one for one in self._entries if one.key == key]
        ctx.store.edit(ctx.scope, entry.kind, key, transcript.opened, ctx.stamp(operation))
        self._entries = [one for one in self._entries if one.key != key]
        self._refold()

    def would_be(self, fold: Fold) -> list[Item]:
        """The window with one fold more."""
        history = self._messages()
        return view(history, [*transcript.folds(self._entries, history), fold])

    def _refold(self) -> None:
        history = self._messages()
        self._stale = False
        self.items, self.sizes, self.by_role, self._shown = [], [], {}, []
        self._show(view(history, transcript.folds(self._entries, history)))

    def _show(self, items: Sequence[Item]) -> None:
        """Add items at the end, with all that is known of each."""
        for item in items:
            size = self.size(item)
            name = FOLDS if item.fold else HISTORY[item.message.role]
            self.sizes.append(size)
            self._shown.append(item.message)
            self.by_role[name] = self.by_role.get(name, 0) + size
        self.items += items

    def _messages(self) -> list[Message]:
        return [one.message for one in self._history]

    # --- what it knows ------------------------------------------------------------------------------------------------

    @property
    def length(self) -> int:
        return len(self._history)

    def warning(self) -> Entry | None:
        """The warning that was given since the last compaction."""
        for entry in reversed(self._entries):
            if entry.kind == FOLD and entry.extra["how"] in (WARN, COMPACT):
                return entry if entry.extra["how"] == WARN else None
        return None

    def answered(self, warning: Entry) -> bool:
        """Whether the agent has had its turn since."""
        return any(one.message.role == ASSISTANT for one in self._history[warning.extra["first"] :])

    def last_limit(self) -> int | None:
        """The limit of the last warning or compaction, for those who only look."""
        return next((entry.extra["limit"] for entry in reversed(self._entries) if "limit" in entry.extra), None)

    def size(self, item: Item) -> int:
        if not item.fold and item.message is self._history[item.first].message:
            return self._history[item.first].tokens
        return self.measure(item.message)

    def measure(self, message: Message) -> int:
        """The tokens of a message that is not of the transcript."""
        key = words([message])
        if key not in self._sizes:
            if len(self._sizes) >= SIZES_KEPT:
                self._sizes.clear()
            self._sizes[key] = self.count(message)
        return self._sizes[key]

    def facts_of(self, items: Sequence[Item]) -> facts.Facts:
        """What these items say. Of an earlier compaction it is what was gathered then."""
        compacted = {entry.key: entry.extra.get("facts") for entry in self._entries if entry.kind == FOLD}
        found: list[Mapping[str, Sequence[str]]] = []
        for unit in units([item.message for item in items]):
            first = items[unit.start]
            if first.fold in compacted:
                found.append(facts.from_json(compacted[first.fold]))
            elif first.fold:
                found.append(facts.gather([first.message]))
            else:
                key = (first.first, items[unit.stop - 1].last)
                if key not in self._facts:
                    self._facts[key] = facts.gather([items[at].message for at in unit])
                found.append(self._facts[key])
        return facts.merge(found)
