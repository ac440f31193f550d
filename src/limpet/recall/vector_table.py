"""The vectors of a project in memory, and the form in which a store keeps them. Needs numpy.

A text has one vector, or several if it is long: one for each of its pieces. A number of a vector takes half a byte in
the store. The nearest texts are found in two steps: the signs of all vectors, seen from their mean, are compared, one
bit per number, and then the best of these in full. A hundred thousand texts take a few milliseconds that way.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from threading import RLock
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
SIGNS_FIRST = 8  # times the number of results, compared in full after their signs
ROOM = 1_024  # vectors a new table has room for
SAMPLE = 4_096  # vectors of which the mean is taken
BLOCK = 2_048  # vectors whose lengths and signs are computed at once: some megabytes
NO_TEXT = -1  # in place of the number of a text, in a row that is not used any more


class VectorTable:
    """Vectors of `size` numbers, by the numbers of their texts. Newer vectors of a text replace the older."""

    def __init__(self, size: int) -> None:
        self.last = 0  # the number of the newest vector loaded
        self._size = size
        self._lock = RLock()  # questions of several threads load what is new
        self._rows: dict[int, range] = {}  # by text
        self._used = 0
        self._docs: Array = np.zeros(ROOM, np.int64)
        self._bodies: Array = np.zeros((ROOM, size), np.int8)
        self._signs: Array = np.zeros((ROOM, size // 64), np.uint64, order="F")  # searched by column
        self._lengths: Array = np.ones(ROOM, np.float32)
        # The mean of the vectors, and how many there were then: signs are taken from there, or many would be the same.
        self._centre: Array = np.zeros(size, np.float32)
        self._centred = 0

    @property
    def vectors(self) -> int:
        """How many vectors it holds."""
        return self._used

    def load(self, vectors: Iterable[tuple[int, int, bytes]]) -> None:
        """Vectors as (number, text, body), the oldest first."""
        fresh: dict[int, bytes] = {}
        for number, doc, body in vectors:
            self.last = max(self.last, number)
            if body and len(body) % (self._size // 2) == 0:
                fresh[doc] = bytes(body)
        if fresh:
            with self._lock:
                self._store(fresh)

    def _store(self, fresh: dict[int, bytes]) -> None:
        rows = _joined(self._place(doc, 2 * len(body) // self._size) for doc, body in fresh.items())
        bodies = unpacked(b"".join(fresh.values()), self._size)
        self._docs[rows] = np.repeat(list(fresh), [len(self._rows[doc]) for doc in fresh])
        self._bodies[rows] = bodies
        for start in range(0, len(rows), BLOCK):
            numbers = bodies[start : start + BLOCK].astype(np.float32)
            self._lengths[rows[start : start + BLOCK]] = np.sqrt(np.einsum("ij,ij->i", numbers, numbers))
        if self._used > 2 * self._centred:
            self._centred = self._used
            sample = np.arange(0, self._used, 1 + self._used // SAMPLE)
            self._centre = (self._bodies[sample] / self._lengths[sample, None]).mean(0).astype(np.float32)
            rows = np.arange(self._used)
        self._signs[rows] = self._signs_of(rows)

    def _signs_of(self, rows: Array) -> Array:
        signs = np.empty((len(rows), self._size // 64), np.uint64)
        for start in range(0, len(rows), BLOCK):
            some = rows[start : start + BLOCK]
            signs[start : start + BLOCK] = _signs(self._bodies[some] > self._centre * self._lengths[some, None])
        return signs

    def forget(self, docs: Iterable[int]) -> None:
        """Leave texts out until newer vectors of them are loaded."""
        with self._lock:
            for doc in docs:
                if doc in self._rows:
                    self._docs[list(self._rows.pop(doc))] = NO_TEXT

    def _place(self, doc: int, count: int) -> range:
        """Rows for the vectors of a text: those it has, if they are as many."""
        before = self._rows.get(doc, range(0))
        if len(before) != count:
            if before:
                self._docs[list(before)] = NO_TEXT
            self._rows[doc] = range(self._used, self._used + count)
            self._used += count
            while len(self._docs) < self._used:
                self._docs, self._bodies, self._signs, self._lengths = map(
                    _doubled, (self._docs, self._bodies, self._signs, self._lengths)
                )
        return self._rows[doc]

    def nearest(self, vector: Array, most: int) -> dict[int, float]:
        """The nearest texts with their cosines; approximate, and nearly always right."""
        with self._lock:
            rows = self._near_by_signs(vector, SIGNS_FIRST * most)
            docs, near = self._docs[rows], self._near(vector, rows)
        best: dict[int, float] = {}
        for at in np.lexsort((docs, -near)).tolist():
            if docs[at] != NO_TEXT:
                best.setdefault(int(docs[at]), float(near[at]))
                if len(best) == most:
                    break
        return best

    def _near_by_signs(self, vector: Array, most: int) -> Array:
        if self._used <= most:
            return np.arange(self._used)
        apart = np.zeros(self._used, np.int16)
        for column, sign in enumerate(_signs(vector > self._centre)):
            apart += np.bitwise_count(self._signs[: self._used, column] ^ sign)
        # All rows as far apart as the last: which of them come first in a store must not matter.
        return np.flatnonzero(apart <= np.partition(apart, most)[most])

    def cosines(self, vector: Array, docs: Iterable[int]) -> dict[int, float]:
        """The cosines of texts, each by its nearest piece. Those without a vector are left out."""
        with self._lock:
            present = {doc: self._rows[doc] for doc in docs if doc in self._rows}
            if not present:
                return {}
            near = self._near(vector, _joined(present.values()))
        starts = np.cumsum([0, *map(len, present.values())])[:-1]
        return dict(zip(present, np.maximum.reduceat(near, starts).tolist(), strict=True))

    def _near(self, vector: Array, rows: Array) -> Array:
        near: Array = self._bodies[rows].astype(np.float32) @ vector / self._lengths[rows]
        return near


def _joined(ranges: Iterable[range]) -> Array:
    return np.fromiter(chain.from_iterable(ranges), np.int64)


def packed(vectors: Array) -> bytes:
    """Vectors as they are stored: half a byte per number, which loses no match worth having."""
    most = np.abs(vectors).max(-1, keepdims=True)
    steps = np.clip(np.floor(vectors * (8 / most)), -8, 7).astype(np.int8) + 8
    body: bytes = (steps[..., 0::2] << 4 | steps[..., 1::2]).astype(np.uint8).tobytes()
    return body


def unpacked(bodies: bytes, size: int) -> Array:
    """Stored vectors, one after the other, as odd whole numbers, so that every number has a sign."""
    halves = np.frombuffer(bodies, np.uint8).reshape(-1, size // 2)
    numbers = np.empty((len(halves), size), np.int8)
    numbers[:, 0::2] = (halves >> 4).view(np.int8) * 2 - 15
    numbers[:, 1::2] = (halves & 15).view(np.int8) * 2 - 15
    return numbers


def unit(vectors: Array) -> Array:
    """Vectors of length one in the same directions."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    directions: Array = vectors / np.maximum(length, 1e-9)
    return directions


def _doubled(table: Array) -> Array:
    room = np.zeros((2 * len(table), *table.shape[1:]), table.dtype, order="F" if table.flags.fnc else "C")
    room[: len(table)] = table
    return room


def _signs(positive: Array) -> Array:
    signs: Array = np.packbits(positive, axis=-1).view(np.uint64)
    return signs
