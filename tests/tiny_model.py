"""A transformer's file with few and random weights, for tests of the loader and of what goes on around a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

HIDDEN, INNER, LAYERS, GROUP = 64, 64, 2, 64
LETTERS = [*map(chr, range(0x21, 0x7F)), "\u0120", "\u010a"]  # with the letters for a space and the end of a line
MERGES = ["t h", "th e", "\u0120 the"]


def tiny_model(path: Path, seed: int = 1, **changes: Any) -> Path:
    """Write the file. `changes` replace parts of its header."""
    words = ["<s>", "<pad>", "</s>", "<unk>", *LETTERS, *(pair.replace(" ", "") for pair in MERGES)]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = json.dumps({"model": {"type": "BPE", "vocab": vocabulary, "merges": MERGES}}).encode()
    tables, body = _tables(np.random.default_rng(seed), len(words))
    header = {
        "format": 1,
        "meta": {"model": f"tests/tiny-{seed}", "pooling": "cls", "max_length": 40},
        "arch": {
            "hidden": HIDDEN,
            "layers": LAYERS,
            "heads": 2,
            "intermediate": INNER,
            "vocab": len(words),
            "max_positions": 42,
            "type_vocab": 1,
            "layer_norm_eps": 1e-12,
        },
        "tokenizer_len": len(tokenizer),
        "tensors": tables,
        **changes,
    }
    text = json.dumps(header).encode()
    path.write_bytes(b"HMSEMB01" + len(text).to_bytes(8, "little") + text + tokenizer + body)
    return path


def _tables(dice: np.random.Generator, words: int) -> tuple[list[dict[str, Any]], bytes]:
    shapes: dict[str, tuple[int, ...]] = {"word_emb": (words, HIDDEN), "pos_emb": (42, HIDDEN), "type_emb": (1, HIDDEN)}
    shapes |= {"emb_ln.w": (HIDDEN,), "emb_ln.b": (HIDDEN,)}
    for layer in range(LAYERS):
        for name, rows, columns in (
            *(("qkv", 3 * HIDDEN, HIDDEN), ("ao", HIDDEN, HIDDEN)),
            *(("f1", INNER, HIDDEN), ("f2", HIDDEN, INNER)),
        ):
            shapes |= {f"l{layer}.{name}.w": (rows, columns), f"l{layer}.{name}.b": (rows,)}
        for name in ("aln", "fln"):
            shapes |= {f"l{layer}.{name}.w": (HIDDEN,), f"l{layer}.{name}.b": (HIDDEN,)}
    tables, bodies = [], []
    for name, shape in shapes.items():
        is_bytes = name == "word_emb" or (name.endswith(".w") and len(shape) == 2)
        if is_bytes:
            numbers = dice.integers(-127, 128, shape, np.int8)
            body = numbers.tobytes() + np.full(numbers.size // GROUP, 0.004, "<f4").tobytes()
        else:
            body = dice.normal(1.0 if name.endswith("ln.w") else 0.0, 0.1, shape).astype("<f4").tobytes()
        kind = {"dtype": "i8" if is_bytes else "f32", "group": GROUP if is_bytes else 0}
        tables.append({"name": name, "shape": list(shape), "len": len(body), **kind})
        bodies.append(body)
    return tables, b"".join(bodies)
