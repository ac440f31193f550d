"""Kept outputs in pieces, as recall searches them: whole lines of about four kilobytes, with the terms in each."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from limpet import limits
from limpet.model import Output
from limpet.text import words

HEAD_CHARS = 48
CALL_CHARS = 500  # of the call that made an output; its words find it too


class Piece(NamedTuple):
    start: int  # in the output, in bytes
    size: int
    line: int  # of the output that it begins in
    head: str
    terms: list[str]


def pieces(output: Output, read: Callable[[int, int], bytes]) -> list[Piece]:
    """The pieces of an output. Of a very large one the beginning and the end: there most is said."""
    half = limits.OUTPUT_INDEX_BYTES // 2
    if output.size <= limits.OUTPUT_INDEX_BYTES:
        found = _cut(read(0, output.size), 0, 1)
    else:
        tail = output.size - half
        line = output.lines - read(tail, output.size).count(b"\n")
        found = [*_cut(read(0, half), 0, 1), *_cut(read(tail, output.size), tail, max(1, line))]
    # What it was and what the preview says finds the first piece.
    about = words.terms(words.index_words(f"{output.tool} {output.call[:CALL_CHARS]} {output.preview}"))
    first = found[0] if found else Piece(0, 0, 1, "", [])
    return [first._replace(terms=first.terms + about), *found[1:]]


def _cut(body: bytes, offset: int, line: int) -> list[Piece]:
    found = []
    at = 0
    while at < len(body):
        stop = min(at + limits.OUTPUT_PIECE_BYTES, len(body))
        if stop < len(body):
            stop = (body.rfind(b"\n", at, stop) + 1) or _whole(body, stop)
        text = body[at:stop].decode("utf-8", "replace")
        terms = [term for term in words.terms(words.index_words(text)) if term]
        found.append(Piece(offset + at, stop - at, line, _storable(text[:HEAD_CHARS]), terms))
        line += body.count(b"\n", at, stop)
        at = stop
    return found


def _whole(body: bytes, stop: int) -> int:
    """Not within a character: bytes that go on with one begin with the bits 10."""
    while body[stop] & 0xC0 == 0x80:
        stop -= 1
    return stop


def _storable(text: str) -> str:
    return text.replace("\x00", " ")
