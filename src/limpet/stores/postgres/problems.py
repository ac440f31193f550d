"""The problems that only a store on PostgreSQL has. errors.py has the tree."""

from __future__ import annotations

from limpet.errors import StoreProblem


def store_spread(place: str, found: int, known: int) -> StoreProblem:
    how = "Its nodes are brought there first, as docs/spread.sql tells under `A new schema`"
    why = f"{place} is spread over servers and has schema {found}; this Limpet needs {known}. It was left untouched"
    return StoreProblem("store_spread", f"{why}. {how}.")
