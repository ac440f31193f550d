"""Lists and searches of entries in PostgreSQL.

A search by words or by a substring first asks the index for document numbers (tenants.py says why) and then applies the
same conditions to the texts with these numbers. When there are many, the project is read instead: most of it would have
to be read anyway to sort it. So the numbers decide only how fast a search is, not its result; a text that is added or
deleted between the two statements is found or not, as if it had been added or deleted before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from heapq import nsmallest
from typing import Any, cast

from limpet import limits
from limpet.model import Entry, Scope
from limpet.record import NamedTuple
from limpet.store import Listing, Page, Words
from limpet.stores.postgres.candidates import array, lexeme, like
from limpet.stores.postgres.connections import PostgresDatabase, Rows
from limpet.stores.postgres.replica import ReplicaReads
from limpet.stores.postgres.schema import Con
from limpet.stores.postgres.tenants import Statement, Unfiltered, ask
from limpet.stores.shared import hits, rows
from limpet.stores.shared.rows import E_FIELDS
from limpet.stores.shared.sql import Row
from limpet.text import words as analyse

SPARE = 10  # hits that are read beside those on the page, in case some are not as good as they seem
FEW = 1_000  # texts that are looked up by their numbers; when there are more, the project is read
TALLIES = (
    "SELECT coalesce(sum(CASE WHEN kind = ANY(%s) THEN count ELSE -count END), 0)::bigint FROM tallies "
    "WHERE tenant = %s AND project = %s AND kind = ANY(%s) AND session = %s AND tag = %s"
)
EXPIRED_OPEN = (
    "SELECT tags FROM entries WHERE tenant = %s AND project = %s AND kind = ANY(%s) AND expires_at <= %s "
    "AND expires_at IS NOT NULL AND NOT done AND (%s = '' OR session = %s)"
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


def listed(db: PostgresDatabase, scope: Scope, query: Listing) -> Page:
    tallied = rows.tallied(query)
    # One kind at a time, because an index has the order of each.
    first = [_latest(scope, query._replace(kinds=(kind,))) for kind in query.kinds]
    if tallied is not None:
        answers = db.rows_of_each(scope.tenant, *first, *_counts(scope, query, tallied))
        pages, (counted, *expired) = answers[: len(first)], answers[len(first) :]
        total = rows.still_listed(counted[0][0], query, (tags for of_one in expired for (tags,) in of_one))
        most = total
    else:
        pages, total = db.snapshot(scope.tenant, lambda con, read: (read, _count(con, scope, query, read)), *first)
        most = rows.counted_at_most(query)
    latest = [row for page in pages for row in page]
    if len(query.kinds) > 1:
        latest.sort(key=lambda row: (row[UPDATED_AT], row[KEY]), reverse=True)
    if len(latest) < query.limit:
        total = most = len(latest)
    page = tuple(rows.to_entry(db.place, scope, row) for row in latest[: query.limit])
    return Page(page, min(total, most), total > most)


def _latest(scope: Scope, query: Listing) -> Statement:
    where, values = _listing(scope, query)
    sql = f"SELECT {E_FIELDS} FROM entries e WHERE {where} ORDER BY {LATEST} LIMIT %s"  # noqa: S608
    return sql, (*values, query.limit)


def _counts(scope: Scope, query: Listing, tallied: rows.Tallied) -> Iterator[Statement]:
    """How many entries a listing has by the tallies, and the tags of those that have expired."""
    yield TALLIES, ([*tallied.kinds], *scope, [*tallied.kinds, *tallied.less], tallied.session, tallied.tag)
    if query.now and not query.include_replaced:
        yield EXPIRED_OPEN, (*scope, [*query.kinds], query.now, tallied.session, tallied.session)


def _count(con: Con, scope: Scope, query: Listing, pages: Rows) -> int:
    """How many entries a listing has that no tally counts."""
    if sum(map(len, pages)) < query.limit:
        return 0  # what was read is all
    where, values = _listing(scope, query)
    some = f"SELECT 1 FROM entries e WHERE {where} LIMIT {rows.counted_at_most(query) + 1}"  # noqa: S608
    counted = ask(con, (f"SELECT count(*) FROM ({some}) AS listed", values), last=True)  # noqa: S608
    return int(counted[0][0][0])


def containing(
    replica: ReplicaReads, place: str, scope: Scope, query: Listing, needle: str, words: Words | None = None
) -> Page:
    sought = hits.Sought.of(needle)
    where, values = _listing(scope, query)
    tsquery = None if words is None else _tsquery(words)
    inside = Conditions(f"{where} AND e.folded LIKE %s", (*values, like(sought.text)))
    matching = Conditions(f"{where} AND e.terms @@ CAST(%s AS tsquery)", (*values, tsquery))
    searches = [_as_words(inside if tsquery is None else matching, sought), _newest(str(hits.INSIDE), inside)]
    searches += [] if tsquery is None else [_newest(str(hits.BY_STEM), matching)]

    def work(con: Con, answers: Rows, spare: int) -> Page:
        first, more = hits.together(cast("list[list[hits.Hit]]", answers), query.limit)
        docs = [-number for *_, number in nsmallest(query.limit + spare, first)]
        # They are read under the rule that shows a tenant its own.
        sql = f"SELECT e.doc, {E_FIELDS} FROM entries e WHERE {where} AND e.doc = ANY(%s::bigint[])"  # noqa: S608
        loaded = ask(con, (sql, (*values, array(docs))), last=True)[0] if docs else []
        entries = {row[0]: rows.to_entry(place, scope, row[1:]) for row in loaded}
        return hits.page(first, more, sought, query.limit, dict.fromkeys(docs) | entries)

    for spare in (SPARE, 2 * limits.NOTES_COUNTED):
        with suppress(KeyError):  # more of them than that are worse than the index takes them for
            return replica.reads(scope, partial(work, spare=spare), *searches)
    raise AssertionError("all hits were read")


def _as_words(conditions: Conditions, sought: hits.Sought) -> Unfiltered:
    """The newest texts with every word of a text as a word. The letters beside a word are looked at by who reads the
    text: here those of ASCII count as such."""
    where, values = conditions
    for run in sought.runs:
        where += " AND e.folded LIKE %s AND e.folded ~ %s"
        values += (like(run), f"(^|[^a-z0-9]){run}([^a-z0-9]|$)")
    if not sought.runs:
        where += " AND false"
    fit = f"CASE WHEN strpos(e.folded, %s) > 0 THEN {hits.AS_ASKED} ELSE {hits.EVERY_WORD} END"
    return _newest(fit, Conditions(where, (sought.text, *values)))


def _newest(fit: str, conditions: Conditions) -> Unfiltered:
    """The newest texts that fit, as hits: enough of them that those of a better search among them can be left out."""
    sql = f"SELECT {fit}, octet_length(e.content), -e.doc FROM entries e WHERE {conditions.where} ORDER BY e.doc DESC "  # noqa: S608
    return Unfiltered(f"{sql}LIMIT %s", (*conditions.values, 2 * limits.NOTES_COUNTED + 1))


def matching(replica: ReplicaReads, place: str, scope: Scope, query: Listing, words: Words) -> tuple[Entry, ...]:
    tsquery = _tsquery(words)
    if tsquery is None:
        return ()
    where, values = _listing(scope, query)
    with_words = Conditions(f"{where} AND e.terms @@ CAST(%s AS tsquery)", (*values, tsquery))
    of_words = f"SELECT e.doc FROM entries e WHERE {with_words.where} LIMIT {FEW + 1}"  # noqa: S608

    def work(con: Con, answers: Rows) -> tuple[Entry, ...]:
        narrowed = _narrowed(with_words, [doc for (doc,) in answers[0]])
        if narrowed is None:
            return ()
        order = "e.created_at DESC" if words.every else "ts_rank(e.terms, q) DESC, e.updated_at DESC"
        ordered = (
            f"SELECT {E_FIELDS} FROM entries e, CAST(%s AS tsquery) q WHERE {narrowed.where} "  # noqa: S608
            f"ORDER BY {order}, e.key DESC LIMIT %s"
        )
        matches = ask(con, (ordered, (tsquery, *narrowed.values, query.limit)), last=True)[0]
        return tuple(rows.to_entry(place, scope, row) for row in matches)

    return replica.reads(scope, work, Unfiltered(of_words, with_words.values))


def _narrowed(conditions: Conditions, docs: Sequence[int]) -> Conditions | None:
    """The same conditions, with the numbers of the matching texts unless there are many; None if none matches."""
    if not docs:
        return None
    if len(docs) > FEW:
        return conditions
    return Conditions(f"{conditions.where} AND e.doc = ANY(%s::bigint[])", (*conditions.values, array(docs)))


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
