"""The terms of a plain question, and where they occur in a text.

A term is a word (found by its stem, also inside identifiers: `userRole`, `user_role`, `user-role`) or a literal: an
identifier, path, address, time, version or quoted phrase that must occur as it is. Occurrences are found by searching
the text for each term, not by cutting the text into words: a question has few words, and a large text many.
"""

from __future__ import annotations

import re
import unicodedata
from math import log
from typing import NamedTuple

from limpet.text import words

_MOST_TERMS = 40  # of a question; the first ones are taken
_COMMON = 20_000  # units; a term in more of them is not searched to its end
_LONGEST = 64  # characters of a word that are compared; further ones do not make another word of it
_TRIED = 150_000  # places where a term may begin that are looked at
_LOOKED = 20  # places in one unit that are looked at for a common term
_ACCENTED = 200  # different letters with accents that are folded

_STOP = frozenset(
    [
        "a",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "been",
        "being",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "doing",
        "for",
        "from",
        "get",
        "gets",
        "getting",
        "give",
        "given",
        "had",
        "has",
        "have",
        "having",
        "how",
        "i",
        "in",
        "into",
        "is",
        "it",
        "its",
        "me",
        "my",
        "of",
        "on",
        "or",
        "our",
        "please",
        "s",
        "shall",
        "should",
        "show",
        "tell",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "used",
        "uses",
        "using",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "whose",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
        "many",
        "much",
        "long",
    ]
)
# What people ask with, and what outputs say instead. Each side is a stem that another one may stand for.
_SAID_AS = {
    "fail": ("error", "exception", "failure", "✗"),
    "error": ("exception", "fail", "failure"),
    "crash": ("panic", "exception", "segfault", "fatal"),
    "durat": ("time", "elapsed", "took", "seconds", "ms"),
    "author": ("login", "user", "by"),
    "remov": ("delete", "drop"),
    "delet": ("remove", "drop"),
    "ad": ("add", "introduce", "create"),
    "fix": ("resolve", "correct", "bug"),
    "mail": ("email",),
    "email": ("mail", "@"),
    "link": ("href", "url", "http"),
    "url": ("href", "link", "http"),
    "address": ("addr", "ip", "host"),
    "directori": ("dir", "folder"),
    "databas": ("db",),
    "maximum": ("max",),
    "minimum": ("min",),
    "biggest": ("largest", "max"),
    "largest": ("biggest", "max"),
    "percent": ("%", "pct"),
    "percentag": ("%", "pct"),
    "total": ("sum", "all"),
    "finish": ("completed", "done", "finished"),
    "complet": ("finished", "done"),
    "repositori": ("repo",),
    "depend": ("requires", "dependency"),
    "licens": ("licence",),
    "allow": ("enum", "permitted", "choices"),
    "option": ("flag", "enum", "param"),
    "argument": ("args", "param"),
    "environ": ("env",),
    "memori": ("mem", "rss"),
    "request": ("get", "post", "req"),
    "number": ("no", "num", "#", "count"),
    "valu": ("val",),
    "messag": ("msg",),
    "password": ("passwd", "pwd"),
    "configur": ("config", "conf", "cfg"),
    "phone": ("tel", "mobile"),
    "price": ("cost", "amount"),
    "warn": ("warning", "⚠"),
}
# What question words ask for, when the text names it.
_ASKS_FOR = {"who": "author", "whose": "author", "when": "date", "why": "error"}
_TOKEN = re.compile(r"\S+")
_QUOTED = re.compile(r"(?<!\w)['\"“`]([^'\"”`]{3,80})['\"”`](?!\w)")
_SUBWORD = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![a-z])|[A-Z]+(?=[A-Z][a-z])|\d+|[A-Z]")
_ENDS = "'\"`“”\u2018\u2019\u2013\u2014.,;:?!()[]{}<>"


class Term(NamedTuple):
    text: str  # folded
    stem: str  # empty for a literal
    weight: float


class Found(NamedTuple):
    """A term that occurs: its rarity, and by unit how well it matches there and where."""

    term: Term
    rarity: float
    hits: dict[int, tuple[float, int]]
    common: bool = False  # in so many units that not all of them were looked for


def folded(text: str) -> str:
    """Lower case, without accents, of the same length, so that positions mean the same in both."""
    if text.isascii():
        return text.lower()
    low = text.lower()
    if len(low) != len(text):
        low = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    for letter in sorted(c for c in set(low) if ord(c) > 127)[:_ACCENTED]:
        base = unicodedata.normalize("NFKD", letter)[:1]
        if base != letter and base.isalpha():
            low = low.replace(letter, base)
    return low


def terms(question: str) -> list[Term]:
    """What to look for, in the order of the question, each once."""
    found: dict[str, Term] = {}

    def add(text: str, weight: float, stem: str = "") -> None:
        low = folded(text)
        if low and (low not in found or found[low].weight < weight):
            found[low] = Term(low, stem, weight)

    for quoted in _QUOTED.findall(question):
        if " " in quoted:
            add(quoted, 1.2)
    plain: list[str] = []
    for token in _TOKEN.findall(question):
        bare = re.sub(r"['\u2019]s$", "", token.strip(_ENDS)).strip(_ENDS)
        parts = _SUBWORD.findall(bare)
        literal = len(bare) > 2 and (len(parts) > 1 or any(not c.isalnum() for c in bare))
        if literal:
            add(bare, 1.3)
        if literal and bare.isalnum() and sum(part.isdigit() for part in parts) > 1:
            parts = []  # an id such as 58fa3f0b: its pieces mean nothing
        numeric = literal and all(part.isdigit() for part in parts)
        for part in parts if not numeric else []:
            low = folded(part)
            if low in _STOP or (literal and len(low) < 2):
                continue
            weight = 0.5 if literal else 1.2 if part[0].isupper() and plain else 1.0
            add(part, weight, _stem(low))
        for part in parts if numeric else []:
            add(part, 0.25, _stem(folded(part)))
        joined = folded(plain[-1] + bare) if plain and not literal else ""
        if len(joined) > 5 and plain[-1].isalpha():
            add(joined, 0.9)
        plain.append(bare)
    for token in _SUBWORD.findall(question) if not found else ():
        add(token, 1.0, _stem(folded(token)))
    for named in filter(None, map(_ASKS_FOR.get, map(str.lower, plain))):
        add(named, 0.4, _stem(named))
    return list(found.values())[:_MOST_TERMS]


def phrases(question: str, low: str) -> list[Term]:
    """The longest runs of words of the question that the folded text has word by word: names, titles, dates."""
    asked = folded(question)
    spans = [match.span() for match in _TOKEN.finditer(asked)][:_MOST_TERMS]
    found: list[Term] = []
    reach = 0
    for first, (start, _) in enumerate(spans):
        best = ""
        for last in range(max(first + 1, reach), len(spans)):
            phrase = asked[start : spans[last][1]].strip("'\"`?!.,;: ")
            if phrase not in low:
                break
            best, reach = phrase, last + 1
        meant = [word for word in re.findall(r"\w+", best) if word not in _STOP]
        if meant and " " in best:
            found.append(Term(best, "", 0.3 if len(meant) == 1 else 0.5 + 0.25 * min(4, len(meant))))
    return found


def also(wanted: list[Term]) -> list[tuple[Term, Term]]:
    """Other words an output may use for the same, each with the term it stands for."""
    known = {term.text for term in wanted}
    found: list[tuple[Term, Term]] = []
    for term in wanted:
        others = [other for other in _SAID_AS.get(term.stem, ()) if other not in known]
        found += [(Term(other, _stem(other) if other.isalpha() else "", 0.4 * term.weight), term) for other in others]
        if len(term.text) >= 7 and term.text.isalpha() and term.stem:
            found.append((Term(term.text[:4], "<", 0.4 * term.weight), term))
    return found


def _stem(word: str) -> str:
    return words.terms([word])[0]


class Finder:
    """Looks for terms in one text, unit by unit."""

    def __init__(self, text: str, starts: list[int]) -> None:
        self.text = text
        self.low = folded(text)
        self.starts = starts
        self.count = len(starts) - 1
        self._stems: dict[str, str] = {}

    def find(self, term: Term, whole: str = "") -> Found | None:
        """Where a term occurs, or None if nowhere. `whole` is the word that a found beginning must belong to."""
        key = _searched(term)
        hits: dict[int, tuple[float, int]] = {}
        at, unit, end, tried = self.low.find(key), -1, 0, 0
        while at >= 0 and len(hits) <= _COMMON and tried < _TRIED:
            tried += 1
            if at >= end:
                unit = _unit_at(self.starts, at, unit)
                end = self.starts[unit + 1]
            quality = self._quality(term, at, whole)
            if quality > hits.get(unit, (0.0, 0))[0]:
                hits[unit] = (quality, at)
            at = self.low.find(key, end if quality == 1 else at + 1)
        if not hits:
            return None
        # What was not searched is taken to be like what was.
        seen = 1.0 if at < 0 else max(at, 1) / len(self.low)
        units = sum(quality for quality, _ in hits.values()) / seen
        return Found(term, log(1 + max(0.0, self.count - units + 0.5) / (units + 0.5)), hits, at >= 0)

    def look(self, found: Found, unit: int) -> tuple[float, int] | None:
        """How well a common term matches in one unit."""
        key, best = _searched(found.term), (0.0, 0)
        end = self.starts[unit + 1]
        at = self.low.find(key, self.starts[unit], end)
        for _ in range(_LOOKED):
            if at < 0 or best[0] == 1:
                break
            best = max(best, (self._quality(found.term, at, ""), at))
            at = self.low.find(key, at + 1, end)
        return best if best[0] > 0 else None

    def _quality(self, term: Term, at: int, whole: str) -> float:
        """1 for the term itself, less for a relative of it, 0 for a chance resemblance."""
        before = self.text[at - 1] if at else " "
        first = self.text[at]
        starts_here = (
            not before.isalnum() or before.isdigit() != first.isdigit() or (first.isupper() and before.islower())
        )
        if not term.stem:
            return self._literal_quality(term.text, at, starts_here)
        match = _SUBWORD.match(self.text, at, at + _LONGEST)
        if match is None:
            return 0.0
        word = folded(match.group())
        if term.stem == "<":
            return 1.0 if starts_here and len(word) >= 4 and whole.startswith(word) and word != whole else 0.0
        if not starts_here:
            inside = len(term.text) >= 4 and not term.text[0].isdigit() and self.low.startswith(term.text, at)
            return 0.3 if inside else 0.0
        return self._word_quality(term, word)

    def _word_quality(self, term: Term, word: str) -> float:
        if word == term.text:
            return 1.0
        if word[0].isdigit() or term.text[0].isdigit():
            return 0.0  # 6 is not found in 60
        if self._stem_of(word) == term.stem:
            return 0.95
        return 0.5 if len(term.stem) >= 4 else 0.15

    def _literal_quality(self, text: str, at: int, starts_here: bool) -> float:
        end = at + len(text)
        after = self.text[end] if end < len(self.text) else " "
        last = self.text[end - 1]
        ends_here = not after.isalnum() or after.isdigit() != last.isdigit() or (after.isupper() and last.islower())
        if (text[0].isdigit() and not starts_here) or (text[-1].isdigit() and not ends_here):
            return 0.2
        return 1.0 if (starts_here and ends_here) or (not text[0].isalnum() and ends_here) else 0.6

    def _stem_of(self, word: str) -> str:
        known = self._stems.get(word)
        if known is None:
            known = self._stems[word] = _stem(word)
        return known


def _searched(term: Term) -> str:
    """What to search for: a beginning that all relatives of the word share."""
    if not term.stem or term.stem == "<" or term.text[0].isdigit():
        return term.text
    shared = term.stem[:-1] if term.stem.endswith("i") and len(term.stem) > 3 else term.stem
    return shared if term.text.startswith(shared) and len(shared) >= 2 else term.text


def _unit_at(starts: list[int], position: int, after: int) -> int:
    """The unit of a position, searched near the last one first."""
    low, step = max(after, 0), 1
    while low + step < len(starts) and starts[low + step] <= position:
        low += step
        step *= 2
    high = min(low + step, len(starts) - 1)
    while low < high:
        middle = (low + high) // 2
        if starts[middle + 1] <= position:
            low = middle + 1
        else:
            high = middle
    return low
