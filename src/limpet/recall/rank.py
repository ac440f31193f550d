"""The order of what recall found: small signals, each a pure function, added up.

The base of the score is BM25 over the words of the question. In a conversation a turn is scored together with the
turns around it, because an answer seldom repeats the words of its question. What else says that a text is meant (who
speaks, when, words that stand side by side) is added, and every part of the sum is kept as a reason. docs/recall.md
says what each signal is worth.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from heapq import nlargest
from math import log, log1p, sqrt
from typing import NamedTuple, Protocol

from limpet.model import MESSAGE, NOTE
from limpet.recall.question import STOP, Question, dated
from limpet.store import SOMEWHERE, Candidates, Document, Positions
from limpet.text import words as analyse

READ_MOST = 40  # texts that are read for a closer look
BYTES_A_WORD = 6  # of English, with the space
K1, B = 1.0, 0.8  # BM25: how soon a repeated word stops counting, how much length counts
LONG_WORDS = 2_000  # a longer text is scored by its best stretch too; among shorter ones that favours the long
STRETCH_WORDS = 150
# What a hit gives to the turns after it (positive) and before it. An answer follows its question.
WINDOW = {1: 0.8, 2: 0.4, 3: 0.25, 4: 0.1, -1: 0.3, -2: 0.2, -3: 0.1}
STEPS = tuple(WINDOW.items())
AROUND = 4
REACH = 2 * AROUND  # how far the numbers of two turns may lie apart that follow each other
SHORT_WORDS, NOT_SHORT_WORDS = 80, 160  # neighbours count in full up to the first and not at all from the second
TALK = (NOTE, MESSAGE)  # kinds whose entries follow each other in a session
COVERAGE, PAIR, SPEAKER, LITERAL, PINNED = 3.0, 1.0, 2.0, 4.0, 0.5
DATE, TIME_TOLD, QUESTION_BACK, SUBSTANCE = 4.0, 3.0, 2.0, 2.0
OWN, OWN_KEY_WORDS = 0.15, 2.0  # a text's own words beside those of its neighbours
# What texts are about, beside the words in them. In conversations it counts less: turns are short, and their words and
# neighbours say more. A text without any word of the question must be this near to be found at all.
ABOUT, ABOUT_TURN, LIKE_WORDS, LIKE_FROM, NEAR = 16.0, 5.0, 0.75, 0.2, 0.25
ALIKE_TURNS = 0.4  # the cosine of two turns that follow each other, as a rule
ABOUT_MOST = 60  # texts that are compared for it, the best by words first
ALIKE_MOST = 24  # texts whose words are compared one by one, the best first
NOMINATED = 20  # texts that are looked at for what they are about alone
USERS = frozenset(("user", "human", "me"))

_LABEL = re.compile(r"\s*\**([^\W\d_][\w .'\u2019-]{0,30}?)\**\s*(?:\([^)\n]{1,30}\))?:\**\s")
_TIME_TOLD = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|week|weekend|month|year|morning|since|recently|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september|october|"
    r"november|december|\d{4}|\d+(?:st|nd|rd|th))\b"
)


# A text that speaks to somebody, by its first characters.
_SPOKEN = re.compile(r"\b(?:i|you|your|my|me|we|our)\b|[?!]", re.IGNORECASE)
SOMEBODY = " "  # who speaks where no names are written; no name is like it
TALK_LEAST, TALK_SHARE = 6, 0.5  # texts of a session that are looked at, and how many of them speak


class Scored(NamedTuple):
    doc: int
    score: float
    parts: Mapping[str, float]  # signal: what it added
    at: int  # the word its best stretch begins with; 0 for a short text


def first(places: Sequence[Positions], counts: Sequence[int], literals: Sequence[Positions]) -> list[int]:
    """Which texts to look at, the most promising first: by rare words, all texts being equally long."""
    weights: dict[int, float] = {}
    most = max(counts, default=1)
    for found, count in zip(places, counts, strict=True):
        if found:
            worth = log(1 + 4 * most / count)
            for doc, at in found.items():
                # A word that stands there again and again is worth up to half as much again.
                weights[doc] = weights.get(doc, 0.0) + worth * (1.5 - 0.5 / (len(at) or 1))
    for held in literals:
        for doc in held:
            weights[doc] = weights.get(doc, 0.0) + 2 * log(1 + 4 * most)
    return [-doc for _, doc in sorted((-worth, -doc) for doc, worth in weights.items())]


def speaker(head: str) -> str:
    """Who says it, folded, when the text begins like a turn of a conversation (`Anna: …`)."""
    found = _LABEL.match(head)
    return analyse.fold(found[1]).strip() if found else ""


def without_speaker(text: str) -> str:
    """What is said, without who says it: the name is no part of what it is about."""
    found = _LABEL.match(text)
    return text[found.end() :] if found else text


def around(fact: Document) -> int:
    """How far the texts around one matter: only turns of a conversation go together."""
    return AROUND if fact.session and fact.kind in TALK and (speaker(fact.head) or _SPOKEN.search(fact.head)) else 0


def speakers(facts: Mapping[int, Document]) -> dict[int, str]:
    """Who says each text that may be a turn: a name, SOMEBODY where nobody is named, or nothing for what is no turn.

    Texts without names are taken for a conversation when most of those of their session say I and you, or ask.
    """
    says: dict[int, str] = {}
    unnamed: dict[tuple[str, str], list[int]] = {}
    for doc, fact in facts.items():
        if fact.session and fact.kind in TALK:
            says[doc] = speaker(fact.head)
            if not says[doc]:
                unnamed.setdefault((fact.kind, fact.session), []).append(doc)
    for docs in unnamed.values():
        spoken = sum(_SPOKEN.search(facts[doc].head) is not None for doc in docs)
        if len(docs) >= TALK_LEAST and spoken >= TALK_SHARE * len(docs):
            says.update(dict.fromkeys(docs, SOMEBODY))
    return says


class Signals(NamedTuple):
    """The parts of the score, each of which can be left out to measure what it is worth (bench/recall)."""

    neighbours: bool = True  # turns of a conversation count for those around them
    speaker: bool = True  # the person asked about, when texts say who speaks
    dates: bool = True  # times named in the question
    coverage: bool = True  # how much of the question a text covers
    phrases: bool = True  # words side by side as in the question
    literals: bool = True  # paths, identifiers and quoted texts, verbatim
    stretches: bool = True  # a long text by its best stretch
    statements: bool = True  # a turn that asks back answers nothing
    substance: bool = True  # a longer turn is more likely the answer
    times_told: bool = True  # a question for a time is answered where one is given


SIGNALS = Signals()


class Sense(Protocol):
    """What texts are about, for one question: recall/embeddings.py, where the extra for it is installed."""

    def cosines(self, words: Mapping[str, float], docs: Iterable[int]) -> Mapping[int, float]: ...

    def likeness(self, words: Sequence[str], texts: Mapping[int, str]) -> Mapping[int, Sequence[float]]: ...


def order(
    question: Question,
    gathered: Candidates,
    read: Callable[[list[int]], Mapping[int, str]],
    sense: Sense | None = None,
) -> list[Scored]:
    """What was found, the best first. `read` gives the texts of those that are worth a closer look."""
    pool = _Pool(question, gathered, sense)
    rough = pool.best(READ_MOST)
    texts = read([one.doc for one in rough])
    like = pool.alike({one.doc: texts[one.doc] for one in rough[:ALIKE_MOST] if one.doc in texts})
    closer = [pool.close(one, texts[one.doc], like.get(one.doc, 0.0)) for one in rough if one.doc in texts]
    facts = gathered.documents
    return sorted(closer, key=lambda one: (-one.score, -facts[one.doc].updated_at, facts[one.doc].key))


class _Pool:
    """The texts that were gathered for one question, with all that is the same for each of them."""

    def __init__(self, question: Question, gathered: Candidates, sense: Sense | None = None) -> None:
        self.question = question
        self.sense = sense
        self.gathered = gathered
        self.facts = gathered.documents
        self.signals = SIGNALS
        self._near_known: dict[int, list[tuple[int, float]]] = {}
        self.words = {doc: max(1.0, fact.size / BYTES_A_WORD) for doc, fact in self.facts.items()}
        self.usual = median(self.words.values())
        self.says = speakers(self.facts)
        self.gates = self._gates() if self.signals.neighbours else {}
        self.names, self.who = self._who()
        self.common = sorted(gathered.common - self.names)
        self.followed = [  # words that tell texts apart, with how rare they are
            (at, found, self.rarity(gathered.counts[at]))
            for at, found in enumerate(gathered.positions)
            if found and at not in self.names
        ]

    def _who(self) -> tuple[set[int], frozenset[str]]:
        """The words of the question that name a speaker, and the speaker it is about, if it is about one."""
        speaking: dict[str, set[str]] = {}
        for said in set(self.says.values()):
            for word in said.split()[:1]:
                speaking.setdefault(word, set()).add(said)
        if not self.signals.speaker:
            return set(), frozenset()
        names = {at for at, word in enumerate(self.question.words) if word in speaking}
        if len(names) == 1:
            (at,) = names
            return names, frozenset(speaking[self.question.words[at]])
        if not names and self.question.first_person:
            return set(), frozenset(USERS & speaking.keys())
        return names, frozenset()

    def rarity(self, texts: int) -> float:
        total = max(self.gathered.total, texts)
        return log(1 + (total - texts + 0.5) / (texts + 0.5))

    # --- by places ----------------------------------------------------------------------------------------------------

    def best(self, most: int) -> list[Scored]:
        """The best of the texts that may be found, by what is known without reading them."""
        signals = {
            "words": self._wide(),
            "own words": self._own(),
            "coverage": self._coverage(),
            "phrase": self._pairs(),
            "literal": self._held(),
            "date": self._dates(),
            "speaker": {doc: SPEAKER for doc, said in self.says.items() if self.who and said in self.who},
            "pinned": {doc: PINNED for doc, fact in self.facts.items() if fact.pinned},
        }
        stretches = self._stretches()
        for doc, (score, _) in stretches.items():
            if self.signals.stretches and self.words[doc] > LONG_WORDS:
                signals["words"][doc] = max(score, signals["words"].get(doc, 0.0))
        sums = dict.fromkeys(self.gathered.docs, 0.0)
        for values in signals.values():
            for doc, value in values.items():
                if doc in sums:
                    sums[doc] += value
        # Turns of a conversation may be meant though they hold no word of the question; other texts may not, unless
        # they are about the same.
        worded = signals["own words"].keys() | signals["literal"].keys()
        fit = {doc for doc in sums if sums[doc] > 0 and (self.says.get(doc) or doc in worded)}
        near = self._near_question(sums)
        fit |= {doc for doc, cosine in near.items() if cosine >= NEAR}
        signals["about"] = {doc: cosine * (ABOUT_TURN if self.says.get(doc) else ABOUT) for doc, cosine in near.items()}
        for doc, value in signals["about"].items():
            sums[doc] += value
        chosen = nlargest(most, fit, key=lambda doc: (sums[doc], -doc))
        parts = {doc: {name: values[doc] for name, values in signals.items() if doc in values} for doc in chosen}
        return [Scored(doc, sums[doc], parts[doc], stretches.get(doc, (0.0, 0))[1]) for doc in chosen]

    @cached_property
    def _telling(self) -> dict[str, float]:
        """The words of the question and how much they say about what it is about. Who is asked about says nothing."""
        words = enumerate(zip(self.question.words, self.gathered.counts, strict=True))
        return {word: self.rarity(count) for at, (word, count) in words if at not in self.names}

    def _near_question(self, sums: Mapping[int, float]) -> dict[int, float]:
        """How near texts are to what the question is about, from 0 to 1; turns together with those around them."""
        if self.sense is None:
            return {}
        best = nlargest(ABOUT_MOST, sums, key=lambda doc: (sums[doc], -doc))
        chosen = {doc: self._beside(doc) for doc in (*best, *self.gathered.nominated) if doc in sums}
        every = dict.fromkeys(doc for one, beside in chosen.items() for doc in (one, *(other for other, _ in beside)))
        near = self.sense.cosines(self._telling, every)
        found = {}
        for doc, beside in chosen.items():
            # The cosine of the sum of several vectors, if any two of them are as far apart as turns usually are.
            total, sum_, squares = near.get(doc, 0.0), 1.0, 1.0
            for other, weight in beside:
                total += weight * near.get(other, 0.0)
                sum_ += weight
                squares += weight * weight
            found[doc] = max(0.0, total / sqrt((1 - ALIKE_TURNS) * squares + ALIKE_TURNS * sum_ * sum_))
        return found

    def _beside(self, doc: int) -> list[tuple[int, float]]:
        """The texts around one that say what it is about, and how much: where an answer stands, its question does."""
        if not (gate := self.gates.get(doc)):
            return []
        docs, place = self._sessions[doc]
        return [
            (docs[place - step], weight * gate)
            for step, weight in STEPS
            if 0 <= place - step < len(docs) and abs(docs[place - step] - doc) <= REACH
        ]

    def _own(self) -> dict[int, float]:
        """BM25 of each text by itself."""
        share = OWN_KEY_WORDS if self.question.key_words else OWN
        sums: dict[int, float] = {}
        for _, places, rarity in self.followed:
            for doc, at in places.items():
                if doc in self.words:
                    worth = rarity * _saturated(len(at), self.words[doc] / self.usual)
                    sums[doc] = sums.get(doc, 0.0) + share * worth
        return sums

    def _wide(self) -> dict[int, float]:
        """BM25 of each text together with those around it."""
        sums: dict[int, float] = {}
        self.counts = [self._wide_counts(places) for _, places, _ in self.followed]
        lengths = {doc: self._wide_length(doc) for doc in set().union(*self.counts)}
        usual = median(lengths.values())
        for (_, _, rarity), counts in zip(self.followed, self.counts, strict=True):
            for doc, count in counts.items():
                sums[doc] = sums.get(doc, 0.0) + rarity * _saturated(count, lengths[doc] / usual)
        return sums

    def _wide_length(self, doc: int) -> float:
        """How long a text is together with those around it, as far as these count."""
        length, gates = self.words[doc], self.gates
        if gate := gates.get(doc):
            docs, place = self._sessions[doc]
            count = len(docs)
            for step, weight in STEPS:
                at = place - step
                if 0 <= at < count and -REACH <= (other := docs[at]) - doc <= REACH and (open_ := gates.get(other)):
                    length += weight * gate * open_ * self.words[other]
        return length

    def _wide_counts(self, places: Positions) -> dict[int, float]:
        """How often a word stands in each text and, for less, around it."""
        counts: dict[int, float] = {}
        for doc, at in places.items():
            if doc in self.facts:
                counts[doc] = counts.get(doc, 0.0) + len(at)
                for other, weight in self._near(doc):
                    counts[other] = counts.get(other, 0.0) + weight * len(at)
        return counts

    @cached_property
    def _sessions(self) -> dict[int, tuple[list[int], int]]:
        """By text, the texts of its session in order, and its place among them."""
        sessions: dict[tuple[str, str], list[int]] = {}
        for doc in sorted(self.says):
            sessions.setdefault((self.facts[doc].kind, self.facts[doc].session), []).append(doc)
        return {doc: (docs, at) for docs in sessions.values() for at, doc in enumerate(docs)}

    def _near(self, doc: int) -> list[tuple[int, float]]:
        """The texts around one that its words count for, and how much."""
        if doc not in self._near_known:
            near: list[tuple[int, float]] = []
            if gate := self.gates.get(doc):
                docs, place = self._sessions[doc]
                count = len(docs)
                for step, weight in STEPS:
                    at = place + step
                    # What is further apart was not all looked at.
                    if 0 <= at < count and -REACH <= (other := docs[at]) - doc <= REACH:
                        near.append((other, weight * gate * self.gates.get(other, 0.0)))
            self._near_known[doc] = near
        return self._near_known[doc]

    def _gates(self) -> dict[int, float]:
        """How far the neighbours of texts count: turns of a conversation, the short ones. The others are left out."""
        words, wide = self.words, NOT_SHORT_WORDS - SHORT_WORDS
        return {
            doc: min(1.0, (NOT_SHORT_WORDS - words[doc]) / wide)
            for doc, said in self.says.items()
            if said and words[doc] < NOT_SHORT_WORDS
        }

    def _coverage(self) -> dict[int, float]:
        """Which share of the question stands in a text or around it, rare words counting more."""
        if not self.signals.coverage:
            return {}
        mass = sum(rarity for _, _, rarity in self.followed) or 1.0
        sums: dict[int, float] = {}
        for (_, _, rarity), counts in zip(self.followed, self.counts, strict=True):
            share = COVERAGE * rarity / mass
            for doc in counts:
                sums[doc] = sums.get(doc, 0.0) + share
        return sums

    def _stretches(self) -> dict[int, tuple[float, int]]:
        """Of each text longer than a stretch, the score of the one that holds most, and the word it begins with."""
        sums: dict[int, dict[int, float]] = {}
        step = STRETCH_WORDS // 2
        for _, places, rarity in self.followed:
            for doc, at in places.items():
                if self.words.get(doc, 0.0) <= STRETCH_WORDS or at == SOMEWHERE:
                    continue
                mine = sums.setdefault(doc, {})
                for stretch, count in Counter(place // step - back for place in at for back in (0, 1)).items():
                    worth = rarity * _saturated(count, min(1.0, STRETCH_WORDS / self.usual))
                    mine[stretch] = mine.get(stretch, 0.0) + worth
        best = {doc: min((-worth, stretch) for stretch, worth in mine.items()) for doc, mine in sums.items()}
        return {doc: (-worth, max(0, stretch) * step) for doc, (worth, stretch) in best.items()}

    def _pairs(self) -> dict[int, float]:
        """For words that stand side by side as they do in the question."""
        sums: dict[int, float] = {}
        for one, two in self.question.pairs if self.signals.phrases else ():
            ahead, behind = self.gathered.positions[one], self.gathered.positions[two]
            if one in self.names:
                continue
            for doc in ahead.keys() & behind.keys():
                following = behind[doc]
                if any(place + 1 in following for place in ahead[doc]):
                    sums[doc] = sums.get(doc, 0.0) + PAIR
        return sums

    def _held(self) -> dict[int, float]:
        """For literal texts of the question: a path, an identifier, a quotation."""
        sums: dict[int, float] = {}
        for held in self.gathered.literals if self.signals.literals else ():
            for doc in held:
                sums[doc] = sums.get(doc, 0.0) + LITERAL
        return sums

    def _dates(self) -> dict[int, float]:
        """For texts of the time that the question names."""
        if not self.signals.dates or not any(self.question.when):
            return {}
        fits = {doc: dated(self.question.when, fact.created_at) for doc, fact in self.facts.items()}
        return {doc: DATE * fit for doc, fit in fits.items() if fit}

    # --- by reading ---------------------------------------------------------------------------------------------------

    def alike(self, texts: Mapping[int, str]) -> dict[int, float]:
        """For words that are like those of the question which a short text lacks: rare ones count more.

        A long text has some word that is like any.
        """
        if self.sense is None:
            return {}
        short = {doc: text for doc, text in texts.items() if self.words[doc] <= NOT_SHORT_WORDS}
        like = self.sense.likeness(list(self._telling), short)
        return {
            doc: LIKE_WORDS
            * sum(
                rare * max(0.0, (near - LIKE_FROM) / (1 - LIKE_FROM))
                for rare, near in zip(self._telling.values(), nearness, strict=True)
                if near < 0.999  # the word itself counts as a word
            )
            for doc, nearness in like.items()
        }

    def close(self, one: Scored, text: str, like: float = 0.0) -> Scored:
        """The score with what only the text itself can tell."""
        added: dict[str, float] = {"like words": like}
        body = without_speaker(text) if self.says.get(one.doc) else text
        said = analyse.words(analyse.fold(body)) if self.common or self.says.get(one.doc) else []
        if unseen := [at for at in self.common if one.doc not in self.gathered.positions[at]]:
            held = set(analyse.terms(said))
            sought = analyse.terms([self.question.words[at] for at in unseen])
            rare = [self.rarity(self.gathered.counts[at]) for at in unseen]
            added["common words"] = sum(worth for worth, term in zip(rare, sought, strict=True) if term in held)
        if self.says.get(one.doc):
            if self.signals.statements and body.rstrip().endswith("?"):
                added["asks back"] = -QUESTION_BACK
            low = body.lower()
            if self.signals.substance:
                added["substance"] = SUBSTANCE * log1p(len(set(said) - STOP))
            if self.signals.times_told and self.question.asks_when and _TIME_TOLD.search(low):
                added["tells when"] = TIME_TOLD
        parts = {**one.parts, **{name: value for name, value in added.items() if value}}
        return one._replace(score=sum(parts.values()), parts=parts)


def median(values: Iterable[float]) -> float:
    """The middle one; not that of `statistics`, which takes longer to import than a search does."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else 1.0


def _saturated(count: float, length: float) -> float:
    return count * (K1 + 1) / (count + K1 * (1 - B + B * length))
