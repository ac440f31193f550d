"""What a question is about, compared with what texts are about: the vectors of a project, held in memory.

The store keeps a vector for each text (`Store.vectors`); a process learns those that are new to it before each
question. The nearest are found in two steps: the signs of all vectors are compared, a few bits each, and then the best
of these in full. A hundred thousand texts take a few milliseconds that way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np

from limpet.model import Scope
from limpet.recall.embedding_model import KEPT_BYTES, SIZE, Array, Model, telling, unpacked
from limpet.recall.rank import without_speaker

SIGNS_FIRST = 8  # times as many are compared in full as are wanted
ROOM = 1_024  # vectors a new table has room for


class Table:
    """The vectors of one project, by the numbers of its texts. A newer one takes the place of an older."""

    def __init__(self) -> None:
        self.last = 0  # the number of the newest vector known
        self._rows: dict[int, int] = {}
        self._docs: Array = np.zeros(ROOM, np.int64)
        self._bodies: Array = np.zeros((ROOM, SIZE), np.int8)
        self._signs: Array = np.zeros((ROOM, SIZE // 64), np.uint64, order="F")  # a column is read as a whole
        self._lengths: Array = np.ones(ROOM, np.float32)

    def learn(self, arrived: Iterable[tuple[int, int, bytes]]) -> None:
        """Vectors as (number, text, body), the oldest first."""
        fresh = {doc: bytes(body) for number, doc, body in arrived if self._seen(number) and len(body) == KEPT_BYTES}
        if not fresh:
            return
        rows = [self._rows.setdefault(doc, len(self._rows)) for doc in fresh]
        while len(self._docs) < len(self._rows):
            self._docs, self._bodies, self._signs, self._lengths = map(
                _doubled, (self._docs, self._bodies, self._signs, self._lengths)
            )
        bodies = unpacked(b"".join(fresh.values()))
        self._docs[rows] = list(fresh)
        self._bodies[rows] = bodies
        self._signs[rows] = _signs(bodies)
        self._lengths[rows] = np.maximum(np.linalg.norm(bodies.astype(np.float32), axis=1), 1)

    def _seen(self, number: int) -> bool:
        self.last = max(self.last, number)
        return True

    def nearest(self, vector: Array, most: int) -> dict[int, float]:
        """The texts that are nearest, with their cosines; nearly always the right ones."""
        count = len(self._rows)
        if not count:
            return {}
        rows = np.arange(count)
        if count > SIGNS_FIRST * most:
            apart = np.zeros(count, np.int16)
            for column, sign in enumerate(_signs(vector)):
                apart += np.bitwise_count(self._signs[:count, column] ^ sign)
            rows = np.argpartition(apart, SIGNS_FIRST * most)[: SIGNS_FIRST * most]
        near = self._bodies[rows].astype(np.float32) @ vector / self._lengths[rows]
        best = np.argsort(-near, kind="stable")[:most]
        return {int(self._docs[rows[at]]): float(near[at]) for at in best}

    def cosines(self, vector: Array, docs: Iterable[int]) -> dict[int, float]:
        """How near texts are. Those without a vector are left out."""
        known = [doc for doc in docs if doc in self._rows]
        if not known:
            return {}
        rows = [self._rows[doc] for doc in known]
        near = self._bodies[rows].astype(np.float32) @ vector / self._lengths[rows]
        return dict(zip(known, near.tolist(), strict=True))


class Meaning:
    """A model, and what this process has learned with it."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._tables: dict[Scope, Table] = {}

    def table(self, scope: Scope) -> Table:
        return self._tables.setdefault(scope, Table())

    def kept(self, text: str) -> bytes:
        return self.model.kept(without_speaker(text))

    def asked(self, scope: Scope) -> Asked:
        return Asked(self.model, self.table(scope))


class Asked:
    """What recall/rank.py asks for one question."""

    def __init__(self, model: Model, table: Table) -> None:
        self._model = model
        self._table = table

    def nearest(self, words: Sequence[str], most: int) -> dict[int, float]:
        return self._table.nearest(self._model.vector(words), most)

    def cosines(self, words: Mapping[str, float], docs: Iterable[int]) -> Mapping[int, float]:
        return self._table.cosines(self._model.weighed(words), docs) if words else {}

    def likeness(self, words: Sequence[str], texts: Mapping[int, str]) -> Mapping[int, Sequence[float]]:
        """By text, how like each of the words the word of the text is that is most like it."""
        told = {doc: list(dict.fromkeys(found)) for doc, text in texts.items() if (found := telling(text))}
        different = list(dict.fromkeys(chain.from_iterable(told.values())))
        if not different or not words:
            return {}
        like = self._model.likeness(different, words)
        number = {word: at for at, word in enumerate(different)}
        places = [number[word] for found in told.values() for word in found]
        starts = np.cumsum([0, *map(len, told.values())])[:-1]
        best = np.maximum.reduceat(like[places], starts, axis=0)
        return dict(zip(told, best.tolist(), strict=True))


def _doubled(table: Array) -> Array:
    room = np.zeros((2 * len(table), *table.shape[1:]), table.dtype, order="F" if table.flags.fnc else "C")
    room[: len(table)] = table
    return room


def _signs(vectors: Array) -> Array:
    found: Array = np.packbits(vectors > 0, axis=-1).view(np.uint64)
    return found
