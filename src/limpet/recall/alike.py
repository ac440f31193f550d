"""Duplicates and near duplicates: how to recognise them, and which words to search them by.

Two texts are alike if they share most of their words. Their order does not count, so a reordered list is the same
list. A different number makes a short text another text, and a long one the same text at another time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import ceil

from limpet.text import words as analyse

ALIKE = 0.85  # share of words two texts have in common when one of them is enough
READ_CHARS = 4_000  # of a text that are compared; its length must be similar too
_TOKEN = re.compile(r"\w+")


def bag(text: str) -> frozenset[str]:
    """The set of words of a text."""
    return frozenset(_TOKEN.findall(analyse.fold(text[:READ_CHARS])))


def alike(left: frozenset[str], right: frozenset[str]) -> bool:
    small, large = len(left), len(right)
    if small > large:
        small, large = large, small
    if not small or small < ALIKE * large:
        return False
    shared = len(left & right)
    return shared >= ALIKE * (small + large - shared)


def exact(text: str) -> str:
    """A text without case and extra white space: equal for exact duplicates."""
    return " ".join(analyse.fold(text).split())


def as_long(left: str, right: str) -> bool:
    """Whether two texts are about as long: long ones may begin alike and differ later."""
    return min(len(left), len(right)) >= ALIKE * max(len(left), len(right))


def search_words(text: str, most: int) -> tuple[list[str], list[str]]:
    """The words to search a text by, the longest ones, each stem once: those of letters, and those with digits, which
    change when the same is said at another time."""
    every = dict.fromkeys(analyse.words(analyse.fold(text[:READ_CHARS])))
    short = [word for word in every if len(word) <= analyse.WORD_MAX_CHARS]
    chosen = sorted(filter(str.isalpha, short), key=len, reverse=True)[: 2 * most]
    stems = dict(zip(reversed(analyse.terms(chosen)), reversed(chosen), strict=True))
    others = sorted((word for word in short if not word.isalpha()), key=len, reverse=True)
    return [word for word in chosen if word in stems.values()][:most], others[:most]


def _rarest(count: int) -> int:
    """How many of so many words have to be compared: one more than may be missing."""
    return count - ceil(ALIKE * count - 1e-9) + 1


def groups(texts: Sequence[str]) -> list[list[int]]:
    """Groups of duplicates, by index, each of two or more texts in order.

    Two texts that share so many of their words have one of their rarest few words in common. So each text is compared
    with those that have one of its rarest words among their own rarest.
    """
    bags = [bag(text) for text in texts]
    often = Counter(word for words in bags for word in words)
    by_word: dict[str, list[int]] = {}
    first: list[int] = []
    for at, words in enumerate(bags):
        rarest = sorted(words, key=lambda word: (often[word], word))[: _rarest(len(words))]
        candidates = sorted({number for word in rarest for number in by_word.get(word, ()) if first[number] == number})
        same = (number for number in candidates if alike(words, bags[number]) and as_long(texts[at], texts[number]))
        first.append(next(same, at))
        for word in rarest:
            by_word.setdefault(word, []).append(at)
    by_first: dict[int, list[int]] = {}
    for at, number in enumerate(first):
        by_first.setdefault(number, []).append(at)
    return [group for group in by_first.values() if len(group) > 1]
