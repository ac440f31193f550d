r"""What a terminal or a page does not show: sequences for colours and links, and characters without width.

A secret is searched for as people see it. The sequences come raw, and written as escapes (`\u001b[32m`) by programs
that quote an output. Linear time: a string of a terminal ends at the next escape character or line end, and is bounded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from typing import Any

from limpet.redaction.hints import SHORT, UNSEEN, has_unseen
from limpet.redaction.values import late
from limpet.text.marks import engine

# The short forms have to begin a sequence: \e is also in paths, and ^[ (of cat -v) in patterns.
_ESCAPE = r"(?:\x1b|\\{1,4}(?:x1[bB]|[uU](?:0000)?001[bB]|u\{1[bB]\}|(?:033|[eE])(?=[\[\]]))|\^\[(?=[\[\]]))"
_END = rf"(?:[\x07\x9c]|\\{{1,4}}(?:u0007|x07|007|a)|{_ESCAPE}\\{{1,8}})"
_SEQUENCE = late(
    rf"(?:{_ESCAPE}\[|\x9b)[0-?]{{0,64}}+[ -/]{{0,8}}+[@-~]"  # colours, movements
    rf"|{_ESCAPE}[\]P_^X](?:[^\x07\x1b\x9c\\^\n]|\\/){{0,2048}}+{_END}"  # links, titles
    r"|\x1b[ -/]{0,8}+[0-~]|\x1b"
    r"|\\{1,4}u(?:200[b-fB-F]|202[a-eA-E]|206[0-9]|00[aA][dD]|[fF][eE][fF][fF]|061[cC])"
    rf"|[{UNSEEN}]"
)


# What every sequence begins with, or has after its backslashes: for the fast pass over the bytes of a long text.
_SIGNS = (
    rb"\x1b|\xc2\x9b|\\(?:x1[bB]|[uU](?:0000)?001[bB]|u\{1[bB]\}|(?:033|[eE])[\[\]])|\^\[[\[\]]"
    rb"|\\u(?:200[b-fB-F]|202[a-eA-E]|206[0-9]|00[aA][dD]|[fF][eE][fF][fF]|061[cC])|"
)
_ASCII_SIGNS = (b"\x1b", b"\x0e", b"\x0f", b"\\", b"^")  # one of them is in each sign of an ASCII text
_BACKSLASHES = 3  # that a sequence may have before the one of its sign
_MANY = 2_000  # signs from which on reading every character is faster


def sequences(text: str, data: bytes | None = None) -> list[tuple[int, int]]:
    """Where the text has what is not shown. `data` are its bytes, if there are any already."""
    if len(text) <= SHORT:
        return [match.span() for match in _SEQUENCE.finditer(text)] if has_unseen(text) else []
    data = text.encode("utf-8", "surrogatepass") if data is None else data
    ascii = len(data) == len(text)
    if ascii and not any(sign in data for sign in _ASCII_SIGNS):
        return []
    spans: list[tuple[int, int]] = []
    search, byte, place, done, signs = _sign().search, 0, 0, 0, 0
    sign = search(data)
    while sign is not None:
        signs += 1
        if signs > _MANY:
            return spans + [match.span() for match in _SEQUENCE.finditer(text, done)]
        start = sign.start()
        place += start - byte if ascii else len(data[byte:start].decode("utf-8", "surrogatepass"))
        byte = start
        for candidate in range(max(done, place - _BACKSLASHES), place + 1):
            if match := _SEQUENCE.match(text, candidate):
                spans.append(match.span())
                done = match.end()
                break
        sign = search(data, start + 1)
    return spans


@cache
def _sign() -> Any:
    return engine(_SIGNS.decode() + "|".join("".join(f"\\x{byte:02x}" for byte in sign.encode()) for sign in UNSEEN))


def shown(text: str, unseen: list[tuple[int, int]]) -> tuple[str, list[int], Callable[[int], int]]:
    """The text as it is seen, where something was left out of it, and where each of its characters is in the text."""
    parts: list[str] = []
    shown_at, text_at = [], []  # where each stretch between sequences begins, in both
    length = done = 0
    for start, end in (*unseen, (len(text), len(text))):
        if start > done:
            parts.append(text[done:start])
            shown_at.append(length)
            text_at.append(done)
            length += start - done
        done = end

    def place(position: int) -> int:
        stretch = bisect_right(shown_at, position) - 1
        return text_at[stretch] + position - shown_at[stretch]

    return "".join(parts), shown_at, place
