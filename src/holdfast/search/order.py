"""The order of hits: small pure functions over a query and a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import log

from holdfast.model import Entry
from holdfast.search.analyse import fold, terms, words

RARE_TOTAL = 1_000  # entries an any-word query may touch: bounds the work of a question full of common words
RARE_COUNT_MAX = 500  # a word in more entries than this says little; no need to count further


def query_words(query: str, most: int = 64) -> list[str]:
    """The different words of a question, in order; a question of ten thousand words is cut."""
    found = list(dict.fromkeys(words(fold(query))))[: 4 * most]
    by_term = dict(zip(reversed(terms(found)), reversed(found), strict=True))  # the first word of each stem stays
    return [word for word in found if word in by_term.values()][:most]


def by_rarity(frequencies: Mapping[str, int]) -> list[str]:
    """Words that occur at all, the rarest first."""
    found = sorted((count, word) for word, count in frequencies.items() if count)
    return [word for _, word in found]


def rare_words(frequencies: Mapping[str, int]) -> list[str]:
    """The rarest words, as many as bounded work allows, at least one that occurs at all."""
    chosen: list[str] = []
    budget = RARE_TOTAL
    for word in by_rarity(frequencies):
        count = frequencies[word]
        if chosen and (count >= RARE_COUNT_MAX or count > budget):
            break
        chosen.append(word)
        budget -= count
    return chosen


def narrowing(rarest: Sequence[str]) -> Iterator[list[tuple[str, ...]]]:
    """Which words to ask for together: all, then all but one, and so on down to single words, the rarest first."""
    for size in range(len(rarest), 0, -1):
        yield list(combinations(rarest, size))


def closest(frequencies: Mapping[str, int], entries: Iterable[Entry], count: int) -> list[Entry]:
    """Entries that hold most of the words, rare ones counting more; then those where they stand close; then newer."""
    weights: dict[str, float] = {}
    for word, term in zip(frequencies, terms(list(frequencies)), strict=True):
        weights[term] = 1 / log(2 + frequencies[word])

    def score(entry: Entry) -> tuple[float, float, int, str]:
        found = terms(words(fold(entry.content)))
        places = {term: at for at, term in enumerate(found) if term in weights}
        covered = sum(weights[term] for term in places)
        spread = max(places.values()) - min(places.values()) if places else 0
        return (covered, -spread, entry.updated_at, entry.key)

    return sorted(entries, key=score, reverse=True)[:count]


def memory_score(query: str, key: str, content: str) -> int:
    """How well a memory entry fits: the whole query weighs more than its words, the key more than the content."""
    whole, in_key, in_content = fold(query).strip(), fold(key), fold(content)
    score = 6 * (whole in in_key) + 5 * (whole in in_content)
    for word in dict.fromkeys(whole.split()):
        score += 3 * (word in in_key) + (word in in_content)
    return score
