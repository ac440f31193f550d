"""What a question asks for: its words, the names, times and literal texts in it, and what kind of question it is.

Any text is a legal question. What is looked at is bounded, so that ten thousand words cost no more than a few dozen.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from limpet.model import milliseconds, moment
from limpet.text import words as analyse

MOST_WORDS = 40  # different words of a question that are looked for; the first ones are taken
READ_CHARS = 4_000  # of a question that are looked at for names, times and literals
MOST_LITERALS = 3
LITERAL_MIN_CHARS = 4
FEW_WORDS = 3  # a query of no more words, without a question word, is taken for key words


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Words that say nothing about what is sought. Left out of a question unless it has no others.
STOP = _listed(
    "a about above after again all also am an and any are as at be because been before being below between both but "
    "by can could d did didn do does doesn doing don down during each few for from further get got had has have "
    "having he her here hers herself him himself his how i if in into is isn it its itself just let like ll m many me "
    "more most much my myself no nor not now of off on once only or other our ours ourselves out over own please re s "
    "same say says she should so some such t tell than that the their theirs them themselves then there these they "
    "this those through to too under until up us ve very was we were what when where which while who whom whose why "
    "will with would you your yours yourself yourselves"
)
_ASKING = _listed("what when where which who whom whose why how did do does is are was were has have can")
_FIRST_PERSON = _listed("i my me mine myself we our us")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_MONTH = {name[:size]: at for at, name in enumerate(_MONTHS, 1) for size in (3, len(name))} | {"sept": 9}
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_YEAR = re.compile(r"(?:19|20)\d\d")
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_ISO_DAY = re.compile(r"\b((?:19|20)\d\d)-(\d\d)-(\d\d)\b")
_AGO = re.compile(r"\b(\d{1,3}|an?|one|two|three|four|five|six|seven) (day|week|month|year)s? ago\b")
_LAST = re.compile(r"\b(last|past|this) (day|week|month|year)\b")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
_WHEN = re.compile(
    r"\s*(?:when|since when|what (?:year|month|date|day|time)|which (?:year|month|day)|how long)\b", re.I
)
_QUOTED = re.compile(r"[\"“`]([^\"”`\n]{3,80})[\"”`]")
_ENDS = "'\"`“”\u2018\u2019.,;:?!()[]{}<>"
_HEXLIKE = re.compile(r"(?=[a-z]*\d)[0-9a-f]{6,}")


class When(NamedTuple):
    """The times a question names. Months, days and years are calendar names, spans are milliseconds [from, to)."""

    months: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    years: frozenset[int] = frozenset()
    spans: tuple[tuple[int, int], ...] = ()


class Question(NamedTuple):
    words: tuple[str, ...]  # folded, each stem once, in order
    pairs: tuple[tuple[int, int], ...]  # of words that stand side by side, by their numbers
    literals: tuple[str, ...]  # identifiers, paths and quoted texts that should occur as they are
    when: When
    asks_when: bool
    first_person: bool
    key_words: bool  # a few words to look up rather than a question


def read(text: str, now: int) -> Question:
    head = text[:READ_CHARS]
    folded = analyse.fold(head)
    plain = analyse.words(folded)
    found = [*plain, *analyse.subwords(head)][: 20 * MOST_WORDS]
    sought = [word for word in found if word not in STOP] or found
    numbers: dict[str, int] = {}  # of a stem
    words: list[str] = []
    for word, stem in zip(sought, analyse.terms(sought), strict=True):
        if stem not in numbers and len(words) < MOST_WORDS:
            numbers[stem] = len(words)
            words.append(word)
    asking = "?" in head or (bool(plain) and plain[0] in _ASKING)
    return Question(
        tuple(words),
        _pairs(plain, numbers),
        _literals(head, plain),
        _times(folded, plain, now),
        _WHEN.match(head) is not None,
        not _FIRST_PERSON.isdisjoint(plain),
        not asking and len(words) <= FEW_WORDS,
    )


def _pairs(plain: list[str], numbers: dict[str, int]) -> tuple[tuple[int, int], ...]:
    at = [numbers.get(stem, -1) for stem in analyse.terms(plain)]
    return tuple(dict.fromkeys((one, two) for one, two in pairwise(at) if min(one, two) >= 0))


def _literals(head: str, plain: list[str]) -> tuple[str, ...]:
    """Texts to find as they stand: what is quoted, and what is written like a path, an identifier or a hash."""
    found = [quoted.strip() for quoted in _QUOTED.findall(head)]
    for token in head.split()[: 4 * MOST_WORDS]:
        bare = token.strip(_ENDS)
        inner = any(not c.isalnum() and c not in "'\u2019-" for c in bare)
        if inner or analyse.subwords(bare) or _HEXLIKE.fullmatch(bare.lower()):
            found.append(bare)
    if len(plain) == 1:
        found.append(head.strip())  # a single word may be a piece of the word that is meant
    long_enough = (text for text in found if len(text) >= LITERAL_MIN_CHARS)
    return tuple(dict.fromkeys(map(analyse.fold, long_enough)))[:MOST_LITERALS]


def _times(folded: str, plain: list[str], now: int) -> When:
    words = plain[: 4 * MOST_WORDS]
    # "may" is a month only beside a number, since it is also a verb.
    months = {_MONTH[word] for word in words if word in _MONTH and word != "may"}
    numbers = [match for word in words if (match := _DAY.fullmatch(word))]
    years = {int(word) for word in words if _YEAR.fullmatch(word)}
    if "may" in words and (numbers or years or "in" in words):
        months.add(5)
    days = {int(match[1]) for match in numbers if 1 <= int(match[1]) <= 31} if months else set()
    spans = [*_spans(folded, now), *filter(None, (_iso_day(*found.groups()) for found in _ISO_DAY.finditer(folded)))]
    return When(frozenset(months), frozenset(days), frozenset(years) if months or not spans else frozenset(), (*spans,))


def _iso_day(year: str, month: str, day: str) -> tuple[int, int] | None:
    try:
        start = milliseconds(f"{year}-{month}-{day}T00:00:00+00:00")
    except ValueError:
        return None
    return start, start + 86_400_000


def _spans(folded: str, now: int) -> list[tuple[int, int]]:
    """Spans counted back from today, in UTC."""
    today = datetime.combine(moment(now).date(), datetime.min.time(), UTC)

    def span(first: int, last: int) -> tuple[int, int]:
        start, stop = today - timedelta(days=first), today - timedelta(days=last)
        return milliseconds(start.isoformat()), milliseconds(stop.isoformat())

    found = []
    if "yesterday" in folded:
        found.append(span(1, 0))
    if re.search(r"\b(?:today|tonight|this morning)\b", folded):
        found.append(span(0, -1))
    for match in _AGO.finditer(folded):
        count = _NUMBERS.get(match[1]) or int(match[1])
        size = _UNIT_DAYS[match[2]]
        found.append(span(min(count * size + size // 2, 20_000), max(count * size - size // 2 - 1, 0)))
    for match in _LAST.finditer(folded):
        size = _UNIT_DAYS[match[2]]
        found.append(span(size, -1) if match[1] != "last" else span(2 * size, 0))
    return found


def dated(when: When, at: int) -> float:
    """How well a time fits the times asked for: 0 not at all, 1 for the month or span, 2 for the very day."""
    if any(start <= at < stop for start, stop in when.spans):
        return 2.0
    if not when.months and not when.years:
        return 0.0
    day = moment(at)
    if (when.years and day.year not in when.years) or (when.months and day.month not in when.months):
        return 0.0
    if not when.months:
        return 0.5  # a whole year says little
    return 2.0 if day.day in when.days else 1.0
