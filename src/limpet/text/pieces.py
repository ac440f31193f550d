"""Parts of a long text. It is cut at its own structure: between sections and paragraphs, then lines, then sentences,
then words. Of a match, the words that hold most of what was asked are shown, from their sentence on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice

from limpet.light import re
from limpet.record import NamedTuple
from limpet.text import words as analyse

OPEN, CLOSE = "«", "»"  # around a matching word
READ_WORDS = 400  # of a long text, from the best stretch on
BEFORE_WORDS = 6  # before the first matching word
SENTENCE_WORDS = 12  # before these, in which its sentence may begin
_SENTENCE_END = re.compile(r"[.!?:;]\s|\n")
# From the strongest cut to the weakest: before a heading or definition; after an empty line, line, sentence, word.
_CUTS = (
    re.compile(r"\n(?=#{1,6} |(?:async )?def |class |diff --git |\S[^\n]*\n[=-]{3,}\n)"),
    re.compile(r"\n[ \t]*\n"),
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?;:])\s"),
    re.compile(r"\s"),
)


def pieces(text: str, most_chars: int, most: int) -> list[str]:
    """The text in pieces of at most `most_chars`, each as long as its structure allows; the first `most` of them."""
    result: list[str] = []
    current = ""
    for part in _parts(text[: most * most_chars], most_chars, 0):
        if current and len(current) + len(part) > most_chars:
            result.append(current)
            current = ""
            if len(result) == most:
                return result
        current += part
    return [*result, current] if current.strip() else result


def _parts(text: str, most_chars: int, strength: int) -> Iterator[str]:
    """The text in order, in parts that fit, cut no weaker than needed."""
    if len(text) <= most_chars:
        yield text
    elif strength == len(_CUTS):
        yield from (text[at : at + most_chars] for at in range(0, len(text), most_chars))
    else:
        at = 0
        for cut in _CUTS[strength].finditer(text):
            if cut.end() > at:
                yield from _parts(text[at : cut.end()], most_chars, strength + 1)
                at = cut.end()
        if at < len(text):
            yield from _parts(text[at:], most_chars, strength + 1)


# --- snippets ---------------------------------------------------------------------------------------------------------


class Snippet(NamedTuple):
    text: str
    line: int  # of its beginning, from 1
    complete: bool
    plain: str  # without marks around the words sought


def snippet(text: str, sought: Sequence[str], at: int, words: int) -> Snippet:
    """At most `words` words of a text, the ones with most of the words sought, from the word `at` on."""
    stems = frozenset(analyse.terms(list(sought)))
    tokens = list(islice(analyse.places(text), max(0, at - BEFORE_WORDS), at + READ_WORDS))
    if not tokens:
        return Snippet(text[: 8 * words], 1, len(text) <= 8 * words, text[: 8 * words])
    hits = [_stem(token.group()) in stems for token in tokens]
    first, last = 0, len(tokens)
    if last > words:
        first, reach = _densest(tokens, hits, words)
        first = _sentence(text, tokens, first, reach + 1 - words)
        last = first + words
    start = 0 if first == 0 and at <= BEFORE_WORDS else tokens[first].start()
    stop = len(text) if last == len(tokens) and len(tokens) < READ_WORDS else tokens[last - 1].end()
    stop = min(stop, start + 16 * words)  # characters between words are bounded too
    parts, done = [], start
    for token, hit in zip(tokens[first:last], hits[first:last], strict=True):
        if hit and token.end() <= stop:
            parts += [text[done : token.start()], OPEN, token.group(), CLOSE]
            done = token.end()
    cut_before, cut_after = text[:start].strip() != "", text[stop:].strip() != ""
    marked, plain = (
        ("… " if cut_before else "") + part.strip() + (" …" if cut_after else "")
        for part in ("".join([*parts, text[done:stop]]), text[start:stop])
    )
    return Snippet(marked, 1 + text.count("\n", 0, start), not (cut_before or cut_after), plain)


def _sentence(text: str, tokens: list[re.Match[str]], first: int, least: int) -> int:
    """The token that begins the sentence or the line of this one, if it is near and not before `least`."""
    for at in range(first, max(0, first - SENTENCE_WORDS, least) - 1, -1):
        if at == 0 or _SENTENCE_END.search(text, tokens[at - 1].end(), tokens[at].start()):
            return at
    return first


def _densest(tokens: list[re.Match[str]], hits: list[bool], words: int) -> tuple[int, int]:
    """The token to begin with, so that the words from there on contain the most different matching words, and the last
    token with one of these.

    Of several such places, the one where these are closest together: the answer follows it.
    """
    matching = [(at, _stem(tokens[at].group())) for at, hit in enumerate(hits) if hit]
    best, chosen, last = (0, 0), 0, 0
    for number, (at, _) in enumerate(matching):
        within: set[str] = set()
        reach = at
        for near, stem in matching[number : number + words]:
            if near >= at + words - BEFORE_WORDS:
                break
            if stem not in within:
                within.add(stem)
                reach = near
        if (len(within), at - reach) > best:
            best, chosen, last = (len(within), at - reach), at, reach
    return max(0, min(chosen - BEFORE_WORDS, len(tokens) - words)), last


@lru_cache(20_000)  # some megabytes; the texts of a project share most of their words
def _stem(word: str) -> str:
    (*_, last) = analyse.terms(analyse.whole_words(analyse.fold(word))) or [""]
    return last
