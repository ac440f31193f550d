"""The Store contract: four small protocols (entries, outputs, call log, vectors) and a Store that has one of each.

The second half of the contract is tests/contract, which runs on every store. Rules for every method:

- One method is one transaction. When a write returns, a power cut does not lose it; when it raises, nothing changed.
- Every change of an entry is written together with its event. History, undo and the activity log are read from events.
- Messages are entries without events: they are appended once and change when they are purged, which history lists.
- Outputs have no events: they are immutable, and a deleted output leaves a tombstone.
- The call log is committed without fsync; a power cut may lose its latest records.
- Every entry carries a checksum over all its fields. A read that does not match raises StoreDamaged.
- `decide` functions are pure and may be called more than once (a store may have to retry); they raise to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

from limpet.light import Any, Protocol, json
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
from limpet.record import NamedTuple

# --- entries ----------------------------------------------------------------------------------------------------------


class Delete:
    """What a `decide` function returns to delete the entry."""


DELETE = Delete()
Decide = Callable[[Entry | None], Draft | Delete | None]  # None: leave the entry as it is


class Follow(NamedTuple):
    """A decision that also sees what the edit before it wrote, whose key the store may have minted."""

    decide: Callable[[Entry | None, Entry], Draft | Delete | None]


Edit = tuple[str, str | None, Decide | Follow]  # kind, key (None: mint one), decision


class Listing(NamedTuple):
    """Which entries: of these kinds, of a session (None: of any session), with all the tags."""

    kinds: tuple[str, ...]
    session: str | None = None
    tags: tuple[str, ...] = ()  # folded; an entry must carry all of them
    include_done: bool = False
    limit: int = 1_000
    tags_any: tuple[str, ...] = ()  # folded; an entry must carry one of them
    include_replaced: bool = False  # what another entry has replaced, and what has expired
    now: int = 0  # milliseconds: entries that have expired by then are left out
    pinned: bool = False  # pinned ones alone


class Page(NamedTuple):
    """Entries in order, and the total, so that a caller can say how many were left out."""

    entries: tuple[Entry, ...]
    total: int
    more: bool = False  # whether there may be more than the total: a search does not count everything


class Words(NamedTuple):
    """A word query: groups of alternative words, folded. Words with the same stem count as the same word.

    `every`: each group must occur; otherwise one group is enough.
    """

    groups: tuple[tuple[str, ...], ...]
    every: bool = True


class EventQuery(NamedTuple):
    kind: str | None = None
    key: str | None = None
    session: str | None = None
    operation: str | None = None
    since: int | None = None  # milliseconds, inclusive
    until: int | None = None  # milliseconds, exclusive
    before_seq: int | None = None
    limit: int = 50


# --- candidates for recall --------------------------------------------------------------------------------------------


class Document(NamedTuple):
    """The metadata that recall ranks a text by before reading it. Texts are numbered in order of creation."""

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
    start: int = 0  # of a piece of an output: its offset in the output, in bytes
    line: int = 1  # and the line at that offset
    expires_at: int | None = None
    replaced: bool = False  # by another entry


Positions = Mapping[int, tuple[int, ...]]  # of one word: document number to word offsets within the document
SOMEWHERE = (-2,)  # in place of offsets: the document has the word at an unknown offset, adjacent to nothing


class CandidateQuery(NamedTuple):
    """What to look for. `order`, `accepts` and `neighbours` are pure: which texts come first, and which may match."""

    words: tuple[str, ...]  # folded; words with the same stem count as the same word
    literals: tuple[str, ...]  # folded strings that may occur anywhere, also inside words
    order: Callable[
        [Sequence[Positions], Sequence[int], Sequence[Positions], Mapping[int, int]], Sequence[int]
    ]  # word positions, counts, literals, sizes of texts in bytes; without sizes all texts count as equally long
    accepts: Callable[[Document], bool]
    neighbours: Callable[[Document], int]  # how many texts before and after a match are candidates too
    limit: int  # candidates
    common_above: int  # a word in more texts than this is not followed everywhere, unless the budget allows it
    nominated: tuple[int, ...] = ()  # candidates even without a matching word
    budget: int = 0  # texts of more common words that are followed all the same, the rarest words first
    rare_only: bool = False  # common words are left out


class Candidates(NamedTuple):
    """The positions of words and literals, and the metadata of the candidates.

    A common word is looked up in the texts that hold a rarer one, so its positions are incomplete.
    """

    positions: tuple[Positions, ...]
    counts: tuple[int, ...]  # per word, roughly how many texts hold it
    common: frozenset[int]  # the common words, by index
    literals: tuple[Positions, ...]
    docs: tuple[int, ...]  # accepted texts: those with a word or literal, most promising first, then their neighbours
    documents: Mapping[int, Document]  # metadata of these and of the texts around them
    total: int  # texts of these kinds in the project, roughly
    nominated: tuple[int, ...] = ()


class Entries(Protocol):
    """The entries of a store, their search index, and the events that record every change."""

    def read(self, scope: Scope, kind: str, key: str) -> Entry | None: ...

    def edit(self, scope: Scope, kind: str, key: str | None, decide: Decide, stamp: Stamp) -> Change:
        """Read, decide, write and record the event, all in one transaction.

        Without a key the store mints one: the kind, an underscore and the Unix milliseconds, made unique and
        increasing within the project even if the clock goes back. The session named in the stamp is created if need be.
        A stamp with a retry that is known makes nothing: the changes of the first call come back.
        """

    def edit_all(
        self,
        scope: Scope,
        edits: Sequence[Edit],
        stamp: Stamp,
        incoming: Iterable[Incoming] | None = None,
    ) -> tuple[Change, ...]:
        """Edits by kind and key, in order, all or none, each with its event. The store mints the key where it is None.

        The outputs of `incoming` are imported in the same transaction, before the entries that cite them.
        """

    def append(self, scope: Scope, kind: str, drafts: Sequence[tuple[str, Draft]], stamp: Stamp) -> tuple[Entry, ...]:
        """Add entries by key, all or none, without events. Conflict when one of the keys is taken.

        For entries that are written once and by the hundred. The session named in the stamp is created if need be.
        """

    def erase(self, scope: Scope, seqs: Sequence[int]) -> int:
        """Remove the previous versions that these changes recorded. The changes stay, with `erased` in their detail.

        Spellings of tags that no entry carries any more go too. Returns how many changes had something to remove.
        """

    def list(self, scope: Scope, query: Listing) -> Page:
        """Newest first (updated_at, then key)."""

    def earlier(
        self, scope: Scope, kind: str, before: str | None, *, include_done: bool = False, limit: int = 50, now: int = 0
    ) -> tuple[Entry, ...]:
        """The entries with the largest keys below `before`, largest first. For kinds with time in the key: newest.

        Those that have expired by `now` are left out, unless it is 0.
        """

    def containing(self, scope: Scope, query: Listing, needle: str, words: Words | None = None) -> Page:
        """Entries whose folded text contains the folded needle, or which match the words. The text of an entry is its
        content; that of memory begins with its key and a line end.

        First come those with every word of the needle as a word, of these the ones that contain it as it is; then
        those that contain it inside words; then those that match the words alone. The shortest first, then the newest.
        When the first fill the page and leave one over, nothing else is looked for. The newest NOTES_COUNTED are put in
        order. Then there may be `more` than the total.
        """

    def matching(self, scope: Scope, query: Listing, words: Words) -> tuple[Entry, ...]:
        """Entries that match a word query, at most query.limit. With `every`, newest first; without it by the store's
        own ranking."""

    def alike(self, scope: Scope, kind: str, text: str, now: int) -> tuple[Entry, ...]:
        """Open notes or memories that may say the same as a text, to be compared with it: a few of those that share its
        longest words. All that differ in case, spaces or numbers alone are among them, as long as these are few; of
        those that have another word somewhere, most are."""

    def candidates(self, scope: Scope, kinds: tuple[str, ...], query: CandidateQuery) -> Candidates:
        """The candidates for a question among the entries of these kinds, for recall/rank.py to rank.

        When every word is too common, the newest entries that hold all of them are the candidates.
        """

    def texts(self, scope: Scope, docs: Sequence[int]) -> dict[int, Entry]:
        """Entries by the document numbers of `candidates`. Entries deleted since are left out."""

    def tags(self, scope: Scope, kind: str, session: str, now: int = 0) -> tuple[TagCount, ...]:
        """Tags of the open entries with counts, in alphabetical order. Entries that have expired by `now` do not count,
        here and in a tally."""

    def tally(self, scope: Scope, kind: str, session: str, now: int = 0) -> Tally: ...

    def events(self, scope: Scope, query: EventQuery) -> tuple[Event, ...]:
        """Newest first."""

    def event(self, scope: Scope, seq: int) -> Event | None: ...

    def numbers(self, scope: Scope, kind: str, keys: Sequence[str]) -> dict[str, int]:
        """The numbers of the changes that first made these entries, deleted since or not. Keys without one are left
        out: messages have no changes, and an import may bring an entry without its history."""

    def dump(self, scope: Scope) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """All entries and events of a project as ("entry" | "event", record), in a stable order, from one snapshot."""


# --- outputs ----------------------------------------------------------------------------------------------------------


class StoredOutput(NamedTuple):
    """An output as the store has it, and whether this call added it."""

    output: Output
    new: bool


class OutputPage(NamedTuple):
    """Outputs in order, and the total."""

    outputs: tuple[Output, ...]
    total: int


class Pruned(NamedTuple):
    deleted: int
    freed: int  # bytes, before compression


class OutputStats(NamedTuple):
    entries: int
    total_bytes: int  # before compression
    stored_bytes: int  # after compression
    oldest: int | None  # milliseconds, of the first keep
    newest: int | None


class IncomingOutput(NamedTuple):
    """An output of an import, and its line in the imported file."""

    line: int
    output: Output
    chunks: tuple[bytes, ...]  # compressed


class IncomingTombstone(NamedTuple):
    line: int
    tombstone: Tombstone


Incoming = IncomingOutput | IncomingTombstone


class Outputs(Protocol):
    """Kept outputs: big results, addressed by content, each stored once per project.

    Everything that is returned was checked against its checksum. Ids are exact, except for `find`.
    """

    def keep(self, scope: Scope, draft: OutputDraft, body: bytes, stamp: Stamp) -> StoredOutput:
        """Store the bytes. Bytes that are already stored count as a use of that output, and the draft is ignored."""

    def keep_all(
        self, scope: Scope, drafts: Sequence[tuple[OutputDraft, bytes]], stamp: Stamp
    ) -> tuple[StoredOutput, ...]:
        """Store several, all or none, in one transaction."""

    def find(self, scope: Scope, name: str) -> Output | None:
        """The output with this id, or else the single one whose digest begins with it. BadInput when several do.

        Does not count as a use. A name is 8 to 64 hexadecimal digits; anything else names no output.
        """

    def read_bytes(self, scope: Scope, id: str, start: int, stop: int) -> bytes:
        """The bytes from `start` up to `stop`, as far as there are any. NotFound when there is no such output."""

    def read_lines(self, scope: Scope, id: str, first: int, last: int) -> bytes:
        """Lines `first` (counted from 1) to `last`, both included, with their line ends, as far as there are any.
        NotFound when there is no such output."""

    def touch(self, scope: Scope, id: str, now: int) -> bool:
        """Count a use. False when there is no such output."""

    def list(self, scope: Scope, limit: int) -> OutputPage:
        """Most recently used first."""

    def delete(self, scope: Scope, id: str, stamp: Stamp) -> bool:
        """Replace the output with a tombstone. False when there is no such output."""

    def purge(self, scope: Scope, ids: Sequence[str], stamp: Stamp) -> int:
        """Delete these, cited or not, with the log of their calls and reads. The tombstones do not say how to produce
        the outputs again. Returns how many there were."""

    def clear(self, scope: Scope, stamp: Stamp) -> int:
        """Delete all, cited or not. Returns how many there were."""

    def prune(
        self,
        scope: Scope,
        *,
        now: int,
        max_age_ms: int | None,
        max_bytes: int | None,
        keep: frozenset[str] = frozenset(),
        most: int = 100,
    ) -> Pruned:
        """Delete outputs that were not used for longer than `max_age_ms`, then more until the sizes add up to at most
        `max_bytes`. Least recently used first, at most `most` in one call; None means no limit.

        Outputs that `keep` names or an entry cites stay, however old.
        """

    def cited(self, scope: Scope, ids: Iterable[str]) -> frozenset[str]:
        """The ids that occur in the text of an entry, done or not, in any case.

        Messages do not count: a conversation names every output it ever saw, and would keep them all forever.
        """

    def stats(self, scope: Scope) -> OutputStats: ...

    def index(self, scope: Scope, most: int) -> int:
        """Index outputs that are not indexed yet, newest first, until about so many bytes are read. Returns how many
        remain."""

    def candidates(self, scope: Scope, query: CandidateQuery) -> Candidates:
        """Like `Entries.candidates`, among the pieces of indexed outputs. Ignores literals."""

    def last_deleted(self, scope: Scope, by: Callable[[str], bool]) -> Tombstone | None:
        """The tombstone of the output that was deleted last by somebody of whom `by` is true. Those that were pruned
        do not count."""

    def tombstone(self, scope: Scope, id: str) -> Tombstone | None:
        """The tombstone of a deleted output. None if the output exists, and if the id is unknown."""

    def dump(self, scope: Scope) -> Iterator[tuple[Output, tuple[bytes, ...]] | Tombstone]:
        """All outputs with their compressed chunks, then all tombstones, each in the order of ids, one by one."""

    def add(self, scope: Scope, incoming: Iterable[Incoming]) -> int:
        """Import outputs that are not stored yet, all or none. Returns how many were added.

        BadInput names the line whose content does not match its digest, Conflict an id that is taken by other content.
        """


# --- the call log -----------------------------------------------------------------------------------------------------


class LastResult(NamedTuple):
    """The last big result of a call."""

    id: str
    digest: str
    at: int


class CallRecord(NamedTuple):
    """A big result that was returned. Tokens are counted by the tokenizer named."""

    session: str
    tool: str
    call: str  # a hash of the call; "" when it is not known
    id: str
    digest: str
    at: int
    new: bool  # to the store
    repeated: bool  # answered by a diff against the last result
    tokenizer: str
    observed: int  # tokens the result would have cost
    returned: int  # tokens of the text returned in its place


class ReadRecord(NamedTuple):
    """A read of an output. `what` is the part that was read, as JSON-compatible values."""

    session: str
    tool: str
    id: str
    what: Sequence[Any]
    at: int
    tokenizer: str
    tokens: int


class Savings(NamedTuple):
    """The tokens that a tool's big results cost a session, and the tokens they would have cost."""

    session: str
    tool: str
    tokenizer: str
    calls: int  # big results
    kept: int  # of these, those with new content
    repeats: int  # of these, those answered by a diff
    reads: int
    observed: int
    returned: int
    read_back: int

    @property
    def saved(self) -> int:
        """Negative when reading it back cost more than keeping it out."""
        return self.observed - self.returned - self.read_back


OPENED, USEFUL = "opened", "useful"


class Uses(NamedTuple):
    """How often an entry was opened, or called useful, and when it was last."""

    kind: str
    key: str
    what: str
    times: int
    at: int


class CallLog(Protocol):
    """The calls and reads around outputs: repeated results, earlier reads, tokens saved. And the uses of entries."""

    def last_result(self, scope: Scope, session: str, call: str) -> LastResult | None: ...

    def record_call(self, scope: Scope, record: CallRecord, forget_before: int) -> None:
        """Add it to the savings and, if the call is known, make it the last result. Also removes some records older
        than `forget_before`; the savings keep their totals."""

    def record_read(self, scope: Scope, record: ReadRecord) -> tuple[Any, ...]:
        """Count a use of the output and add the read to the savings. Returns the session's earlier reads of the output,
        oldest first."""

    def savings(self, scope: Scope, session: str | None = None) -> tuple[Savings, ...]:
        """By session and tool; None means every session."""

    def record_use(self, scope: Scope, kind: str, key: str, what: str, at: int) -> None:
        """Count that an entry was opened (OPENED) or called useful (USEFUL)."""

    def uses(self, scope: Scope, kind: str | None = None, key: str | None = None) -> tuple[Uses, ...]:
        """The counts of all entries, or of one, by kind, key and what."""


# --- vectors ----------------------------------------------------------------------------------------------------------


class Unembedded(NamedTuple):
    """A text without an embedding. `hash` is its entry's checksum: it differs once the entry has changed."""

    doc: int
    hash: bytes
    text: str


class Vector(NamedTuple):
    """The embedding of a text. Vectors stored together share a number; numbers grow within a project."""

    number: int
    doc: int
    body: bytes


class VectorState(NamedTuple):
    """Which model made the vectors of a project, and what it still has to do."""

    model: str  # of the stored vectors; empty for none
    waiting: int  # texts without a vector of this model
    docs: tuple[int, ...]  # of these, the newest: older vectors do not fit them any more


class Vectors(Protocol):
    """Embeddings of entries. They are computed after a write, which need not wait for a model. All vectors of a project
    are of one model.

    Deleting or changing a text removes its vector in the same transaction; a new or changed text is queued for one.
    """

    def missing(self, scope: Scope, model: str, most: int) -> tuple[Unembedded, ...]:
        """Texts that wait for a vector, newest first. Vectors of another model are removed, and all texts queued."""

    def keep(self, scope: Scope, model: str, embedded: Sequence[tuple[Unembedded, bytes]]) -> int:
        """Store the vectors of texts that have not changed since. Returns how many. Committed without fsync: after a
        power cut the texts of lost vectors are still queued."""

    def after(self, scope: Scope, model: str, number: int) -> Sequence[Vector]:
        """Vectors with a higher number, in order; none if the vectors are of another model."""

    def state(self, scope: Scope) -> VectorState:
        """Changes nothing, unlike `missing`."""

    def count(self, scope: Scope) -> int:
        """How many texts have a vector."""


# --- the store --------------------------------------------------------------------------------------------------------


class Usage(NamedTuple):
    """What a tenant stores, over all of its projects."""

    entries: int
    output_bytes: int  # before compression


class Finding(NamedTuple):
    """One line of a health report."""

    name: str
    ok: bool
    detail: str


class Distribution(NamedTuple):
    """What there is to distribute: tables with their rows, and the servers that the rows go to."""

    tables: tuple[tuple[str, int], ...]
    servers: tuple[str, ...]
    done: int  # tables that are distributed already


class Restored(NamedTuple):
    """How many of each a restore brought back."""

    projects: int
    entries: int
    changes: int
    outputs: int


Progress = Callable[[int], None]  # called with the number of rows copied so far


def no_progress(count: int) -> None:
    """The default for `Progress`."""


class Store(Protocol):
    """A database with four parts. `place` names it in messages, without its password.

    One that does not exist is empty, and the first write makes it.
    """

    @property
    def place(self) -> str: ...

    def create(self) -> None:
        """Make the store now, if it does not exist."""

    @property
    def entries(self) -> Entries: ...

    @property
    def outputs(self) -> Outputs: ...

    @property
    def calls(self) -> CallLog: ...

    @property
    def vectors(self) -> Vectors: ...

    def load(
        self,
        scope: Scope,
        entries: Iterable[Entry],
        records: Iterable[Mapping[str, Any]],
        incoming: Iterable[Incoming] = (),
    ) -> int:
        """Load a dump into an empty project exactly as it was. Returns the number of entries; Conflict when the project
        is not empty."""

    def moment(self, tenant: str) -> AbstractContextManager[None]:
        """For a thread that reads several times: a server that is not busy then has one transaction of it. What the
        thread itself writes meanwhile is seen, what others write may be."""

    def projects(self, tenant: str) -> tuple[str, ...]: ...

    def usage(self, tenant: str) -> Usage: ...

    def probe_write(self) -> None:
        """Do all that a write needs, and write nothing. Raises what a write would: StoreBusy, StoreGone …"""

    def scrub(self) -> bool:
        """Remove deleted and erased data from unused parts of the store's own files.

        False when a concurrent reader prevents it, or when the store has no files of its own.
        """

    def backup(self, target: str, progress: Progress = no_progress) -> tuple[Finding, ...]:
        """Write a consistent copy of all tenants to a new file, which is an embedded store, and check it. The findings
        report damage of the store itself, which the copy then has too; the copy is kept nevertheless."""

    def restore(self, source: str, progress: Progress = no_progress) -> Restored:
        """Load a backup of any store into this one, which must be empty: all or nothing. The backup is not changed."""

    def check(self) -> tuple[Finding, ...]:
        """A health report: reads everything and verifies every checksum."""

    def distribute(self, *, dry_run: bool = False) -> Distribution:
        """Distribute the tables over the servers of a cluster by tenant, as far as they are not."""

    def obstacles(self) -> tuple[Finding, ...]:
        """What keeps the store from being written at the moment, each with its cure: the disk, rights, a held lock."""

    def searches(self) -> Mapping[str, int]:
        """How many searches were answered where since the store was opened: by a "replica", or by the primary and why.
        Empty without a replica."""

    def close(self) -> None: ...


# --- entries as JSON --------------------------------------------------------------------------------------------------


def to_json(value: object) -> str:
    """Compact JSON. Control characters come out escaped, so it is safe between the separators of a fingerprint."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


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
