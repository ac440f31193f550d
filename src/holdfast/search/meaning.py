"""What a question is about, compared with what texts are about: the vectors of a project, held in memory.

The store keeps a vector for each text (`Store.vectors`); a process learns those that are new to it before each question.
The nearest are found in two steps: the signs of all vectors are compared, a few bits each, and then the best of these
in full. A hundred thousand texts take about a millisecond that way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from holdfast.model import Scope
from holdfast.search.embed import SIZE, Array, Model, telling, unit

SIGNS_FIRST = 8  # times as many are compared in full as are wanted
ROOM = 1_024  # vectors a new table has room for


class Table:
    """The vectors of one project, by the numbers of its texts. A newer one takes the place of an older."""

    def __init__(self) -> None:
        self.last = 0  # the number of the newest vector known
        self._rows: dict[int, int] = {}
        self._docs: Array = np.zeros(ROOM, np.int64)
        self._bodies: Array = np.zeros((ROOM, SIZE), np.int8)
        self._signs: Array = np.zeros((ROOM, SIZE // 64), np.uint64)

    def learn(self, arrived: Iterable[tuple[int, int, bytes]]) -> None:
        """Vectors as (number, text, body), the oldest first."""
        fresh = {doc: bytes(body) for number, doc, body in arrived if self._seen(number) and len(body) == SIZE}
        if not fresh:
            return
        rows = [self._rows.setdefault(doc, len(self._rows)) for doc in fresh]
        while len(self._docs) < len(self._rows):
            self._docs, self._bodies, self._signs = map(_doubled, (self._docs, self._bodies, self._signs))
        bodies = np.frombuffer(b"".join(fresh.values()), np.int8).reshape(-1, SIZE)
        self._docs[rows] = list(fresh)
        self._bodies[rows] = bodies
        self._signs[rows] = _signs(bodies)

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
            apart = np.bitwise_count(self._signs[:count] ^ _signs(vector)).sum(1, dtype=np.int16)
            rows = np.argpartition(apart, SIGNS_FIRST * most)[: SIGNS_FIRST * most]
        near = unit(self._bodies[rows].astype(np.float32)) @ vector
        best = np.argsort(-near, kind="stable")[:most]
        return {int(self._docs[rows[at]]): float(near[at]) for at in best}

    def cosines(self, vector: Array, bundles: Mapping[int, Sequence[tuple[int, float]]]) -> dict[int, float]:
        """By text, how near it is together with others, each with a weight. Texts without a vector are left out."""
        known = [doc for doc in bundles if doc in self._rows]
        if not known:
            return {}
        sums = unit(self._bodies[[self._rows[doc] for doc in known]].astype(np.float32))
        at, others, weights = [], [], []
        for place, doc in enumerate(known):
            for other, weight in bundles[doc]:
                if other in self._rows:
                    at.append(place)
                    others.append(self._rows[other])
                    weights.append(weight)
        if at:
            beside = unit(self._bodies[others].astype(np.float32)) * np.array(weights, np.float32)[:, None]
            np.add.at(sums, at, beside)
        return dict(zip(known, (unit(sums) @ vector).tolist(), strict=True))


class Meaning:
    """A model, and what this process has learned with it."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._tables: dict[Scope, Table] = {}

    def table(self, scope: Scope) -> Table:
        return self._tables.setdefault(scope, Table())

    def kept(self, text: str) -> bytes:
        return self.model.kept(text)

    def asked(self, scope: Scope) -> Asked:
        return Asked(self.model, self.table(scope))


class Asked:
    """What search/rank.py asks for one question."""

    def __init__(self, model: Model, table: Table) -> None:
        self._model = model
        self._table = table

    def nearest(self, words: Sequence[str], most: int) -> dict[int, float]:
        return self._table.nearest(self._model.vector(words), most)

    def cosines(
        self, words: Sequence[str], bundles: Mapping[int, Sequence[tuple[int, float]]]
    ) -> Mapping[int, float]:
        return self._table.cosines(self._model.vector(words), bundles) if words else {}

    def likeness(self, words: Sequence[str], texts: Mapping[int, str]) -> Mapping[int, Sequence[float]]:
        """By text, how like each of the words the word of the text is that is most like it."""
        told = {doc: telling(text) for doc, text in texts.items()}
        every = list(dict.fromkeys(word for found in told.values() for word in found))
        if not every or not words:
            return {}
        number = {word: at for at, word in enumerate(every)}
        like = self._model.vectors(words) @ self._model.vectors(every).T
        return {doc: like[:, [number[word] for word in found]].max(1).tolist() for doc, found in told.items() if found}


def _doubled(table: Array) -> Array:
    return np.concatenate((table, np.zeros_like(table)))


def _signs(vectors: Array) -> Array:
    found: Array = np.packbits(vectors > 0, axis=-1).view(np.uint64)
    return found
