"""The part of a text that answers a question, with the matching words marked, and duplicates among matches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from limpet.recall.alike import alike, bag
from limpet.text import words as analyse

OPEN, CLOSE = "«", "»"  # around a matching word
READ_WORDS = 400  # of a long text, from the best stretch on
BEFORE_WORDS = 6  # before the first matching word


class Snippet(NamedTuple):
    text: str
    line: int  # of its beginning, from 1
    whole: bool


def snippet(text: str, sought: Sequence[str], at: int, words: int) -> Snippet:
    """At most `words` words of a text, the ones with most of the words sought, from the word `at` on."""
    stems = frozenset(analyse.terms(list(sought)))
    tokens = list(islice(analyse.places(text), max(0, at - BEFORE_WORDS), at + READ_WORDS))
    if not tokens:
        return Snippet(text[: 8 * words], 1, len(text) <= 8 * words)
    hits = [_stem(token.group()) in stems for token in tokens]
    first, last = 0, len(tokens)
    if last > words:
        first = _densest(tokens, hits, words)
        last = first + words
    start = 0 if first == 0 and at <= BEFORE_WORDS else tokens[first].start()
    stop = len(text) if last == len(tokens) and len(tokens) < READ_WORDS else tokens[last - 1].end()
    stop = min(stop, start + 16 * words)  # characters between words are bounded too
    parts, done = [], start
    for token, hit in zip(tokens[first:last], hits[first:last], strict=True):
        if hit and token.end() <= stop:
            parts += [text[done : token.start()], OPEN, token.group(), CLOSE]
            done = token.end()
    part = "".join([*parts, text[done:stop]]).strip()
    cut_before, cut_after = text[:start].strip() != "", text[stop:].strip() != ""
    part = ("… " if cut_before else "") + part + (" …" if cut_after else "")
    return Snippet(part, 1 + text.count("\n", 0, start), not (cut_before or cut_after))


def _densest(tokens: list[re.Match[str]], hits: list[bool], words: int) -> int:
    """The token to begin with, so that the words from there on contain the most different matching words.

    Of several such places, the one where these are closest together: the answer follows it.
    """
    matching = [(at, _stem(tokens[at].group())) for at, hit in enumerate(hits) if hit]
    best, chosen = (0, 0), 0
    for number, (at, _) in enumerate(matching):
        within: set[str] = set()
        reach = at
        for near, stem in matching[number : number + words]:
            if near >= at + words - BEFORE_WORDS:
                break
            if stem not in within:
                within.add(stem)
                reach = near
        if (len(within), at - reach) > best:
            best, chosen = (len(within), at - reach), at
    return max(0, min(chosen - BEFORE_WORDS, len(tokens) - words))


@lru_cache(20_000)  # some megabytes; the texts of a project share most of their words
def _stem(word: str) -> str:
    (*_, last) = analyse.terms(analyse.words(analyse.fold(word))) or [""]
    return last


def same(texts: Sequence[str]) -> list[int]:
    """For each text the index of the first one with nearly the same words; its own if there is none."""
    bags = [bag(text) for text in texts]
    firsts: list[int] = []
    for at, words in enumerate(bags):
        twins = (first for first in range(at) if firsts[first] == first and alike(words, bags[first]))
        firsts.append(next(twins, at))
    return firsts
