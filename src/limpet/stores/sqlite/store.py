"""The embedded store: one SQLite file. sqlite_file.py opens, locks and commits, sqlite_index.py searches words."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import apsw

from limpet import errors
from limpet.model import EMPTY, SESSION, Change, Draft, Entry, Event, Scope, Stamp, TagCount, Tally
from limpet.store import Arriving, Decide, EventQuery, Finding, Gone, Listing, Page, Words, entry_record, to_json
from limpet.stores.shared import rows
from limpet.stores.shared.drafts import next_entry, unchanged
from limpet.stores.shared.output_transfer import arrive
from limpet.stores.shared.rows import E_FIELDS, FIELDS, Row
from limpet.stores.sqlite.database import SCHEMA, Database
from limpet.stores.sqlite.erase import SqliteErase
from limpet.stores.sqlite.index import Fresh, WordIndex, any_of, held, may_contain, tag_mark, tidy
from limpet.stores.sqlite.outputs import SqliteOutputs, SqliteSql
from limpet.stores.sqlite.pages import SqlitePages
from limpet.stores.sqlite.recall import PLACE, SqliteRecall
from limpet.stores.sqlite.vectors import SqliteVectors, wait_for_vector
from limpet.text import words as analyse

T = TypeVar("T")
ONE_ENTRY = f"SELECT {FIELDS} FROM entries WHERE tenant = ? AND project = ? AND kind = ? AND key = ?"  # noqa: S608
REPLACE_ENTRY = f"UPDATE entries SET ({', '.join(FIELDS.split(', ')[2:])}) = (?{', ?' * 10}) WHERE rowid = ?"  # noqa: S608
NEXT_CLOCK = "UPDATE projects SET clock = clock + 1 WHERE tenant = ? AND project = ? RETURNING clock"
ADD_TO_TALLY = (
    "INSERT INTO tallies VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count"
)
KNOWN_LABELS = 2_000  # spellings of tags a process remembers
LAST_BEFORE = "SELECT seq FROM events WHERE tenant = ? AND project = ? AND at < ? ORDER BY seq DESC LIMIT 1"
NEW_EVENT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class SqliteStore(SqliteOutputs, SqliteRecall, SqliteVectors, SqliteErase, SqlitePages):
    def __init__(self, path: str) -> None:
        self._db = Database(path)
        self.place = self._db.path
        self._index = WordIndex()
        self._sessions: set[tuple[str, str, str]] = set()  # known to exist
        self._labels: dict[tuple[str, ...], str] = {}  # first spellings of tags

    def searches(self) -> Mapping[str, int]:
        return {}  # a file has no replica

    def close(self) -> None:
        self._db.close()

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, scope: Scope, kind: str, key: str) -> Entry | None:
        found = self._db.rows(ONE_ENTRY, (scope.tenant, scope.project, kind, key))
        return self._named(scope, (kind, key), found[0]) if found else None

    def _entry(self, scope: Scope, row: Row) -> Entry:
        return rows.to_entry(self.place, scope, row)

    def _named(self, scope: Scope, name: tuple[str, str], row: Row) -> Entry:
        """An entry that was asked for by name. A damaged index may lead to another one, which is whole in itself."""
        entry = self._entry(scope, row)
        if (entry.kind, entry.key) != name:
            raise errors.store_damaged(self.place, f"{name[0]} {name[1]!r}")
        return entry

    def list(self, scope: Scope, query: Listing) -> Page:
        source, values = _source(scope, query)

        def work(con: apsw.Connection) -> Page:
            found = con.execute(
                f"SELECT {E_FIELDS} FROM {source} ORDER BY e.updated_at DESC, e.key DESC LIMIT ?",  # noqa: S608
                (*values, query.limit),
            ).fetchall()
            total = len(found)
            if total == query.limit:
                total = _one(con, f"SELECT count(*) FROM {source}", values)[0]  # noqa: S608
            return Page(tuple(self._entry(scope, row) for row in found), total)

        return self._db.read(work)

    def containing(self, scope: Scope, query: Listing, needle: str) -> Page:
        folded = analyse.fold(needle)

        def work(con: apsw.Connection) -> Page:
            source, values = _source(scope, query, may_contain(con, folded))
            sql = f"SELECT {PLACE}, e.updated_at, e.key, e.rowid FROM {source}"  # noqa: S608
            found: list[Row] = con.execute(sql, (folded, *values)).fetchall()
            hits = sorted((hit for hit in found if hit[0]), key=lambda hit: str(hit[2]), reverse=True)
            hits.sort(key=lambda hit: (hit[0], -hit[1]))  # position, then newest; equal ones stay by key
            one = f"SELECT {FIELDS} FROM entries WHERE rowid = ?"  # noqa: S608
            shown = (con.execute(one, (hit[3],)).fetchall() for hit in hits[: query.limit])
            return Page(tuple(self._entry(scope, row) for one_row in shown for row in one_row), len(hits))

        return self._db.read(work)

    def matching(self, scope: Scope, query: Listing, words: Words) -> tuple[Entry, ...]:
        def work(con: apsw.Connection) -> tuple[Entry, ...]:
            groups = []
            for group in filter(None, words.groups):
                found: set[str] = set().union(*(held(con, word) for word in group))
                if not found and words.every:
                    return ()  # they must hold each, and this one no entry holds
                groups.append(any_of(found))
            if not groups:
                return ()
            source, values = _source(scope, query, (" AND " if words.every else " OR ").join(groups))
            # Newest first is the order of the index itself, read from its end: no need to score what holds every word.
            order = "t.rowid DESC" if words.every else "t.rank"
            sql = f"SELECT {E_FIELDS} FROM {source} ORDER BY {order} LIMIT ?"  # noqa: S608
            return tuple(self._entry(scope, row) for row in con.execute(sql, (*values, query.limit)))

        return self._db.read(work)

    def tags(self, scope: Scope, kind: str, session: str) -> tuple[TagCount, ...]:
        found = self._db.rows(
            "SELECT label, count FROM tallies WHERE tenant = ? AND project = ? AND kind = ? AND session = ? "
            "AND tag <> '' AND count > 0 ORDER BY tag",
            (*scope, kind, session),
        )
        return tuple(TagCount(label, count) for label, count in found)

    def tally(self, scope: Scope, kind: str, session: str) -> Tally:
        return self._db.read(lambda con: _tally(con, scope, kind, session))

    def projects(self, tenant: str) -> tuple[str, ...]:
        found = self._db.rows("SELECT project FROM projects WHERE tenant = ? ORDER BY project", (tenant,))
        return tuple(row[0] for row in found)

    def events(self, scope: Scope, query: EventQuery) -> tuple[Event, ...]:
        given = rows.event_conditions(scope, query, "?")
        # Walking back from the newest event is quick where a page fills up soon. Of one kind since some time there may
        # be none at all, and the walk would be through all history. Times never go back, so it ends before they begin.
        if query.kind is not None and query.since is not None:
            older = self._db.rows(LAST_BEFORE, (*scope, query.since))
            given["v.seq > ?"] = older[0][0] if older else 0
        found = self._db.rows(
            f"{_EVENTS}{' AND '.join(given)} ORDER BY v.seq DESC LIMIT ?", (*given.values(), query.limit)
        )
        return tuple(rows.to_event(self.place, scope, row) for row in found)

    def event(self, scope: Scope, seq: int) -> Event | None:
        found = self.events(scope, EventQuery(before_seq=seq + 1, limit=1))
        return found[0] if found and found[0].seq == seq else None

    # --- writing ------------------------------------------------------------------------------------------------------

    def edit(self, scope: Scope, kind: str, key: str | None, decide: Decide, stamp: Stamp) -> Change:
        fresh = Fresh()

        def work(con: apsw.Connection) -> Change:
            change = self._edit(con, scope, (kind, key), decide, stamp, fresh)
            if change.seq and change.after is None:
                tidy(con, "terms")
            return change

        change = self._written(work, fresh)
        if kind == SESSION:
            self._sessions.discard((*scope, change.entry.key if change.seq else ""))
        else:
            self._sessions.add((*scope, stamp.session))
        return change

    def edit_all(self, scope: Scope, edits: Sequence[tuple[str, str, Decide]], stamp: Stamp) -> tuple[Change, ...]:
        fresh = Fresh()

        def work(con: apsw.Connection) -> tuple[Change, ...]:
            changes = [self._edit(con, scope, (kind, key), decide, stamp, fresh) for kind, key, decide in edits]
            if any(change.seq and change.after is None for change in changes):
                tidy(con, "terms")
            return tuple(changes)

        changes = self._written(work, fresh) if edits else ()
        self._sessions.difference_update({(*scope, key) for kind, key, _ in edits if kind == SESSION})
        return changes

    def _written(self, work: Callable[[apsw.Connection], T], fresh: Fresh) -> T:
        try:
            done = self._db.write(work)
        except BaseException:
            self._labels.clear()  # one of them may stand in what was taken back
            raise
        self._index.learn(fresh)  # only now is it on disk
        return done

    def _edit(
        self,
        con: apsw.Connection,
        scope: Scope,
        name: tuple[str, str | None],
        decide: Decide,
        stamp: Stamp,
        fresh: Fresh,
    ) -> Change:
        kind, key = name
        if kind != SESSION and stamp.session:
            self._ensure_session(con, scope, stamp, fresh)
        before = None if key is None else self._before(con, scope, kind, key)
        wanted = decide(before)
        if isinstance(wanted, Draft) and wanted.tags:
            wanted = wanted._replace(tags=tuple(self._spelling(con, (*scope, kind, tag)) for tag in wanted.tags))
        if wanted is None or unchanged(before, wanted):
            session = stamp.session if before is None else before.session
            return Change(0, before, before, _tally(con, scope, kind, session))
        return self._write(con, scope, name, before, wanted, stamp, fresh)

    def append(self, scope: Scope, kind: str, drafts: Sequence[tuple[str, Draft]], stamp: Stamp) -> tuple[Entry, ...]:
        fresh = Fresh()

        def work(con: apsw.Connection) -> tuple[Entry, ...]:
            self._ensure_session(con, scope, stamp, fresh)
            # The first change of a project is at `now` whether it needs a new time stamp or not.
            clock = _one(
                con,
                "INSERT INTO projects VALUES (?, ?, 0, ?) ON CONFLICT DO UPDATE "
                "SET clock = max(clock, excluded.clock) RETURNING clock",
                (*scope, stamp.now),
            )[0]
            added = []
            for key, draft in drafts:
                if self._before(con, scope, kind, key) is not None:
                    raise errors.appended_before(kind, key)
                added.append(next_entry(kind, key, None, draft, stamp, clock, 1))
                self._put(con, scope, None, added[-1], fresh)
            return tuple(added)

        if not drafts:
            return ()
        entries = self._db.write(work)
        self._index.learn(fresh)
        self._sessions.add((*scope, stamp.session))
        return entries

    def _before(self, con: apsw.Connection, scope: Scope, kind: str, key: str) -> Entry | None:
        found = con.execute(ONE_ENTRY, (*scope, kind, key)).fetchall()
        return self._named(scope, (kind, key), found[0]) if found else None

    def _spelling(self, con: apsw.Connection, name: tuple[str, str, str, str]) -> str:
        """A tag as it was first spelled in its project. That never changes, so it is looked up once."""
        *where, tag = name
        key = (*where, analyse.fold(tag))
        if key not in self._labels:
            sql = "SELECT label FROM tallies WHERE tenant = ? AND project = ? AND kind = ? AND session = '' AND tag = ?"
            found = con.execute(sql, key).fetchall()
            if not found:
                return tag
            if len(self._labels) >= KNOWN_LABELS:
                self._labels.clear()
            self._labels[key] = str(found[0][0])
        return self._labels[key]

    def _ensure_session(self, con: apsw.Connection, scope: Scope, stamp: Stamp, fresh: Fresh) -> None:
        if (*scope, stamp.session) in self._sessions or self._before(con, scope, SESSION, stamp.session):
            return
        begin = stamp._replace(operation="begin_session", detail=EMPTY)
        self._write(con, scope, (SESSION, stamp.session), None, Draft(""), begin, fresh)

    def _write(
        self,
        con: apsw.Connection,
        scope: Scope,
        name: tuple[str, str | None],
        before: Entry | None,
        wanted: Draft | Gone,
        stamp: Stamp,
        fresh: Fresh,
    ) -> Change:
        kind, key = name
        seq, clock = _one(
            con,
            "INSERT INTO projects VALUES (?, ?, 1, ?) ON CONFLICT DO UPDATE "
            "SET seq = seq + 1, clock = max(clock + ?, excluded.clock) RETURNING seq, clock",
            (*scope, stamp.now, key is None),
        )
        if key is None:
            while _known(con, scope, kind, f"{kind}_{clock}"):  # brought along by an import
                clock = _one(con, NEXT_CLOCK, tuple(scope))[0]
            key, version = f"{kind}_{clock}", 1
        else:
            version = 1 + (before.version if before else _last_version(con, scope, kind, key))
        after = None
        if isinstance(wanted, Draft):
            after = next_entry(kind, key, before, wanted, stamp, clock, version)
        self._put(con, scope, before, after, fresh)
        event = (*scope, seq, clock, stamp.by, stamp.operation, stamp.session, kind, key, version)
        con.execute(NEW_EVENT, (*event, to_json(dict(stamp.detail)), rows.keep(scope, before)))
        counted = after or before
        return Change(seq, before, after, _tally(con, scope, kind, counted.session if counted else ""))

    def _put(self, con: apsw.Connection, scope: Scope, before: Entry | None, after: Entry | None, fresh: Fresh) -> None:
        """The row, its counts and its words, from `before` to `after`."""
        name = "tenant = ? AND project = ? AND kind = ? AND key = ?"
        if before is None:
            row = rows.to_row(scope, after) if after else ()
            con.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            doc = con.last_insert_rowid()
        else:
            doc = _one(con, f"SELECT rowid FROM entries WHERE {name}", (*scope, before.kind, before.key))[0]  # noqa: S608
            if after is None:
                con.execute("DELETE FROM entries WHERE rowid = ?", (doc,))
            else:
                con.execute(REPLACE_ENTRY, (*rows.to_row(scope, after)[4:], doc))
        kind, _ = rows.name_of(before, after)
        con.executemany(ADD_TO_TALLY, [(*scope, kind, *count) for count in rows.counts(before, after)])
        self._index.update(con, doc, before, after, fresh)
        wait_for_vector(con, scope, doc, before, after)

    # --- whole projects -----------------------------------------------------------------------------------------------

    def dump(self, scope: Scope) -> Iterator[tuple[str, Mapping[str, Any]]]:
        con = self._db.take()
        try:
            con.execute("BEGIN")
            entries = f"SELECT {FIELDS} FROM entries WHERE tenant = ? AND project = ? ORDER BY kind, key"  # noqa: S608
            for row in con.execute(entries, tuple(scope)):
                yield "entry", entry_record(self._entry(scope, row))
            names = ", ".join(rows.EVENT_FIELDS)
            events = f"SELECT {names}, detail, before FROM events WHERE tenant = ? AND project = ? ORDER BY seq"  # noqa: S608
            for row in con.execute(events, tuple(scope)):
                yield "event", rows.event_record(self.place, scope, row)
        except (apsw.Error, UnicodeDecodeError) as problem:
            raise self._db.translate(problem) from problem
        finally:
            if con.in_transaction:
                con.execute("ROLLBACK")
            self._db.give(con)

    def load(
        self,
        scope: Scope,
        entries: Iterable[Entry],
        records: Iterable[Mapping[str, Any]],
        arriving: Iterable[Arriving] = (),
    ) -> int:
        def work(con: apsw.Connection) -> int:
            if con.execute("SELECT 1 FROM projects WHERE tenant = ? AND project = ?", tuple(scope)).fetchall():
                raise errors.project_not_empty(scope.project)
            count = seq = clock = 0
            for entry in sorted(entries, key=lambda entry: entry.created_at):  # the index is in order of creation
                self._put(con, scope, None, entry, Fresh())
                count, clock = count + 1, max(clock, entry.updated_at)
            for record in records:
                con.execute(NEW_EVENT, rows.event_row(scope, record))
                seq, clock = max(seq, record["seq"]), max(clock, record["at"])
            con.execute("INSERT INTO projects VALUES (?, ?, ?, ?)", (*scope, seq, clock))
            arrive(SqliteSql(con), scope, arriving)
            return count

        return self._db.write(work)

    def backup(self, target: str) -> None:
        try:
            os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError as problem:
            raise errors.target_exists(target) from problem
        except OSError as problem:
            raise errors.store_read_only(target, problem.strerror or str(problem)) from problem

        def work(con: apsw.Connection) -> None:
            copy = apsw.Connection(target, flags=apsw.SQLITE_OPEN_READWRITE)
            # The removal of its journal too must be on the disk: one that comes back after a power cut undoes the copy.
            copy.execute("PRAGMA synchronous = EXTRA")
            with copy.backup("main", con, "main") as running:
                running.step()  # all pages in one step: one consistent moment
            copy.close()

        try:
            self._db.read(work)
        except errors.StoreProblem:
            os.unlink(target)  # half a backup is worse than none
            raise

    def check(self) -> tuple[Finding, ...]:
        def work(con: apsw.Connection) -> tuple[Finding, ...]:
            verdict = [str(row[0]) for row in con.execute("PRAGMA integrity_check(5)")]
            names: list[Row] = con.execute("SELECT tenant, project, kind, key FROM entries").fetchall()
            bad, texts = [], 0
            for *owner, kind, key in names:
                try:
                    entry = self._before(con, Scope(*owner), kind, key)
                    texts += bool(rows.indexed_text(entry))
                except (errors.StoreDamaged, UnicodeDecodeError):
                    texts += 1
                    bad.append(f"{kind} {key!r} of project {owner[1]!r}")
            changes: list[Row] = con.execute("SELECT tenant, project, seq, kind, key FROM events").fetchall()
            for *owner, seq, kind, key in changes:
                try:
                    one = "SELECT before FROM events WHERE tenant = ? AND project = ? AND seq = ?"
                    rows.kept(self.place, Scope(*owner), _one(con, one, (*owner, seq))[0])
                except (errors.StoreDamaged, UnicodeDecodeError, IndexError):  # not even found again
                    bad.append(f"an earlier version of {kind} {key!r} of project {owner[1]!r}")
            sound = f"{len(names):,} entries and {len(changes):,} changes are as they were written"
            indexed = _one(con, "SELECT count(*) FROM terms_docsize", ())[0]
            return (
                Finding("engine", True, f"SQLite {apsw.sqlite_lib_version()}, schema {SCHEMA}"),
                Finding("file", verdict == ["ok"], "; ".join(verdict)),
                Finding("checksums", not bad, ", ".join(bad[:5]) or sound),
                Finding("index", indexed == texts, f"{indexed:,} of {texts:,} texts are indexed"),
                self._check_outputs(SqliteSql(con)),
            )

        return self._db.view(work)


# The texts below are put together from constants of ours only; every value is a parameter.
_EVENTS = (
    f"SELECT {', '.join(f'v.{name}' for name in rows.EVENT_FIELDS)}, v.detail, v.before, n.before, "  # noqa: S608
    f"{E_FIELDS} FROM events v "
    "LEFT JOIN events n ON n.tenant = v.tenant AND n.project = v.project AND n.kind = v.kind AND n.key = v.key "
    "AND n.version = v.version + 1 "
    "LEFT JOIN entries e ON e.tenant = v.tenant AND e.project = v.project AND e.kind = v.kind AND e.key = v.key "
    "AND e.version = v.version WHERE "
)


def _one(con: apsw.Connection, sql: str, values: tuple[Any, ...]) -> Row:
    """The single row of a query that always has one."""
    row: Row = con.execute(sql, values).fetchall()[0]
    return row


def _source(scope: Scope, query: Listing, match: str | None = None) -> tuple[str, tuple[Any, ...]]:
    """What a listing reads, from the table name to the conditions. Tags are words of the index too."""
    matches = [f"({match})"] if match else []
    matches += [any_of([tag_mark(tag)]) for tag in query.tags]
    conditions = [f"e.tenant = ? AND e.project = ? AND e.kind IN ({', '.join('?' * len(query.kinds))})"]
    values: list[Any] = [*scope, *query.kinds]
    if query.session is not None:
        conditions.append("e.session = ?")
        values.append(query.session)
    if not query.include_done:
        conditions.append("e.done = 0")
    table = "entries e"
    if matches:
        table = "terms t JOIN entries e ON e.rowid = t.rowid"
        conditions.append("terms MATCH ?")
        values.append(" AND ".join(matches))
    return f"{table} WHERE {' AND '.join(conditions)}", tuple(values)


def _known(con: apsw.Connection, scope: Scope, kind: str, key: str) -> bool:
    """Whether an entry of that name is there or ever was."""
    name = (*scope, kind, key)
    return _last_version(con, scope, kind, key) > 0 or bool(con.execute(ONE_ENTRY, name).fetchall())


def _last_version(con: apsw.Connection, scope: Scope, kind: str, key: str) -> int:
    sql = "SELECT coalesce(max(version), 0) FROM events WHERE tenant = ? AND project = ? AND kind = ? AND key = ?"
    version: int = _one(con, sql, (*scope, kind, key))[0]
    return version


def _tally(con: apsw.Connection, scope: Scope, kind: str, session: str) -> Tally:
    sql = (
        "SELECT coalesce(sum(count) FILTER (WHERE tag = ''), 0), count(*) FILTER (WHERE tag <> '' AND count > 0) "
        "FROM tallies WHERE tenant = ? AND project = ? AND kind = ? AND session = ?"
    )
    return Tally._make(_one(con, sql, (*scope, kind, session)))
