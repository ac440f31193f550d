"""The entries of a PostgreSQL store: reads, searches, writes and their events.

Writers of a project queue at the project's row, which each locks before it reads anything; so reading, deciding and
writing are one step although the isolation level is READ COMMITTED. A change is one statement (write.py), and the
statements of many changes travel together (a pipeline), because the server may be far away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import psycopg

from limpet import errors, limits
from limpet.model import SESSION, Change, Draft, Entry, Event, Scope, Stamp, TagCount, Tally
from limpet.record import NamedTuple
from limpet.redaction.entries import masked
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
)
from limpet.stores.postgres import search
from limpet.stores.postgres.candidates import array, entry_candidates, missing
from limpet.stores.postgres.connections import EXPORT_IDLE_SECONDS, Last, PostgresDatabase, Proof, Rows
from limpet.stores.postgres.outputs import PostgresSql
from limpet.stores.postgres.replica import ReplicaReads
from limpet.stores.postgres.schema import TAKE_PROJECT, Con
from limpet.stores.postgres.tenants import VIEW, Statement, ask, begin, together
from limpet.stores.postgres.write import (
    EVENT_ROW,
    LAST_VERSION,
    LOCK,
    NEW_EVENTS,
    ONE,
    ROWS,
    SORT_IN,
    TALLY,
    WIDE_LISTS,
    Writer,
    count,
    insert,
)
from limpet.stores.shared import retries, rows
from limpet.stores.shared.outputs import import_outputs
from limpet.stores.shared.rows import E_FIELDS, FIELDS
from limpet.stores.shared.sql import Row
from limpet.text import words

# The statements of this module are built from constants; every value is a parameter.
ONE_ENTRY = f"SELECT {FIELDS} FROM entries WHERE {ONE}"  # noqa: S608
EARLIER = (
    f"SELECT {FIELDS} FROM entries WHERE tenant = %s AND project = %s AND kind = %s "  # noqa: S608
    "AND key < %s AND done <= %s AND (%s = 0 OR expires_at IS NULL OR expires_at > %s) ORDER BY key DESC LIMIT %s"
)
BY_NUMBER = (
    f"SELECT e.doc, {E_FIELDS} FROM entries e WHERE e.tenant = %s AND e.project = %s AND e.doc = ANY(%s::bigint[])"  # noqa: S608
)
TAKEN = "SELECT key FROM entries WHERE tenant = %s AND project = %s AND kind = %s AND key = ANY(%s)"
LABELS = (
    "SELECT tag, label FROM tallies WHERE tenant = %s AND project = %s AND kind = %s AND session = '' AND tag = ANY(%s)"
)
CURRENT = (
    f"SELECT EXISTS (SELECT 1 FROM entries WHERE {ONE}), ({LAST_VERSION}), e.doc, {E_FIELDS} FROM (SELECT 1) one "  # noqa: S608
    "LEFT JOIN entries e ON e.tenant = %s AND e.project = %s AND e.kind = %s AND e.key = %s"
)
# Whether the key that is minted next is taken. It is worked out by the server from the clock of the project.
NEXT_TAKEN = (
    "SELECT 1 FROM events WHERE tenant = %s AND project = %s AND kind = %s AND key = "
    "(SELECT %s || '_' || greatest(clock + 1, %s) FROM projects WHERE tenant = %s AND project = %s)"
)
BEFORE_ADD = (
    f"SELECT EXISTS (SELECT 1 FROM entries WHERE {ONE}), EXISTS ({NEXT_TAKEN}), "  # noqa: S608
    f"(SELECT json_object_agg(s.tag, s.label) FROM ({LABELS}) s)"
)
TAG_COUNTS = (
    "SELECT tag, label, count FROM tallies WHERE tenant = %s AND project = %s AND kind = %s AND session = %s "
    "AND tag <> '' AND count > 0 ORDER BY tag"
)
# NOT NULL is implied, and tells the server how few expire: it would read the whole table otherwise.
EXPIRED = (
    "FROM entries WHERE tenant = %s AND project = %s AND kind = %s AND expires_at <= %s AND expires_at IS NOT NULL"
)
ANY_EXPIRED = f"SELECT 1 {EXPIRED} LIMIT 1"
EXPIRED_TAGS = f"SELECT tags {EXPIRED} AND NOT done AND tags <> '[]' AND (%s = '' OR session = %s)"
NEW_PROJECT = "INSERT INTO projects VALUES (%s, %s, 0, %s) ON CONFLICT DO NOTHING RETURNING 1"
ERASE = (
    "UPDATE events SET before = NULL, detail = (CAST(detail AS jsonb) || '{\"erased\": true}')::text "
    "WHERE tenant = %s AND project = %s AND seq = ANY(%s) AND before IS NOT NULL RETURNING seq"
)
ERASED = "SELECT 1 FROM events WHERE tenant = %s AND project = %s AND seq = %s AND before IS NULL"
UNUSED_TAGS = "DELETE FROM tallies WHERE tenant = %s AND project = %s AND tag <> '' AND count = 0"
LONGEST = 3  # words of a text that are looked up, all of which must occur, and as many with digits
EVENT_COLUMNS = ", ".join(f"v.{name}" for name in rows.EVENT_FIELDS)
EVENTS = (
    f"SELECT {EVENT_COLUMNS}, v.detail, v.before, n.before, {E_FIELDS} FROM events v "  # noqa: S608
    "LEFT JOIN events n ON n.tenant = v.tenant AND n.project = v.project AND n.kind = v.kind AND n.key = v.key "
    "AND n.version = v.version + 1 "
    "LEFT JOIN entries e ON e.tenant = v.tenant AND e.project = v.project AND e.kind = v.kind AND e.key = v.key "
    "AND e.version = v.version WHERE "
)
DUMP_ENTRIES = f"SELECT {FIELDS} FROM entries WHERE tenant = %s AND project = %s ORDER BY kind, key"  # noqa: S608
DUMP_EVENTS = (
    f"SELECT {EVENT_COLUMNS}, v.detail, v.before FROM events v WHERE v.tenant = %s AND v.project = %s ORDER BY v.seq"  # noqa: S608
)
CHECK_ENTRIES = f"SELECT tenant, project, {FIELDS}, folded, tsvector_to_array(terms) FROM entries"  # noqa: S608
CHECK_EVENTS = f"SELECT v.tenant, v.project, {EVENT_COLUMNS}, v.detail, v.before FROM events v"  # noqa: S608


class _Current(NamedTuple):
    """What a change depends on, read under the project's lock."""

    session: bool  # whether the stamp's session exists
    entry: Entry | None
    doc: int | None  # the number of its text
    last_version: int


class PostgresEntries:
    def __init__(self, db: PostgresDatabase, replica: ReplicaReads) -> None:
        self._db = db
        self._replica = replica
        self._place = db.place

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, scope: Scope, kind: str, key: str) -> Entry | None:
        matches = self._db.rows(scope.tenant, ONE_ENTRY, (*scope, kind, key))
        return self._entry(scope, matches[0]) if matches else None

    def _entry(self, scope: Scope, row: Row) -> Entry:
        return rows.to_entry(self._place, scope, row)

    def list(self, scope: Scope, query: Listing) -> Page:
        return search.listed(self._db, scope, query)

    def earlier(
        self, scope: Scope, kind: str, before: str | None, *, include_done: bool = False, limit: int = 50, now: int = 0
    ) -> tuple[Entry, ...]:
        last = rows.LAST_KEY if before is None else before
        page = self._db.rows(scope.tenant, EARLIER, (*scope, kind, last, include_done, now, now, limit))
        return tuple(self._entry(scope, row) for row in page)

    def containing(self, scope: Scope, query: Listing, needle: str, words: Words | None = None) -> Page:
        return search.containing(self._replica, self._place, scope, query, needle, words)

    def matching(self, scope: Scope, query: Listing, words: Words) -> tuple[Entry, ...]:
        return search.matching(self._replica, self._place, scope, query, words)

    def alike(self, scope: Scope, kind: str, text: str, now: int) -> tuple[Entry, ...]:
        listing = Listing((kind,), limit=limits.DUPLICATES_COMPARED, now=now)
        letters, numbers = words.longest_words(text, LONGEST)

        def having(every: list[str]) -> dict[str, Entry]:
            query = Words(tuple((word,) for word in every))
            return {entry.key: entry for entry in self.matching(scope, listing, query)} if every else {}

        entries = having(letters)
        # With its numbers a text is found among many of one pattern. If none has the words, none has both.
        if not letters or len(entries) == listing.limit:
            entries |= having(letters + numbers)
        return tuple(entries.values())

    def candidates(self, scope: Scope, kinds: tuple[str, ...], query: CandidateQuery) -> Candidates:
        return entry_candidates(self._replica, scope, kinds, query)

    def texts(self, scope: Scope, docs: Sequence[int]) -> dict[int, Entry]:
        return self._replica.rows(
            scope,
            BY_NUMBER,
            (*scope, array(docs)),
            lambda matches: {row[0]: self._entry(scope, row[1:]) for row in matches},
        )

    def tags(self, scope: Scope, kind: str, session: str, now: int = 0) -> tuple[TagCount, ...]:
        counts: Statement = (TAG_COUNTS, (*scope, kind, session))
        of_expired: Statement = (EXPIRED_TAGS, (*scope, kind, now, session, session))
        counted, *expired = self._db.rows_of_each(scope.tenant, counts, *([of_expired] if now else []))
        return rows.open_tags(counted, (tags for of_one in expired for (tags,) in of_one))

    def tally(self, scope: Scope, kind: str, session: str, now: int = 0) -> Tally:
        values = {**scope._asdict(), "kind": kind, "of_session": session}
        any_expired: Statement = (ANY_EXPIRED, (*scope, kind, now))
        counted, *expired = self._db.rows_of_each(scope.tenant, (TALLY, values), *([any_expired] if now else []))
        tally = Tally(*counted[0])
        return rows.tally_of(tally.total, self.tags(scope, kind, session, now)) if any(expired) else tally

    def events(self, scope: Scope, query: EventQuery) -> tuple[Event, ...]:
        conditions = rows.event_conditions(scope, query, "%s")
        sql = f"{EVENTS}{' AND '.join(conditions)} ORDER BY v.seq DESC LIMIT %s"
        newest = self._db.rows(scope.tenant, sql, (*conditions.values(), query.limit))
        return tuple(rows.to_event(self._place, scope, row) for row in newest)

    def event(self, scope: Scope, seq: int) -> Event | None:
        sql = f"{EVENTS}v.tenant = %s AND v.project = %s AND v.seq = %s"
        matches = self._db.rows(scope.tenant, sql, (*scope, seq))
        return rows.to_event(self._place, scope, matches[0]) if matches else None

    def numbers(self, scope: Scope, kind: str, keys: Sequence[str]) -> dict[str, int]:
        sql = (
            "SELECT key, seq FROM events "
            "WHERE tenant = %s AND project = %s AND kind = %s AND key = ANY(%s) AND version = 1"
        )
        return dict(self._db.rows(scope.tenant, sql, (*scope, kind, [*keys])))

    # --- writing ------------------------------------------------------------------------------------------------------

    def edit(self, scope: Scope, kind: str, key: str | None, decide: Decide, stamp: Stamp) -> Change:
        if stamp.retry is not None:
            return self.edit_all(scope, [(kind, key, decide)], stamp)[0]
        if key is None:
            return self._add_alone(scope, kind, masked(kind, None, None, decide(None), stamp), stamp)

        def work(con: Con, answers: Rows) -> tuple[Change, Proof] | Last[Change]:
            writer, current = self._locked(con, scope, stamp, answers)
            return self._edit(con, writer, scope, (kind, key), decide, stamp, current)

        return self._db.write(scope.tenant, work, first=[(LOCK, tuple(scope)), _current_of(scope, (kind, key), stamp)])

    def _add_alone(self, scope: Scope, kind: str, draft: Draft | Delete | None, stamp: Stamp) -> Change:
        def work(con: Con, answers: Rows) -> tuple[Change, Proof] | Last[Change]:
            writer, before = self._locked(con, scope, stamp, answers)
            return self._add(con, writer, scope, kind, draft, stamp, before)

        return self._db.write(scope.tenant, work, first=[(LOCK, tuple(scope)), _before_add(scope, kind, draft, stamp)])

    def _locked(self, con: Con, scope: Scope, stamp: Stamp, answers: Rows) -> tuple[Writer, Sequence[Row]]:
        """The project's lock, and what was read under it: both asked for when the transaction began, and again if the
        project is new."""
        locked, read = answers
        if locked:
            return Writer(con, scope, *locked[0]), read
        return Writer(con, scope, *self._lock(con, scope, stamp)), []

    def edit_all(
        self,
        scope: Scope,
        edits: Sequence[Edit],
        stamp: Stamp,
        incoming: Iterable[Incoming] | None = None,
    ) -> tuple[Change, ...]:
        if len(edits) == 1 and stamp.retry is None and incoming is None:
            kind, key, decide = edits[0]
            return (self.edit(scope, kind, key, partial(rows.decided, decide, changes=()), stamp),)

        def work(con: Con, _: object) -> tuple[tuple[Change, ...], Proof]:
            sql = PostgresSql(con)
            import_outputs(sql, scope, incoming or ())
            if stamp.retry is not None:
                self._lock(con, scope, stamp)  # the same call may be made twice at once
                if first := retries.first_call(sql, scope, stamp):
                    return tuple(self._replayed(con, scope, seq, first.tally) for seq in first.seqs), ()
            changes: list[Change] = []
            proof: Proof = ()
            for kind, key, decide in edits:
                decision = partial(rows.decided, decide, changes=tuple(changes))
                writer = Writer(con, scope, *self._lock(con, scope, stamp))
                if key is None:
                    draft = masked(kind, None, None, decision(None), stamp)
                    done = self._add(con, writer, scope, kind, draft, stamp)
                else:
                    done = self._edit(con, writer, scope, (kind, key), decision, stamp)
                change, last_proof = done if isinstance(done, tuple) else _sent(con, done)
                changes.append(change)
                proof = last_proof or proof
            retries.remember(sql, scope, stamp, tuple(changes))
            return tuple(changes), proof

        # An import is read once.
        return self._db.write(scope.tenant, work, repeatable=incoming is None) if edits or incoming is not None else ()

    def _edit(
        self,
        con: Con,
        writer: Writer,
        scope: Scope,
        name: tuple[str, str],
        decide: Decide,
        stamp: Stamp,
        read: Sequence[Row] = (),
    ) -> tuple[Change, Proof] | Last[Change]:
        """A change that is not sent yet, or none. `read` is what it depends on, if it was read already."""
        kind = name[0]
        current = self._current(scope, read[0] if read else ask(con, _current_of(scope, name, stamp))[0][0])
        if kind != SESSION and stamp.session and not current.session:
            writer.begin(stamp)
        before = current.entry
        draft = masked(*name, before, decide(before), stamp)
        if isinstance(draft, Draft) and draft.tags:
            labels = con.execute(LABELS, (*scope, kind, [words.fold(tag) for tag in draft.tags])).fetchall()
            draft = draft._replace(tags=_first_spelling(dict(labels), draft.tags))
        if (needed := _needed(before, draft)) is None:
            return self._unchanged(con, scope, kind, before, stamp), writer.proof
        version = 1 + (before.version if before else current.last_version)
        return writer.last(name, version, before, needed, stamp, current.doc)

    def _add(
        self,
        con: Con,
        writer: Writer,
        scope: Scope,
        kind: str,
        draft: Draft | Delete | None,
        stamp: Stamp,
        read: Sequence[Row] = (),
    ) -> tuple[Change, Proof] | Last[Change]:
        """An entry whose key is minted. There is nothing before it, so fewer statements are needed."""
        session, taken, labels = read[0] if read else ask(con, _before_add(scope, kind, draft, stamp))[0][0]
        if kind != SESSION and stamp.session and not session:
            writer.begin(stamp)
            taken = 1  # the clock went on, and the next key with it
        if not isinstance(draft, Draft):
            return self._unchanged(con, scope, kind, None, stamp), writer.proof
        draft = draft._replace(tags=_first_spelling(labels or {}, draft.tags))
        return writer.last((kind, None), 1 + taken, None, draft, stamp)

    def _replayed(self, con: Con, scope: Scope, seq: int, tally: Tally) -> Change:
        """A change that an earlier call made."""
        matches = con.execute(f"{EVENTS}v.tenant = %s AND v.project = %s AND v.seq = %s", (*scope, seq)).fetchall()
        return rows.replayed(rows.to_event(self._place, scope, matches[0]), tally)

    def _unchanged(self, con: Con, scope: Scope, kind: str, entry: Entry | None, stamp: Stamp) -> Change:
        values = {**scope._asdict(), "kind": kind, "of_session": entry.session if entry else stamp.session}
        return Change(0, entry, entry, Tally(*con.execute(TALLY, values).fetchall()[0]))

    def append(self, scope: Scope, kind: str, drafts: Sequence[tuple[str, Draft]], stamp: Stamp) -> tuple[Entry, ...]:
        def work(con: Con, _: object) -> tuple[tuple[Entry, ...], Proof]:
            writer, tallies = Writer(con, scope, *self._lock(con, scope, stamp)), rows.Sums()
            current = _current_of(scope, (kind, drafts[0][0]), stamp)
            (read,), taken = ask(con, current, (TAKEN, (*scope, kind, [key for key, _ in drafts])))
            if not self._current(scope, read).session:
                writer.begin(stamp)
            if duplicates := [key for key, _ in drafts if (key,) in taken]:
                raise errors.appended_before(kind, duplicates[0])
            writer.clock = max(writer.clock, stamp.now)
            added = tuple(rows.next_entry(kind, key, None, draft, stamp, writer.clock, 1) for key, draft in drafts)
            writer.put(added)
            for entry in added:
                tallies.add(entry)
            with together(con):
                count(con, scope, tallies.counts())
                writer.finish()
            last = rows.to_row(scope, added[-1])
            return added, ((LOCK, scope), (f"{ONE_ENTRY} AND hash = %s", (*last[:4], last[-1])))

        return self._db.write(scope.tenant, work) if drafts else ()

    def _lock(self, con: Con, scope: Scope, stamp: Stamp) -> Row:
        """Lock the project's row, which is created for a new project."""
        while (locked := con.execute(LOCK, scope).fetchone()) is None:
            # One less than now, so that the first change is at `now` whether it needs a new time stamp or not. If
            # nothing is changed after all, this is not committed either.
            con.execute(NEW_PROJECT, (*scope, stamp.now - 1))
        return locked

    def _current(self, scope: Scope, read: Row) -> _Current:
        session, version, doc, *row = read
        return _Current(session, None if row[0] is None else self._entry(scope, tuple(row)), doc, version)

    def erase(self, scope: Scope, seqs: Sequence[int]) -> int:
        def work(con: Con, _: object) -> tuple[int, Proof]:
            con.execute(TAKE_PROJECT, scope)
            erased = con.execute(ERASE, (*scope, [*seqs])).fetchall()
            con.execute(UNUSED_TAGS, scope)
            retries.forget_calls(PostgresSql(con), scope, seqs)
            return len(erased), ((ERASED, (*scope, erased[-1][0])),) if erased else ()

        return self._db.write(scope.tenant, work)

    # --- export, import and health ------------------------------------------------------------------------------------

    def dump(self, scope: Scope) -> Iterator[tuple[str, Mapping[str, Any]]]:
        with self._db.connection() as con:
            try:
                begin(con, self._place, VIEW, scope.tenant)
                con.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{EXPORT_IDLE_SECONDS}s'")
                for row in self._db.stream(DUMP_ENTRIES, tuple(scope), con):
                    yield "entry", entry_record(self._entry(scope, row))
                for row in self._db.stream(DUMP_EVENTS, tuple(scope), con):
                    yield "event", rows.event_record(self._place, scope, row)
            except psycopg.Error as problem:
                raise self._db.translate(problem, lost=con.closed) from problem

    def load(
        self, con: Con, scope: Scope, entries: Iterable[Entry], records: Iterable[Mapping[str, Any]]
    ) -> tuple[int, Proof]:
        """Add the entries and events of a dump to an empty project, inside a transaction."""
        if not _create_project(con, scope):
            raise errors.project_not_empty(scope.project)
        writer, tallies = Writer(con, scope, 0, 0), rows.Sums()
        con.execute(WIDE_LISTS)
        with together(con):
            total = writer.load(sorted(entries, key=lambda entry: entry.created_at), tallies)
            changes = iter(records)
            while some := list(islice(changes, ROWS)):
                insert(con, NEW_EVENTS, EVENT_ROW, [rows.event_row(scope, record) for record in some])
                writer.seq = max(writer.seq, *(record["seq"] for record in some))
                writer.clock = max(writer.clock, *(record["at"] for record in some))
            count(con, scope, tallies.counts())
            writer.finish()
        con.execute(SORT_IN)
        loaded = "SELECT 1 FROM projects WHERE tenant = %s AND project = %s AND seq = %s AND clock = %s"
        return total, ((LOCK, scope), (loaded, (*scope, writer.seq, writer.clock)))

    def check(self, con: Con) -> tuple[Finding, ...]:
        """Reads all entries and previous versions of all projects."""
        bad: list[str] = []
        total = texts = stale = changes = 0
        for tenant, project, *row, folded, terms in self._db.stream(CHECK_ENTRIES, (), con):
            total += 1
            try:
                entry = self._entry(Scope(tenant, project), tuple(row))
            except errors.StoreDamaged:
                bad.append(f"{row[0]} {row[1]!r} of project {project!r}")
                continue
            texts += 1
            stale += folded != words.fold(rows.searched_text(entry)) or bool(missing(rows.indexed_text(entry), terms))
        for tenant, project, *row in self._db.stream(CHECK_EVENTS, (), con):
            changes += 1
            try:
                rows.event_record(self._place, Scope(tenant, project), tuple(row))
            except (errors.StoreDamaged, ValueError):
                bad.append(f"an earlier version of {row[5]} {row[6]!r} of project {project!r}")
        sound = f"{total:,} entries and {changes:,} changes are as they were written"
        return (
            Finding("checksums", not bad, ", ".join(bad[:5]) or sound),
            Finding("index", not stale, f"{texts - stale:,} of {texts:,} texts are indexed"),
        )


def _create_project(con: Con, scope: Scope) -> bool:
    """False when the project exists already, also when another process created it meanwhile."""
    try:
        return bool(con.execute(NEW_PROJECT, (*scope, 0)).fetchall())
    except psycopg.errors.SerializationFailure:
        return False


def _current_of(scope: Scope, name: tuple[str, str], stamp: Stamp) -> Statement:
    """What a change depends on, read once the project is locked."""
    named = (*scope, *name)
    return CURRENT, (*scope, SESSION, stamp.session, *named, *named)


def _before_add(scope: Scope, kind: str, draft: Draft | Delete | None, stamp: Stamp) -> Statement:
    """The same for an entry whose key is minted."""
    tags = [words.fold(tag) for tag in draft.tags] if isinstance(draft, Draft) else []
    key = (*scope, kind, kind, stamp.now, *scope)
    return BEFORE_ADD, (*scope, SESSION, stamp.session, *key, *scope, kind, tags)


def _sent(con: Con, change: Last[Change]) -> tuple[Change, Proof]:
    """A change that others follow in its transaction."""
    with together(con):
        change.send()
        tally = con.execute(*change.answer)
    return change.result(tally.fetchall()), change.proof


def _needed(before: Entry | None, draft: Draft | Delete | None) -> Draft | Delete | None:
    """None when the draft changes nothing. An entry that does not exist need not be deleted."""
    done = rows.unchanged(before, draft) if isinstance(draft, Draft) else before is None
    return None if done else draft


def _first_spelling(labels: Mapping[str, str], tags: tuple[str, ...]) -> tuple[str, ...]:
    """Tags as they were first spelled in this project."""
    return tuple(labels.get(words.fold(tag), tag) for tag in tags)
