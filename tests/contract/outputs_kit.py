"""What the tests of outputs share: a draft, how one is kept and read whole, and texts of any size."""

from __future__ import annotations

import random

from contract.kit import NOON, stamp
from limpet import limits
from limpet.model import Output, OutputDraft, Scope
from limpet.store import Store

CHUNK = limits.OUTPUT_CHUNK_BYTES
DRAFT = OutputDraft("grep", '{"q":"ü"}', "text", "a preview", 2)


def keep(store: Store, scope: Scope, body: bytes, now: int = NOON, draft: OutputDraft = DRAFT) -> Output:
    return store.outputs.keep(scope, draft, body, stamp(now)).output


def whole(store: Store, scope: Scope, output: Output) -> bytes:
    return store.outputs.read_bytes(scope, output.id, 0, output.size)


def ids(store: Store, scope: Scope) -> list[str]:
    return [output.id for output in store.outputs.list(scope, 1_000).outputs]


def log(size: int, seed: int = 0) -> bytes:
    """Text of about this size with lines of all lengths, also of characters that take several bytes."""
    dice = random.Random(seed)
    lines = []
    while size > 0:
        line = f"{dice.getrandbits(60):x} größer 記憶 {'x' * dice.choice((0, 3, 40, 900))}\n".encode()
        lines.append(line)
        size -= len(line)
    return b"".join(lines)


def naive_lines(body: bytes, first: int, last: int) -> bytes:
    parts = body.split(b"\n")
    lines = [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
    return b"".join(lines[max(0, first - 1) : max(0, last)])
