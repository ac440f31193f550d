"""What is written down a second time: said with the answer to the write, which happens all the same.

The word index is asked for the entries that hold the rarest of a text's words, and those few are compared. Two writers
at the same moment do not see each other; `holdfast audit` finds what slipped through.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast import limits
from holdfast.model import Entry
from holdfast.operations.registry import Context, Json
from holdfast.search import alike
from holdfast.search.order import by_rarity
from holdfast.store import Listing, Words

RARE = 15  # entries that hold a word: with fewer, each is compared
WORDS = 6  # of a text that are looked up
TOGETHER = 3  # of these that choose, when none of them is rare


class Twin(NamedTuple):
    """The entry that says the same as what is written: in the same words, or nearly."""

    key: str
    exact: bool


def twin(ctx: Context, kind: str, text: str, own: str | None = None) -> Twin | None:
    """The open entry that says the same, the newest of those that do; `own` is the key that is being written."""
    if not ctx.bounds.report_duplicates:
        return None
    counts = ctx.store.frequencies(alike.telling(text, WORDS), RARE)
    rarest = by_rarity(counts)[:TOGETHER]
    if 2 * len(by_rarity(counts)) < len(counts) or not rarest:
        return None  # most of its words are new here
    # A text that is nearly the same may lack one of the words, so any will do as long as few entries have it.
    few = [word for word in rarest if counts[word] < RARE]
    words = Words(tuple((word,) for word in few or rarest), every=not few)
    found = ctx.store.matching(ctx.scope, Listing((kind,), limit=limits.DUPLICATES_COMPARED), words)
    return _closest(text, [entry for entry in found if entry.key != own])


def _closest(text: str, found: list[Entry]) -> Twin | None:
    found.sort(key=lambda entry: (entry.updated_at, entry.key), reverse=True)
    plain = alike.exact(text)
    if same := next((entry for entry in found if alike.exact(entry.content) == plain), None):
        return Twin(same.key, True)
    words = alike.bag(text)
    near = (one for one in found if alike.as_long(text, one.content) and alike.alike(words, alike.bag(one.content)))
    return next((Twin(entry.key, False) for entry in near), None)


def twin_json(found: Twin | None) -> Json:
    return {} if found is None else {"duplicate_of" if found.exact else "similar_to": found.key}


RESULT = {"duplicate_of": "string?", "similar_to": "string?"}
