"""Alignment: which of the caller's messages are stored already, and where.

A caller may hold the whole conversation or its end, with messages left out, changed or added in between, with summaries
of ours in place of messages, or the messages of a line that was abandoned. What is stored is found by content: by
messages that occur once on both sides, in the longest sequence that keeps their order, and from there by their
neighbours. A short answer such as "ok" does not say where it belongs unless its neighbours agree.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import pairwise

from limpet.light import Any, json
from limpet.record import NamedTuple
from limpet.window.messages import Call, Message, Part, Result, Text
from limpet.window.plan.line import BEGINNING, Line, contains, line_to, within
from limpet.window.plan.serialise import digest

Shape = tuple[object, ...]  # what messages that may be alike have in common

WEAK_CHARS = 40  # a text shorter than this may be said again and again
SUFFIXES_TRIED = 4  # places at which the caller's list may have reached our end


class StoredPlace(NamedTuple):
    """The positions of a message of the caller: its own, or those that a fold's text replaces."""

    first: int
    last: int
    is_fold: bool = False

    @property
    def rank(self) -> int:
        """For comparing the order. What a fold shows of its own messages comes after its text."""
        return 2 * self.first + (not self.is_fold)


class CallerMessage(NamedTuple):
    digest: str
    is_weak: bool  # too short to tell by itself where it belongs


Pair = tuple[int, StoredPlace]  # the index of a message of the caller, and its place


class PositionIndex:
    """The stored messages by their digests. A message may have several: masked, or with cleared results."""

    def __init__(self) -> None:
        self.positions: dict[str, list[int]] = {}  # ascending
        self.following: dict[tuple[int, str], int] = {}  # (the position before it, its digest) -> the newest such
        self.newest = BEGINNING
        self._shapes: dict[Shape, list[tuple[Message, str]]] = {}

    def name_of(self, message: Message) -> str:
        """The digest by which this message is known, also where its JSON is written in another way."""
        name = digest(message)
        if name not in self.positions and (its_shape := shape(message)) is not None:
            for message_there, name_there in self._shapes.get(its_shape, ()):
                if are_alike(message, message_there):
                    return name_there
        return name

    def know(self, message: Message, position: int, before: int, name: str) -> None:
        """The message at this position, which follows the one before it on its line."""
        self.add(position, before, name)
        if (its_shape := shape(message)) is not None:
            self._shapes.setdefault(its_shape, []).append((message, name))

    def add(self, position: int, before: int, digest: str) -> None:
        self.newest = max(self.newest, position)
        positions = self.positions.setdefault(digest, [])
        if not positions or positions[-1] < position:
            positions.append(position)
        elif positions[bisect_left(positions, position)] != position:
            insort(positions, position)
        self.following[before, digest] = max(position, self.following.get((before, digest), position))

    def is_at(self, digest: str, position: int) -> bool:
        positions = self.positions.get(digest, ())
        index = bisect_left(positions, position)
        return index < len(positions) and positions[index] == position


class Aligner:
    """One alignment of a caller's list with the stored messages."""

    def __init__(
        self,
        index: PositionIndex,
        folds: Mapping[str, StoredPlace],
        parents: Mapping[int, int],
        current: Line,
    ) -> None:
        self.index = index
        self.folds = folds  # by the digest of their text
        self.parents = parents
        self.current = current  # the line that the window shows now
        self.head = current[-1] if current else BEGINNING

    def align(self, caller: Sequence[CallerMessage]) -> list[StoredPlace | None]:
        """The place of each of the caller's messages; None for what is not stored on the line they belong to."""
        anchors = self._without_weak_end(self._anchors(caller), caller)
        anchors += self._tail(anchors, caller)
        places: list[StoredPlace | None] = [None] * len(caller)
        if not anchors:
            return places
        line = self._line_to(max(place.last for _, place in anchors))
        for at, place in anchors:
            if place.is_fold or contains(line, place.last):
                places[at] = place
        self._fill(places, caller, line)
        return [None] * len(caller) if _is_foreign(places, caller) else places

    def _line_to(self, position: int) -> Line:
        return self.current if position == self.head else line_to(position, self.parents)

    # --- anchors ------------------------------------------------------------------------------------------------------

    def _anchors(self, caller: Sequence[CallerMessage]) -> list[Pair]:
        """The messages that occur once on both sides and keep their order; our last message is among them if it can."""
        times = Counter(message.digest for message in caller)
        pairs: list[Pair] = []
        for at, message in enumerate(caller):
            if times[message.digest] == 1 and (place := self._only_place(message.digest)) is not None:
                pairs.append((at, place))
        for at, place in pairs:
            if place.last == self.head == self.index.newest and not place.is_fold and not caller[at].is_weak:
                pairs = [pair for pair in pairs if pair[0] < at and pair[1].rank < place.rank]
                return [*_longest_ascending(pairs), (at, place)]
        return _longest_ascending(pairs)

    def _only_place(self, digest: str) -> StoredPlace | None:
        if digest in self.folds:
            return self.folds[digest]
        positions = self.index.positions.get(digest, ())
        return StoredPlace(positions[0], positions[0]) if len(positions) == 1 else None

    def _without_weak_end(self, anchors: list[Pair], caller: Sequence[CallerMessage]) -> list[Pair]:
        """The anchors without short messages at their end that are there by chance."""
        while anchors and self._is_chance(anchors, caller):
            anchors = anchors[:-1]
        return anchors

    def _is_chance(self, anchors: Sequence[Pair], caller: Sequence[CallerMessage]) -> bool:
        at, place = anchors[-1]
        if place.is_fold or not caller[at].is_weak or place.last == self.head:
            return False
        at_before, place_before = anchors[-2] if len(anchors) > 1 else (-1, StoredPlace(BEGINNING, BEGINNING))
        skipped = len(within(self._line_to(place.last), place_before.last + 1, place.last - 1))
        return skipped != at - at_before - 1  # the same number of messages on both sides is an edit

    # --- the end ------------------------------------------------------------------------------------------------------

    def _tail(self, anchors: Sequence[Pair], caller: Sequence[CallerMessage]) -> list[Pair]:
        """The places of the messages after the last anchor, which are new unless they follow it directly."""
        start = anchors[-1][0] + 1 if anchors else 0
        position = max((place.last for _, place in anchors), default=BEGINNING)
        walked = self._walk(caller, start, position)
        reached = walked[-1][1].last if walked else position
        if self.head not in (position, reached) and (position == BEGINNING or contains(self.current, position)):
            to_our_end = self._up_to_our_end(caller, start, position)
            return to_our_end if len(to_our_end) > len(walked) else walked
        return walked

    def _walk(self, caller: Sequence[CallerMessage], start: int, position: int) -> list[Pair]:
        """Each message that directly follows the one before it on some line."""
        walked: list[Pair] = []
        for at in range(start, len(caller)):
            following = self.index.following.get((position, caller[at].digest))
            if following is None:
                break
            position = following
            walked.append((at, StoredPlace(position, position)))
        return walked

    def _up_to_our_end(self, caller: Sequence[CallerMessage], start: int, floor: int) -> list[Pair]:
        """Places for all messages from `start` up to one that is our last; none if there are no such places."""
        ends = [at for at in range(start, len(caller)) if self.index.is_at(caller[at].digest, self.head)]
        for end in reversed(ends[-SUFFIXES_TRIED:]):
            pairs: list[Pair] = []
            position = self.head + 1
            for at in range(end, start - 1, -1):
                position = self._latest(caller[at].digest, position, self.current)
                if position <= floor:
                    break
                pairs.append((at, StoredPlace(position, position)))
            else:
                return pairs[::-1]
        return []

    # --- between anchors ----------------------------------------------------------------------------------------------

    def _fill(self, places: list[StoredPlace | None], caller: Sequence[CallerMessage], line: Line) -> None:
        """Add the repeated messages between those whose place is known: backwards, each as near as it can be."""
        ceiling = len(line) and line[-1] + 1
        floors = _floors(places)
        is_before_last = False
        for at in range(len(places) - 1, -1, -1):
            place = places[at]
            if place is not None:
                ceiling = place.first
                is_before_last = True
            elif is_before_last:
                position = self._latest(caller[at].digest, ceiling, line)
                if position > floors[at]:
                    places[at] = StoredPlace(position, position)
                    ceiling = position

    def _latest(self, digest: str, ceiling: int, line: Line) -> int:
        """The last position on the line before `ceiling` that has this message."""
        positions = self.index.positions.get(digest, ())
        for index in range(bisect_left(positions, ceiling) - 1, -1, -1):
            if contains(line, positions[index]):
                return positions[index]
        return BEGINNING


def _is_foreign(places: Sequence[StoredPlace | None], caller: Sequence[CallerMessage]) -> bool:
    """Whether the list has nothing but a few short messages in common with what is stored."""
    matches = [at for at, place in enumerate(places) if place is not None]
    if any(not caller[at].is_weak for at in matches):
        return False
    return matches[-1] + 1 > 2 * len(matches)


def _floors(places: Sequence[StoredPlace | None]) -> list[int]:
    """For each message, the position after which its own must be: that of the last message before it with a place."""
    floors: list[int] = []
    floor = BEGINNING
    for place in places:
        floors.append(floor)
        if place is not None:
            floor = place.first - 1 if place.is_fold else place.last
    return floors


def _longest_ascending(pairs: Sequence[Pair]) -> list[Pair]:
    """The longest subsequence with ascending places; of several, one that ends furthest."""
    if all(left[1].rank < right[1].rank for left, right in pairwise(pairs)):
        return list(pairs)
    ends: list[int] = []  # ends[n]: the lowest rank at which a sequence of n + 1 ends
    end_pairs: list[int] = []
    lengths: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place.rank)
        before.append(end_pairs[length - 1] if length else -1)
        lengths.append(length)
        if length == len(ends):
            ends.append(place.rank)
            end_pairs.append(number)
        else:
            ends[length], end_pairs[length] = place.rank, number
    longest = max(lengths)
    number = max(
        (number for number in range(len(pairs)) if lengths[number] == longest), key=lambda number: pairs[number][1].rank
    )
    chosen: list[Pair] = []
    while number >= 0:
        chosen.append(pairs[number])
        number = before[number]
    return chosen[::-1]


# --- messages that say the same in other JSON text --------------------------------------------------------------------


# A framework may keep messages as values, in PostgreSQL's JSONB for one. When it reads them it writes the arguments of
# a call, and a result that is JSON, with the keys in another order and other spaces. That edits nothing.


def shape(message: Message) -> Shape | None:
    """What messages have in common that may be alike; None for one that holds no JSON."""
    calls = tuple((part.id, part.name) for part in message.calls())
    results = tuple(part.call_id for part in message.results())
    return (message.role, len(message.parts), calls, results) if calls or results or message.raw else None


def are_alike(left: Message, right: Message) -> bool:
    """Whether they are equal, but for how their JSON is written."""
    return (
        left.role == right.role
        and len(left.parts) == len(right.parts)
        and _are_equal(left.raw, right.raw)
        and all(map(_alike_parts, left.parts, right.parts))
    )


def _alike_parts(left: Part, right: Part) -> bool:
    if type(left) is not type(right) or not _are_equal(left.raw, right.raw):
        return False
    if isinstance(left, Call) and isinstance(right, Call):
        return (left.id, left.name) == (right.id, right.name) and _alike_texts(left.arguments, right.arguments)
    if isinstance(left, Result) and isinstance(right, Result):
        same = (left.call_id, left.error, len(left.parts)) == (right.call_id, right.error, len(right.parts))
        return same and all(map(_alike_inside, left.parts, right.parts))
    return left[:-1] == right[:-1]


def _alike_inside(left: Part, right: Part) -> bool:
    """Parts of a result, whose texts may be JSON."""
    if isinstance(left, Text) and isinstance(right, Text):
        return _are_equal(left.raw, right.raw) and _alike_texts(left.text, right.text)
    return _alike_parts(left, right)


def _alike_texts(left: str, right: str) -> bool:
    """Whether two texts are equal, or the same object or list as JSON."""
    if left == right:
        return True
    if left.lstrip()[:1] not in ("{", "[") or right.lstrip()[:1] != left.lstrip()[:1]:
        return False
    try:
        return _are_equal(_value(left), _value(right))
    except (ValueError, RecursionError):
        return False


def _value(text: str) -> Any:
    return json.loads(text, parse_int=Decimal, parse_float=Decimal)


def _are_equal(left: object, right: object) -> bool:
    """As values of JSON: in Python, 1 equals true."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_are_equal(value, right[name]) for name, value in left.items())
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_are_equal, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return left == right
