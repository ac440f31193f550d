"""The store for teams: one PostgreSQL database. It does the same as the embedded store, number for number.

postgres_server.py connects, commits and tries again, postgres_schema.py makes the tables. Writers of a project stand in
line at the project's row, which each locks before it reads anything; so reading, deciding and writing are one step
although the isolation level is READ COMMITTED. A change is one statement (postgres_writing.py), and the statements of
many changes travel together (a pipeline), because the server may be far away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import psycopg

from limpet import errors
from limpet.model import SESSION, Change, Draft, Entry, Event, Scope, Stamp, TagCount, Tally
from limpet.store import Arriving, Decide, EventQuery, Finding, Gone, entry_record
from limpet.stores.postgres.connections import EXPORT_IDLE_SECONDS, Proof, Server
from limpet.stores.postgres.erase import PostgresErase
from limpet.stores.postgres.outputs import PostgresOutputs, PostgresSql
from limpet.stores.postgres.pages import PostgresPages
from limpet.stores.postgres.recall import PostgresRecall, missing
from limpet.stores.postgres.replica import Replica
from limpet.stores.postgres.schema import SCHEMA, TABLES, Con
from limpet.stores.postgres.search import PostgresSearch
from limpet.stores.postgres.tenants import VIEW, begin, separation
from limpet.stores.postgres.vectors import PostgresVectors
from limpet.stores.postgres.write import LAST_VERSION, LOCK, NEW_EVENT, ONE, TALLY, Tallies, Writer
from limpet.stores.shared import rows
from limpet.stores.shared.drafts import next_entry, unchanged
from limpet.stores.shared.output_transfer import arrive
from limpet.stores.shared.rows import E_FIELDS, FIELDS, Row
from limpet.text import words

LOAD_BATCH = 200  # rows of a load that are on their way before we wait for the server

# The texts of this module are put together from constants of ours only; every value is a parameter.
ONE_ENTRY = f"SELECT {FIELDS} FROM entries WHERE {ONE}"  # noqa: S608
TAKEN = "SELECT key FROM entries WHERE tenant = %s AND project = %s AND kind = %s AND key = ANY(%s)"
LABELS = (
    "SELECT tag, label FROM tallies WHERE tenant = %s AND project = %s AND kind = %s AND session = '' AND tag = ANY(%s)"
)
LOOK = (
    f"SELECT EXISTS (SELECT 1 FROM entries WHERE {ONE}), ({LAST_VERSION}), e.doc, {E_FIELDS} FROM (SELECT 1) one "  # noqa: S608
    "LEFT JOIN entries e ON e.tenant = %s AND e.project = %s AND e.kind = %s AND e.key = %s"
)
LOOK_AHEAD = (  # for an entry that is new
    f"SELECT EXISTS (SELECT 1 FROM entries WHERE {ONE}), ({LAST_VERSION}), "  # noqa: S608
    f"(SELECT json_object_agg(s.tag, s.label) FROM ({LABELS}) s)"
)
NEW_PROJECT = "INSERT INTO projects VALUES (%s, %s, 0, %s) ON CONFLICT DO NOTHING RETURNING 1"
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


class PostgresStore(PostgresSearch, PostgresOutputs, PostgresRecall, PostgresVectors, PostgresErase, PostgresPages):
    def __init__(self, url: str, replica: str | None = None) -> None:
        self._server = Server(url)
        self.place = self._server.place
        self._replica = Replica(replica, self._server) if replica else None

    def close(self) -> None:
        if self._replica is not None:
            self._replica.close()
        self._server.close()

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, scope: Scope, kind: str, key: str) -> Entry | None:
        found = self._server.rows(scope.tenant, ONE_ENTRY, (*scope, kind, key))
        return self._entry(scope, found[0]) if found else None

    def _entry(self, scope: Scope, row: Row) -> Entry:
        return rows.to_entry(self.place, scope, row)

    def tags(self, scope: Scope, kind: str, session: str) -> tuple[TagCount, ...]:
        found = self._server.rows(
            scope.tenant,
            "SELECT label, count FROM tallies WHERE tenant = %s AND project = %s AND kind = %s AND session = %s "
            "AND tag <> '' AND count > 0 ORDER BY tag",
            (*scope, kind, session),
        )
        return tuple(TagCount(label, count) for label, count in found)

    def tally(self, scope: Scope, kind: str, session: str) -> Tally:
        values = {**scope._asdict(), "kind": kind, "of_session": session}
        return Tally(*self._server.reads(scope.tenant, lambda con: con.execute(TALLY, values).fetchall())[0])

    def projects(self, tenant: str) -> tuple[str, ...]:
        sought = "SELECT project FROM projects WHERE tenant = %s ORDER BY project"
        found = self._server.rows(tenant, sought, (tenant,))
        return tuple(row[0] for row in found)

    def events(self, scope: Scope, query: EventQuery) -> tuple[Event, ...]:
        given = rows.event_conditions(scope, query, "%s")
        sought = f"{EVENTS}{' AND '.join(given)} ORDER BY v.seq DESC LIMIT %s"
        found = self._server.rows(scope.tenant, sought, (*given.values(), query.limit))
        return tuple(rows.to_event(self.place, scope, row) for row in found)

    def event(self, scope: Scope, seq: int) -> Event | None:
        sought = f"{EVENTS}v.tenant = %s AND v.project = %s AND v.seq = %s"
        found = self._server.rows(scope.tenant, sought, (*scope, seq))
        return rows.to_event(self.place, scope, found[0]) if found else None

    # --- writing ------------------------------------------------------------------------------------------------------

    def edit(self, scope: Scope, kind: str, key: str | None, decide: Decide, stamp: Stamp) -> Change:
        def work(con: Con, locked: list[Row]) -> tuple[Change, Proof]:
            place = locked[0] if locked else self._locked(con, scope, stamp)
            if key is None:
                return self._add(con, scope, kind, decide, stamp, place)
            return self._edit(con, scope, (kind, key), decide, stamp, place)

        return self._server.write_after(scope.tenant, (LOCK, scope), work)

    def edit_all(self, scope: Scope, edits: Sequence[tuple[str, str, Decide]], stamp: Stamp) -> tuple[Change, ...]:
        def work(con: Con) -> tuple[tuple[Change, ...], Proof]:
            done = [
                self._edit(con, scope, (kind, key), decide, stamp, self._locked(con, scope, stamp))
                for kind, key, decide in edits
            ]
            proof = next((proof for _, proof in reversed(done) if proof), ())
            return tuple(change for change, _ in done), proof

        return self._server.write(scope.tenant, work) if edits else ()

    def _edit(
        self, con: Con, scope: Scope, name: tuple[str, str], decide: Decide, stamp: Stamp, locked: Row
    ) -> tuple[Change, Proof]:
        kind = name[0]
        seen = self._see(con, scope, name, stamp)
        writer = Writer(con, scope, *locked)
        if kind != SESSION and stamp.session and not seen.session:
            writer.begin(stamp)
        before = seen.entry
        wanted = decide(before)
        if isinstance(wanted, Draft) and wanted.tags:
            found = con.execute(LABELS, (*scope, kind, [words.fold(tag) for tag in wanted.tags])).fetchall()
            wanted = wanted._replace(tags=_first_spelling(dict(found), wanted.tags))
        if (needed := _needed(before, wanted)) is None:
            return self._unchanged(con, scope, kind, before, stamp), writer.proof
        version = 1 + (before.version if before else seen.last_version)
        after, counted = writer.write(name, version, before, needed, stamp, seen.doc)
        return Change(writer.seq, before, after, counted), writer.proof

    def _add(
        self, con: Con, scope: Scope, kind: str, decide: Decide, stamp: Stamp, locked: Row
    ) -> tuple[Change, Proof]:
        """An entry without a key, which gets one. There is nothing before it, so less need be asked."""
        wanted = decide(None)
        tags = wanted.tags if isinstance(wanted, Draft) else ()
        writer = Writer(con, scope, *locked)
        new = (*scope, kind, writer.next_key(kind, stamp.now))
        asked = (*scope, SESSION, stamp.session, *new, *scope, kind, [words.fold(tag) for tag in tags])
        session, taken, labels = con.execute(LOOK_AHEAD, asked).fetchall()[0]
        if kind != SESSION and stamp.session and not session:
            writer.begin(stamp)
            taken = 1  # time went on, and the key with it
        if not isinstance(wanted, Draft):
            return self._unchanged(con, scope, kind, None, stamp), writer.proof
        draft = wanted._replace(tags=_first_spelling(labels or {}, tags))
        after, counted = writer.write((kind, None), 1 + taken, None, draft, stamp)
        return Change(writer.seq, None, after, counted), writer.proof

    def _unchanged(self, con: Con, scope: Scope, kind: str, entry: Entry | None, stamp: Stamp) -> Change:
        values = {**scope._asdict(), "kind": kind, "of_session": entry.session if entry else stamp.session}
        return Change(0, entry, entry, Tally(*con.execute(TALLY, values).fetchall()[0]))

    def append(self, scope: Scope, kind: str, drafts: Sequence[tuple[str, Draft]], stamp: Stamp) -> tuple[Entry, ...]:
        def work(con: Con) -> tuple[tuple[Entry, ...], Proof]:
            writer, tallies = Writer(con, scope, *self._locked(con, scope, stamp)), Tallies()
            seen = self._see(con, scope, (kind, drafts[0][0]), stamp)
            if not seen.session:
                writer.begin(stamp)
            taken = con.execute(TAKEN, (*scope, kind, [key for key, _ in drafts])).fetchall()
            if known := [key for key, _ in drafts if (key,) in taken]:
                raise errors.appended_before(kind, known[0])
            writer.clock = max(writer.clock, stamp.now)
            added = tuple(next_entry(kind, key, None, draft, stamp, writer.clock, 1) for key, draft in drafts)
            with con.pipeline():
                for entry in added:
                    writer.put(entry)
                    tallies.add(entry)
                tallies.write(con, scope)
                writer.finish()
            last = rows.to_row(scope, added[-1])
            return added, ((LOCK, scope), (f"{ONE_ENTRY} AND hash = %s", (*last[:4], last[-1])))

        return self._server.write(scope.tenant, work) if drafts else ()

    def _locked(self, con: Con, scope: Scope, stamp: Stamp) -> Row:
        """The project's row, locked; a project that is new comes to exist first."""
        # Not a pipeline: after one the server (seen with PostgreSQL 18) does not start the clock of
        # idle_in_transaction_session_timeout, and a process that is stopped now would keep its lock for ever.
        while (locked := con.execute(LOCK, scope).fetchone()) is None:
            # One less than now, so that the first change is at `now` whether it needs a new time stamp or not. If
            # nothing is changed after all, this is not committed either.
            con.execute(NEW_PROJECT, (*scope, stamp.now - 1))
        return locked

    def _see(self, con: Con, scope: Scope, name: tuple[str, str], stamp: Stamp) -> _Seen:
        """What a change depends on, read once the project is locked."""
        one = (*scope, *name)
        session, version, doc, *row = con.execute(LOOK, (*scope, SESSION, stamp.session, *one, *one)).fetchall()[0]
        return _Seen(session, None if row[0] is None else self._entry(scope, tuple(row)), doc, version)

    # --- whole projects -----------------------------------------------------------------------------------------------

    def dump(self, scope: Scope) -> Iterator[tuple[str, Mapping[str, Any]]]:
        with self._server.connection() as con:
            try:
                begin(con, VIEW, scope.tenant)
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
            if not _made(con, scope):
                raise errors.project_not_empty(scope.project)
            writer, tallies = Writer(con, scope, 0, 0), Tallies()
            count = 0
            with con.pipeline() as pipeline:
                for count, entry in enumerate(sorted(entries, key=lambda entry: entry.created_at), 1):
                    writer.put(entry)
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
        return self._server.write(scope.tenant, work, repeatable=False)

    def backup(self, target: str) -> None:
        from limpet.stores.shared import backup as whole

        whole.backup(self, target)

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
                stale += folded != words.fold(rows.sought_text(entry)) or bool(missing(rows.indexed_text(entry), terms))
            for tenant, project, *row in self._server.stream(CHECK_EVENTS, (), con):
                changes += 1
                try:
                    rows.event_record(self.place, Scope(tenant, project), tuple(row))
                except (errors.StoreDamaged, ValueError):
                    bad.append(f"an earlier version of {row[5]} {row[6]!r} of project {project!r}")
            sound = f"{total:,} entries and {changes:,} changes are as they were written"
            return (
                _engine(con),
                separation(con, TABLES),
                Finding("checksums", not bad, ", ".join(bad[:5]) or sound),
                Finding("index", not stale, f"{texts - stale:,} of {texts:,} texts are indexed"),
                self._check_outputs(PostgresSql(con)),
            )

        found = self._server.everything(work)
        return found if self._replica is None else (*found, self._replica.check())


class _Seen(NamedTuple):
    """What a change depends on, read under the project's lock."""

    session: bool  # whether the stamp's session exists
    entry: Entry | None
    doc: int | None  # the number of its text
    last_version: int


def _made(con: Con, scope: Scope) -> bool:
    """Make a project. False when it is there already, and also when somebody made it while we looked."""
    try:
        return bool(con.execute(NEW_PROJECT, (*scope, 0)).fetchall())
    except psycopg.errors.SerializationFailure:
        return False


def _needed(before: Entry | None, wanted: Draft | Gone | None) -> Draft | Gone | None:
    """What is left to do: None when all is as wanted already. What is not there need not be deleted."""
    done = unchanged(before, wanted) if isinstance(wanted, Draft) else before is None
    return None if done else wanted


def _first_spelling(labels: Mapping[str, str], tags: tuple[str, ...]) -> tuple[str, ...]:
    """Tags as they were first spelled in this project."""
    return tuple(labels.get(words.fold(tag), tag) for tag in tags)


def _engine(con: Con) -> Finding:
    """Whether the server keeps what it says it has kept."""
    names = ("fsync", "full_page_writes", "synchronous_commit")
    asked = ", ".join(f"current_setting('{name}')" for name in names)
    found = con.execute(f"SELECT {asked}").fetchall()[0]
    off = [name for name, value in zip(names, found, strict=True) if value == "off"]
    version = f"PostgreSQL {con.info.parameter_status('server_version')}, schema {SCHEMA}"
    unsafe = f"{version}; {' and '.join(off)} switched off: a power cut can lose or damage data"
    return Finding("engine", not off, unsafe if off else version)
