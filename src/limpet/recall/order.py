"""The order of memory that holds a query word for word: a small pure function over the query and a text."""

from __future__ import annotations

from limpet.text.words import fold


def memory_score(query: str, key: str, content: str) -> int:
    """How well a memory entry fits: the whole query weighs more than its words, the key more than the content."""
    whole, in_key, in_content = fold(query).strip(), fold(key), fold(content)
    score = 6 * (whole in in_key) + 5 * (whole in in_content)
    for word in dict.fromkeys(whole.split()):
        score += 3 * (word in in_key) + (word in in_content)
    return score
