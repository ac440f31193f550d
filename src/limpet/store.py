"""The Store contract: what a place that keeps entries must do. Its second half is tests/contract, run on every store.

Rules that hold for every method:

- One method is one transaction. When a write returns, a power cut loses nothing of it; when it raises, nothing changed.
- Every change of an entry is written with its event. History, undo and the activity log read events and nothing else.
- Messages are entries without events: they are appended once and change only when they are purged. History does not
  list them before that.
- Outputs have no events: they never change, and what is gone has a tombstone. `dump` leaves them to `dump_outputs`.
- What is merely noted about calls and reads (`note_call`, `note_read`) does not wait for the disk: a power cut may take
  the newest of it back, and nothing else.
- Every entry carries a checksum over all its fields. A read that does not match raises StoreDamaged, it never returns.
- `decide` functions are pure and may be called more than once (a store may have to retry); they raise to refuse.
"""

# Annotations are real objects here: as texts, each would be compiled again for its NamedTuple at every start.
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from limpet.checksums import checksum
from limpet.model import (
    EMPTY,
    Change,
    Draft,
    Entry,
    Event,
    Output,
    OutputDraft,
    Scope,
    Stamp,
    TagCount,
    Tally,
    Tombstone,
)
from limpet.vectors import VectorStore


class Gone:
    """What a `decide` function returns to delete the entry."""


GONE = Gone()
Decide = Callable[[Entry | None], Draft | Gone | None]  # None: leave it as it is


class Listing(NamedTuple):
    """Which entries: of these kinds, and of a session (None: of any), with all the tags."""

    kinds: tuple[str, ...]
    session: str | None = None
    tags: tuple[str, ...] = ()  # folded; an entry must carry all of them
    include_done: bool = False
    limit: int = 1_000


class Page(NamedTuple):
    """Entries in order, and how many there are in all, so that what was left out can be counted."""

    entries: tuple[Entry, ...]
    total: int


class Words(NamedTuple):
    """A word query: groups of alternative words, folded. Words with the same stem count as the same word.

    `every`: each group must occur; otherwise any of them may.
    """

    groups: tuple[tuple[str, ...], ...]
    every: bool = True


class Fact(NamedTuple):
    """What recall needs to know of a text before it reads it. Texts are numbered in the order they came."""

    doc: int
    kind: str
    key: str
    session: str
    head: str  # its first characters
    size: int  # bytes of its text
    tags: tuple[str, ...]
    done: bool
    pinned: bool
    origin: str
    created_at: int
    updated_at: int
    start: int = 0  # of a piece of an output: where it begins in it, in bytes
    line: int = 1  # and which line that is


Places = Mapping[int, tuple[int, ...]]  # of one word: by text, where it stands there, counted in words
SOMEWHERE = (-2,)  # in place of places: it stands there, nobody knows where, and beside nothing


class Seek(NamedTuple):
    """What to gather. `order`, `wanted` and `around` are pure: which texts to look at first, and which may be found."""

    words: tuple[str, ...]  # folded; words with the same stem count as the same word
    literals: tuple[str, ...]  # folded texts that may stand anywhere, also inside words
    order: Callable[[Sequence[Places], Sequence[int], Sequence[Places]], Sequence[int]]  # by places, counts, literals
    wanted: Callable[[Fact], bool]
    around: Callable[[Fact], int]  # how many numbers before and after a text are looked at too
    most: int  # texts that are looked at
    common: int  # a word that stands in more places than this is not followed everywhere
    nominated: tuple[int, ...] = ()  # texts to look at whatever words they hold


class Gathered(NamedTuple):
    """Where the words and literals stand, and what is known of the texts looked at.

    A common word is looked for only in texts that hold a rarer one, so its places are some of many.
    """

    places: tuple[Places, ...]
    counts: tuple[int, ...]  # by word, in about how many texts it stands
    common: frozenset[int]  # the common words, by their numbers
    literals: tuple[Places, ...]
    found: tuple[int, ...]  # texts that may be found: with a word or literal, the most promising first, or beside one
    facts: Mapping[int, Fact]  # of these and of those around them
    total: int  # texts of this kind in the project, more or less
    nominated: tuple[int, ...] = ()  # texts looked at whatever words they hold


class EventQuery(NamedTuple):
    kind: str | None = None
    key: str | None = None
    session: str | None = None
    operation: str | None = None
    since: int | None = None  # milliseconds, inclusive
    until: int | None = None  # milliseconds, exclusive
    before_seq: int | None = None
    limit: int = 50


class Finding(NamedTuple):
    """One line of a health report."""

    name: str
    ok: bool
    detail: str


class Kept(NamedTuple):
    """An output as it is kept now, and whether it was not there before."""

    output: Output
    new: bool


class OutputPage(NamedTuple):
    """Outputs in order, and how many there are in all."""

    outputs: tuple[Output, ...]
    total: int


class Pruned(NamedTuple):
    deleted: int
    freed: int  # bytes, by the outputs' own sizes


class OutputStats(NamedTuple):
    entries: int
    total_bytes: int  # the outputs' own sizes
    stored_bytes: int  # what they take up compressed
    oldest: int | None  # milliseconds, of the first keep
    newest: int | None


class Usage(NamedTuple):
    """What a tenant keeps, in all of its projects."""

    entries: int
    output_bytes: int  # the outputs' own sizes


class SeenCall(NamedTuple):
    """The last big result of a call."""

    id: str
    digest: str
    at: int


class CallNote(NamedTuple):
    """A big result that was answered. Tokens are by the tokenizer named."""

    session: str
    tool: str
    call: str  # which call it was, as a hash; "" when nobody knows
    id: str
    digest: str
    at: int
    kept: bool  # new to the store
    repeated: bool  # answered by what is new since last time
    tokenizer: str
    observed: int  # tokens the result would have cost
    returned: int  # tokens of what was shown in its place


class ReadNote(NamedTuple):
    """A read of an output. `what` says which part, in a form that JSON can hold."""

    session: str
    tool: str
    id: str
    what: Sequence[Any]
    at: int
    tokenizer: str
    tokens: int


class Savings(NamedTuple):
    """What a tool's big results cost a session, in tokens, and what they would have cost."""

    session: str
    tool: str
    tokenizer: str
    calls: int  # big results
    kept: int  # of these, those whose content was new
    repeats: int  # of these, those answered by what is new since last time
    reads: int
    observed: int
    returned: int
    read_back: int

    @property
    def saved(self) -> int:
        """Below zero when reading it back cost more than keeping it out."""
        return self.observed - self.returned - self.read_back


class ArrivingOutput(NamedTuple):
    """An output of an import. `line` is where it stands there."""

    line: int
    output: Output
    chunks: tuple[bytes, ...]  # compressed


class ArrivingTombstone(NamedTuple):
    line: int
    tombstone: Tombstone


Arriving = ArrivingOutput | ArrivingTombstone


class CallStore(Protocol):
    """The part of a store that notes what happens around outputs."""

    def seen_call(self, scope: Scope, session: str, call: str) -> SeenCall | None: ...

    def note_call(self, scope: Scope, note: CallNote, forget_before: int) -> None:
        """Add it to the savings and, if the call is known, make it the last one. Some of what was noted before
        `forget_before`, and is no part of the savings, goes."""

    def note_read(self, scope: Scope, note: ReadNote) -> tuple[Any, ...]:
        """Note a use of the output and add it to the savings. What earlier reads in the session were, oldest first."""

    def savings(self, scope: Scope, session: str | None = None) -> tuple[Savings, ...]:
        """By session and tool; None is every session."""


class OutputStore(Protocol):
    """The part of a store that keeps outputs: big results, by content, each once in a project.

    Every bit that is returned was checked. Ids are exact, except for `output`.
    """

    def keep_output(self, scope: Scope, draft: OutputDraft, body: bytes, stamp: Stamp) -> Kept:
        """Keep the bytes. The same bytes again are one use more of the output that is there, whatever the draft."""

    def keep_outputs(self, scope: Scope, drafts: Sequence[tuple[OutputDraft, bytes]], stamp: Stamp) -> tuple[Kept, ...]:
        """Keep several, all or none: as one after the other, but waiting for the disk once."""

    def output(self, scope: Scope, name: str) -> Output | None:
        """The output with this id, or else the only one whose digest begins so. BadInput when several do.

        It is not a use. Anything but 8 to 64 hexadecimal digits names no output.
        """

    def output_bytes(self, scope: Scope, id: str, start: int, stop: int) -> bytes:
        """The bytes from `start` up to `stop`, as far as there are any. NotFound when there is no such output."""

    def output_lines(self, scope: Scope, id: str, first: int, last: int) -> bytes:
        """The lines from `first` (1 is the first) to `last`, both included, with their line ends, as far as there are
        any. NotFound when there is no such output."""

    def touch_output(self, scope: Scope, id: str, now: int) -> bool:
        """Note a use. False when there is no such output."""

    def outputs(self, scope: Scope, limit: int) -> OutputPage:
        """Last used first."""

    def delete_output(self, scope: Scope, id: str, stamp: Stamp) -> bool:
        """Leave only a tombstone. False when there is no such output."""

    def purge_outputs(self, scope: Scope, ids: Sequence[str], stamp: Stamp) -> int:
        """Delete these, cited or not, with all that is noted of their calls and reads. The tombstones do not say how to
        get them again. How many were there."""

    def clear_outputs(self, scope: Scope, stamp: Stamp) -> int:
        """Delete all, cited or not. How many there were."""

    def prune_outputs(
        self,
        scope: Scope,
        *,
        now: int,
        max_age_ms: int | None,
        max_bytes: int | None,
        keep: frozenset[str] = frozenset(),
        most: int = 100,
    ) -> Pruned:
        """Delete outputs not used for longer than `max_age_ms`, then more until the sizes add up to `max_bytes` or
        less. The least recently used go first; at most `most` go at once; None is no limit.

        What `keep` names or an entry cites stays, however old.
        """

    def cited(self, scope: Scope, ids: Iterable[str]) -> frozenset[str]:
        """Those of the ids that stand in the text of an entry, done or not, in small letters or capitals.

        Messages do not count: a conversation names every output it ever saw, and would keep them all for good.
        """

    def output_stats(self, scope: Scope) -> OutputStats: ...

    def index_outputs(self, scope: Scope, most: int) -> int:
        """Index outputs that wait for it, the newest first, until about so many bytes are read. How many still wait."""

    def gather_outputs(self, scope: Scope, seek: Seek) -> Gathered:
        """Like `gather`, among the pieces of indexed outputs. Literals are not looked for."""

    def tombstone(self, scope: Scope, id: str) -> Tombstone | None:
        """What an output was that is gone. None when it is there, again or still, and when it never was."""

    def dump_outputs(self, scope: Scope) -> Iterator[tuple[Output, tuple[bytes, ...]] | Tombstone]:
        """All outputs with their compressed chunks, then all tombstones, each in the order of ids. One at a time."""

    def add_outputs(self, scope: Scope, arriving: Iterable[Arriving]) -> int:
        """Add what is not there yet, all of it or nothing. How many outputs were added.

        BadInput names the line of what is not what it says it is, Conflict an id that belongs to another content.
        """


class Store(OutputStore, CallStore, VectorStore, Protocol):
    """A place that keeps entries. `place` names it in messages and never holds a password."""

    place: str

    def read(self, scope: Scope, kind: str, key: str) -> Entry | None:
        """The entry as it is now."""

    def edit(self, scope: Scope, kind: str, key: str | None, decide: Decide, stamp: Stamp) -> Change:
        """Read, decide, write and record the event, all in one transaction.

        Without a key the store mints one: the kind, an underscore and the Unix milliseconds, made unique and
        increasing within the project whatever the clock does. The session named in the stamp comes to exist.
        """

    def edit_all(self, scope: Scope, edits: Sequence[tuple[str, str, Decide]], stamp: Stamp) -> tuple[Change, ...]:
        """Edits by kind and key, one after the other but all or none, each with its event."""

    def erase(self, scope: Scope, seqs: Sequence[int]) -> int:
        """Forget what entries were before these changes, for good. The changes stay, with `erased` in their detail.

        Spellings of tags that no entry carries any more go too. How many there was something to forget of.
        """

    def scrub(self) -> bool:
        """See to it that what was deleted or erased is not left behind in unused parts of the store's own files.

        False when somebody else who is reading keeps it from that, or when the store's files are not ours.
        """

    def append(self, scope: Scope, kind: str, drafts: Sequence[tuple[str, Draft]], stamp: Stamp) -> tuple[Entry, ...]:
        """Add entries by key, all or none, without events. Conflict when one of the keys is taken.

        For what is written once and by the hundred. The session named in the stamp comes to exist.
        """

    def list(self, scope: Scope, query: Listing) -> Page:
        """Newest first (updated_at, then key)."""

    def earlier(
        self, scope: Scope, kind: str, before: str | None, *, include_done: bool = False, limit: int = 50
    ) -> tuple[Entry, ...]:
        """Those with the largest keys below `before`, largest first: of kinds whose keys tell when, the newest."""

    def containing(self, scope: Scope, query: Listing, needle: str) -> Page:
        """Entries whose folded text contains the folded needle, by position, then newest first. The text of an entry is
        its content; that of memory begins with its key and a line end."""

    def matching(self, scope: Scope, query: Listing, words: Words) -> tuple[Entry, ...]:
        """Entries that match a word query, at most query.limit. With `every` those made last come first; without
        it those that hold the most, by the store's own ranking."""

    def gather(self, scope: Scope, kinds: tuple[str, ...], seek: Seek) -> Gathered:
        """What a question finds among the entries of these kinds, for recall/rank.py to put in order.

        When every word is too common, the newest entries that hold all of them stand for the rest.
        """

    def texts(self, scope: Scope, docs: Sequence[int]) -> dict[int, Entry]:
        """Entries by the numbers `gather` gave. One that is gone since is left out."""

    def tags(self, scope: Scope, kind: str, session: str) -> tuple[TagCount, ...]:
        """Tags of the open entries with counts, in alphabetical order."""

    def tally(self, scope: Scope, kind: str, session: str) -> Tally: ...

    def events(self, scope: Scope, query: EventQuery) -> tuple[Event, ...]:
        """Newest first."""

    def event(self, scope: Scope, seq: int) -> Event | None: ...

    def dump(self, scope: Scope) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """All entries and events of a project as ("entry" | "event", record), in a stable order, from one moment."""

    def load(
        self,
        scope: Scope,
        entries: Iterable[Entry],
        records: Iterable[Mapping[str, Any]],
        arriving: Iterable[Arriving] = (),
    ) -> int:
        """Put a dump into an empty project exactly as it was. The number of entries; Conflict when not empty."""

    def projects(self, tenant: str) -> tuple[str, ...]: ...

    def usage(self, tenant: str) -> Usage: ...

    def backup(self, target: str) -> None:
        """A consistent copy at a path that must not exist yet."""

    def check(self) -> tuple[Finding, ...]:
        """A health report: reads everything and verifies every checksum."""

    def searches(self) -> Mapping[str, int]:
        """How many searches were answered where since the store was opened: by a "replica", or else by the primary and
        why. Nothing where no replica is set."""

    def close(self) -> None: ...


# Compact JSON. Control characters come out escaped, so it is safe between the separators of `fingerprint`.
to_json: Callable[[object], str] = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def fingerprint(scope: Scope, entry: Entry, tags: str, extra: str) -> bytes:
    """SHA-256 over every field. The content comes last, so no other field can run into it."""
    parts = (
        f"{scope.tenant}\x1f{scope.project}\x1f{entry.kind}\x1f{entry.key}\x1f{entry.session}\x1f{entry.origin}\x1f"
        f"{entry.version}\x1f{entry.created_at}\x1f{entry.updated_at}\x1f{entry.done:d}{entry.pinned:d}\x1f"
        f"{tags}\x1f{extra}\x1f{entry.content}"
    )
    return checksum(parts.encode())


def entry_record(entry: Entry) -> dict[str, Any]:
    """An entry as a JSON object: the form in events and exports. `entry_from` is its inverse."""
    record = entry._asdict()
    record["tags"] = list(entry.tags)
    record["extra"] = dict(entry.extra)
    return record


def entry_from(record: Mapping[str, Any]) -> Entry:
    fields = {name: record[name] for name in Entry._fields}
    fields["tags"] = tuple(fields["tags"])
    fields["extra"] = fields["extra"] or EMPTY
    return Entry(**fields)
