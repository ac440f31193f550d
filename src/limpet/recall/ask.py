"""A plain question put to a text: the lines or records that answer it best, with what is around them.

Every unit that holds a term of the question is scored: rare terms count more, terms that stand together count more,
and what encloses or neighbours a unit counts a little. The best are shown in the order of the text, each with its
heading or record, within a budget of tokens.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from heapq import nlargest
from itertools import pairwise
from typing import NamedTuple

from limpet.recall.ask_json import pointer
from limpet.recall.ask_terms import Finder, Found, also, phrases, terms
from limpet.recall.ask_units import Units
from limpet.text import words

_RANKED = 400  # units scored with what is around them; the others by their own words only
_ALIKE = 40  # units that differ in numbers only, scored with what is around them
_GROWN = 60  # units of a block that may be shown whole
_COVERING = 4  # units shown first, each for words of the question that the ones before do not have
_NEW = 0.2  # what such a unit must add, as a share of what is there
_FIELDS = 8  # units of a large record that are shown for the words they hold, and units of each
_RECORD = 120  # units of a record that are looked at
_CRUMB = 160  # characters of an enclosing line that are shown
_WEAK = 0.22  # units that score less than this share of the best are not shown
_FURTHER = 0.25  # the same for those that are neither among the best nor have words that these lack


_DIGITS = re.compile(r"\d+")
Own = dict[int, dict[int, float]]  # by unit and term, what the term is worth there


class Shown(NamedTuple):
    content: str
    cursor: str | None
    note: str


# What a question asks for, and how the answer looks. It only decides between lines with the same words.
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


def ask(text: str, question: str, budget: int, count: Callable[[str], int]) -> Shown:
    """The part of a text that answers a question, in at most `budget` tokens as `count` counts them."""
    units = Units(text)
    finder = Finder(text, units.starts)
    found = _occurrences(finder, question)
    own, scores = _scores(units, finder, found, question)
    if not scores:
        return Shown("", None, "no word of the question occurs; try match= with other words, or lines= to read it")
    chosen = _Choice(units, (own, scores), question, budget, count)
    content = chosen.content()
    left = len(scores) - sum(unit in chosen.taken for unit in scores)
    lines = f"{len(units.line_starts):,} lines"
    note = f"the best of {len(scores):,} places with words of the question, in {lines}"
    best = max(scores, key=lambda unit: (scores[unit], -unit))
    where = pointer(text, units.starts[best])
    note += f"; the best is at path {where}" if where else ""
    return Shown(content, None, note + (f"; {left:,} not shown" if left > 0 else ""))


def _occurrences(finder: Finder, question: str) -> list[Found]:
    wanted = terms(question)
    found = {term.text: hit for term in wanted if (hit := finder.find(term))}
    for other, stands_for in also(wanted):
        hit = finder.find(other, stands_for.text)
        if hit is None or other.text in found:
            continue
        main = found.get(stands_for.text)
        if main is None:
            found[stands_for.text] = Found(other, hit.rarity, hit.hits, hit.common)
        elif other.stem != "<" or len(main.hits) < 3:
            for unit, (quality, at) in hit.hits.items():
                if unit not in main.hits:
                    main.hits[unit] = (0.4 * quality, at)
    for phrase in phrases(question, finder.low):
        if phrase.text not in found and (hit := finder.find(phrase)):
            found[phrase.text] = hit
    return list(found.values())


def _scores(units: Units, finder: Finder, found: list[Found], question: str) -> tuple[Own, dict[int, float]]:
    """What each unit says by itself, and how well it answers; for the best of them with what is around them."""
    own: Own = {}
    rare = [hit for hit in found if not hit.common]
    for index, hit in enumerate(found):
        if hit.common and rare:
            continue
        value = hit.rarity * hit.term.weight
        for unit, (quality, _) in hit.hits.items():
            own.setdefault(unit, {})[index] = value * quality
    flat = {unit: sum(values.values()) for unit, values in own.items()}
    best = _varied(units, nlargest(10 * _RANKED, flat, key=lambda unit: (flat[unit], -unit)))
    looks = [answer for asked, answer in _LOOKS if asked.search(question)]
    most = sum(hit.rarity * hit.term.weight for hit in found) or 1.0
    scores = {unit: 0.5 * score for unit, score in flat.items()}
    for index, hit in enumerate(found):
        for unit in best if hit.common and rare else ():
            if looked := finder.look(hit, unit):
                hit.hits[unit] = looked
                own[unit][index] = hit.rarity * hit.term.weight * looked[0]
    records: Own = {}
    for unit in best:
        around = dict(own[unit])
        for index, value in _record(units, unit, own, records).items():
            around[index] = max(around.get(index, 0.0), 0.35 * value)
        for other, share in _around(units, unit):
            for index, value in own.get(other, {}).items():
                around[index] = max(around.get(index, 0.0), share * value)
        score = sum(around.values()) + _together(found, unit)
        score *= 0.7 + 0.3 * min(1.0, sum(around.values()) / most)
        shown = units[unit]
        score *= 1 + 0.08 * sum(1 for answer in looks if answer.search(shown))
        scores[unit] = score / (1 + 0.0004 * max(0, len(shown) - 200))
    return own, scores


def _varied(units: Units, ranked: list[int]) -> list[int]:
    """The first units, of those that differ in numbers only a few: a thousand alike must not hide the one other."""
    seen: Counter[str] = Counter()
    found: list[int] = []
    for unit in ranked:
        shape = _shape(units[unit])
        seen[shape] += 1
        if seen[shape] <= _ALIKE:
            found.append(unit)
    return found[:_RANKED]


def _shape(shown: str) -> str:
    return _DIGITS.sub("0", shown.strip())


def _around(units: Units, unit: int) -> list[tuple[int, float]]:
    """What is around a unit, with the share of its words that count here."""
    found = [(above, 0.6 if rank < 2 else 0.4) for rank, above in enumerate(units.above(unit)[:5])]
    depth = units.depth(unit)
    for step in (-1, 1, -2, 2, -3, 3, 4, 5, 6):
        near = unit + step
        if 0 <= near < units.count and not units.blank(near):
            inside = units.depth(near) > depth and step > 0
            found.append((near, 0.4 if inside else 0.35 if abs(step) == 1 else 0.2))
    return found


def _record(units: Units, unit: int, own: Own, known: Own) -> dict[int, float]:
    """What the record that a unit belongs to says altogether: the best of its units for each term."""
    above = units.above(unit)
    if not above:
        return {}
    if above[0] not in known:
        best: dict[int, float] = {}
        for other in units.block(above[0], _RECORD):
            for index, value in own.get(other, {}).items():
                best[index] = max(best.get(index, 0.0), value)
        known[above[0]] = best
    return known[above[0]]


def _together(found: list[Found], unit: int) -> float:
    """A bonus for terms that follow each other in the question and in the unit."""
    bonus = 0.0
    for first, second in pairwise(found):
        if unit in first.hits and unit in second.hits:
            gap = second.hits[unit][1] - first.hits[unit][1] - len(first.term.text)
            if -len(first.term.text) < gap <= 4:
                bonus += 0.3 * min(first.rarity, second.rarity)
    return bonus


class _Choice:
    """Which units are shown. First the best ones alone, then what belongs to them, then further ones."""

    def __init__(
        self, units: Units, rated: tuple[Own, dict[int, float]], question: str, budget: int, count: Callable[[str], int]
    ) -> None:
        self.units = units
        self.count = count
        self.left = budget - 8
        self.budget = budget
        self.taken: dict[int, int] = {}  # unit -> how early it was chosen
        self.costs: dict[int, int] = {}
        self.clipped: set[int] = set()
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
        # What comes last fills the rest of the budget, so it has to be worth its tokens.
        self._take_all([unit for unit in ranked if self.scores[unit] >= self.top * _FURTHER], 1.0)

    def _covering(self, ranked: list[int]) -> list[int]:
        """The best unit, then the best ones for what the question says and the units before do not."""
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
        """The names of the columns: all of them, or if that is much, with their numbers those that are asked about."""
        last = self.units.at(self.units.line_starts[1] - 1) if len(self.units.line_starts) > 1 else 0
        header = self.units.text[: self.units.starts[last + 1]].rstrip("\r\n ")
        if self.count(header) <= 0.4 * self.budget:
            self._take(list(range(last + 1)))
            return
        sign = max((",", "\t", ";", "|"), key=header.count)
        names = [name.strip(' "') for name in header.split(sign)]
        asked = {term.stem for term in terms(question)} - {""}
        named = [set(words.terms(words.words(words.fold(name.replace("_", " "))))) for name in names]
        ranked = sorted(range(len(names)), key=lambda at: (-len(named[at] & asked), at))
        kept = [f"{at + 1} {names[at]}" for at in sorted(ranked[:8])]
        self.columns = f"columns of {len(names)}: {', '.join(kept)}"[: _CRUMB * 3]
        self.left -= self.count(self.columns) + 2

    def _duplicates_last(self, ranked: list[int]) -> tuple[list[int], list[int]]:
        """Of lines that differ in numbers only the first two, with all others; and the rest, which come last."""
        seen: Counter[str] = Counter()
        first: list[int] = []
        later: list[int] = []
        for unit in ranked:
            shape = _shape(self.units[unit])
            seen[shape] += 1
            (first if seen[shape] <= 2 else later).append(unit)
        return first, later

    def _take_all(self, ranked: list[int], share: float) -> None:
        stop = self.budget * (1 - share)
        for unit in ranked:
            if self.left <= stop:
                return
            self._take(self._with_context(unit))

    def _with_context(self, unit: int) -> list[int]:
        """The unit and the lines that say where it stands."""
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

    def _take(self, wanted: list[int], part: bool = True) -> bool:
        """Takes units if there is room for them; the first of them at least, if `part`."""
        new = [unit for unit in dict.fromkeys(wanted) if unit not in self.taken and not self.units.blank(unit)]
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
        """Shows what belongs to a unit: what it encloses, then its record while that is small, or its neighbours."""
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
        """Shows of a large record what else has to do with the question, then what is nearest."""
        missing: dict[int, tuple[float, int, int]] = {}  # by term the best place for it, the nearest of equals
        for other in record if unit in record else ():
            for term, value in self.own.get(other, {}).items():
                if term not in self.own[unit]:
                    missing[term] = max(missing.get(term, (0.0, 0, 0)), (value, -abs(other - unit), other))
        for _, _, other in sorted(missing.values(), reverse=True)[:_FIELDS]:
            self._take_while(self.units.block(other, _FIELDS), 0.35)
        depth = self.units.depth(unit)
        for reach, way in ((5, 1), (4, -1)):
            near = [u for u in range(unit + way, unit + way * reach, way) if 0 <= u < self.units.count]
            inside = [u for u in near if self.units.depth(u) >= depth]
            self._take_while(inside, 0.2)

    def _take_while(self, wanted: Sequence[int], share: float) -> None:
        stop = self.left - share * self.left
        for unit in wanted:
            if self.units.blank(unit) or unit in self.taken:
                continue
            if self.left - self._cost(unit) < stop:
                return
            self._take([unit])

    def content(self) -> str:
        """The chosen units in the order of the text; while they cost too much, without the last chosen."""
        while True:
            shown = self._render()
            if len(self.taken) <= 1 or self.count(shown) <= self.budget:
                return shown
            last = max(self.taken, key=self.taken.__getitem__)
            del self.taken[last]

    def _render(self) -> str:
        parts: list[str] = []
        before = -2
        for unit in sorted(self.taken):
            shown = self.units[unit]
            same = before >= 0 and self.units.same_line(before, unit)
            if unit == before + 1:
                parts.append(shown if same else f"\n{shown}")
            elif same:
                parts.append(f" … {shown}")
            else:
                between = range(before + 1, unit)
                near = before >= 0 and len(between) < 3 and all(map(self.units.blank, between))
                mark = "" if near else f"{self.units.line(unit)}: "
                parts.append(f"{chr(10) if parts else ''}{mark}{shown}")
            before = unit
        return "\n".join(filter(None, (self.columns, "".join(parts))))


def _says(shown: str) -> bool:
    """Whether an enclosing line says where one is, more than a bracket does."""
    return re.search(r"\w{2}", shown) is not None and len(shown) <= _CRUMB
