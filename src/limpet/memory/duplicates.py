"""What is written down a second time: said with the answer to the write, which happens all the same.

The word index is asked, as a rule once, for the entries that hold the words a text is most likely known by, and those
few are compared: a write must not wait for more. `limpet audit` finds what slips through: a near duplicate that lacks
one of these words, and what two writers wrote at the same moment.
"""

from __future__ import annotations

from typing import NamedTuple

from limpet import limits
from limpet.catalogue.operation import Context, Json
from limpet.model import MEMORY, Entry
from limpet.recall import alike
from limpet.store import Listing, Words
from limpet.text import words as analyse

WORDS = 3  # of a text that are looked up, all of which must be there, and as many with digits


class Twin(NamedTuple):
    """The entry that says the same as what is written: in the same words, or nearly."""

    key: str
    exact: bool


def twin(ctx: Context, kind: str, text: str, own: str | None = None) -> Twin | None:
    """The open entry that says the same, the newest of those that do; `own` is the key that is being written."""
    if not ctx.bounds.report_duplicates:
        return None
    letters, numbers = alike.telling(text, WORDS)
    found = _holding(ctx, kind, letters)
    same = _saying(text, found, own)
    # With its numbers a text is found among many of a pattern; without them, where just a number is another one. As
    # long as all that hold the letters were found, those that hold the numbers too are among them.
    first: list[Twin] = []
    if numbers and not (letters and len(found) < limits.DUPLICATES_COMPARED):
        first = _saying(text, _holding(ctx, kind, letters + numbers), own)
    elif numbers and same:
        sought = set(analyse.terms(numbers))
        texts = {entry.key: _indexed(entry) for entry in found}
        first = [one for one in same if sought <= set(analyse.terms(analyse.index_words(texts[one.key])))]
    return next(iter(first or same), None)


def _holding(ctx: Context, kind: str, words: list[str]) -> list[Entry]:
    """The newest entries that hold all of these words."""
    if not words:
        return []
    query = Words(tuple((word,) for word in words))
    return list(ctx.store.entries.matching(ctx.scope, Listing((kind,), limit=limits.DUPLICATES_COMPARED), query))


def _indexed(entry: Entry) -> str:
    return "\n".join([*([entry.key] if entry.kind == MEMORY else []), entry.content, *entry.tags])


def _saying(text: str, among: list[Entry], own: str | None) -> list[Twin]:
    """Those that say the same: in the same words first, then nearly, the newest of each first."""
    found = sorted(
        (entry for entry in among if entry.key != own), key=lambda one: (one.updated_at, one.key), reverse=True
    )
    if not found:
        return []
    plain, words = alike.exact(text), alike.bag(text)
    same = [Twin(one.key, True) for one in found if alike.exact(one.content) == plain]
    near = (one for one in found if alike.as_long(text, one.content) and alike.alike(words, alike.bag(one.content)))
    return same + [Twin(one.key, False) for one in near]


def twin_json(found: Twin | None) -> Json:
    return {} if found is None else {"duplicate_of" if found.exact else "similar_to": found.key}
