"""A small transformer that makes one vector of a text, on the processor, with numpy alone.

It is granite-embedding-30m-english: six layers of the kind of RoBERTa, whose weights take a byte each. They come as one
file in a package that is an extra (`limpet[embed]`), and just this file is read; `recall.model_path` names another file
of the same form. A file that is not exactly the known one, or is damaged, is refused with a sentence that says so.

The file: `HMSEMB01`, the length of a header, the header (JSON: sizes, and the tables in order), a tokenizer (JSON),
then the tables. A table of bytes is followed by its scales, one for each group of numbers in a row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from ctypes import CDLL, c_int
from functools import cache, lru_cache
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from math import prod, sqrt
from pathlib import Path
from stat import S_ISREG
from threading import Lock
from typing import Any

import numpy as np

from limpet import errors
from limpet.recall.embeddings import TRANSFORMER, TRANSFORMER_PACKAGE
from limpet.recall.static_model import StaticModel, likeness
from limpet.recall.vector_table import Array, VectorTable, packed, unit
from limpet.text.pieces import pieces

FILE = "packs/granite-embedding-30m-english-int8.hmsemb"
LABEL, SIZE = "granite-embedding-30m-english", 384
SHA256 = "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd"
FORM = 1  # how a text becomes a vector; a new way gets a new number, so that stored vectors are computed again
MAGIC, HEADER_MOST = b"HMSEMB01", 1 << 20
FILE_MOST = 1 << 30  # bytes
BATCH_TOKENS = 1_024  # of several texts that are computed together; more is not faster
LONG_WORD = 128  # letters; a longer word is cut, because joining parts takes the square of its length
CACHED_WORDS = 50_000  # words whose parts a process caches
CACHED_QUESTIONS = 64
PIECE_CHARS, PIECES_MOST = 1_500, 12  # of a text, each with a vector of its own; a longer text is embedded up to there
UNRELATED = 0.5  # the cosine of two texts that have nothing to do with each other
FIRST, LAST = 0, 2  # the tokens around a text
POSITIONS_FROM = 2

# Words, numbers and signs, each with the space before it. A letter is what is neither a digit nor another numeral.
_NUMERALS = "²³¹¼-¾⁰⁴-⁹₀-₉⅐-\u2189①-⒛⓪-⓿❶-➓"
_PRE = re.compile(
    rf"'(?:s|t|re|ve|m|ll|d)| ?(?:(?![{_NUMERALS}])[^\W\d_])+| ?[\d{_NUMERALS}]+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+"
)


class BytePairTokenizer:
    """Cuts a text into tokens: bytes, of which the pairs that were most common in training are joined first."""

    def __init__(self, vocabulary: Mapping[str, int], merges: Sequence[str]) -> None:
        self._vocabulary = vocabulary
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._never = len(self._ranks)
        self.parts_of = lru_cache(CACHED_WORDS)(self._split)

    def tokens(self, text: str, most: int) -> list[int]:
        """The numbers of the tokens of a text, at most so many."""
        tokens: list[int] = []
        for word in _PRE.finditer(text):
            tokens += self.parts_of(word[0])
            if len(tokens) >= most:
                break
        return tokens[:most]

    def _split(self, word: str) -> tuple[int, ...]:
        if len(word) > LONG_WORD:
            pieces = (word[at : at + LONG_WORD] for at in range(0, len(word), LONG_WORD))
            return tuple(token for piece in pieces for token in self._split(piece))
        parts = [_LETTERS[byte] for byte in word.encode("utf-8", "replace")]
        while len(parts) > 1:
            ranks = [self._ranks.get(f"{parts[at]} {parts[at + 1]}", self._never) for at in range(len(parts) - 1)]
            best = min(ranks)
            if best == self._never:
                break
            at = ranks.index(best)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return tuple(self._vocabulary[part] for part in parts if part in self._vocabulary)


def _letters() -> list[str]:
    """A visible letter for each byte, which is how the vocabulary writes it."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(0x100) if byte not in visible)
    letters = {byte: chr(byte) for byte in visible} | {byte: chr(0x100 + at) for at, byte in enumerate(others)}
    return [letters[byte] for byte in range(0x100)]


_LETTERS = _letters()


class Network:
    """The layers, with their weights."""

    def __init__(self, header: Mapping[str, Any], tokenizer: BytePairTokenizer, tables: Mapping[str, Array]) -> None:
        shape = header["arch"]
        self.label = str(header["meta"]["model"]).rpartition("/")[2]
        self.size = int(shape["hidden"])
        self.most_tokens = min(int(header["meta"]["max_length"]), int(shape["max_positions"]) - POSITIONS_FROM)
        self._heads, self._layers = int(shape["heads"]), int(shape["layers"])
        self._epsilon = float(shape["layer_norm_eps"])
        self._tokenizer = tokenizer
        self._tables = tables
        self._places = tables["pos_emb"][POSITIONS_FROM:] + tables["type_emb"][0]

    def tokens(self, text: str) -> list[int]:
        return [FIRST, *self._tokenizer.tokens(text, self.most_tokens - 2), LAST]

    def vectors(self, texts: Sequence[str]) -> Array:
        """A vector of length one for each text. Texts of about the same length are computed together."""
        lines = [self.tokens(text) for text in texts]
        vectors = np.empty((len(lines), self.size), np.float32)
        with one_thread(), np.errstate(over="ignore"):  # GELU of a large negative number is 0, by way of infinity
            for batch in _batches(lines):
                vectors[batch] = self._forward([lines[at] for at in batch])
        return unit(vectors)

    def _forward(self, lines: Sequence[Sequence[int]]) -> Array:
        longest = max(map(len, lines))
        tokens = np.ones((len(lines), longest), np.int64)
        hidden = np.zeros((len(lines), 1, 1, longest), np.float32)  # what is added to the weight of a token
        for at, line in enumerate(lines):
            tokens[at, : len(line)] = line
            hidden[at, ..., len(line) :] = -np.inf
        state = self._normal(self._words(tokens) + self._places[:longest], "emb_ln")
        for layer in range(self._layers):
            # The first token is the vector of the text, so the last layer computes no other.
            queries = state if layer < self._layers - 1 else state[:, :1]
            state = self._normal(
                queries + self._attention(f"l{layer}", state, queries.shape[1], hidden), f"l{layer}.aln"
            )
            state = self._normal(state + self._feed(f"l{layer}", state), f"l{layer}.fln")
        first: Array = state[:, 0]
        return first

    def _words(self, tokens: Array) -> Array:
        """The vectors of tokens, out of a table of bytes and one of their scales."""
        scales = self._tables["word_emb.scales"][tokens]
        groups = self._tables["word_emb"][tokens].reshape(*scales.shape, -1)
        return (groups * scales[..., None]).reshape(*tokens.shape, self.size)

    def _attention(self, layer: str, state: Array, asking: int, hidden: Array) -> Array:
        """What each of the first `asking` tokens takes from all tokens of its text."""
        texts, length, _ = state.shape
        width = self.size // self._heads
        parts = self._linear(f"{layer}.qkv", state).reshape(texts, length, 3, self._heads, width)
        question, key, value = parts.transpose(2, 0, 3, 1, 4)
        weights = question[:, :, :asking] @ key.swapaxes(-1, -2)
        weights *= 1 / sqrt(width)
        weights += hidden
        weights -= weights.max(-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(-1, keepdims=True)
        return self._linear(f"{layer}.ao", (weights @ value).swapaxes(1, 2).reshape(texts, asking, self.size))

    def _feed(self, layer: str, state: Array) -> Array:
        inner = self._linear(f"{layer}.f1", state)
        gate = inner * inner  # GELU, by the usual approximation: x / (1 + exp(-1.596 x - 0.0714 x³))
        gate *= -0.07135481627
        gate -= 1.5957691216
        gate *= inner
        np.exp(gate, out=gate)
        gate += 1
        inner /= gate
        return self._linear(f"{layer}.f2", inner)

    def _linear(self, name: str, state: Array) -> Array:
        flat = state.reshape(-1, state.shape[-1]) @ self._tables[f"{name}.w"]
        flat += self._tables[f"{name}.b"]
        return flat.reshape(*state.shape[:-1], -1)

    def _normal(self, state: Array, name: str) -> Array:
        state = state - state.mean(-1, keepdims=True)
        spread = np.einsum("...i,...i->...", state, state)[..., None] / self.size
        state /= np.sqrt(spread + self._epsilon)
        state *= self._tables[f"{name}.w"]
        state += self._tables[f"{name}.b"]
        return state


class Transformer:
    """The model: `EmbeddingModel` of recall/embeddings.py. The known file is not read before it is needed."""

    kind = TRANSFORMER

    def __init__(self, path: Path, expected: str | None = SHA256) -> None:
        self._path, self._hash = path, expected
        self._network: Network | None = None
        self._loading = Lock()
        self.label, self.size = LABEL, SIZE
        if expected is None:
            self._network, self._hash = load(path, None)
            self.label, self.size = self._network.label, self._network.size
        self.name = f"{TRANSFORMER}/{self.label}/{str(self._hash)[:12]}/{FORM}"
        self.static: StaticModel | None = None  # compares single words
        self.question = lru_cache(CACHED_QUESTIONS)(self._question)

    def network(self) -> Network:
        with self._loading:
            if self._network is None:
                self._network, _ = load(self._path, self._hash)
            return self._network

    def stored(self, texts: Sequence[str]) -> list[bytes]:
        """The vectors of texts as they are stored: one for each piece."""
        cut = [pieces(text, PIECE_CHARS, PIECES_MOST) for text in texts]
        vectors = self.network().vectors([piece for some in cut for piece in some])
        ends = np.cumsum([len(some) for some in cut])
        return [packed(vectors[end - len(some) : end]) if some else b"" for some, end in zip(cut, ends, strict=True)]

    def sense(self, text: str, table: VectorTable) -> TransformerSense:
        return TransformerSense(self.question(text[:PIECE_CHARS]), table, self.static)

    def _question(self, text: str) -> Array:
        vector: Array = self.network().vectors([text])[0]
        return vector


class TransformerSense:
    """Compares one question with the texts of a project: `Sense` of recall/embeddings.py."""

    kind = TRANSFORMER

    def __init__(self, vector: Array, table: VectorTable, static: StaticModel | None) -> None:
        self._vector = vector
        self._table = table
        self._static = static

    def nearest(self, words: Sequence[str], most: int) -> dict[int, float]:
        return _similarities(self._table.nearest(self._vector, most))

    def cosines(self, words: Mapping[str, float], docs: Iterable[int]) -> dict[int, float]:
        return _similarities(self._table.cosines(self._vector, docs))

    def likeness(self, words: Sequence[str], texts: Mapping[int, str]) -> Mapping[int, Sequence[float]]:
        return likeness(self._static, words, texts) if self._static else {}


def _similarities(cosines: Mapping[int, float]) -> dict[int, float]:
    return {doc: max(0.0, (cosine - UNRELATED) / (1 - UNRELATED)) for doc, cosine in cosines.items()}


def _batches(lines: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """The places of lines, in groups of about the same length that have at most BATCH_TOKENS tokens when filled up."""
    batch: list[int] = []
    for at in sorted(range(len(lines)), key=lambda at: len(lines[at])):
        if batch and (len(batch) + 1) * len(lines[at]) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


# --- one thread -------------------------------------------------------------------------------------------------------


class _Blas:
    """The number of threads of the library that multiplies for numpy, where it is OpenBLAS and can be asked.

    Several threads make products of this size slower on a busy machine, many times over, and the processor time of a
    question grows in any case: they go on spinning after their part is done.
    """

    def __init__(self) -> None:
        self._users = 0
        self._before = 0
        self._lock = Lock()
        self._get: Callable[[], int] | None = None
        self._set: Callable[[int], None] | None = None
        with suppress(ImportError, OSError, AttributeError):  # another library, or another system
            library = CDLL(str(import_module("numpy._core._multiarray_umath").__file__))
            get, set_ = library.scipy_openblas_get_num_threads64_, library.scipy_openblas_set_num_threads64_
            get.restype, set_.argtypes, set_.restype = c_int, [c_int], None
            self._get, self._set = get, set_

    def enter(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1 and self._get and self._set:
                self._before = self._get()
                self._set(1)

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users and self._set:
                self._set(self._before)


_blas = _Blas()


@contextmanager
def one_thread() -> Iterator[None]:
    """Matrix products of this process take one thread meanwhile, and afterwards as many as before."""
    _blas.enter()
    try:
        yield
    finally:
        _blas.leave()


# --- the file ---------------------------------------------------------------------------------------------------------


def installed() -> Path | None:
    """The file in its package, if that is installed. The package is not run."""
    spec = find_spec(TRANSFORMER_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / FILE


def chosen(path: str) -> Transformer | None:
    """The model in a file that the settings name, or else the one in its package; None if that is not installed."""
    if path:
        return _opened(Path(path).expanduser(), None)
    file = installed()
    return _opened(file, SHA256) if file else None


@cache  # every opened store asks for it; the file is read once
def _opened(path: Path, expected: str | None) -> Transformer:
    return Transformer(path, expected)


def load(path: Path, expected: str | None = SHA256) -> tuple[Network, str]:
    """The model in a file, and the hash of the file. With `expected`, no other file than the one with this hash."""
    try:
        status = path.stat()
        if not S_ISREG(status.st_mode):  # a device never ends, and a pipe waits for a writer
            raise errors.bad_model(str(path), "it is no regular file")
        if status.st_size > FILE_MOST:
            raise errors.bad_model(str(path), "it is too large")
        body = path.read_bytes()
    except OSError as problem:
        raise errors.bad_model(str(path), problem.strerror or "it cannot be read") from problem
    hash = sha256(body).hexdigest()
    if expected is not None and hash != expected:
        raise errors.bad_model(str(path), f"its sha256 begins with {hash[:12]}, not with {expected[:12]}")
    try:
        return Network(*_parsed(body)), hash
    except (ArithmeticError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as problem:
        raise errors.bad_model(str(path), f"it has not the form of a model: {problem}") from problem


def _parsed(body: bytes) -> tuple[Mapping[str, Any], BytePairTokenizer, dict[str, Array]]:
    if body[:8] != MAGIC:
        raise ValueError(f"it does not begin with {MAGIC.decode()}")
    size = int.from_bytes(body[8:16], "little")
    if size > min(HEADER_MOST, len(body)):
        raise ValueError("its header is too long")
    header = json.loads(body[16 : 16 + size])
    if header["meta"]["pooling"] != "cls":
        raise ValueError(f"it pools by {header['meta']['pooling']}, and only cls is known")
    at = 16 + size + int(header["tokenizer_len"])
    words = json.loads(body[16 + size : at])["model"]
    if words["type"] != "BPE":
        raise ValueError(f"its tokenizer is {words['type']}, and only BPE is known")
    tables: dict[str, Array] = {}
    for table in header["tensors"]:
        name, length = str(table["name"]), int(table["len"])
        tables |= _table(name, table, memoryview(body)[at : at + length])
        at += length
    _check(header["arch"], tables)
    return header, BytePairTokenizer(words["vocab"], [_pair(pair) for pair in words["merges"]]), tables


def _table(name: str, table: Mapping[str, Any], body: memoryview) -> dict[str, Array]:
    """A table by its name. The words' own stays in bytes, since a text needs a few rows of it."""
    shape = tuple(map(int, table["shape"]))
    count, group = prod(shape), int(table["group"])
    scales = count // group if table["dtype"] == "i8" and group > 0 else 0
    if table["dtype"] not in ("i8", "f32") or len(body) != (count + 4 * scales if scales else 4 * count):
        raise ValueError(f"the table {name} is cut off or of an unknown kind")
    if not scales:
        return {name: np.frombuffer(body, "<f4").reshape(shape)}
    numbers = np.frombuffer(body[:count], np.int8).reshape(shape)
    by_group = np.frombuffer(body[count:], "<f4").reshape(*shape[:-1], -1)
    if name == "word_emb":
        return {name: numbers, f"{name}.scales": by_group}
    weights = numbers.reshape(*by_group.shape, group) * by_group[..., None]
    # A row for each number that comes in: products of few rows are nearly twice as fast that way.
    return {name: np.ascontiguousarray(weights.reshape(shape).T)}


def _check(shape: Mapping[str, Any], tables: Mapping[str, Array]) -> None:
    """Every table that the network uses must be there and fit."""
    wide, inner = int(shape["hidden"]), int(shape["intermediate"])
    if wide % 64 or wide % int(shape["heads"]):
        raise ValueError(f"{wide} numbers a token cannot be divided among {shape['heads']} heads")
    expected = {
        "word_emb": (int(shape["vocab"]), wide),
        "pos_emb": (int(shape["max_positions"]), wide),
        "type_emb": (int(shape["type_vocab"]), wide),
        **_biases("emb_ln", wide),
    }
    for layer in range(min(int(shape["layers"]), len(tables))):  # a table is missed before a great number is counted
        products = {"qkv": (wide, 3 * wide), "ao": (wide, wide), "f1": (wide, inner), "f2": (inner, wide)}
        for name, (rows, columns) in products.items():
            expected |= {f"l{layer}.{name}.w": (rows, columns), f"l{layer}.{name}.b": (columns,)}
        for name in ("aln", "fln"):
            expected |= _biases(f"l{layer}.{name}", wide)
    for name, fits in expected.items():
        if tables[name].shape != fits:
            raise ValueError(f"the table {name} is {tables[name].shape}, not {fits}")


def _biases(name: str, wide: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.w": (wide,), f"{name}.b": (wide,)}


def _pair(pair: str | Sequence[str]) -> str:
    """Newer tokenizers write the two parts of a pair as a list."""
    return pair if isinstance(pair, str) else " ".join(pair)
