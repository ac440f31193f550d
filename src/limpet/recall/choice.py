"""Which units of a text are printed as the answer to a question: the best ones, and what belongs to them.

First comes the best unit with what it needs to be understood: what encloses it, what follows it, and the record it
belongs to, as a card of its short fields. Then come units for words of the question that are still lacking, and others
as long as they are worth their tokens. All are printed in the order of the text, within a budget of tokens.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from heapq import nlargest
from itertools import islice

from limpet.recall.intents import FAILING, RAISED
from limpet.recall.question import terms
from limpet.recall.units import Units
from limpet.record import NamedTuple
from limpet.text import words

_RANKED = 400  # units that are considered
_GROWN = 60  # units of a block that may be shown in full
_COVERING = 4  # units shown first, each for words of the question that the previous ones lack
_NEW = 0.2  # what such a unit must add, as a share of the score so far
_FIELDS = 8  # units of a large record that are shown for their words, and units of each
_RECORD = 120  # units of a record that are examined
_CRUMB = 160  # characters of an enclosing line that are shown
_WEAK = 0.22  # units that score less than this share of the best are not shown
_FURTHER = 0.4  # the same for those that are neither among the best nor have words that these lack
_CARD = 400  # units of a record whose fields are listed
_CARD_SHARE = 0.35  # of what is left of the budget
_VALUE = 5  # units of a field's value that are shown with it
_FIELD_CHARS = 140  # characters of a field on a card
_FOLLOWING, _FOLLOWING_SHARE = 4, 0.2  # units after the best one, and what they may cost of what is left
_EVENT = re.compile(r"\d\d:\d\d:\d\d")  # the time of an event in a log
_EVENT_CHARS = 60  # of a line, in which it is
_ID = re.compile(r"\b(?:[A-Za-z]{1,12}[-_:#]?\d{3,12}|(?=[a-f]*\d)[0-9a-f]{8,40})\b")
_IDS, _ID_EVENTS, _ID_SHARE = 4, 10, 0.6  # ids of an event, events with one of them, and what these may cost
_TRIED = 20_000  # places of an id that are examined, most of which may be in longer words
_CHANGES = 40  # of one file that are looked at
_CHANGE_SHARE = 0.35  # of what is left of the budget, for what was added together, and for what was removed
_REACH = 60  # units below a hit that are searched for a reason
_NEAR, _NEAR_SHARE = 6, 0.5  # of the best units, those that may be completed
_SECOND = 0.9  # of the best score, from which the record of the second unit is shown too
_KEY = re.compile(r"""\s*(?:- )?[\["'{ ]*[\w.$@/ -]{1,60}["'\]]?\s?(?:=|:(?!:))""")  # how a field of a record begins
_LONG_SHARE = 0.35  # of the budget, that a unit may cost without being shortened
_TOKEN_CHARS = 3  # characters of a token, at least, in most texts
_RULES = re.compile(r"([=_*~-])\1{3,}")  # around a heading, which says as much without most of them
_REPEATED = 40  # characters from which a line is shown once
_TAGS = re.compile(r"\s*(?:</?[\w-]+[^<>]*>\s*)+\Z")
_OPENS = re.compile(r"[{\[]\s*\Z")
_DIGITS = re.compile(r"\d+")
_WORD = re.compile(r"\w")
_WORDS = re.compile(r"\w+")
Own = dict[int, dict[int, float]]  # by unit and term, what the term is worth there


class Rated(NamedTuple):
    """The terms and the score of each unit, where its terms are, and whether a reason is asked for."""

    own: Own
    scores: dict[int, float]
    places: Callable[[int], list[int]]
    reason: bool


def shape_of(text: str) -> str:
    """What lines have in common that differ in numbers alone."""
    return _DIGITS.sub("0", text.strip())


def form_of(text: str) -> str:
    """What lines have in common that are written in the same way, with other words."""
    return _WORDS.sub("w", " ".join(text.split()))


class Choice:
    """Chooses the units to print: first the best ones, then what belongs to them, then further ones."""

    def __init__(self, units: Units, rated: Rated, question: str, budget: int, count: Callable[[str], int]) -> None:
        self.units = units
        self.count = count
        self.left = budget - 8
        self.budget = budget
        self.taken: dict[int, int] = {}  # unit -> how early it was chosen
        self.costs: dict[int, int] = {}
        self.shortened: dict[int, str] = {}
        self.noise: dict[int, bool] = {}
        self.texts: set[str] = set()  # of the units that are taken
        self.own, self.scores, self.places, self.reason = rated
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
        self._take_all(ranked[:1], 1.0)
        self._complete(ranked)
        self._take_all(self._covering(ranked), 0.5)
        self._take_all(strong, 0.5)
        for unit in strong:
            self._grow(unit)
        # The last ones fill the rest of the budget, so they have to be worth their tokens.
        self._take_all([unit for unit in ranked if self.scores[unit] >= self.top * _FURTHER], 1.0)

    def _complete(self, ranked: Sequence[int]) -> None:
        """Adds what the best units need to be an answer, before any other: reasons, records, what is around them."""
        best = ranked[0]
        near = [unit for unit in ranked[:_NEAR] if self.scores[unit] >= _NEAR_SHARE * self.top]
        headings = [unit for unit in near if self.units.heading(unit) is not None]
        for unit in dict.fromkeys([*headings[:1], *near[:2]]) if self.reason else ():
            self._run_on(unit)
            self._take_while(self._beside(unit, -1)[:2], _FOLLOWING_SHARE)
        for unit in near[:2]:
            if self.units.in_hunk(unit):
                self._take_change(unit)
        self._take_changes_below(best)
        self._take_while(self._same_id(best), _ID_SHARE)
        self._take_groups(self._card(best), _CARD_SHARE)
        for unit in near[1:2]:
            if self.scores[unit] >= _SECOND * self.top:
                self._take_all([unit], 1.0)
                self._take_groups(self._card(unit), _CARD_SHARE)
        self._take_while(self._beside(best, 1), _FOLLOWING_SHARE)

    def _same_id(self, unit: int) -> list[int]:
        """Other events of a log with the id of this one: of an order, a request, a job. First those with words of the
        question that it lacks, then the nearest."""
        text = self.units[unit]
        if not _EVENT.search(text[:_EVENT_CHARS]):
            return []
        by_id: list[list[int]] = []
        for id in list(dict.fromkeys(_ID.findall(text)))[:_IDS]:
            units = {self.units.at(place) for place in islice(_occurrences(self.units.text, id), _ID_EVENTS + 1)}
            if 1 < len(units) <= _ID_EVENTS and unit in units:
                by_id.append(sorted(units - {unit}, key=lambda each: (-self._adds(each, unit), abs(each - unit))))
        return min(by_id, key=lambda units: sum(abs(each - unit) for each in units) / len(units), default=[])

    def _adds(self, unit: int, shown: int) -> float:
        """What the words of the question are worth that a unit has and the one that is shown lacks."""
        return sum(value for term, value in self.own.get(unit, {}).items() if term not in self.own.get(shown, {}))

    def _take_changes_below(self, unit: int) -> None:
        """Adds what a commit or a file of a diff changed: the best line of each file, and all of one file that fits."""
        files = self.units.changes_below(unit)
        for lines in files:
            best = max(lines, key=lambda line: (self.scores.get(line, 0.0), -line))
            self._take_while([best], _CHANGE_SHARE)
            if best in self.taken:
                self._take(self._with_context(best))
                self._take_change(best)
        changes = dict.fromkeys(self.units.change(line) for line in files[0]) if len(files) == 1 else ()
        for change in list(changes)[:_CHANGES]:
            self._take_change(change.start)

    def _take_change(self, unit: int) -> None:
        """Adds the change that a line of a diff is in or beside; where it is long, what was added first."""
        change = [each for each in self.units.change(unit) if not self._noise(each)]
        new = [each for each in change if self.units[each].startswith("+")]
        self._take_while(sorted(new, key=lambda each: abs(each - unit)), _CHANGE_SHARE)
        self._take_while([each for each in change if each not in new], _CHANGE_SHARE)

    def _beside(self, unit: int, way: int) -> list[int]:
        """The next units after (or before) a unit, up to a heading."""
        beside: list[int] = []
        near = unit + way
        while 0 <= near < self.units.count and len(beside) < _FOLLOWING and self.units.heading(near) is None:
            if not self._noise(near):
                beside.append(near)
            near += way
        return beside

    def _run_on(self, unit: int) -> None:
        """Adds the line below a unit that says what went wrong, with what follows it."""
        level, form = self.units.heading(unit), form_of(self.units[unit])
        weak = -1
        for near in range(unit + 1, min(self.units.count, unit + _REACH)):
            text = self.units[near][:_CRUMB]
            if self.units.heading(near) is not None and (level is None or (self.units.heading(near) or 0) <= level):
                break
            if form_of(text) == form:
                continue  # the next line of a list: what went wrong elsewhere
            if RAISED.search(text):
                self._take_while([near, *self._beside(near, 1)[:2]], 0.4)
                return
            weak = near if weak < 0 and FAILING.search(text) else weak
        if weak >= 0:
            self._take_while([weak, *self._beside(weak, 1)[:2]], 0.3)

    def _card(self, unit: int) -> list[list[int]]:
        """The short fields of the record around a unit: those with words of the question first, then the nearest."""
        own = [unit] if opens(self.units[unit]) or self.units.heading(unit) is not None else []
        for enclosing in [*own, *self.units.above(unit)[:2]]:
            block = self.units.block(enclosing, _CARD)
            inner = [each for each in block if each != enclosing and not self._noise(each)]
            if len(inner) < 2 or unit not in block:
                continue
            least = min(map(self.units.depth, inner))
            fields = [each for each in inner if self.units.depth(each) == least]
            if 2 * sum(_KEY.match(self.units[each]) is not None for each in fields) < len(fields):
                return []  # a list of other things, not a record
            groups = [self._field(each) for each in fields]
            groups = [group for group in groups if group]
            groups.sort(key=lambda group: (not any(map(self.own.get, group)), abs(group[0] - unit)))
            return [[enclosing], *groups] if _says(self.units[enclosing]) else groups
        return []

    def _field(self, unit: int) -> list[int]:
        """A field of a record: its line, with the lines of its value if they are few."""
        group = [unit]
        if opens(self.units[unit]):
            block = self.units.block(unit, _VALUE + 1)
            group = [each for each in block if not self._noise(each)] if 1 < len(block) <= _VALUE else []
        for each in group:
            self._shorten(each, _FIELD_CHARS)
        return group

    def _take_groups(self, groups: Sequence[list[int]], share: float) -> None:
        """Takes the groups that fit into a share of what is left."""
        stop = self.left - share * self.left
        for group in groups:
            cost = sum(self._cost(unit) for unit in group if unit not in self.taken)
            if self.left - cost >= stop:
                self._take(group)

    def _noise(self, unit: int) -> bool:
        """Whether a unit is blank, a rule, a caret, a bracket or a name once more: nothing that could be an answer."""
        if unit not in self.noise:
            text = "" if unit in self.units.uncut else self.units[unit].strip()
            self.noise[unit] = re.search(r"\w", text) is None or self.units.repeats_name(unit)
        return self.noise[unit]

    def _shorten(self, unit: int, length: int) -> None:
        """Shows of a long unit the surroundings of its terms, or its beginning."""
        text = self.units[unit]
        if len(text) <= length or unit in self.taken:
            return
        start = self.units.starts[unit]
        places = sorted(place - start for place in self.places(unit) if start <= place < start + len(text)) or [0]
        if self.reason and (raised := list(RAISED.finditer(text))):
            places = sorted([*places, raised[-1].start()])  # the last one is what the others led to
        reach = max(20, length // (2 * len(places)))
        parts = _around(places, reach, len(text))
        while (size := sum(high - low for low, high in parts)) < length:  # several places share what is around them
            reach += max(1, (length - size) // (2 * len(parts)))
            parts = _around(places, reach, len(text))
        shorter = " … ".join(text[low:high].strip() for low, high in parts)
        before, after = "… " if parts[0][0] else "", " …" if parts[-1][1] < len(text) else ""
        self.shortened[unit] = f"{before}{shorter}{after}"
        self.costs.pop(unit, None)

    def _text(self, unit: int) -> str:
        text = self.shortened.get(unit) or self.units[unit]
        return _RULES.sub(r"\1\1\1", text) if self.units.heading(unit) is not None else text

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
            shape = shape_of(self.units[unit])
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
        return [unit, *(each for each in extra if each not in self.units.uncut)]

    def _cost(self, unit: int) -> int:
        if unit not in self.costs:
            cost = self.count(self._text(unit)) + 2
            if cost > _LONG_SHARE * self.budget and unit not in self.shortened:
                self._shorten(unit, int(_LONG_SHARE * self.budget * _TOKEN_CHARS))
                cost = self.count(self._text(unit)) + 2
            self.costs[unit] = cost
        return self.costs[unit]

    def _take(self, units: list[int], part: bool = True) -> bool:
        """Takes units if there is room for them; the first of them at least, if `part`."""
        new = [unit for unit in dict.fromkeys(units) if unit not in self.taken and not self._noise(unit)]
        new = [unit for unit in new if not self._repeats(unit)]
        if not new:
            return True
        gap = 0 if any(unit - 1 in self.taken or unit + 1 in self.taken for unit in new) else 3
        cost = sum(map(self._cost, new)) + gap
        if cost > self.left and part and len(new) > 1:
            return self._take(new[:1])
        if cost > self.left:
            return False
        self.left -= cost
        for unit in new:
            self.taken[unit] = len(self.taken)
            self.texts.add(self.units[unit].strip())
        return True

    def _repeats(self, unit: int) -> bool:
        """Whether a long line is shown already: compilers quote the same one for every fault in it."""
        text = self.units[unit].strip()
        return len(text) > _REPEATED and text in self.texts

    def _grow(self, unit: int) -> None:
        """Adds what belongs to a unit: what it encloses, then its record while that is small, or its neighbours."""
        own = self.units.block(unit, _GROWN)
        if len(own) > 1:
            self._take_while(own, 0.6)
        above = self.units.above(unit)[:3]
        for enclosing in above:
            block = self.units.block(enclosing, _GROWN)
            cost = sum(self._cost(u) for u in block if u not in self.taken and not self._noise(u))
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
            if self._noise(unit) or unit in self.taken or self._repeats(unit):
                continue
            if self.left - self._cost(unit) >= stop:
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
            text = self._text(unit)
            same = before >= 0 and self.units.same_line(before, unit)
            if unit == before + 1:
                parts.append(text if same else f"\n{text}")
            elif same:
                parts.append(f" … {text}")
            else:
                between = range(before + 1, unit)
                near = before >= 0 and len(between) < 3 and all(map(self._noise, between))
                mark = "" if near else f"{self.units.line(unit)}: "
                parts.append(f"{chr(10) if parts else ''}{mark}{text}")
            before = unit
        return "\n".join(filter(None, (self.columns, "".join(parts))))


def _occurrences(text: str, word: str) -> Iterator[int]:
    """Where a word is in a text, not inside longer ones; a search for `\\b` takes five times as long."""
    at = text.find(word)
    for _ in range(_TRIED):
        if at < 0:
            return
        end = at + len(word)
        if not (_WORD.match(text[max(0, at - 1) : at]) or _WORD.match(text[end : end + 1])):
            yield at
        at = text.find(word, end)


def _around(places: Sequence[int], reach: int, size: int) -> list[list[int]]:
    """The stretches of a text of this size that are so near to one of the places, which are in order."""
    parts: list[list[int]] = []
    for place in places:
        low, high = max(0, place - reach), min(size, place + reach)
        if parts and low <= parts[-1][1]:
            parts[-1][1] = high
        else:
            parts.append([low, high])
    return parts


def opens(text: str) -> bool:
    """Whether a line begins an object or a list, so that it has no value of its own."""
    return _OPENS.search(text) is not None or not re.search(r"\w", text)


def _says(text: str) -> bool:
    """Whether an enclosing line says where its parts are, more than a bracket does."""
    return (
        re.search(r"\w{2}", text) is not None
        and len(text) <= _CRUMB
        and not text.startswith("[[")
        and not _TAGS.match(text)
    )
