"""Changes of entries in PostgreSQL: the rows that one change touches, in the transaction that holds the project's lock.

Because of that lock, what was read before is still true. So the writer knows whether a row is new, and inserts or
updates it. It does not use ON CONFLICT DO UPDATE: that needs a unique index over all rows of a table, which a table
that is spread over several servers does not have. Where it is not known, existing rows are updated and the rest
inserted.

One change is one statement, whose parts (WITH) do not see each other's rows: each part changes rows of its own and
reads none that another part changes, because on other servers it would see the change. The tally after the change is
computed in the last part, from the table and the steps. A statement costs both sides as much as the rows it changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limpet.model import EMPTY, SESSION, Draft, Entry, Scope, Stamp, Tally
from limpet.redaction.entries import refuse_secret_session
from limpet.store import Delete, to_json
from limpet.stores.postgres.candidates import tsvector
from limpet.stores.postgres.connections import Proof
from limpet.stores.postgres.schema import Con
from limpet.stores.shared import rows
from limpet.stores.shared.rows import FIELDS, indexed_text, next_entry
from limpet.stores.shared.sql import Row
from limpet.text import words

# The statements of this module are built from constants; every value is a parameter.
ONE = "tenant = %s AND project = %s AND kind = %s AND key = %s"
LAST_VERSION = f"SELECT coalesce(max(version), 0) FROM events WHERE {ONE}"  # noqa: S608
LOCK = "SELECT seq, clock FROM projects WHERE tenant = %s AND project = %s FOR UPDATE"
NEW_EVENT = f"INSERT INTO events VALUES ({', '.join(['%s'] * 12)})"  # noqa: S608

# The parts of a change. Their values are named: most are columns of an entry, which several parts use.
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
DELETE_ENTRY = f"DELETE FROM entries WHERE {THIS}"  # noqa: S608
NEW_TAGS = (
    "INSERT INTO entry_tags SELECT %(tenant)s, %(project)s, %(kind)s, tag, %(key)s "
    "FROM unnest(%(new_tags)s::text[]) AS tag"
)
OLD_TAGS = f"DELETE FROM entry_tags WHERE {THIS} AND tag = ANY(%(old_tags)s)"  # noqa: S608
INSERT_EVENT = (
    "INSERT INTO events VALUES (%(tenant)s, %(project)s, %(seq)s, %(clock)s, %(by)s, %(operation)s, %(in_session)s, "
    "%(kind)s, %(key)s, %(event_version)s, %(detail)s, %(before)s)"
)
THIS_TEXT = "tenant = %(tenant)s AND project = %(project)s AND doc = %(doc)s"
OLD_VECTOR = f"old_vector AS (DELETE FROM vectors WHERE {THIS_TEXT})"  # noqa: S608
NOT_WAITING = f"not_waiting AS (DELETE FROM vectors_waiting WHERE {THIS_TEXT})"  # noqa: S608
WAITING = "INSERT INTO vectors_waiting SELECT tenant, project, doc FROM changed ON CONFLICT DO NOTHING"
NEXT = "UPDATE projects SET seq = %(seq)s, clock = %(clock)s WHERE tenant = %(tenant)s AND project = %(project)s"
STEPS = (  # of tallies, for the two parts after it
    "steps AS MATERIALIZED (SELECT * FROM json_to_recordset(%(steps)s::json) "
    "AS s (kind text, session text, tag text, label text, step bigint))"
)
COUNT = (
    "counted AS (UPDATE tallies t SET count = t.count + s.step FROM steps s "
    "WHERE t.tenant = %(tenant)s AND t.project = %(project)s "
    "AND t.kind = s.kind AND t.session = s.session AND t.tag = s.tag "
    # Repeated as constants, because another server can evaluate these and not the join.
    "AND t.kind = ANY(%(kinds)s) AND t.session = ANY(%(sessions)s) AND t.tag = ANY(%(tags_counted)s) "
    "RETURNING t.kind, t.session, t.tag)"
)
NEW_TALLIES = (
    "INSERT INTO tallies SELECT %(tenant)s, %(project)s, s.kind, s.session, s.tag, s.label, s.step FROM steps s "
    "WHERE NOT EXISTS (SELECT 1 FROM counted c WHERE c.kind = s.kind AND c.session = s.session AND c.tag = s.tag)"
)
TALLY = (
    "SELECT coalesce(sum(count) FILTER (WHERE tag = ''), 0)::bigint, count(*) FILTER (WHERE tag <> '' AND count > 0) "
    "FROM tallies WHERE tenant = %(tenant)s AND project = %(project)s AND kind = %(kind)s AND session = %(of_session)s"
)
NEXT_TALLY = (  # with the steps, which the table does not show yet
    "SELECT coalesce(sum(n.count) FILTER (WHERE n.tag = ''), 0)::bigint, "
    "count(*) FILTER (WHERE n.tag <> '' AND n.count > 0) FROM (SELECT b.tag, sum(b.count) AS count FROM ("
    "SELECT t.tag, t.count FROM tallies t WHERE t.tenant = %(tenant)s AND t.project = %(project)s "
    "AND t.kind = %(kind)s AND t.session = %(of_session)s UNION ALL "
    "SELECT s.tag, s.step FROM steps s WHERE s.kind = %(kind)s AND s.session = %(of_session)s) b GROUP BY b.tag) n"
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

    def next_key(self, kind: str, now: int) -> str:
        """The key for a new entry, unless it is taken."""
        return f"{kind}_{max(self.clock + 1, now)}"

    def write(
        self,
        name: tuple[str, str | None],
        version: int,
        before: Entry | None,
        draft: Draft | Delete,
        stamp: Stamp,
        doc: int | None = None,
    ) -> tuple[Entry | None, Tally]:
        """One change, its event and the project's row. Returns the entry after it, and the tally of its session.

        Without a key one is minted, and `version` says whether that of `next_key` is free: then it is 1. `doc` is the
        number of the text before.
        """
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
        parts, values = _changes(self._scope, before, after)
        parts += [f"noted AS ({INSERT_EVENT})", f"counts_on AS ({NEXT})"]
        values |= dict(zip(EVENT, event, strict=True))
        values |= {
            "detail": to_json(dict(stamp.detail)),
            "before": rows.version_to_json(self._scope, before),
            "doc": doc,
        }
        some = after or before
        values["of_session"] = some.session if some else ""
        answer = TALLY
        if counts := rows.counts(before, after):
            parts += [STEPS, COUNT, f"made AS ({NEW_TALLIES})"]
            values |= _counting(counts)
            answer = NEXT_TALLY
        tally = self._con.execute(f"WITH {', '.join(parts)} {answer}", values).fetchall()
        self.proof = ((LOCK, self._scope), (SAME_EVENT, event))
        return after, Tally(*tally[0])

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

    def put(self, entry: Entry) -> None:
        """The row and the tags of a new entry."""
        parts, values = _changes(self._scope, None, entry)
        self._con.execute(f"WITH {', '.join(parts)} SELECT", values)

    def finish(self) -> None:
        self._con.execute(NEXT, {**self._scope._asdict(), "seq": self.seq, "clock": self.clock})


def _changes(scope: Scope, before: Entry | None, after: Entry | None) -> tuple[list[str], dict[str, Any]]:
    """The parts of a statement that bring the row and its tags from `before` to `after`, and their values."""
    some = before or after
    if some is None:
        return [], {}
    values: dict[str, Any] = {**scope._asdict(), "kind": some.kind, "key": some.key}
    parts: list[str] = []
    if before is not None and (after is None or indexed_text(before) != indexed_text(after)):
        parts = [OLD_VECTOR] if after is not None else [OLD_VECTOR, NOT_WAITING]
    if after is None:
        parts.append(f"gone AS ({DELETE_ENTRY})")
    else:
        derived = (words.fold(rows.searched_text(after)), rows.expires_at(after), rows.is_replaced(after))
        values |= zip(COLUMNS, (*rows.to_row(scope, after), *derived), strict=True)
        values["terms"] = tsvector(words.terms(words.index_words(indexed_text(after))))
        change = NEW_ENTRY if before is None else REPLACE_ENTRY
        if indexed_text(before) != indexed_text(after):
            parts += [f"changed AS ({change} RETURNING tenant, project, doc)", f"waits AS ({WAITING})"]
        else:
            parts.append(f"changed AS ({change})")
    old, new = set(rows.folded_tags(before)), set(rows.folded_tags(after))
    if old - new:
        parts.append(f"untagged AS ({OLD_TAGS})")
        values["old_tags"] = list(old - new)
    if new - old:
        parts.append(f"tagged AS ({NEW_TAGS})")
        values["new_tags"] = list(new - old)
    return parts, values


class Tallies:
    """The counts of many new entries, each written once: ten thousand updates of one row would be slow."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], tuple[str, int]] = {}

    def add(self, entry: Entry) -> None:
        for count in rows.counts(None, entry):
            name = (count.kind, count.session, count.tag)
            label, sum_ = self._counts.get(name, (count.label, 0))
            self._counts[name] = (label, sum_ + count.step)

    def write(self, con: Con, scope: Scope) -> None:
        if self._counts:
            values = _counting([(*name, *counted) for name, counted in self._counts.items()])
            con.execute(f"WITH {STEPS}, {COUNT} {NEW_TALLIES}", values | scope._asdict())


def _counting(counts: Sequence[tuple[str, str, str, str, int]]) -> dict[str, Any]:
    """The values of STEPS and COUNT, for steps of kind, session, tag, label and step."""
    steps = [dict(zip(("kind", "session", "tag", "label", "step"), count, strict=True)) for count in counts]
    kinds, sessions, tags = ([*dict.fromkeys(count[at] for count in counts)] for at in range(3))
    return {"steps": to_json(steps), "kinds": kinds, "sessions": sessions, "tags_counted": tags}


def _number(con: Con, sql: str, values: Row) -> int:
    number: int = con.execute(sql, values).fetchall()[0][0]
    return number
