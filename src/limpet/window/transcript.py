"""The transcript of a session: its messages, kept once each, and the folds that stand in front of them.

Messages are entries without events, folds and tasks are entries like any other: so a fold has its event, can be undone,
and travels with an export. Nothing here decides; window/ does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from limpet import limits
from limpet.catalogue.operation import Context
from limpet.model import FOLD, MESSAGE, TASK, TOOL, Draft, Entry, lowest
from limpet.redaction import redact
from limpet.store import Listing
from limpet.text import terminal
from limpet.upkeep.purge import PURGED
from limpet.window.messages import ASSISTANT, Call, Message, Result, Text
from limpet.window.plan.folding import CLEAR, COMPACT, REWIND, Fold, task_line
from limpet.window.plan.folding import TASK as TASK_FOLD
from limpet.window.plan.groups import units
from limpet.window.plan.serialise import Kept, digest, pack, unpack

WARN = "warn"  # not a fold: the record that the agent was warned
ENDS = ("end_task", "cancel_task")


class Stored(NamedTuple):
    """A message as it was kept, and what was worked out when it was."""

    message: Message
    digest: str  # of the message as it came, before secrets were masked
    tokens: int


def count(ctx: Context) -> int:
    """How many messages the session has; the position of the next one."""
    return ctx.store.tally(ctx.scope, MESSAGE, ctx.session).total


def append(ctx: Context, first: int, messages: Sequence[Stored]) -> None:
    """Keep messages from position `first` on, all of them or none."""
    drafts = []
    for position, one in enumerate(messages, first):
        kept = pack(_masked(one.message))
        extra = {"role": one.message.role, "digest": one.digest, "tokens": one.tokens, "body": kept.body}
        origin = TOOL if one.message.results() else ""
        drafts.append((_key(ctx.session, position), Draft(kept.text, ctx.session, extra=extra, origin=origin)))
    ctx.store.append(ctx.scope, MESSAGE, drafts, ctx.stamp("append_messages"))


def messages(ctx: Context, first: int = 0, total: int | None = None) -> list[Stored]:
    """The session's messages from a position on, in order."""
    limit = limits.MESSAGES_READ if total is None else max(0, total - first)
    if not limit:
        return []
    page = ctx.store.list(ctx.scope, Listing((MESSAGE,), ctx.session, include_done=True, limit=limit))
    return [_stored(entry) for entry in sorted(page.entries, key=lambda entry: entry.key) if _position(entry) >= first]


def origin_of(ctx: Context, said: Iterable[Message]) -> str:
    """Whose word a text is that is made of these messages: the least trusted of whoever speaks in them."""
    return lowest(ctx.who, TOOL) if any(message.results() for message in said) else ctx.who


def made(tokens: int, message: Message) -> Stored:
    return Stored(message, digest(message), tokens)


def entries(ctx: Context) -> list[Entry]:
    """Everything that shapes the window and still stands: folds, warnings and tasks, in order of making."""
    query = Listing((FOLD, TASK), ctx.session, include_done=True, limit=limits.FOLDS_READ)
    page = ctx.store.list(ctx.scope, query)
    standing = [entry for entry in page.entries if entry.kind == TASK or not entry.done]
    return sorted(standing, key=lambda entry: (entry.created_at, entry.key))


def folds(found: Sequence[Entry], history: Sequence[Message]) -> list[Fold]:
    """The folds among them."""
    made: list[Fold] = []
    for entry in found:
        if entry.kind == TASK and entry.done:
            made += _task_fold(entry, history)
        elif entry.kind == FOLD and entry.extra["how"] in (CLEAR, COMPACT, REWIND):
            made.append(_fold(entry))
    return made


def fold_draft(ctx: Context, fold: Fold, **more: Any) -> Draft:
    """A fold as an entry. Its text is its content, so that a search finds it."""
    extra = {"how": fold.how, "first": fold.first, "last": fold.last, **more}
    if fold.lines:
        extra["lines"] = dict(fold.lines)
    if fold.shown:
        extra["shown"] = [list(pair) for pair in fold.shown]
    # The lines name the outputs they bring back; standing in the content, they keep these from being pruned.
    content = fold.text or "\n".join(fold.lines.values())
    return Draft(terminal.storable(content), ctx.session, extra=_storable(extra))


def _storable(value: Any) -> Any:
    """The same with every text in it storable: a fold repeats what was said, and anything may have been said."""
    if isinstance(value, str):
        return terminal.storable(value)
    if isinstance(value, Mapping):
        return {terminal.storable(name): _storable(inner) for name, inner in value.items()}
    return [_storable(inner) for inner in value] if isinstance(value, list | tuple) else value


def opened(entry: Entry | None) -> Draft | None:
    """A fold taken back. A task stays an ended task, and folds nothing any more."""
    if entry is None:
        return None
    extra = {**entry.extra, "last": entry.extra["first"] - 1} if entry.kind == TASK else entry.extra
    return Draft(entry.content, entry.session, entry.tags, True, entry.pinned, extra)


def _fold(entry: Entry) -> Fold:
    extra = entry.extra
    text = entry.content if extra["how"] == COMPACT else ""
    shown = tuple((pair[0], pair[1]) for pair in extra.get("shown", ()))
    return Fold(entry.key, extra["how"], extra["first"], extra["last"], text, extra.get("lines", {}), shown)


def _task_fold(entry: Entry, history: Sequence[Message]) -> list[Fold]:
    extra = entry.extra
    first, last = extra["first"], extra["last"]
    if last < first:
        return []
    text = task_line(entry.content, extra["outcome"], extra["ledger"], cancelled=extra["state"] == "cancelled")
    return [Fold(entry.key, TASK_FOLD, first, _with_its_end(history, last), text)]


def _with_its_end(history: Sequence[Message], last: int) -> int:
    """The call that ended the task goes with it once it is answered, unless other calls were made beside it."""
    following = history[last + 1 : last + 3]
    if len(following) == 2 and following[0].role == ASSISTANT:
        calls = following[0].calls()
        alone = len(calls) == 1 and calls[0].name.endswith(ENDS)
        if alone and len(units(following)) == 1:
            return last + 2
    return last


def blanked(entry: Entry) -> Draft:
    """A message, fold or task without what it says. Whatever refers to it still finds it, and pairs stay pairs."""
    extra = dict(entry.extra)
    if entry.kind == MESSAGE:
        kept = pack(_blank(message_of(entry)))
        return Draft(kept.text, entry.session, entry.tags, entry.done, entry.pinned, {**extra, "body": kept.body})
    extra.pop("facts", None)
    for name in ("outcome", "ledger"):
        if extra.get(name):
            extra[name] = PURGED
    if "lines" in extra:
        extra["lines"] = dict.fromkeys(extra["lines"], PURGED)
    return Draft(PURGED, entry.session, entry.tags, entry.done, entry.pinned, extra)


def _blank(message: Message) -> Message:
    parts: list[Any] = []
    for part in message.parts:
        if isinstance(part, Call):
            parts.append(Call(part.id, part.name, "{}"))
        elif isinstance(part, Result):
            parts.append(Result(part.call_id, (Text(PURGED),), part.error))
    return Message(message.role, tuple(parts) or (Text(PURGED),))


def message_of(entry: Entry) -> Message:
    return unpack(Kept(entry.content, entry.extra["body"]))


def _stored(entry: Entry) -> Stored:
    return Stored(message_of(entry), entry.extra["digest"], entry.extra["tokens"])


def _masked(message: Message) -> Message:
    """What tools said may hold secrets that nobody chose to write down; they are masked before anything is kept."""
    if not message.results():
        return message
    return message._replace(parts=tuple(_clean(part) if isinstance(part, Result) else part for part in message.parts))


def _clean(result: Result) -> Result:
    parts = tuple(
        part._replace(text=redact(part.text).text) if isinstance(part, Text) else part for part in result.parts
    )
    return result if parts == result.parts else result._replace(parts=parts)


def _key(session: str, position: int) -> str:
    return f"{session}#{position:08d}"


def _position(entry: Entry) -> int:
    return int(entry.key.rpartition("#")[2])
