"""A plain question to one text: the lines or records that answer it best, with their context.

Every unit that contains a term of the question is scored: rare terms count more, adjacent terms count more, and the
enclosing and neighbouring units count a little. The best are printed in the order of the text, each with its heading
or record, within a budget of tokens.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from heapq import nlargest
from itertools import pairwise
from math import log

from limpet.recall.question import ABBREVIATION, SUBWORD, Term, folded, phrases, synonyms, term_stem, terms
from limpet.recall.units import Units
from limpet.record import NamedTuple
from limpet.text import words

_COMMON = 20_000  # units; a term in more of them is not searched to its end
_LONGEST = 64  # characters of a word that are compared; further ones do not make another word of it
_TRIED = 150_000  # positions where a term may begin that are examined
_LOOKED = 20  # positions in one unit that are examined for a common term
_RANKED = 400  # units scored with their context; the rest by their own words
_ALIKE = 40  # units that differ in numbers alone, scored with their context
_GROWN = 60  # units of a block that may be shown in full
_COVERING = 4  # units shown first, each for words of the question that the previous ones lack
_NEW = 0.2  # what such a unit must add, as a share of the score so far
_FIELDS = 8  # units of a large record that are shown for their words, and units of each
_RECORD = 120  # units of a record that are examined
_CRUMB = 160  # characters of an enclosing line that are shown
_WEAK = 0.22  # units that score less than this share of the best are not shown
_FURTHER = 0.25  # the same for those that are neither among the best nor have words that these lack
_POINTER_CHARS = 400_000  # before a position: walking over them takes some 50 ms


_DIGITS = re.compile(r"\d+")
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],]|:')
_JSON_LINES = re.compile(r"\s*[{\[][^\n]*[}\]]\s*\n[{\[]")  # which `path` reads as one list
_BLANK = re.compile(r"[\s,{\[]*")
Own = dict[int, dict[int, float]]  # by unit and term, what the term is worth there


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
    units = Units(text)
    finder = Finder(text, units.starts)
    occurrences = _occurrences(finder, question)
    own, scores = _scores(units, finder, occurrences, question)
    if not scores:
        return Answer("", None, "no word of the question occurs; try match= with other words, or lines= to read it")
    chosen = _Choice(units, (own, scores), question, budget, count)
    content = chosen.content()
    left = len(scores) - sum(unit in chosen.taken for unit in scores)
    lines = f"{len(units.line_starts):,} lines"
    note = f"the best of {len(scores):,} places with words of the question, in {lines}"
    best = max(scores, key=lambda unit: (scores[unit], -unit))
    where = pointer(text, units.starts[best])
    note += f"; the best is at path {where}" if where else ""
    return Answer(content, None, note + (f"; {left:,} not shown" if left > 0 else ""))


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
    return list(by_text.values())


def _scores(
    units: Units, finder: Finder, occurrences: list[Occurrences], question: str
) -> tuple[Own, dict[int, float]]:
    """The terms of each unit, and its score; for the best of them with their context."""
    own: Own = {}
    rare = [hit for hit in occurrences if not hit.common]
    for index, hit in enumerate(occurrences):
        if hit.common and rare:
            continue
        value = hit.rarity * hit.term.weight
        for unit, (quality, _) in hit.hits.items():
            own.setdefault(unit, {})[index] = value * quality
    flat = {unit: sum(values.values()) for unit, values in own.items()}
    best = _varied(units, nlargest(10 * _RANKED, flat, key=lambda unit: (flat[unit], -unit)))
    looks = [answer for pattern, answer in _LOOKS if pattern.search(question)]
    most = sum(hit.rarity * hit.term.weight for hit in occurrences) or 1.0
    scores = {unit: 0.5 * score for unit, score in flat.items()}
    for index, hit in enumerate(occurrences):
        for unit in best if hit.common and rare else ():
            if looked := finder.look(hit, unit):
                hit.hits[unit] = looked
                own[unit][index] = hit.rarity * hit.term.weight * looked[0]
    records: Own = {}
    for unit in best:
        around = dict(own[unit])
        for index, value in _record(units, unit, own, records).items():
            around[index] = max(around.get(index, 0.0), 0.35 * value)
        for near, share in _around(units, unit):
            for index, value in own.get(near, {}).items():
                around[index] = max(around.get(index, 0.0), share * value)
        score = sum(around.values()) + _together(occurrences, unit)
        score *= 0.7 + 0.3 * min(1.0, sum(around.values()) / most)
        text = units[unit]
        score *= 1 + 0.08 * sum(1 for answer in looks if answer.search(text))
        scores[unit] = score / (1 + 0.0004 * max(0, len(text) - 200))
    return own, scores


def _varied(units: Units, ranked: list[int]) -> list[int]:
    """The first units, few of them alike but for numbers: a thousand alike must not hide a different one."""
    counts: Counter[str] = Counter()
    varied: list[int] = []
    for unit in ranked:
        shape = _shape(units[unit])
        counts[shape] += 1
        if counts[shape] <= _ALIKE:
            varied.append(unit)
    return varied[:_RANKED]


def _shape(text: str) -> str:
    return _DIGITS.sub("0", text.strip())


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


# --- choice -----------------------------------------------------------------------------------------------------------


class _Choice:
    """Chooses the units to print: first the best ones, then what belongs to them, then further ones."""

    def __init__(
        self, units: Units, rated: tuple[Own, dict[int, float]], question: str, budget: int, count: Callable[[str], int]
    ) -> None:
        self.units = units
        self.count = count
        self.left = budget - 8
        self.budget = budget
        self.taken: dict[int, int] = {}  # unit -> how early it was chosen
        self.costs: dict[int, int] = {}
        self.own, self.scores = rated
        self.header = units.separated()
        self.columns = ""
        if self.header:
            self._take_header(question)
            names = {unit: score for unit, score in self.scores.items() if units.line(unit) == 1}
            self.scores = {unit: score for unit, score in self.scores.items() if unit not in names} or names
        self.top = max(self.scores.values())
        fitting = (unit for unit, score in self.scores.items() if score >= self.top * _WEAK)
        ranked = nlargest(_RANKED, fitting, key=lambda unit: (self.scores[unit], -unit))
        first, alike = self._duplicates_last(ranked)
        ranked = first + alike
        strong = [unit for unit in first if self.scores[unit] >= 0.6 * self.top][:12]
        self._take_all(self._covering(ranked), 0.5)
        self._take_all(strong, 0.5)
        for unit in strong:
            self._grow(unit)
        # The last ones fill the rest of the budget, so they have to be worth their tokens.
        self._take_all([unit for unit in ranked if self.scores[unit] >= self.top * _FURTHER], 1.0)

    def _covering(self, ranked: list[int]) -> list[int]:
        """The best unit, then the best ones for terms of the question that the previous units lack."""
        chosen: list[int] = []
        covered: dict[int, float] = {}
        for _ in range(_COVERING):
            best, gain = -1, 0.0
            for unit in ranked:
                new = sum(max(0.0, value - covered.get(at, 0.0)) for at, value in self.own[unit].items())
                if new > _NEW * sum(covered.values()) and new + 0.3 * self.scores[unit] > gain:
                    best, gain = unit, new + 0.3 * self.scores[unit]
            unit = best if chosen else ranked[0]
            if unit < 0:
                break
            chosen.append(unit)
            for at, value in self.own[unit].items():
                covered[at] = max(value, covered.get(at, 0.0))
        return chosen

    def _take_header(self, question: str) -> None:
        """The names of the columns: all of them, or if they are many, the ones in the question with their numbers."""
        last = self.units.at(self.units.line_starts[1] - 1) if len(self.units.line_starts) > 1 else 0
        header = self.units.text[: self.units.starts[last + 1]].rstrip("\r\n ")
        if self.count(header) <= 0.4 * self.budget:
            self._take(list(range(last + 1)))
            return
        sign = max((",", "\t", ";", "|"), key=header.count)
        names = [name.strip(' "') for name in header.split(sign)]
        stems = {term.stem for term in terms(question)} - {""}
        named = [set(words.terms(words.words(words.fold(name.replace("_", " "))))) for name in names]
        ranked = sorted(range(len(names)), key=lambda at: (-len(named[at] & stems), at))
        chosen = [f"{at + 1} {names[at]}" for at in sorted(ranked[:8])]
        self.columns = f"columns of {len(names)}: {', '.join(chosen)}"[: _CRUMB * 3]
        self.left -= self.count(self.columns) + 2

    def _duplicates_last(self, ranked: list[int]) -> tuple[list[int], list[int]]:
        """Two lists: the first two of lines that differ in numbers alone, with all other lines; and the rest."""
        counts: Counter[str] = Counter()
        first: list[int] = []
        later: list[int] = []
        for unit in ranked:
            shape = _shape(self.units[unit])
            counts[shape] += 1
            (first if counts[shape] <= 2 else later).append(unit)
        return first, later

    def _take_all(self, ranked: list[int], share: float) -> None:
        stop = self.budget * (1 - share)
        for unit in ranked:
            if self.left <= stop:
                return
            self._take(self._with_context(unit))

    def _with_context(self, unit: int) -> list[int]:
        """The unit and the lines that say where it is."""
        extra: list[int] = []
        top = self.units.table_top(unit)
        if top is not None and not self.header:
            extra.append(top)
        if self.units.in_long_line(unit):
            extra.append(self.units.first_of_line(unit))
        extra += [above for above in self.units.above(unit)[:2] if _says(self.units[above])]
        return [unit, *extra]

    def _cost(self, unit: int) -> int:
        if unit not in self.costs:
            self.costs[unit] = self.count(self.units[unit]) + 2
        return self.costs[unit]

    def _take(self, units: list[int], part: bool = True) -> bool:
        """Takes units if there is room for them; the first of them at least, if `part`."""
        new = [unit for unit in dict.fromkeys(units) if unit not in self.taken and not self.units.blank(unit)]
        gap = 0 if any(unit - 1 in self.taken or unit + 1 in self.taken for unit in new) else 3
        cost = sum(map(self._cost, new)) + gap
        if cost > self.left and part and len(new) > 1:
            return self._take(new[:1])
        if cost > self.left:
            return False
        self.left -= cost
        for unit in new:
            self.taken[unit] = len(self.taken)
        return True

    def _grow(self, unit: int) -> None:
        """Adds what belongs to a unit: what it encloses, then its record while that is small, or its neighbours."""
        own = self.units.block(unit, _GROWN)
        if len(own) > 1:
            self._take_while(own, 0.6)
        above = self.units.above(unit)[:3]
        for enclosing in above:
            block = self.units.block(enclosing, _GROWN)
            cost = sum(self._cost(u) for u in block if u not in self.taken and not self.units.blank(u))
            if len(block) < _GROWN and unit in block and cost <= 0.5 * self.left:
                self._take(list(block), part=False)
            else:
                self._grow_inside(unit, self.units.block(enclosing, _RECORD))
        for near in (unit + 1, unit - 1) if not above else ():
            if 0 <= near < self.units.count:
                self._take_while([near], 0.12)

    def _grow_inside(self, unit: int, record: range) -> None:
        """Adds the parts of a large record that have other terms of the question, then the nearest ones."""
        missing: dict[int, tuple[float, int, int]] = {}  # by term its best unit, the nearest of equals
        for field in record if unit in record else ():
            for term, value in self.own.get(field, {}).items():
                if term not in self.own[unit]:
                    missing[term] = max(missing.get(term, (0.0, 0, 0)), (value, -abs(field - unit), field))
        for _, _, field in sorted(missing.values(), reverse=True)[:_FIELDS]:
            self._take_while(self.units.block(field, _FIELDS), 0.35)
        depth = self.units.depth(unit)
        for reach, way in ((5, 1), (4, -1)):
            near = [u for u in range(unit + way, unit + way * reach, way) if 0 <= u < self.units.count]
            inside = [u for u in near if self.units.depth(u) >= depth]
            self._take_while(inside, 0.2)

    def _take_while(self, units: Sequence[int], share: float) -> None:
        stop = self.left - share * self.left
        for unit in units:
            if self.units.blank(unit) or unit in self.taken:
                continue
            if self.left - self._cost(unit) < stop:
                return
            self._take([unit])

    def content(self) -> str:
        """The chosen units in the order of the text, without the last chosen ones if they cost too much."""
        while True:
            content = self._render()
            if len(self.taken) <= 1 or self.count(content) <= self.budget:
                return content
            last = max(self.taken, key=self.taken.__getitem__)
            del self.taken[last]

    def _render(self) -> str:
        parts: list[str] = []
        before = -2
        for unit in sorted(self.taken):
            text = self.units[unit]
            same = before >= 0 and self.units.same_line(before, unit)
            if unit == before + 1:
                parts.append(text if same else f"\n{text}")
            elif same:
                parts.append(f" … {text}")
            else:
                between = range(before + 1, unit)
                near = before >= 0 and len(between) < 3 and all(map(self.units.blank, between))
                mark = "" if near else f"{self.units.line(unit)}: "
                parts.append(f"{chr(10) if parts else ''}{mark}{text}")
            before = unit
        return "\n".join(filter(None, (self.columns, "".join(parts))))


def _says(text: str) -> bool:
    """Whether an enclosing line says where its parts are, more than a bracket does."""
    return re.search(r"\w{2}", text) is not None and len(text) <= _CRUMB


# --- where terms occur ------------------------------------------------------------------------------------------------


class Occurrences(NamedTuple):
    """Where a term occurs: its rarity, and by unit the quality of the match and its position."""

    term: Term
    rarity: float
    hits: dict[int, tuple[float, int]]
    common: bool = False  # in so many units that not all of them were searched


class Finder:
    """Finds terms in one text, unit by unit: by searching for each term, because a question has few and a text many."""

    def __init__(self, text: str, starts: list[int]) -> None:
        self.text = text
        self.low = folded(text)
        self.starts = starts
        self.count = len(starts) - 1
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
            quality = self._quality(term, at, full)
            if quality > hits.get(unit, (0.0, 0))[0]:
                hits[unit] = (quality, at)
            at = self.low.find(key, end if quality == 1 else at + 1)
        if not hits:
            return None
        # The unsearched rest is assumed to be like the searched part.
        share = 1.0 if at < 0 else max(at, 1) / len(self.low)
        units = sum(quality for quality, _ in hits.values()) / share
        return Occurrences(term, log(1 + max(0.0, self.count - units + 0.5) / (units + 0.5)), hits, at >= 0)

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
