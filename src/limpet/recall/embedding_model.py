"""A static embedding: every piece of a word has a vector, and a text has the mean of those of its words.

The vectors come with the package `wordllama`; only its two data files are read. Its own code would bring a tokenizer
and a client for downloads along, and takes a second to import. numpy is imported here, by whoever asks for meaning.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np

from limpet.recall.question import STOP
from limpet.text import words as analyse

Array = np.ndarray[Any, np.dtype[Any]]
PACKAGE = "wordllama"
SIZE = 256  # numbers of a vector
KEPT_BYTES = SIZE // 2  # of a vector as it is kept
FORM = 2  # how a text becomes a vector; a new way gets a new number, so that what is kept is made anew
READ_CHARS = 20_000  # of a text: of a longer one the mean says little anyway
LONG_WORD = 64  # letters; of a longer one each stretch is taken by itself, for joining takes the square of its length
KNOWN_WORDS = 50_000  # words whose pieces a process remembers
KEPT_WORDS = 16_384  # words whose directions it remembers, a kilobyte each; then it begins anew
_START = "\u2581"  # of a word, in the vocabulary


class Model:
    """The vectors and the vocabulary. `name` says which they are; vectors of another name cannot be compared."""

    def __init__(self, folder: str, release: str) -> None:
        self.name = f"{PACKAGE}-{SIZE}/{release}/{FORM}"
        self._weights = _weights(_only(os.path.join(folder, "weights"), f"_{SIZE}.safetensors"))
        self._vocabulary = _vocabulary(_only(os.path.join(folder, "tokenizers"), ".json"))
        self.pieces = lru_cache(KNOWN_WORDS)(self._pieces)
        self._rows: dict[str, int] = {}  # of a table, which takes up room as it is filled
        self._table: Array = np.empty((KEPT_WORDS, SIZE), np.float32)
        self._learning = Lock()

    def _pieces(self, word: str) -> tuple[int, ...]:
        """The numbers of the pieces of a word: of two that stand side by side, those that are commonest join first."""
        if len(word) > LONG_WORD:
            parts = [word[at : at + LONG_WORD] for at in range(0, len(word), LONG_WORD)]
            return tuple(number for part in parts for number in self._pieces(part))
        known = self._vocabulary
        parts = [_START, *word]
        while len(parts) > 1:
            joined = [known.get(one + two, SIZE << 20) for one, two in pairwise(parts)]
            best = min(joined)
            if best == SIZE << 20:
                break
            at = joined.index(best)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return tuple(number for part in parts for number in self._numbers(part))

    def _numbers(self, part: str) -> Iterator[int]:
        """A piece the vocabulary does not have is told by its bytes."""
        if part in self._vocabulary:
            yield self._vocabulary[part]
        else:
            yield from (self._vocabulary[f"<0x{byte:02X}>"] for byte in part.encode("utf-8", "replace"))

    def vector(self, words: Iterable[str]) -> Array:
        """The direction of some words together; zeros for none."""
        numbers = [number for word in words for number in self.pieces(word)]
        return unit(self._weights[numbers].astype(np.float32).sum(0)) if numbers else np.zeros(SIZE, np.float32)

    def weighed(self, words: Mapping[str, float]) -> Array:
        """The direction of some words together, each with its weight."""
        pieces = [(number, weight) for word, weight in words.items() for number in self.pieces(word)]
        if not pieces:
            return np.zeros(SIZE, np.float32)
        numbers, weights = zip(*pieces, strict=True)
        return unit(np.array(weights, np.float32) @ self._weights[list(numbers)].astype(np.float32))

    def vectors(self, words: Sequence[str]) -> Array:
        """The directions of words, each by itself."""
        pieces = [self.pieces(word) for word in words]
        starts = np.cumsum([0, *map(len, pieces[:-1])])
        flat = self._weights[[number for some in pieces for number in some]].astype(np.float32)
        return unit(np.add.reduceat(flat, starts, axis=0))

    def likeness(self, words: Sequence[str], asked: Sequence[str]) -> Array:
        """The cosines of many words, a row each, with the few that are asked about. Each word is given once.

        Not `@`: for a product of this size a numerical library wakes a thread for every core, and these go on spinning
        for milliseconds after their part is done.
        """
        found: Array = np.einsum("ij,kj->ik", self._remembered(words), self.vectors(asked))
        return found

    def _remembered(self, words: Sequence[str]) -> Array:
        """The directions of words, most of which were asked for before."""
        if len(words) > KEPT_WORDS:
            return self.vectors(words)
        with self._learning:
            if len(self._rows) + len(new := [word for word in words if word not in self._rows]) > KEPT_WORDS:
                self._rows.clear()
                new = list(words)
            if new:
                first = len(self._rows)
                self._table[first : first + len(new)] = self.vectors(new)
                self._rows.update(zip(new, range(first, first + len(new)), strict=True))
            found: Array = self._table[[self._rows[word] for word in words]]
            return found

    def kept(self, text: str) -> bytes:
        """A text as it is kept: half a byte a number, which costs no hit worth having. Empty for one without words."""
        found = self.vector(telling(text))
        most = float(np.abs(found).max())
        if not most:
            return b""  # it says nothing that could be compared
        steps = np.clip(np.floor(found * (8 / most)), -8, 7).astype(np.int8) + 8
        packed: bytes = (steps[0::2] << 4 | steps[1::2]).astype(np.uint8).tobytes()
        return packed


def unpacked(bodies: bytes) -> Array:
    """Vectors as they were kept, one after the other: odd whole numbers, so that every one of them has a sign."""
    packed = np.frombuffer(bodies, np.uint8).reshape(-1, KEPT_BYTES)
    found = np.empty((len(packed), SIZE), np.int8)
    found[:, 0::2] = (packed >> 4).view(np.int8) * 2 - 15
    found[:, 1::2] = (packed & 15).view(np.int8) * 2 - 15
    return found


@cache  # whoever opens a store asks for it, and its files need be read once only
def load() -> Model | None:
    """The model, when its package is there."""
    spec = find_spec(PACKAGE)  # looks where it is, and does not run it
    if spec is None or not spec.submodule_search_locations:
        return None
    try:
        return Model(spec.submodule_search_locations[0], version(PACKAGE))
    except (OSError, ValueError, PackageNotFoundError):
        return None  # another release with other files: words alone are searched then


def telling(text: str) -> list[str]:
    """The words of a text that say something, as often as it says them."""
    head = text[:READ_CHARS]
    found = [*analyse.short_words(analyse.fold(head)), *analyse.subwords(head)]
    return [word for word in found if word not in STOP] or found


def unit(vectors: Array) -> Array:
    """Vectors of length one in the same directions."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    found: Array = vectors / np.maximum(length, 1e-9)
    return found


def _only(folder: str, ending: str) -> str:
    found = [name for name in sorted(os.listdir(folder)) if name.endswith(ending)]
    if len(found) != 1:
        raise ValueError(f"{len(found)} files *{ending} in {folder}")
    return os.path.join(folder, found[0])


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
    """Pieces of words and their numbers, the commonest first. The rest of the file is twice as long and not needed."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    at = text.index("{", text.index('"vocab"'))
    found: dict[str, int] = json.JSONDecoder().raw_decode(text, at)[0]
    return found
