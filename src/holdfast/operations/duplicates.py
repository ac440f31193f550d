"""What is written down a second time: said with the answer to the write, which happens all the same.

The word index is asked, as a rule once, for the entries that hold the words a text is most likely known by, and those
few are compared: a write must not wait for more. `holdfast audit` finds what slips through: a near duplicate that lacks
one of these words, and what two writers wrote at the same moment.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast import limits
from holdfast.model import MEMORY, Entry
from holdfast.operations.registry import Context, Json
from holdfast.search import alike, analyse
from holdfast.store import Listing, Words

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
    # With its numbers a text is found among many of a pattern; without them, where just a number is another one. As
    # long as all that hold the letters were found, those that hold the numbers too are among them.
    if numbers and letters and len(found) < limits.DUPLICATES_COMPARED:
        sought = set(analyse.terms(numbers))
        first = [entry for entry in found if sought <= set(analyse.terms(analyse.index_words(_indexed(entry))))]
    else:
        first = _holding(ctx, kind, letters + numbers) if numbers else []
    return _closest(text, first, own) or _closest(text, found, own)


def _holding(ctx: Context, kind: str, words: list[str]) -> list[Entry]:
    """The newest entries that hold all of these words."""
    if not words:
        return []
    query = Words(tuple((word,) for word in words))
    return list(ctx.store.matching(ctx.scope, Listing((kind,), limit=limits.DUPLICATES_COMPARED), query))


def _indexed(entry: Entry) -> str:
    return "\n".join([*([entry.key] if entry.kind == MEMORY else []), entry.content, *entry.tags])


def _closest(text: str, among: list[Entry], own: str | None) -> Twin | None:
    found = sorted(
        (entry for entry in among if entry.key != own), key=lambda one: (one.updated_at, one.key), reverse=True
    )
    plain = alike.exact(text)
    if same := next((entry for entry in found if alike.exact(entry.content) == plain), None):
        return Twin(same.key, True)
    words = alike.bag(text)
    near = (one for one in found if alike.as_long(text, one.content) and alike.alike(words, alike.bag(one.content)))
    return next((Twin(entry.key, False) for entry in near), None)


def twin_json(found: Twin | None) -> Json:
    return {} if found is None else {"duplicate_of" if found.exact else "similar_to": found.key}


RESULT = {"duplicate_of": "string?", "similar_to": "string?"}
