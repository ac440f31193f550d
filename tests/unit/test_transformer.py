"""The transformer: what it computes, how it cuts texts, and that no other file than a whole model is taken for one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Reference

from limpet import errors
from limpet.recall import transformer
from limpet.recall.transformer import Network, Transformer
from limpet.recall.vector_table import VectorTable
from limpet.text.pieces import pieces
from tiny_model import tiny_model

TEXTS = (
    *("How do I read a file line by line in Python?", "The cat sat on the mat."),
    "def read_lines(path):\n    with open(path) as f:\n        return [line for line in f]",
    *("Anna went to Paris last summer with her brother.", "Where did Anna go on holiday?"),
)
# The cosines of the first text with the others, and of the last with the one before, by RobertaModel of the package
# transformers (torch, 32 bits) with the same weights.
REFERENCE = {(0, 1): 0.548, (0, 2): 0.821, (0, 3): 0.433, (0, 4): 0.447, (3, 4): 0.863}


@pytest.fixture(scope="module")
def network() -> Network:
    path = transformer.installed()
    assert path is not None, "the extra limpet[embed] belongs to the environment of the tests"
    return transformer.load(path)[0]


@pytest.fixture
def tiny(tmp_path: Path) -> Network:
    return transformer.load(tiny_model(tmp_path / "tiny"), None)[0]


def test_it_computes_what_the_reference_computes(network: Network) -> None:
    vectors = network.vectors(TEXTS)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for (one, other), cosine in REFERENCE.items():
        assert abs(vectors[one] @ vectors[other] - cosine) < 3e-3, "GELU is approximated"


@pytest.mark.parametrize(
    "text",
    [
        *TEXTS,
        "Ünïcode straße ½ ²x ①② 日本語 テスト 🙂 don't I'LL we'll\n\n\tx  y   z_1 __init__ \u00a0nbsp  ",
        "x²+y² = 10³; ६७ ٣",
        "a\u0301b combining मराठी ไทย",
        Path(transformer.__file__).read_text(encoding="utf-8"),
        "",
    ],
)
def test_it_cuts_words_as_the_reference_does(network: Network, text: str) -> None:
    path = transformer.installed()
    assert path is not None
    body = path.read_bytes()
    start = 16 + int.from_bytes(body[8:16], "little")
    length = json.loads(body[16:start])["tokenizer_len"]
    reference = Reference.from_str(body[start : start + length].decode())
    assert network.tokens(text) == [0, *reference.encode(text, add_special_tokens=False).ids[:510], 2]


@given(st.text(max_size=300))
def test_any_text_has_tokens(text: str) -> None:
    tokenizer = transformer.BytePairTokenizer({letter: at for at, letter in enumerate(transformer._LETTERS)}, [])
    assert len(tokenizer.tokens(text, 10_000)) == len(text.encode("utf-8", "replace"))
    assert len(tokenizer.tokens(text, 7)) <= 7


def test_what_is_computed_together_does_not_matter(tiny: Network) -> None:
    texts = ["the", "a b c", "", "the end of the line " * 9, *(f"text {n} " * (n % 5) for n in range(60))]
    alone = np.concatenate([tiny.vectors([text]) for text in texts])
    assert np.allclose(tiny.vectors(texts), alone, atol=1e-5)
    assert tiny.vectors([]).shape == (0, tiny.size)


def test_the_number_of_threads_is_as_before_afterwards(tiny: Network) -> None:
    blas = transformer._blas
    if blas._get is None:
        pytest.skip("numpy multiplies with another library than OpenBLAS")
    before = blas._get()
    threads = [Thread(target=tiny.vectors, args=(["some text"] * 50,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    with transformer.one_thread():
        assert blas._get() == 1
    for thread in threads:
        thread.join()
    assert blas._get() == before


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _other_beginning(path: Path) -> None:
    path.write_bytes(b"X" + path.read_bytes()[1:])


def _endless_header(path: Path) -> None:
    body = path.read_bytes()
    path.write_bytes(body[:8] + b"\xff" * 8 + body[16:])


def _tensors(path: Path, change: Callable[[list[dict[str, object]]], object]) -> None:
    body = path.read_bytes()
    size = int.from_bytes(body[8:16], "little")
    header = json.loads(body[16 : 16 + size])
    change(header["tensors"])
    text = json.dumps(header).encode()
    path.write_bytes(body[:8] + len(text).to_bytes(8, "little") + text + body[16 + size :])


BROKEN: dict[str, Callable[[Path], object]] = {
    "cut off": _cut,
    "another beginning": _other_beginning,
    "an endless header": _endless_header,
    "no file": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "no JSON": lambda path: path.write_bytes(b"HMSEMB01" + (4).to_bytes(8, "little") + b"{[}]"),
    "a table is missing": lambda path: _tensors(path, lambda tables: tables.pop()),
    "a table of another shape": lambda path: _tensors(path, lambda tables: tables[1].update(shape=[2, 3])),
    "another pooling": lambda path: tiny_model(path, meta={"model": "x", "pooling": "mean", "max_length": 40}),
    "no sizes": lambda path: tiny_model(path, arch={}),
    "no tokenizer": lambda path: tiny_model(path, tokenizer_len=0),
}


@pytest.mark.parametrize("damage", BROKEN)
def test_what_is_no_whole_model_is_refused(tmp_path: Path, damage: str) -> None:
    path = tiny_model(tmp_path / "tiny")
    BROKEN[damage](path)
    with pytest.raises(errors.BadInput, match=r"The embedding model .*tiny is not used: .*recall\.model_path"):
        transformer.load(path, None)


def test_another_file_than_the_known_one_is_refused(tmp_path: Path) -> None:
    path = tiny_model(tmp_path / "tiny")
    with pytest.raises(errors.BadInput, match=r"its sha256 begins with [0-9a-f]{12}, not with 6a1cc24734a5"):
        transformer.load(path)
    with pytest.raises(errors.BadInput, match="sha256"):
        Transformer(path).stored(["a text"])


def test_a_file_that_is_named_has_a_name_of_its_own(tmp_path: Path) -> None:
    models = [Transformer(tiny_model(tmp_path / str(seed), seed), None) for seed in (1, 2)]
    assert [model.label for model in models] == ["tiny-1", "tiny-2"]
    assert len({model.name for model in models}) == 2
    assert {model.size for model in models} == {64}


def test_a_long_text_has_a_vector_for_each_piece_and_not_too_many(tmp_path: Path) -> None:
    model = Transformer(tiny_model(tmp_path / "tiny"), None)
    short, long, endless, none = model.stored(["short", "long line\n" * 200, "x" * 100_000, " \n"])
    assert (len(short), len(long), len(endless), len(none)) == (32, 2 * 32, transformer.PIECES_MOST * 32, 0)
    table = VectorTable(model.size)
    table.load([(1, 7, short), (2, 8, long)])
    sense = model.sense("short", table)
    assert sense.cosines({}, [7, 8, 9]).keys() == {7, 8}
    assert max(sense.cosines({}, [7]).values()) > 0.95
    assert next(iter(sense.nearest([], 1))) == 7


@given(st.text(alphabet="ab. \n#d", max_size=400), st.integers(1, 50), st.integers(1, 10))
def test_pieces_are_the_text_in_order(text: str, chars: int, most: int) -> None:
    cut = pieces(text, chars, most)
    assert all(0 < len(piece) <= chars for piece in cut)
    assert len(cut) <= most
    joined = "".join(cut)
    assert text.startswith(joined)
    if len(cut) < most:
        assert not text[len(joined) : most * chars].strip()


def test_pieces_end_where_the_text_has_a_joint() -> None:
    code = "import os\n\ndef one():\n    a = 1\n\n    return a\n\ndef two():\n    return 2\n"
    assert pieces(code, 40, 9) == [
        "import os\n\n",
        "def one():\n    a = 1\n\n    return a\n\n",
        "def two():\n    return 2\n",
    ]
    assert pieces("First part. Second part. Third", 14, 9) == ["First part. ", "Second part. ", "Third"]
    assert pieces("short", 100, 9) == ["short"]
    assert pieces("", 100, 9) == []
