"""The order of what a search for a text finds, the same in every store. Pure.

Texts that hold each word of it come first, and among them those with the words in a row as they were asked; then texts
that contain it inside other words; then those that match by stem or tag. Of each the shortest come first: a short text
with a word is about it. A store collects the hits from its index, which may take one for better than it is. The texts
on the page are looked at, and what is not as good as its place goes further back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice

from limpet import limits
from limpet.light import re
from limpet.model import Entry
from limpet.record import NamedTuple
from limpet.store import Page
from limpet.stores.shared.rows import searched_text
from limpet.text.words import fold

AS_ASKED, EVERY_WORD, INSIDE, BY_STEM = range(4)  # how good a hit is
Hit = tuple[int, int, int]  # how good it is, the size of its text, and its number below zero: the first is the best


class Sought(NamedTuple):
    """What is looked for, folded, and its runs of letters and digits."""

    text: str
    runs: tuple[str, ...]

    @classmethod
    def of(cls, needle: str) -> Sought:
        folded = fold(needle)
        return cls(folded, tuple(dict.fromkeys(re.findall(r"[^\W_]+", folded))))

    @property
    def one_word(self) -> bool:
        return self.runs == (self.text,)

    def fit(self, searched: str) -> int:
        """How good a text is that was found."""
        text = fold(searched)
        inside = self.text in text
        if self.runs and all(_is_word_of(run, text) for run in self.runs):
            return AS_ASKED if inside else EVERY_WORD
        return INSIDE if inside else BY_STEM


def _is_word_of(run: str, text: str) -> bool:
    """Whether the text has the run with no letter or digit beside it."""
    at = text.find(run)
    while at >= 0:
        end = at + len(run)
        if not (at and text[at - 1].isalnum()) and not text[end : end + 1].isalnum():
            return True
        at = text.find(run, at + 1)
    return False


def together(searches: Iterable[Sequence[Hit]], limit: int) -> tuple[list[Hit], bool]:
    """The hits of searches, the best of which comes first, and whether there may be more of them. When some fill the
    page and leave one over, the later ones are not looked at: they would not be on it."""
    most = limits.NOTES_COUNTED
    first: list[Hit] = []
    numbers: set[int] = set()
    for search in searches:
        fresh = (hit for hit in search if hit[2] not in numbers)
        first += islice(fresh, most + 1 - len(first))
        if len(first) > min(limit, most):
            return first[:most], True
        numbers.update(number for *_, number in first)
    return first, False


def page(hits: Sequence[Hit], more: bool, sought: Sought, limit: int, entries: Mapping[int, Entry | None]) -> Page:
    """The best of the hits, in order. An entry that is None was deleted since."""
    queue = list(hits)
    heapify(queue)
    best: list[Entry] = []
    placed: set[int] = set()
    while queue and len(best) < limit:
        fit, size, number = heappop(queue)
        entry = entries[-number]
        if entry is None:
            continue
        truly = fit if number in placed else sought.fit(searched_text(entry))
        if truly > fit:
            placed.add(number)
            heappush(queue, (truly, size, number))
        else:
            best.append(entry)
    return Page(tuple(best), len(hits), more)
