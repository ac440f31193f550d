"""Texts that say the same in the same or nearly the same words: which they are, and which words to look for them by.

Two texts are alike when they share most of their words. Where these stand does not count, so a reordered list is the
same list. A number that differs makes a short text another text, a long one the same text at another time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import ceil

from limpet.text import words as analyse

ALIKE = 0.85  # share of words two texts have in common when one of them is enough
READ_CHARS = 4_000  # of a text that are compared; its length must be alike too
_TOKEN = re.compile(r"\w+")


def bag(text: str) -> frozenset[str]:
    """The words of a text, each once."""
    return frozenset(_TOKEN.findall(analyse.fold(text[:READ_CHARS])))


def alike(one: frozenset[str], two: frozenset[str]) -> bool:
    small, large = len(one), len(two)
    if small > large:
        small, large = large, small
    if not small or small < ALIKE * large:
        return False
    shared = len(one & two)
    return shared >= ALIKE * (small + large - shared)


def exact(text: str) -> str:
    """What two texts have in common that differ in nothing but case and white space."""
    return " ".join(analyse.fold(text).split())


def as_long(one: str, two: str) -> bool:
    """Whether two texts are about as long, which tells long ones apart that only begin alike."""
    return min(len(one), len(two)) >= ALIKE * max(len(one), len(two))


def telling(text: str, most: int) -> tuple[list[str], list[str]]:
    """The words a text is most likely known by, the longest, each stem once: those of letters, and the others, which
    are what changes when the same is said at another time."""
    found = dict.fromkeys(analyse.words(analyse.fold(text[:READ_CHARS])))
    short = [word for word in found if len(word) <= analyse.WORD_MAX_CHARS]
    chosen = sorted(filter(str.isalpha, short), key=len, reverse=True)[: 2 * most]
    stems = dict(zip(reversed(analyse.terms(chosen)), reversed(chosen), strict=True))
    others = sorted((word for word in short if not word.isalpha()), key=len, reverse=True)
    return [word for word in chosen if word in stems.values()][:most], others[:most]


def _rarest(count: int) -> int:
    """How many words of so many have to be looked at: all but those that may be missing, and one."""
    return count - ceil(ALIKE * count - 1e-9) + 1


def groups(texts: Sequence[str]) -> list[list[int]]:
    """The texts that say the same, by number, each group of two or more in order.

    Of two texts that share so many of their words, the rarest few of the one and of the other have a word in common:
    so each is compared only with those that have one of its rarest words among their own rarest.
    """
    bags = [bag(text) for text in texts]
    often = Counter(word for words in bags for word in words)
    seen: dict[str, list[int]] = {}
    first: list[int] = []
    for at, words in enumerate(bags):
        rarest = sorted(words, key=lambda word: (often[word], word))[: _rarest(len(words))]
        others = sorted({other for word in rarest for other in seen.get(word, ()) if first[other] == other})
        same = (other for other in others if alike(words, bags[other]) and as_long(texts[at], texts[other]))
        first.append(next(same, at))
        for word in rarest:
            seen.setdefault(word, []).append(at)
    found: dict[int, list[int]] = {}
    for at, one in enumerate(first):
        found.setdefault(one, []).append(at)
    return [group for group in found.values() if len(group) > 1]
