"""Three-way merge of two versions of a journal and their common ancestor. Nothing that either side wrote is lost.

Pieces are compared instead of lines: a decision with all its lines, an item with the lines indented below it, a row, a
line. Two decisions added at the same place therefore stay intact, one after the other. Where both sides changed the
same piece, both versions stay in the text between conflict markers, and the conflict is reported.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from limpet.journal.document.markup import scan
from limpet.record import NamedTuple
from limpet.text.diff import Span, changed_spans

THEIRS = "<<<<<<< changed by hand"
BETWEEN = "======="
OURS = ">>>>>>> changed by an agent"
_ENTRY = re.compile(r"#{2,6}[ \t]+\d{4}-\d\d")
_WORD = re.compile(r"\w+|[^\w\s]")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])[ \t]")

_ALIKE = 0.7  # similarity from which two insertions may be one entry that both sides changed
_SHORT = 120 * 120  # pairs of characters
_COMPARED = 2_000  # characters of changed lines that are compared closely


class MergeConflict(NamedTuple):
    ours: str
    theirs: str


class MergeResult(NamedTuple):
    text: str
    conflicts: tuple[MergeConflict, ...] = ()


def merge(base: str, ours: str, theirs: str) -> MergeResult:
    if theirs in (ours, base):
        return MergeResult(ours)
    if base == ours:
        return MergeResult(theirs)
    newline = "\r\n" if theirs.count("\r\n") * 2 > theirs.count("\n") else "\n"
    ours = ours.replace("\r\n", "\n").replace("\n", newline)
    root, left, right = (list(pieces(text)) for text in (base, ours, theirs))
    keys = [[_key(piece) for piece in side] for side in (root, left, right)]
    merged: list[str] = []
    conflicts: list[MergeConflict] = []
    at = at_theirs = 0
    for low, high, our_span, their_span in _regions(*(changed_spans(keys[0], side) for side in keys[1:])):
        merged += right[at_theirs : at_theirs + low - at]  # unchanged on both sides; line ends as the person has them
        at_theirs += low - at
        ours_part = left[our_span[0] : our_span[1]]
        theirs_part = right[their_span[0] : their_span[1]]
        merged += _resolved(root[low:high], ours_part, theirs_part, conflicts)
        at, at_theirs = high, their_span[1]
    merged += right[at_theirs:]
    return MergeResult(_joined(merged, newline), tuple(conflicts))


def origin(states: Callable[[], Iterable[str]], text: str, *, forgot: bool = False) -> str:
    """The text that a saved one was edited from, among all states of the file, oldest first.

    It is the oldest state with all those lines of the text that any state has: an older one lacks lines that its
    editor must have seen, and a newer one may have entries that the editor did not show, which would then look deleted.
    `forgot` says that states before the first one are gone. A text as old as that deletes nothing.
    """
    wanted = set(_lines(text))
    first: dict[str, int] = {}
    for at, state in enumerate(states()):
        for line in wanted.intersection(_lines(state)):
            first.setdefault(line, at)
    lowest = max(first.values(), default=0)
    best: tuple[int, int, int, str] | None = None
    for at, state in enumerate(states()):
        if at >= lowest:
            lines = set(_lines(state))
            rank = len(first.keys() - lines), len(lines ^ wanted), at, state
            best = min(best, rank) if best else rank
            if not best[0]:
                break
    if best is None:
        return ""
    if forgot and not best[2]:
        return "\n".join(line for line in _lines(best[3]) if line in wanted)
    return best[3]


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


def _likeness(left: str, right: str) -> float:
    """How much of two texts is the same: of short ones by their characters in order, of others by their words, because
    `difflib` takes seconds for a thousand characters of few kinds."""
    if len(left) * len(right) <= _SHORT:
        import difflib

        return difflib.SequenceMatcher(None, left, right, autojunk=False).ratio()
    words, others = Counter(_WORD.findall(left)), Counter(_WORD.findall(right))
    return 2 * (words & others).total() / max(1, words.total() + others.total())


def pieces(text: str) -> Iterator[str]:
    """The text split into pieces that belong together; joined they are the text again."""
    lines = text.split("\n")
    lines = [f"{line}\n" for line in lines[:-1]] + lines[-1:]
    doc = scan(text)
    headings = {heading.start for heading in doc.headings}
    ends = headings.union(doc.unclosed)  # an editor appends there
    places = list(accumulate(map(len, lines), initial=0))
    at = 0
    while at < len(lines):
        end = at + 1
        if places[at] in headings and _ENTRY.match(lines[at]):
            while end < len(lines) and places[end] not in ends:
                end += 1
            while not lines[end - 1].strip():
                end -= 1
        elif _ITEM.match(lines[at]):
            while end < len(lines) and lines[end][:2] == "  " and lines[end].strip():
                end += 1
        if piece := "".join(lines[at:end]):
            yield piece
        at = end


def _key(piece: str) -> str:
    """A piece without its line-end style. A last line may end with \\r: half of a line end that others complete."""
    return piece.replace("\r\n", "\n").removesuffix("\n").removesuffix("\r")


def _regions(
    ours: Iterable[Span], theirs: Iterable[Span]
) -> Iterator[tuple[int, int, tuple[int, int], tuple[int, int]]]:
    """The changed spans of the base, each with its span on either side. Overlapping changes are joined."""
    drift = [0, 0]  # how much longer each side is up to here
    queues = [deque(ours), deque(theirs)]
    while queues[0] or queues[1]:
        first = min((queue[0][:2], who) for who, queue in enumerate(queues) if queue)[1]
        low, high = queues[first][0][:2]
        taken: list[list[Span]] = [[], []]
        grew = True
        while grew:
            grew = False
            for who, queue in enumerate(queues):
                while queue and _meet(low, high, queue[0][0], queue[0][1]):
                    span = queue.popleft()
                    taken[who].append(span)
                    high = max(high, span[1])
                    grew = True
        sides = []
        for who in (0, 1):
            begin = low + drift[who]
            drift[who] += sum((span[3] - span[2]) - (span[1] - span[0]) for span in taken[who])
            sides.append((begin, high + drift[who]))
        yield low, high, sides[0], sides[1]


def _meet(low: int, high: int, start: int, end: int) -> bool:
    """Whether two changes overlap. Adjacent changes do not; two insertions at the same place do."""
    if low == high and start == end:
        return low == start
    if start == end:
        return low < start < high
    return start < low < end if low == high else max(low, start) < min(high, end)


def _resolved(base: list[str], ours: list[str], theirs: list[str], conflicts: list[MergeConflict]) -> list[str]:
    keys = [[_key(piece) for piece in side] for side in (base, ours, theirs)]
    if keys[1] == keys[2] or keys[1] == keys[0]:
        return theirs
    if keys[2] == keys[0]:
        return ours
    if not base:
        return _union(ours, theirs, conflicts)
    conflicts.append(MergeConflict("".join(ours), "".join(theirs)))
    return [THEIRS, *theirs, BETWEEN, *ours, OURS]


def _union(ours: list[str], theirs: list[str], conflicts: list[MergeConflict]) -> list[str]:
    """Both insertions, with common pieces once. Two similar ones may be the same entry, so they are reported."""
    merged: list[str] = []
    done = 0
    for o1, o2, t1, t2 in changed_spans(list(map(_key, ours)), list(map(_key, theirs))):
        their_part, our_part = theirs[t1:t2], ours[o1:o2]
        at = len(their_part) if any(map(_is_section, our_part)) else _section_end(their_part)
        merged += theirs[done:t1] + their_part[:at] + our_part + their_part[at:]
        done = t2
        if our_part and their_part:
            our_text, their_text = "".join(our_part), "".join(their_part)
            if _likeness(our_text[:_COMPARED], their_text[:_COMPARED]) >= _ALIKE:
                conflicts.append(MergeConflict(our_text, their_text))
    return merged + theirs[done:]


def _section_end(parts: list[str]) -> int:
    """Where the section that an insertion begins in ends: before the first heading in it, and its blank lines."""
    at = next((index for index, piece in enumerate(parts) if _is_section(piece)), len(parts))
    while 0 < at < len(parts) and not parts[at - 1].strip():
        at -= 1
    return at


def _is_section(piece: str) -> bool:
    return piece.startswith("#") and not _ENTRY.match(piece)


def _joined(parts: list[str], newline: str) -> str:
    """The pieces as a text; a piece that was the last of its side gets a line end."""
    ended = [piece if piece.endswith("\n") else piece + newline for piece in parts]
    text = "".join(ended)
    return text if not parts or parts[-1] == OURS or parts[-1].endswith("\n") else text.removesuffix(newline)
