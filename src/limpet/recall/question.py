"""Analysis of questions: to everything in a project (`read`, for recall) and to one text (`terms`, for ask).

Recall needs stems that an index knows, names, times and literal texts. A question to one text is answered by searching
that text, so its terms keep their spelling, and a synonym may stand for a term. Any text is a legal question; the
analysis is bounded, so that ten thousand words cost no more than a few dozen.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, product

from limpet.light import re
from limpet.model import milliseconds, moment
from limpet.record import NamedTuple
from limpet.text import words as analyse

MOST_WORDS = 40  # different words of a question that are searched; the first ones are taken
READ_CHARS = 4_000  # of a question, read for names, times and literals
MOST_LITERALS = 3
SPLIT_MAX_CHARS = 20  # of a word that no text holds, which may be two that are written together
MOST_JOINED, JOINED_MIN_CHARS = 4, 3  # neighbouring words that are also looked for as one word
MOST_SPELT, SPELT_MIN_CHARS = 12, 5  # other spellings and endings of German words that are looked for too
MOST_TERMS = 40  # of a question to one text; the first ones are taken
ACCENTED_MOST = 200  # different letters with accents that are folded
LITERAL_MIN_CHARS = 4
DAY = 86_400_000  # milliseconds
FEW_WORDS = 3  # a query of at most so many words, without a question word, is a list of key words


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Words that say nothing about the subject. Left out of a question unless it has no others.
STOP = _listed(
    "a about above after again all also am an and any are as at be because been before being below between both but "
    "by can could d did didn do does doesn doing don down during each few for from further get got had has have "
    "having he her here hers herself him himself his how i if in into is isn it its itself just let like ll m many me "
    "more most much my myself no nor not now of off on once only or other our ours ourselves out over own please re s "
    "same say says she should so some such t tell than that the their theirs them themselves then there these they "
    "this those through to too under until up us ve very was we were what when where which while who whom whose why "
    "will with would you your yours yourself yourselves"
)
# The same in German, without accents, left out of a question that is German: some of these are English words too (die,
# war, MIT). It is German where it has one of the second list, which are nothing else, or three of the first.
_GERMAN_STOP = _listed(
    "aber als am an auch auf aus bei beim bin bis da damit das dass dem den denn der des die dies diese diesem diesen "
    "dieser dieses doch durch ein eine einem einen einer eines er es euch fur gab gibt hab habe haben hat hatte hatten "
    "hier ich ihm ihn ihnen ihr ihre im ist ja jetzt kann kein keine keinen konnen man mein meine mich mir mit nach "
    "nicht noch nun nur ob oder ohne schon sein seine seit sich sie sind sollen soll uber um und uns unser unsere "
    "unserem unseren unserer vom von vor wann war waren warum was weil welche welchem welchen welcher welches wem wen "
    "wenn wer werden weshalb wie wieder wieso wieviel wir wird wo wofur woher wohin womit wozu wurde wurden zu zum zur"
)
_GERMAN_ALONE = _listed(
    "einem einen eine einer haben ich keine keinen nicht sind und unser unsere unserem unseren unserer wann warum "
    "weil welche welchem welchen welcher welches werden weshalb wie wieso wieviel wir wird wofur woher wohin womit "
    "wozu wurde wurden zum zur"
)
GERMAN_FROM = 3  # different words of the first list
_GERMAN_ENDINGS = ("", "e", "en", "er", "n")
_UMLAUTS = {"a\u0308": "ae", "o\u0308": "oe", "u\u0308": "ue"}  # as they are written without them
_SPELT_OUT = re.compile("(?<![aeq])([aou])e")  # not those of neue, bauen or Quelle
# Characters that ask or join in Chinese and Japanese, where every character is a word.
_ATOM_STOP = frozenset("的了吗嗎呢吧么麼什怎哪们們是我你您在和与與或为為请請のはがをにでとか")
# The same for a question to one text. Fewer: in a log, words like `before`, `no` and `same` say something.
TERM_STOP = _listed(
    "a an and any are as at be been being but by can could did do does doing for from get gets getting give given "
    "had has have having how i in into is it its long many me much my of on or our please s shall should show tell "
    "than that the their them then there these they this those to used uses using was we were what when where which "
    "who whose why will with would you your"
)
# Words of questions, by stem, and what outputs say instead.
_SYNONYMS = {
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
    "zombi": ("defunct",),
}
# Question words, and the word a text uses for what they ask for.
_ASKS_FOR = {"who": "author", "whose": "author", "when": "date", "why": "error"}
_ASKING = _listed("what when where which who whom whose why how did do does is are was were has have can")
_FIRST_PERSON = _listed("i my me mine myself we our us")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_MONTH = {name[:size]: at for at, name in enumerate(_MONTHS, 1) for size in (3, len(name))} | {"sept": 9}
_MONTH |= {"januar": 1, "februar": 2, "marz": 3, "mai": 5, "juni": 6, "juli": 7, "oktober": 10, "dezember": 12}
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_YEAR = re.compile(r"(?:19|20)\d\d")
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_ISO_DAY = re.compile(r"\b((?:19|20)\d\d)-(\d\d)-(\d\d)\b")
_DOTTED_DAY = re.compile(r"\b(\d{1,2})\.(\d{1,2})\.((?:19|20)\d\d)\b")
_AGO = re.compile(r"\b(\d{1,3}|an?|one|two|three|four|five|six|seven) (day|week|month|year)s? ago\b")
_LAST = re.compile(r"\b(last|past|this) (day|week|month|year)\b")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
_WHEN = re.compile(
    r"\s*(?:when|since when|what (?:year|month|date|day|time)|which (?:year|month|day)|how long)\b", re.IGNORECASE
)
_LAST_SESSION = re.compile(
    r"\b(?:last|previous|earlier) session\b|\bleft off\b|\bhand-?off\b|\bwhere did (?:we|i|it) (?:stop|leave)\b"
)
_WAS_SAID = re.compile(
    r"\b(?:did|have|had|has) (?:i|we|you|the user) (?:say|said|tell|told|mention|mentioned|write|written)\b"
)
_QUOTED = re.compile(r"[\"“`]([^\"”`\n]{3,80})[\"”`]")
_ENDS = "'\"`“”\u2018\u2019.,;:?!()[]{}<>"
_TERM_ENDS = _ENDS + "\u2013\u2014"
_TERM_QUOTED = re.compile(r"(?<!\w)['\"“`]([^'\"”`]{3,80})['\"”`](?!\w)")
_TOKEN = re.compile(r"\S+")
SUBWORD = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![a-z])|[A-Z]+(?=[A-Z][a-z])|\d+|[A-Z]")
_INDIC = re.compile("[\u0900-\u0dff]")
_CODE = re.compile(r"[^\W\d_]{2,12}[-_#]\d{2,}(?:[-_.]\w+)*")  # of a ticket, an order, a weakness: OPS-1182
_HEXLIKE = re.compile(r"(?=[a-z]*\d)[0-9a-f]{6,}")


class When(NamedTuple):
    """The times a question names. Months, days and years are calendar names, spans are milliseconds [from, to)."""

    months: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    years: frozenset[int] = frozenset()
    spans: tuple[tuple[int, int], ...] = ()


class Question(NamedTuple):
    words: tuple[str, ...]  # folded, each stem once, in order
    pairs: tuple[tuple[int, int], ...]  # adjacent words, by their indexes
    literals: tuple[str, ...]  # identifiers, paths and quoted texts, which should occur verbatim
    when: When
    asks_when: bool
    first_person: bool
    key_words: bool  # a few words to look up rather than a question
    names: frozenset[int] = frozenset()  # of the words, names of people and things: an answer holds them
    times: frozenset[int] = frozenset()  # of the words, those that say when
    last_session: bool = False  # asks what the last session left
    joined: frozenset[int] = (
        frozenset()
    )  # of the words, other spellings and neighbours written together; a text need not hold them
    text: str = ""  # as it was asked
    asks_said: bool = False  # asks what a person said before
    spelt: Mapping[int, int] = {}  # of the joined, other spellings and endings, each with its word
    codes: tuple[tuple[int, ...], ...] = ()  # the words of each code (`OPS-1182`): another one differs in a part of it

    @property
    def written_together(self) -> frozenset[int]:
        """Of the words, neighbours in one."""
        return self.joined.difference(self.spelt)


def read(text: str, now: int) -> Question:
    head = text[:READ_CHARS]
    folded = analyse.fold(head)
    plain = analyse.whole_words(folded)
    # Texts that were written before the index held whole words are found by their parts.
    parts = [word for word in analyse.words(folded) if len(word) > 1] if _INDIC.search(folded) else []
    every = [*plain, *parts, *analyse.subwords(head)][: 20 * MOST_WORDS]
    idle = _idle(plain)
    sought = [word for word in every if word not in idle] or every
    numbers: dict[str, int] = {}  # by stem, the index of its word
    words: list[str] = []
    for word, stem in zip(sought, analyse.terms(sought), strict=True):
        if stem not in numbers and len(words) < MOST_WORDS:
            numbers[stem] = len(words)
            words.append(word)
    written_apart = len(words)
    spelt: dict[int, int] = {}
    joined = dict.fromkeys(_joined(plain, idle), -1)
    for word, of_word in (joined | _spelt(head, words, german=idle >= _GERMAN_STOP)).items():
        if (stem := analyse.terms([word])[0]) not in numbers:
            if of_word >= 0:
                spelt[len(words)] = of_word
            numbers[stem] = len(words)
            words.append(word)
    asking = "?" in head or (bool(plain) and plain[0] in _ASKING)
    when = _times(folded, plain, now)
    literals = _literals(head, plain)
    times = frozenset(at for at, word in enumerate(words) if any(when) and _says_when(word))
    return Question(
        tuple(words),
        _pairs(plain, numbers),
        (*literals, *(text for text in _spellings(when) if text not in literals)),
        when,
        _WHEN.match(head) is not None,
        not _FIRST_PERSON.isdisjoint(plain),
        not asking and written_apart <= FEW_WORDS,
        frozenset(numbers[stem] for stem in analyse.terms(_names(head)) if stem in numbers) - times,
        times,
        _LAST_SESSION.search(folded) is not None,
        frozenset(range(written_apart, len(words))),
        head,
        _WAS_SAID.search(folded) is not None,
        spelt,
        _codes(head, numbers),
    )


def _codes(head: str, numbers: Mapping[str, int]) -> tuple[tuple[int, ...], ...]:
    """The words of codes, by their indexes: those of which all words are looked for."""
    codes = filter(_CODE.fullmatch, (token.strip(_ENDS) for token in head.split()[: 4 * MOST_WORDS]))
    stems = (analyse.terms(analyse.whole_words(analyse.fold(code))) for code in codes)
    return tuple(dict.fromkeys(tuple(numbers[stem] for stem in of) for of in stems if numbers.keys() >= set(of)))


def _idle(plain: list[str]) -> frozenset[str]:
    """The words that say nothing in a question of this language."""
    german = _GERMAN_STOP.intersection(plain) - STOP
    idle = STOP | _GERMAN_STOP if len(german) >= GERMAN_FROM or german & _GERMAN_ALONE else STOP
    return idle | _ATOM_STOP if not _ATOM_STOP.isdisjoint(plain) else idle


def _spelt(head: str, words: list[str], german: bool) -> dict[str, int]:
    """Words with umlauts as they are written without them; in a German question also the other way round and with
    other endings. Each with the index of its word. The index holds English stems, and no umlauts."""
    if not german and head.isascii():
        return {}
    spelt: dict[str, int] = {}
    for token in head.split()[: 4 * MOST_WORDS]:
        apart = decomposed = unicodedata.normalize("NFD", token.strip(_ENDS).lower())
        for umlaut, plain in _UMLAUTS.items():
            apart = apart.replace(umlaut, plain)
        bare = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
        if apart != decomposed and apart.isalpha() and bare in words:
            spelt[apart] = words.index(bare)
    for at, word in enumerate(words if german else ()):
        if len(word) >= SPELT_MIN_CHARS and word.isalpha():
            bare = _SPELT_OUT.sub(r"\1", word)
            stem = analyse.german_stem(bare)
            for form in (bare, *(stem + ending for ending in _GERMAN_ENDINGS)):
                if form not in words:
                    spelt.setdefault(form, at)
    return dict(islice(spelt.items(), MOST_SPELT))


def _joined(plain: list[str], idle: frozenset[str]) -> list[str]:
    """Neighbouring words written together, as identifiers and names often are: data frame, dataframe."""
    pairs = ((first, second) for first, second in pairwise(plain) if idle.isdisjoint((first, second)))
    fit = (first + second for first, second in pairs if min(len(first), len(second)) >= JOINED_MIN_CHARS)
    return [word for word in fit if word.isalpha() and len(word) <= analyse.WORD_MAX_CHARS][:MOST_JOINED]


def halves(word: str) -> list[tuple[str, str]]:
    """The ways in which a word may be two that somebody wrote together; none for a short one, or one with digits."""
    if not (word.isascii() and word.isalpha()) or len(word) > SPLIT_MAX_CHARS:
        return []
    return [(word[:at], word[at:]) for at in range(JOINED_MIN_CHARS, len(word) - JOINED_MIN_CHARS + 1)]


def _says_when(word: str) -> bool:
    return word in _MONTH or word in _UNIT_DAYS or _DAY.fullmatch(word) is not None or _YEAR.fullmatch(word) is not None


def _names(head: str) -> list[str]:
    """The words, folded, that are written like a name or an identifier. A sentence begins with a capital anyway."""
    tokens = head.split()[: 4 * MOST_WORDS]
    named: list[str] = []
    for before, token in pairwise([".", *tokens]):
        bare = token.strip(_ENDS)
        inside = before[-1] not in ".?!:" and bare[:1].isupper()
        if bare and (inside or any(map(str.isdigit, bare)) or "_" in bare or analyse.subwords(bare)):
            named += analyse.whole_words(analyse.fold(re.sub(r"['\u2019]s$", "", bare)))
    # Where most words have a capital, as in a title, it says nothing.
    return named if 2 * len(named) <= len(tokens) or len(tokens) < FEW_WORDS else []


def _pairs(plain: list[str], numbers: dict[str, int]) -> tuple[tuple[int, int], ...]:
    indexes = [numbers.get(stem, -1) for stem in analyse.terms(plain)]
    return tuple(dict.fromkeys(pair for pair in pairwise(indexes) if min(pair) >= 0))


def _literals(head: str, plain: list[str]) -> tuple[str, ...]:
    """Texts to find verbatim: quotations, and tokens that look like a path, an identifier or a hash."""
    literals = [quoted.strip() for quoted in _QUOTED.findall(head)]
    for token in head.split()[: 4 * MOST_WORDS]:
        bare = token.strip(_ENDS)
        inner = any(not c.isalnum() and c not in "'\u2019-" for c in bare)
        if inner or analyse.subwords(bare) or _HEXLIKE.fullmatch(bare.lower()):
            literals.append(bare)
    if len(plain) == 1:
        literals.append(head.strip())  # a single word may be a part of the word in a text
    long_enough = (text for text in literals if len(text) >= LITERAL_MIN_CHARS)
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
    named = [match.groups() for match in _ISO_DAY.finditer(folded)]
    named += [match.groups()[::-1] for match in _DOTTED_DAY.finditer(folded)]
    spans = [*_spans(folded, now), *filter(None, (_day(*parts) for parts in named))]
    return When(frozenset(months), frozenset(days), frozenset(years) if months or not spans else frozenset(), (*spans,))


def _spellings(when: When) -> list[str]:
    """The one day that a question names, in figures, as texts may write it."""
    days = [moment(start) for start, stop in when.spans if stop - start == DAY]
    dates = [(day.year, day.month, day.day) for day in days]
    dates += islice(product(when.years, when.months, when.days), 2)
    if len(dates) != 1:
        return []
    ((year, month, day),) = dates
    return list(dict.fromkeys((f"{year}-{month:02}-{day:02}", f"{day:02}.{month:02}.{year}", f"{day}.{month}.{year}")))


def _day(year: str, month: str, day: str) -> tuple[int, int] | None:
    try:
        start = milliseconds(f"{year}-{month:0>2}-{day:0>2}T00:00:00+00:00")
    except ValueError:
        return None
    return start, start + DAY


def _spans(folded: str, now: int) -> list[tuple[int, int]]:
    """Spans counted back from today, in UTC."""
    today = datetime.combine(moment(now).date(), datetime.min.time(), UTC)

    def span(first: int, last: int) -> tuple[int, int]:
        start, stop = today - timedelta(days=first), today - timedelta(days=last)
        return milliseconds(start.isoformat()), milliseconds(stop.isoformat())

    spans = []
    if "yesterday" in folded:
        spans.append(span(1, 0))
    if re.search(r"\b(?:today|tonight|this morning)\b", folded):
        spans.append(span(0, -1))
    for match in _AGO.finditer(folded):
        count = _NUMBERS.get(match[1]) or int(match[1])
        size = _UNIT_DAYS[match[2]]
        spans.append(span(min(count * size + size // 2, 20_000), max(count * size - size // 2 - 1, 0)))
    for match in _LAST.finditer(folded):
        size = _UNIT_DAYS[match[2]]
        spans.append(span(size, -1) if match[1] != "last" else span(2 * size, 0))
    return spans


def dated(when: When, at: int) -> float:
    """How well a time fits the times asked for: 0 not at all, 1 for the month, 2 for the day or span."""
    if any(start <= at < stop for start, stop in when.spans):
        return 2.0
    if not when.months and not when.years:
        return 0.0
    day = moment(at)
    if (when.years and day.year not in when.years) or (when.months and day.month not in when.months):
        return 0.0
    if not when.months:
        return 0.5  # a year says little
    return 2.0 if day.day in when.days else 1.0


# --- questions to one text --------------------------------------------------------------------------------------------

_TWO_LOWER = "\u0130"  # the one letter that is two characters in lower case: I with a dot
ABBREVIATION = "<"  # as a stem: any word that the full word begins with


class Term(NamedTuple):
    """A word of a question to one text, found by its stem, or a literal that must occur verbatim."""

    text: str  # folded
    stem: str  # empty for a literal
    weight: float


def folded(text: str) -> str:
    """Lower case, without accents, of the same length, so that positions mean the same in both."""
    if text.isascii():
        return text.lower()
    low = text.replace(_TWO_LOWER, "i").lower()
    for letter in sorted(c for c in set(low) if ord(c) > 127)[:ACCENTED_MOST]:
        base = unicodedata.normalize("NFKD", letter)[:1]
        if base != letter and base.isalpha():
            low = low.replace(letter, base)
    return low


def terms(question: str) -> list[Term]:
    """The terms of a question to one text, in its order, each once."""
    every: dict[str, Term] = {}

    def add(text: str, weight: float, stem: str = "") -> None:
        low = folded(text)
        if low and (low not in every or every[low].weight < weight):
            every[low] = Term(low, stem, weight)

    for quoted in _TERM_QUOTED.findall(question):
        if " " in quoted:
            add(quoted, 1.2)
    plain: list[str] = []
    for token in _TOKEN.findall(question):
        bare = re.sub(r"['\u2019]s$", "", token.strip(_TERM_ENDS)).strip(_TERM_ENDS)
        parts = SUBWORD.findall(bare)
        literal = len(bare) > 2 and (len(parts) > 1 or any(not c.isalnum() for c in bare))
        if literal:
            add(bare, 1.3)
        if literal and bare.isalnum() and sum(part.isdigit() for part in parts) > 1:
            parts = []  # an id such as 58fa3f0b: its parts mean nothing
        numeric = literal and all(part.isdigit() for part in parts)
        for part in parts if not numeric else []:
            low = folded(part)
            if low in TERM_STOP or (literal and len(low) < 2):
                continue
            weight = 0.5 if literal else 1.2 if part[0].isupper() and plain else 1.0
            add(part, weight, term_stem(low))
        for part in parts if numeric else []:
            add(part, 0.25, term_stem(folded(part)))
        joined = folded(plain[-1] + bare) if plain and not literal else ""
        if len(joined) > 5 and plain[-1].isalpha():
            add(joined, 0.9)
        plain.append(bare)
    for token in SUBWORD.findall(question) if not every else ():
        add(token, 1.0, term_stem(folded(token)))
    for name in filter(None, map(_ASKS_FOR.get, map(str.lower, plain))):
        add(name, 0.4, term_stem(name))
    return list(every.values())[:MOST_TERMS]


def phrases(question: str, low: str) -> list[Term]:
    """The longest runs of words of the question that the folded text has word by word: names, titles, dates."""
    query = folded(question)
    spans = [match.span() for match in _TOKEN.finditer(query)][:MOST_TERMS]
    runs: list[Term] = []
    reach = 0
    for first, (start, _) in enumerate(spans):
        best = ""
        for last in range(max(first + 1, reach), len(spans)):
            phrase = query[start : spans[last][1]].strip("'\"`?!.,;: ")
            if phrase not in low:
                break
            best, reach = phrase, last + 1
        content = [word for word in re.findall(r"\w+", best) if word not in TERM_STOP]
        if content and " " in best:
            runs.append(Term(best, "", 0.3 if len(content) == 1 else 0.5 + 0.25 * min(4, len(content))))
    return runs


def synonyms(terms: list[Term]) -> list[tuple[Term, Term]]:
    """Other words an output may use for the same, each with the term it stands for."""
    texts = {term.text for term in terms}
    pairs: list[tuple[Term, Term]] = []
    for term in terms:
        words = [word for word in _SYNONYMS.get(term.stem, ()) if word not in texts]
        pairs += [(Term(word, term_stem(word) if word.isalpha() else "", 0.4 * term.weight), term) for word in words]
        if len(term.text) >= 7 and term.text.isalpha() and term.stem:
            pairs.append((Term(term.text[:4], ABBREVIATION, 0.4 * term.weight), term))
    return pairs


def term_stem(word: str) -> str:
    return analyse.terms([word])[0]
