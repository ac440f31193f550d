"""The store for teams: one PostgreSQL database. It does the same as the embedded store, number for number.

postgres_server.py connects, commits and tries again, postgres_schema.py makes the tables. Writers of a project stand in
line at the project's row, which each locks before it reads anything; so reading, deciding and writing are one step
although the isolation level is READ COMMITTED. Statements that do not need each other's answers travel together (a
pipeline), because the server may be far away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import psycopg

from holdfast import errors
from holdfast.model import EMPTY, SESSION, Change, Draft, Entry, Event, Scope, Stamp, TagCount, Tally
from holdfast.search import analyse
from holdfast.store import (
    Arriving,
    Decide,
    EventQuery,
    Finding,
    Gone,
    Listing,
    Page,
    Words,
    entry_record,
    to_json,
)
from holdfast.stores import rows
from holdfast.stores.drafts import next_entry, unchanged
from holdfast.stores.output_transfer import arrive
from holdfast.stores.postgres_erase import PostgresErase
from holdfast.stores.postgres_outputs import PostgresOutputs, PostgresSql
from holdfast.stores.postgres_pages import PostgresPages
from holdfast.stores.postgres_recall import PostgresRecall, lexeme, like, missing, vector
from holdfast.stores.postgres_schema import SCHEMA, Con
from holdfast.stores.postgres_server import EXPORT_IDLE_SECONDS, VIEW, Proof, Server
from holdfast.stores.postgres_vectors import PostgresVectors, forget_vector, wait_for_vector
from holdfast.stores.rows import E_FIELDS, FIELDS, Row

LOAD_BATCH = 200  # rows of a load that are on their way before we wait for the server

# The texts of this module are put together from constants of ours only; every value is a parameter.
_ONE = "tenant = %s AND project = %s AND kind = %s AND key = %s"
ONE_ENTRY = f"SELECT {FIELDS} FROM entries WHERE {_ONE}"  # noqa: S608
TAKEN = "SELECT key FROM entries WHERE tenant = %s AND project = %s AND kind = %s AND key = ANY(%s)"
LAST_VERSION = f"SELECT coalesce(max(version), 0) FROM events WHERE {_ONE}"  # noqa: S608
LOOK = (
    f"SELECT EXISTS (SELECT 1 FROM entries WHERE {_ONE}), ({LAST_VERSION}), {E_FIELDS} FROM (SELECT 1) one "  # noqa: S608
    "LEFT JOIN entries e ON e.tenant = %s AND e.project = %s AND e.kind = %s AND e.key = %s"
)
LOCK = "SELECT seq, clock FROM projects WHERE tenant = %s AND project = %s FOR UPDATE"
NEW_PROJECT = "INSERT INTO projects VALUES (%s, %s, 0, %s) ON CONFLICT DO NOTHING RETURNING 1"
NEW_EVENT = f"INSERT INTO events VALUES ({', '.join(['%s'] * 12)})"  # noqa: S608
PUT_ENTRY = (
    f"INSERT INTO entries (tenant, project, {FIELDS}, folded, terms) VALUES ({', '.join(['%s'] * 16)}, "  # noqa: S608
    "CAST(%s AS tsvector)) ON CONFLICT (tenant, project, kind, key) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in (*FIELDS.split(", ")[2:], "folded", "terms"))
)
TALLY = (
    "SELECT coalesce(sum(count) FILTER (WHERE tag = ''), 0)::bigint, count(*) FILTER (WHERE tag <> '' AND count > 0) "
    "FROM tallies WHERE tenant = %s AND project = %s AND kind = %s AND session = %s"
)
COUNT = (
    "INSERT INTO tallies VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (tenant, project, kind, session, tag) "
    "DO UPDATE SET count = tallies.count + excluded.count"
)
EVENT_COLUMNS = ", ".join(f"v.{name}" for name in rows.EVENT_FIELDS)
EVENTS = (
    f"SELECT {EVENT_COLUMNS}, v.detail, v.before, n.before, {E_FIELDS} FROM events v "  # noqa: S608
    "LEFT JOIN events n ON n.tenant = v.tenant AND n.project = v.project AND n.kind = v.kind AND n.key = v.key "
    "AND n.version = v.version + 1 "
    "LEFT JOIN entries e ON e.tenant = v.tenant AND e.project = v.project AND e.kind = v.kind AND e.key = v.key "
    "AND e.version = v.version WHERE "
)
SAME_EVENT = "SELECT 1 FROM events WHERE tenant = %s AND project = %s AND " + " AND ".join(  # noqa: S608
    f"{name} = %s" for name in rows.EVENT_FIELDS
)
DUMP_ENTRIES = f"SELECT {FIELDS} FROM entries WHERE tenant = %s AND project = %s ORDER BY kind, key"  # noqa: S608
DUMP_EVENTS = (
    f"SELECT {EVENT_COLUMNS}, v.detail, v.before FROM events v WHERE v.tenant = %s AND v.project = %s ORDER BY v.seq"  # noqa: S608
)
CHECK_ENTRIES = f"SELECT tenant, project, {FIELDS}, folded, tsvector_to_array(terms) FROM entries"  # noqa: S608
CHECK_EVENTS = f"SELECT v.tenant, v.project, {EVENT_COLUMNS}, v.detail, v.before FROM events v"  # noqa: S608
LABELS = (
    "SELECT tag, label FROM tallies WHERE tenant = %s AND project = %s AND kind = %s AND session = '' AND tag = ANY(%s)"
)


class PostgresStore(PostgresOutputs, PostgresRecall, PostgresVectors, PostgresErase, PostgresPages):
    def __init__(self, url: str) -> None:
        self._server = Server(url)
        self.place = self._server.place

    def close(self) -> None:
        self._server.close()

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, scope: Scope, kind: str, key: str) -> Entry | None:
        found = self._server.rows(ONE_ENTRY, (*scope, kind, key))
        return self._entry(scope, found[0]) if found else None

    def _entry(self, scope: Scope, row: Row) -> Entry:
        return rows.to_entry(self.place, scope, row)

    def list(self, scope: Scope, query: Listing) -> Page:
        where, values = _where(scope, query)
        return self._page(scope, query, (where, values), "e.updated_at DESC, e.key DESC", ())

    def containing(self, scope: Scope, query: Listing, needle: str) -> Page:
        folded = analyse.fold(needle)
        where, values = _where(scope, query)
        matching = (f"{where} AND e.folded LIKE %s", (*values, like(folded)))
        return self._page(scope, query, matching, "strpos(e.folded, %s), e.updated_at DESC, e.key DESC", (folded,))

    def _page(
        self, scope: Scope, query: Listing, conditions: tuple[str, Row], order: str, order_values: tuple[str, ...]
    ) -> Page:
        where, values = conditions

        def work(con: Con) -> tuple[list[Row], int]:
            found = con.execute(
                f"SELECT {E_FIELDS} FROM entries e WHERE {where} ORDER BY {order} LIMIT %s",  # noqa: S608
                (*values, *order_values, query.limit),
            ).fetchall()
            if len(found) < query.limit:
                return found, len(found)
            return found, con.execute(f"SELECT count(*) FROM entries e WHERE {where}", values).fetchall()[0][0]  # noqa: S608

        found, total = self._server.view(work)
        return Page(tuple(self._entry(scope, row) for row in found), total)

    def matching(self, scope: Scope, query: Listing, words: Words) -> tuple[Entry, ...]:
        sought = _word_query(words)
        if sought is None:
            return ()
        where, values = _where(scope, query)
        order = "e.created_at DESC" if words.every else "ts_rank(e.terms, q) DESC, e.updated_at DESC"
        found = self._server.rows(
            f"SELECT {E_FIELDS} FROM entries e, CAST(%s AS tsquery) q WHERE e.terms @@ q AND {where} "  # noqa: S608
            f"ORDER BY {order}, e.key DESC LIMIT %s",
            (sought, *values, query.limit),
        )
        return tuple(self._entry(scope, row) for row in found)

    def tags(self, scope: Scope, kind: str, session: str) -> tuple[TagCount, ...]:
        found = self._server.rows(
            "SELECT label, count FROM tallies WHERE tenant = %s AND project = %s AND kind = %s AND session = %s "
            "AND tag <> '' AND count > 0 ORDER BY tag",
            (*scope, kind, session),
        )
        return tuple(TagCount(label, count) for label, count in found)

    def tally(self, scope: Scope, kind: str, session: str) -> Tally:
        return Tally(*self._server.rows(TALLY, (*scope, kind, session))[0])

    def projects(self, tenant: str) -> tuple[str, ...]:
        found = self._server.rows("SELECT project FROM projects WHERE tenant = %s ORDER BY project", (tenant,))
        return tuple(row[0] for row in found)

    def events(self, scope: Scope, query: EventQuery) -> tuple[Event, ...]:
        given = rows.event_conditions(scope, query, "%s")
        found = self._server.rows(
            f"{EVENTS}{' AND '.join(given)} ORDER BY v.seq DESC LIMIT %s", (*given.values(), query.limit)
        )
        return tuple(rows.to_event(self.place, scope, row) for row in found)

    def event(self, scope: Scope, seq: int) -> Event | None:
        found = self._server.rows(f"{EVENTS}v.tenant = %s AND v.project = %s AND v.seq = %s", (*scope, seq))
        return rows.to_event(self.place, scope, found[0]) if found else None

    # --- writing ------------------------------------------------------------------------------------------------------

    def edit(self, scope: Scope, kind: str, key: str | None, decide: Decide, stamp: Stamp) -> Change:
        return self._server.write(lambda con: self._edit(con, scope, (kind, key), decide, stamp))

    def edit_all(self, scope: Scope, edits: Sequence[tuple[str, str, Decide]], stamp: Stamp) -> tuple[Change, ...]:
        def work(con: Con) -> tuple[tuple[Change, ...], Proof]:
            done = [self._edit(con, scope, (kind, key), decide, stamp) for kind, key, decide in edits]
            proof = next((proof for _, proof in reversed(done) if proof), ())
            return tuple(change for change, _ in done), proof

        return self._server.write(work) if edits else ()

    def _edit(
        self, con: Con, scope: Scope, name: tuple[str, str | None], decide: Decide, stamp: Stamp
    ) -> tuple[Change, Proof]:
        kind = name[0]
        seen = self._see(con, scope, name, stamp)
        writer = _Writer(con, scope, seen.seq, seen.clock)
        if kind != SESSION and stamp.session and not seen.session:
            writer.begin(stamp)
        before = seen.entry
        wanted = decide(before)
        if isinstance(wanted, Draft) and wanted.tags:
            wanted = wanted._replace(tags=_first_spelling(con, scope, kind, wanted.tags))
        with con.pipeline():
            after, counted, seq = before, stamp.session if before is None else before.session, 0
            if (needed := _needed(before, wanted)) is not None:
                version = 1 + (before.version if before else seen.last_version)
                after = writer.write(name, version, before, needed, stamp)
                some = after or before
                counted, seq = some.session if some else "", writer.seq
            writer.finish()
            tally = con.execute(TALLY, (*scope, kind, counted))
        return Change(seq, before, after, Tally(*tally.fetchall()[0])), writer.proof

    def append(self, scope: Scope, kind: str, drafts: Sequence[tuple[str, Draft]], stamp: Stamp) -> tuple[Entry, ...]:
        def work(con: Con) -> tuple[tuple[Entry, ...], Proof]:
            seen = self._see(con, scope, (kind, drafts[0][0]), stamp)
            writer, tallies = _Writer(con, scope, seen.seq, seen.clock), _Tallies()
            if not seen.session:
                writer.begin(stamp)
            taken = con.execute(TAKEN, (*scope, kind, [key for key, _ in drafts])).fetchall()
            if known := [key for key, _ in drafts if (key,) in taken]:
                raise errors.appended_before(kind, known[0])
            writer.clock = max(writer.clock, stamp.now)
            added = tuple(next_entry(kind, key, None, draft, stamp, writer.clock, 1) for key, draft in drafts)
            with con.pipeline():
                for entry in added:
                    writer.put(None, entry)
                    tallies.add(entry)
                tallies.write(con, scope)
                writer.finish()
            last = rows.to_row(scope, added[-1])
            return added, ((LOCK, scope), (f"{ONE_ENTRY} AND hash = %s", (*last[:4], last[-1])))

        return self._server.write(work) if drafts else ()

    def _see(self, con: Con, scope: Scope, name: tuple[str, str | None], stamp: Stamp) -> _Seen:
        """Lock the project and read what a change depends on; a project that is new comes to exist first."""
        # Not a pipeline: after one the server (seen with PostgreSQL 18) does not start the clock of
        # idle_in_transaction_session_timeout, and a process that is stopped now would keep its lock for ever.
        while (locked := con.execute(LOCK, scope).fetchone()) is None:
            # One less than now, so that the first change is at `now` whether it needs a new time stamp or not. If
            # nothing is changed after all, this is not committed either.
            con.execute(NEW_PROJECT, (*scope, stamp.now - 1))
        one = (*scope, *name)
        session, version, *row = con.execute(LOOK, (*scope, SESSION, stamp.session, *one, *one)).fetchall()[0]
        before = None if row[0] is None else self._entry(scope, tuple(row))
        return _Seen(locked[0], locked[1], session, before, version)

    # --- whole projects -----------------------------------------------------------------------------------------------

    def dump(self, scope: Scope) -> Iterator[tuple[str, Mapping[str, Any]]]:
        with self._server.connection() as con:
            try:
                con.execute(VIEW)
                con.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{EXPORT_IDLE_SECONDS}s'")
                for row in self._server.stream(DUMP_ENTRIES, tuple(scope), con):
                    yield "entry", entry_record(self._entry(scope, row))
                for row in self._server.stream(DUMP_EVENTS, tuple(scope), con):
                    yield "event", rows.event_record(self.place, scope, row)
            except psycopg.Error as problem:
                raise self._server.translate(problem, lost=con.closed) from problem

    def load(
        self,
        scope: Scope,
        entries: Iterable[Entry],
        records: Iterable[Mapping[str, Any]],
        arriving: Iterable[Arriving] = (),
    ) -> int:
        def work(con: Con) -> tuple[int, Proof]:
            if not con.execute(NEW_PROJECT, (*scope, 0)).fetchall():
                raise errors.project_not_empty(scope.project)
            writer, tallies = _Writer(con, scope, 0, 0), _Tallies()
            count = 0
            with con.pipeline() as pipeline:
                for count, entry in enumerate(sorted(entries, key=lambda entry: entry.created_at), 1):
                    writer.put(None, entry)
                    tallies.add(entry)
                    writer.clock = max(writer.clock, entry.updated_at)
                    if count % LOAD_BATCH == 0:
                        pipeline.sync()
                for number, record in enumerate(records, 1):
                    con.execute(NEW_EVENT, rows.event_row(scope, record))
                    writer.seq, writer.clock = max(writer.seq, record["seq"]), max(writer.clock, record["at"])
                    if number % LOAD_BATCH == 0:
                        pipeline.sync()
                tallies.write(con, scope)
                writer.finish()
            arrive(PostgresSql(con), scope, arriving)
            # The server looks at new rows a minute later by itself; until then it would search in clumsy ways.
            con.execute("ANALYZE entries, entry_tags, tallies, events")
            there = "SELECT 1 FROM projects WHERE tenant = %s AND project = %s AND seq = %s AND clock = %s"
            return count, ((LOCK, scope), (there, (*scope, writer.seq, writer.clock)))

        # What is being loaded can be read only once.
        return self._server.write(work, repeatable=False)

    def backup(self, target: str) -> None:
        raise errors.no_backup_here(self.place)

    def check(self) -> tuple[Finding, ...]:
        def work(con: Con) -> tuple[Finding, ...]:
            bad: list[str] = []
            total = texts = stale = changes = 0
            for tenant, project, *row, folded, terms in self._server.stream(CHECK_ENTRIES, (), con):
                total += 1
                try:
                    entry = self._entry(Scope(tenant, project), tuple(row))
                except errors.StoreDamaged:
                    bad.append(f"{row[0]} {row[1]!r} of project {project!r}")
                    continue
                texts += 1
                stale += folded != analyse.fold(rows.sought_text(entry)) or bool(
                    missing(rows.indexed_text(entry), terms)
                )
            for tenant, project, *row in self._server.stream(CHECK_EVENTS, (), con):
                changes += 1
                try:
                    rows.event_record(self.place, Scope(tenant, project), tuple(row))
                except (errors.StoreDamaged, ValueError):
                    bad.append(f"an earlier version of {row[5]} {row[6]!r} of project {project!r}")
            sound = f"{total:,} entries and {changes:,} changes are as they were written"
            return (
                _engine(con),
                Finding("checksums", not bad, ", ".join(bad[:5]) or sound),
                Finding("index", not stale, f"{texts - stale:,} of {texts:,} texts are indexed"),
                self._check_outputs(PostgresSql(con)),
            )

        return self._server.view(work)


class _Seen(NamedTuple):
    """What a change depends on, read under the project's lock."""

    seq: int
    clock: int
    session: bool  # whether the stamp's session exists
    entry: Entry | None
    last_version: int


class _Writer:
    """The changes of one transaction. It counts on from the project's row, which `finish` writes back."""

    def __init__(self, con: Con, scope: Scope, seq: int, clock: int) -> None:
        self._con = con
        self._scope = scope
        self.seq = seq
        self.clock = clock
        self.proof: Proof = ()

    def write(
        self, name: tuple[str, str | None], version: int, before: Entry | None, wanted: Draft | Gone, stamp: Stamp
    ) -> Entry | None:
        """One change and its event. The entry as it is afterwards; its version is 1 when the key is made here."""
        kind, key = name
        self.seq += 1
        self.clock = max(self.clock + (key is None), stamp.now)
        while key is None:
            # A key that somebody brought along (an import) may be ahead of our clock.
            if _number(self._con, LAST_VERSION, (*self._scope, kind, f"{kind}_{self.clock}")):
                self.clock += 1
            else:
                key, version = f"{kind}_{self.clock}", 1
        after = None
        if isinstance(wanted, Draft):
            after = next_entry(kind, key, before, wanted, stamp, self.clock, version)
        event = (*self._scope, self.seq, self.clock, stamp.by, stamp.operation, stamp.session, kind, key, version)
        self.put(before, after)
        for count in rows.counts(before, after):
            self._con.execute(COUNT, (*self._scope, kind, *count))
        self._con.execute(NEW_EVENT, (*event, to_json(dict(stamp.detail)), rows.keep(self._scope, before)))
        self.proof = ((LOCK, self._scope), (SAME_EVENT, event))
        return after

    def begin(self, stamp: Stamp) -> None:
        """The stamp's session, which is not there yet."""
        first = stamp._replace(operation="begin_session", detail=EMPTY)
        version = 1 + _number(self._con, LAST_VERSION, (*self._scope, SESSION, stamp.session))
        self.write((SESSION, stamp.session), version, None, Draft(""), first)

    def put(self, before: Entry | None, after: Entry | None) -> None:
        """The row and its tags, from `before` to `after`."""
        con, scope, some = self._con, self._scope, before or after
        if some is None:
            return
        forget_vector(con, scope, before, after)
        if after is None:
            con.execute(f"DELETE FROM entries WHERE {_ONE}", (*scope, some.kind, some.key))  # noqa: S608
        else:
            con.execute(
                PUT_ENTRY,
                (
                    *rows.to_row(scope, after),
                    analyse.fold(rows.sought_text(after)),
                    vector(analyse.terms(analyse.index_words(rows.indexed_text(after)))),
                ),
            )
            wait_for_vector(con, scope, before, after)
        old, new = set(rows.folded_tags(before)), set(rows.folded_tags(after))
        if old - new:
            sql = f"DELETE FROM entry_tags WHERE {_ONE} AND tag = ANY(%s)"  # noqa: S608
            con.execute(sql, (*scope, some.kind, some.key, list(old - new)))
        for tag in new - old:
            con.execute("INSERT INTO entry_tags VALUES (%s, %s, %s, %s, %s)", (*scope, some.kind, tag, some.key))

    def finish(self) -> None:
        self._con.execute(
            "UPDATE projects SET seq = %s, clock = %s WHERE tenant = %s AND project = %s",
            (self.seq, self.clock, *self._scope),
        )


class _Tallies:
    """The counts of many new entries. Written once each: a row that changes ten thousand times in one go is slow."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], tuple[str, int]] = {}

    def add(self, entry: Entry) -> None:
        for count in rows.counts(None, entry):
            name = (entry.kind, count.session, count.tag)
            label, sum_ = self._counts.get(name, (count.label, 0))
            self._counts[name] = (label, sum_ + count.step)

    def write(self, con: Con, scope: Scope) -> None:
        for name, counted in self._counts.items():
            con.execute(COUNT, (*scope, *name, *counted))


def _needed(before: Entry | None, wanted: Draft | Gone | None) -> Draft | Gone | None:
    """What is left to do: None when all is as wanted already. What is not there need not be deleted."""
    done = unchanged(before, wanted) if isinstance(wanted, Draft) else before is None
    return None if done else wanted


def _where(scope: Scope, query: Listing) -> tuple[str, Row]:
    """The conditions of a listing on `entries e`."""
    # One kind is compared and not looked up in a list, so that an index gives the order too.
    one = len(query.kinds) == 1
    parts = [f"e.tenant = %s AND e.project = %s AND e.kind = {'%s' if one else 'ANY(%s)'}"]
    values: list[Any] = [*scope, query.kinds[0] if one else list(query.kinds)]
    if query.session is not None:
        parts.append("e.session = %s")
        values.append(query.session)
    if not query.include_done:
        parts.append("NOT e.done")
    for tag in query.tags:
        parts.append(
            "e.key IN (SELECT g.key FROM entry_tags g WHERE g.tenant = e.tenant AND g.project = e.project "
            "AND g.kind = e.kind AND g.tag = %s)"
        )
        values.append(tag)
    return " AND ".join(parts), tuple(values)


def _word_query(words: Words) -> str | None:
    """A word query in PostgreSQL's syntax, or None when no entry can match it."""
    groups = []
    for group in words.groups:
        lexemes = [quoted for term in analyse.terms(list(group)) if (quoted := lexeme(term))]
        if lexemes:
            groups.append(f"({' | '.join(lexemes)})")
        elif group and words.every:
            return None
    return (" & " if words.every else " | ").join(groups) or None


def _number(con: Con, sql: str, values: Row) -> int:
    number: int = con.execute(sql, values).fetchall()[0][0]
    return number


def _first_spelling(con: Con, scope: Scope, kind: str, tags: tuple[str, ...]) -> tuple[str, ...]:
    """Tags as they were first spelled in this project."""
    found = con.execute(LABELS, (*scope, kind, [analyse.fold(tag) for tag in tags])).fetchall()
    labels: dict[str, str] = dict(found)
    return tuple(labels.get(analyse.fold(tag), tag) for tag in tags)


def _engine(con: Con) -> Finding:
    """Whether the server keeps what it says it has kept."""
    names = ("fsync", "full_page_writes", "synchronous_commit")
    asked = ", ".join(f"current_setting('{name}')" for name in names)
    found = con.execute(f"SELECT {asked}").fetchall()[0]
    off = [name for name, value in zip(names, found, strict=True) if value == "off"]
    version = f"PostgreSQL {con.info.parameter_status('server_version')}, schema {SCHEMA}"
    unsafe = f"{version}; {' and '.join(off)} switched off: a power cut can lose or damage data"
    return Finding("engine", not off, unsafe if off else version)
