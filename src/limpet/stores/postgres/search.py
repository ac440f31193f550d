"""Lists and searches of entries in PostgreSQL.

A search by words or by a substring first asks the index for document numbers (tenants.py says why) and then applies the
same conditions to the texts with these numbers. When there are many, the project is read instead: most of it would have
to be read anyway to sort it. So the numbers decide only how fast a search is, not its result; a text that is added or
deleted between the two statements is found or not, as if it had been added or deleted before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from limpet import limits
from limpet.model import Entry, Scope
from limpet.record import NamedTuple
from limpet.store import Listing, Page, Words
from limpet.stores.postgres.candidates import array, lexeme, like
from limpet.stores.postgres.schema import Con
from limpet.stores.postgres.tenants import numbers
from limpet.stores.shared import found, rows
from limpet.stores.shared.rows import E_FIELDS
from limpet.stores.shared.sql import Row
from limpet.text import words as analyse

FEW = 1_000  # texts that are looked up by their numbers; when there are more, the project is read
TALLIES = (
    "SELECT coalesce(sum(CASE WHEN kind = ANY(%s) THEN count ELSE -count END), 0)::bigint FROM tallies "
    "WHERE tenant = %s AND project = %s AND kind = ANY(%s) AND session = %s AND tag = %s"
)
EXPIRED_OPEN = (
    "SELECT tags FROM entries WHERE tenant = %s AND project = %s AND kind = ANY(%s) AND expires_at <= %s AND NOT done "
    "AND (%s = '' OR session = %s)"
)
KEY, UPDATED_AT = (rows.FIELDS.split(", ").index(name) for name in ("key", "updated_at"))  # in a row
LATEST = "e.updated_at DESC, e.key DESC"
TAGGED = (
    "e.key IN (SELECT g.key FROM entry_tags g WHERE g.tenant = e.tenant AND g.project = e.project "
    "AND g.kind = e.kind AND g.tag {})"
)


class Conditions(NamedTuple):
    """Conditions on `entries e`, and their values."""

    where: str
    values: Row


def listed(con: Con, place: str, scope: Scope, query: Listing) -> Page:
    # One kind at a time, because an index has the order of each.
    latest = [row for kind in query.kinds for row in _latest(con, scope, query._replace(kinds=(kind,)))]
    if len(query.kinds) > 1:
        latest.sort(key=lambda row: (row[UPDATED_AT], row[KEY]), reverse=True)
    total = len(latest)
    if total >= query.limit:
        total = _count(con, scope, query)
    return Page(tuple(rows.to_entry(place, scope, row) for row in latest[: query.limit]), total)


def _latest(con: Con, scope: Scope, query: Listing) -> list[Row]:
    where, values = _listing(scope, query)
    sql = f"SELECT {E_FIELDS} FROM entries e WHERE {where} ORDER BY {LATEST} LIMIT %s"  # noqa: S608
    return con.execute(sql, (*values, query.limit)).fetchall()


def _count(con: Con, scope: Scope, query: Listing) -> int:
    """How many entries a listing has: from tallies where there are any."""
    tallied = rows.tallied(query)
    if tallied is None:
        where, values = _listing(scope, query)
        total: int = con.execute(f"SELECT count(*) FROM entries e WHERE {where}", values).fetchall()[0][0]  # noqa: S608
        return total
    of = (*scope, [*tallied.kinds, *tallied.less], tallied.session, tallied.tag)
    counted = con.execute(TALLIES, ([*tallied.kinds], *of)).fetchall()[0][0]
    if not query.now or query.include_replaced:
        return int(counted)
    among = (tallied.session, tallied.session)
    expired = con.execute(EXPIRED_OPEN, (*scope, [*query.kinds], query.now, *among)).fetchall()
    return rows.still_listed(counted, query, (tags for (tags,) in expired))


def containing(con: Con, place: str, scope: Scope, query: Listing, needle: str, words: Words | None = None) -> Page:
    sought = found.Sought.of(needle)
    conditions = _listing(scope, query)
    most = limits.NOTES_COUNTED
    full = min(query.limit, most)  # what comes later is not on the page then
    tsquery = None if words is None else _tsquery(words)
    hits = _as_words(con, conditions, sought, tsquery)
    more = len(hits) > full
    if not more:
        inside = Conditions(f"{conditions.where} AND e.folded LIKE %s", (*conditions.values, like(sought.text)))
        hits += _others(con, found.INSIDE, inside, hits)
        more = len(hits) > full
    if not more and tsquery is not None:
        matching = f"{conditions.where} AND e.terms @@ CAST(%s AS tsquery)"
        hits += _others(con, found.BY_STEM, Conditions(matching, (*conditions.values, tsquery)), hits)

    def load(docs: Sequence[int]) -> dict[int, Entry]:
        sql = f"SELECT e.doc, {E_FIELDS} FROM entries e WHERE {conditions.where} AND e.doc = ANY(%s::bigint[])"  # noqa: S608
        loaded = con.execute(sql, (*conditions.values, array(docs))).fetchall() if docs else []
        return {row[0]: rows.to_entry(place, scope, row[1:]) for row in loaded}

    return Page(found.page(hits, sought, query.limit, load), min(len(hits), most), more or len(hits) > most)


def _as_words(con: Con, conditions: Conditions, sought: found.Sought, tsquery: str | None) -> list[found.Hit]:
    """The newest texts with every word of a text as a word. Without a word query, those alone that contain it as it
    stands. The letters beside a word are looked at by who reads the text: here only those of ASCII count as such."""
    if not sought.runs:
        return []
    where, values = conditions
    for run in sought.runs:
        where += " AND e.folded LIKE %s AND e.folded ~ %s"
        values += (like(run), f"(^|[^a-z0-9]){run}([^a-z0-9]|$)")
    if tsquery is None:
        where, values = f"{where} AND e.folded LIKE %s", (*values, like(sought.text))
    else:
        where, values = f"{where} AND e.terms @@ CAST(%s AS tsquery)", (*values, tsquery)
    fit = f"CASE WHEN strpos(e.folded, %s) > 0 THEN {found.AS_ASKED} ELSE {found.EVERY_WORD} END"
    sql = f"SELECT {fit}, octet_length(e.content), -e.doc FROM entries e WHERE {where} ORDER BY e.doc DESC LIMIT %s"  # noqa: S608
    return cast("list[found.Hit]", numbers(con, sql, (sought.text, *values, limits.NOTES_COUNTED + 1)))


def _others(con: Con, fit: int, conditions: Conditions, besides: Sequence[found.Hit]) -> list[found.Hit]:
    """The newest that fit besides these, as many as are counted."""
    known = array(-number for *_, number in besides)
    sql = (
        f"SELECT {fit}, octet_length(e.content), -e.doc FROM entries e WHERE {conditions.where} "  # noqa: S608
        "AND e.doc <> ALL(%s::bigint[]) ORDER BY e.doc DESC LIMIT %s"
    )
    room = limits.NOTES_COUNTED + 1 - len(besides)
    return cast("list[found.Hit]", numbers(con, sql, (*conditions.values, known, room)))


def matching(con: Con, place: str, scope: Scope, query: Listing, words: Words) -> tuple[Entry, ...]:
    tsquery = _tsquery(words)
    if tsquery is None:
        return ()
    where, values = _listing(scope, query)
    narrowed = _narrowed(con, Conditions(f"{where} AND e.terms @@ CAST(%s AS tsquery)", (*values, tsquery)))
    if narrowed is None:
        return ()
    order = "e.created_at DESC" if words.every else "ts_rank(e.terms, q) DESC, e.updated_at DESC"
    matches = con.execute(
        f"SELECT {E_FIELDS} FROM entries e, CAST(%s AS tsquery) q WHERE {narrowed.where} "  # noqa: S608
        f"ORDER BY {order}, e.key DESC LIMIT %s",
        (tsquery, *narrowed.values, query.limit),
    ).fetchall()
    return tuple(rows.to_entry(place, scope, row) for row in matches)


def _narrowed(con: Con, conditions: Conditions) -> Conditions | None:
    """The same conditions, with the numbers of the matching texts unless there are many; None if none matches."""
    where, values = conditions
    docs = numbers(con, f"SELECT e.doc FROM entries e WHERE {where} LIMIT {FEW + 1}", values)  # noqa: S608
    if not docs:
        return None
    if len(docs) > FEW:
        return conditions
    return Conditions(f"{where} AND e.doc = ANY(%s::bigint[])", (*values, array(doc for (doc,) in docs)))


def _listing(scope: Scope, query: Listing) -> Conditions:
    # A single kind is compared with = and not with ANY, so that an index also gives the order.
    single = len(query.kinds) == 1
    parts = [f"e.tenant = %s AND e.project = %s AND e.kind = {'%s' if single else 'ANY(%s)'}"]
    values: list[Any] = [*scope, query.kinds[0] if single else [*query.kinds]]
    if query.session is not None:
        parts.append("e.session = %s")
        values.append(query.session)
    if query.include_replaced and not query.include_done:
        parts.append("(NOT e.done OR e.replaced)")
    elif not query.include_replaced:
        parts.append("NOT e.replaced" if query.include_done else "NOT e.done")
    if query.pinned:
        parts.append("e.pinned")
    if query.now and not query.include_replaced:
        parts.append("(e.expires_at IS NULL OR e.expires_at > %s)")
        values.append(query.now)
    for tag in query.tags:
        parts.append(TAGGED.format("= %s"))
        values.append(tag)
    if query.tags_any:
        parts.append(TAGGED.format("= ANY(%s)"))
        values.append([*query.tags_any])
    return Conditions(" AND ".join(parts), tuple(values))


def _tsquery(words: Words) -> str | None:
    """A word query in PostgreSQL's syntax, or None when no entry can match it."""
    groups = []
    for group in words.groups:
        lexemes = [quoted for term in analyse.terms([*group]) if (quoted := lexeme(term))]
        if lexemes:
            groups.append(f"({' | '.join(lexemes)})")
        elif group and words.every:
            return None
    return (" & " if words.every else " | ").join(groups) or None
