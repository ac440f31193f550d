"""The conversation of a session as one process knows it: messages, folds and their sizes, cached so that a step
processes the new ones.

It is reconciled with the messages of the caller, who may hold all of them, the last ones, or what an earlier answer
showed: `plan/alignment.py` finds which of them are stored. What comes after the last of these is new and is appended.
What a caller changed or added before it is an edit: the window shows it, and the transcript keeps the original. A
caller that goes back takes another line (`plan/line.py`); what it leaves stays in the transcript.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from operator import is_

from limpet.catalogue.operation import Context
from limpet.model import FOLD, TASK, Draft, Entry
from limpet.record import NamedTuple
from limpet.redaction import Masking
from limpet.session.records import TaskRecord
from limpet.window import transcript
from limpet.window.messages import ASSISTANT, TOOL, USER, Message, Text, user
from limpet.window.plan import facts
from limpet.window.plan.actions import USER_SAID
from limpet.window.plan.alignment import WEAK_CHARS, Aligner, CallerMessage, PositionIndex, StoredPlace, are_alike
from limpet.window.plan.context import FOLDS, HISTORY
from limpet.window.plan.facts import words
from limpet.window.plan.folding import CLEAR, COMPACT, EDIT, REWIND, Fold, WindowItem, cleared, view
from limpet.window.plan.line import BEGINNING, Line, before, contains, line_to, parent, within
from limpet.window.plan.rules import groups, is_stub
from limpet.window.plan.serialise import digest
from limpet.window.transcript import WARN, ConversationLine, FoldRecord, StoredMessage

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


class Edit(NamedTuple):
    """Messages of the caller in place of those from `first` to `last`; added after `last` if that is before `first`."""

    first: int
    last: int
    messages: tuple[Message, ...]
    is_front: bool = False  # it was in front of a list whose beginning the caller left out


class LeftOut(NamedTuple):
    """What a caller does not hold any more, at the beginning of its list or in between."""

    positions: frozenset[int]
    added: Mapping[int, tuple[Message, ...]]  # its own messages, by the position after which they are shown


NOTHING = LeftOut(frozenset(), {})


class Conversation:
    def __init__(self, count: Count) -> None:
        self.count = count
        self.items: list[WindowItem] = []
        self.sizes: list[int] = []  # tokens of each item
        self.by_role: dict[str, int] = {}  # the sum of these by section
        self._messages: list[Message] = []  # the message of each item
        self._history: list[StoredMessage] = []
        self._all_entries: list[Entry] = []  # also folds that were removed: a caller may still hold their texts
        self._entries: list[Entry] = []  # those that shape the window
        self._line = ConversationLine({}, BEGINNING, frozenset())
        self._positions: Line = range(0)  # of the messages on this line
        self._own_edits: dict[str, tuple[Message, ...]] = {}  # by the key of the fold, as the caller has them
        self._caller: list[Message] = []  # the caller's last list, all of which is stored
        self._left_out = NOTHING
        self._index: PositionIndex | None = None  # built when a caller's list has to be aligned
        self._index_lines: dict[str, str] = {}  # those of cleared results that the index knows
        self._fold_reader = transcript.FoldReader()
        self._fold_digests: dict[str, str] = {}  # of the texts of folds
        self._size_cache: dict[str, int] = {}  # by text
        self._facts: dict[tuple[int, int], facts.Facts] = {}  # by first and last position of a group
        # Whether a list of new messages goes on from here: the first one of a process, and those after such a list.
        self._takes_new = True
        self._last_stored = BEGINNING  # the last position that was stored here; a call there may still be running
        self.tasks_tried = 0  # ended tasks when a compaction because of them could not be made

    # --- reading and reconciling --------------------------------------------------------------------------------------

    def refresh(self, ctx: Context) -> None:
        """Read what the store has and this process has not: at first everything, later the writes of others."""
        total, entries = transcript.count(ctx), transcript.all_entries(ctx, self._all_entries)
        more = total > len(self._history)
        if more:
            self._history += transcript.messages(ctx, len(self._history), total)
        if more or entries != self._all_entries:
            self._all_entries, self._index, self._caller = entries, None, []
            self._follow_entries()

    def reconcile(self, ctx: Context, messages: Sequence[Message], *, exact: bool = False) -> None:
        """Store what is new among the caller's messages. An empty list means: continue where the session stopped.

        A list of new messages without a reply does the same if it is the first one here. `exact`: the window does not
        show what the caller left out of its list.
        """
        if not messages:
            return
        if not exact:
            self._leave_out(NOTHING)
        is_newest = self._line.head == len(self._history) - 1  # otherwise what follows may be stored on another line
        # A list with a reply that is not known here is that of another agent, which has a line of its own.
        is_reply = any(message.role == ASSISTANT for message in messages)
        takes_new, self._takes_new = self._takes_new and not exact and not is_reply, False
        if is_newest and _continues(messages, self._messages):
            self.append(ctx, messages[len(self._messages) :])
        elif is_newest and _continues(messages, self._caller):
            self.append(ctx, messages[len(self._caller) :])
        else:
            left_out = self._align(ctx, messages, self._line.head if takes_new else BEGINNING, exact=exact)
            self._leave_out(left_out if exact else NOTHING)
        self._caller = list(messages)

    def append(self, ctx: Context, messages: Sequence[Message], after: int | None = None) -> None:
        """Store messages that follow the position `after`, by default the head of the line."""
        if not messages:
            return
        length, head = len(self._history), self._line.head
        after = head if after is None else after
        fresh = [StoredMessage.of(message, self.count(message)) for message in messages]
        if after != length - 1 or head != length - 1:
            fresh[0] = fresh[0]._replace(after=after)
        transcript.append(ctx, length, fresh)
        self._history += fresh
        self._last_stored = len(self._history) - 1
        if self._index is not None:
            for position in range(length, len(self._history)):
                self._add_to_index(self._index, position, after if position == length else position - 1)
        if after != head or _ends_task(self._entries, length):
            self._follow_entries()
        else:
            self._lengthen(length, after)
            self._extend(
                [WindowItem(stored.message, position, position) for position, stored in enumerate(fresh, length)]
            )
        self.facts_of(self.items[-len(fresh) :])

    def drop(self, ctx: Context, count: int) -> None:
        """Drop the last items from the window."""
        if count and self.items:
            self._caller = []
            self._go_to(ctx, before(self._positions, min(item.first for item in self.items[-count:])))

    def _lengthen(self, length: int, after: int) -> None:
        """The line goes on with the messages from position `length` on."""
        parents = {**self._line.parents, length: after} if after != length - 1 else self._line.parents
        self._line = self._line._replace(parents=parents, head=len(self._history) - 1)
        more = range(length, len(self._history))
        if isinstance(self._positions, range) and after == length - 1:
            self._positions = range(len(self._history))
        else:
            self._positions = [*self._positions, *more]

    def _follow_entries(self) -> None:
        """Recompute the line and the window."""
        self._entries = transcript.current(self._all_entries)
        self._line = transcript.line(self._history, self._entries)
        self._positions = self._line.positions()
        self._rebuild()

    def _go_to(self, ctx: Context, head: int) -> None:
        """Make this position the head of the line, so that the next message follows it."""
        last = len(self._history) - 1
        for entry in self._folds_of(REWIND):
            if FoldRecord.from_json(entry.extra).last == last:
                self.remove(ctx, entry.key, "rewind")
        if head != last:
            record = FoldRecord(REWIND, head + 1, last, head=head)
            self.add_fold(ctx, transcript.fold_draft(ctx, record), "rewind")
        self._follow_entries()

    # --- aligning -----------------------------------------------------------------------------------------------------

    def _leave_out(self, left_out: LeftOut) -> None:
        if left_out != self._left_out:
            self._left_out = left_out
            self._rebuild()

    def _align(self, ctx: Context, messages: Sequence[Message], otherwise: int, *, exact: bool) -> LeftOut:
        """Find which of the caller's messages are stored, and store the others: as edits, or at the end.

        If none of them is stored, they follow the position `otherwise`.
        """
        index = self._position_index()
        pairs = [(message, index.name_of(message)) for message in messages]
        pairs = [pair for pair in pairs if pair[1] in index.positions or not is_stub(pair[0])]
        caller = [CallerMessage(name, _is_weak(message)) for message, name in pairs]
        folds = self._fold_places()
        places = Aligner(index, folds, self._line.parents, self._positions).align(caller)
        talk = [message for message, _ in pairs]
        self._unmask(pairs, places)
        reached = max((place.last for place in places if place is not None), default=otherwise)
        self._takes_new = otherwise != BEGINNING and not any(places)
        end = max((at for at, place in enumerate(places) if place is not None), default=-1) + 1
        line = self._positions if reached == self._line.head else line_to(reached, self._line.parents)
        edits = _edits(talk[:end], places, line)
        self._store_edits(ctx, edits, pairs, places)
        died = self._died_after(reached)
        if end < len(talk):
            self.append(ctx, talk[end:], self._line.head if died and talk[end].role == USER else reached)
        elif reached != self._line.head and not (died and self._line.head != self._last_stored):
            self._go_to(ctx, reached)
        left_out = _left_out(line, places, edits)
        forgotten = self._forgotten(line, places, left_out.positions) if exact else frozenset()
        return left_out._replace(positions=left_out.positions - forgotten)

    def _died_after(self, position: int) -> bool:
        """Whether nothing but a run that ended in a call follows this position. A caller may know its request at most:
        its process died, or its framework drops a call that has no result."""
        rest = within(self._positions, position + 1, self._line.head)
        if position == BEGINNING or not contains(self._positions, position):
            return False
        return not rest or (self._calls(rest[-1]) and not any(map(self._answers, rest)))

    def _forgotten(self, line: Line, places: Sequence[StoredPlace | None], left_out: Set[int]) -> frozenset[int]:
        """What a caller left out of runs that ended in a call, from where its list begins."""
        start = min((place.first for place in places if place is not None), default=len(self._history))
        forgotten: set[int] = set()
        following = BEGINNING
        for position in reversed(within(line, start, len(self._history))):
            is_last = self._calls(position) and following > BEGINNING and self._history[following].message.role != TOOL
            if is_last or (following in forgotten and position in left_out and not self._answers(position)):
                forgotten.add(position)
            following = position
        return frozenset(forgotten)

    def _answers(self, position: int) -> bool:
        message = self._history[position].message
        return message.role == ASSISTANT and not message.calls()

    def _calls(self, position: int) -> bool:
        message = self._history[position].message
        return message.role == ASSISTANT and bool(message.calls())

    def _position_index(self) -> PositionIndex:
        if self._index is None:
            self._index, self._index_lines = PositionIndex(), {}
            for position in range(len(self._history)):
                self._add_to_index(self._index, position, parent(position, self._line.parents))
            self._add_cleared(self._index, self._all_entries)
            for entry in self._folds_of(EDIT):
                self._add_edit(self._index, FoldRecord.from_json(entry.extra))
        return self._index

    def _add_to_index(self, index: PositionIndex, position: int, after: int) -> None:
        stored = self._history[position]
        if stored.is_masked:  # a caller may hold the message as the store has it
            index.add(position, after, stored.digest)
            index.know(stored.message, position, after, digest(stored.message))
        else:
            index.know(stored.message, position, after, stored.digest)

    def _add_cleared(self, index: PositionIndex, entries: Iterable[Entry]) -> None:
        """The messages as they were shown since these folds cleared results in them."""
        for entry in entries:
            if entry.kind == FOLD and entry.extra.get("how") == CLEAR:
                fresh = FoldRecord.from_json(entry.extra).lines or {}
                self._index_lines |= fresh
                for position in sorted({int(key.partition(" ")[0]) for key in fresh}):
                    shorter = cleared(self._history[position].message, position, self._index_lines)
                    index.know(shorter, position, parent(position, self._line.parents), digest(shorter))

    def _add_edit(self, index: PositionIndex, record: FoldRecord) -> None:
        """The message that stands in place of another one is known by its position."""
        names, before = _edit_names(record), parent(record.first, self._line.parents)
        for name in names:
            index.add(record.first, before, name)
        if names:
            (stored,) = transcript.edited(record)
            index.know(stored.message, record.first, before, names[-1])

    def _fold_places(self) -> dict[str, StoredPlace]:
        """The places of all texts that ever stood for messages, by digest."""
        places: dict[str, StoredPlace] = {}
        for fold in transcript.shown_texts(self._all_entries, self._all_messages()):
            if fold.text not in self._fold_digests:
                self._fold_digests[fold.text] = digest(user(fold.text))
            places[self._fold_digests[fold.text]] = StoredPlace(fold.first, fold.last, is_fold=True)
        return places

    def _unmask(self, pairs: Sequence[tuple[Message, str]], places: Sequence[StoredPlace | None]) -> None:
        """Use the caller's versions of messages that were read from the store, where secrets are masked."""
        is_stale = False
        for (message, name), place in zip(pairs, places, strict=True):
            if place is not None and not place.is_fold:
                stored = self._history[place.first]
                if stored.is_masked and stored.digest == name:
                    self._history[place.first] = stored._replace(message=message, is_masked=False)
                    is_stale = True
        if is_stale:
            self._add_cleared(self._position_index(), self._all_entries)
            self._rebuild()

    def _store_edits(
        self,
        ctx: Context,
        edits: Sequence[Edit],
        pairs: Sequence[tuple[Message, str]],
        places: Sequence[StoredPlace | None],
    ) -> None:
        """Store what the caller changed, and drop the edits of messages that it has as they were."""
        own = {
            place.first: pair
            for pair, place in zip(pairs, places, strict=True)
            if place is not None and not place.is_fold
        }
        fresh = {edit[:2]: edit for edit in edits}
        for entry in self._folds_of(EDIT):
            record = FoldRecord.from_json(entry.extra)
            positions, same = range(record.first, record.last + 1), fresh.get((record.first, record.last))
            if len(positions) == 1 and record.first in own and own[record.first][1] in _edit_names(record):
                if own[record.first][1] == _digests(record)[0]:
                    self._own_edits[entry.key] = (own[record.first][0],)
            elif same and _is_of(record, same.messages):
                del fresh[same[:2]]
                self._own_edits.setdefault(entry.key, same.messages)
            elif same or not own.keys().isdisjoint(positions) or _replaces(edits, record):
                self.remove(ctx, entry.key, "edit")
                self._index = None  # the changed message is not known by this position any more
        for edit in fresh.values():
            stored = [StoredMessage.of(message, self.count(message)) for message in edit.messages]
            record = transcript.edit_record(ctx, edit.first, edit.last, stored)
            self._facts.clear()
            entry = self.add_fold(ctx, transcript.fold_draft(ctx, record), "edit")
            self._own_edits[entry.key] = edit.messages
            if self._index is not None:
                self._add_edit(self._index, record)
        if edits:
            self._rebuild()

    # --- folds --------------------------------------------------------------------------------------------------------

    def add_fold(self, ctx: Context, draft: Draft, operation: str) -> Entry:
        """Store a fold or warning; the window follows it from now on."""
        record = FoldRecord.from_json(draft.extra)
        sources = self._all_messages()[record.first : record.last + 1] if draft.content else []
        draft = draft._replace(origin=transcript.origin_of(ctx, sources))
        change = ctx.store.entries.edit(ctx.scope, FOLD, None, lambda before: draft, ctx.stamp(operation))
        self._all_entries.append(change.entry)
        self._entries.append(change.entry)
        if record.how == CLEAR:
            self._facts.clear()  # a long message is read with its reference from now on
        if self._index is not None and record.how == CLEAR:
            self._add_cleared(self._index, [change.entry])
        self._rebuild()
        return change.entry

    def remove(self, ctx: Context, key: str, operation: str) -> None:
        """Remove a fold or warning."""
        (entry,) = [entry for entry in self._entries if entry.key == key]
        change = ctx.store.entries.edit(ctx.scope, entry.kind, key, transcript.unfolded, ctx.stamp(operation))
        self._all_entries = [change.entry if entry.key == key else entry for entry in self._all_entries]
        self._entries = [entry for entry in self._entries if entry.key != key]
        self._facts.clear()
        self._rebuild()

    def _folds_of(self, how: str) -> list[Entry]:
        return [entry for entry in self._entries if entry.kind == FOLD and entry.extra.get("how") == how]

    def _current_folds(self) -> list[Fold]:
        """The folds of the window, edits with the messages as the caller has them."""
        folds = transcript.folds(self._entries, self._all_messages(), self._fold_reader)
        own = self._own_edits
        return [fold._replace(messages=own[fold.key]) if fold.key in own else fold for fold in folds] if own else folds

    def with_fold(self, fold: Fold) -> Candidate:
        """The window with one more fold."""
        fold = fold._replace(key=CANDIDATE)
        items = self._without_left_out(view(self._all_messages(), [*self._current_folds(), fold], self._positions))
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
        self.items, self.sizes, self.by_role, self._messages = [], [], {}, []
        self._extend(self._without_left_out(view(self._all_messages(), self._current_folds(), self._positions)))

    def _without_left_out(self, items: list[WindowItem]) -> list[WindowItem]:
        """Without the messages that the caller has left out. Texts of folds stay."""
        positions, added = self._left_out
        if not positions:
            return items
        return [
            item
            for item in items
            if item.fold or item.first not in positions or item.message in added.get(item.first, ())
        ]

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
            if entry.kind == FOLD and entry.extra.get("how") in (WARN, COMPACT):
                return entry if entry.extra.get("how") == WARN else None
        return None

    def answered(self, warning: Entry) -> bool:
        """Whether the agent has had a turn since the warning."""
        first = FoldRecord.from_json(warning.extra).first
        return any(stored.message.role == ASSISTANT for stored in self._history[first:])

    def tasks_ended(self) -> int:
        """How many tasks of the session have ended that were not part of another one."""
        tasks = [TaskRecord.from_json(entry.extra) for entry in self._entries if entry.kind == TASK and entry.done]
        return sum(task.depth == 1 for task in tasks)

    def tasks_since_compaction(self) -> int:
        """How many of these have ended since the last compaction, or since one was tried in vain."""
        compactions = [entry for entry in self._entries if entry.kind == FOLD and entry.extra.get("how") == COMPACT]
        before = FoldRecord.from_json(compactions[-1].extra).tasks if compactions else 0
        return self.tasks_ended() - max(before or 0, self.tasks_tried)

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
        keys = {item.fold for item in items if item.fold}
        folds = [entry for entry in self._entries if entry.kind == FOLD and entry.key in keys] if keys else []
        stored = {entry.key: entry.extra.get("facts") for entry in folds}
        parts: list[Mapping[str, Sequence[str]]] = []
        for group in groups([item.message for item in items]):
            first = items[group.start]
            if first.fold in stored:
                parts.append(facts.from_json(stored[first.fold]))
            elif first.fold:
                parts += self._facts_of_task(first)
            else:
                key = (first.first, items[group.stop - 1].last)
                if key not in self._facts:
                    self._facts[key] = facts.gather([_clean(items[index].message) for index in group])
                parts += [*self._facts_of_long(first), self._facts[key]]
        return facts.merge(parts)

    def _facts_of_long(self, item: WindowItem) -> list[facts.Facts]:
        """What the user said in a message that was replaced by a reference."""
        stored = self._history[item.first].message
        is_short = item.message.role == USER and facts.is_reference(item.message.text())
        return [facts.gather([_clean(stored)])] if is_short and stored.role == USER else []

    def _facts_of_task(self, item: WindowItem) -> list[facts.Facts]:
        """What the user said in a finished task outlives it in the user's words."""
        inside = [self._history[position].message for position in within(self._positions, item.first, item.last)]
        user_words = [facts.gather([_clean(message)]) for message in inside if message.role == USER]
        return [*user_words, facts.gather([_clean(_without_said(item.message))])]


def _without_said(message: Message) -> Message:
    """The text of a finished task without what the user said in it, which is gathered from the user's own messages."""
    lines = message.text().split("\n")
    return user("\n".join(line for line in lines if not line.startswith(f"- {USER_SAID}: ")))


def _continues(messages: Sequence[Message], earlier: Sequence[Message]) -> bool:
    """Whether the list begins with these very objects: the usual case, without comparing any text."""
    return bool(earlier) and len(messages) >= len(earlier) and all(map(is_, messages, earlier))


def _is_weak(message: Message) -> bool:
    """Whether the message is so short that it may well be said again."""
    return all(isinstance(part, Text) for part in message.parts) and len(message.text()) < WEAK_CHARS


def _ends_task(entries: Iterable[Entry], length: int) -> bool:
    """Whether the messages from position `length` on may belong to the call that ended a task."""
    ended = [TaskRecord.from_json(entry.extra).last for entry in entries if entry.kind == TASK and entry.done]
    return any(last is not None and last >= length - 3 for last in ended)


def _digests(record: FoldRecord) -> list[str]:
    """The digests of the messages of an edit, as the caller sent them."""
    return [message["digest"] for message in record.messages or ()]


def _is_of(record: FoldRecord, messages: Sequence[Message]) -> bool:
    """Whether these are the messages of an edit."""
    if [*map(digest, messages)] == _digests(record):
        return True
    stored = [stored.message for stored in transcript.edited(record)]
    return len(stored) == len(messages) and all(map(are_alike, stored, messages))


def _edit_names(record: FoldRecord) -> list[str]:
    """The digests by which a message is known that replaces exactly one: its own, and that of its masked form."""
    if record.first != record.last or len(record.messages or ()) != 1:
        return []
    masked = [digest(stored.message) for stored in transcript.edited(record) if stored.is_masked]
    return [*_digests(record), *masked]


def _replaces(edits: Iterable[Edit], record: FoldRecord) -> bool:
    """Whether one of the edits takes the place of this one, or is the caller's newer text in front of its list."""
    is_text = record.last < record.first and not any(message["role"] == TOOL for message in record.messages or ())
    return any(
        (edit.first <= record.last and record.first <= edit.last)
        or (is_text and edit.is_front and record.last <= edit.last)
        for edit in edits
    )


def _edits(messages: Sequence[Message], places: Sequence[StoredPlace | None], line: Line) -> list[Edit]:
    """What the caller has in place of stored messages, or between them."""
    edits: list[Edit] = []
    run: list[Message] = []
    bound: int | None = None  # the last position before the run
    for message, place in zip(messages, places, strict=False):
        if place is None:
            run.append(message)
            continue
        if run:
            gap = within(line, BEGINNING if bound is None else bound + 1, place.first - 1)
            edits += _edits_of(run, gap, before(line, place.first), is_front=bound is None)
            run = []
        bound = place.last
    return edits


def _left_out(line: Line, places: Sequence[StoredPlace | None], edits: Sequence[Edit]) -> LeftOut:
    """What of the line a caller with these places and edits does not hold. A new beginning leaves nothing out."""
    ranges = [(place.first, place.last) for place in places if place is not None]
    if not ranges:
        return NOTHING
    covered = {
        position for first, last in (*ranges, *(edit[:2] for edit in edits)) for position in range(first, last + 1)
    }
    reached = max(last for _, last in ranges)
    added = {max(edit.last, 0): edit.messages for edit in edits if edit.last < edit.first}
    return LeftOut(frozenset(within(line, 0, reached)) - covered, added)


def _edits_of(run: Sequence[Message], gap: Sequence[int], after: int, *, is_front: bool) -> list[Edit]:
    """The edits that put a run in place of the messages in a gap. What a caller left out in front is not replaced."""
    if len(gap) == len(run):
        return [Edit(position, position, (message,)) for position, message in zip(gap, run, strict=True)]
    if gap and not is_front:
        return [Edit(gap[0], gap[-1], tuple(run))]
    return [Edit(after + 1, after, tuple(run), is_front)]


def _clean(message: Message) -> Message:
    """Without secrets. A summary shortens what it quotes, and half a secret would not be recognised."""
    return transcript.masked(Masking(), message)
