r"""What a terminal or a page does not show: sequences for colours and links, and characters without width.

A secret is searched for as people see it. The sequences come raw, and written as escapes (`\u001b[32m`) by programs
that quote an output. Linear time: a string of a terminal ends at the next escape character or line end, and is bounded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from limpet.redaction.hints import UNSEEN
from limpet.redaction.values import late

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


def shown(text: str) -> tuple[str, Callable[[int], int]]:
    """The text as it is seen, and where each of its characters is in the text as it is."""
    parts: list[str] = []
    shown_at, text_at = [], []  # where each stretch between sequences begins, in both
    length = done = 0
    for start, end in (*(match.span() for match in _SEQUENCE.finditer(text)), (len(text), len(text))):
        if start > done:
            parts.append(text[done:start])
            shown_at.append(length)
            text_at.append(done)
            length += start - done
        done = end

    def place(position: int) -> int:
        stretch = bisect_right(shown_at, position) - 1
        return text_at[stretch] + position - shown_at[stretch]

    return "".join(parts), place
