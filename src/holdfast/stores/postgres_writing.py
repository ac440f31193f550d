"""Changes of entries in PostgreSQL: the rows that one change touches, in the transaction that holds the project's lock.

Because of that lock, what was read before is still so. So a row is inserted or replaced by what is known of it, and
never by leaving that to the server (ON CONFLICT DO UPDATE): it needs an index over all rows of a table, which a table
that is spread over several servers does not have. Where nobody knows, the row is made if need be, and then changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.model import EMPTY, SESSION, Draft, Entry, Scope, Stamp
from holdfast.search import analyse
from holdfast.store import Gone, to_json
from holdfast.stores import rows
from holdfast.stores.drafts import next_entry
from holdfast.stores.postgres_recall import vector
from holdfast.stores.postgres_schema import Con
from holdfast.stores.postgres_server import Proof
from holdfast.stores.postgres_vectors import forget_vector, waiting
from holdfast.stores.rows import FIELDS, Row

# The texts of this module are put together from constants of ours only; every value is a parameter.
ONE = "tenant = %s AND project = %s AND kind = %s AND key = %s"
LAST_VERSION = f"SELECT coalesce(max(version), 0) FROM events WHERE {ONE}"  # noqa: S608
LOCK = "SELECT seq, clock FROM projects WHERE tenant = %s AND project = %s FOR UPDATE"
NEW_EVENT = f"INSERT INTO events VALUES ({', '.join(['%s'] * 12)})"  # noqa: S608
NEW_ENTRY = (
    f"INSERT INTO entries (tenant, project, {FIELDS}, folded, terms) VALUES ({', '.join(['%s'] * 16)}, "  # noqa: S608
    "CAST(%s AS tsvector))"
)
REPLACE_ENTRY = (
    f"UPDATE entries SET {', '.join(f'{name} = %s' for name in FIELDS.split(', ')[2:])}, folded = %s, "  # noqa: S608
    f"terms = CAST(%s AS tsvector) WHERE {ONE}"
)
NEW_TALLIES = (
    "INSERT INTO tallies SELECT %s, %s, s.kind, s.session, s.tag, s.label, 0 "
    "FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[]) AS s (kind, session, tag, label) "
    "ON CONFLICT DO NOTHING"
)
COUNT = (
    "UPDATE tallies t SET count = t.count + s.step "
    "FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[]) AS s (kind, session, tag, step) "
    "WHERE t.tenant = %s AND t.project = %s AND t.kind = s.kind AND t.session = s.session AND t.tag = s.tag "
    # Said twice, because another server can be asked this and not what is joined here.
    "AND t.kind = ANY(%s) AND t.session = ANY(%s) AND t.tag = ANY(%s)"
)
SAME_EVENT = "SELECT 1 FROM events WHERE tenant = %s AND project = %s AND " + " AND ".join(  # noqa: S608
    f"{name} = %s" for name in rows.EVENT_FIELDS
)


class Writer:
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
        _count(self._con, self._scope, [(kind, *count) for count in rows.counts(before, after)])
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
        name = (*scope, some.kind, some.key)
        forget_vector(con, scope, before, after)
        if after is None:
            con.execute(f"DELETE FROM entries WHERE {ONE}", name)  # noqa: S608
        else:
            row = (
                *rows.to_row(scope, after),
                analyse.fold(rows.sought_text(after)),
                vector(analyse.terms(analyse.index_words(rows.indexed_text(after)))),
            )
            change, values = (NEW_ENTRY, row) if before is None else (REPLACE_ENTRY, (*row[4:], *name))
            new_text = rows.indexed_text(before) != rows.indexed_text(after)
            con.execute(waiting(change) if new_text else change, values)
        old, new = set(rows.folded_tags(before)), set(rows.folded_tags(after))
        if old - new:
            con.execute(f"DELETE FROM entry_tags WHERE {ONE} AND tag = ANY(%s)", (*name, list(old - new)))  # noqa: S608
        for tag in new - old:
            con.execute("INSERT INTO entry_tags VALUES (%s, %s, %s, %s, %s)", (*scope, some.kind, tag, some.key))

    def finish(self) -> None:
        self._con.execute(
            "UPDATE projects SET seq = %s, clock = %s WHERE tenant = %s AND project = %s",
            (self.seq, self.clock, *self._scope),
        )


class Tallies:
    """The counts of many new entries. Written once each: a row that changes ten thousand times in one go is slow."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], tuple[str, int]] = {}

    def add(self, entry: Entry) -> None:
        for count in rows.counts(None, entry):
            name = (entry.kind, count.session, count.tag)
            label, sum_ = self._counts.get(name, (count.label, 0))
            self._counts[name] = (label, sum_ + count.step)

    def write(self, con: Con, scope: Scope) -> None:
        _count(con, scope, [(*name, *counted) for name, counted in self._counts.items()])


def _count(con: Con, scope: Scope, counts: Sequence[tuple[str, str, str, str, int]]) -> None:
    """Add steps to tallies, each given as kind, session, tag, label and step."""
    if counts:
        kinds, sessions, tags, labels, steps = (list(column) for column in zip(*counts, strict=True))
        con.execute(NEW_TALLIES, (*scope, kinds, sessions, tags, labels))
        con.execute(COUNT, (kinds, sessions, tags, steps, *scope, kinds, sessions, tags))


def _number(con: Con, sql: str, values: Row) -> int:
    number: int = con.execute(sql, values).fetchall()[0][0]
    return number
