"""The nouns, as frozen values without any I/O.

Everything Limpet keeps is an `Entry`: a text with a kind, a key and a version, in a project of a tenant. Notes,
notepads, memory, handoffs, task scratchpads and sessions differ only in what their operations do with one. That is why
history, undo, export, search and the checksum exist once and serve all of them.
"""

# Annotations are real objects here: as texts, each would be compiled again for its NamedTuple at every start.
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

NOTE = "note"  # key: note_<ms>; session: where it was written
NOTEPAD = "notepad"  # key: the session's id
SCRATCHPAD = "scratchpad"  # key: the session's id
MEMORY = "memory"  # key: as chosen by the agent; session: ""
HANDOFF = "handoff"  # key: the line of work; done: a later session has used it
SESSION = "session"  # key: the session's id; session: its parent's id; done: archived
SYSTEM_PROMPT = "system_prompt"  # key: main; session: ""
STATE = "state"  # key: as chosen by the agent; content: JSON; session: ""
MESSAGE = "message"  # key: the session's id, # and the position; written once, so without events
FOLD = "fold"  # what stands in the window in place of messages; done: taken back
TASK = "task"  # key: task_<ms>; content: what it is about; done: ended or cancelled
PIN = "pin"  # key: pin_<ms>; a text that every window of its session holds; done: unpinned
OUTPUT = "output"  # not an entry: what recall calls a kept output; key: its id
SEALS = "seals"  # key: an MCP server behind us; extra: the definitions of its tools, as hashes
JOURNAL = "journal"  # key: journal_<ms>; an entry that was added to the journal's file, which is what counts
ACCESS = "access"  # key: a token's id; session: its tenant; done: revoked. Not among KINDS: no project holds one
KINDS = (
    *(NOTE, NOTEPAD, SCRATCHPAD, MEMORY, HANDOFF, SESSION, SYSTEM_PROMPT, STATE),
    *(MESSAGE, FOLD, TASK, PIN, SEALS, JOURNAL),
)

# Who a text may come from, the least trusted first. Set by us from who calls, never by an argument.
TOOL, FILE, IMPORT, AGENT, PERSON = ORIGINS = ("tool", "file", "import", "agent", "person")

EMPTY: Mapping[str, Any] = {}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Scope(NamedTuple):
    """Whose data: every read and write names both."""

    tenant: str
    project: str


class Folder(NamedTuple):
    """A directory on this machine, and how people name it: from the project's root, without what is above."""

    path: str
    shown: str


class Entry(NamedTuple):
    """One kept text at one version. Times are milliseconds since 1970, in UTC."""

    kind: str
    key: str
    session: str
    content: str
    tags: tuple[str, ...]
    done: bool
    pinned: bool
    origin: str
    extra: Mapping[str, Any]
    version: int
    created_at: int
    updated_at: int

    def revised(self, **changes: Any) -> "Draft":
        """A draft of the next version: this one with some fields changed."""
        draft = Draft(self.content, self.session, self.tags, self.done, self.pinned, self.extra)
        return draft._replace(**changes)


class Draft(NamedTuple):
    """What an operation wants an entry to become. The store adds key, version, origin and times."""

    content: str
    session: str = ""
    tags: tuple[str, ...] = ()
    done: bool = False
    pinned: bool = False
    extra: Mapping[str, Any] = EMPTY
    origin: str = ""  # of what is brought back as it was, or derived; otherwise `next_entry` decides
    anew: bool = False  # nothing of the text that was there is left in it


class Stamp(NamedTuple):
    """Who changes something, when, and through which operation: what an event records."""

    by: str
    operation: str
    session: str
    now: int
    detail: Mapping[str, Any] = EMPTY


class Event(NamedTuple):
    """One change: what the entry was before and after it. None means that it did not exist."""

    seq: int
    at: int
    by: str
    operation: str
    session: str
    kind: str
    key: str
    version: int
    detail: Mapping[str, Any]
    before: Entry | None
    after: Entry | None


class Tally(NamedTuple):
    """How many entries of a kind a session has, and how many different tags the open ones carry."""

    total: int
    tags: int


class TagCount(NamedTuple):
    tag: str
    notes: int


class Change(NamedTuple):
    """What a write did. `seq` is 0 when nothing had to change."""

    seq: int
    before: Entry | None
    after: Entry | None
    tally: Tally

    @property
    def entry(self) -> Entry:
        """The entry as it is now, or as it was before it was deleted."""
        entry = self.after or self.before
        if entry is None:
            raise LookupError("nothing was there and nothing was written")
        return entry


class OutputDraft(NamedTuple):
    """What the maker of an output says about it. The store adds id, digest, size, lines and times."""

    tool: str
    call: str = ""  # what made it, for instance the arguments as JSON: how to get it again
    shape: str = ""
    preview: str = ""
    redacted: int = 0  # secrets that were masked before it came here


class Output(NamedTuple):
    """A big result that is kept whole outside the window: everything about it but its bytes.

    `used_at` and `uses` move when it is read or kept again; tool, session, call and `created_at` are of the first time.
    """

    id: str  # the first 12 digits of the digest, or as many more as it takes to tell it from others
    digest: str  # SHA-256 of the bytes
    tool: str
    session: str
    call: str
    size: int  # bytes
    lines: int  # separated by line feeds; what follows the last one is a line too, unless it is nothing
    shape: str
    preview: str
    redacted: int
    created_at: int
    used_at: int
    uses: int


class Tombstone(NamedTuple):
    """What an output was that is gone, so that whoever holds its id learns what it was and how to get it again."""

    id: str
    digest: str
    tool: str
    session: str
    call: str
    size: int
    lines: int
    shape: str
    created_at: int
    used_at: int
    gone_at: int
    why: str  # DELETED, CLEARED, PURGED, TOO_OLD or NO_ROOM
    by: str  # who asked for it; nobody when it was pruned


DELETED = "deleted"
CLEARED = "cleared"
PURGED = "purged"
TOO_OLD = "too old"
NO_ROOM = "no room"


class Note(NamedTuple):
    id: str
    content: str
    tags: tuple[str, ...]
    done: bool
    session: str
    created_at: datetime
    updated_at: datetime
    origin: str = AGENT


class Notepad(NamedTuple):
    content: str
    version: int
    tokens: int
    origin: str = AGENT


class Version(NamedTuple):
    """One version of a text, as history lists it."""

    version: int
    content: str
    at: datetime
    by: str
    operation: str


class Memory(NamedTuple):
    key: str
    content: str
    pinned: bool
    updated_at: datetime
    origin: str = AGENT


class Handoff(NamedTuple):
    content: str
    line: str
    written_by: str
    written_at: datetime
    used_by: str | None
    origin: str = AGENT


class SessionInfo(NamedTuple):
    id: str
    task: str
    parent: str
    state: str
    created_at: datetime
    archived_at: datetime | None


class Digest(NamedTuple):
    """A text made to fit a budget, and the names of what did not fit."""

    text: str
    tokens: int
    left_out: tuple[str, ...]


def lowest(*origins: str) -> str:
    """The least trusted of them. One that is not known counts as the least."""
    return min(origins, key=lambda origin: ORIGINS.index(origin) if origin in ORIGINS else -1)


def derived(*origins: str) -> dict[str, list[str]]:
    """All whose words are in a text, where they are several: kept in its extra, so that a purge of any finds it."""
    return {"sources": sorted(set(origins))} if len(set(origins)) > 1 else {}


def trusted(origin: str) -> bool:
    """Whether it is the word of somebody who works here. All else is data to be judged."""
    return origin in (AGENT, PERSON)


def moment(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)


def iso(when: datetime | int) -> str:
    """UTC with milliseconds: 2026-03-02T10:15:00.000Z."""
    at = moment(when) if isinstance(when, int) else when
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def milliseconds(text: str) -> int:
    """The inverse of `iso`."""
    at = datetime.fromisoformat(text)
    return (at.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)


def as_note(entry: Entry) -> Note:
    return Note(
        entry.key,
        entry.content,
        entry.tags,
        entry.done,
        entry.session,
        moment(entry.created_at),
        moment(entry.updated_at),
        entry.origin,
    )


def as_memory(entry: Entry) -> Memory:
    return Memory(entry.key, entry.content, entry.pinned, moment(entry.updated_at), entry.origin)


def as_handoff(entry: Entry) -> Handoff:
    written_at, used_by = moment(entry.extra["written_at"]), entry.extra.get("used_by")
    return Handoff(entry.content, entry.key, entry.session, written_at, used_by, entry.origin)


def as_session(entry: Entry) -> SessionInfo:
    archived = entry.extra.get("archived_at")
    return SessionInfo(
        entry.key,
        entry.content,
        entry.session,
        entry.extra.get("outcome") or ("archived" if entry.done else "active"),
        moment(entry.created_at),
        None if archived is None else moment(archived),
    )
