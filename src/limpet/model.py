"""The data model: immutable values without I/O.

A stored text is an `Entry`, with a kind, a key and a version, in a project of a tenant. Notes, notepads, memory,
handoffs, task scratchpads and sessions are entries with different operations, so history, undo, export, search and the
checksum are implemented once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from limpet.light import TYPE_CHECKING, UTC, Any, Protocol, datetime, timedelta
from limpet.record import NamedTuple

if TYPE_CHECKING:
    from limpet.redaction import Masking
else:
    Masking = object  # neither imported nor a string: compiling the first string takes a millisecond

NOTE = "note"  # key: note_<ms>; session: where it was written
NOTEPAD = "notepad"  # key: the session's id
SCRATCHPAD = "scratchpad"  # key: the session's id
MEMORY = "memory"  # key: as chosen by the agent; session: ""
MAIN_LINE = "main"  # the line of work of a project's main folder
HANDOFF = "handoff"  # key: the line of work and the session that left it; done: a later session has used it
SESSION = "session"  # key: the session's id; session: its parent's id; done: archived
SYSTEM_PROMPT = "system_prompt"  # key: main; session: ""
STATE = "state"  # key: as chosen by the agent; content: JSON; session: ""
MESSAGE = "message"  # key: the session's id, # and the position; written once, so without events
FOLD = "fold"  # replaces messages in the window; done: undone
EDIT_TAG = "edit"  # of a fold: what a caller said in place of a stored message; of a message: it takes another line
TYPED = "typed"  # in the extra of a handoff: what of it a person typed
TASK = "task"  # key: task_<ms>; content: what it is about; done: ended or cancelled
PIN = "pin"  # key: pin_<ms>; a text that every window of its session holds; done: unpinned
OUTPUT = "output"  # not an entry: the kind of a stored output in recall; key: its id
SEALS = "seals"  # key: an upstream MCP server; extra: the definitions of its tools, as hashes
JOURNAL = "journal"  # key: journal_<ms>; an entry that was added to the journal's file, which is authoritative
PROPOSAL = "proposal"  # key: proposal_<ms>; a text that waits for a person to accept it; done: rejected
ACCESS = "access"  # key: a token's id; session: its tenant; done: revoked. Not among KINDS: no project holds one
KINDS = (
    *(NOTE, NOTEPAD, SCRATCHPAD, MEMORY, HANDOFF, SESSION, SYSTEM_PROMPT, STATE),
    *(MESSAGE, FOLD, TASK, PIN, SEALS, JOURNAL, PROPOSAL),
)

# The origins of a text, the least trusted first. Limpet sets them from the caller; they are not arguments.
TOOL, FILE, IMPORT, AGENT, PERSON = ORIGINS = ("tool", "file", "import", "agent", "person")

EMPTY: Mapping[str, Any] = {}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MS = 253_402_300_799_999  # the end of the year 9999: later times cannot be written as a date


class Scope(NamedTuple):
    """The owner of data: every read and write names both."""

    tenant: str
    project: str


class Folder(NamedTuple):
    """A directory on this machine, and its path as the settings give it. What a repository brings may stop counting."""

    path: str
    label: str
    counts: Callable[[], bool] | None = None  # whether it does now; without one it always does


class DataFolder(Protocol):
    """A project's folder in the person's data folder. It is made by the first write; reading makes nothing."""

    @property
    def path(self) -> str | None:
        """Where it is, None if it was not made yet."""

    def make(self) -> str:
        """Make it if it is not there, and say where it is."""

    @property
    def line(self) -> str:
        """The line of work of the folder where one works: a linked worktree has its own."""


class Entry(NamedTuple):
    """One version of a stored text. Times are milliseconds since 1970, in UTC."""

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

    def revised(self, **changes: Any) -> Draft:
        """A draft of the next version: this one with some fields changed."""
        draft = Draft(self.content, self.session, self.tags, self.done, self.pinned, self.extra)
        return draft._replace(**changes)


class Draft(NamedTuple):
    """The next version of an entry, from an operation. The store adds key, version, origin and times."""

    content: str
    session: str = ""
    tags: tuple[str, ...] = ()
    done: bool = False
    pinned: bool = False
    extra: Mapping[str, Any] = EMPTY
    origin: str = ""  # of a restored or derived text; otherwise `next_entry` decides
    anew: bool = False  # nothing of the previous text is left in it
    at: int = 0  # when it was written elsewhere, of what is imported; otherwise it is written now


class Retry(NamedTuple):
    """A call that came with a key of the caller's: repeated with the same key, it is answered and not made again."""

    key: str
    call: str  # a digest of the operation and its arguments


class Stamp(NamedTuple):
    """Who makes a change, when, and through which operation, as an event records it."""

    by: str
    operation: str
    session: str
    now: int
    detail: Mapping[str, Any] = EMPTY
    masking: Masking | None = None  # of secrets; None masks them too, without a count
    retry: Retry | None = None  # a call that may be repeated, and writes once


class Event(NamedTuple):
    """One change: the entry before and after it. None means that it did not exist."""

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
    """The result of a write. `seq` is 0 if nothing changed."""

    seq: int
    before: Entry | None
    after: Entry | None
    tally: Tally
    replayed: bool = False  # an earlier call with the same key made it

    @property
    def entry(self) -> Entry:
        """The entry as it is now, or as it was before it was deleted."""
        entry = self.after or self.before
        if entry is None:
            raise LookupError("nothing was there and nothing was written")
        return entry


class OutputDraft(NamedTuple):
    """The metadata of a new output, from its producer. The store adds id, digest, size, lines and times."""

    tool: str
    call: str = ""  # the call that produced it, for instance the arguments as JSON: how to produce it again
    shape: str = ""
    preview: str = ""
    redacted: int = 0  # secrets that were masked before it was stored


class Output(NamedTuple):
    """The metadata of a big result that is stored outside the window.

    `used_at` and `uses` change when it is read or kept again; tool, session, call and `created_at` are those of the
    first time.
    """

    id: str  # the first 12 digits of the digest, or more where these are not unique
    digest: str  # SHA-256 of the bytes
    tool: str
    session: str
    call: str
    size: int  # bytes
    lines: int  # separated by line feeds; text after the last one is a line too
    shape: str
    preview: str
    redacted: int
    created_at: int
    used_at: int
    uses: int


class Tombstone(NamedTuple):
    """The metadata of a deleted output, so that its id still leads to what it was and how to produce it again."""

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
    by: str  # who asked for it; empty when it was pruned


DELETED = "deleted"
CLEARED = "cleared"
PURGED = "purged"
TOO_OLD = "too old"
NO_ROOM = "no room"


class EntryName(NamedTuple):
    """An entry, as another entry names it."""

    kind: str
    key: str


DIGEST = r"[0-9]{1,9}\.[0-9a-f]{1,8}\.[0-9a-f]{64}"  # of cited lines, as anchors.py makes it


class Anchor(NamedTuple):
    """What an entry cites: `path:lines` of the project with a digest of these lines, a commit or a URL."""

    place: str
    digest: str = ""  # of the lines; empty for a commit and a URL
    at: int = 0  # milliseconds: when it was cited


class Validity(NamedTuple):
    """Whether an entry still holds: what it replaces, what has replaced it, when it expires and what it cites.

    It is stored in an entry's `extra`, under names of its own.
    """

    replaces: EntryName | None = None
    replaced_by: EntryName | None = None
    expires_at: int | None = None  # milliseconds
    anchors: tuple[Anchor, ...] = ()

    @classmethod
    def of(cls, extra: Mapping[str, Any]) -> Validity:
        if not extra:
            return STANDING
        return cls(
            _entry_name(extra.get("replaces")),
            _entry_name(extra.get("replaced_by")),
            number_or_none(extra.get("expires_at")),
            _anchors(extra.get("anchors")),
        )

    def into(self, extra: Mapping[str, Any]) -> Mapping[str, Any]:
        """The extra with this in place of what it said before."""
        others = {name: value for name, value in extra.items() if name not in self._fields}
        own = {
            "replaces": self.replaces and list(self.replaces),
            "replaced_by": self.replaced_by and list(self.replaced_by),
            "expires_at": self.expires_at,
            "anchors": [list(anchor) for anchor in self.anchors] or None,
        }
        return {**others, **{name: value for name, value in own.items() if value is not None}}

    def expired(self, now: int) -> bool:
        return self.expires_at is not None and self.expires_at <= now


STANDING = Validity()  # of an entry that says nothing about it


def _entry_name(value: Any) -> EntryName | None:
    names = texts_of(value)
    return EntryName(*names) if len(names) == len(EntryName._fields) else None


def _anchors(value: Any) -> tuple[Anchor, ...]:
    rows = value if isinstance(value, (list, tuple)) else ()
    return tuple(
        Anchor(row[0], text_or(row[1]), number_or(row[2]))
        for row in rows
        if isinstance(row, (list, tuple)) and len(row) == len(Anchor._fields) and isinstance(row[0], str)
    )


class Note(NamedTuple):
    id: str
    content: str
    tags: tuple[str, ...]
    done: bool
    session: str
    created_at: datetime
    updated_at: datetime
    origin: str = AGENT
    version: int = 1
    validity: Validity = STANDING
    corrects: str = ""  # in the answer to a write: the id or key of what it seems to correct


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
    version: int = 1
    validity: Validity = STANDING
    layer: str = ""  # where it is kept, if not in the project
    also_in: tuple[str, ...] = ()  # layers that have another text under this key
    corrects: str = ""  # in the answer to a write: the id or key of what it seems to correct


class Handoff(NamedTuple):
    content: str
    line: str
    written_by: str
    written_at: datetime
    used_by: str | None
    origin: str = AGENT
    id: str = ""
    draft: bool = False  # made by a hook, of a session that left none
    shown_to: tuple[str, ...] = ()  # sessions whose model has seen it
    anchors: tuple[Anchor, ...] = ()
    typed: str = ""  # of a draft: how many characters at its beginning a person typed, and the hash of its text


class SessionInfo(NamedTuple):
    id: str
    task: str
    parent: str
    state: str
    created_at: datetime
    archived_at: datetime | None


class Digest(NamedTuple):
    """A text that fits a budget, and the names of what was left out."""

    text: str
    tokens: int
    left_out: tuple[str, ...]


def lowest(*origins: str) -> str:
    """The least trusted of them. An unknown origin counts as the least trusted."""
    return min(origins, key=lambda origin: ORIGINS.index(origin) if origin in ORIGINS else -1)


def derived(*origins: str) -> dict[str, list[str]]:
    """The origins of a text that has several, for its `extra`, so that a purge of any of them finds it."""
    return {"sources": sorted(set(origins))} if len(set(origins)) > 1 else {}


def trusted(origin: str) -> bool:
    """Whether a text of this origin is an instruction: from the agent or a person. All others are data."""
    return origin in (AGENT, PERSON)


def moment(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=max(0, min(ms, LAST_MS)))


def epoch_ms(at: datetime) -> int:
    """The inverse of `moment`."""
    return (at - _EPOCH) // timedelta(milliseconds=1)


# A stored record of another shape, of a damaged import or a later version, must not fail every read of its neighbours.


def text_or(value: Any, default: str = "") -> str:
    return value if isinstance(value, str) else default


def number_or(value: Any, default: int = 0) -> int:
    return value if type(value) is int else default


def number_or_none(value: Any) -> int | None:
    return value if type(value) is int else None


WRITTEN_AT = "written_at"  # in an entry's extra


def written_at(entry: Entry) -> int:
    """When its text was written. A tag, a pin, a successor and an undo change an entry later, and say nothing new."""
    return number_or(entry.extra.get(WRITTEN_AT), entry.updated_at)


def texts_of(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, (list, tuple)) else ()


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
        entry.version,
        Validity.of(entry.extra),
    )


def as_memory(entry: Entry) -> Memory:
    at, validity = moment(entry.updated_at), Validity.of(entry.extra)
    return Memory(entry.key, entry.content, entry.pinned, at, entry.origin, entry.version, validity)


def as_handoff(entry: Entry) -> Handoff:
    extra = entry.extra
    return Handoff(
        entry.content,
        text_or(extra.get("line"), entry.key),  # the key of those that earlier versions wrote is the line
        entry.session,
        moment(written_at(entry)),
        text_or(extra.get("used_by")) or None,
        entry.origin,
        entry.key,
        bool(extra.get("draft")),
        texts_of(extra.get("shown_to")),
        Validity.of(extra).anchors,
        text_or(extra.get(TYPED)) if extra.get("draft") and entry.origin == TOOL else "",
    )


def as_session(entry: Entry) -> SessionInfo:
    archived = number_or_none(entry.extra.get("archived_at"))
    return SessionInfo(
        entry.key,
        entry.content,
        entry.session,
        text_or(entry.extra.get("outcome")) or ("archived" if entry.done else "active"),
        moment(entry.created_at),
        None if archived is None else moment(archived),
    )
