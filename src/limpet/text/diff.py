"""How two texts differ: a unified diff, whether it is small enough to be shown, and the closest line.

The closest line is for an error about a text that was not found: the line that was probably meant, and why. The work is
bounded: two passes over the first part of the text, and a close comparison of a few short lines.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from heapq import nlargest
from itertools import accumulate

from limpet.record import NamedTuple

Span = tuple[int, int, int, int]  # from and to in one list, then in the other
_CLOSELY = 250 * 250  # pairs of lines that `difflib` compares
_DEEPEST = 10  # parts of parts that are looked at


class SmallChange(NamedTuple):
    """A unified diff without its first two lines, and how many lines came and went."""

    text: str
    added: int
    removed: int


def unified(before: str, after: str, *, before_name: str, after_name: str, context: int = 3) -> str:
    """A unified diff that ends with a line break, or "" if the texts are equal.

    Lines end at \\n, as everywhere in Limpet. A last line without a line break is marked in the way of diff(1),
    so that a difference in nothing else is also seen.
    """
    if before == after:
        return ""
    import difflib

    lines = difflib.unified_diff(_lines(before), _lines(after), before_name, after_name, n=context, lineterm="\n")
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def small_change(before: str, after: str, *, most_lines: int, most_chars: int, context: int = 1) -> SmallChange | None:
    """The difference, if all of it is within `most_lines` lines of at most `most_chars` characters; else None.

    Common beginnings and ends are skipped first, so that long texts cost little more than short ones.
    """
    start, rest = _edges(before, after)
    if max(_line_count(text[start : len(text) - rest]) for text in (before, after)) > most_lines:
        return None
    import difflib

    for _ in range(context):
        start = before.rfind("\n", 0, max(0, start - 1)) + 1
        rest = len(before) - (before.find("\n", len(before) - rest) + 1 or len(before))
    first = before.count("\n", 0, start)
    a, b = (_lines(text[start : len(text) - rest]) for text in (before, after))
    out: list[str] = []
    added = removed = 0
    for group in difflib.SequenceMatcher(None, a, b, autojunk=False).get_grouped_opcodes(context):
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        out.append(f"@@ -{first + i1 + 1},{i2 - i1} +{first + j1 + 1},{j2 - j1} @@")
        for tag, i, i_end, j, j_end in group:
            gone, come = (a[i:i_end], b[j:j_end]) if tag != "equal" else ([], [])
            if any(len(line) > most_chars for line in gone + come):
                return None
            same = a[i:i_end] if tag == "equal" else []
            signed = ((" ", same), ("-", gone), ("+", come))
            out += [_marked(sign, line, most_chars) for sign, lines in signed for line in lines]
            removed, added = removed + len(gone), added + len(come)
    return SmallChange("\n".join(out), added, removed)


def changed_spans(a: Sequence[str], b: Sequence[str]) -> Iterator[Span]:
    """Where two lists differ, each from and to: as `difflib` has it where they are short, and in time that grows with
    their length where they are not. `difflib` takes minutes for some of twenty thousand lines.

    Between their common beginning and end, lines that are once in either and in the same order hold the two together.
    Where there are none, everything between is a change.
    """
    return _changed(a, b, (0, len(a), 0, len(b)), _DEEPEST)


def _changed(a: Sequence[str], b: Sequence[str], span: Span, depth: int) -> Iterator[Span]:
    i, i_end, j, j_end = span
    while i < i_end and j < j_end and a[i] == b[j]:
        i, j = i + 1, j + 1
    while i < i_end and j < j_end and a[i_end - 1] == b[j_end - 1]:
        i_end, j_end = i_end - 1, j_end - 1
    if i == i_end or j == j_end:
        if i < i_end or j < j_end:
            yield i, i_end, j, j_end
    elif (i_end - i) * (j_end - j) <= _CLOSELY:
        import difflib

        codes = difflib.SequenceMatcher(None, a[i:i_end], b[j:j_end], autojunk=False).get_opcodes()
        yield from ((i + x, i + x_end, j + y, j + y_end) for tag, x, x_end, y, y_end in codes if tag != "equal")
    elif depth and (shared := _in_order(_once_in_both(a, b, (i, i_end, j, j_end)))):
        for x, y in (*shared, (i_end, j_end)):
            yield from _changed(a, b, (i, x, j, y), depth - 1)
            i, j = x + 1, y + 1
    else:
        yield i, i_end, j, j_end


def _once_in_both(a: Sequence[str], b: Sequence[str], span: Span) -> list[tuple[int, int]]:
    """The places of the lines that are once in either, in the order of the first."""
    i, i_end, j, j_end = span
    often, others = Counter(a[i:i_end]), Counter(b[j:j_end])
    places = {b[y]: y for y in range(j, j_end)}
    return [(x, places[a[x]]) for x in range(i, i_end) if often[a[x]] == 1 and others[a[x]] == 1]


def _in_order(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """As many of the pairs as can be whose second places rise too."""
    ends: list[int] = []  # for each length the lowest second place that so many pairs end with
    last: list[int] = []  # which pair that is
    before: list[int] = []  # for each pair the one before it
    for index, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1], last[length : length + 1] = [place], [index]
    chosen: list[tuple[int, int]] = []
    at = last[-1] if last else -1
    while at >= 0:
        chosen.append(pairs[at])
        at = before[at]
    return chosen[::-1]


def _marked(sign: str, line: str, most: int) -> str:
    text = line.removesuffix("\n")
    return f"{sign}{text if len(text) <= most else text[: most - 1] + '…'}"


def _edges(before: str, after: str) -> tuple[int, int]:
    """The lengths of the common beginning and of the common end of the rest, in whole lines."""
    start = before.rfind("\n", 0, _alike(before, after, lambda text, a, b: text[a:b])) + 1
    before, after = before[start:], after[start:]
    end = _alike(before, after, lambda text, a, b: text[len(text) - b : len(text) - a])
    if any(text[-end - 1 : len(text) - end] not in ("", "\n") for text in (before, after)):
        # It begins inside a line of at least one of them, so the next line is the first that both have whole.
        end = len(before) - (before.find("\n", len(before) - end) + 1 or len(before))
    return start, end


def _alike(left: str, right: str, cut: Callable[[str, int, int], str]) -> int:
    """The length of the common part. Bisection is many times faster than comparing single characters."""
    same, most = 0, min(len(left), len(right))
    reach = most
    while same < most:
        if cut(left, same, reach) == cut(right, same, reach):
            same, reach = reach, most
        else:
            most = reach - 1
            reach = (same + most + 1) // 2
    return same


def _line_count(text: str) -> int:
    return text.count("\n") + (text[-1:] not in ("", "\n"))


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


# --- the closest line -------------------------------------------------------------------------------------------------

CASE = "case"
WHITESPACE = "whitespace"
PUNCTUATION = "punctuation"
SIMILAR = "similar"

_LINE_CHARS = 120  # characters of the line that are returned
_READ = 200_000  # characters of the text that are looked at
_SOUGHT = 10_000  # how far into what was looked for a line with a word may be
_COMPARED = 160  # characters of a line that are compared closely
_CLOSE = 4  # lines compared closely for the words they share, and as many for their characters
_ALIKE = 0.6  # below this likeness two lines are not called similar

_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        "\u2026": "...",
    }
)
_WORD = re.compile(r"\w+")


class Near(NamedTuple):
    """The line most like what was looked for; lines count from 1."""

    line: int
    text: str
    reason: str


def nearest(text: str, find: str) -> Near | None:
    """The closest match for a text that does not occur exactly, or None if nothing is similar.

    If all that differs is the case, the whitespace or the style of quotes and dashes, that is the reason, and the line
    is the one where the match begins. Otherwise it is the line most like the first line with words of `find`.
    """
    text = text[:_READ]
    if not find.strip() or not text.strip():
        return None
    return _same_but(text, find) or _most_like(text, find)


def _same_but(text: str, find: str) -> Near | None:
    """A match that ignores one difference (which is the reason), or all of them (then it is "similar")."""
    lines = text.split("\n")
    lower, lower_find = text.lower(), find.lower()
    same_signs, same_signs_find = text.translate(_SIGNS), find.translate(_SIGNS)
    # None of the changes above touches a line break, so they can be counted up to the match.
    for reason, haystack, needle in ((CASE, lower, lower_find), (PUNCTUATION, same_signs, same_signs_find)):
        at = haystack.find(needle)
        if at >= 0:
            return _near(lines, haystack.count("\n", 0, at), reason)
    index = _without_space(lines, find)
    if index is not None:
        return _near(lines, index, WHITESPACE)
    index = _without_space(lower.translate(_SIGNS).split("\n"), lower_find.translate(_SIGNS))
    return None if index is None else _near(lines, index, SIMILAR)


def _without_space(lines: list[str], find: str) -> int | None:
    """The index of the line where `find` begins if no whitespace counts."""
    packed = ["".join(line.split()) for line in lines]
    at = "".join(packed).find("".join(find.split()))
    if at < 0:
        return None
    return bisect_right(list(accumulate(map(len, packed))), at)


def _most_like(text: str, find: str) -> Near | None:
    """The line most like the first line of `find` that has a word in it, if any is like it at all."""
    sought = next((line for line in find[:_SOUGHT].split("\n") if _WORD.search(line)), find.strip())
    sought = sought.strip().lower()[:_COMPARED]
    lines = text.split("\n")
    # A line of less than half the length cannot be like it; leaving those out makes many tiny lines cheap.
    lowered = {index: line for index, line in enumerate(text.lower().split("\n")) if len(line) * 2 >= len(sought)}
    starts = dict.fromkeys(_sharing_characters(lowered, sought), 0) | _sharing_words(lowered, sought)
    best, best_index = 0.0, 0
    for index, start in starts.items():
        likeness = _likeness(sought, lowered[index][start : start + _COMPARED])
        if likeness > best:
            best, best_index = likeness, index
    return _near(lines, best_index, SIMILAR, starts[best_index]) if best >= _ALIKE else None


def _sharing_words(lines: dict[int, str], sought: str) -> dict[int, int]:
    """The lines that share the most words with `sought`, rare ones first, and where in each it would begin."""
    vocabulary = set(_WORD.findall(sought))
    shared = [(index, vocabulary.intersection(_WORD.findall(line))) for index, line in lines.items()]
    often = Counter(word for _, words in shared for word in words)
    scored = [(sum(1 / often[word] for word in words), -index, words) for index, words in shared if words]
    starts = {}
    for _, minus_index, words in nlargest(_CLOSE, scored, key=lambda item: item[:2]):
        rarest = min(words, key=lambda word: (often[word], word))
        starts[-minus_index] = max(0, lines[-minus_index].find(rarest) - sought.find(rarest))
    return starts


def _sharing_characters(lines: dict[int, str], sought: str) -> list[int]:
    """The lines with the most pairs of characters of `sought`: they find what is misspelt in every word."""
    pairs = {sought[at : at + 2] for at in range(len(sought) - 1)}
    scored = ((sum(pair in line for pair in pairs), -index) for index, line in lines.items())
    return [-minus_index for score, minus_index in nlargest(_CLOSE, scored) if score]


def _likeness(sought: str, line: str) -> float:
    """The share of `sought` that the line has in the same order, in runs long enough to mean something."""
    import difflib

    matcher = difflib.SequenceMatcher(None, line, sought, autojunk=False)
    run = 3 if len(sought) >= 16 else 2
    return sum(block.size for block in matcher.get_matching_blocks() if block.size >= run) / len(sought)


def _near(lines: list[str], index: int, reason: str, start: int = 0) -> Near:
    line = lines[index]
    if len(line) <= _LINE_CHARS:
        start = 0
    return Near(index + 1, line[start : start + _LINE_CHARS].strip(), reason)
