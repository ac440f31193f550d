"""Changes of entries in PostgreSQL: the rows that one change touches, in the transaction that holds the project's lock.

Because of that lock, what was read before is still so. So a row is inserted or replaced by what is known of it, and
never by leaving that to the server (ON CONFLICT DO UPDATE): it needs an index over all rows of a table, which a table
that is spread over several servers does not have. Where nobody knows, what is there is changed, and the rest is made.

One change is one statement, whose parts (WITH) do not see each other's rows: each touches rows of its own, and counts
that must hold afterwards are those from before with what is added to them. A statement costs both sides as much as the
rows that it changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.model import EMPTY, SESSION, Draft, Entry, Scope, Stamp, Tally
from holdfast.search import analyse
from holdfast.store import Gone, to_json
from holdfast.stores import rows
from holdfast.stores.drafts import next_entry
from holdfast.stores.postgres_recall import vector
from holdfast.stores.postgres_schema import Con
from holdfast.stores.postgres_server import Proof
from holdfast.stores.postgres_vectors import WAITS, forgotten
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
STEPS = (  # of tallies, for the two parts after it
    "steps AS MATERIALIZED (SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[]) "
    "AS s (kind, session, tag, label, step))"
)
COUNT = (
    "counted AS (UPDATE tallies t SET count = t.count + s.step FROM steps s "
    "WHERE t.tenant = %s AND t.project = %s AND t.kind = s.kind AND t.session = s.session AND t.tag = s.tag "
    # Said twice, because another server can be asked this and not what is joined here.
    "AND t.kind = ANY(%s) AND t.session = ANY(%s) AND t.tag = ANY(%s) RETURNING t.kind, t.session, t.tag)"
)
NEW_TALLIES = (
    "INSERT INTO tallies SELECT %s, %s, s.kind, s.session, s.tag, s.label, s.step FROM steps s "
    "WHERE NOT EXISTS (SELECT 1 FROM counted c WHERE c.kind = s.kind AND c.session = s.session AND c.tag = s.tag)"
)
TALLY = (
    "SELECT coalesce(sum(count) FILTER (WHERE tag = ''), 0)::bigint, count(*) FILTER (WHERE tag <> '' AND count > 0) "
    "FROM tallies WHERE tenant = %s AND project = %s AND kind = %s AND session = %s"
)
NEXT_TALLY = (  # with the steps, which are not to be seen in the table yet
    "SELECT coalesce(sum(n.count) FILTER (WHERE n.tag = ''), 0)::bigint, "
    "count(*) FILTER (WHERE n.tag <> '' AND n.count > 0) FROM (SELECT b.tag, sum(b.count) AS count FROM ("
    "SELECT t.tag, t.count FROM tallies t WHERE t.tenant = %s AND t.project = %s AND t.kind = %s AND t.session = %s "
    "UNION ALL SELECT s.tag, s.step FROM steps s WHERE s.kind = %s AND s.session = %s) b GROUP BY b.tag) n"
)
NEXT = "UPDATE projects SET seq = %s, clock = %s WHERE tenant = %s AND project = %s"
NEW_TAGS = "INSERT INTO entry_tags SELECT %s, %s, %s, tag, %s FROM unnest(%s::text[]) AS tag"
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

    def next_key(self, kind: str, now: int) -> str:
        """The key that an entry gets which has none, unless it is taken."""
        return f"{kind}_{max(self.clock + 1, now)}"

    def write(
        self, name: tuple[str, str | None], version: int, before: Entry | None, wanted: Draft | Gone, stamp: Stamp
    ) -> tuple[Entry | None, Tally]:
        """One change, its event and the project's row. The entry as it is afterwards, and the tally of its session.

        Without a key one is made, and `version` says whether that of `next_key` is free: it is 1 then.
        """
        kind, key = name
        self.seq += 1
        if key is None:
            self.clock, key = self._made(kind, stamp.now, free=version == 1)
            version = 1
        else:
            self.clock = max(self.clock, stamp.now)
        after = None
        if isinstance(wanted, Draft):
            after = next_entry(kind, key, before, wanted, stamp, self.clock, version)
        event = (*self._scope, self.seq, self.clock, stamp.by, stamp.operation, stamp.session, kind, key, version)
        changes = _changes(self._scope, before, after)
        parts = [f"{part} AS ({sql})" for part, sql, _ in changes]
        values = [value for _, _, given in changes for value in given]
        parts += [f"noted AS ({NEW_EVENT})", f"counts_on AS ({NEXT})"]
        values += [*event, to_json(dict(stamp.detail)), rows.keep(self._scope, before)]
        values += [self.seq, self.clock, *self._scope]
        some = after or before
        tally = (kind, some.session if some else "")
        counts = [(kind, *count) for count in rows.counts(before, after)]
        answer = TALLY
        if counts:
            parts += [STEPS, COUNT, f"made AS ({NEW_TALLIES})"]
            values += _counting(self._scope, counts)
            answer = NEXT_TALLY
        values += [*self._scope, *tally, *(tally if counts else ())]
        found = self._con.execute(f"WITH {', '.join(parts)} {answer}", values).fetchall()  # noqa: S608
        self.proof = ((LOCK, self._scope), (SAME_EVENT, event))
        return after, Tally(*found[0])

    def _made(self, kind: str, now: int, *, free: bool) -> tuple[int, str]:
        """The time and the key of a new entry. A key that somebody brought along (an import) may be ahead of us."""
        clock = max(self.clock + 1, now)
        while not free:
            free = not _number(self._con, LAST_VERSION, (*self._scope, kind, f"{kind}_{clock}"))
            clock += not free
        return clock, f"{kind}_{clock}"

    def begin(self, stamp: Stamp) -> None:
        """The stamp's session, which is not there yet."""
        first = stamp._replace(operation="begin_session", detail=EMPTY)
        version = 1 + _number(self._con, LAST_VERSION, (*self._scope, SESSION, stamp.session))
        self.write((SESSION, stamp.session), version, None, Draft(""), first)

    def put(self, before: Entry | None, after: Entry | None) -> None:
        """The row and its tags, from `before` to `after`."""
        changes = _changes(self._scope, before, after)
        parts = ", ".join(f"{name} AS ({sql})" for name, sql, _ in changes[:-1])
        if changes:
            values = [value for _, _, given in changes for value in given]
            self._con.execute(f"{f'WITH {parts} ' if parts else ''}{changes[-1][1]}", values)

    def finish(self) -> None:
        self._con.execute(NEXT, (self.seq, self.clock, *self._scope))


def _changes(scope: Scope, before: Entry | None, after: Entry | None) -> list[tuple[str, str, Row]]:
    """The parts of a statement that bring the row and its tags from `before` to `after`, each with a name."""
    some = before or after
    if some is None:
        return []
    name = (*scope, some.kind, some.key)
    parts: list[tuple[str, str, Row]] = [*forgotten(scope, before, after)]
    if after is None:
        parts.append(("gone", f"DELETE FROM entries WHERE {ONE}", name))  # noqa: S608
    else:
        row = (
            *rows.to_row(scope, after),
            analyse.fold(rows.sought_text(after)),
            vector(analyse.terms(analyse.index_words(rows.indexed_text(after)))),
        )
        change, values = (NEW_ENTRY, row) if before is None else (REPLACE_ENTRY, (*row[4:], *name))
        if rows.indexed_text(before) != rows.indexed_text(after):
            parts += [("changed", f"{change} RETURNING tenant, project, doc", values), ("waits", WAITS, ())]
        else:
            parts.append(("changed", change, values))
    old, new = set(rows.folded_tags(before)), set(rows.folded_tags(after))
    if old - new:
        parts.append(("untagged", f"DELETE FROM entry_tags WHERE {ONE} AND tag = ANY(%s)", (*name, list(old - new))))  # noqa: S608
    if new - old:
        parts.append(("tagged", NEW_TAGS, (*scope, some.kind, some.key, list(new - old))))
    return parts


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
        if self._counts:
            counts = [(*name, *counted) for name, counted in self._counts.items()]
            con.execute(f"WITH {STEPS}, {COUNT} {NEW_TALLIES}", _counting(scope, counts))


def _counting(scope: Scope, counts: Sequence[tuple[str, str, str, str, int]]) -> Row:
    """The values of STEPS, COUNT and NEW_TALLIES: steps are given as kind, session, tag, label and step."""
    steps = [list(column) for column in zip(*counts, strict=True)]
    return (*steps, *scope, *steps[:3], *scope)


def _number(con: Con, sql: str, values: Row) -> int:
    number: int = con.execute(sql, values).fetchall()[0][0]
    return number
