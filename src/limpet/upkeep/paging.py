"""Paging for the dashboard: pages back to the beginning of a project, at the same cost per page.

Operations answer agents, whose windows are small; a person pages through a project. These functions do not write, and
an output that a person reads does not count as read back, because it entered no window.
"""

from __future__ import annotations

from limpet import errors, limits
from limpet.catalogue.operation import Context
from limpet.model import FOLD, HANDOFF, KINDS, MEMORY, MESSAGE, NOTE, SESSION, Entry, Event, Output
from limpet.outputs import keep as output_keep
from limpet.outputs import read as output_read
from limpet.record import NamedTuple
from limpet.store import EventQuery, Listing, Page
from limpet.text import slices
from limpet.window import transcript
from limpet.window.messages import USER, Message
from limpet.window.plan.folding import COMPACT

FIRST_MESSAGES = 4  # looked through for what a session without a task was about
RECENT_EVENTS = 400  # read to find the sessions that were active last


class NotePage(NamedTuple):
    """One page of notes. `following` is the position of the next page, None at the end."""

    notes: tuple[Entry, ...]
    following: str | None
    total: int  # open and done


class OutputLines(NamedTuple):
    """Lines of an output, or the matches of a text in it."""

    output: Output
    first: int
    content: str
    note: str = ""


def notes(ctx: Context, before: str | None, *, include_done: bool, limit: int) -> NotePage:
    """Notes of every session, the last created first."""
    now = 0 if include_done else ctx.now  # who asks for all of them sees what has expired too
    notes = ctx.store.entries.earlier(ctx.scope, NOTE, before, include_done=include_done, limit=limit + 1, now=now)
    page = notes[:limit]
    following = page[-1].key if len(notes) > limit else None
    return NotePage(page, following, ctx.store.entries.tally(ctx.scope, NOTE, "").total)


def note(ctx: Context, id: str) -> Entry:
    entry = ctx.store.entries.read(ctx.scope, NOTE, id)
    if entry is None:
        raise errors.no_note(id)
    return entry


def changes(ctx: Context, query: EventQuery) -> tuple[tuple[Event, ...], int | None]:
    """Changes, newest first, and the number that the next page goes on from."""
    events = ctx.store.entries.events(ctx.scope, query._replace(limit=query.limit + 1))
    page = events[: query.limit]
    return page, page[-1].seq if len(events) > query.limit else None


def entry(ctx: Context, kind: str, key: str) -> Entry:
    stored = ctx.store.entries.read(ctx.scope, kind, key)
    if stored is None:
        raise errors.no_entry(kind, key, "Its page lists those that exist.")
    return stored


def change(ctx: Context, seq: int) -> Event:
    event = ctx.store.entries.event(ctx.scope, seq)
    if event is None:
        raise errors.no_event(seq)
    return event


def last_changes(ctx: Context) -> tuple[Event, ...]:
    """Enough of the newest changes to see who was active recently."""
    return ctx.store.entries.events(ctx.scope, EventQuery(limit=RECENT_EVENTS))


def change_number(ctx: Context) -> str:
    """A mark that differs after any change and any new output."""
    newest = ctx.store.entries.events(ctx.scope, EventQuery(limit=1))
    outputs = ctx.store.outputs.list(ctx.scope, 1)
    last = outputs.outputs[0] if outputs.outputs else None
    return f"{newest[0].seq if newest else 0}.{outputs.total}.{last.used_at if last else 0}"


def session(ctx: Context, id: str) -> Entry:
    entry = ctx.store.entries.read(ctx.scope, SESSION, id)
    if entry is None:
        raise errors.no_entry("session", id, "The overview lists those that exist.")
    return entry


def sessions(ctx: Context, *, include_archived: bool, limit: int) -> tuple[tuple[Entry, ...], int]:
    """The newest sessions, and how many more there are."""
    page = ctx.store.entries.list(ctx.scope, Listing((SESSION,), include_done=include_archived, limit=limit))
    return page.entries, page.total - len(page.entries)


def session_page(ctx: Context, page: int, size: int, *, words: str, include_archived: bool) -> Page:
    """A page of the sessions, the latest first; with words, of those whose id it is or whose task holds them."""
    query = Listing((SESSION,), include_done=include_archived, limit=(page + 1) * size)
    if not words:
        listed = ctx.store.entries.list(ctx.scope, query)
    else:
        listed = ctx.store.entries.containing(ctx.scope, query, words)
        named = ctx.store.entries.read(ctx.scope, SESSION, words)
        if named is not None and named not in listed.entries:
            listed = Page((named, *listed.entries), listed.total + 1, listed.more)
    return listed._replace(entries=listed.entries[page * size :][:size])


def session_count(ctx: Context) -> int:
    """How many sessions are not archived."""
    return ctx.store.entries.list(ctx.scope, Listing((SESSION,), limit=1)).total


def memory(ctx: Context, limit: int, *, include_replaced: bool = False) -> tuple[tuple[Entry, ...], int]:
    """Memory by key, pinned first, and how much of it is not shown."""
    which = Listing((MEMORY,), limit=limit, include_replaced=include_replaced, now=ctx.now)
    page = ctx.store.entries.list(ctx.scope, which)
    return tuple(sorted(page.entries, key=lambda entry: (not entry.pinned, -entry.updated_at))), page.total - len(
        page.entries
    )


def handoffs(ctx: Context) -> tuple[Entry, ...]:
    """The handoffs, used or not, the newest change first."""
    return ctx.store.entries.list(ctx.scope, Listing((HANDOFF,), include_done=True, limit=limits.LIST_MAX)).entries


def messages(ctx: Context, first: int, last: int) -> tuple[tuple[int, Entry], ...]:
    """Messages of the session with their positions, from 1, both included, as they were kept."""
    keys = ((position, f"{ctx.session}#{position - 1:08d}") for position in range(first, last + 1))
    entries = ((position, ctx.store.entries.read(ctx.scope, MESSAGE, key)) for position, key in keys)
    return tuple((position, entry) for position, entry in entries if entry is not None)


def message(entry: Entry) -> Message:
    """What was said, of the entry that keeps it."""
    return transcript.message_of(entry)


def folds(ctx: Context) -> tuple[Entry, ...]:
    """The summaries that are in the window in place of messages, oldest first."""
    entries = transcript.current(transcript.all_entries(ctx))
    return tuple(entry for entry in entries if entry.kind == FOLD and entry.extra.get("how") == COMPACT)


def kind_of(ctx: Context, key: str, likely: str) -> str:
    """The kind of the entry with this key, the likely one first; empty when there is none."""
    kinds = (likely, *(kind for kind in KINDS if kind != likely))
    return next((kind for kind in kinds if ctx.store.entries.read(ctx.scope, kind, key) is not None), "")


def first_words(ctx: Context, session: str) -> str:
    """The first thing that a person said in the session, among its first messages."""
    session_ctx = ctx._replace(session=session)
    for _, entry in messages(session_ctx, 1, FIRST_MESSAGES) if message_count(session_ctx) else ():
        if entry.extra.get("role") == USER and entry.content.strip():
            return entry.content
    return ""


def message_count(ctx: Context) -> int:
    """How many messages the session has."""
    return ctx.store.entries.tally(ctx.scope, MESSAGE, ctx.session).total


def output_lines(ctx: Context, id: str, first: int, count: int) -> OutputLines:
    """Lines of an output from `first` on."""
    output = output_keep.find_output(ctx, id)
    start = max(1, min(first, max(1, output.lines)))
    body = ctx.store.outputs.read_lines(ctx.scope, output.id, start, start + count - 1)
    return OutputLines(output, start, body[: limits.OUTPUT_SHOWN_BYTES].decode("utf-8", "replace"))


def output_matches(ctx: Context, id: str, sought: str, *, regex: bool, around: int) -> OutputLines:
    """The matches of a text or a regular expression in an output, with the lines around them."""
    output = output_keep.find_output(ctx, id)
    text = output_read.full_text(ctx, id)
    try:
        content, _, note = slices.match(text, sought, regex, around, limits.OUTPUT_READ_MOST, None)
    except slices.BadSlice as problem:
        raise errors.bad_slice(str(problem)) from None
    return OutputLines(output, 1, content, note)


def outputs_of(ctx: Context) -> tuple[Output, ...]:
    """The recently used outputs that this session was the first to keep."""
    outputs = ctx.store.outputs.list(ctx.scope, limits.LIST_MAX).outputs
    return tuple(output for output in outputs if output.session == ctx.session)
