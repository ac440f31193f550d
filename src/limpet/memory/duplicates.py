"""Duplicates at the time of a write: the answer names them, and the write happens all the same.

The word index gives, usually in one query, the entries that contain the most distinctive words of the new text, and
those few are compared: a write must not wait for more. `limpet audit` finds the rest: near duplicates without one of
these words, and duplicates written at the same moment.
"""

from __future__ import annotations

from typing import NamedTuple

from limpet import limits
from limpet.catalogue.operation import Context, Json
from limpet.model import MEMORY, Entry
from limpet.recall import alike
from limpet.store import Listing, Words
from limpet.text import words as analyse

WORDS = 3  # of a text that are looked up, all of which must occur, and as many with digits


class Twin(NamedTuple):
    """An entry that says the same as the new text: in the same words, or nearly."""

    key: str
    exact: bool


def twin(ctx: Context, kind: str, text: str, own: str | None = None) -> Twin | None:
    """The open entry that says the same, the newest of those that do; `own` is the key that is being written."""
    if not ctx.bounds.report_duplicates:
        return None
    letters, numbers = alike.search_words(text, WORDS)
    entries = _containing(ctx, kind, letters)
    same = _saying(text, entries, own)
    # With its numbers a text is found among many of one pattern; without them, if just a number differs. If the search
    # for the letters was complete, the entries with the numbers are among its results.
    first: list[Twin] = []
    if numbers and not (letters and len(entries) < limits.DUPLICATES_COMPARED):
        first = _saying(text, _containing(ctx, kind, letters + numbers), own)
    elif numbers and same:
        sought = set(analyse.terms(numbers))
        texts = {entry.key: _indexed(entry) for entry in entries}
        first = [match for match in same if sought <= set(analyse.terms(analyse.index_words(texts[match.key])))]
    return next(iter(first or same), None)


def _containing(ctx: Context, kind: str, words: list[str]) -> list[Entry]:
    """The newest entries that contain all of these words."""
    if not words:
        return []
    query = Words(tuple((word,) for word in words))
    return list(ctx.store.entries.matching(ctx.scope, Listing((kind,), limit=limits.DUPLICATES_COMPARED), query))


def _indexed(entry: Entry) -> str:
    return "\n".join([*([entry.key] if entry.kind == MEMORY else []), entry.content, *entry.tags])


def _saying(text: str, among: list[Entry], own: str | None) -> list[Twin]:
    """Entries that say the same: in the same words first, then nearly, the newest of each first."""
    entries = [entry for entry in among if entry.key != own]
    if not entries:
        return []
    entries.sort(key=lambda entry: (entry.updated_at, entry.key), reverse=True)
    plain, words = alike.exact(text), alike.bag(text)
    same = [Twin(entry.key, True) for entry in entries if alike.exact(entry.content) == plain]
    as_long = [entry for entry in entries if alike.as_long(text, entry.content)]
    return same + [Twin(entry.key, False) for entry in as_long if alike.alike(words, alike.bag(entry.content))]


def twin_json(twin: Twin | None) -> Json:
    return {} if twin is None else {"duplicate_of" if twin.exact else "similar_to": twin.key}
