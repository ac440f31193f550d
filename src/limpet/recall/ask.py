"""A plain question to one text: the lines or records that answer it best, with their context.

Every unit that contains a term of the question is scored: rare terms count more, adjacent terms count more, and the
enclosing and neighbouring units count a little. Units that answer what the question asks for without having its words
(totals, extremes, ends) are scored with them. `choice` prints the best, each with its heading and its record.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from heapq import nlargest
from itertools import pairwise
from math import log

from limpet.previews.core import ANSI
from limpet.recall.choice import Choice, Own, Rated, shape_of
from limpet.recall.intents import ECHO, Intent, ends, extreme_fields, extremes, intent_of, tool_terms, totals
from limpet.recall.question import ABBREVIATION, SUBWORD, Term, folded, phrases, synonyms, term_stem, terms
from limpet.recall.units import Units
from limpet.record import NamedTuple

_COMMON = 20_000  # units; a term in more of them is not searched to its end
_LONGEST = 64  # characters of a word that are compared; further ones do not make another word of it
_TRIED = 150_000  # positions where a term may begin that are examined
_LOOKED = 20  # positions in one unit that are examined for a common term
_RANKED = 400  # units scored with their context; the rest by their own words
_ALIKE = 40  # units that differ in numbers alone, scored with their context
_RECORD = 120  # units of a record that are examined
_PLACES = 400  # places of words in a very long line that it is cut around
_WINDOW = 1_500  # characters on each side of such a place
_COUNTED = 12  # words of the question whose places are counted for that
_UNIT = 80  # characters of a unit, about: how many a line has that was not cut
_TOTAL, _EXTREME, _END, _LAST_EVENT = (
    0.45,
    1.2,
    1.1,
    1.15,
)  # what such a unit is worth at least, as a share of the best score
_LATEST = re.compile(r"\b(?:last|final|latest|newest|most recent)\b", re.I)
_EVENT = re.compile(r".{0,60}?\d\d:\d\d:\d\d")  # a line of a log, in which the newest comes last
_AS_MUCH = 0.97  # of the best line's words: such a line is another of the events that are asked for
_HEADER = 0.5  # the share of a header's words that counts for its rows, and what is left of its own score
_LONG_ECHO = 400  # characters of a line that are examined for that
_ECHO = 0.7  # what is left of the score of a line that repeats what a program was given
_POINTER_CHARS_SHOWN = 300  # of a path: a longer one says less than what it costs
_POINTER_CHARS = 400_000  # before a position: walking over them takes some 50 ms


_NAMES = re.compile(r"\s*(?:- )?[\"']?(?:name|id|title|key|package)[\"']?\s?[:=]", re.I)  # what a record is called by
# How the line begins that declares a name, in many languages; in a diff behind its sign.
_DECLARES = (
    r"[-+ ]?\s*(?:(?:pub|public|private|protected|export|default|async|static|final|abstract)\b\s*)*"
    r"(?:def|class|function|func|fn|interface|struct|enum|trait|type|const|let|var)\s+(?:\([^)\n]{0,80}\)\s*)?"
)
_DECLARED = 1.25  # what its score is multiplied by where the question names it
_NAMED = 1.12  # what the score of such a line is multiplied by: it is the thing itself, not a mention
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],]|:')
_JSON_LINES = re.compile(r"\s*[{\[][^\n]*[}\]]\s*\n[{\[]")  # which `path` reads as one list
_BLANK = re.compile(r"[\s,{\[]*")


class Answer(NamedTuple):
    content: str
    cursor: str | None
    note: str


# Words of a question, and how its answer looks. It decides between lines with the same words.
_LOOKS = (
    (re.compile(r"\bips?\b|\baddress|\bhost", re.I), re.compile(r"\d+\.\d+\.\d+\.\d+|[0-9a-f]+::?[0-9a-f:]+")),
    (re.compile(r"\be-?mail", re.I), re.compile(r"\S@\S")),
    (re.compile(r"\bhow long|\bduration|\btime\b|\btook", re.I), re.compile(r"\d\s?(?:ms|s|sec\w*|min\w*|us|µs)\b")),
    (re.compile(r"\bversion", re.I), re.compile(r"\d+\.\d+")),
    (re.compile(r"\bwhen\b|\bdate\b", re.I), re.compile(r"\d{4}[-/]\d\d|\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d")),
    (re.compile(r"\bpercent|\bcoverage|%", re.I), re.compile(r"\d%")),
    (re.compile(r"\burl|\blink|\barxiv", re.I), re.compile(r"https?://|www\.|href")),
    (re.compile(r"\bhow many|\bnumber|\bcount|\btotal|\bsize", re.I), re.compile(r"\d")),
    (re.compile(r"\bwhy\b|\berror|\bfail", re.I), re.compile(r"(?i)error|exception|fail|expected|assert|✗|→")),
    (re.compile(r"\bcommit\b|\bhash\b|\bsha\b", re.I), re.compile(r"\b[0-9a-f]{7,40}\b")),
)


def ask(text: str, question: str, budget: int, count: Callable[[str], int]) -> Answer:
    """The part of a text that answers a question, in at most `budget` tokens as `count` counts them."""
    if (
        "\x1b" in text
    ):  # colours cost tokens and hide where words begin; no line ends in one, so lines keep their numbers
        text = ANSI.sub("", text)
    intent, low = intent_of(question), folded(text)
    units = Units(text, lambda: _windows(text, low, question, intent))
    finder = Finder(text, low, units)
    occurrences = _occurrences(finder, question)
    own, scores = _scores(units, finder, occurrences, question, intent)
    if not scores:
        return Answer("", None, "no word of the question occurs; try match= with other words, or lines= to read it")

    def places(unit: int) -> list[int]:
        return [hit.hits[unit][1] for hit in occurrences if unit in hit.hits]

    chosen = Choice(units, Rated(own, scores, places, intent.reason), question, budget, count)
    content = chosen.content()
    left = len(scores) - sum(unit in chosen.taken for unit in scores)
    lines = len(units.line_starts) - text.endswith("\n")  # as the preview counts them
    among = f"the best of {len(scores):,} places" if len(scores) > 1 else "the only place"
    note = f"{among} with words of the question, in {lines:,} lines"
    best = max(scores, key=lambda unit: (scores[unit], -unit))
    where = pointer(text, units.starts[best])
    note += f"; the best is at path {where}" if 0 < len(where) <= _POINTER_CHARS_SHOWN else ""
    return Answer(content, None, note + (f"; {left:,} not shown" if left > 0 else ""))


def _windows(text: str, low: str, question: str, intent: Intent) -> list[tuple[int, int]]:
    """Where to cut a line that is too long to be cut as a whole: around the rarest words of the question."""
    keys = {_prefix(term) for term in terms(question)[:_COUNTED]}
    places = extreme_fields(text, intent, _stems_of(question))
    for _, key in sorted((low.count(key), key) for key in keys):
        at = low.find(key)
        while at >= 0 and len(places) < _PLACES:
            places.append(at)
            at = low.find(key, at + _WINDOW)
    windows: list[tuple[int, int]] = []
    for place in sorted(places):
        start = max(0, place - _WINDOW)
        if windows and start <= windows[-1][1]:
            start = windows.pop()[0]
        windows.append((start, place + _WINDOW))
    return windows


def _stems_of(question: str) -> frozenset[str]:
    return frozenset(term.stem for term in terms(question) if term.stem)


# --- scores -----------------------------------------------------------------------------------------------------------


def _occurrences(finder: Finder, question: str) -> list[Occurrences]:
    sought = terms(question)
    by_text = {term.text: hit for term in sought if (hit := finder.find(term))}
    for synonym, term in synonyms(sought):
        hit = finder.find(synonym, term.text)
        if hit is None or synonym.text in by_text:
            continue
        main = by_text.get(term.text)
        if main is None:
            by_text[term.text] = hit
        elif synonym.stem != ABBREVIATION or len(main.hits) < 3:
            for unit, (quality, at) in hit.hits.items():
                if unit not in main.hits:
                    main.hits[unit] = (0.4 * quality, at)
    for phrase in phrases(question, finder.low):
        if phrase.text not in by_text and (hit := finder.find(phrase)):
            by_text[phrase.text] = hit
    for group in tool_terms(question):
        if hit := finder.any_of(group):
            by_text[f"{hit.term.text} "] = hit  # apart from a word of the question that is the same
    return list(by_text.values())


def _scores(
    units: Units, finder: Finder, occurrences: list[Occurrences], question: str, intent: Intent
) -> tuple[Own, dict[int, float]]:
    """The terms of each unit, and its score; for the best of them with their context."""
    own, scores = _by_words(units, finder, occurrences, question, intent)
    top = max(scores.values(), default=1.0)
    greatest = enumerate(extremes(units, intent, _stems_of(question)))
    answers = [(unit, _EXTREME / (1 + 0.1 * rank)) for rank, unit in greatest if unit not in units.uncut]
    answers += [(unit, _END) for unit in (ends(units, intent.end) if intent.end else ())]
    if _LATEST.search(question) and not any(hit.common for hit in occurrences):
        answers += [(unit, _LAST_EVENT) for unit in _last_event(units, own)]
    for unit, share in answers:
        own.setdefault(unit, {})
        scores[unit] = max(scores.get(unit, 0.0), share * top)
    return own, scores


def _last_event(units: Units, own: Own) -> list[int]:
    """The last of the events of a log that hold as many words of the question as any line."""
    flat = {unit: sum(values.values()) for unit, values in own.items()}
    least = _AS_MUCH * max(flat.values(), default=0.0)
    last = max((unit for unit, score in flat.items() if score >= least > 0), default=-1)
    return [last] if last >= 0 and _EVENT.match(units[last]) else []


def _by_words(
    units: Units, finder: Finder, occurrences: list[Occurrences], question: str, intent: Intent
) -> tuple[Own, dict[int, float]]:
    own = _own_terms(occurrences)
    flat = {unit: sum(values.values()) for unit, values in own.items()}
    best = _varied(units, nlargest(10 * _RANKED, flat, key=lambda unit: (flat[unit], -unit)))
    summaries = frozenset(totals(units) if intent.total else ())
    for unit in summaries - flat.keys():
        own[unit] = {}
        best.append(unit)
    _look_for_common(finder, occurrences, best, own)
    looks = [answer for pattern, answer in _LOOKS if pattern.search(question)]
    names = "|".join(re.escape(hit.term.text) for hit in occurrences if not hit.term.stem)
    declares = re.compile(rf"{_DECLARES}(?:{names})\b", re.IGNORECASE) if names else None
    most = sum(hit.rarity * hit.term.weight for hit in occurrences) or 1.0
    scores = {unit: 0.5 * score for unit, score in flat.items()}
    records: Own = {}
    headers: set[int] = set()
    for unit in best:
        around = _with_surroundings(units, unit, own, records)
        header = units.table_top(unit)
        if header is not None:
            headers.add(header)
            for index, value in own.get(header, {}).items():
                around[index] = max(around.get(index, 0.0), _HEADER * value)
        score = sum(around.values()) + _together(occurrences, unit)
        score *= 0.7 + 0.3 * min(1.0, sum(around.values()) / most)
        scores[unit] = score * _manner(units[unit], looks, intent)
        if declares and declares.match(units[unit]):
            scores[unit] *= _DECLARED
        if units[unit].startswith("@@ ") or units.repeats_name(unit):
            scores[unit] *= _ECHO  # its words are elsewhere in the diff too
    for unit in headers & scores.keys():
        scores[unit] *= _HEADER  # it names what is asked for, and its rows say it
    top = max(scores.values(), default=0.0)
    for unit in summaries:
        scores[unit] += _TOTAL * top
    return own, scores


def _own_terms(occurrences: list[Occurrences]) -> Own:
    """By unit, what each of its terms is worth; common terms count if there are no others."""
    own: Own = {}
    rare = any(not hit.common for hit in occurrences)
    for index, hit in enumerate(occurrences):
        if hit.common and rare:
            continue
        value = hit.rarity * hit.term.weight
        for unit, (quality, _) in hit.hits.items():
            own.setdefault(unit, {})[index] = value * quality
    return own


def _look_for_common(finder: Finder, occurrences: list[Occurrences], best: list[int], own: Own) -> None:
    """Adds common terms to the units that other terms have found."""
    rare = any(not hit.common for hit in occurrences)
    for index, hit in enumerate(occurrences):
        for unit in best if hit.common and rare else ():
            if looked := finder.look(hit, unit):
                hit.hits[unit] = looked
                own[unit][index] = hit.rarity * hit.term.weight * looked[0]


def _with_surroundings(units: Units, unit: int, own: Own, records: Own) -> dict[int, float]:
    """The terms of a unit, and a share of those of its record, its headings and its neighbours."""
    around = dict(own[unit])
    for index, value in _record(units, unit, own, records).items():
        around[index] = max(around.get(index, 0.0), 0.35 * value)
    for near, share in _around(units, unit):
        for index, value in own.get(near, {}).items():
            around[index] = max(around.get(index, 0.0), share * value)
    return around


def _manner(text: str, looks: list[re.Pattern[str]], intent: Intent) -> float:
    """What the score of a line is multiplied by: for looking like an answer, naming a record, being long."""
    factor = 1 + 0.08 * sum(1 for answer in looks if answer.search(text))
    if _NAMES.match(text):
        factor *= _NAMED
    if not intent.setting and ECHO.search(text[:_LONG_ECHO]):
        factor *= _ECHO
    return factor / (1 + 0.0004 * max(0, len(text) - 200))


def _varied(units: Units, ranked: list[int]) -> list[int]:
    """The first units, few of them alike but for numbers: a thousand alike must not hide a different one."""
    counts: Counter[str] = Counter()
    varied: list[int] = []
    for unit in ranked:
        shape = shape_of(units[unit])
        counts[shape] += 1
        if counts[shape] <= _ALIKE:
            varied.append(unit)
    return varied[:_RANKED]


def _around(units: Units, unit: int) -> list[tuple[int, float]]:
    """The units around a unit, each with the share of its words that counts for this one."""
    around = [(above, 0.6 if rank < 2 else 0.4) for rank, above in enumerate(units.above(unit)[:5])]
    depth = units.depth(unit)
    for step in (-1, 1, -2, 2, -3, 3, 4, 5, 6):
        near = unit + step
        if 0 <= near < units.count and not units.blank(near):
            inside = units.depth(near) > depth and step > 0
            around.append((near, 0.4 if inside else 0.35 if abs(step) == 1 else 0.2))
    return around


def _record(units: Units, unit: int, own: Own, records: Own) -> dict[int, float]:
    """The terms of the record that a unit belongs to: the best of its units for each term."""
    above = units.above(unit)
    if not above:
        return {}
    if above[0] not in records:
        best: dict[int, float] = {}
        for inner in units.block(above[0], _RECORD):
            for index, value in own.get(inner, {}).items():
                best[index] = max(best.get(index, 0.0), value)
        records[above[0]] = best
    return records[above[0]]


def _together(occurrences: list[Occurrences], unit: int) -> float:
    """A bonus for terms that follow each other in the question and in the unit."""
    bonus = 0.0
    for first, second in pairwise(occurrences):
        if unit in first.hits and unit in second.hits:
            gap = second.hits[unit][1] - first.hits[unit][1] - len(first.term.text)
            if -len(first.term.text) < gap <= 4:
                bonus += 0.3 * min(first.rarity, second.rarity)
    return bonus


# --- where terms occur ------------------------------------------------------------------------------------------------


class Occurrences(NamedTuple):
    """Where a term occurs: its rarity, and by unit the quality of the match and its position."""

    term: Term
    rarity: float
    hits: dict[int, tuple[float, int]]
    common: bool = False  # in so many units that not all of them were searched


class Finder:
    """Finds terms in one text, unit by unit: by searching for each term, because a question has few and a text many."""

    def __init__(self, text: str, low: str, units: Units) -> None:
        self.text = text
        self.low = low
        self.starts = units.starts
        self.uncut = units.uncut
        self.count = units.count if not units.uncut else max(units.count, len(text) // _UNIT)
        self._stems: dict[str, str] = {}

    def find(self, term: Term, full: str = "") -> Occurrences | None:
        """Where a term occurs, if it does. `full` is the word that an abbreviation must be a beginning of."""
        key = _prefix(term)
        hits: dict[int, tuple[float, int]] = {}
        at, unit, end, tried = self.low.find(key), -1, 0, 0
        while at >= 0 and len(hits) <= _COMMON and tried < _TRIED:
            tried += 1
            if at >= end:
                unit = _unit_at(self.starts, at, unit)
                end = self.starts[unit + 1]
            if unit in self.uncut:
                at = self.low.find(key, end)
                continue
            quality = self._quality(term, at, full)
            if quality > hits.get(unit, (0.0, 0))[0]:
                hits[unit] = (quality, at)
            at = self.low.find(key, end if quality == 1 else at + 1)
        if not hits:
            return None
        # The unsearched rest is assumed to be like the searched part.
        share = 1.0 if at < 0 else max(at, 1) / len(self.low)
        units = self.low.count(key) if self.uncut else sum(quality for quality, _ in hits.values()) / share
        return Occurrences(term, log(1 + max(0.0, self.count - units + 0.5) / (units + 0.5)), hits, at >= 0)

    def any_of(self, group: Sequence[Term]) -> Occurrences | None:
        """Where any of several terms occurs, as one term."""
        hits: dict[int, tuple[float, int]] = {}
        for term in group:
            hit = self.find(term)
            for unit, (quality, at) in hit.hits.items() if hit and not hit.common else ():
                hits[unit] = max(hits.get(unit, (0.0, 0)), (quality, at))
        if not hits:
            return None
        units = len(hits)
        return Occurrences(group[0], log(1 + max(0.0, self.count - units + 0.5) / (units + 0.5)), hits)

    def look(self, occurrences: Occurrences, unit: int) -> tuple[float, int] | None:
        """How well a common term matches in one unit."""
        key, best = _prefix(occurrences.term), (0.0, 0)
        end = self.starts[unit + 1]
        at = self.low.find(key, self.starts[unit], end)
        for _ in range(_LOOKED):
            if at < 0 or best[0] == 1:
                break
            best = max(best, (self._quality(occurrences.term, at, ""), at))
            at = self.low.find(key, at + 1, end)
        return best if best[0] > 0 else None

    def _quality(self, term: Term, at: int, full: str) -> float:
        """1 for the term itself, less for another form of it, 0 for a chance resemblance."""
        before = self.text[at - 1] if at else " "
        first = self.text[at]
        begins = not before.isalnum() or before.isdigit() != first.isdigit() or (first.isupper() and before.islower())
        if not term.stem:
            return self._literal_quality(term.text, at, begins)
        match = SUBWORD.match(self.text, at, at + _LONGEST)
        if match is None:
            return 0.0
        word = folded(match.group())
        if term.stem == ABBREVIATION:
            return 1.0 if begins and len(word) >= 4 and full.startswith(word) and word != full else 0.0
        if not begins:
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

    def _literal_quality(self, text: str, at: int, begins: bool) -> float:
        end = at + len(text)
        after = self.text[end] if end < len(self.text) else " "
        last = self.text[end - 1]
        ends = not after.isalnum() or after.isdigit() != last.isdigit() or (after.isupper() and last.islower())
        if (text[0].isdigit() and not begins) or (text[-1].isdigit() and not ends):
            return 0.2
        return 1.0 if (begins and ends) or (not text[0].isalnum() and ends) else 0.6

    def _stem_of(self, word: str) -> str:
        stem = self._stems.get(word)
        if stem is None:
            stem = self._stems[word] = term_stem(word)
        return stem


def _prefix(term: Term) -> str:
    """What to search for: the beginning that all inflections of the word share."""
    if not term.stem or term.stem == ABBREVIATION or term.text[0].isdigit():
        return term.text
    shared = term.stem[:-1] if term.stem.endswith("i") and len(term.stem) > 3 else term.stem
    return shared if term.text.startswith(shared) and len(shared) >= 2 else term.text


def _unit_at(starts: list[int], position: int, after: int) -> int:
    """The unit of a position, by galloping search from the last one."""
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


# --- where a position is in JSON --------------------------------------------------------------------------------------


def pointer(text: str, position: int) -> str:
    """The JSON pointer, such as `/items/3/name`, of the value at a position; empty without JSON or far into it."""
    head = text[:200].lstrip("\ufeff \t\r\n")[:1]
    if position > _POINTER_CHARS or head not in ("{", "["):
        return ""
    skipped = _BLANK.match(text, position)
    stop = skipped.end() if skipped else position
    steps: list[str | int] = []  # the member or the number of the item in each enclosing value
    last, values = "", 0
    for token in _JSON_TOKEN.finditer(text, 0, stop):
        sign = token.group()
        if sign in "{[":
            steps.append("" if sign == "{" else 0)
        elif sign in "}]":
            if not steps:
                return ""
            steps.pop()
            values += not steps
        elif sign == "," and steps:
            inner = steps[-1]
            steps[-1] = inner + 1 if isinstance(inner, int) else ""
        elif sign == ":" and steps and isinstance(steps[-1], str):
            steps[-1] = last
        last = sign
    if steps and steps[-1] == "" and (key := _JSON_TOKEN.match(text, stop)) and key.group()[0] == '"':
        steps[-1] = key.group()
    several = _JSON_LINES.match(text) is not None
    if values and not several:
        return ""  # several values have no common root, unless each has a line of its own
    return (f"/{values}" if several else "") + "".join(f"/{_step(step)}" for step in steps if step != "")


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return str(step)
    try:
        name = str(json.loads(step))
    except ValueError:
        name = step.strip('"')
    return name.replace("~", "~0").replace("/", "~1")
