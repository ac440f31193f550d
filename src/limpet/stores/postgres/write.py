"""Changes of entries in PostgreSQL: the rows that one change touches, in the transaction that holds the project's lock.

Because of that lock, what was read before is still true. So the writer knows whether a row is new, and inserts or
updates it.

The statements of a change travel together, in one round trip. Each of them changes rows of one table, and inserts by
VALUES that say the tenant: an engine that spreads tenants over servers (Citus) sends such a statement to one of them,
and hands on no rows from one part of a statement to another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from psycopg import Cursor, RawCursor

from limpet.model import EMPTY, MEMORY, SESSION, Change, Draft, Entry, Scope, Stamp, Tally
from limpet.redaction.entries import refuse_secret_session
from limpet.store import Delete, to_json
from limpet.stores.postgres.candidates import tsvector
from limpet.stores.postgres.connections import Last, Proof
from limpet.stores.postgres.schema import Con
from limpet.stores.postgres.tenants import together
from limpet.stores.shared import rows
from limpet.stores.shared.rows import FIELDS, indexed_text, next_entry
from limpet.stores.shared.sql import Row
from limpet.text import words

# The statements of this module are built from constants; every value is a parameter.
ONE = "tenant = %s AND project = %s AND kind = %s AND key = %s"
LAST_VERSION = f"SELECT coalesce(max(version), 0) FROM events WHERE {ONE}"  # noqa: S608
LOCK = "SELECT seq, clock FROM projects WHERE tenant = %s AND project = %s FOR UPDATE"
NEW_EVENTS, EVENT_ROW = "INSERT INTO events VALUES {}", f"({', '.join(['%s'] * 12)})"

Statement = tuple[str, Mapping[str, Any] | Sequence[Any]]
ROWS = 100  # inserted by one statement
PARAMETERS = 65_535  # of one statement: the protocol has no more

# The statements of a change. Their values are named: most are columns of an entry, which several of them use.
THIS = "tenant = %(tenant)s AND project = %(project)s AND kind = %(kind)s AND key = %(key)s"
COLUMNS = ("tenant", "project", *FIELDS.split(", "), "folded", "expires_at", "replaced")
NEW_ENTRY = (
    f"INSERT INTO entries ({', '.join(COLUMNS)}, terms) VALUES ({', '.join(f'%({name})s' for name in COLUMNS)}, "  # noqa: S608
    "CAST(%(terms)s AS tsvector))"
)
REPLACE_ENTRY = (
    f"UPDATE entries SET {', '.join(f'{name} = %({name})s' for name in COLUMNS[4:])}, "  # noqa: S608
    f"terms = CAST(%(terms)s AS tsvector) WHERE {THIS}"
)
ROW = f"({'%s, ' * len(COLUMNS)}CAST(%s AS tsvector))"
LOADED_ENTRIES = f"INSERT INTO entries ({', '.join(COLUMNS)}, terms) VALUES {{}}"  # noqa: S608
NEW_ENTRIES = f"{LOADED_ENTRIES} RETURNING kind, key, doc"
TAG = "(%s, %s, %s, %s, %s)"
DELETE_ENTRY = f"DELETE FROM entries WHERE {THIS}"  # noqa: S608
NEW_TAGS = "INSERT INTO entry_tags (tenant, project, kind, key, tag) VALUES {}"
OLD_TAGS = f"DELETE FROM entry_tags WHERE {THIS} AND tag = ANY(%(old_tags)s)"  # noqa: S608
INSERT_EVENT = (
    "INSERT INTO events VALUES (%(tenant)s, %(project)s, %(seq)s, %(clock)s, %(by)s, %(operation)s, %(in_session)s, "
    "%(kind)s, %(key)s, %(event_version)s, %(detail)s, %(before)s)"
)
THIS_TEXT = "tenant = %(tenant)s AND project = %(project)s AND doc = %(doc)s"
OLD_VECTOR = f"DELETE FROM vectors WHERE {THIS_TEXT}"  # noqa: S608
NOT_WAITING = f"DELETE FROM vectors_waiting WHERE {THIS_TEXT}"  # noqa: S608
NEW_WAITING = "INSERT INTO vectors_waiting (tenant, project, doc) VALUES {} ON CONFLICT DO NOTHING"
# Of a project that was empty: all that have a text, a tag, or a key that says something.
ALL_WAITING = (
    "INSERT INTO vectors_waiting (tenant, project, doc) SELECT tenant, project, doc FROM entries "  # noqa: S608
    f"WHERE tenant = %s AND project = %s AND (content ~ '\\S' OR tags <> '[]' OR kind = '{MEMORY}') "
    "ON CONFLICT DO NOTHING"
)
# When many texts are written, new words are sorted into the indexes by the thousands, and all of them in the end.
WIDE_LISTS = "SET LOCAL gin_pending_list_limit = '16MB'"
SORT_IN = (
    "SELECT gin_clean_pending_list(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
    "JOIN pg_am a ON a.oid = c.relam WHERE i.indrelid IN ('entries'::regclass, 'output_pieces'::regclass) "
    "AND a.amname = 'gin' AND pg_has_role(c.relowner, 'MEMBER')"
)
WAITING = NEW_WAITING.format("(%(tenant)s, %(project)s, %(doc)s)")
JUST_NUMBERED = NEW_WAITING.format("(%(tenant)s, %(project)s, lastval())")  # the text that was inserted just now
NEXT = "UPDATE projects SET seq = %(seq)s, clock = %(clock)s WHERE tenant = %(tenant)s AND project = %(project)s"
COUNT = (
    "INSERT INTO tallies (tenant, project, kind, session, tag, label, count) VALUES {} "
    "ON CONFLICT (tenant, project, kind, session, tag) DO UPDATE SET count = tallies.count + excluded.count"
)
TALLY = (
    "SELECT coalesce(sum(count) FILTER (WHERE tag = ''), 0)::bigint, count(*) FILTER (WHERE tag <> '' AND count > 0) "
    "FROM tallies WHERE tenant = %(tenant)s AND project = %(project)s AND kind = %(kind)s AND session = %(of_session)s"
)
EVENT = ("tenant", "project", "seq", "clock", "by", "operation", "in_session", "kind", "key", "event_version")
SAME_EVENT = "SELECT 1 FROM events WHERE tenant = %s AND project = %s AND " + " AND ".join(  # noqa: S608
    f"{name} = %s" for name in rows.EVENT_FIELDS
)


class Writer:
    """The changes of one transaction. It continues from the project's row, which `finish` writes back."""

    def __init__(self, con: Con, scope: Scope, seq: int, clock: int) -> None:
        self._con = con
        self._scope = scope
        self.seq = seq
        self.clock = clock
        self.proof: Proof = ()

    def write(
        self,
        name: tuple[str, str | None],
        version: int,
        before: Entry | None,
        draft: Draft | Delete,
        stamp: Stamp,
        doc: int | None = None,
    ) -> Change:
        """One change, its event and the project's row; with the entry after it and the tally of its session.

        Without a key one is minted, and `version` is 1 if that of the next millisecond is free. `doc` is the number of
        the text before.
        """
        last = self.last(name, version, before, draft, stamp, doc)
        with together(self._con):
            last.send()
            tally = self._con.execute(*last.answer)
        return last.result(tally.fetchall())

    def last(
        self,
        name: tuple[str, str | None],
        version: int,
        before: Entry | None,
        draft: Draft | Delete,
        stamp: Stamp,
        doc: int | None = None,
    ) -> Last[Change]:
        """The same, not sent yet: the last change of a transaction travels with its COMMIT."""
        kind, key = name
        self.seq += 1
        if key is None:
            self.clock, key = self._mint(kind, stamp.now, free=version == 1)
            version = 1
        else:
            self.clock = max(self.clock, stamp.now)
        after = None
        if isinstance(draft, Draft):
            after = next_entry(kind, key, before, draft, stamp, self.clock, version)
        event = (*self._scope, self.seq, self.clock, stamp.by, stamp.operation, stamp.session, kind, key, version)
        some = after or before
        values = {**dict(zip(EVENT, event, strict=True)), "of_session": some.session if some else ""}
        values |= {"detail": to_json(dict(stamp.detail)), "before": rows.version_to_json(self._scope, before)}
        changes = list(_changes(self._scope, before, after, doc))
        self.proof = ((LOCK, self._scope), (SAME_EVENT, event))

        def send() -> None:
            for statement in changes:
                self._con.execute(*statement)
            self._con.execute(INSERT_EVENT, values)
            self._con.execute(NEXT, values)
            count(self._con, self._scope, rows.counts(before, after))

        seq = self.seq
        return Last(self.proof, send, (TALLY, values), lambda tally: Change(seq, before, after, Tally(*tally[0])))

    def _mint(self, kind: str, now: int, *, free: bool) -> tuple[int, str]:
        """The time and the key of a new entry. Keys that an import brought along may be ahead of the clock."""
        clock = max(self.clock + 1, now)
        while not free:
            free = not _number(self._con, LAST_VERSION, (*self._scope, kind, f"{kind}_{clock}"))
            clock += not free
        return clock, f"{kind}_{clock}"

    def begin(self, stamp: Stamp) -> None:
        """Create the stamp's session."""
        refuse_secret_session(stamp)
        first = stamp._replace(operation="begin_session", detail=EMPTY)
        version = 1 + _number(self._con, LAST_VERSION, (*self._scope, SESSION, stamp.session))
        self.write((SESSION, stamp.session), version, None, Draft(""), first)

    def load(self, entries: Iterable[Entry], tallies: rows.Sums) -> int:
        """The rows and the tags of many new entries: statements that are sent while earlier ones are being run."""
        total = 0
        tags: list[Row] = []
        entries = iter(entries)
        while some := list(islice(entries, ROWS)):
            insert(self._con, LOADED_ENTRIES, ROW, [_row(self._scope, entry) for entry in some])
            tags += self._tags(some)
            while len(tags) >= ROWS:  # always as many, so that the server has prepared the statement
                insert(self._con, NEW_TAGS, TAG, tags[:ROWS])
                del tags[:ROWS]
            for entry in some:
                tallies.add(entry)
                self.clock = max(self.clock, entry.updated_at)
            total += len(some)
        insert(self._con, NEW_TAGS, TAG, tags)
        self._con.execute(ALL_WAITING, self._scope)
        return total

    def put(self, entries: Sequence[Entry]) -> None:
        """The rows and the tags of new entries."""
        for start in range(0, len(entries), ROWS):
            some = entries[start : start + ROWS]
            added = self._insert(NEW_ENTRIES, ROW, [_row(self._scope, entry) for entry in some])
            numbers = {(kind, key): doc for kind, key, doc in added}
            waiting = [(*self._scope, numbers[entry[:2]]) for entry in some if indexed_text(entry)]
            self._insert(NEW_WAITING, "(%s, %s, %s)", waiting)
            self._insert(NEW_TAGS, TAG, self._tags(some))

    def _tags(self, entries: Sequence[Entry]) -> list[Row]:
        return [(*self._scope, *entry[:2], tag) for entry in entries for tag in rows.folded_tags(entry)]

    def _insert(self, sql: str, row: str, values: Sequence[Row]) -> list[Row]:
        most = PARAMETERS // row.count("%s")  # of a text with many tags there are many rows
        added: list[Row] = []
        for start in range(0, len(values), most):
            cursor = insert(self._con, sql, row, values[start : start + most])
            added += cursor.fetchall() if cursor is not None and "RETURNING" in sql else []
        return added

    def finish(self) -> None:
        self._con.execute(NEXT, {**self._scope._asdict(), "seq": self.seq, "clock": self.clock})


def _row(scope: Scope, entry: Entry) -> Row:
    """The values of an entry, in the order of COLUMNS and terms."""
    derived = (words.fold(rows.searched_text(entry)), rows.expires_at(entry), rows.is_replaced(entry))
    return (*rows.to_row(scope, entry), *derived, tsvector(words.terms(words.index_words(indexed_text(entry)))))


def _changes(scope: Scope, before: Entry | None, after: Entry | None, doc: int | None) -> Iterator[Statement]:
    """The statements that bring the row of an entry, its tags and what waits from `before` to `after`."""
    some = before or after
    if some is None:
        return
    values: dict[str, Any] = {**scope._asdict(), "kind": some.kind, "key": some.key, "doc": doc}
    other_text = indexed_text(before) != indexed_text(after)
    if before is not None and (after is None or other_text):
        yield OLD_VECTOR, values
    if after is None:
        yield NOT_WAITING, values
        yield DELETE_ENTRY, values
    else:
        yield (
            NEW_ENTRY if before is None else REPLACE_ENTRY,
            dict(zip((*COLUMNS, "terms"), _row(scope, after), strict=True)),
        )
        if other_text:
            yield JUST_NUMBERED if before is None else WAITING, values
    old, new = set(rows.folded_tags(before)), set(rows.folded_tags(after))
    if old - new:
        yield OLD_TAGS, {**values, "old_tags": list(old - new)}
    if new - old:
        tagged = [value for tag in sorted(new - old) for value in (*scope, some.kind, some.key, tag)]
        yield NEW_TAGS.format(", ".join([TAG] * len(new - old))), tagged


def count(con: Con, scope: Scope, steps: Sequence[rows.Count]) -> None:
    """Add steps of kind, session, tag, label and step to the tallies."""
    for start in range(0, len(steps), ROWS):
        insert(con, COUNT, "(%s, %s, %s, %s, %s, %s, %s)", [(*scope, *step) for step in steps[start : start + ROWS]])


def insert(con: Con, sql: str, row: str, values: Sequence[Row]) -> Cursor[Row] | None:
    """Insert rows by one statement; none if there are none."""
    if not values:
        return None
    # The driver would look for its placeholders in a long text, at ten times what the server takes for the rows.
    return RawCursor(con).execute(_numbered(sql, row, len(values)), [value for of_row in values for value in of_row])


@lru_cache(100)
def _numbered(sql: str, row: str, count: int) -> str:
    """The statement for so many rows, with the server's own placeholders."""
    numbers = iter(range(1, count * row.count("%s") + 1))
    return sql.format(re.sub("%s", lambda _: f"${next(numbers)}", ", ".join([row] * count)))


def _number(con: Con, sql: str, values: Row) -> int:
    number: int = con.execute(sql, values).fetchall()[0][0]
    return number
