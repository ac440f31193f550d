"""The order of recall's candidates: small signals, each a pure function, added up.

The base of the score is BM25 over the words of the question. In a conversation a turn is scored together with its
neighbours, because an answer seldom repeats the words of its question. Other signals (the speaker, the time, adjacent
words) are added, and the answer gives every part of the sum as a reason. docs/recall.md says what each signal is worth.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from heapq import nlargest
from math import log, log1p, sqrt

from limpet.model import MESSAGE, NOTE
from limpet.recall.embeddings import STATIC, Sense
from limpet.recall.question import STOP, Question, dated
from limpet.record import NamedTuple
from limpet.store import SOMEWHERE, Candidates, Document, Positions
from limpet.text import words as analyse

READ_MOST = 40  # texts that are read for a closer look
WORD_BYTES = 6  # of English, with the space
K1, B = 1.0, 0.8  # BM25: how soon a repeated word stops counting, how much length counts
LONG_WORDS = 2_000  # a longer text is scored by its best stretch too; among shorter ones that favours the long
STRETCH_WORDS = 150
# What a matching turn gives to the turns after it (positive) and before it. An answer follows its question.
WINDOW = {1: 0.8, 2: 0.4, 3: 0.25, 4: 0.1, -1: 0.3, -2: 0.2, -3: 0.1}
STEPS = tuple(WINDOW.items())
AROUND = 4
REACH = 2 * AROUND  # how far apart the numbers of two neighbouring turns may be
SHORT_WORDS, NOT_SHORT_WORDS = 80, 160  # neighbours count in full up to the first and not at all from the second
TALK = (NOTE, MESSAGE)  # kinds whose entries follow each other in a session
COVERAGE, PAIR, SPEAKER, LITERAL, PINNED = 3.0, 1.0, 2.0, 4.0, 0.5
DATE, STATES_TIME, QUESTION_BACK, SUBSTANCE = 4.0, 3.0, 2.0, 2.0
OWN, OWN_KEY_WORDS = 0.15, 2.0  # a text's own words beside those of its neighbours
# The weights of embeddings. In conversations they count less: turns are short, and their words and neighbours say more.
# A text without any word of the question must be as near as NEAR to match at all.
ABOUT, ABOUT_TURN, LIKE_WORDS, LIKE_FROM, NEAR = 16.0, 5.0, 0.75, 0.2, 0.25
# Those of a transformer, which reads a text whole, count more.
ABOUT_READ, ABOUT_READ_TURN = 32.0, 16.0
ALIKE_TURNS = 0.4  # the cosine of two turns that follow each other, as a rule
ABOUT_MOST = 60  # texts whose embeddings are compared, the best by words first
ALIKE_MOST = 24  # texts whose words are compared one by one, the best first
NOMINATED = 20  # candidates by embedding alone
USERS = frozenset(("user", "human", "me"))

_LABEL = re.compile(r"\s*\**([^\W\d_][\w .'\u2019-]{0,30}?)\**\s*(?:\([^)\n]{1,30}\))?:\**\s")
_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|week|weekend|month|year|morning|since|recently|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september|october|"
    r"november|december|\d{4}|\d+(?:st|nd|rd|th))\b"
)


# Recognises a spoken turn by its first characters.
_SPOKEN = re.compile(r"\b(?:i|you|your|my|me|we|our)\b|[?!]", re.IGNORECASE)
UNNAMED = " "  # the speaker of a turn without a name; differs from every name
TALK_LEAST, TALK_SHARE = 6, 0.5  # texts that a session must have, and the share of them that must be spoken turns


class Scored(NamedTuple):
    doc: int
    score: float
    parts: Mapping[str, float]  # by signal, what it added
    at: int  # the first word of its best stretch; 0 for a short text


def first(places: Sequence[Positions], counts: Sequence[int], literals: Sequence[Positions]) -> list[int]:
    """The candidates, the most promising first: by rare words, as if all texts were equally long."""
    weights: dict[int, float] = {}
    most = max(counts, default=1)
    for by_doc, count in zip(places, counts, strict=True):
        if by_doc:
            worth = log(1 + 4 * most / count)
            for doc, at in by_doc.items():
                # A word that occurs again and again is worth up to half as much again.
                weights[doc] = weights.get(doc, 0.0) + worth * (1.5 - 0.5 / (len(at) or 1))
    for by_doc in literals:
        for doc in by_doc:
            weights[doc] = weights.get(doc, 0.0) + 2 * log(1 + 4 * most)
    return [-doc for _, doc in sorted((-worth, -doc) for doc, worth in weights.items())]


def speaker(head: str) -> str:
    """The speaker, folded, if the text begins like a turn of a conversation (`Anna: …`)."""
    label = _LABEL.match(head)
    return analyse.fold(label[1]).strip() if label else ""


def without_speaker(text: str) -> str:
    """The text without its speaker: the name is not part of the subject."""
    label = _LABEL.match(text)
    return text[label.end() :] if label else text


def around(document: Document) -> int:
    """How many neighbours of a text are candidates too: those of a turn in a conversation, none otherwise."""
    return (
        AROUND
        if document.session and document.kind in TALK and (speaker(document.head) or _SPOKEN.search(document.head))
        else 0
    )


def speakers(documents: Mapping[int, Document]) -> dict[int, str]:
    """The speaker of each text that may be a turn: a name, UNNAMED, or nothing for a text that is not a turn.

    Texts without names count as a conversation if most texts of their session say I and you, or ask.
    """
    says: dict[int, str] = {}
    unnamed: dict[tuple[str, str], list[int]] = {}
    for doc, document in documents.items():
        if document.session and document.kind in TALK:
            says[doc] = speaker(document.head)
            if not says[doc]:
                unnamed.setdefault((document.kind, document.session), []).append(doc)
    for docs in unnamed.values():
        spoken = sum(_SPOKEN.search(documents[doc].head) is not None for doc in docs)
        if len(docs) >= TALK_LEAST and spoken >= TALK_SHARE * len(docs):
            says.update(dict.fromkeys(docs, UNNAMED))
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


def order(
    question: Question,
    candidates: Candidates,
    read: Callable[[list[int]], Mapping[int, str]],
    sense: Sense | None = None,
) -> list[Scored]:
    """The candidates, the best first. `read` gives the texts of those that are worth a closer look."""
    pool = _Pool(question, candidates, sense)
    rough = pool.best(READ_MOST)
    texts = read([scored.doc for scored in rough])
    like = pool.alike({scored.doc: texts[scored.doc] for scored in rough[:ALIKE_MOST] if scored.doc in texts})
    closer = [
        pool.close(scored, texts[scored.doc], like.get(scored.doc, 0.0)) for scored in rough if scored.doc in texts
    ]
    documents = candidates.documents
    return sorted(
        closer, key=lambda scored: (-scored.score, -documents[scored.doc].updated_at, documents[scored.doc].key)
    )


class _Pool:
    """The candidates of one question, with everything that is the same for each of them."""

    def __init__(self, question: Question, candidates: Candidates, sense: Sense | None = None) -> None:
        self.question = question
        self.sense = sense
        self.candidates = candidates
        self.documents = candidates.documents
        self.signals = SIGNALS
        self._near_cache: dict[int, list[tuple[int, float]]] = {}
        self.words = {doc: max(1.0, document.size / WORD_BYTES) for doc, document in self.documents.items()}
        self.usual = median(self.words.values())
        self.says = speakers(self.documents)
        self.gates = self._gates() if self.signals.neighbours else {}
        self.names, self.who = self._who()
        self.common = sorted(candidates.common - self.names)
        self.followed = [  # words that distinguish texts, with their rarity
            (at, places, self.rarity(candidates.counts[at]))
            for at, places in enumerate(candidates.positions)
            if places and at not in self.names
        ]

    def _who(self) -> tuple[set[int], frozenset[str]]:
        """The words of the question that name a speaker, and the speaker it is about, if it is about one."""
        speaking: dict[str, set[str]] = {}
        for name in set(self.says.values()):
            for word in name.split()[:1]:
                speaking.setdefault(word, set()).add(name)
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
        total = max(self.candidates.total, texts)
        return log(1 + (total - texts + 0.5) / (texts + 0.5))

    # --- by positions -------------------------------------------------------------------------------------------------

    def best(self, most: int) -> list[Scored]:
        """The best candidates, scored without reading them."""
        signals = {
            "words": self._wide(),
            "own words": self._own(),
            "coverage": self._coverage(),
            "phrase": self._pairs(),
            "literal": self._literals(),
            "date": self._dates(),
            "speaker": {doc: SPEAKER for doc, name in self.says.items() if self.who and name in self.who},
            "pinned": {doc: PINNED for doc, document in self.documents.items() if document.pinned},
        }
        stretches = self._stretches()
        for doc, (score, _) in stretches.items():
            if self.signals.stretches and self.words[doc] > LONG_WORDS:
                signals["words"][doc] = max(score, signals["words"].get(doc, 0.0))
        sums = dict.fromkeys(self.candidates.docs, 0.0)
        for values in signals.values():
            for doc, value in values.items():
                if doc in sums:
                    sums[doc] += value
        # Turns of a conversation may match without a word of the question; other texts may not, unless their embedding
        # is near.
        worded = signals["own words"].keys() | signals["literal"].keys()
        fit = {doc for doc in sums if sums[doc] > 0 and (self.says.get(doc) or doc in worded)}
        near = self._near_question(sums)
        fit |= {doc for doc, cosine in near.items() if cosine >= NEAR}
        is_static = self.sense is None or self.sense.kind == STATIC
        of_text, of_turn = (ABOUT, ABOUT_TURN) if is_static else (ABOUT_READ, ABOUT_READ_TURN)
        signals["about"] = {doc: cosine * (of_turn if self.says.get(doc) else of_text) for doc, cosine in near.items()}
        for doc, value in signals["about"].items():
            sums[doc] += value
        chosen = nlargest(most, fit, key=lambda doc: (sums[doc], -doc))
        parts = {doc: {name: values[doc] for name, values in signals.items() if doc in values} for doc in chosen}
        return [Scored(doc, sums[doc], parts[doc], stretches.get(doc, (0.0, 0))[1]) for doc in chosen]

    @cached_property
    def _telling(self) -> dict[str, float]:
        """The words of the question and how much they say about its subject. The name of a speaker says nothing."""
        words = enumerate(zip(self.question.words, self.candidates.counts, strict=True))
        return {word: self.rarity(count) for at, (word, count) in words if at not in self.names}

    def _near_question(self, sums: Mapping[int, float]) -> dict[int, float]:
        """How near the embeddings of texts are to the question's, from 0 to 1; turns together with their neighbours."""
        if self.sense is None:
            return {}
        best = nlargest(ABOUT_MOST, sums, key=lambda doc: (sums[doc], -doc))
        chosen = {doc: self._beside(doc) for doc in (*best, *self.candidates.nominated) if doc in sums}
        every = dict.fromkeys(doc for turn, beside in chosen.items() for doc in (turn, *dict(beside)))
        near = self.sense.cosines(self._telling, every)
        nearness = {}
        for doc, beside in chosen.items():
            # The cosine of the sum of several vectors, assuming that any two are as far apart as turns usually are.
            total, sum_, squares = near.get(doc, 0.0), 1.0, 1.0
            for neighbour, weight in beside:
                total += weight * near.get(neighbour, 0.0)
                sum_ += weight
                squares += weight * weight
            nearness[doc] = max(0.0, total / sqrt((1 - ALIKE_TURNS) * squares + ALIKE_TURNS * sum_ * sum_))
        return nearness

    def _beside(self, doc: int) -> list[tuple[int, float]]:
        """The neighbours whose embeddings count for a text, and how much: the question beside an answer."""
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
        """BM25 of each text together with its neighbours."""
        sums: dict[int, float] = {}
        self.counts = [self._wide_counts(places) for _, places, _ in self.followed]
        lengths = {doc: self._wide_length(doc) for doc in set().union(*self.counts)}
        usual = median(lengths.values())
        for (_, _, rarity), counts in zip(self.followed, self.counts, strict=True):
            for doc, count in counts.items():
                sums[doc] = sums.get(doc, 0.0) + rarity * _saturated(count, lengths[doc] / usual)
        return sums

    def _wide_length(self, doc: int) -> float:
        """The length of a text together with its neighbours, as far as these count."""
        length, gates = self.words[doc], self.gates
        if gate := gates.get(doc):
            docs, place = self._sessions[doc]
            count = len(docs)
            for step, weight in STEPS:
                at = place - step
                if 0 <= at < count and -REACH <= (near := docs[at]) - doc <= REACH and (open_ := gates.get(near)):
                    length += weight * gate * open_ * self.words[near]
        return length

    def _wide_counts(self, places: Positions) -> dict[int, float]:
        """How often a word occurs in each text and, with less weight, in its neighbours."""
        counts: dict[int, float] = {}
        for doc, at in places.items():
            if doc in self.documents:
                counts[doc] = counts.get(doc, 0.0) + len(at)
                for neighbour, weight in self._near(doc):
                    counts[neighbour] = counts.get(neighbour, 0.0) + weight * len(at)
        return counts

    @cached_property
    def _sessions(self) -> dict[int, tuple[list[int], int]]:
        """By text, the texts of its session in order, and its place among them."""
        sessions: dict[tuple[str, str], list[int]] = {}
        for doc in sorted(self.says):
            sessions.setdefault((self.documents[doc].kind, self.documents[doc].session), []).append(doc)
        return {doc: (docs, at) for docs in sessions.values() for at, doc in enumerate(docs)}

    def _near(self, doc: int) -> list[tuple[int, float]]:
        """The neighbours that the words of a text count for, and how much."""
        if doc not in self._near_cache:
            near: list[tuple[int, float]] = []
            if gate := self.gates.get(doc):
                docs, place = self._sessions[doc]
                count = len(docs)
                for step, weight in STEPS:
                    at = place + step
                    # Texts further apart are not all candidates.
                    if 0 <= at < count and -REACH <= (neighbour := docs[at]) - doc <= REACH:
                        near.append((neighbour, weight * gate * self.gates.get(neighbour, 0.0)))
            self._near_cache[doc] = near
        return self._near_cache[doc]

    def _gates(self) -> dict[int, float]:
        """How far the neighbours of texts count: those of short turns of a conversation. Other texts are left out."""
        words, wide = self.words, NOT_SHORT_WORDS - SHORT_WORDS
        return {
            doc: min(1.0, (NOT_SHORT_WORDS - words[doc]) / wide)
            for doc, name in self.says.items()
            if name and words[doc] < NOT_SHORT_WORDS
        }

    def _coverage(self) -> dict[int, float]:
        """The share of the question that occurs in a text or its neighbours, weighted by rarity."""
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
        """Of each text longer than a stretch, the score of its best stretch and the first word of it."""
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
        """For words that are adjacent as in the question."""
        sums: dict[int, float] = {}
        for first, second in self.question.pairs if self.signals.phrases else ():
            ahead, behind = self.candidates.positions[first], self.candidates.positions[second]
            if first in self.names:
                continue
            for doc in ahead.keys() & behind.keys():
                following = behind[doc]
                if any(place + 1 in following for place in ahead[doc]):
                    sums[doc] = sums.get(doc, 0.0) + PAIR
        return sums

    def _literals(self) -> dict[int, float]:
        """For literal texts of the question: a path, an identifier, a quotation."""
        sums: dict[int, float] = {}
        for by_doc in self.candidates.literals if self.signals.literals else ():
            for doc in by_doc:
                sums[doc] = sums.get(doc, 0.0) + LITERAL
        return sums

    def _dates(self) -> dict[int, float]:
        """For texts of the time that the question names."""
        if not self.signals.dates or not any(self.question.when):
            return {}
        fits = {doc: dated(self.question.when, document.created_at) for doc, document in self.documents.items()}
        return {doc: DATE * fit for doc, fit in fits.items() if fit}

    # --- by reading ---------------------------------------------------------------------------------------------------

    def alike(self, texts: Mapping[int, str]) -> dict[int, float]:
        """For words of a short text that are like words of the question it lacks: rare ones count more.

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

    def close(self, scored: Scored, text: str, like: float = 0.0) -> Scored:
        """The score with the signals that need the text itself."""
        added: dict[str, float] = {"like words": like}
        body = without_speaker(text) if self.says.get(scored.doc) else text
        words = analyse.words(analyse.fold(body)) if self.common or self.says.get(scored.doc) else []
        if unseen := [at for at in self.common if scored.doc not in self.candidates.positions[at]]:
            stems = set(analyse.terms(words))
            sought = analyse.terms([self.question.words[at] for at in unseen])
            rare = [self.rarity(self.candidates.counts[at]) for at in unseen]
            added["common words"] = sum(worth for worth, term in zip(rare, sought, strict=True) if term in stems)
        if self.says.get(scored.doc):
            if self.signals.statements and body.rstrip().endswith("?"):
                added["asks back"] = -QUESTION_BACK
            low = body.lower()
            if self.signals.substance:
                added["substance"] = SUBSTANCE * log1p(len(set(words) - STOP))
            if self.signals.times_told and self.question.asks_when and _TIME.search(low):
                added["tells when"] = STATES_TIME
        parts = {**scored.parts, **{name: value for name, value in added.items() if value}}
        return scored._replace(score=sum(parts.values()), parts=parts)


def median(values: Iterable[float]) -> float:
    """The middle value; `statistics` takes longer to import than a search does."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else 1.0


def _saturated(count: float, length: float) -> float:
    return count * (K1 + 1) / (count + K1 * (1 - B + B * length))
