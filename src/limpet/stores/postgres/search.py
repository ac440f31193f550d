"""Lists and searches of the store for teams.

A search by words or by a part of a text asks the index for numbers first (postgres_tenants.py says why) and then puts
the same question to the texts with these numbers. When there are many, the project is read instead: most of it would
have to be looked at anyway, to put it in order. So numbers never decide what is found, only how fast; a text that comes
or goes between the two questions is found or not, as if it had come or gone before.
"""

from __future__ import annotations

from typing import Any

from limpet.model import Entry, Scope
from limpet.store import Listing, Page, Words
from limpet.stores.postgres.recall import array, lexeme, like
from limpet.stores.postgres.replica import PostgresNear
from limpet.stores.postgres.schema import Con
from limpet.stores.postgres.tenants import numbers
from limpet.stores.shared import rows
from limpet.stores.shared.rows import E_FIELDS, Row
from limpet.text import words as analyse

FEW = 1_000  # texts that are looked up by their numbers; more of them are read with the project
LATEST = "e.updated_at DESC, e.key DESC"
GRAM_CHARS = 3  # the index of substrings knows nothing shorter
Conditions = tuple[str, Row]  # on `entries e`


class PostgresSearch(PostgresNear):
    place: str

    def list(self, scope: Scope, query: Listing) -> Page:
        conditions = _where(scope, query)
        return self._server.reads(scope.tenant, lambda con: self._page(con, scope, query, conditions, LATEST, ()))

    def containing(self, scope: Scope, query: Listing, needle: str) -> Page:
        folded = analyse.fold(needle)
        where, values = _where(scope, query)
        matching = (f"{where} AND e.folded LIKE %s", (*values, like(folded)))
        order = f"strpos(e.folded, %s), {LATEST}"

        def work(con: Con) -> Page:
            few = _narrowed(con, matching) if len(folded) >= GRAM_CHARS else matching
            if few is None:
                return Page((), 0)
            return self._page(con, scope, query, few, order, (folded,), read_all=few is matching)

        return self._near(scope, work)

    def _page(
        self,
        con: Con,
        scope: Scope,
        query: Listing,
        conditions: Conditions,
        order: str,
        order_values: tuple[str, ...],
        *,
        read_all: bool = False,
    ) -> Page:
        """One page, and how many there are. Where every text is read to tell, they are counted only if need be."""
        where, values = conditions
        read_all = read_all or not query.limit  # a page of nothing says no number
        count = f"SELECT count(*) FROM entries e WHERE {where}"  # noqa: S608
        total, counting = ("0", ()) if read_all else (f"({count})", values)
        found = con.execute(
            f"SELECT {total}, {E_FIELDS} FROM entries e WHERE {where} ORDER BY {order} LIMIT %s",  # noqa: S608
            (*counting, *values, *order_values, query.limit),
        ).fetchall()
        there = len(found) if read_all or not found else found[0][0]
        if read_all and there == query.limit:
            there = max(there, con.execute(count, values).fetchall()[0][0])
        return Page(tuple(rows.to_entry(self.place, scope, row[1:]) for row in found), there)

    def matching(self, scope: Scope, query: Listing, words: Words) -> tuple[Entry, ...]:
        sought = _word_query(words)
        if sought is None:
            return ()
        where, values = _where(scope, query)
        matching = (f"{where} AND e.terms @@ CAST(%s AS tsquery)", (*values, sought))
        order = "e.created_at DESC" if words.every else "ts_rank(e.terms, q) DESC, e.updated_at DESC"

        def work(con: Con) -> list[Row]:
            few = _narrowed(con, matching)
            if few is None:
                return []
            where, values = few
            return con.execute(
                f"SELECT {E_FIELDS} FROM entries e, CAST(%s AS tsquery) q WHERE {where} "  # noqa: S608
                f"ORDER BY {order}, e.key DESC LIMIT %s",
                (sought, *values, query.limit),
            ).fetchall()

        return self._near(scope, lambda con: tuple(rows.to_entry(self.place, scope, row) for row in work(con)))


def _narrowed(con: Con, conditions: Conditions) -> Conditions | None:
    """The same conditions, with the numbers of the texts that fulfil them unless there are many; None if none does."""
    where, values = conditions
    found = numbers(con, f"SELECT e.doc FROM entries e WHERE {where} LIMIT {FEW + 1}", values)  # noqa: S608
    if not found:
        return None
    if len(found) > FEW:
        return conditions
    return f"{where} AND e.doc = ANY(%s::bigint[])", (*values, array(doc for (doc,) in found))


def _where(scope: Scope, query: Listing) -> Conditions:
    """The conditions of a listing."""
    # One kind is compared and not looked up in a list, so that an index gives the order too.
    one = len(query.kinds) == 1
    parts = [f"e.tenant = %s AND e.project = %s AND e.kind = {'%s' if one else 'ANY(%s)'}"]
    values: list[Any] = [*scope, query.kinds[0] if one else [*query.kinds]]
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
        lexemes = [quoted for term in analyse.terms([*group]) if (quoted := lexeme(term))]
        if lexemes:
            groups.append(f"({' | '.join(lexemes)})")
        elif group and words.every:
            return None
    return (" & " if words.every else " | ").join(groups) or None
