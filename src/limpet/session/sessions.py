"""Sessions: who works on what. A session is created by its first write and can be archived."""

from __future__ import annotations

from importlib import import_module

from limpet import errors, limits
from limpet.catalogue.operation import Context, Json, bounded, session_name
from limpet.model import NOTE, SESSION, Draft, Entry, SessionInfo, as_session, iso
from limpet.record import NamedTuple
from limpet.session import notepad
from limpet.session.records import SessionRecord
from limpet.store import Listing

NONE, BY_PROGRAMS, ANY = "none", "by programs", "any"  # which sessions besides its own a client may name
MACHINE_CHARS, MACHINE_DIGITS = 16, 3  # of ids such as UUIDs, at least; what a model makes up is shorter, or words


class SessionDetails(NamedTuple):
    session: SessionInfo
    notes: int
    notepad: str


class Sessions(NamedTuple):
    sessions: tuple[SessionInfo, ...]
    left_out: int


def begin_session(ctx: Context, task: str = "") -> SessionInfo:
    """Begin this session, or resume it; an archived one becomes active again. A given task replaces the earlier one."""
    bounded("task", task, limits.NOTE_MAX_CHARS, "Name the work in a sentence.")

    def decide(before: Entry | None) -> Draft:
        if before is None:
            return Draft(task)
        record = SessionRecord.from_json(before.extra)
        if record.outcome:
            raise errors.session_over(ctx.session, record.outcome)
        extra = record._replace(archived_at=None).to_json()
        return before.revised(content=task or before.content, done=False, extra=extra)

    change = ctx.store.entries.edit(ctx.scope, SESSION, ctx.session, decide, ctx.stamp("begin_session"))
    return as_session(change.entry)


def name_session(ctx: Context, name: str, at: int = 0) -> None:
    """Name a session that has no task, so that people recognise it. One that was not written to has no entry. `at` is
    when it was last active, of one that is imported."""
    entry = ctx.store.entries.read(ctx.scope, SESSION, ctx.session)
    words = " ".join(name.split())
    if entry is None or entry.content or not words:
        return
    text = words if len(words) <= limits.SESSION_NAME_CHARS else f"{words[: limits.SESSION_NAME_CHARS - 1]}…"

    def decide(before: Entry | None) -> Draft | None:
        return None if before is None or before.content else before.revised(content=text, at=at)

    ctx.store.entries.edit(ctx.scope, SESSION, ctx.session, decide, ctx.stamp("begin_session"))


def is_unnamed(ctx: Context) -> bool:
    entry = ctx.store.entries.read(ctx.scope, SESSION, ctx.session)
    return entry is not None and not entry.content


def is_begun(ctx: Context) -> bool:
    """Whether anything was written in the session."""
    return ctx.store.entries.read(ctx.scope, SESSION, ctx.session) is not None


def archive_session(ctx: Context, id: str) -> SessionInfo:
    def decide(before: Entry | None) -> Draft | None:
        if before is None:
            raise _no_session(id)
        if before.done:
            return None
        record = SessionRecord.from_json(before.extra)._replace(archived_at=ctx.now)
        return before.revised(done=True, extra=record.to_json())

    change = ctx.store.entries.edit(ctx.scope, SESSION, id, decide, ctx.stamp("archive_session"))
    return as_session(change.entry)


def show_session(ctx: Context, id: str) -> SessionDetails:
    entry = ctx.store.entries.read(ctx.scope, SESSION, id)
    if entry is None:
        raise _no_session(id)
    text = notepad.read_notepad(ctx._replace(session=id)).content
    return SessionDetails(as_session(entry), ctx.store.entries.tally(ctx.scope, NOTE, id).total, text)


def list_sessions(ctx: Context, include_archived: bool = False, limit: int = limits.HISTORY_SHOWN) -> Sessions:
    page = ctx.store.entries.list(ctx.scope, Listing((SESSION,), include_done=include_archived, limit=limit))
    return Sessions(tuple(map(as_session, page.entries)), page.total - len(page.entries))


def _no_session(id: str) -> errors.NotFound:
    return errors.no_entry("session", id, "`limpet session list` shows those that exist.")


# --- naming a session in a call ---------------------------------------------------------------------------------------


def check_named(ctx: Context, id: str, others: str) -> None:
    """Refuse a call that names a session which is neither that of its client (`ctx`) nor began in it. `others` says
    which more it may name: those made BY_PROGRAMS, or ANY that exists.

    Hooks name the session of their agent, or of a new sub-agent, before its first write: an id that a program made and
    that nothing is stored under yet.
    """
    entry = ctx.store.entries.read(ctx.scope, SESSION, session_name(id))
    if by_program(id) and (entry is None or others == BY_PROGRAMS):
        return
    if entry is not None and (others == ANY or _descends(ctx, entry)):
        return
    if others != ANY:
        raise errors.not_your_session(id)
    names = [info.id for info in list_sessions(ctx, include_archived=True, limit=limits.LIST_MAX).sessions]
    near = import_module("difflib").get_close_matches(id, names, 1, 0)  # late: mistakes are rare
    raise errors.no_such_session(id, f"the nearest is {near[0]!r}" if near else "there is none yet")


def by_program(id: str) -> bool:
    """Whether a program made this id; people and models choose words."""
    return len(id) >= MACHINE_CHARS and sum(map(str.isdigit, id)) >= MACHINE_DIGITS


def _descends(ctx: Context, entry: Entry | None) -> bool:
    for _ in range(limits.SESSION_DEPTH_MAX + 1):
        if entry is None or not entry.session:
            return False
        if entry.session == ctx.session:
            return True
        entry = ctx.store.entries.read(ctx.scope, SESSION, entry.session)
    return False


# --- answers ----------------------------------------------------------------------------------------------------------


def begun_text(_ctx: Context, value: SessionInfo) -> str:
    return f"Session {value.id} is {value.state}. Give its id as session_id."


def session_json(value: SessionInfo) -> Json:
    return {
        "id": value.id,
        "task": value.task,
        "parent": value.parent,
        "state": value.state,
        "created_at": iso(value.created_at),
        "archived_at": None if value.archived_at is None else iso(value.archived_at),
    }


def overview_json(value: SessionDetails) -> Json:
    return session_json(value.session) | {"notes": value.notes, "notepad": value.notepad}


def sessions_json(value: Sessions) -> Json:
    answer: Json = {"sessions": [session_json(item) for item in value.sessions]}
    return answer | ({"left_out": value.left_out} if value.left_out else {})
