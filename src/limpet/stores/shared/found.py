"""The order of what a search for a text finds, the same in every store. Pure.

Texts that hold each word of it come first, and among them those where the words stand as they were asked; then texts
that contain it inside other words; then those that match by stem or tag. Of each the shortest come first: a short text
with a word is about it. A store collects the hits from its index, which may take one for better than it is, and only
the texts on the page are looked at: what is not as good as its place goes further back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush, nsmallest

from limpet.model import Entry
from limpet.record import NamedTuple
from limpet.stores.shared.rows import searched_text
from limpet.text.words import fold

AS_ASKED, EVERY_WORD, INSIDE, BY_STEM = range(4)  # how good a hit is
Hit = tuple[int, int, int]  # how good it is, the size of its text, and its number below zero: the first is the best
Load = Callable[[Sequence[int]], Mapping[int, Entry]]  # the entries with these numbers, as far as there are any


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

    def fit(self, entry: Entry) -> int:
        """How good an entry that was found is."""
        text = fold(searched_text(entry))
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


def page(hits: Sequence[Hit], sought: Sought, limit: int, load: Load) -> tuple[Entry, ...]:
    """The best of the hits, in order."""
    queue = list(hits)
    entries = dict(load([-number for *_, number in nsmallest(limit, queue)]))
    heapify(queue)
    shown: list[Entry] = []
    placed: set[int] = set()
    while queue and len(shown) < limit:
        fit, size, number = heappop(queue)
        if -number not in entries:
            entries.update(load([-number]))
        entry = entries.get(-number)
        if entry is None:
            continue  # deleted since
        truly = fit if number in placed else sought.fit(entry)
        if truly > fit:
            placed.add(number)
            heappush(queue, (truly, size, number))
        else:
            shown.append(entry)
    return tuple(shown)
