"""The entries of the embedded store: reads, searches, writes and their events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice

import apsw

from limpet import errors, limits
from limpet.catalogue.late import LateModule
from limpet.light import TYPE_CHECKING, Any, TypeVar, cast
from limpet.model import EMPTY, SESSION, Change, Draft, Entry, Event, Scope, Stamp, TagCount, Tally
from limpet.redaction.entries import masked, refuse_secret_session
from limpet.store import (
    CandidateQuery,
    Candidates,
    Decide,
    Delete,
    Edit,
    EventQuery,
    Finding,
    Incoming,
    Listing,
    Page,
    Words,
    entry_record,
    to_json,
)
from limpet.stores.shared import retries, rows
from limpet.stores.shared.rows import E_FIELDS, FIELDS, folded_tags, indexed_text
from limpet.stores.shared.sql import Row
from limpet.stores.sqlite.connection import Connection
from limpet.stores.sqlite.database import Database
from limpet.stores.sqlite.index import (
    NewWords,
    WordIndex,
    any_of,
    similar,
    sketch,
    sketch_all,
    source_of,
    tidy,
    waits,
)
from limpet.text import words as analyse

if TYPE_CHECKING:
    from limpet.stores.shared import hits, outputs
    from limpet.stores.sqlite import candidates as search
else:
    hits, outputs = LateModule("stores.shared.hits"), LateModule("stores.shared.outputs")
    search = LateModule("stores.sqlite.candidates")  # imported at the first search: hooks and most commands need none

T = TypeVar("T")
KEY, UPDATED_AT = (FIELDS.split(", ").index(name) for name in ("key", "updated_at"))  # in a row
TAGS_WALKED = 1_000  # newest entries among which a page of a tag is looked for first: a millisecond
INDEXED_TOGETHER = 128  # texts, at most, that wait for the word index: some 8 ms of work
LOADED_TOGETHER = 1_000  # the same for an import, which waits for all of them
KNOWN_LABELS = 2_000  # spellings of tags that a process caches

# The statements of this module are built from constants; every value is a parameter.
ONE_ENTRY = f"SELECT {FIELDS} FROM entries WHERE tenant = ? AND project = ? AND kind = ? AND key = ?"  # noqa: S608
REPLACE_ENTRY = f"UPDATE entries SET ({', '.join(FIELDS.split(', ')[2:])}) = (?{', ?' * 10}) WHERE rowid = ?"  # noqa: S608
# The primary key is in this order, so that every page costs the same.
EARLIER = (
    f"SELECT {FIELDS} FROM entries WHERE tenant = ? AND project = ? AND kind = ? AND key < ? "  # noqa: S608
    "AND done <= ? AND (? = 0 OR +expires_at IS NULL OR +expires_at > ?) ORDER BY key DESC LIMIT ?"
)
BY_NUMBER = (
    f"SELECT e.rowid, {E_FIELDS} FROM json_each(?) j CROSS JOIN entries e ON e.rowid = j.value "  # noqa: S608
    "WHERE e.tenant = ? AND e.project = ?"
)
NOW = "SELECT 1 FROM pieces LIMIT 1"  # a read, so that the connection knows whether others have written
ALIKE = (
    f"SELECT {E_FIELDS} FROM json_each(?) j CROSS JOIN entries e ON e.rowid = j.value "  # noqa: S608
    "WHERE e.tenant = ? AND e.project = ? AND e.kind = ? AND e.done = 0 AND e.replaced = 0 "
    "AND (+e.expires_at IS NULL OR +e.expires_at > ?) AND (j.key < ? OR length(e.content) BETWEEN ? AND ?) LIMIT ?"
)
STORED = f"tenant, project, {FIELDS}"
WAITING = "SELECT rowid FROM entries WHERE rowid > (SELECT last FROM indexed)"
WAITING_ROW = f"SELECT rowid, {STORED} FROM entries WHERE rowid = ?"  # noqa: S608
NEW_ENTRY_AS = f"INSERT INTO entries (rowid, {STORED}) VALUES (?{', ?' * len(STORED.split(', '))})"  # noqa: S608
TAKEN = (
    "SELECT EXISTS (SELECT 1 FROM events WHERE tenant = ?1 AND project = ?2 AND kind = ?3 AND key = ?4) "
    "OR EXISTS (SELECT 1 FROM entries WHERE tenant = ?1 AND project = ?2 AND kind = ?3 AND key = ?4)"
)
NEXT_CLOCK = "UPDATE projects SET clock = clock + 1 WHERE tenant = ? AND project = ? RETURNING clock"
ADD_TO_TALLY = (
    "INSERT INTO tallies VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count"
)
ONE_TALLY = "SELECT count FROM tallies WHERE tenant = ? AND project = ? AND kind = ? AND session = ? AND tag = ?"
TAG_COUNTS = (
    "SELECT tag, label, count FROM tallies WHERE tenant = ? AND project = ? AND kind = ? AND session = ? "
    "AND tag <> '' AND count > 0 ORDER BY tag"
)
EXPIRED = "FROM entries WHERE tenant = ? AND project = ? AND kind = ? AND expires_at <= ?"
ANY_EXPIRED = f"SELECT 1 {EXPIRED} LIMIT 1"
EXPIRED_OPEN = f"SELECT tags {EXPIRED} AND done = 0 AND (? = '' OR session = ?)"
EXPIRED_TAGS = f"SELECT tags {EXPIRED} AND done = 0 AND tags <> '[]' AND (? = '' OR session = ?)"
LAST_BEFORE = "SELECT seq FROM events WHERE tenant = ? AND project = ? AND at < ? ORDER BY seq DESC LIMIT 1"
FIRST_CHANGES = (
    "SELECT v.key, v.seq FROM json_each(?) j CROSS JOIN events v "
    "ON v.tenant = ? AND v.project = ? AND v.kind = ? AND v.key = j.value AND v.version = 1"
)
NEW_EVENT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
EVENTS = (
    f"SELECT {', '.join(f'v.{name}' for name in rows.EVENT_FIELDS)}, v.detail, v.before, n.before, "  # noqa: S608
    f"{E_FIELDS} FROM events v "
    "LEFT JOIN events n ON n.tenant = v.tenant AND n.project = v.project AND n.kind = v.kind AND n.key = v.key "
    "AND n.version = v.version + 1 "
    "LEFT JOIN entries e ON e.tenant = v.tenant AND e.project = v.project AND e.kind = v.kind AND e.key = v.key "
    "AND e.version = v.version WHERE "
)
ERASE = (
    "UPDATE events SET before = NULL, detail = json_set(detail, '$.erased', json('true')) "
    "WHERE tenant = ? AND project = ? AND seq = ? AND before IS NOT NULL"
)
UNUSED_TAGS = "DELETE FROM tallies WHERE tenant = ? AND project = ? AND tag <> '' AND count = 0"
DUMP_ENTRIES = f"SELECT {FIELDS} FROM entries WHERE tenant = ? AND project = ? ORDER BY kind, key"  # noqa: S608
DUMP_EVENTS = (
    f"SELECT {', '.join(rows.EVENT_FIELDS)}, detail, before FROM events "  # noqa: S608
    "WHERE tenant = ? AND project = ? ORDER BY seq"
)


class SqliteEntries:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._place = db.path
        self._index = WordIndex()
        self._sessions: set[tuple[str, str, str]] = set()  # known to exist
        self._labels: dict[tuple[str, ...], str] = {}  # first spellings of tags

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, scope: Scope, kind: str, key: str) -> Entry | None:
        matches = self._db.rows(ONE_ENTRY, (scope.tenant, scope.project, kind, key))
        return self._named(scope, (kind, key), matches[0]) if matches else None

    def _entry(self, scope: Scope, row: Row) -> Entry:
        return rows.to_entry(self._place, scope, row)

    def _named(self, scope: Scope, name: tuple[str, str], row: Row) -> Entry:
        """An entry that was read by name. A damaged index may return another entry, which is intact in itself."""
        entry = self._entry(scope, row)
        if (entry.kind, entry.key) != name:
            raise errors.store_damaged(self._place, f"{name[0]} {name[1]!r}")
        return entry

    def list(self, scope: Scope, query: Listing) -> Page:
        def work(con: Connection) -> Page:
            # One kind at a time, because an index has the order of each.
            latest = [row for kind in query.kinds for row in _latest(con, scope, query._replace(kinds=(kind,)))]
            if len(query.kinds) > 1:
                latest.sort(key=lambda row: (row[UPDATED_AT], row[KEY]), reverse=True)
            total, more = _count(con, scope, query) if len(latest) >= query.limit else (len(latest), False)
            return Page(tuple(self._entry(scope, row) for row in latest[: query.limit]), total, more)

        return self._searching(work) if query.tags or query.tags_any else self._db.read(work)

    def earlier(
        self, scope: Scope, kind: str, before: str | None, *, include_done: bool = False, limit: int = 50, now: int = 0
    ) -> tuple[Entry, ...]:
        last = rows.LAST_KEY if before is None else before
        page = self._db.rows(EARLIER, (*scope, kind, last, int(include_done), now, now, limit))
        return tuple(self._entry(scope, row) for row in page)

    def containing(self, scope: Scope, query: Listing, needle: str, words: Words | None = None) -> Page:
        sought = hits.Sought.of(needle)
        unread: list[bool] = []

        def searches(con: Connection) -> Iterator[Sequence[hits.Hit]]:
            """One after the other: a later one runs when the page has room."""
            if words is None and not query.tags and (few := search.among_few(con, scope, query, sought)) is not None:
                yield [hit for hit in few if hit[0] == hits.AS_ASKED]
                yield few
                return
            yield (best := search.as_words(con, scope, query, sought, within=words is None))
            inside, all_read = search.inside_words(con, scope, query, sought, beside=bool(best))
            unread.append(not all_read)
            yield inside
            if words is not None:
                yield search.by_stem(con, scope, query, self._match(con, words))

        def work(con: Connection) -> Page:
            first, more = hits.together(searches(con), query.limit)
            return hits.page(first, more or any(unread), sought, query.limit, _Read(con, partial(self._entry, scope)))

        return self._searching(work)

    def matching(self, scope: Scope, query: Listing, words: Words) -> tuple[Entry, ...]:
        def work(con: Connection) -> tuple[Entry, ...]:
            newest = list(islice(self._waiting(con, scope, query, words), query.limit))
            match = self._match(con, words) if len(newest) < query.limit else None
            if match is not None:
                source, values = source_of(scope, query, match)
                # Newest first is the order of the index itself, read from its end: no scores are needed with `every`.
                order = "t.rowid DESC" if words.every else "t.rank"
                sql = f"SELECT {E_FIELDS} FROM {source} ORDER BY {order} LIMIT ?"  # noqa: S608
                newest += _of_layers(con, source, sql, (*values, query.limit - len(newest)))
            return tuple(self._entry(scope, row) for row in newest)

        # A write asks this too, and must not index for it. Tags are in the index alone.
        return self._searching(work) if query.tags or query.tags_any else self._db.snapshot(work)

    def _waiting(self, con: Connection, scope: Scope, query: Listing, words: Words) -> Iterator[Row]:
        """Matches among the texts that wait for the index: those with the most of the words, then the newest."""
        groups = [frozenset(analyse.terms([*group])) for group in words.groups if group]
        if query.tags or query.tags_any or not groups:
            return
        least = len(groups) if words.every else 1
        source, values = source_of(scope, query)
        sql = f"SELECT {E_FIELDS} FROM {source} AND e.rowid = ?"  # noqa: S608
        counted = [(sum(map(terms.isdisjoint, groups)), doc) for doc, terms in self._index.waiting_terms(con)]
        enough = [item for item in counted if len(groups) - item[0] >= least]
        for _, doc in sorted(enough, key=lambda item: item[0]):  # ties stay newest first
            yield from con.rows(sql, (*values, doc))

    def _match(self, con: Connection, words: Words) -> str | None:
        """A word query in the syntax of the index; None where no entry can match."""
        con.rows(NOW)
        groups = []
        for group in filter(None, words.groups):
            forms = {form for word in group for form in self._index.forms(con, word)}
            if not forms and words.every:
                return None  # every group is required, and no entry holds this one
            groups.append(any_of(forms))
        return (" AND " if words.every else " OR ").join(groups) or None

    def alike(self, scope: Scope, kind: str, text: str, now: int) -> tuple[Entry, ...]:
        def work(con: Connection) -> tuple[Entry, ...]:
            same, near = similar(con, scope, kind, text)
            if not near:
                return ()
            docs, among = to_json([*dict.fromkeys(same + near)]), (*scope, kind, now)
            values = (docs, *among, len(same), *rows.about_as_long(text), limits.DUPLICATES_COMPARED)
            return tuple(self._entry(scope, row) for row in con.execute(ALIKE, values))

        return self._db.read(work)

    def candidates(self, scope: Scope, kinds: tuple[str, ...], query: CandidateQuery) -> Candidates:
        def work(con: Connection) -> Candidates:
            return search.entry_candidates(con, self._index, scope, kinds, query)

        return self._searching(work, one_moment=True)

    def texts(self, scope: Scope, docs: Sequence[int]) -> dict[int, Entry]:
        return {row[0]: self._entry(scope, row[1:]) for row in self._db.rows(BY_NUMBER, (to_json([*docs]), *scope))}

    def tags(self, scope: Scope, kind: str, session: str, now: int = 0) -> tuple[TagCount, ...]:
        return self._db.read(lambda con: _tags(con, scope, kind, session, now))

    def tally(self, scope: Scope, kind: str, session: str, now: int = 0) -> Tally:
        def work(con: Connection) -> Tally:
            tally = _tally(con, scope, kind, session)
            expired = now and con.rows(ANY_EXPIRED, (*scope, kind, now))
            return rows.tally_of(tally.total, _tags(con, scope, kind, session, now)) if expired else tally

        return self._db.read(work)

    def events(self, scope: Scope, query: EventQuery) -> tuple[Event, ...]:
        conditions = rows.event_conditions(scope, query, "?")
        # Walking back from the newest event is fast where a page fills up soon. For one kind since a given time there
        # may be no event at all, and the walk would read all history. Times never decrease, so it can stop early.
        if query.kind is not None and query.since is not None:
            older = self._db.rows(LAST_BEFORE, (*scope, query.since))
            conditions["v.seq > ?"] = older[0][0] if older else 0
        sql = f"{EVENTS}{' AND '.join(conditions)} ORDER BY v.seq DESC LIMIT ?"
        newest = self._db.rows(sql, (*conditions.values(), query.limit))
        return tuple(rows.to_event(self._place, scope, row) for row in newest)

    def event(self, scope: Scope, seq: int) -> Event | None:
        events = self.events(scope, EventQuery(before_seq=seq + 1, limit=1))
        return events[0] if events and events[0].seq == seq else None

    def numbers(self, scope: Scope, kind: str, keys: Sequence[str]) -> dict[str, int]:
        return dict(self._db.rows(FIRST_CHANGES, (to_json([*keys]), *scope, kind)))

    # --- writing ------------------------------------------------------------------------------------------------------

    def edit(self, scope: Scope, kind: str, key: str | None, decide: Decide, stamp: Stamp) -> Change:
        new = NewWords()
        edits = ((kind, key, decide),)
        committed = False
        try:
            (change,) = self._db.write(partial(self._edit, scope=scope, edits=edits, stamp=stamp, new=new))
            committed = True
        finally:
            self._learn(new, committed)
        if kind == SESSION:
            self._sessions.discard((*scope, change.entry.key if change.seq else ""))
        else:
            self._sessions.add((*scope, stamp.session))
        return change

    def edit_all(
        self,
        scope: Scope,
        edits: Sequence[Edit],
        stamp: Stamp,
        incoming: Iterable[Incoming] | None = None,
    ) -> tuple[Change, ...]:
        if not edits and incoming is None:
            return ()
        new = NewWords()
        committed = False

        def importing(con: Connection) -> tuple[Change, ...]:
            outputs.import_outputs(con, scope, incoming or ())
            return self._edit(con, scope, edits, stamp, new)

        editing = partial(self._edit, scope=scope, edits=edits, stamp=stamp, new=new)
        try:
            # An import is read once.
            changes = self._db.write(editing) if incoming is None else self._db.write(importing, repeatable=False)
            committed = True
        finally:
            self._learn(new, committed)
        if any(kind != SESSION for kind, _, _ in edits) and not any(change.replayed for change in changes):
            self._sessions.add((*scope, stamp.session))
        self._sessions.difference_update({(*scope, key) for kind, key, _ in edits if kind == SESSION})
        return changes

    def _learn(self, new: NewWords, committed: bool) -> None:
        if committed:
            self._index.learn(new)
        else:
            self._labels.clear()  # one of them may come from the transaction that was rolled back

    def _edit(
        self,
        con: Connection,
        scope: Scope,
        edits: Sequence[Edit],
        stamp: Stamp,
        new: NewWords,
    ) -> tuple[Change, ...]:
        if new.begin():
            self._labels.clear()  # one of them may come from the transaction that was rolled back
        if first := retries.first_call(con, scope, stamp):
            return tuple(self._replayed(con, scope, seq, first.tally) for seq in first.seqs)
        changes: list[Change] = []
        for kind, key, decide in edits:
            if kind != SESSION and stamp.session:
                self._ensure_session(con, scope, stamp, new)
            before = None if key is None else self._before(con, scope, kind, key)
            draft = masked(kind, key, before, rows.decided(decide, before, changes), stamp)
            con.frees |= _frees(before, draft)
            if isinstance(draft, Draft) and draft.tags:
                draft = draft._replace(tags=tuple(self._spelling(con, (*scope, kind, tag)) for tag in draft.tags))
            if draft is None or rows.unchanged(before, draft):
                session = stamp.session if before is None else before.session
                changes.append(Change(0, before, before, _tally(con, scope, kind, session)))
            else:
                changes.append(self._write(con, scope, (kind, key), before, draft, stamp, new))
        self._index.catch_up(con, new, INDEXED_TOGETHER)
        if any(change.seq and change.after is None for change in changes):
            tidy(con, "terms")
        retries.remember(con, scope, stamp, tuple(changes))
        return tuple(changes)

    def _replayed(self, con: Connection, scope: Scope, seq: int, tally: Tally) -> Change:
        """A change that an earlier call made."""
        matches = con.rows(f"{EVENTS}v.tenant = ? AND v.project = ? AND v.seq = ?", (*scope, seq))
        return rows.replayed(rows.to_event(self._place, scope, matches[0]), tally)

    def append(self, scope: Scope, kind: str, drafts: Sequence[tuple[str, Draft]], stamp: Stamp) -> tuple[Entry, ...]:
        if not drafts:
            return ()
        new = NewWords()
        work = partial(self._append, scope=scope, kind=kind, drafts=drafts, stamp=stamp, new=new)
        entries = self._db.write(work)
        self._index.learn(new)
        self._sessions.add((*scope, stamp.session))
        return entries

    def _append(
        self,
        con: Connection,
        scope: Scope,
        kind: str,
        drafts: Sequence[tuple[str, Draft]],
        stamp: Stamp,
        new: NewWords,
    ) -> tuple[Entry, ...]:
        new.begin()
        self._ensure_session(con, scope, stamp, new)
        # The first change of a project is at `now` whether it needs a new time stamp or not.
        ((clock,),) = con.rows(
            "INSERT INTO projects VALUES (?, ?, 0, ?) ON CONFLICT DO UPDATE "
            "SET clock = max(clock, excluded.clock) RETURNING clock",
            (*scope, stamp.now),
        )
        added = []
        for key, draft in drafts:
            if self._before(con, scope, kind, key) is not None:
                raise errors.appended_before(kind, key)
            added.append(rows.next_entry(kind, key, None, draft, stamp, clock, 1))
            self._put(con, scope, None, added[-1], new)
        self._index.catch_up(con, new, INDEXED_TOGETHER)
        return tuple(added)

    def _before(self, con: Connection, scope: Scope, kind: str, key: str) -> Entry | None:
        matches = con.rows(ONE_ENTRY, (*scope, kind, key))
        return self._named(scope, (kind, key), matches[0]) if matches else None

    def _spelling(self, con: Connection, name: tuple[str, str, str, str]) -> str:
        """A tag as it was first spelled in its project. That stays the same, so it is cached."""
        *owner, tag = name
        key = (*owner, analyse.fold(tag))
        if key not in self._labels:
            sql = "SELECT label FROM tallies WHERE tenant = ? AND project = ? AND kind = ? AND session = '' AND tag = ?"
            labels = con.rows(sql, key)
            if not labels:
                return tag
            if len(self._labels) >= KNOWN_LABELS:
                self._labels.clear()
            self._labels[key] = str(labels[0][0])
        return self._labels[key]

    def _ensure_session(self, con: Connection, scope: Scope, stamp: Stamp, new: NewWords) -> None:
        if (*scope, stamp.session) in self._sessions or self._before(con, scope, SESSION, stamp.session):
            return
        refuse_secret_session(stamp)
        begin = stamp._replace(operation="begin_session", detail=EMPTY)
        self._write(con, scope, (SESSION, stamp.session), None, Draft(""), begin, new)

    def _write(
        self,
        con: Connection,
        scope: Scope,
        name: tuple[str, str | None],
        before: Entry | None,
        draft: Draft | Delete,
        stamp: Stamp,
        new: NewWords,
    ) -> Change:
        kind, key = name
        ((seq, clock),) = con.rows(
            "INSERT INTO projects VALUES (?, ?, 1, ?) ON CONFLICT DO UPDATE "
            "SET seq = seq + 1, clock = max(clock + ?, excluded.clock) RETURNING seq, clock",
            (*scope, stamp.now, key is None),
        )
        if key is None:
            while _is_taken(con, scope, kind, f"{kind}_{clock}"):  # by an import
                ((clock,),) = con.rows(NEXT_CLOCK, tuple(scope))
            key, version = f"{kind}_{clock}", 1
        else:
            version = 1 + (before.version if before else _last_version(con, scope, kind, key))
        after = None
        if isinstance(draft, Draft):
            after = rows.next_entry(kind, key, before, draft, stamp, clock, version)
        self._put(con, scope, before, after, new)
        event = (*scope, seq, clock, stamp.by, stamp.operation, stamp.session, kind, key, version)
        con.execute(NEW_EVENT, (*event, to_json(dict(stamp.detail)), rows.version_to_json(scope, before)))
        counted = after or before
        return Change(seq, before, after, _tally(con, scope, kind, counted.session if counted else ""))

    def _put(self, con: Connection, scope: Scope, before: Entry | None, after: Entry | None, new: NewWords) -> None:
        """Change the row, its counts and its index from `before` to `after`."""
        if before is None:
            row = rows.to_row(scope, after) if after else ()
            con.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            doc = con.last_insert_rowid()
        else:
            name = "tenant = ? AND project = ? AND kind = ? AND key = ?"
            ((doc,),) = con.rows(f"SELECT rowid FROM entries WHERE {name}", (*scope, before.kind, before.key))  # noqa: S608
            if after is None:
                con.execute("DELETE FROM entries WHERE rowid = ?", (doc,))
            else:
                con.execute(REPLACE_ENTRY, (*rows.to_row(scope, after)[4:], doc))
        con.executemany(ADD_TO_TALLY, [(*scope, *count) for count in rows.counts(before, after)])
        self.index(con, scope, doc, before, after, new)

    def index(
        self, con: Connection, scope: Scope, doc: int, before: Entry | None, after: Entry | None, new: NewWords
    ) -> None:
        """Update the word index, and queue the text for its vector, in the transaction that writes the text."""
        sketch(con, scope, doc, before, after)
        indexed = self._index.update(con, doc, before, after, new)
        old_text, new_text = indexed_text(before), indexed_text(after)
        if old_text == new_text and after is not None:
            return
        if old_text or after is None:  # SQLite may assign the rowid to another text
            con.execute("DELETE FROM vectors WHERE tenant = ? AND project = ? AND doc = ?", (*scope, doc))
        if new_text and indexed:  # otherwise it waits for both
            con.execute("INSERT OR IGNORE INTO vectors_waiting VALUES (?, ?, ?)", (*scope, doc))
        elif before is not None:
            con.execute("DELETE FROM vectors_waiting WHERE tenant = ? AND project = ? AND doc = ?", (*scope, doc))

    def catch_up(self, con: Connection) -> None:
        """Index the texts that wait, inside a transaction."""
        self._index.catch_up(con, NewWords())

    def settle(self) -> bool:
        """Index the texts that wait, before a search. False when the file cannot be written now."""
        if not self._db.read(waits):
            return True
        new = NewWords()

        def work(con: Connection) -> None:
            new.begin()
            self._index.catch_up(con, new)

        try:
            self._db.write(work, durable=False, patient=False)
        except (errors.StoreBusy, errors.StoreReadOnly, errors.StoreFull):
            return False
        self._index.learn(new)
        return True

    def _searching(self, work: Callable[[Connection], T], *, one_moment: bool = False) -> T:
        """Read what needs the word index. Where the texts that wait cannot join it, they get one in memory."""
        looked_at = work if self.settle() else partial(self._beside_fresh, work=work)
        return self._db.snapshot(looked_at) if one_moment else self._db.read(looked_at)

    def _beside_fresh(self, con: Connection, work: Callable[[Connection], T]) -> T:
        def beside(fresh: Connection) -> T:
            for (doc,) in con.rows(WAITING):
                with suppress(UnicodeDecodeError):  # damaged: who reads it says so
                    fresh.many(NEW_ENTRY_AS, con.rows(WAITING_ROW, (doc,)))
            WordIndex().catch_up(fresh, NewWords())
            con.fresh = fresh
            try:
                return work(con)
            finally:
                con.fresh = None

        return self._db.in_memory(beside)

    def erase(self, scope: Scope, seqs: Sequence[int]) -> int:
        def work(con: Connection) -> int:
            erased = 0
            con.frees = True
            for seq in seqs:
                con.execute(ERASE, (*scope, seq))
                erased += con.changes()
            con.execute(UNUSED_TAGS, tuple(scope))
            retries.forget_calls(con, scope, seqs)
            return erased

        erased = self._db.write(work)
        self._labels.clear()
        return erased

    # --- export, import and health ------------------------------------------------------------------------------------

    def dump(self, scope: Scope) -> Iterator[tuple[str, Mapping[str, Any]]]:
        con = self._db.take()
        try:
            con.execute("BEGIN")
            self._db.check_schema(con)
            for row in con.execute(DUMP_ENTRIES, tuple(scope)):
                yield "entry", entry_record(self._entry(scope, row))
            for row in con.execute(DUMP_EVENTS, tuple(scope)):
                yield "event", rows.event_record(self._place, scope, row)
        except (apsw.Error, UnicodeDecodeError) as problem:
            raise self._db.translate(problem) from problem
        finally:
            if con.in_transaction:
                con.execute("ROLLBACK")
            self._db.give(con)

    def load(
        self, con: Connection, scope: Scope, entries: Iterable[Entry], records: Iterable[Mapping[str, Any]]
    ) -> int:
        """Add the entries and events of a dump to an empty project, inside a transaction. Returns how many entries."""
        count = seq = clock = 0
        new, sums = NewWords(), rows.Sums()
        self._index.catch_up(con, new)
        in_order = iter(sorted(entries, key=lambda entry: entry.created_at))  # so that the index is too
        while batch := list(islice(in_order, LOADED_TOGETHER)):
            first = con.rows("SELECT coalesce(max(rowid), 0) + 1 FROM entries")[0][0]
            numbered = list(enumerate(batch, first))
            con.executemany(NEW_ENTRY_AS, [(doc, *rows.to_row(scope, entry)) for doc, entry in numbered])
            sketch_all(con, scope, numbered)
            texts = [(doc, scope, indexed_text(entry), folded_tags(entry)) for doc, entry in numbered]
            self._index.append(con, texts, new)
            for entry in batch:
                sums.add(entry)
                clock = max(clock, entry.updated_at)
            count += len(batch)
        con.executemany(ADD_TO_TALLY, [(*scope, *counted) for counted in sums.counts()])
        changes = iter(records)
        while some := list(islice(changes, LOADED_TOGETHER)):
            con.executemany(NEW_EVENT, [rows.event_row(scope, record) for record in some])
            seq = max(seq, *(record["seq"] for record in some))
            clock = max(clock, *(record["at"] for record in some))
        con.execute("INSERT INTO projects VALUES (?, ?, ?, ?)", (*scope, seq, clock))
        if 2 * count > con.rows("SELECT count(*) FROM entries")[0][0]:
            con.execute("INSERT INTO terms (terms) VALUES ('optimize')")  # every search looks into each of its parts
        return count

    def check(self, con: Connection) -> tuple[Finding, ...]:
        """Reads all entries and previous versions of all projects."""
        names = con.rows("SELECT tenant, project, kind, key, rowid FROM entries")
        last = self._index.last(con)
        bad, texts, waiting = [], 0, 0
        for *owner, kind, key, doc in names:
            try:
                entry = self._before(con, Scope(*owner), kind, key)
                text = bool(indexed_text(entry))
            except (errors.StoreDamaged, UnicodeDecodeError):
                text = True
                bad.append(f"{kind} {key!r} of project {owner[1]!r}")
            texts += text
            waiting += text and doc > last
        changes = con.rows("SELECT tenant, project, seq, kind, key FROM events")
        for *owner, seq, kind, key in changes:
            try:
                by_seq = "SELECT before FROM events WHERE tenant = ? AND project = ? AND seq = ?"
                rows.version_from_json(self._place, Scope(*owner), con.rows(by_seq, (*owner, seq))[0][0])
            except (errors.StoreDamaged, UnicodeDecodeError, IndexError):  # IndexError: the index does not find it
                bad.append(f"an earlier version of {kind} {key!r} of project {owner[1]!r}")
        sound = f"{len(names):,} entries and {len(changes):,} changes are as they were written"
        indexed = waiting + con.rows("SELECT count(*) FROM terms_docsize")[0][0]
        return (
            Finding("checksums", not bad, ", ".join(bad[:5]) or sound),
            Finding("index", indexed == texts, f"{indexed:,} of {texts:,} texts are indexed"),
        )


def _frees(before: Entry | None, draft: Draft | Delete | None) -> bool:
    """Whether a change makes the store smaller. It may use the space that is reserved for that."""
    if before is None or draft is None:
        return False
    return not isinstance(draft, Draft) or len(draft.content) < len(before.content)


def _latest(con: Connection, scope: Scope, query: Listing) -> list[Row]:
    if (query.tags or query.tags_any) and (walked := _walked(con, scope, query)) is not None:
        return walked
    source, values = source_of(scope, query)
    sql = f"SELECT {E_FIELDS} FROM {source} ORDER BY e.updated_at DESC, e.key DESC LIMIT ?"  # noqa: S608
    return list(_of_layers(con, source, sql, (*values, query.limit)))


def _walked(con: Connection, scope: Scope, query: Listing) -> list[Row] | None:
    """A page of a usual tag, from the newest entries; None where too few of these have it. The word index would be read
    for all that ever had it, and they would be sorted."""
    source, values = source_of(scope, query._replace(tags=(), tags_any=()))
    sql = f"SELECT e.rowid, e.tags FROM {source} ORDER BY e.updated_at DESC, e.key DESC LIMIT ?"  # noqa: S608
    every, some = set(query.tags), set(query.tags_any)
    docs: list[int] = []
    newest = con.rows(sql, (*values, TAGS_WALKED))
    for doc, tags in newest:
        try:
            named = rows.folded_set(tags)
        except (ValueError, TypeError):
            return None  # damaged: who reads it says so
        if every <= named and (not some or some & named):
            docs.append(doc)
            if len(docs) == query.limit:
                break
    if len(docs) < query.limit and len(newest) == TAGS_WALKED:
        return None
    return [row for doc in docs for row in con.rows(f"SELECT {FIELDS} FROM entries WHERE rowid = ?", (doc,))]  # noqa: S608


def _count(con: Connection, scope: Scope, query: Listing) -> tuple[int, bool]:
    """How many entries a listing has, from tallies where there are any, and whether there may be more."""
    tallied = rows.tallied(query)
    if tallied is None:
        source, values = source_of(scope, query)
        most = rows.counted_at_most(query)
        sql = f"SELECT count(*) FROM (SELECT 1 FROM {source} LIMIT {most + 1})"  # noqa: S608
        total: int = con.rows(sql, values)[0][0]
        return min(total, most), total > most
    count = 0
    for sign, kinds in ((1, tallied.kinds), (-1, tallied.less)):
        for kind in kinds:
            count += sign * sum(row[0] for row in con.rows(ONE_TALLY, (*scope, kind, tallied.session, tallied.tag)))
    if not query.now or query.include_replaced:
        return count, False
    among = (tallied.session, tallied.session)
    expired = [tags for kind in query.kinds for (tags,) in con.rows(EXPIRED_OPEN, (*scope, kind, query.now, *among))]
    return rows.still_listed(count, query, expired), False


def _of_layers(con: Connection, source: str, sql: str, values: Row) -> Iterator[Row]:
    """What a query with such a source finds: with the index, in each of its layers, the newest texts first."""
    among = con.layers if source.startswith("terms") else (con,)
    return chain.from_iterable(cast(Iterator[Row], layer.execute(sql, values)) for layer in among)


class _Read(dict[int, Entry | None]):
    """Entries by number, read when they are asked for."""

    def __init__(self, con: Connection, entry: Callable[[Row], Entry]) -> None:
        self._con, self._of = con, entry

    def __missing__(self, doc: int) -> Entry | None:
        matches = self._con.rows(f"SELECT {FIELDS} FROM entries WHERE rowid = ?", (doc,))  # noqa: S608
        return self.setdefault(doc, self._of(matches[0]) if matches else None)


def _is_taken(con: Connection, scope: Scope, kind: str, key: str) -> bool:
    """Whether an entry of that name exists or ever existed."""
    return bool(con.rows(TAKEN, (*scope, kind, key))[0][0])


def _last_version(con: Connection, scope: Scope, kind: str, key: str) -> int:
    sql = "SELECT coalesce(max(version), 0) FROM events WHERE tenant = ? AND project = ? AND kind = ? AND key = ?"
    version: int = con.rows(sql, (*scope, kind, key))[0][0]
    return version


def _tags(con: Connection, scope: Scope, kind: str, session: str, now: int) -> tuple[TagCount, ...]:
    expired = con.rows(EXPIRED_TAGS, (*scope, kind, now, session, session)) if now else []
    return rows.open_tags(con.rows(TAG_COUNTS, (*scope, kind, session)), (tags for (tags,) in expired))


def _tally(con: Connection, scope: Scope, kind: str, session: str) -> Tally:
    sql = (
        "SELECT coalesce(sum(count) FILTER (WHERE tag = ''), 0), count(*) FILTER (WHERE tag <> '' AND count > 0) "
        "FROM tallies WHERE tenant = ? AND project = ? AND kind = ? AND session = ?"
    )
    return Tally._make(con.rows(sql, (*scope, kind, session))[0])
