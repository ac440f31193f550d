"""Words of a text, the same for every store, so that a query finds the same entries in each of them.

Folding is full Unicode case folding. A *word* is a run of letters and digits, without diacritics; characters of
scripts written without spaces (Chinese, Japanese, Thai …) are words of one character each. The signs for vowels split
words of the scripts of India; the index holds the parts, for searches inside words, and before them the *whole words*.
What it holds is the *term* of a word: its English stem, which leaves words of other languages nearly as they are.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

from limpet.light import Any, re

WORD_MAX_CHARS = 24  # longer runs are hashes, base64 and the like: their endings would cost far more than they do
# Marks of a text with such a run, so that a search inside one still finds it. Hashes are the common case, and only a
# search for hexadecimal digits can be meant for them.
LONG = "\u00ff\u00fflong"
LONG_HEX = "\u00ff\u00ffhex"
# The same for texts whose index also has pieces that bridge the cuts: anything up to BRIDGED_CHARS long is within a
# piece, so that it is found there and the text need not be read.
BRIDGED = "\u00ff\u00ffrun"
BRIDGED_HEX = "\u00ff\u00ffhexrun"
BRIDGED_CHARS = WORD_MAX_CHARS // 2 + 1
INFIX_MIN_CHARS = 2  # shorter pieces of words are looked for by reading, not in the index

# Scripts written without spaces between words. Each character is a word of its own.
_ATOM = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
# The letters, signs and digits of the scripts of India, without the strokes that end sentences and abbreviations.
_INDIC = "\u0900-\u0963\u0966-\u096f\u0971-\u0dff"
# Not compiled here but when they are first used: stores that only read entries by name start many times a minute.
_ASCII_WORD = "[a-z0-9]+"
_ASCII_PLACE = "[A-Za-z0-9]+"
_HEX = "[0-9a-f]+"
_HUMP = "[a-z][A-Z]|[A-Z][A-Z][a-z]"
# Letters, then perhaps a number. What has digits among its letters is a key or a hash, and its pieces mean nothing.
# A hump is looked for first, in one pass over the text: most words have none.
_IDENTIFIER = rf"(?<![A-Za-z0-9+=])(?=[A-Za-z]{{0,63}}?(?:{_HUMP}))[A-Za-z]{{3,64}}(?=[0-9]{{0,4}}(?![A-Za-z0-9+=]))"
_PART = "[A-Z]?[a-z]+|[A-Z]+(?![a-z])"
_MOST_PARTS = 8  # of one identifier; what has more is not made of words
_GIST_WORDS, _GIST_MOST, _GIST_LETTERS = 2, 8, 12  # at least so many words, and more while they are short
_GIST_READ, _GIST_CHARS = 600, 4_000  # words and characters of a text that are looked at


def fold(text: str) -> str:
    """Case-folded text for substring search."""
    return (
        text.lower() if text.isascii() else unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    )


def words(folded: str) -> list[str]:
    """The words of a folded text, in order."""
    return re.findall(_ASCII_WORD, folded) if folded.isascii() else _any_word().findall(_bare(folded))


def whole_words(folded: str) -> list[str]:
    """The same with the words of the scripts of India whole, as a reader sees them."""
    return re.findall(_ASCII_WORD, folded) if folded.isascii() else _whole_word().findall(_bare(folded))


def _bare(folded: str) -> str:
    """Without diacritics. Taking signs such as № apart may bring capitals back."""
    return "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c)).casefold()


@lru_cache
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english", 2_000)


@lru_cache
def _german_stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("german", 200)


@lru_cache
def _any_word() -> re.Pattern[str]:
    # Compiled when the first text that is not ASCII comes along: it takes milliseconds, felt at every start.
    return re.compile(f"[{_ATOM}]|[^\\W_{_ATOM}]+")


@lru_cache
def _whole_word() -> re.Pattern[str]:
    return re.compile(f"[{_ATOM}]|[{_INDIC}]+|[^\\W_{_ATOM}{_INDIC}]+")


def places(text: str) -> Iterator[re.Match[str]]:
    """The whole words of a text with their positions; as many as `whole_words`, except for a few signs that split."""
    return re.finditer(_ASCII_PLACE, text) if text.isascii() else _whole_word().finditer(text)


def plain_words(text: str) -> list[str]:
    """The words of a text in ASCII, as they are written."""
    return re.findall(_ASCII_PLACE, text)


def exact(text: str) -> str:
    """A text without case and extra white space: equal for exact duplicates."""
    return " ".join(fold(text).split())


def longest_words(text: str, most: int) -> tuple[list[str], list[str]]:
    """The longest words of a text, each stem once: those of letters, and those with digits, which change when the same
    is said at another time."""
    every = dict.fromkeys(words(fold(text[:_GIST_CHARS])))
    short = [word for word in every if len(word) <= WORD_MAX_CHARS]
    chosen = sorted(filter(str.isalpha, short), key=len, reverse=True)[: 2 * most]
    stems = dict(zip(reversed(terms(chosen)), reversed(chosen), strict=True))
    others = sorted((word for word in short if not word.isalpha()), key=len, reverse=True)
    return [word for word in chosen if word in stems.values()][:most], others[:most]


@lru_cache(4)  # a write asks for that of its text before and after the store does
def gist(text: str) -> tuple[str, ...]:
    """The longest words of letters of a text. One that differs in case, in a number or in a word among the others has
    the same. Where there are no letters, the longest words."""
    every = words(exact(text))[:_GIST_READ]
    possible = {word for word in every if word.isalpha() and len(word) <= WORD_MAX_CHARS} or set(every)
    longest = sorted(possible, reverse=True)
    longest.sort(key=len, reverse=True)
    chosen: list[str] = []
    letters = 0
    for word in longest[:_GIST_MOST]:
        if len(chosen) >= _GIST_WORDS and letters >= _GIST_LETTERS:
            break
        chosen.append(word)
        letters += len(word)
    return tuple(chosen)


def short_words(folded: str) -> list[str]:
    """The words of a text to be indexed: over-long runs cut to pieces, with marks that they were."""
    return _short(words(folded))


def cut(all_words: Iterable[str]) -> list[str]:
    """Words with over-long runs cut to pieces, in their order in the index."""
    return [word[at : at + WORD_MAX_CHARS] for word in all_words for at in range(0, len(word), WORD_MAX_CHARS)]


def _short(all_words: list[str]) -> list[str]:
    if max(map(len, all_words), default=0) <= WORD_MAX_CHARS:
        return all_words
    return sorted({LONG_HEX if is_hex(word) else LONG for word in all_words if len(word) > WORD_MAX_CHARS}) + cut(
        all_words
    )


def subwords(text: str) -> list[str]:
    """The words inside identifiers that are written together (getUserName, HTTPServer), folded.

    The parts between underscores, dots and slashes are words already.
    """
    if re.search(_HUMP, text) is None:
        return []
    inner: list[str] = []
    for token in re.findall(_IDENTIFIER, text):
        parts = re.findall(_PART, token)
        if len(parts) <= _MOST_PARTS and max(map(len, parts), default=0) < len(token):
            inner += [part.lower() for part in parts if len(part) > 1]
    return inner


def index_words(text: str) -> list[str]:
    """What the index is fed for a text: its words in order, the words inside its identifiers, and parts of words."""
    folded = fold(text)
    all_words = whole_words(folded)
    parts = [] if folded.isascii() or re.search(f"[{_INDIC}]", folded) is None else short_words(folded)
    short = _short(all_words)
    if short is all_words:
        return all_words + subwords(text) + parts
    marks = {LONG: BRIDGED, LONG_HEX: BRIDGED_HEX}
    return [marks.get(word, word) for word in short + subwords(text) + parts] + _bridges(all_words)


def _bridges(all_words: list[str]) -> list[str]:
    """Pieces of over-long words around the places where they were cut. They come last, and move no other word."""
    half = WORD_MAX_CHARS // 2
    return [
        word[at + half : at + half + WORD_MAX_CHARS]
        for word in all_words
        for at in range(0, len(word) - WORD_MAX_CHARS, WORD_MAX_CHARS)
    ]


def is_hex(word: str) -> bool:
    return re.fullmatch(_HEX, word) is not None


def terms(tokens: list[str]) -> list[str]:
    """What the index keeps for words."""
    stems: list[str] = _stemmer().stemWords(tokens)
    return stems


@lru_cache(20_000)
def term(word: str) -> str:
    """The same for one word. Most words of a new text are known ones."""
    return terms([word])[0]


def german_stem(word: str) -> str:
    """A German word without its ending. The index holds English stems, which keep it."""
    stem: str = _german_stemmer().stemWord(word)
    return stem


def pieces(word: str) -> list[str]:
    """The endings of a word that a search inside it can start at."""
    return [word[at:] for at in range(max(1, len(word) - INFIX_MIN_CHARS + 1))]


def is_atom(word: str) -> bool:
    return len(word) == 1 and not word.isascii() and re.match(f"[{_ATOM}]", word) is not None
