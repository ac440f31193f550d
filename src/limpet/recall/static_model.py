"""A static embedding model: the vector of a text is the mean of the vectors of its words. Needs numpy, which comes with
the extra `semantic`.

The vectors come with the package `wordllama`, of which just the two data files are read: its own code brings a
tokenizer and a client for downloads, and takes a second to import. A thousand texts take a fraction of a second.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import chain, pairwise
from threading import Lock

import numpy as np

from limpet.recall.embeddings import STATIC
from limpet.recall.question import STOP
from limpet.recall.rank import without_speaker
from limpet.recall.vector_table import Array, VectorTable, packed, unit
from limpet.text import words as analyse

PACKAGE = "wordllama"
SIZE = 256  # numbers of a vector
FORM = 2  # how a text becomes a vector; a new way gets a new number, so that stored vectors are computed again
READ_CHARS = 20_000  # of a text: the mean of a longer one says little anyway
LONG_WORD = 64  # letters; a longer word is cut, because joining parts takes the square of its length
CACHED_WORDS = 50_000  # words whose parts a process caches
CACHED_DIRECTIONS = 16_384  # words whose directions it caches, a kilobyte each; then the cache is emptied
_START = "\u2581"  # of a word, in the vocabulary


class StaticModel:
    """The vectors and the vocabulary. Vectors of models with different names cannot be compared."""

    def __init__(self, folder: str, release: str) -> None:
        self.label = f"{PACKAGE}-{SIZE}"
        self.name = f"{self.label}/{release}/{FORM}"
        self.kind, self.size = STATIC, SIZE
        self._weights = _weights(_only(os.path.join(folder, "weights"), f"_{SIZE}.safetensors"))
        self._vocabulary = _vocabulary(_only(os.path.join(folder, "tokenizers"), ".json"))
        self.parts_of = lru_cache(CACHED_WORDS)(self._split)
        self._rows: dict[str, int] = {}  # by word, its row in the table
        self._table: Array = np.empty((CACHED_DIRECTIONS, SIZE), np.float32)
        self._learning = Lock()

    def _split(self, word: str) -> tuple[int, ...]:
        """The numbers of the parts of a word: of adjacent parts, the most common pair is joined first."""
        if len(word) > LONG_WORD:
            parts = [word[at : at + LONG_WORD] for at in range(0, len(word), LONG_WORD)]
            return tuple(number for part in parts for number in self._split(part))
        vocabulary = self._vocabulary
        parts = [_START, *word]
        while len(parts) > 1:
            joined = [vocabulary.get(left + right, SIZE << 20) for left, right in pairwise(parts)]
            best = min(joined)
            if best == SIZE << 20:
                break
            at = joined.index(best)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return tuple(number for part in parts for number in self._numbers(part))

    def _numbers(self, part: str) -> Iterator[int]:
        """A part that is not in the vocabulary is spelled by its bytes."""
        if part in self._vocabulary:
            yield self._vocabulary[part]
        else:
            yield from (self._vocabulary[f"<0x{byte:02X}>"] for byte in part.encode("utf-8", "replace"))

    def vector(self, words: Iterable[str]) -> Array:
        """The direction of some words together; zeros for none."""
        numbers = [number for word in words for number in self.parts_of(word)]
        return unit(self._weights[numbers].astype(np.float32).sum(0)) if numbers else np.zeros(SIZE, np.float32)

    def weighed(self, words: Mapping[str, float]) -> Array:
        """The direction of some words together, each with its weight."""
        pieces = [(number, weight) for word, weight in words.items() for number in self.parts_of(word)]
        if not pieces:
            return np.zeros(SIZE, np.float32)
        numbers, weights = zip(*pieces, strict=True)
        return unit(np.array(weights, np.float32) @ self._weights[list(numbers)].astype(np.float32))

    def vectors(self, words: Sequence[str]) -> Array:
        """The directions of words, each by itself."""
        pieces = [self.parts_of(word) for word in words]
        starts = np.cumsum([0, *map(len, pieces[:-1])])
        flat = self._weights[[number for some in pieces for number in some]].astype(np.float32)
        return unit(np.add.reduceat(flat, starts, axis=0))

    def likeness(self, words: Sequence[str], question: Sequence[str]) -> Array:
        """The cosines of many words, one row each, with the few of the question. No word occurs twice.

        Not `@`: for a product of this size a numerical library wakes a thread for every core, and these go on spinning
        for milliseconds after their part is done.
        """
        cosines: Array = np.einsum("ij,kj->ik", self._cached(words), self.vectors(question))
        return cosines

    def _cached(self, words: Sequence[str]) -> Array:
        """The directions of words, most of which are in the cache."""
        if len(words) > CACHED_DIRECTIONS:
            return self.vectors(words)
        with self._learning:
            if len(self._rows) + len(new := [word for word in words if word not in self._rows]) > CACHED_DIRECTIONS:
                self._rows.clear()
                new = list(words)
            if new:
                first = len(self._rows)
                self._table[first : first + len(new)] = self.vectors(new)
                self._rows.update(zip(new, range(first, first + len(new)), strict=True))
            directions: Array = self._table[[self._rows[word] for word in words]]
            return directions

    def stored(self, texts: Sequence[str]) -> list[bytes]:
        """The vectors of texts as they are stored. Empty for a text without words: there is nothing to compare."""
        vectors = (self.vector(content_words(without_speaker(text))) for text in texts)
        return [packed(vector) if vector.any() else b"" for vector in vectors]

    def sense(self, text: str, table: VectorTable) -> StaticSense:
        return StaticSense(self, table)


class StaticSense:
    """Compares one question with the texts of a project: `Sense` of recall/embeddings.py."""

    kind = STATIC

    def __init__(self, model: StaticModel, table: VectorTable) -> None:
        self._model = model
        self._table = table

    def nearest(self, words: Sequence[str], most: int) -> dict[int, float]:
        return self._table.nearest(self._model.vector(words), most)

    def cosines(self, words: Mapping[str, float], docs: Iterable[int]) -> Mapping[int, float]:
        return self._table.cosines(self._model.weighed(words), docs) if words else {}

    def likeness(self, words: Sequence[str], texts: Mapping[int, str]) -> Mapping[int, Sequence[float]]:
        return likeness(self._model, words, texts)


def likeness(model: StaticModel, words: Sequence[str], texts: Mapping[int, str]) -> Mapping[int, Sequence[float]]:
    """By text, for each word of the question the cosine of the word of the text that is most like it."""
    by_doc = {doc: list(dict.fromkeys(content)) for doc, text in texts.items() if (content := content_words(text))}
    different = list(dict.fromkeys(chain.from_iterable(by_doc.values())))
    if not different or not words:
        return {}
    like = model.likeness(different, words)
    number = {word: at for at, word in enumerate(different)}
    places = [number[word] for content in by_doc.values() for word in content]
    starts = np.cumsum([0, *map(len, by_doc.values())])[:-1]
    best = np.maximum.reduceat(like[places], starts, axis=0)
    return dict(zip(by_doc, best.tolist(), strict=True))


@cache  # every opened store asks for it; its files are read once
def load() -> StaticModel | None:
    """The model, if its package is installed."""
    spec = find_spec(PACKAGE)  # finds the package without running it
    if spec is None or not spec.submodule_search_locations:
        return None
    try:
        return StaticModel(spec.submodule_search_locations[0], version(PACKAGE))
    except (OSError, ValueError, PackageNotFoundError):
        return None  # another release with other files: words alone are searched then


def content_words(text: str) -> list[str]:
    """The words of a text without stop words, as often as they occur."""
    head = text[:READ_CHARS]
    every = [*analyse.short_words(analyse.fold(head)), *analyse.subwords(head)]
    return [word for word in every if word not in STOP] or every


def _only(folder: str, ending: str) -> str:
    names = [name for name in sorted(os.listdir(folder)) if name.endswith(ending)]
    if len(names) != 1:
        raise ValueError(f"{len(names)} files *{ending} in {folder}")
    return os.path.join(folder, names[0])


def _weights(path: str) -> Array:
    """The only table of a safetensors file: a length, that much JSON, then the numbers. Read as they are needed."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        tables = json.loads(file.read(min(size, 1 << 20)))
    (table,) = (value for name, value in tables.items() if name != "__metadata__")
    if table["dtype"] != "F16" or table["shape"][1] != SIZE:
        raise ValueError(f"{path} holds {table['dtype']} {table['shape']}")
    first = 8 + size + table["data_offsets"][0]
    return np.asarray(np.memmap(path, np.float16, "r", first, tuple(table["shape"])))  # plain arrays are faster


def _vocabulary(path: str) -> dict[str, int]:
    """Parts of words and their numbers, the most common first. The rest of the file is twice as long and not needed."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    at = text.index("{", text.index('"vocab"'))
    vocabulary: dict[str, int] = json.JSONDecoder().raw_decode(text, at)[0]
    return vocabulary
