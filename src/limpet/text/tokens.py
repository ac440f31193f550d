"""How many tokens a text costs a model, estimated without a tokenizer, and the longest beginning that fits.

The text is cut into the same pieces as the o200k tokenizer cuts it: words with the sign before them, three digits at
a time, runs of signs, runs of spaces. What a Latin word costs is found by taking the longest beginning that is a token,
again and again; a filter of 256 KiB knows the tokens (tests/token_filter.py makes it). What any other piece costs is
estimated from its script and length, or from its shape. The costs of pieces are cached: texts share most words.

Measured on manuals, messages of programs and declarations, one half to fit the figures and this half to report: the
totals of the twenty languages with most speakers are from 6 % too low (Marathi) to 3 % too high (English, Hindi), those
of nineteen others within 3 % except Ukrainian (12 % too low), those of code, JSON, logs, tables, base64, hashes and
invented words from 6 % too low (random letters) to 1 % too high.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module

from limpet.light import re

NAME = "estimate(o200k)"

_UNIT = 100  # Costs are whole hundredths of a token, so that adding them in any order gives the same sum.
_LONGEST_PIECE = 96  # In characters, as the pattern below allows. `cut` looks this far past its first guess.
_USUAL_CHARS = 4  # Characters of a token: what has fewer for each is worth counting before it is cut.
_CACHED_CHARS = 1_000  # of a text whose cost is cached
_LONGEST_WORD = 256  # `cut` goes back at most this far for the end of a word before it cuts inside one.
_CACHED = 32_768  # pieces whose cost is remembered: some 3 MB, and more than the words of a long session

VOCABULARY = "vocabulary.bin"
FILTER_BYTES = 1 << 18
_FILTER_MASK = FILTER_BYTES * 8 - 1
SURE_BYTES = 3  # any shorter text counts as a token
_LONGEST_TOKEN = 16  # bytes; hardly any token of letters is longer
_LOOKED_UP_CHARS = 3  # the shortest word that is looked up; shorter ones are tokens
_FURTHER_TOKEN = 110  # what each token after the first costs: the filter takes a few texts for tokens that are none


def _classes() -> bytes:
    """One class letter per byte. Letters beyond ASCII do not get here."""
    table = bytearray(b"p" * 256)  # p: a sign
    for letter, members in (
        ("a", range(0x61, 0x7B)),  # a small letter
        ("A", range(0x41, 0x5B)),  # a capital
        ("0", range(0x30, 0x3A)),
        (" ", b" "),
        ("t", b"\t\v\f"),
        ("n", b"\r\n"),
        ("q", b"'"),
        ("r", b"-=_*#.~+"),  # signs that people repeat to draw a line
        ("c", range(0x80, 0xC0)),  # the rest of a character
        ("P", range(0xC2, 0xC3)),  # a sign of Latin-1
        ("S", range(0xE2, 0xE3)),  # dashes, quotes, arrows, boxes
        ("S", range(0xEE, 0xF0)),  # private use, full-width forms
        ("E", range(0xF0, 0xF8)),  # emoji and rare scripts
    ):
        for member in members:
            table[member] = ord(letter)
    return bytes(table)


_CLASSES = _classes()
# Sets are written so that they have few members: each costs time when a pattern is compiled.
_ASCII_SIGN = r"!-/:-@\[-`{-\x7f\x00-\x08\x0e-\x1f"
_MORE_SIGNS = "\u0080-\u00bf\u2000-\u303f\uff00-\U0010ffff"  # dashes, arrows, brackets, full-width forms, emoji
_SMALL = f"[^\x00-`{{-\x7f{_MORE_SIGNS}]"  # a small letter, or any letter beyond ASCII


def _pattern(small: str, sign: str) -> str:
    """The pieces of a text. Every repetition has an end, so that no piece is long."""
    before = rf"[\t\v\f {_ASCII_SIGN}]?"  # one sign or space belongs to the word after it
    ending = "(?:'[a-z]{1,2}(?![a-z]))?"  # don't, we'll
    mixed = small != "[a-z]"
    return (
        f"{before}[a-z]{{1,24}}{f'(?!{small})' if mixed else ''}{ending}"  # most pieces, so it is tried first
        f"|[0-9]{{1,3}}"
        f"|{before}[A-Z]{{1,24}}{small}{{0,24}}{ending}"
        f"{f'|{before}{small}{{1,24}}{ending}' if mixed else ''}"
        f"| ?[{sign}]{{1,80}}[\r\n]{{0,15}}"
        r"|[ \t\v\f\r\n]{0,80}[\r\n]|[ \t\v\f]{1,80}(?![^ \t\v\f\r\n])|[ \t\v\f]"
    )


_LATIN = re.compile("[\x00-@\\[-`{-\x7f]?[A-Za-z'\u00c0-\u02af\u0300-\u036f\u1e00-\u1eff]+")
# Scripts by their first character: how many letters of a piece the first token covers, and what each further one costs.
_SCRIPTS = (
    ("\x00", 4, 45),  # others that are rare
    ("\u0370", 2, 36),  # Greek
    ("\u0400", 4, 28),  # Cyrillic
    ("\u0530", 2, 48),  # Armenian, Hebrew
    ("\u0600", 2, 28),  # Arabic
    ("\u0700", 2, 60),  # others of its kind
    ("\u0900", 3, 48),  # Devanagari
    ("\u0980", 3, 48),  # Bengali
    ("\u0a00", 2, 80),  # Gurmukhi
    ("\u0a80", 2, 38),  # Gujarati
    ("\u0b80", 2, 34),  # Tamil
    ("\u0c00", 1, 42),  # Telugu
    ("\u0c80", 1, 34),  # Kannada
    ("\u0d00", 1, 30),  # Malayalam
    ("\u0d80", 1, 56),  # Sinhala
    ("\u0e00", 2, 42),  # Thai
    ("\u0e80", 1, 70),  # Lao, Tibetan, Burmese, Georgian …
    ("\u3000", 1, 68),  # kana, with the Chinese characters among them
    ("\u3400", 1, 74),  # Chinese
    ("\uac00", 1, 60),  # Korean
)
_SCRIPT_STARTS = tuple(start for start, *_ in _SCRIPTS)
_FOREIGN = re.compile(f"[^\x00-\u036f\u1e00-\u1eff{_MORE_SIGNS}]")  # letters that are not Latin
# Letters of Ukrainian and Belarusian, and frequent characters of traditional Chinese: the vocabulary has fewer words of
# both than of Russian and of simplified Chinese.
_UKRAINIAN = re.compile("[\u0404\u0406\u0407\u040e\u0454\u0456\u0457\u045e\u0490\u0491]")
_UKRAINIAN_COST = (1, 34)
_TRADITIONAL = re.compile(
    "[這個們為與會時來對沒過還後說經問題開關無檔錯誤執選項設讀寫號碼參數傳輸連線環變將從並當應該於請]"
)
_TRADITIONAL_COST = (1, 106)
_KANA = re.compile("[\u3040-\u30ff]")


def count(text: str) -> int:
    """About how many o200k tokens the text is, rounded up."""
    return -(-_cost(text) // _UNIT)


def fits(text: str, budget: int) -> bool:
    """Whether the text has at most so many tokens. As a token has at least one byte, a short text is not counted."""
    return _surely_fits(text, budget) or count(text) <= budget


def _surely_fits(text: str, budget: int) -> bool:
    return len(text) <= budget and (text.isascii() or len(text.encode("utf-8", "surrogatepass")) <= budget)


def cut(text: str, budget: int) -> tuple[str, bool]:
    """The longest beginning of at most `budget` tokens, ending with a line or a word, and whether anything is missing.

    A word that is longer than `_LONGEST_WORD` or than the whole budget is cut inside, but not inside a character
    that is made of several code points. Chinese and Japanese, which put no spaces, are cut between characters.
    """
    # Counting is several times faster than walking, and what is short enough usually fits.
    if _surely_fits(text, budget) or (len(text) <= budget * _USUAL_CHARS and _cost(text) <= budget * _UNIT):
        return text, False
    rough, head, left = _walk(text, budget * _UNIT)
    if rough == len(text):
        return text, False
    last = min(len(text) - 1, rough + _LONGEST_PIECE)
    words = (at for at in range(last, max(0, rough - _LONGEST_WORD), -1) if _ends_word(text, at))
    for places in (words, range(last, 0, -1)):
        for at in places:
            if _is_boundary(text, at) and _cost(text[head:at]) <= left:
                return text[:at], True
    return "", True


def _cost(text: str) -> int:
    return _short_cost(text) if len(text) <= _CACHED_CHARS else _counted(text)


@lru_cache(1_000)  # the digest of memory counts the same few texts before and after every write
def _short_cost(text: str) -> int:
    return _counted(text)


def _counted(text: str) -> int:
    return sum(map(_costs, _pieces(text.isascii()).findall(text)))


@lru_cache
def _pieces(ascii_only: bool) -> re.Pattern[str]:
    # Compiled when something is counted: many starts count nothing, or nothing but ASCII, which is faster by itself.
    return re.compile(_pattern("[a-z]", _ASCII_SIGN) if ascii_only else _pattern(_SMALL, _ASCII_SIGN + _MORE_SIGNS))


class _Costs(dict[str, int]):
    """The costs of pieces; one that is not in it yet is computed. Faster than lru_cache, and every count goes here."""

    def __missing__(self, piece: str) -> int:
        if len(self) >= _CACHED:
            self.clear()
        self[piece] = cost = _piece_cost(piece)
        return cost


_costs = _Costs().__getitem__


def _piece_cost(piece: str) -> int:
    """What one piece costs, in hundredths of a token."""
    if len(piece) >= _LOOKED_UP_CHARS and _LATIN.fullmatch(piece):
        return _UNIT + _FURTHER_TOKEN * (_latin_tokens(piece.encode()) - 1)
    if not piece.isascii() and (foreign := _FOREIGN.search(piece)):
        return _foreign_cost(piece, foreign.group())
    return _shape_cost(piece.encode("utf-8", "surrogatepass").translate(_CLASSES))


def _foreign_cost(word: str, first: str) -> int:
    """What a word costs that is not Latin, by its script."""
    from bisect import bisect_right

    _, covered, each = _SCRIPTS[bisect_right(_SCRIPT_STARTS, first) - 1]
    if "\u0400" <= first < "\u0530" and _UKRAINIAN.search(word):
        covered, each = _UKRAINIAN_COST
    elif "\u3400" <= first < "\uac00":
        if _KANA.search(word):
            covered, each = 1, 74
        elif _TRADITIONAL.search(word):
            covered, each = _TRADITIONAL_COST
    letters = len(_FOREIGN.findall(word))
    latin = letters < len(word) - 1  # letters of both scripts, in two tokens at least
    return _UNIT + each * max(0, letters - covered) + (_UNIT if latin else 0)


def filter_places(token: bytes) -> tuple[int, int]:
    """The two bits of a token in the filter."""
    hashed = import_module("zlib").crc32(token)
    return hashed & _FILTER_MASK, hashed >> 11


@lru_cache
def _vocabulary() -> tuple[bytes, Callable[[bytes], int]]:
    """The filter, and the function that hashes a token for it."""
    with open(__file__.rpartition("tokens.py")[0] + VOCABULARY, "rb") as file:
        return file.read(), import_module("zlib").crc32


def _latin_tokens(word: bytes) -> int:
    """How many tokens a word is, if each is the longest possible."""
    (bits, crc32), size = _vocabulary(), len(word)
    count = start = 0
    while start < size:
        end = min(size, start + _LONGEST_TOKEN)
        while end - start >= SURE_BYTES:
            hashed = crc32(word[start:end])  # as in `filter_places`; a call of it would take most of the time
            if bits[(hashed & _FILTER_MASK) >> 3] >> (hashed & 7) & 1 and bits[hashed >> 14] >> (hashed >> 11 & 7) & 1:
                break
            end -= 1
        start = end
        count += 1
    return count


@lru_cache(maxsize=4096)
def _shape_cost(shape: bytes) -> int:
    """What a piece of this shape costs: the first token, and more for what it is unlikely to cover."""
    if b"a" in shape or b"A" in shape:  # one or two letters
        return _UNIT + (20 if b"a" in shape and b"A" in shape else 10 if shape[:1] in b"pqrt" else 0)
    return _UNIT + _signs_cost(shape)


def _signs_cost(shape: bytes) -> int:
    """What a run of signs costs beyond its first token; nothing for digits and spaces."""
    plain = shape.count(b"p") + shape.count(b"q")
    drawn = shape.count(b"r")
    symbols = shape.count(b"S") + shape.count(b"P")
    emoji = shape.count(b"E")
    # The longer a run of signs is, the more likely it repeats one of them, and that is cheap.
    cost = 60 * min(max(0, plain - 3), 9) + 10 * max(0, plain - 12) + 2 * drawn
    cost += 50 * min(max(0, symbols - 1), 7) + 6 * max(0, symbols - 8) + 180 * emoji
    if symbols and plain + drawn + emoji:
        cost += 80
    return cost


def _walk(text: str, budget: int) -> tuple[int, int, int]:
    """How many characters of whole pieces fit, a safe place well before that, and what is left of the budget there.

    The pieces before the safe place stay the same wherever the text is cut after it, so `cut` need not count them
    again. As no piece costs less than a token, the rest of a long text need not be read.
    """
    ends, costs, total = [0], [0], 0
    for piece in _pieces(text.isascii()).finditer(text[: _LONGEST_PIECE * (max(0, budget) // _UNIT + 1)]):
        total += _costs(piece.group())
        if total > budget:
            break
        ends.append(piece.end())
        costs.append(total)
    from bisect import bisect_right

    safe = max(0, bisect_right(ends, ends[-1] - (_LONGEST_WORD + _LONGEST_PIECE)) - 1)
    return ends[-1], ends[safe], budget - costs[safe]


def _ends_word(text: str, at: int) -> bool:
    """Whether a word or a line ends at `at`: after a line break, before a space, or beside a Chinese character."""
    before, after = text[at - 1], text[at]
    return before == "\n" or after.isspace() or "\u3000" <= before <= "\u9fff" or "\u3000" <= after <= "\u9fff"


def _is_boundary(text: str, at: int) -> bool:
    """Whether cutting at `at` splits no visible character."""
    before, after = text[at - 1], text[at]
    if before < "\u0300" and after < "\u0300":
        return before != "\r" or after != "\n"
    if unicodedata.category(after) in {"Mn", "Mc", "Me"} or "\u200d" in (before, after):
        return False
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return False
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f" or "\u1160" <= after <= "\u11ff":
        return False  # a skin colour, the region of a flag, the rest of a Korean syllable
    # Two letters make a flag, so an odd number of them must not precede another one.
    flag_letter = "\U0001f1e6" <= after <= "\U0001f1ff"
    return not flag_letter or _flag_letters_before(text, at) % 2 == 0


def _flag_letters_before(text: str, at: int) -> int:
    start = at
    while start and "\U0001f1e6" <= text[start - 1] <= "\U0001f1ff":
        start -= 1
    return at - start
