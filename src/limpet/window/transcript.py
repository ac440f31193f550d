"""The transcript of a session: its messages, each stored once, and the folds that are shown in their place.

Messages are entries without events; folds and tasks are entries with events. So a fold can be undone, has a history and
is part of an export. This module reads and writes; `window/plan` decides.

The JSON keys of the records are part of the stored format. Keys that a record does not name, for example of an import,
are kept as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from limpet import limits
from limpet.catalogue.operation import Context
from limpet.light import Any, json
from limpet.model import (
    AGENT,
    EDIT_TAG,
    EMPTY,
    FOLD,
    MESSAGE,
    PERSON,
    TASK,
    TOOL,
    Draft,
    Entry,
    lowest,
    number_or,
    text_or,
)
from limpet.platform import sha256
from limpet.record import NamedTuple
from limpet.redaction import MASK, Masking, redact
from limpet.session.records import CANCELLED, TaskRecord, unknown_keys
from limpet.store import Decide, Listing, to_json
from limpet.text import safe
from limpet.window.messages import ASSISTANT, USER, Call, Message, Result, Text, Thinking
from limpet.window.messages import TOOL as TOOL_ROLE
from limpet.window.plan.folding import CLEAR, COMPACT, EDIT, RESTORE, REWIND, Fold, task_line
from limpet.window.plan.folding import TASK as TASK_FOLD
from limpet.window.plan.line import Line, line_to, parent
from limpet.window.plan.rules import groups
from limpet.window.plan.serialise import PackedMessage, digest, pack, unpack

WARN = "warn"  # not a fold: the record that the agent was warned
NEWEST_READ = 6  # entries that are compared in each step: more than one moment changes
PURGED = "[purged]"  # replaces the text of what was purged


class MessageRecord(NamedTuple):
    """The `extra` of a message; its content is the searchable text."""

    role: str
    digest: str  # of the message as the caller sent it, before secrets were masked
    tokens: int
    body: str  # see `plan/serialise.py`
    after: int | None = None  # the position it follows, if that is not the one before it
    unknown: Mapping[str, Any] = EMPTY

    @classmethod
    def from_json(cls, extra: Mapping[str, Any]) -> MessageRecord:
        unknown = EMPTY if len(extra) == 4 else unknown_keys(extra, cls._fields)
        return cls(extra["role"], extra["digest"], extra["tokens"], extra["body"], extra.get("after"), unknown)

    def to_json(self) -> dict[str, Any]:
        record = {
            **self.unknown,
            "role": self.role,
            "digest": self.digest,
            "tokens": self.tokens,
            "body": self.body,
        }
        return record if self.after is None else {**record, "after": self.after}


class FoldRecord(NamedTuple):
    """The `extra` of a fold or a warning; its content is the text that is shown."""

    how: str  # CLEAR, COMPACT, EDIT, REWIND, RESTORE of `plan/folding.py`, or WARN
    first: int  # positions, both included
    last: int
    lines: Mapping[str, str] | None = None  # of CLEAR: result key -> its line
    shown: tuple[tuple[int, int], ...] = ()  # ranges inside it that stay visible
    facts: Mapping[str, Any] | None = None  # of COMPACT, as are those below
    score: float | None = None
    missing: tuple[str, ...] | None = None
    before: int | None = None  # tokens of the request
    after: int | None = None
    limit: int | None = None  # of COMPACT and WARN: the model's window in tokens
    head: int | None = None  # of REWIND: the position that the next message follows
    messages: tuple[Mapping[str, Any], ...] | None = None  # of EDIT: MessageRecords, each with its `text`
    tasks: int | None = None  # of COMPACT: how many tasks of the session had ended by then
    unknown: Mapping[str, Any] = EMPTY

    @classmethod
    def from_json(cls, extra: Mapping[str, Any]) -> FoldRecord:
        missing = extra.get("missing")
        return cls(
            text_or(extra.get("how")),
            number_or(extra.get("first")),
            number_or(extra.get("last"), -1),
            extra.get("lines"),
            tuple((first, last) for first, last in extra.get("shown", ())),
            extra.get("facts"),
            extra.get("score"),
            None if missing is None else tuple(missing),
            extra.get("before"),
            extra.get("after"),
            extra.get("limit"),
            extra.get("head"),
            tuple(extra["messages"]) if "messages" in extra else None,
            extra.get("tasks"),
            unknown_keys(extra, cls._fields),
        )

    def to_json(self) -> dict[str, Any]:
        optional = {
            "facts": self.facts,
            "score": self.score,
            "missing": None if self.missing is None else list(self.missing),
            "before": self.before,
            "after": self.after,
            "limit": self.limit,
            "head": self.head,
            "messages": None if self.messages is None else list(self.messages),
            "tasks": self.tasks,
            "lines": None if self.lines is None else dict(self.lines),
            "shown": [list(span) for span in self.shown] or None,
        }
        return {
            **self.unknown,
            "how": self.how,
            "first": self.first,
            "last": self.last,
            **{name: value for name, value in optional.items() if value is not None},
        }

    def with_shown(self, first: int, last: int) -> FoldRecord:
        """The same fold with one more visible range; ranges that touch become one."""
        joined: list[tuple[int, int]] = []
        for start, end in sorted([*self.shown, (first, last)]):
            if joined and start <= joined[-1][1] + 1:
                joined[-1] = (joined[-1][0], max(joined[-1][1], end))
            else:
                joined.append((start, end))
        return self._replace(shown=tuple(joined))

    def lines_in(self, first: int, last: int) -> list[str]:
        """The keys of the results that were cleared in a range of positions."""
        return [key for key in self.lines or () if first <= int(key.partition(" ")[0]) <= last]


ENDS = ("end_task", "cancel_task")


class StoredMessage(NamedTuple):
    """A message of the transcript, with what was computed when it was stored."""

    message: Message
    digest: str  # of the message as the caller sent it, before secrets were masked
    tokens: int
    after: int | None = None  # the position it follows, if that is not the one before it
    is_masked: bool = False  # it was read from the store, where its secrets are masked, or was purged there
    at: int = 0  # when it was said, of what is imported

    @classmethod
    def of(cls, message: Message, tokens: int) -> StoredMessage:
        return cls(message, digest(message), tokens)


# --- messages ---------------------------------------------------------------------------------------------------------


def count(ctx: Context) -> int:
    """How many messages the session has; the position of the next one."""
    return ctx.store.entries.tally(ctx.scope, MESSAGE, ctx.session).total


def append(ctx: Context, first: int, messages: Sequence[StoredMessage]) -> None:
    """Store messages from position `first` on, in one transaction."""
    drafts = []
    for position, stored in enumerate(messages, first):
        packed = pack(masked(ctx.masking or Masking(), stored.message))
        record = MessageRecord(stored.message.role, stored.digest, stored.tokens, packed.body, stored.after)
        origin = _origin(ctx, stored.message)
        tags = () if stored.after is None else (EDIT_TAG,)
        draft = Draft(packed.text, ctx.session, tags, extra=record.to_json(), origin=origin, at=stored.at)
        drafts.append((_key(ctx.session, position), draft))
    ctx.store.entries.append(ctx.scope, MESSAGE, drafts, ctx.stamp("append_messages"))


def _origin(ctx: Context, message: Message) -> str:
    """Whose words a message has, where that is not who stores it: an agent stores those of tools and of its user."""
    if message.results():
        return TOOL
    return PERSON if message.role == USER and ctx.who == AGENT else ""


def messages(ctx: Context, first: int = 0, total: int | None = None) -> list[StoredMessage]:
    """The session's messages from a position on, in order."""
    limit = limits.MESSAGES_READ if total is None else max(0, total - first)
    if not limit:
        return []
    fresh = _newest(ctx, first, limit)
    if total is not None and [position_of(entry.key) for entry in fresh] != [*range(first, total)]:
        # Others have just added messages, or an old one was changed, for example purged.
        fresh = _newest(ctx, first, limits.MESSAGES_READ)
    return [_stored(entry) for entry in fresh]


def _newest(ctx: Context, first: int, limit: int) -> list[Entry]:
    """Of the messages that were written last, those from position `first` on, in order."""
    page = ctx.store.entries.list(ctx.scope, Listing((MESSAGE,), ctx.session, include_done=True, limit=limit))
    entries = sorted(page.entries, key=lambda entry: entry.key)
    return [entry for entry in entries if position_of(entry.key) >= first]


def copy_to(ctx: Context, session: str) -> None:
    """Give a new session the messages and folds of this one as they are, with their origins: it goes on from here."""
    originals = _newest(ctx, 0, limits.MESSAGES_READ)
    originals = originals[: _settled([message_of(entry) for entry in originals])]
    if not originals:
        return
    stamp, last = ctx.stamp("fork_session"), len(originals) - 1
    drafts = [
        (_key(session, position), Draft(entry.content, session, entry.tags, extra=entry.extra, origin=entry.origin))
        for position, entry in enumerate(originals)
    ]
    ctx.store.entries.append(ctx.scope, MESSAGE, drafts, stamp)
    for entry in entries(ctx):
        is_fold = entry.kind == FOLD and entry.extra.get("how") != WARN
        if (is_fold or (entry.kind == TASK and entry.done)) and number_or(entry.extra.get("first")) <= last:
            extra = {**entry.extra, "last": min(number_or(entry.extra.get("last"), last), last)}
            draft = entry.revised(session=session, extra=extra, origin=entry.origin)
            ctx.store.entries.edit(ctx.scope, entry.kind, None, _always(draft), stamp)


def _always(draft: Draft) -> Decide:
    return lambda before: draft


def _settled(said: Sequence[Message]) -> int:
    """How many messages come before the reply whose calls are under way, if there is one."""
    for position in range(len(said) - 1, -1, -1):
        if said[position].role == ASSISTANT:
            calls = {call.id for call in said[position].calls()}
            answered = {result.call_id for message in said[position + 1 :] for result in message.results()}
            return len(said) if calls <= answered else position
    return len(said)


def message_of(entry: Entry) -> Message:
    return unpack(PackedMessage(entry.content, entry.extra["body"]))


def position_of(key: str) -> int:
    """The position of a message in its session, by the key of its entry."""
    number = key.rpartition("#")[2]
    return int(number) if number.isdecimal() else -1  # of no message that Limpet stored


def origin_of(ctx: Context, sources: Iterable[Message]) -> str:
    """The provenance of a text derived from these messages: the least trusted of their origins."""
    return lowest(ctx.who, TOOL) if any(message.results() for message in sources) else ctx.who


def _stored(entry: Entry) -> StoredMessage:
    record = MessageRecord.from_json(entry.extra)
    is_masked = MASK in entry.content or MASK in record.body or PURGED in entry.content
    message = unpack(PackedMessage(entry.content, record.body))
    return StoredMessage(message, record.digest, record.tokens, record.after, is_masked)


def masked(masking: Masking, message: Message) -> Message:
    """The message as it may be stored: every text in it, the arguments of calls and what a provider added."""
    if masking.keep:
        return message
    parts = tuple(_masked_part(masking, part) for part in message.parts)
    return message._replace(parts=parts, raw=masking.value(message.raw))


def masked_entry(masking: Masking, entry: Entry) -> Entry:
    """A message of an import, as it may be stored."""
    packed = pack(masked(masking, message_of(entry)))
    record = MessageRecord.from_json(entry.extra)._replace(body=packed.body)
    return entry._replace(content=packed.text, extra=record.to_json())


def _masked_part(masking: Masking, part: Any) -> Any:
    raw = masking.value(part.raw)
    match part:
        case Text() | Thinking():
            return part._replace(text=masking.text(part.text), raw=raw)
        case Call():
            return masked_call(masking, part)._replace(raw=raw)
        case Result():
            nested = tuple(_masked_part(masking, inner) for inner in part.parts)
            return part._replace(call_id=_masked_id(masking, part.call_id), parts=nested, raw=raw)
    return part._replace(raw=raw)


def masked_call(masking: Masking, call: Call) -> Call:
    """Arguments are JSON, and stay JSON; what is none is a text."""
    if not masking.keep:
        call = call._replace(id=_masked_id(masking, call.id), name=masking.text(call.name))
    if masking.keep or not redact(call.arguments).count:
        return call
    try:
        return call._replace(arguments=to_json(masking.value(json.loads(call.arguments))))
    except (ValueError, RecursionError):
        return call._replace(arguments=masking.text(call.arguments))


def _masked_id(masking: Masking, id: str) -> str:
    """The id of a call. A secret becomes the same other id in the call and in its result, so they belong together."""
    if masking.text(id) == id:
        return id
    return f"masked_{sha256(id.encode()).hexdigest()[:16]}"


def _key(session: str, position: int) -> str:
    return f"{session}#{position:08d}"


# --- folds ------------------------------------------------------------------------------------------------------------


def all_entries(ctx: Context, earlier: Sequence[Entry] = ()) -> list[Entry]:
    """All folds, warnings and tasks of the session, also those that were removed, oldest first.

    With `earlier`, what was read before, all are read again only if the newest ones are not as they were.
    """
    query = Listing((FOLD, TASK), ctx.session, include_done=True, limit=NEWEST_READ)
    if earlier:
        page, by_key = ctx.store.entries.list(ctx.scope, query), {entry.key: entry for entry in earlier}
        if page.total == len(earlier) and all(by_key.get(entry.key) == entry for entry in page.entries):
            return list(earlier)
    page = ctx.store.entries.list(ctx.scope, query._replace(limit=limits.FOLDS_READ))
    return sorted(page.entries, key=lambda entry: (entry.created_at, entry.key))


def current(entries: Iterable[Entry]) -> list[Entry]:
    """The entries that shape the window: current folds and warnings, and all tasks."""
    return [entry for entry in entries if entry.kind == TASK or not entry.done]


def entries(ctx: Context) -> list[Entry]:
    return current(all_entries(ctx))


class FoldReader:
    """Reads the record of each fold once: every change of a window needs all of them, and there may be thousands."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[Entry, Fold]] = {}  # by key

    def fold(self, entry: Entry) -> Fold:
        cached = self._read.get(entry.key)
        if cached is None or cached[0] != entry:
            cached = self._read[entry.key] = (entry, _fold(entry))
        return cached[1]


def folds(entries: Sequence[Entry], history: Sequence[Message], reader: FoldReader | None = None) -> list[Fold]:
    """The folds of these entries."""
    read = _fold if reader is None else reader.fold
    result: list[Fold] = []
    for entry in entries:
        if entry.kind == TASK and entry.done:
            result += _task_fold(entry, history)
        elif entry.kind == FOLD and entry.extra.get("how") in (CLEAR, COMPACT, EDIT):
            result.append(read(entry))
    return result


def shown_texts(entries: Sequence[Entry], history: Sequence[Message]) -> list[Fold]:
    """Every fold with a text that was ever in the window, also those that were removed."""
    compactions = [_fold(entry) for entry in entries if entry.kind == FOLD and entry.extra.get("how") == COMPACT]
    ended = [entry for entry in entries if entry.kind == TASK and entry.done]
    return compactions + [fold for entry in ended for fold in _task_fold(entry, history)]


class ConversationLine(NamedTuple):
    """The tree of the messages and the line in it that the window shows."""

    parents: Mapping[int, int]  # of the messages that do not follow the one before them
    head: int
    restored: frozenset[int]  # positions of other lines that are shown all the same

    def positions(self) -> Line:
        line = line_to(self.head, self.parents)
        return sorted({*line, *self.restored}) if self.restored else line


def line(history: Sequence[StoredMessage], entries: Iterable[Entry]) -> ConversationLine:
    """The line that these messages and entries make. A REWIND holds until something is said after it."""
    parents = {position: stored.after for position, stored in enumerate(history) if stored.after is not None}
    records = [
        FoldRecord.from_json(entry.extra)
        for entry in entries
        if entry.kind == FOLD and not entry.done and entry.extra.get("how") in (REWIND, RESTORE)
    ]
    head = len(history) - 1
    for record in sorted((record for record in records if record.how == REWIND), key=lambda record: record.last):
        # Those of earlier versions do not say where they go back to, nor do the messages after them.
        target = parent(record.first, parents) if record.head is None else record.head
        if record.last == len(history) - 1:
            head = target
        elif record.last + 1 < len(history):
            parents.setdefault(record.last + 1, target)
    spans = [(record.first, record.last) for record in records if record.how == RESTORE]
    spans += [span for record in records if record.how == REWIND for span in record.shown]  # of earlier versions
    restored = (position for first, last in spans for position in range(first, min(last + 1, len(history))))
    return ConversationLine(parents, head, frozenset(restored))


def fold_draft(ctx: Context, record: FoldRecord, text: str = "") -> Draft:
    """A fold as an entry. Its text is the content, so that a search finds it."""
    # The lines name the outputs they bring back; as content they keep these from being pruned.
    content = text or "\n".join(
        [*(record.lines or {}).values(), *(str(message["text"]) for message in record.messages or ())]
    )
    tags = (EDIT_TAG,) if record.messages else ()
    return Draft(safe.storable(content), ctx.session, tags, extra=_storable(record.to_json()))


def _storable(value: Any) -> Any:
    """The same value with every text in it storable: a fold quotes messages, which can contain any character."""
    if isinstance(value, str):
        return safe.storable(value)
    if isinstance(value, Mapping):
        return {safe.storable(name): _storable(inner) for name, inner in value.items()}
    return [_storable(inner) for inner in value] if isinstance(value, list | tuple) else value


def unfolded(entry: Entry | None) -> Draft | None:
    """A fold removed. A task stays an ended task, but folds nothing any more."""
    if entry is None:
        return None
    extra = TaskRecord.from_json(entry.extra).unfolded().to_json() if entry.kind == TASK else entry.extra
    return entry.revised(done=True, extra=extra)


def _fold(entry: Entry) -> Fold:
    record = FoldRecord.from_json(entry.extra)
    text = entry.content if record.how == COMPACT else ""
    messages = tuple(stored.message for stored in edited(record))
    return Fold(entry.key, record.how, record.first, record.last, text, record.lines or {}, record.shown, messages)


def edit_record(ctx: Context, first: int, last: int, messages: Sequence[StoredMessage]) -> FoldRecord:
    """The record of messages that a caller put in the place of stored ones."""
    packed = [(stored, pack(masked(ctx.masking or Masking(), stored.message))) for stored in messages]
    records = [
        {**MessageRecord(stored.message.role, stored.digest, stored.tokens, body).to_json(), "text": text}
        for stored, (text, body) in packed
    ]
    return FoldRecord(EDIT, first, last, messages=tuple(records))


def edited(record: FoldRecord) -> list[StoredMessage]:
    """The messages of such a record."""
    result: list[StoredMessage] = []
    for message in record.messages or ():
        is_masked = MASK in message["text"] or MASK in message["body"]
        unpacked = unpack(PackedMessage(message["text"], message["body"]))
        result.append(StoredMessage(unpacked, message["digest"], message["tokens"], is_masked=is_masked))
    return result


def _task_fold(entry: Entry, history: Sequence[Message]) -> list[Fold]:
    task = TaskRecord.from_json(entry.extra)
    if task.last is None or not task.is_folded:
        return []
    text = task_line(entry.content, task.outcome, task.ledger, cancelled=task.state == CANCELLED)
    first = task.first
    while first < task.last and first < len(history) and history[first].role == TOOL_ROLE:
        first += 1  # the task was begun by one of several calls, whose results stay with them
    return [Fold(entry.key, TASK_FOLD, first, _with_ending_call(history, task.last), text)]


def _with_ending_call(history: Sequence[Message], last: int) -> int:
    """The last position including the call that ended the task and its result, unless it was one of several calls."""
    following = history[last + 1 : last + 3]
    if len(following) == 2 and following[0].role == ASSISTANT:
        calls = following[0].calls()
        alone = len(calls) == 1 and calls[0].name.endswith(ENDS)
        if alone and len(groups(following)) == 1:
            return last + 2
    return last


# --- purging ----------------------------------------------------------------------------------------------------------


def blanked(entry: Entry) -> Draft:
    """A message, fold or task without its text. References to it stay valid, and calls keep their results."""
    if entry.kind == MESSAGE:
        packed = pack(_blank(message_of(entry)))
        record = MessageRecord.from_json(entry.extra)._replace(body=packed.body)
        return entry.revised(content=packed.text, extra=record.to_json())
    if entry.kind == TASK:
        task = TaskRecord.from_json(entry.extra)
        task = task._replace(outcome=task.outcome and PURGED, ledger=task.ledger and PURGED)
        return entry.revised(content=PURGED, extra=task.to_json())
    fold = FoldRecord.from_json(entry.extra)
    lines = None if fold.lines is None else dict.fromkeys(fold.lines, PURGED)
    messages = None if fold.messages is None else tuple(map(_blank_record, fold.messages))
    return entry.revised(content=PURGED, extra=fold._replace(facts=None, lines=lines, messages=messages).to_json())


def _blank_record(record: Mapping[str, Any]) -> dict[str, Any]:
    text, body = pack(_blank(unpack(PackedMessage(record["text"], record["body"]))))
    return {**record, "text": text, "body": body}


def _blank(message: Message) -> Message:
    parts: list[Any] = []
    for part in message.parts:
        if isinstance(part, Call):
            parts.append(Call(part.id, part.name, "{}"))
        elif isinstance(part, Result):
            parts.append(Result(part.call_id, (Text(PURGED),), part.error))
    return Message(message.role, tuple(parts) or (Text(PURGED),))
