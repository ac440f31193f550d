"""The order of hits: small pure functions over a query and a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from holdfast.model import Entry
from holdfast.search.analyse import fold, terms, words

RARE_TOTAL = 1_000  # entries an any-word query may touch: bounds the work of a question full of common words
RARE_COUNT_MAX = 500  # a word in more entries than this says little; no need to count further


def query_words(query: str, most: int = 64) -> list[str]:
    """The different words of a question, in order; a question of ten thousand words is cut."""
    found = list(dict.fromkeys(words(fold(query))))[: 4 * most]
    by_term = dict(zip(reversed(terms(found)), reversed(found), strict=True))  # the first word of each stem stays
    return [word for word in found if word in by_term.values()][:most]


def rare_words(frequencies: Mapping[str, int]) -> list[str]:
    """The rarest words, as many as bounded work allows, at least one that occurs at all."""
    chosen: list[str] = []
    budget = RARE_TOTAL
    for word, count in sorted(frequencies.items(), key=lambda pair: (pair[1], pair[0])):
        if count == 0:
            continue
        if chosen and (count >= RARE_COUNT_MAX or count > budget):
            break
        chosen.append(word)
        budget -= count
    return chosen


def closest(query: Sequence[str], entries: Iterable[Entry], count: int) -> list[Entry]:
    """Entries that hold most of the query's words, long words counting more; near ones and newer ones win ties."""
    weights = {term: 1 + min(len(term), 10) / 5 for term in terms(list(query))}

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
