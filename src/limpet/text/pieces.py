"""Cuts a long text at its own structure: between sections and paragraphs, then lines, then sentences, then words."""

from __future__ import annotations

from collections.abc import Iterator

from limpet.light import re

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
