"""Duplicates and near duplicates: how to recognise them, and which words to search them by.

Two texts are *alike* if they share most of their words; their order does not count, so a reordered list is the same
list. They *say the same* if they are alike and what one of them has more changes nothing: no number, identifier, date,
negation or outcome, and no word in place of another. A write names texts that are alike, because they may be out of
date now; recall and the audit, which show or remove one text for several, need texts that say the same.

The answer to a write names duplicates, and the write happens all the same. The store gives the entries that share the
gist of the new text, which are its longest words, and those few are compared: a write must not wait for more.
`limpet audit` finds the rest: near duplicates in which one of these words is another one, and duplicates written at the
same moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil

from limpet.catalogue.ids import short_id
from limpet.catalogue.operation import Context, Json
from limpet.light import re
from limpet.record import NamedTuple
from limpet.text import words as analyse

ALIKE = 0.85  # share of words two texts have in common when one of them is enough
READ_CHARS = 4_000  # of a text that are compared; its length must be similar too
WHOLE_CHARS = 100_000  # of a text that are compared before two texts count as one; what follows must be equal
_TOKEN = re.compile(r"\w+")
_IDENTIFIER = re.compile(r"\w*\d\w*|\w+(?:[._/:@-]\w+)+|[a-z]+[A-Z]\w*|\w*_\w*")
# Negations, and words for how something ended or when it was: they change what a text says.
_CHANGING = frozenset(
    [
        "no",
        "not",
        "never",
        "none",
        "nor",
        "without",
        "cannot",
        "can",
        "won",
        "isn",
        "wasn",
        "don",
        "doesn",
        "didn",
        "hasn",
        "haven",
        "hadn",
        "aren",
        "weren",
        "shouldn",
        "wouldn",
        "fail",
        "failed",
        "fails",
        "failure",
        "failing",
        "pass",
        "passed",
        "passes",
        "passing",
        "succeed",
        "succeeded",
        "success",
        "successful",
        "error",
        "errors",
        "crash",
        "crashed",
        "broken",
        "ok",
        "okay",
        "abort",
        "aborted",
        "reject",
        "rejected",
        "accept",
        "accepted",
        "cancel",
        "cancelled",
        "canceled",
        "revert",
        "reverted",
        "timeout",
        "skip",
        "skipped",
        "block",
        "blocked",
        "disabled",
        "enabled",
        "off",
        "on",
        "true",
        "false",
        "yes",
        "open",
        "closed",
        "done",
        "undone",
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "today",
        "yesterday",
        "tomorrow",
    ]
)


def bag(text: str, most: int = READ_CHARS) -> frozenset[str]:
    """The set of words of a text."""
    return frozenset(_TOKEN.findall(analyse.fold(text[:most])))


def telling(text: str) -> Counter[str]:
    """The numbers, identifiers, paths and addresses of a text: a text with others says something else.

    How often each stands there counts too: "option 2" is not "option 3" because both texts list the points 1 to 3.
    """
    return Counter(analyse.fold(token) for token in _IDENTIFIER.findall(text[:WHOLE_CHARS]))


def say_the_same(left: str, right: str) -> bool:
    """Whether showing one of two texts is enough. Their first words are already known to be alike."""
    if left == right:
        return True
    if not as_long(left, right) or left[WHOLE_CHARS:] != right[WHOLE_CHARS:] or telling(left) != telling(right):
        return False
    first, second = bag(left, WHOLE_CHARS), bag(right, WHOLE_CHARS)
    added, missing = ({*analyse.terms(sorted(words))} for words in (first - second, second - first))
    added, missing = added - missing, missing - added  # another form of the same word is the same word
    return not (added and missing) and _CHANGING.isdisjoint(first ^ second)


def same_words(left: frozenset[str], right: frozenset[str]) -> bool:
    small, large = len(left), len(right)
    if small > large:
        small, large = large, small
    if not small or small < ALIKE * large:
        return False
    shared = len(left & right)
    return shared >= ALIKE * (small + large - shared)


def as_long(left: str, right: str) -> bool:
    """Whether two texts are about as long: long ones may begin alike and differ later."""
    return min(len(left), len(right)) >= ALIKE * max(len(left), len(right))


def _rarest(count: int) -> int:
    """How many of so many words have to be compared: one more than may be missing."""
    return count - ceil(ALIKE * count - 1e-9) + 1


def groups(texts: Sequence[str]) -> list[list[int]]:
    """Groups of texts that say the same, by index, each of two or more texts in order.

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
        same = (
            number
            for number in candidates
            if same_words(words, bags[number]) and say_the_same(texts[at], texts[number])
        )
        first.append(next(same, at))
        for word in rarest:
            by_word.setdefault(word, []).append(at)
    by_first: dict[int, list[int]] = {}
    for at, number in enumerate(first):
        by_first.setdefault(number, []).append(at)
    return [group for group in by_first.values() if len(group) > 1]


def first_of_each(texts: Sequence[str]) -> list[int]:
    """For each text the index of the first one that says the same; its own if there is none."""
    bags = [bag(text) for text in texts]
    firsts: list[int] = []
    for at, words in enumerate(bags):
        twins = (
            first
            for first in range(at)
            if firsts[first] == first and same_words(words, bags[first]) and say_the_same(texts[at], texts[first])
        )
        firsts.append(next(twins, at))
    return firsts


# --- at the time of a write -------------------------------------------------------------------------------------------


class Twin(NamedTuple):
    """An entry that says the same as the new text: in the same words, or nearly."""

    key: str
    exact: bool


def twin(ctx: Context, kind: str, text: str, own: str | None = None) -> Twin | None:
    """The open entry that says the same, the newest of those that do; `own` is the key that is being written."""
    if not ctx.bounds.report_duplicates:
        return None
    entries = [entry for entry in ctx.store.entries.alike(ctx.scope, kind, text, ctx.now) if entry.key != own]
    if not entries:
        return None
    entries.sort(key=lambda entry: (entry.updated_at, entry.key), reverse=True)
    plain, words = analyse.exact(text), bag(text)
    for entry in entries:
        if analyse.exact(entry.content) == plain:
            return Twin(entry.key, True)
    near = [entry for entry in entries if as_long(text, entry.content) and same_words(words, bag(entry.content))]
    # Among many of one pattern, one with the same numbers goes first.
    numbers = near[1:] and telling(text)
    numbered = (entry for entry in near if numbers and telling(entry.content) == numbers)
    same = next(numbered, near[0] if near else None)
    return None if same is None else Twin(same.key, False)


def twin_text(ctx: Context, twin: Twin | None, kind: str) -> str:
    if twin is None:
        return ""
    name = short_id(ctx, kind, twin.key)
    return f"{name} says the same already." if twin.exact else f"{name} says nearly the same."


def twin_json(twin: Twin | None) -> Json:
    return {} if twin is None else {"duplicate_of" if twin.exact else "similar_to": twin.key}
