"""Whether a text plainly corrects another: the same subject, another value, and words that say so.

Two texts are laid beside each other, word by word. A correction shares the subject and differs in one place, the value;
two texts that differ in two places ("staging … 16", "production … 14") are about two things. The words of correction
are those of twelve languages. They come in classes: a heading ("correction:"), a change ("now"), a move ("switched
to"), and a contrast, with the old value beside it ("not 14", "14 की जगह"). A word of addition ("also") speaks against,
and a question corrects nothing.

Nothing is hidden by this: the answer to a write names what it seems to correct, and the writer decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import pairwise, takewhile
from math import ceil

from limpet import limits, prompts
from limpet.catalogue.ids import short_id
from limpet.catalogue.operation import Context, Json
from limpet.light import datetime, re
from limpet.memory.correction_words import (
    ADDITION,
    AFTER,
    BEFORE,
    BESIDE,
    CHANGE,
    CONDITION,
    CUES,
    EARLIER,
    HEADING,
    IDLE,
    LATER,
    MOVE,
    NUMBERS,
    REASON,
)
from limpet.model import MEMORY, NOTE, Entry, EntryName, moment, trusted, written_at
from limpet.record import NamedTuple
from limpet.store import Listing, Words
from limpet.text import words as analyse
from limpet.text.safe import as_name

MARK = "\0change"  # in a text, in place of a word of change
NEAR = 3  # words beside a contrast among which the old value is
SENTENCE_WORDS = 60  # of a sentence that is compared; longer ones are no plain facts
SENTENCES = 12  # of a text that are compared
SUBJECT = 0.6  # of what is not the value that both must share
SHARED = 0.35  # of the older text that both must share
WEAK, STRONG = 0.3, 0.8  # weights: of a short word, and of one that makes a value, as every sign that is a word does
LOST_MOST = 2  # words of the older value, where the newer names the rest in another order
UNLIKE_MOST = 4  # long words of an older sentence without a counterpart, if little else is in it
DENIED = 0.66  # of what the older text says that the newer must name to deny it
FAMILY_CHARS, FAMILY = 5, 0.7  # letters, and their share of a word, with which two forms of one word begin
NEW_MOST = 3  # words of a new value; more are a text of its own
ASIDE = 0.9  # weight of words that a change may add without a heading or a contrast
PLAIN = 0.75  # of two texts without words of correction that must be shared for the newer to go first
_SENTENCE_END = re.compile("(?<=[.!?\u3002\uff01\uff1f\u0964])\\s+|(?<=[\u3002\uff01\uff1f])|\\n+|;\\s+")
_QUOTED = re.compile(
    "\"[^\"]+\"|“[^”]+”|„[^“”]+[“”]|«[^»]+»|»[^«]+«|「[^」]+」|(?<!\\w)'(?:[^']|\\b'\\b)+'(?!\\w)|`[^`]+`"
)
_ASKS = ("?", "\uff1f", "\u061f")
_PLAIN_END, _PLAIN_CUT = re.compile("([.!?])\\s+"), re.compile("\n+|;\\s+")
_PLAIN_WORD = re.compile("[A-Za-z0-9]+|\n")
_AGES = 1 << 50  # milliseconds, more than any time stamp
_NO_TERMS: frozenset[str] = frozenset()
_TELLING = frozenset((CHANGE, BEFORE, AFTER, BESIDE))
_NUMBER_TERMS = frozenset(str(term) for term in analyse.terms(sorted(NUMBERS)))
_SIDES = tuple(frozenset(map(str, analyse.terms(sorted(words)))) for words in (EARLIER, LATER))
_LONG_WORD = 4  # letters; shorter words are mostly articles and the like, in many languages


class _Sentence:
    """A sentence by its words, without its cues. What most sentences are not asked for is made when it is."""

    __slots__ = ("_strong", "_weights", "_words", "every_term", "text", "tokens")

    def __init__(self, text: str, tokens: list[str], terms: list[str], words: list[str] | None = None) -> None:
        self.text = text
        self.tokens = tokens
        self.every_term = terms
        self._words = words  # as they are written, where they are as many
        self._weights: Mapping[str, float] | None = None
        self._strong: list[str] | None = None

    @property
    def terms(self) -> list[str]:
        """Those that are compared."""
        return self.every_term[:SENTENCE_WORDS]

    @property
    def weights(self) -> Mapping[str, float]:
        """Of all words."""
        if self._weights is None:
            words = self._words
            self._weights = _weights(self.text) if words is None else _plain_weights(words, self.every_term)
        return self._weights

    @property
    def strong(self) -> list[str]:
        """The terms of weight that are no words of cues."""
        if self._strong is None:
            weights, in_cues = self.weights, _cue_words()
            both = zip(self.tokens[:SENTENCE_WORDS], self.every_term, strict=False)
            self._strong = [term for word, term in both if weights.get(term, 0.0) >= STRONG and word not in in_cues]
        return self._strong


class _Reading(NamedTuple):
    """A sentence as it is compared: its terms in order, and which classes of cues it has."""

    terms: tuple[str, ...]  # without cues; MARK where one of change was
    weights: Mapping[str, float]
    cues: frozenset[str]
    contrasted: frozenset[int]  # places of terms beside a contrast, where an old value may be
    beside: frozenset[int]  # places before a contrast that may also follow the old value
    contrasts: frozenset[int]  # places of the words of a contrast among the terms
    reason_at: int  # from which term on a reason follows
    sentence: str
    strong: tuple[str, ...]  # the terms of weight, in order


class _Difference(NamedTuple):
    shared: float  # weight of what both have
    total: float  # weight of the older text
    lost: float  # weight of its values that the newer says differently
    slots: int  # places of such values
    exchanged: tuple[frozenset[str], ...]  # what the older says in those where the newer has a value too
    changed: bool  # whether the newer has another value there
    first: bool  # whether the first of them begins the text: that is its subject rather than its value
    added: float  # weight of what the newer adds
    removed: frozenset[str]  # terms of the slots
    shared_figures: bool  # whether a figure outside of the slots is the same


# --- cues -------------------------------------------------------------------------------------------------------------


@lru_cache
def _cues() -> Mapping[str, tuple[tuple[tuple[str, ...], str], ...]]:
    """Cues as words, longest first, by their first word."""
    by_first: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for classes in CUES.values():
        for kind, cues in classes.items():
            for cue in cues.split(","):
                tokens = tuple(_tokens(cue))
                kinds = (MOVE, CHANGE) if kind == MOVE else (kind,)
                by_first.setdefault(tokens[0], []).extend((tokens, each) for each in kinds)
    return {first: tuple(sorted(cues, key=lambda cue: -len(cue[0]))) for first, cues in by_first.items()}


@lru_cache
def _cue_words() -> frozenset[str]:
    return frozenset(word for cues in _cues().values() for cue, _ in cues for word in cue)


def _tokens(text: str) -> list[str]:
    return analyse.whole_words(analyse.fold(text))


def _cues_in(tokens: Sequence[str]) -> Iterator[tuple[int, int, frozenset[str]]]:
    """The cues of a sentence: where, how many words, and its classes. Of those that begin at a word, the longest."""
    by_first = _cues()
    if by_first.keys().isdisjoint(tokens):
        return
    past = 0
    for at, token in enumerate(tokens):
        if at >= past and token in by_first:
            length, kinds = _cue_at(tokens, at)
            past = at + length
            if length:
                yield at, length, kinds


def _cue_at(tokens: Sequence[str], at: int) -> tuple[int, frozenset[str]]:
    """How many words the longest cue at this place has, and its classes; 0 when there is none."""
    length = 0
    kinds: set[str] = set()
    for cue, kind in _cues()[tokens[at]]:
        if len(cue) < length:
            break
        if len(cue) == 1 or tuple(tokens[at : at + len(cue)]) == cue:
            length = len(cue)
            kinds.add(kind)
    return length, frozenset(kinds)


@lru_cache(512)  # the same few entries are compared with every correction
def _read(text: str) -> _Reading:
    sentence = _sentence(text)
    tokens, every_term, weights = sentence.tokens[:SENTENCE_WORDS], sentence.terms, sentence.weights
    terms: list[str] = []
    cues: set[str] = set()
    contrasted: set[int] = set()
    beside: set[int] = set()
    contrasts: set[int] = set()
    reason_at = SENTENCE_WORDS
    read = 0  # tokens
    for at, length, kinds in _cues_in(tokens):
        terms += every_term[read:at]
        read = at + length
        cues |= kinds
        length_kept = 0 if kinds & {HEADING, ADDITION} else 1 if CHANGE in kinds else length
        if kinds & {BEFORE, BESIDE}:
            contrasted.update(range(len(terms) + length_kept, len(terms) + length_kept + NEAR))
        if AFTER in kinds:
            contrasted.update(range(max(0, len(terms) - NEAR), len(terms)))
        if BESIDE in kinds:
            beside.update(range(max(0, len(terms) - NEAR), len(terms)))
        if CHANGE in kinds:
            terms.append(MARK)
        elif not kinds & {HEADING, ADDITION}:
            # "no", "from" and "since" are words like others unless the old value is beside them.
            if kinds & {BEFORE, AFTER, BESIDE}:
                contrasts.update(range(len(terms), len(terms) + length))
            if REASON in kinds and terms:
                reason_at = min(reason_at, len(terms))
            terms += every_term[at : at + length]
    terms += every_term[read:]
    places = (frozenset(contrasted), frozenset(beside), frozenset(contrasts))
    strong = tuple([term for term in terms if weights.get(term, 0.0) >= STRONG])
    return _Reading(tuple(terms), weights, frozenset(cues), *places, reason_at, text, strong)


def _names(sentence: str) -> frozenset[str]:
    """Terms that begin with a capital inside the sentence."""
    words = [place.group() for place in analyse.places(sentence)][1:]
    return frozenset(analyse.term(folded) for word in words if word[:1].isupper() for folded in _tokens(word))


def _weights(sentence: str) -> dict[str, float]:
    """How much each term says. Short words are mostly articles and the like, in many languages; a figure, a name with a
    capital inside a sentence and the last word of one are values, however short."""
    if sentence.isascii():
        return dict(_sentence(sentence).weights)
    places = list(analyse.places(sentence))
    weights: dict[str, float] = {}
    for number, place in enumerate(places):
        word = place.group()
        plain = word.islower() and word.isalpha() and len(word) < _LONG_WORD
        name = not word.islower() and number > 0 and word.isalpha() and not analyse.is_atom(word)
        last = number == len(places) - 1 and not analyse.is_atom(word)
        strong = (
            any(char.isdigit() for char in word)
            or word in NUMBERS
            or name
            or last
            or (len(word) >= _LONG_WORD and not plain)
        )
        weight = 1.0 if strong else STRONG if analyse.is_atom(word) and word not in IDLE else WEAK
        for folded in _tokens(word):
            term = analyse.term(folded)
            weights[term] = max(weights.get(term, 0.0), weight)
    return weights


def _plain_weights(words: Sequence[str], terms: Sequence[str]) -> dict[str, float]:
    """The same for ASCII, where every word is one of the index and none is a word by itself alone."""
    weights: dict[str, float] = {}
    last = len(words) - 1
    for number, (word, term) in enumerate(zip(words, terms, strict=True)):
        strong = (
            len(word) >= _LONG_WORD
            or number == last
            or not word.isalpha()
            or word in NUMBERS
            or (number > 0 and not word.islower())
        )
        if strong or term not in weights:
            weights[term] = 1.0 if strong else WEAK
    return weights


@lru_cache(128)  # the texts of a page are compared with each other
def _sentences(text: str) -> tuple[str, ...]:
    return tuple(_first_sentences(text))


def _first_sentences(text: str) -> Iterator[str]:
    # For ASCII the same, several times as quick: signs are looked for, not what is before each place.
    parts = _PLAIN_CUT.split(_PLAIN_END.sub("\\1\n", text)) if text.isascii() else _SENTENCE_END.split(text)
    for number, sentence in enumerate(part for part in parts if part and part.strip()):
        if number == SENTENCES:
            return
        yield sentence.strip()


def _sentence(text: str) -> _Sentence:
    words = analyse.plain_words(text) if text.isascii() else None
    tokens = _tokens(text) if words is None else list(map(str.lower, words))
    return _Sentence(text, tokens, list(map(analyse.term, tokens)), words)


@lru_cache(128)  # the newest texts are compared with every correction
def _compared(text: str) -> tuple[_Sentence, ...]:
    """The sentences of an older text."""
    sentences = _sentences(text)
    if not text.isascii():
        return tuple(map(_sentence, sentences))
    words = _PLAIN_WORD.findall("\n".join(sentences))  # one search is quicker than one for each sentence
    words.append("\n")
    tokens = list(map(str.lower, words))
    terms = list(map(analyse.term, tokens))
    parts = []
    begin = 0
    for sentence in sentences:
        end = tokens.index("\n", begin)
        parts.append(_Sentence(sentence, tokens[begin:end], terms[begin:end], words[begin:end]))
        begin = end + 1
    return tuple(parts)


# --- comparing --------------------------------------------------------------------------------------------------------


def corrects(newer: str, older: str, shared_key: float = 0.0) -> bool:
    """Whether one sentence of the newer text plainly corrects one of the older. `shared_key` is the weight of words
    that the keys of both share."""
    correction = _correction(newer)
    return correction is not None and _one_corrected(correction, older, shared_key)


class _Claim(NamedTuple):
    """A sentence that may correct one of another text."""

    reading: _Reading
    terms: frozenset[str]
    by_value: bool  # whether it corrects nothing but what has one of these:
    contrasted: frozenset[str]  # terms beside a contrast, where an old value may be
    apart: frozenset[str]  # terms that are elsewhere too, or may be


class _Correction(NamedTuple):
    """The sentences of a text that may correct something: all of them under a heading, else those with a cue."""

    claims: tuple[_Claim, ...]
    heading: bool
    by_value: bool  # whether all of them correct nothing but what has one of these:
    contrasted: frozenset[str]


@lru_cache(128)
def _correction(text: str) -> _Correction | None:
    """None where nothing in the text says that it corrects another."""
    sentences = [sentence for sentence in _sentences(text) if not sentence.endswith(_ASKS)]
    said = [_cues_of(_QUOTED.sub(" ", sentence)) for sentence in sentences]  # what is quoted, another says
    heading = any(HEADING in cues for cues in said)
    telling = tuple(
        reading
        for sentence, cues in zip(sentences, said, strict=True)
        if heading or cues & _TELLING
        for reading in (_read(sentence),)
        if reading.terms
    )
    claims = tuple(_claim(new, heading) for new in telling)
    contrasted = _NO_TERMS.union(*(claim.contrasted for claim in claims))
    return _Correction(claims, heading, all(claim.by_value for claim in claims), contrasted) if claims else None


def _claim(new: _Reading, heading: bool) -> _Claim:
    by_value = ADDITION in new.cues or not (heading or CHANGE in new.cues)
    at_contrast = new.contrasted | new.beside
    contrasted = frozenset(term for at, term in enumerate(new.terms) if at in at_contrast)
    apart = frozenset(term for at, term in enumerate(new.terms) if at not in new.contrasted | new.contrasts)
    return _Claim(new, frozenset(new.terms), by_value, contrasted, apart)


def _cues_of(sentence: str) -> set[str]:
    return {kind for _, _, kinds in _cues_in(_tokens(sentence)[:SENTENCE_WORDS]) for kind in kinds}


def _one_corrected(correction: _Correction, older: str, shared_key: float) -> bool:
    values = correction.contrasted if older.isascii() else _NO_TERMS  # elsewhere parts of words have weights too
    for sentence in _compared(older):
        if correction.by_value and values and values.isdisjoint(sentence.every_term):
            continue  # so most have nothing that is corrected
        claims = _possible(correction, sentence, shared_key)
        old = _read(sentence.text) if claims else None
        for new, terms, *_ in claims if old and old.terms else ():
            common = _common(old, terms) if old else 0.0
            if common + shared_key >= STRONG and old and _corrects(new, old, correction.heading, shared_key, common):
                return True
    return False


def _possible(correction: _Correction, old: _Sentence, shared_key: float) -> list[_Claim]:
    """The claims that may correct a sentence, by its words alone: mostly none, and it need not be read."""
    weights = old.weights
    values = {term for term in correction.contrasted if weights.get(term, 0.0) >= STRONG}
    if correction.by_value and not values:
        return []
    claims = [
        claim
        for claim in correction.claims
        if (
            not claim.contrasted.isdisjoint(values) and _may_concern(claim, old, shared_key)
            if claim.by_value
            else _weight(old, claim.terms & weights.keys()) + shared_key >= STRONG
        )
    ]
    words = _long_words(old) if claims else _NO_TERMS
    return [claim for claim in claims if _may_share(words, claim.terms, shared_key)]


def _may_concern(claim: _Claim, old: _Sentence, shared_key: float) -> bool:
    """Whether a sentence with an old value may have the subject too, or all of it may be denied."""
    weights = old.weights
    both = [term for term in claim.terms & weights.keys() if term in claim.apart or weights[term] < STRONG]
    common = _weight(old, both) + shared_key
    if common >= STRONG and common >= SHARED * (STRONG * len(old.strong) + shared_key):
        return True
    begun = _by_beginning(claim.reading.terms)
    unnamed = sum([term[:FAMILY_CHARS] not in begun for term in old.strong])
    return unnamed <= (len(old.terms) // 2 if BESIDE in claim.reading.cues else 0)


def _weight(old: _Sentence, terms: Iterable[str]) -> float:
    """What an older sentence may have in common with these of its terms, at most."""
    return sum([old.weights[term] * old.every_term.count(term) for term in terms]) + 1e-9


def _common(old: _Reading, terms: frozenset[str]) -> float:
    """The weight of what an older sentence may have in common with these terms, in any order."""
    weights = old.weights
    return sum([weights.get(term, 0.0) for term in old.terms if term in terms]) + 1e-9


def _may_share(words: frozenset[str], terms: frozenset[str], shared_key: float) -> bool:
    """Whether a sentence with these words can have enough in common with one of a correction: most have not, and need
    not be read. Long words are what both must share; a short one may be a name, of which few are in a sentence."""
    shared = len(words & terms) + shared_key
    return shared >= SHARED * len(words) or len(words) - shared <= UNLIKE_MOST


def _long_words(sentence: _Sentence) -> frozenset[str]:
    both = zip(sentence.tokens[:SENTENCE_WORDS], sentence.every_term, strict=False)
    return frozenset([term for word, term in both if len(word) >= _LONG_WORD or word.isdigit()]).difference(_cues())


def _corrects(new: _Reading, old: _Reading, heading: bool, shared_key: float, common: float) -> bool:
    """`common` is the most that both can share: with less than a word of weight there is no subject, and no call."""
    contrast = _old_value(new, old)
    apart = not heading and (CONDITION in new.cues - old.cues or _other_side(new, old))
    sure = heading or bool(contrast)
    if apart or not (sure or CHANGE in new.cues) or (ADDITION in new.cues and not contrast):
        return False
    in_other_words = (
        (contrast and _denied(new, old))
        or (CHANGE in new.cues and (_said_differently(new, old) or _another_version(new, old, contrast)))
        or (MOVE in new.cues and _moved(new, old))
        or (CHANGE in new.cues and _taken_over(new, old))
    )
    if in_other_words:
        return True
    terms = new.terms
    if contrast:  # the old value is none of what both share
        dropped = contrast | new.contrasts
        terms = tuple([term for at, term in enumerate(new.terms) if at not in dropped])
        common = _common(old, frozenset(terms))
    if common + shared_key < max(STRONG, SHARED * (_sum(old.terms, old.weights) + shared_key)):
        return False
    behind = new.terms[new.reason_at : new.reason_at + 1]
    reason = SENTENCE_WORDS if sure or old.weights.keys() & behind else new.reason_at
    difference = _compare(terms[:reason], new.weights, old)
    if not difference.changed or not _same_subject(difference, shared_key):
        return False
    if sure:
        values = frozenset([new.terms[at] for at in contrast])
        single = len(difference.exchanged) <= 1 or not values.isdisjoint(difference.removed)
        return single and (heading or not _another_subject(difference, values))
    plain = difference.slots <= 1 and difference.added <= ASIDE
    figures = any(term.isdigit() for term in difference.removed)
    return plain and not difference.first and (figures or not difference.shared_figures)


def _another_subject(difference: _Difference, values: frozenset[str]) -> bool:
    """Whether another place differs too, beside the old values that the newer text names: "the release of
    May ships the printer, not the parser"."""
    aside = [slot for slot in difference.exchanged if values.isdisjoint(slot)]
    return any(not all(map(analyse.is_atom, slot)) for slot in aside)


def _denied(new: _Reading, old: _Reading) -> bool:
    """Whether the newer names what the older says, in any order, and that it is not so: nearly all of it beside "no
    longer", all of it and another value beside "not"."""
    ahead = old.strong
    by_beginning = _by_beginning(new.terms)
    named = [
        term for term in ahead if any(_is_family(term, word) for word in by_beginning.get(term[:FAMILY_CHARS], ()))
    ]
    if len(named) < 2:  # a subject and its value
        return False
    if BESIDE in new.cues:
        return len(named) >= DENIED * len(ahead)
    gained = [term for term in new.strong if term not in old.weights]
    return len(named) == len(ahead) and 0 < len(gained) <= NEW_MOST


@lru_cache(64)  # one text is compared with many
def _by_beginning(terms: tuple[str, ...]) -> Mapping[str, Sequence[str]]:
    begun: dict[str, list[str]] = {}
    for term in terms:
        begun.setdefault(term[:FAMILY_CHARS], []).append(term)
    return begun


def _is_family(term: str, word: str) -> bool:
    if term == word:
        return True
    least = max(FAMILY_CHARS, ceil(FAMILY * max(len(term), len(word))))
    return min(len(term), len(word)) >= least and term[:least] == word[:least]


def _moved(new: _Reading, old: _Reading) -> bool:
    """Whether the subject of the older has another value after a word that says that it moved: "the standup moved to
    Thursday", "we moved the standup to Thursday"."""
    at = new.terms.index(MARK)
    ahead = [term for term in new.terms[:at] if _is_strong(new, term)]
    # What is short, and not in the older text, is an auxiliary verb.
    before = [term for term in ahead if len(term) > _LONG_WORD or analyse.is_atom(term) or term in old.weights]
    after = [term for term in new.terms[at + 1 :] if _is_strong(new, term)]
    subject = before or after[:1]
    gained = [term for term in (after if before else after[1:]) if term not in old.weights]
    about = old.strong[:1]
    familiar = [term for term in subject if any(_is_family(term, word) for word in old.weights)]
    is_about = any(_is_family(term, word) for term in subject for word in about)
    return is_about and len(familiar) == len(subject) and 0 < len(gained) <= NEW_MOST


def _taken_over(new: _Reading, old: _Reading) -> bool:
    """Whether another name does what the first word of the older text does: "from now on Tom tags the releases"."""
    who = old.terms[:1]
    if who[0] in new.terms:
        return False
    named = new.strong
    rest = [term for term in old.strong if term not in who]
    same = [term for term in rest if any(_is_family(term, word) for word in named)]
    gained = [term for term in named if not any(_is_family(term, word) for word in old.weights)]
    enough = len(same) > 1 and len(same) >= DENIED * len(rest)
    return enough and len(gained) == 1 and gained[0] in _names(new.sentence)


def _said_differently(new: _Reading, old: _Reading) -> bool:
    """Whether the newer text names all that the older does, in another order, with another value after its word of
    change: "we switched to X to build …"."""
    ahead, behind = old.strong, new.strong
    lost = tuple([term for term in ahead if term not in behind])
    values = {after for mark, after in pairwise(new.terms) if mark == MARK and after not in old.weights}
    gained = {term for term in behind if term not in old.weights}
    at_the_end = 0 < len(lost) <= LOST_MOST and lost == ahead[-len(lost) :] and len(ahead) > len(lost) + 1
    return at_the_end and gained == values != set()


def _other_side(new: _Reading, old: _Reading) -> bool:
    """Whether the two are about the time before something and the time after it."""
    before, after = [(not side.isdisjoint(old.weights), not side.isdisjoint(new.weights)) for side in _SIDES]
    return (before, after) in (((True, False), (False, True)), ((False, True), (True, False)))


def _another_version(new: _Reading, old: _Reading, contrast: frozenset[int]) -> bool:
    """Whether both say a name and a figure after it, the name the same and the figure not, and the newer speaks of
    nothing else, or says everything else that the older does: "we are on Postgres 16 now"."""
    older = dict(_versions(old.terms))
    named = {new.terms[at] for at in contrast}
    plain = [term for term in new.terms if term != MARK]
    for name, figures in _versions(plain):
        if older.get(name, figures) == figures or old.weights.get(name, 0.0) < STRONG:
            continue
        besides = [term for term in plain if term not in (name, *figures) and term not in old.weights]
        if any(map(_is_figure, besides)) or (named and named.isdisjoint(older[name])):
            continue  # another value is what is new, and this figure is the subject's
        short = all(analyse.is_atom(term) or (len(term) <= _LONG_WORD and not _is_name(new, term)) for term in besides)
        if len(name) >= _LONG_WORD and short and sum(map(analyse.is_atom, besides)) <= 1:
            return True
        rest = [term for term in old.strong if term not in older[name]]
        if len(rest) > 1 and all(term in new.weights for term in rest) and len(besides) <= NEW_MOST:
            return True
    return False


def _is_name(reading: _Reading, term: str) -> bool:
    """Whether it is a short word with the weight of a name: "server B"."""
    return len(term) < _LONG_WORD and _is_strong(reading, term)


def _versions(terms: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each name before figures, with them."""
    for at, (name, after) in enumerate(pairwise(terms)):
        if _is_figure(after) and not _is_figure(name):
            yield name, tuple(takewhile(_is_figure, terms[at + 1 :]))


def _is_figure(term: str) -> bool:
    return term[:1].isdigit()


def _same_subject(difference: _Difference, shared_key: float) -> bool:
    shared = difference.shared + shared_key
    rest = difference.total - difference.lost + shared_key
    return shared >= STRONG and shared >= SUBJECT * rest and shared >= SHARED * (difference.total + shared_key)


def _old_value(new: _Reading, old: _Reading) -> frozenset[int]:
    """Where the newer text names a value of the older beside a contrast."""
    for places in (new.contrasted, new.beside):
        named = {at for at in places if at < len(new.terms) and old.weights.get(new.terms[at], 0.0) >= STRONG}
        if named:
            return frozenset(named)
    return frozenset()


def _compare(newer: Sequence[str], weights: Mapping[str, float], old: _Reading) -> _Difference:
    shared = lost = added = 0.0
    slots = 0
    exchanged: list[frozenset[str]] = []
    changed = first = shared_figures = False
    removed: set[str] = set()
    for what, a, b, c, d in (
        import_module("difflib").SequenceMatcher(None, old.terms, newer, autojunk=False).get_opcodes()
    ):
        before, after = old.terms[a:b], newer[c:d]
        weighs, gained = _sum(before, old.weights), _sum(after, weights)
        if what == "equal":
            shared += weighs
            shared_figures = shared_figures or any(term.isdigit() for term in before)
        elif what == "insert":
            added += gained
        elif MARK in after and gained < STRONG and a > 0:
            lost += weighs  # a word of change in place of the verb
        elif weighs < STRONG and not (before and _NUMBER_TERMS.intersection(after)):
            added += gained
        else:
            slots += 1
            exchanged += [frozenset(before)] if gained >= STRONG else []
            lost += weighs
            removed.update(before)
            first = first or a == 0
            changed = changed or gained >= STRONG
            added += max(0.0, gained - max(weighs, 2.0))
    # A value that the older lost counts as changed where the newer has one in another place.
    changed = changed or (slots > 0 and added >= STRONG)
    total, gone, places = _sum(old.terms, old.weights), frozenset(removed), tuple(exchanged)
    return _Difference(shared, total, lost, slots, places, changed, first, added, gone, shared_figures)


def _sum(terms: Sequence[str], weights: Mapping[str, float]) -> float:
    return sum(weights.get(term, 0.0) for term in terms)


# --- what a write corrects --------------------------------------------------------------------------------------------


def proposed(ctx: Context, kind: str, text: str, own: str | None = None) -> EntryName | None:
    """The open note or memory that a new text plainly corrects: the newest of those that it does.

    It costs a search, so texts without words of correction are not looked at further.
    """
    correction = _correction(text)
    if correction is None:
        return None
    listing = Listing((NOTE, MEMORY), limit=limits.CORRECTIONS_COMPARED, now=ctx.now)
    entries = {
        (entry.kind, entry.key): entry
        for query in list(_lookups(correction))[: limits.CORRECTION_QUERIES]
        for entry in ctx.store.entries.matching(ctx.scope, listing, query)
    }
    for entry in sorted(entries.values(), key=lambda entry: (written_at(entry), entry.key), reverse=True):
        name = EntryName(entry.kind, entry.key)
        if (
            name != (kind, own)
            and trusted(entry.origin)
            and len(entry.content) <= limits.NOTE_MAX_CHARS
            and _one_corrected(correction, entry.content, _shared_key(own, entry))
        ):
            return name
    return None


def _lookups(correction: _Correction) -> Iterator[Words]:
    """The words by which the store finds what may be corrected. Under a heading one word is enough. Beside a contrast
    one of the words there is the old value, and one of the others is its subject. A text with a word of change alone
    says what the older did, but for the new value."""
    if correction.heading:
        strong = {term for claim in correction.claims for term in claim.reading.strong}
        if strong:
            yield Words(tuple((term,) for term in _longest(strong)[: limits.CORRECTION_WORDS]), every=False)
        return
    for new, *_ in correction.claims:
        for places in (new.contrasted, new.beside):
            near = {new.terms[at] for at in places if at < len(new.terms)} - {MARK}
            values = {term for term in near if len(term) >= _LONG_WORD - 1 or _is_strong(new, term)}
            subject = {term for term in new.terms if _is_strong(new, term)} - values
            if values and subject:
                yield Words((_longest(values), _longest(subject)[: limits.CORRECTION_WORDS - NEAR]))
        if CHANGE in new.cues:
            longest = _longest({term for term in new.terms[: new.reason_at] if _is_strong(new, term)})
            if longest:
                yield Words((longest[: NEW_MOST + 1],))  # of any so many words one is in the older text too


def _is_strong(reading: _Reading, term: str) -> bool:
    return reading.weights.get(term, 0.0) >= STRONG


def _longest(terms: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(terms, key=lambda term: (-len(term), term)))


def since(ctx: Context, text: str, after: datetime) -> list[Entry]:
    """Notes and memory that were written later and plainly correct a sentence of the text, the newest first."""
    listing = Listing((NOTE, MEMORY), limit=limits.CORRECTIONS_COMPARED, now=ctx.now)
    return [
        entry
        for entry in ctx.store.entries.list(ctx.scope, listing).entries
        if moment(written_at(entry)) > after
        and trusted(entry.origin)
        and len(entry.content) <= limits.CORRECTION_CHARS
        and corrects(entry.content, text)
    ][: limits.CORRECTIONS_NAMED]


def _shared_key(own: str | None, entry: Entry) -> float:
    """The weight of words that two keys of memory share."""
    if own is None or entry.kind != MEMORY:
        return 0.0
    weights = _weights(entry.key)
    return _sum([term for term in {analyse.term(token) for token in _tokens(own)} if term in weights], weights)


def proposal_json(corrected: EntryName | None, replaced: EntryName | None) -> Json:
    """What an answer says of the entry that a text seems to correct, or has replaced."""
    if replaced is not None:
        return {"replaced": replaced.key}
    if corrected is None:
        return {}
    return {"corrects": corrected.key, "hint": prompts.prompt("corrects").format(id=corrected.key)}


def proposal_text(ctx: Context, corrected: EntryName | None, replaced: EntryName | None) -> str:
    """The same for a model, with ids as it is shown them."""
    if replaced is not None:
        return f"{as_name(short_id(ctx, *replaced))} is replaced."
    return "" if corrected is None else prompts.prompt("corrects").format(id=as_name(short_id(ctx, *corrected))).strip()


# --- the newer before the older ---------------------------------------------------------------------------------------


def supersedes(newer: str, older: str, in_question: frozenset[str] = frozenset()) -> bool:
    """Whether the newer of two texts says something else about the same. `in_question` are terms of a question: who
    asks for the older value itself wants that text."""
    if max(len(newer), len(older)) > limits.NOTE_MAX_CHARS or newer == older:
        return False
    if corrects(newer, older):
        return True
    first, second = ("".join(_sentences(text)[:1]) for text in (newer, older))
    new, old = _read(first), _read(second)
    if ADDITION in new.cues or not new.terms or not old.terms:
        return False
    if _common(old, frozenset(new.terms)) < PLAIN * _sum(old.terms, old.weights):
        return False
    difference = _compare(new.terms, new.weights, old)
    if difference.removed & in_question or difference.first:
        return False
    same = difference.slots == 1 and difference.changed and difference.added <= ASIDE
    return same and difference.shared >= PLAIN * difference.total


def newest_first(entries: Sequence[Entry], query: str = "") -> list[Entry]:
    """The entries in their order, except that of two about the same the newer one comes first."""
    order = in_order([(entry.content, weighty_since(entry)) for entry in entries], query)
    return [entries[at] for at in order]


def weighty_since(entry: Entry) -> int:
    """The time of a text for this order. What came from outside counts as older than all that was written here: an
    imported "Correction:" goes before no text of a person."""
    return written_at(entry) - (0 if trusted(entry.origin) else _AGES)


def in_order(texts: Sequence[tuple[str, int]], query: str = "") -> list[int]:
    """The order of texts with their times, by index: as they are, but the newer of two about the same goes first."""
    in_question = frozenset(map(analyse.term, _tokens(query)))
    bags = [frozenset(map(analyse.term, _tokens(text[: limits.NOTE_MAX_CHARS]))) for text, _ in texts]
    order = list(range(len(texts)))
    for place in range(1, len(order)):
        newer = order[place]
        above = (
            at
            for at in range(place)
            if texts[order[at]][1] < texts[newer][1]
            and 2 * len(bags[order[at]] & bags[newer]) >= len(bags[order[at]])
            and supersedes(texts[newer][0], texts[order[at]][0], in_question)
        )
        if (first := next(above, None)) is not None:
            order.insert(first, order.pop(place))
    return order
