"""Lists and searches of the store for teams.

A search by words or by a part of a text asks the index for numbers first (postgres_tenants.py says why) and then puts
the same question to the texts with these numbers. When there are many, the project is read instead: most of it would
have to be looked at anyway, to put it in order. So numbers never decide what is found, only how fast.
"""

from __future__ import annotations

from typing import Any

from holdfast.model import Entry, Scope
from holdfast.search import analyse
from holdfast.store import Listing, Page, Words
from holdfast.stores import rows
from holdfast.stores.postgres_recall import lexeme, like
from holdfast.stores.postgres_replica import PostgresNear
from holdfast.stores.postgres_schema import Con
from holdfast.stores.postgres_tenants import numbers
from holdfast.stores.rows import E_FIELDS, Row

FEW = 1_000  # texts that are looked up by their numbers; more of them are read with the project
GRAM_CHARS = 3  # the index of substrings knows nothing shorter
Conditions = tuple[str, Row]  # on `entries e`


class PostgresSearch(PostgresNear):
    place: str

    def list(self, scope: Scope, query: Listing) -> Page:
        return self._page(scope, query, _where(scope, query), "e.updated_at DESC, e.key DESC", ())

    def containing(self, scope: Scope, query: Listing, needle: str) -> Page:
        folded = analyse.fold(needle)
        where, values = _where(scope, query)
        matching = (f"{where} AND e.folded LIKE %s", (*values, like(folded)))
        order = "strpos(e.folded, %s), e.updated_at DESC, e.key DESC"
        return self._page(scope, query, matching, order, (folded,), indexed=len(folded) >= GRAM_CHARS, near=True)

    def _page(
        self,
        scope: Scope,
        query: Listing,
        conditions: Conditions,
        order: str,
        order_values: tuple[str, ...],
        *,
        indexed: bool = False,
        near: bool = False,
    ) -> Page:
        def work(con: Con) -> tuple[list[Row], int]:
            where, values = _narrowed(con, conditions) if indexed else conditions
            found = con.execute(
                f"SELECT {E_FIELDS} FROM entries e WHERE {where} ORDER BY {order} LIMIT %s",  # noqa: S608
                (*values, *order_values, query.limit),
            ).fetchall()
            if len(found) < query.limit:
                return found, len(found)
            return found, con.execute(f"SELECT count(*) FROM entries e WHERE {where}", values).fetchall()[0][0]  # noqa: S608

        def page(con: Con) -> Page:
            found, total = work(con)
            return Page(tuple(rows.to_entry(self.place, scope, row) for row in found), total)

        return self._near(scope, page) if near else self._server.view(scope.tenant, page)

    def matching(self, scope: Scope, query: Listing, words: Words) -> tuple[Entry, ...]:
        sought = _word_query(words)
        if sought is None:
            return ()
        where, values = _where(scope, query)
        matching = (f"{where} AND e.terms @@ CAST(%s AS tsquery)", (*values, sought))
        order = "e.created_at DESC" if words.every else "ts_rank(e.terms, q) DESC, e.updated_at DESC"

        def work(con: Con) -> list[Row]:
            where, values = _narrowed(con, matching)
            return con.execute(
                f"SELECT {E_FIELDS} FROM entries e, CAST(%s AS tsquery) q WHERE {where} "  # noqa: S608
                f"ORDER BY {order}, e.key DESC LIMIT %s",
                (sought, *values, query.limit),
            ).fetchall()

        return self._near(scope, lambda con: tuple(rows.to_entry(self.place, scope, row) for row in work(con)))


def _narrowed(con: Con, conditions: Conditions) -> Conditions:
    """The same conditions, with the numbers of the texts that fulfil them unless there are many."""
    where, values = conditions
    found = numbers(con, f"SELECT e.doc FROM entries e WHERE {where} LIMIT {FEW + 1}", values)  # noqa: S608
    return conditions if len(found) > FEW else (f"{where} AND e.doc = ANY(%s)", (*values, [row[0] for row in found]))


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
