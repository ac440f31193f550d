"""The order of recall's candidates: small signals, each a pure function, added up.

The base of the score is BM25 over the words of the question. What is added depends on what the texts are:

- *documents*, which is everything that is not a conversation: how near the embedding is, as a share of the best by
  words, and words side by side;
- *turns* of people who talk to each other: a turn is scored together with its neighbours, because an answer seldom
  repeats the words of its question; who speaks, when, and whether a turn says something count too;
- *histories* of a user and an assistant, whose turns are long: as documents, the user's own words first.

The answer gives every part of the sum as a reason. docs/recall.md says what each signal is worth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from functools import cached_property
from heapq import nlargest
from math import log, log1p, sqrt

from limpet.light import re
from limpet.model import MESSAGE, NOTE
from limpet.recall.embeddings import STATIC, Sense
from limpet.recall.question import STOP, Question, dated
from limpet.record import NamedTuple
from limpet.store import SOMEWHERE, Candidates, Document, Positions
from limpet.text import words as analyse

READ_MOST = 40  # texts that are read for a closer look
STEM_BEGIN = 2  # letters that a word and its stem share
READ_CHARS = 20_000  # of a text that is read; the rest is in the index
WORD_BYTES = 6  # of English, with the space
K1, B = 1.0, 0.8  # BM25: how soon a repeated word stops counting, how much length counts
K1_DOCUMENT, B_DOCUMENT = 1.2, 0.9  # a document repeats what it is about
LONG_WORDS = 2_000  # a longer text is scored by its best stretch too; among shorter ones that favours the long
STRETCH_WORDS = 150
FAR_LONGER = 4  # times as long as texts usually are: such a text's own words are those of its best stretch
# What a matching turn gives to the turns after it (positive) and before it. An answer follows its question.
WINDOW = {1: 0.8, 2: 0.4, 3: 0.25, 4: 0.1, -1: 0.3, -2: 0.2, -3: 0.1}
STEPS = tuple(WINDOW.items())
AROUND = 4
REACH = 2 * AROUND  # how far apart the numbers of two neighbouring turns may be
SHORT_WORDS, NOT_SHORT_WORDS = 80, 160  # neighbours count in full up to the first and not at all from the second
TALK = (NOTE, MESSAGE)  # kinds whose entries follow each other in a session
COVERAGE, PAIR, PAIR_DOCUMENT, SPEAKER, LITERAL, PINNED = 3.0, 0.5, 0.75, 2.0, 4.0, 0.5
# A document says at its beginning what it is about: a key, a heading, a name and its arguments, a path.
OPENING, OPENING_WORDS = 0.2, 8
PART, PART_CHARS = 0.75, 4  # a word of the question as the beginning or end of a longer one, and its least length
JOINED = 0.5  # two words of the question written together say again what both say
PAIR_APART = 2  # places between two words that count as side by side
IDENTIFIER = 2.0  # times the best score by words: an identifier of the question beats any similarity
VERBATIM, VERBATIM_CHARS = 1.0, 400  # the same for a text that holds the question word for word, stop words and all
IDENTIFIER_TEXTS = 20  # an identifier in more texts than these tells less
DATE, STATES_TIME, QUESTION_BACK, SUBSTANCE = 4.0, 3.0, 2.0, 2.0
SUBSTANCE_WORDS = 30  # different words of a turn that count as substance; more of them is length
OWN, OWN_KEY_WORDS = 0.15, 2.0  # a text's own words beside those of its neighbours
# The weights of embeddings. In conversations they count less: turns are short, and their words and neighbours say more.
# A text without any word of the question must be as near as NEAR to match at all.
# For documents ABOUT is a share of the best score by words: both are divided by their best and added, 0.67 and 0.33.
ABOUT, ABOUT_TURN, LIKE_WORDS, LIKE_FROM, NEAR = 0.5, 5.0, 0.75, 0.2, 0.25
# Those of a transformer, which reads a text whole, count more: 0.4 and 0.6.
ABOUT_READ, ABOUT_READ_TURN = 1.5, 16.0
# Where one document holds most of the question's words, meaning counts less: the words have found what was meant. The
# share goes from the full one to ABOUT_FOUND while what the best document holds goes from one of COVERED to the other.
ABOUT_FOUND, COVERED = 0.3, (0.4, 0.8)
ABOUT_LEAST = 6.0  # taken for the best score by words where hardly a word matches
ALIKE_TURNS = 0.4  # the cosine of two turns that follow each other, as a rule
ABOUT_MOST = 120  # texts whose embeddings are compared, the best by words first
ALIKE_MOST = 24  # texts whose words are compared one by one, the best first
NOMINATED = 40  # candidates by embedding alone
# The share of the question that an answer must hold: for turns; for histories; for documents with an embedding, whose
# nearness adds to it, and without. Below it the best texts are wrong more often than right.
FITS_TURN, FITS_HISTORY, FITS, FITS_WORDS = 0.3, 0.12, 0.25, 0.15
# Asked what was said in a history: how far the best must be above the tenth, as a share. What was said holds
# words that few other turns hold together.
STANDS_OUT, STANDS_OUT_FROM = 0.36, 9
NEAR_FITS, NEAR_FITS_MORE = 0.25, 0.045  # a text fits by its embedding alone from here; more for each e-fold of texts
NAME_ABSENT = 0.5  # what a text covers of a question, where no text holds a name in it
USERS = frozenset(("user", "human", "me"))
ROLES = USERS | {"assistant", "ai", "bot", "agent", "model", "system", "tool", "gpt", "chatgpt", "claude"}
CHAT_WORDS = 40  # turns without names that are usually shorter are talk between people, others a history
# Of the best score by words: for the user's turns, more in questions about "my", and for a lasting wish among them.
USER_FIRST, USER_ASKED, WISH = 0.3, 0.6, 0.3
HOP = 0.1  # of the best score by words: what a rare name in the best texts lends to other texts that hold it
HOP_FROM, HOP_CHARS, HOP_NAMES = 3, 4_000, 20  # texts that are read for names, characters, and names of each
HOP_MOST = 40  # texts that names lead to
HOP_TEXTS = 8  # a name in more texts than these is not followed

_LABEL = re.compile(r"\s*\**([^\W\d_][\w.'\u2019-]*(?: [\w.'\u2019-]+){0,2})\**\s*(?:\([^)\n]{1,30}\))?:\**\s")
_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|week|weekend|month|year|morning|since|recently|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september|october|"
    r"november|december|\d{4}|\d+(?:st|nd|rd|th))\b"
)

# A wish that lasts: how the user wants things in general.
_WISH = re.compile(
    r"\b(?:prefer|rather|avoid|always|never|usually|whenever|every time|from now on|can't stand|allergic|"
    r"(?:don't|do not|really|absolutely) (?:like|want|enjoy|love|hate)|please (?:use|keep|give|include|don't))\b",
    re.IGNORECASE,
)
# Names and identifiers, which lead from a text to others. The first word of a sentence is no name.
_NAME = re.compile(r"\b(?:\w+_\w+|[a-z]+[A-Z]\w+|(?<![.!?\n] )(?<!^)[A-Z][a-z]{2,}\w*|[A-Z]{3,}\w*)\b")
_BESIDE = range(1, PAIR_APART + 1)
_IDENTIFIER = re.compile(r"\w+_\w+")  # folded, so that its capitals say nothing
_NUMBERED = re.compile(r"(?!(?:19|20)\d\d$)(?=.*\d)\w{3,}")  # a number of something, no year

# Recognises a spoken turn by its first characters.
_SPOKEN = re.compile(
    r"\b(?:i|you|your|my|me|we|our|ich|du|mir|mich|wir|je|tu|moi|nous|vous|yo|tú|mi|nosotros|eu|você|io|noi|ik|jij|я|ты|мы)\b"
    r"|[?!\uff01\uff1f我你私]",
    re.IGNORECASE,
)
UNNAMED = " "  # the speaker of a turn without a name; differs from every name
NAMED_LEAST = 2  # texts of a session that must begin with a name and a colon
NAMED_SPOKEN = 0.2  # the share of these that must be spoken: notes that begin with "Decision:" are no turns
TURNS_EACH = 2  # turns of each of them on average, where there are more than a few: a subject begins one note
TALK_LEAST, TALK_SHARE = 6, 0.5  # texts that a session must have, and the share of them that must be spoken turns


class Scored(NamedTuple):
    doc: int
    score: float
    parts: Mapping[str, float]  # by signal, what it added
    at: int  # the first word of its best stretch; 0 for a short text
    near: float = 0.0  # how near its embedding is to the question, from 0 to 1
    fits: bool = True  # whether it holds enough of the question to be an answer


def first(
    places: Sequence[Positions],
    counts: Sequence[int],
    literals: Sequence[Positions],
    sizes: Mapping[int, int],
) -> list[int]:
    """The candidates, the most promising first: by rare words and, where sizes are known, by how often in how much."""
    weights: dict[int, float] = {}
    most = max(counts, default=1)
    usual = sum(sizes.values()) / len(sizes) if sizes else 1.0
    length = {doc: K1_DOCUMENT * (1 - B + B * size / usual) for doc, size in sizes.items()}
    worths = [log(1 + 4 * most / max(1, count)) for count in counts]
    for by_doc, worth in zip(places, worths, strict=True):
        if by_doc:
            for doc, at in by_doc.items():
                often = len(at) or 1
                # Of unknown size, a word that occurs again and again is worth up to half as much again.
                share = (K1_DOCUMENT + 1) * often / (often + length[doc]) if length else 1.5 - 0.5 / often
                weights[doc] = weights.get(doc, 0.0) + worth * share
    if long := {doc for doc, size in sizes.items() if size > max(LONG_WORDS * WORD_BYTES, FAR_LONGER * usual)}:
        short = K1_DOCUMENT * (1 - B + B * min(1.0, STRETCH_WORDS * WORD_BYTES / usual))
        of_words = zip(places, worths, strict=True)
        for doc, (best, _) in best_stretches(of_words, long, lambda _, n: (K1_DOCUMENT + 1) * n / (n + short)).items():
            weights[doc] = max(best, weights[doc])
    for by_doc in literals:
        for doc in by_doc:
            weights[doc] = weights.get(doc, 0.0) + 2 * log(1 + 4 * most)
    return [-doc for _, doc in sorted((-worth, -doc) for doc, worth in weights.items())]


def best_stretches(
    of_words: Iterable[tuple[Positions, float]], long: Container[int], share: Callable[[int, int], float]
) -> dict[int, tuple[float, int]]:
    """Of each of these texts, what its best stretch is worth, and its first word. `of_words` has the places of each
    word and its worth, `share` how much of that so many places of it in a stretch of a text are."""
    sums: dict[int, dict[int, float]] = {}
    step = STRETCH_WORDS // 2
    for places, worth in of_words:
        for doc, at in places.items():
            if doc not in long or at == SOMEWHERE:
                continue
            mine = sums.setdefault(doc, {})
            for stretch, count in Counter(place // step - back for place in at for back in (0, 1)).items():
                mine[stretch] = mine.get(stretch, 0.0) + worth * share(doc, count)
    best = {doc: min((-worth, stretch) for stretch, worth in mine.items()) for doc, mine in sums.items()}
    return {doc: (-worth, max(0, stretch) * step) for doc, (worth, stretch) in best.items()}


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
    named: dict[tuple[str, str], list[int]] = {}
    unnamed: dict[tuple[str, str], list[int]] = {}
    for doc, document in documents.items():
        if document.session and document.kind in TALK:
            says[doc] = speaker(document.head)
            by_session = named if says[doc] else unnamed
            by_session.setdefault((document.kind, document.session), []).append(doc)
    for session, docs in named.items():
        if not _is_talk([documents[doc].head for doc in docs], {says[doc] for doc in docs}):
            says.update(dict.fromkeys(docs, ""))
            unnamed.setdefault(session, []).extend(docs)
    for docs in unnamed.values():
        spoken = sum(_SPOKEN.search(documents[doc].head) is not None for doc in docs)
        if len(docs) >= TALK_LEAST and spoken >= TALK_SHARE * len(docs):
            says.update(dict.fromkeys(docs, UNNAMED))
    return says


def _is_talk(heads: Sequence[str], named: Set[str]) -> bool:
    """Whether texts that begin with a name and a colon are turns. A note may begin with its subject in that way; but
    few speak, each of them more than once, and they say I and you, or ask."""
    spoken = sum(_SPOKEN.search(head) is not None for head in heads)
    few = len(named) <= max(NAMED_LEAST, len(heads) / TURNS_EACH)
    return len(heads) >= NAMED_LEAST and (not ROLES.isdisjoint(named) or (few and spoken >= NAMED_SPOKEN * len(heads)))


class Signals(NamedTuple):
    """The parts of the score, each of which can be left out to measure what it is worth (bench/recall)."""

    user: bool = True  # the user's own words first, in histories of a user and an assistant
    hop: bool = True  # names of the best texts lead to others
    neighbours: bool = True  # turns of a conversation count for those around them
    speaker: bool = True  # the person asked about, when texts say who speaks
    dates: bool = True  # times named in the question
    coverage: bool = True  # how much of the question a turn and its neighbours cover
    phrases: bool = True  # words side by side as in the question
    opening: bool = True  # words with which a document begins
    parts: bool = True  # words of the question inside longer ones of a document
    literals: bool = True  # paths, identifiers and quoted texts, verbatim
    stretches: bool = True  # a long text by its best stretch
    statements: bool = True  # a turn that asks back answers nothing
    substance: bool = True  # a longer turn is more likely the answer
    times_told: bool = True  # a question for a time is answered where one is given


SIGNALS = Signals()


class Linked(NamedTuple):
    """Candidates with the texts that names of the best ones lead to, each of these with the name."""

    candidates: Candidates
    names: Mapping[int, str]


Link = Callable[[Mapping[int, Sequence[str]]], Linked | None]  # by number of a text, the names in it


def order(
    question: Question,
    candidates: Candidates,
    read: Callable[[list[int]], Mapping[int, str]],
    sense: Sense | None = None,
    link: Link | None = None,
) -> list[Scored]:
    """The candidates, the best first. `read` gives the texts of those that are worth a closer look."""
    pool = _Pool(question, candidates, sense)
    rough = pool.best(READ_MOST)
    # People who talk know what they talk about; documents say it in other documents.
    if link and SIGNALS.hop and rough and rough[0].doc not in pool.turns:
        texts = read([scored.doc for scored in rough[:HOP_FROM]])
        if linked := link({doc: names(question, text) for doc, text in texts.items()}):
            pool = _Pool(question, linked.candidates, sense, linked.names)
            rough = pool.best(READ_MOST)
    texts = read([scored.doc for scored in rough])
    like = pool.alike({scored.doc: texts[scored.doc] for scored in rough[:ALIKE_MOST] if scored.doc in texts})
    closer = [
        pool.close(scored, texts[scored.doc], like.get(scored.doc, 0.0)) for scored in rough if scored.doc in texts
    ]
    documents = pool.documents
    ranked = sorted(
        closer, key=lambda scored: (-scored.score, -documents[scored.doc].updated_at, documents[scored.doc].key)
    )
    return ranked if pool.stands_out(ranked) else [scored._replace(fits="literal" in scored.parts) for scored in ranked]


def names(question: Question, text: str) -> list[str]:
    """The names in a text that the question lacks, folded, the longest first."""
    of_question = set(analyse.terms(list(question.words)))
    parts = dict.fromkeys(
        word for name in _NAME.findall(text[:HOP_CHARS]) for word in analyse.words(analyse.fold(name)) if len(word) > 2
    )
    fresh = [word for word, term in zip(parts, analyse.terms(list(parts)), strict=True) if term not in of_question]
    return sorted(fresh, key=lambda word: (-len(word), word))[:HOP_NAMES]


class _Pool:
    """The candidates of one question, with everything that is the same for each of them."""

    def __init__(
        self,
        question: Question,
        candidates: Candidates,
        sense: Sense | None = None,
        linked: Mapping[int, str] | None = None,
    ) -> None:
        self.question = question
        self.sense = sense
        self.linked = linked or {}
        self.candidates = candidates
        self.documents = candidates.documents
        self.signals = SIGNALS
        self._near_cache: dict[int, list[tuple[int, float]]] = {}
        self.words = {doc: max(1.0, document.size / WORD_BYTES) for doc, document in self.documents.items()}
        self.usual = median(self.words.values())
        self.says = speakers(self.documents)
        self.turns = self._turns()
        self._share = OWN_KEY_WORDS if question.key_words else OWN  # that a text's own words count beside the rest
        self.gates = self._gates() if self.signals.neighbours else {}
        self.names, self.who = self._who()
        self.common = sorted(candidates.common - self.names)
        self.followed = [  # words that distinguish texts, with their rarity
            (at, places, self.rarity(candidates.counts[at]) * (JOINED if at in question.written_together else 1.0))
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

    def _turns(self) -> frozenset[int]:
        """The turns of people who talk to each other. Those of a user and an assistant count while they are short."""
        named = {doc for doc, name in self.says.items() if name and name != UNNAMED and name not in ROLES}
        others = [doc for doc, name in self.says.items() if name and doc not in named]
        chat = median(self.words[doc] for doc in others) <= CHAT_WORDS
        return frozenset(named.union(others) if chat else named)

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
            "date": self._dates(),
            "speaker": {doc: SPEAKER for doc in self.turns if self.who and self.says[doc] in self.who},
            "pinned": {doc: PINNED for doc, document in self.documents.items() if document.pinned},
        }
        stretches = self._stretches()
        for doc, (score, _) in stretches.items():
            if self.signals.stretches and self.words[doc] > LONG_WORDS:
                signals["words"][doc] = max(score, signals["words"].get(doc, 0.0))
            if self.signals.stretches and self.words[doc] > max(LONG_WORDS, FAR_LONGER * self.usual):
                signals["own words"][doc] = max(self._share * score, signals["own words"].get(doc, 0.0))
        self.scale = max(ABOUT_LEAST, *signals["words"].values()) if signals["words"] else ABOUT_LEAST
        signals |= {"phrase": self._pairs(), "literal": self._literals(), "user": self._users()}
        signals["opening"] = self._opening()
        signals["linked"] = dict.fromkeys(self.linked, HOP * self.scale)
        sums = dict.fromkeys(self.candidates.docs, 0.0)
        for values in signals.values():
            for doc, value in values.items():
                if doc in sums:
                    sums[doc] += value
        # Turns of a conversation may match without a word of the question; other texts may not, unless their embedding
        # is near.
        worded = signals["own words"].keys() | signals["literal"].keys() | self.linked.keys()
        fit = {doc for doc in sums if sums[doc] > 0 and (doc in self.turns or doc in worded)}
        self.nearness = self._near_question(sums)
        fit |= {doc for doc, cosine in self.nearness.items() if cosine >= NEAR}
        signals["about"] = self._about()
        for doc, value in signals["about"].items():
            sums[doc] += value
        chosen = nlargest(most, fit, key=lambda doc: (sums[doc], -doc))
        parts = {doc: {name: values[doc] for name, values in signals.items() if doc in values} for doc in chosen}
        return [
            Scored(doc, sums[doc], parts[doc], stretches.get(doc, (0.0, 0))[1], near=self.nearness.get(doc, 0.0))
            for doc in chosen
        ]

    def _about(self) -> dict[int, float]:
        """For texts whose embeddings are near: of documents as a share of what the best words are worth."""
        best = max((near for doc, near in self.nearness.items() if doc not in self.turns), default=0.0) or 1.0
        is_static = self.sense is None or self.sense.kind == STATIC
        share, of_turn = (ABOUT, ABOUT_TURN) if is_static else (ABOUT_READ, ABOUT_READ_TURN)
        least, most = COVERED
        share -= (share - ABOUT_FOUND) * min(1.0, max(0.0, (self._most_held() - least) / (most - least)))
        return {
            doc: near * of_turn if doc in self.turns else share * self.scale * near / best
            for doc, near in self.nearness.items()
        }

    def _most_held(self) -> float:
        """The share of the question, weighted by rarity, that the document with most of it holds."""
        covered: dict[int, float] = {}
        mass = 0.0
        for at, places in enumerate(self.candidates.positions):
            if at in self.question.joined or at in self.names:
                continue
            mass += (rarity := self.rarity(self.candidates.counts[at]))
            for doc in places:
                if doc in self.documents and doc not in self.turns:
                    covered[doc] = covered.get(doc, 0.0) + rarity
        return max(covered.values(), default=0.0) / (mass or 1.0)

    def _users(self) -> dict[int, float]:
        """For what the user said in a history: the assistant mostly repeats it at length."""
        if not self.signals.user:
            return {}
        share = USER_ASKED if self.question.first_person else USER_FIRST
        by_user = (doc for doc, name in self.says.items() if name in USERS and doc not in self.turns)
        return dict.fromkeys(by_user, share * self.scale)

    @cached_property
    def _telling(self) -> dict[str, float]:
        """The words of the question and how much they say about its subject. The name of a speaker says nothing."""
        words = enumerate(zip(self.question.words, self.candidates.counts, strict=True))
        without = self.names | self.question.joined
        return {word: self.rarity(count) for at, (word, count) in words if at not in without}

    def _near_question(self, sums: Mapping[int, float]) -> dict[int, float]:
        """How near the embeddings of texts are to the question's, from 0 to 1; turns together with their neighbours."""
        if self.sense is None:
            return {}
        best = nlargest(ABOUT_MOST, sums, key=lambda doc: (sums[doc], -doc))
        chosen = {doc: self._beside(doc) for doc in (*best, *self.candidates.nominated) if doc in sums}
        every = dict.fromkeys(doc for turn, beside in chosen.items() for doc in (turn, *dict(beside)))
        near = dict(self.sense.cosines(self._telling, [doc for doc in every if doc in self.turns]))
        # Among documents rare words already count for more by themselves, so that all count the same here.
        plain = dict.fromkeys(self._telling, 1.0)
        near |= self.sense.cosines(plain, [doc for doc in every if doc not in self.turns])
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
        sums: dict[int, float] = {}
        for _, places, rarity in self.followed:
            for doc, at in places.items():
                if doc in self.words:
                    worth = rarity * self._saturated(doc, len(at), self.words[doc] / self.usual)
                    sums[doc] = sums.get(doc, 0.0) + self._share * worth
        return sums

    def _wide(self) -> dict[int, float]:
        """BM25 of each text together with its neighbours."""
        sums: dict[int, float] = {}
        self.counts = [self._wide_counts(places) for _, places, _ in self.followed]
        lengths = {doc: self._wide_length(doc) for doc in set().union(*self.counts)}
        usual = median(lengths.values())
        for (_, _, rarity), counts in zip(self.followed, self.counts, strict=True):
            for doc, count in counts.items():
                sums[doc] = sums.get(doc, 0.0) + rarity * self._saturated(doc, count, lengths[doc] / usual)
        return sums

    def _saturated(self, doc: int, count: float, length: float) -> float:
        k1, b = (K1, B) if doc in self.turns else (K1_DOCUMENT, B_DOCUMENT)
        return count * (k1 + 1) / (count + k1 * (1 - b + b * length))

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
            doc: min(1.0, (NOT_SHORT_WORDS - words[doc]) / wide) for doc in self.turns if words[doc] < NOT_SHORT_WORDS
        }

    def _coverage(self) -> dict[int, float]:
        """The share of the question that occurs in a turn or its neighbours, weighted by rarity. In documents it says
        what their words say."""
        if not self.signals.coverage or not self.turns:
            return {}
        mass = sum(rarity for _, _, rarity in self.followed) or 1.0
        sums: dict[int, float] = {}
        for (_, _, rarity), counts in zip(self.followed, self.counts, strict=True):
            for doc in counts.keys() & self.turns:
                sums[doc] = sums.get(doc, 0.0) + COVERAGE * rarity / mass
        return sums

    def _opening(self) -> dict[int, float]:
        """For words with which a document begins."""
        sums: dict[int, float] = {}
        for _, places, rarity in self.followed if self.signals.opening else ():
            for doc, at in places.items():
                if at and 0 <= at[0] < OPENING_WORDS and doc in self.documents and doc not in self.turns:
                    sums[doc] = sums.get(doc, 0.0) + OPENING * rarity
        return sums

    def _stretches(self) -> dict[int, tuple[float, int]]:
        """Of each text longer than a stretch, the score of its best stretch and the first word of it."""
        long = {doc for doc, words in self.words.items() if words > STRETCH_WORDS}
        length = min(1.0, STRETCH_WORDS / self.usual)
        of_words = ((places, rarity) for _, places, rarity in self.followed)
        return best_stretches(of_words, long, lambda doc, count: self._saturated(doc, count, length))

    def _pairs(self) -> dict[int, float]:
        """For words that are adjacent as in the question, or nearly."""
        sums: dict[int, float] = {}
        counts = self.candidates.counts
        for first, second in self.question.pairs if self.signals.phrases else ():
            ahead, behind = self.candidates.positions[first], self.candidates.positions[second]
            if first in self.names:
                continue
            worth = min(self.rarity(counts[first]), self.rarity(counts[second]))
            for doc in ahead.keys() & behind.keys():
                following = behind[doc]
                if any(place + step in following for place in ahead[doc] if place >= 0 for step in _BESIDE):
                    sums[doc] = sums.get(doc, 0.0) + worth * (PAIR if doc in self.turns else PAIR_DOCUMENT)
        return sums

    def _literals(self) -> dict[int, float]:
        """For literal texts of the question: a path, an identifier, a quotation. A rare one beats any similarity."""
        sums: dict[int, float] = {}
        for by_doc in self.candidates.literals if self.signals.literals else ():
            rare = IDENTIFIER * self.scale if len(by_doc) <= IDENTIFIER_TEXTS else 0.0
            for doc in by_doc:
                sums[doc] = sums.get(doc, 0.0) + LITERAL + rare
        for at, word in enumerate(self.question.words) if self.signals.literals else ():
            by_doc = self.candidates.positions[at]
            common = at in self.candidates.common or len(by_doc) > IDENTIFIER_TEXTS
            without = self.question.times | self._absent_codes
            if _NUMBERED.fullmatch(word) and at not in without and not common:
                for doc in by_doc:
                    sums[doc] = sums.get(doc, 0.0) + IDENTIFIER * self.scale
        return sums

    def _dates(self) -> dict[int, float]:
        """For texts of the time that the question names."""
        if not self.signals.dates or not any(self.question.when):
            return {}
        fits = {doc: dated(self.question.when, document.created_at) for doc, document in self.documents.items()}
        return {doc: DATE * fit for doc, fit in fits.items() if fit}

    # --- by reading ---------------------------------------------------------------------------------------------------

    def alike(self, texts: Mapping[int, str]) -> dict[int, float]:
        """For words of a turn that are like words of the question it lacks: rare ones count more.

        A document has some word that is like any.
        """
        short = {doc: text for doc, text in texts.items() if doc in self.turns and self.words[doc] <= NOT_SHORT_WORDS}
        if self.sense is None or not short:
            return {}
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
        doc, turn = scored.doc, scored.doc in self.turns
        added: dict[str, float] = {"like words": like}
        body = without_speaker(text) if turn else text
        words = analyse.words(analyse.fold(body[:READ_CHARS])) if self.common or turn else []
        present = {at for at, places in enumerate(self.candidates.positions) if doc in places}
        if self.common:
            begins = {term[:STEM_BEGIN] for term in self._common_terms}  # stemming all words of a text takes long
            often = Counter(analyse.terms([word for word in words if word[:STEM_BEGIN] in begins]))
            counts = {at: often[term] for at, term in zip(self.common, self._common_terms, strict=True)}
            added["common words"] = sum(self._common_word(doc, at, count) for at, count in counts.items())
            present |= {at for at, count in counts.items() if count}
        if turn:
            added |= self._statement(body, words)
        elif "user" in scored.parts and _WISH.search(body):
            added["wish"] = WISH * self.scale
        if (
            self._whole_question
            and self._sought <= present
            and self._whole_question.search(analyse.fold(body[:READ_CHARS]))
        ):
            added["literal"] = scored.parts.get("literal", 0.0) + VERBATIM * self.scale
        if not turn and self.signals.parts:
            added["part"] = self._parts(analyse.fold(body[:READ_CHARS]), present)
        parts = {**scored.parts, **{name: value for name, value in added.items() if value}}
        fits = "literal" in parts or self._fits(doc, self._covered(doc, present), scored.near)
        return scored._replace(score=sum(parts.values()), parts=parts, fits=fits)

    @cached_property
    def _sought(self) -> Set[int]:
        """The words of the question as it was written."""
        return frozenset(range(len(self.question.words))) - self.question.joined

    @cached_property
    def _whole_question(self) -> re.Pattern[str] | None:
        """The question as a text may hold it word for word: without `not` it is another one. None for a word alone."""
        folded = analyse.fold(self.question.text[:VERBATIM_CHARS]).strip(" \t\n?!.,;:'\"")
        words = list(map(re.escape, folded.split())) if self.signals.literals else []
        return re.compile(r"(?<!\w)" + r"\s+".join(words) + r"(?!\w)") if len(words) > 1 else None

    def _parts(self, folded: str, present: set[int]) -> float:
        """For words that a document lacks, and that one of its words begins or ends with: `reset` in `resetmodel`."""
        worth = 0.0
        for at, word in enumerate(self.question.words):
            lacking = len(word) >= PART_CHARS and at not in present and at not in self._needless
            if lacking and word in folded and re.search(rf"\b{re.escape(word)}|{re.escape(word)}\b", folded):
                worth += PART * self.rarity(self.candidates.counts[at])
        return worth

    def _fits(self, doc: int, covered: float, near: float) -> bool:
        """Whether a text holds enough of the question: of its words, or of what it is about."""
        if self._absent_codes and not covered:  # another code of the same form is near, and says nothing of this one
            return False
        # Among many texts some embedding is near to any question.
        if near >= NEAR_FITS + NEAR_FITS_MORE * log(max(1, self.candidates.total)):
            return True
        if doc in self.turns:
            return covered >= FITS_TURN
        if self.says.get(doc):  # what the user wants is asked for in other words
            return covered >= FITS_HISTORY
        if self.sense is None:
            return covered >= FITS_WORDS
        return covered + max(0.0, near - NEAR) >= FITS

    def stands_out(self, ranked: Sequence[Scored]) -> bool:
        """Whether the best is far enough above the rest to be what the question says was said."""
        if not self.question.asks_said or len(ranked) <= STANDS_OUT_FROM or ranked[0].doc in self.turns:
            return True
        below = ranked[STANDS_OUT_FROM].score
        return not self.says.get(ranked[0].doc) or below <= (1 - STANDS_OUT) * ranked[0].score

    @cached_property
    def _common_terms(self) -> list[str]:
        return analyse.terms([self.question.words[at] for at in self.common])

    def _common_word(self, doc: int, at: int, count: int) -> float:
        """What a common word is worth beyond what was presumed: where its places are not known, that it occurs once."""
        rarity, presumed = self.rarity(self.candidates.counts[at]), doc in self.candidates.positions[at]
        if doc in self.turns:  # short, so that once is right; and its neighbours hold it or not
            return rarity if count and not presumed else 0.0
        length = self.words[doc] / self.usual
        return rarity * (self._saturated(doc, count, length) - self._saturated(doc, presumed, length))

    def _statement(self, body: str, words: list[str]) -> dict[str, float]:
        """Whether a turn tells something: it does not ask back, says more than a word, and names a time if asked."""
        worth: dict[str, float] = {}
        if self.signals.statements and body.rstrip().endswith("?"):
            worth["asks back"] = -QUESTION_BACK
        if self.signals.substance:
            worth["substance"] = SUBSTANCE * log1p(min(SUBSTANCE_WORDS, len(set(words) - STOP)))
        if self.signals.times_told and self.question.asks_when and _TIME.search(body.lower()):
            worth["tells when"] = STATES_TIME
        return worth

    def _covered(self, doc: int, present: set[int]) -> float:
        """The share of the question that a text holds, a turn together with its neighbours. Unknown words count too."""
        present = present | {self.question.spelt[at] for at in present if at in self.question.spelt}
        present -= self._absent_codes
        if doc in self.turns:
            present = present | {
                self.question.spelt.get(at, at)
                for (at, _, _), counts in zip(self.followed, self.counts, strict=True)
                if doc in counts
            }
        return sum(self._worth[at] for at in present) / (sum(self._worth) or 1.0) * self._named

    @cached_property
    def _worth(self) -> list[float]:
        """How much of the question each word is. A word that no text holds may be one that says little anyway."""
        counts = list(self.candidates.counts)
        for at, word in self.question.spelt.items():
            counts[word] = max(counts[word], counts[at])
        rarities = [self.rarity(count) for count in counts if count]
        unknown = sum(rarities) / len(rarities) if rarities else 1.0
        return [
            0.0 if at in self._needless else self.rarity(count) if count else unknown for at, count in enumerate(counts)
        ]

    @cached_property
    def _needless(self) -> frozenset[int]:
        """Words that a text may do without: those that say when, and those written together here alone."""
        return self.question.times | self.question.joined

    @cached_property
    def _absent_codes(self) -> frozenset[int]:
        """The words of codes (`OPS-1184`) that no text holds: in another code they say nothing."""
        absent = [code for code in self.question.codes if not self._hold_together(code)]
        return frozenset(at for code in absent for at in code)

    def _hold_together(self, code: tuple[int, ...]) -> bool:
        """Whether a text has these words one after the other, as far as their places are known."""
        if not all(self.candidates.counts[at] for at in code):
            return False
        if not self.candidates.common.isdisjoint(code):
            return True
        first, *rest = (self.candidates.positions[at] for at in code)
        return any(
            all(place + step in of_word.get(doc, ()) for step, of_word in enumerate(rest, 1))
            for doc, places in first.items()
            for place in places
        )

    @cached_property
    def _named(self) -> float:
        """One, or less where the question names something that no text holds."""
        absent = any(not self.candidates.counts[at] for at in self.question.names) or bool(self._absent_codes)
        absent = absent or any(
            not by_doc and _IDENTIFIER.fullmatch(literal)
            for literal, by_doc in zip(self.question.literals, self.candidates.literals, strict=False)
        )
        return NAME_ABSENT if absent else 1.0


def median(values: Iterable[float]) -> float:
    """The middle value; `statistics` takes longer to import than a search does."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else 1.0
