"""The conversation of a session as one process knows it: messages, folds and their sizes, cached so that a step
processes the new ones.

It is reconciled with the messages of the caller, who may send the whole history or continue the last answer. Where the
caller's messages diverge, the abandoned ones are folded to nothing and stay in the transcript.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import NamedTuple

from limpet.catalogue.operation import Context
from limpet.model import FOLD, TASK, Draft, Entry
from limpet.redaction import Masking
from limpet.window import transcript
from limpet.window.messages import ASSISTANT, TOOL, Message, user
from limpet.window.plan import facts
from limpet.window.plan.context import FOLDS, HISTORY
from limpet.window.plan.facts import words
from limpet.window.plan.folding import CLEAR, COMPACT, REWIND, Fold, WindowItem, view
from limpet.window.plan.rules import groups
from limpet.window.plan.serialise import digest
from limpet.window.transcript import WARN, FoldRecord, StoredMessage

Count = Callable[[Message], int]
SIZE_CACHE = 2_000  # texts whose size is cached; more than a window has folds and cleared results
CANDIDATE = "candidate"  # the key of a fold that is not stored yet


class Candidate(NamedTuple):
    """The window as a fold would leave it."""

    fold: Fold
    items: list[WindowItem]
    sizes: list[int]  # tokens of each item

    @property
    def messages(self) -> list[Message]:
        return [item.message for item in self.items]


class Divergence(NamedTuple):
    """Where the caller's messages leave the known ones."""

    common: int  # how many of the caller's messages are known
    keep: int  # the position from which the known messages are abandoned


class Conversation:
    def __init__(self, count: Count) -> None:
        self.count = count
        self.items: list[WindowItem] = []
        self.sizes: list[int] = []  # tokens of each item
        self.by_role: dict[str, int] = {}  # the sum of these by section
        self._messages: list[Message] = []  # the message of each item
        self._stale = False  # the history has messages that the items do not show yet
        self._history: list[StoredMessage] = []
        self._entries: list[Entry] = []
        self._size_cache: dict[str, int] = {}  # by text
        self._facts: dict[tuple[int, int], facts.Facts] = {}  # by first and last position of a group

    # --- reading and reconciling --------------------------------------------------------------------------------------

    def refresh(self, ctx: Context) -> None:
        """Read what the store has and this process has not: at first everything, later the writes of others."""
        total, entries = transcript.count(ctx), transcript.entries(ctx)
        more = total > len(self._history)
        if more:
            self._history += transcript.messages(ctx, len(self._history), total)
        if more or entries != self._entries:
            self._entries = entries
            self._rebuild()

    def reconcile(self, ctx: Context, messages: Sequence[Message]) -> None:
        """Store the caller's new messages. An empty list means: continue where the session stopped."""
        if not messages:
            return
        length = len(self._history)
        divergence = self._divergence(messages)
        if self._stale:
            self._rebuild()
        if divergence.keep < length:
            self._rewind(ctx, divergence.keep)
        fresh = [StoredMessage.of(message, self.count(message)) for message in messages[divergence.common :]]
        if not fresh:
            return
        transcript.append(ctx, length, fresh)
        self._history += fresh
        if any(entry.kind == TASK and entry.done for entry in self._entries):
            self._rebuild()  # the call that ended a task may be among the new messages
        else:
            self._extend(
                [WindowItem(stored.message, position, position) for position, stored in enumerate(fresh, length)]
            )
        self.facts_of(self.items[-len(fresh) :])

    def drop(self, ctx: Context, count: int) -> None:
        """Drop the last items from the window."""
        if count and self.items:
            self._rewind(ctx, min(item.first for item in self.items[-count:]))

    def _rewind(self, ctx: Context, keep: int) -> None:
        for fold in transcript.folds(self._entries, self._all_messages()):
            if fold.how != CLEAR and fold.first < keep <= fold.last:
                self.remove(ctx, fold.key, "rewind")  # it summarises messages that are about to be dropped
        record = FoldRecord(REWIND, keep, self.length - 1)
        self.add_fold(ctx, transcript.fold_draft(ctx, record), "rewind")

    def _divergence(self, messages: Sequence[Message]) -> Divergence:
        length = len(self._history)
        if len(messages) >= len(self.items) and all(map(is_, messages, self._messages)):
            return Divergence(len(self.items), length)  # the usual case, without comparing any text
        visible = [(item.message, None if item.fold else item.first) for item in self.items]
        common = self._common_prefix(messages, visible)
        if common == len(self.items):
            return Divergence(common, length)
        stored = [(stored.message, position) for position, stored in enumerate(self._history)]
        common_stored = self._common_prefix(messages, stored)
        if common_stored == length:
            return Divergence(length, length)
        if common_stored > common:
            keep = _before_results(messages, common_stored)
            return Divergence(keep, keep)
        common = _before_results(messages, common)
        keep = min(item.first for item in self.items[common:])
        overlaps = any(item.last >= keep for item in self.items[:common])
        return Divergence(0, 0) if overlaps else Divergence(common, keep)

    def _common_prefix(self, messages: Sequence[Message], own: Sequence[tuple[Message, int | None]]) -> int:
        """How many messages at the start are equal to our own, each of which has its position unless it is a fold's.

        The caller's versions replace ours: those read from the store have their secrets masked.
        """
        common = 0
        for message, (mine, position) in zip(messages, own, strict=False):
            if message is not mine and message != mine:
                if position is None or digest(message) != self._history[position].digest:
                    break
                self._history[position] = self._history[position]._replace(message=message)
                self._stale = True
            common += 1
        return common

    # --- folds --------------------------------------------------------------------------------------------------------

    def add_fold(self, ctx: Context, draft: Draft, operation: str) -> Entry:
        """Store a fold or warning; the window follows it from now on."""
        record = FoldRecord.from_json(draft.extra)
        sources = self._all_messages()[record.first : record.last + 1] if draft.content else []
        draft = draft._replace(origin=transcript.origin_of(ctx, sources))
        change = ctx.store.entries.edit(ctx.scope, FOLD, None, lambda before: draft, ctx.stamp(operation))
        self._entries.append(change.entry)
        self._rebuild()
        return change.entry

    def remove(self, ctx: Context, key: str, operation: str) -> None:
        """Remove a fold or warning."""
        (entry,) = [entry for entry in self._entries if entry.key == key]
        ctx.store.entries.edit(ctx.scope, entry.kind, key, transcript.unfolded, ctx.stamp(operation))
        self._entries = [entry for entry in self._entries if entry.key != key]
        self._rebuild()

    def with_fold(self, fold: Fold) -> Candidate:
        """The window with one more fold."""
        history = self._all_messages()
        fold = fold._replace(key=CANDIDATE)
        items = view(history, [*transcript.folds(self._entries, history), fold])
        return Candidate(fold, items, [self.size(item) for item in items])

    def with_text(self, candidate: Candidate, text: str) -> Candidate:
        """The same window with another text in the fold."""
        message = user(text)
        size = self.measure(message)
        pairs = [
            (item._replace(message=message), size) if item.fold == CANDIDATE else (item, tokens)
            for item, tokens in zip(candidate.items, candidate.sizes, strict=True)
        ]
        items, sizes = [item for item, _ in pairs], [tokens for _, tokens in pairs]
        return Candidate(candidate.fold._replace(text=text), items, sizes)

    def _rebuild(self) -> None:
        history = self._all_messages()
        self._stale = False
        self.items, self.sizes, self.by_role, self._messages = [], [], {}, []
        self._extend(view(history, transcript.folds(self._entries, history)))

    def _extend(self, items: Sequence[WindowItem]) -> None:
        """Append items, with the size of each."""
        for item in items:
            size = self.size(item)
            name = FOLDS if item.fold else HISTORY[item.message.role]
            self.sizes.append(size)
            self._messages.append(item.message)
            self.by_role[name] = self.by_role.get(name, 0) + size
        self.items += items

    def _all_messages(self) -> list[Message]:
        return [stored.message for stored in self._history]

    # --- what is known ------------------------------------------------------------------------------------------------

    @property
    def length(self) -> int:
        return len(self._history)

    def warning(self) -> Entry | None:
        """The warning since the last compaction."""
        for entry in reversed(self._entries):
            if entry.kind == FOLD and entry.extra["how"] in (WARN, COMPACT):
                return entry if entry.extra["how"] == WARN else None
        return None

    def answered(self, warning: Entry) -> bool:
        """Whether the agent has had a turn since the warning."""
        first = FoldRecord.from_json(warning.extra).first
        return any(stored.message.role == ASSISTANT for stored in self._history[first:])

    def last_limit(self) -> int | None:
        """The limit of the last warning or compaction, for showing the window outside of a step."""
        return next((entry.extra["limit"] for entry in reversed(self._entries) if "limit" in entry.extra), None)

    def size(self, item: WindowItem) -> int:
        if not item.fold and item.message is self._history[item.first].message:
            return self._history[item.first].tokens
        return self.measure(item.message)

    def measure(self, message: Message) -> int:
        """The tokens of a message that is not in the transcript."""
        key = words([message])
        if key not in self._size_cache:
            if len(self._size_cache) >= SIZE_CACHE:
                self._size_cache.clear()
            self._size_cache[key] = self.count(message)
        return self._size_cache[key]

    def facts_of(self, items: Sequence[WindowItem]) -> facts.Facts:
        """The facts of these items. Those of an earlier compaction were stored with it."""
        stored = {entry.key: entry.extra.get("facts") for entry in self._entries if entry.kind == FOLD}
        parts: list[Mapping[str, Sequence[str]]] = []
        for group in groups([item.message for item in items]):
            first = items[group.start]
            if first.fold in stored:
                parts.append(facts.from_json(stored[first.fold]))
            elif first.fold:
                parts.append(facts.gather([_clean(first.message)]))
            else:
                key = (first.first, items[group.stop - 1].last)
                if key not in self._facts:
                    self._facts[key] = facts.gather([_clean(items[index].message) for index in group])
                parts.append(self._facts[key])
        return facts.merge(parts)


def _before_results(messages: Sequence[Message], index: int) -> int:
    """The index moved back to the call, if it points at a result: a changed result invalidates its call."""
    while index and index < len(messages) and messages[index].role == TOOL:
        index -= 1
    return index


def _clean(message: Message) -> Message:
    """Without secrets. A summary shortens what it quotes, and half a secret would not be recognised."""
    return transcript.masked(Masking(), message)
