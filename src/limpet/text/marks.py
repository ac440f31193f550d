"""One pass over the bytes of an output that says where a secret or a failure may be.

Keeping an output must cost little more than writing it, and a look at each line or a search for each of many words
costs many times that. Both questions are therefore asked at once, of an engine that reads a byte once whatever is
asked. What it finds are hints: redaction and failures look there, and nowhere else, with patterns of their own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from limpet.previews import failures
from limpet.redaction import signs

_ENGINE_BYTES = 64 << 20  # what the engine may take for what it has learnt of texts; ordinary ones need a hundredth


class Marks(NamedTuple):
    """A text as bytes, where the hints of failures begin in them, and from where to where those of secrets are."""

    data: bytes
    failures: list[int]
    secrets: list[tuple[int, int]]


def marks(data: bytes) -> Marks:
    """All hints in the order of the text."""
    both, secret = _engines()
    failing: list[int] = []
    hiding: list[tuple[int, int]] = []
    # What was found so far, and whether it is a hint of a secret: much of what is found is the same.
    kinds: dict[bytes, bool] = {}
    search = both.search
    found = search(data)
    while found is not None:
        start, end = found.span()
        words = data[start:end]
        kind = kinds.get(words)
        if kind is None:
            kind = kinds[words] = secret.fullmatch(words) is not None
        if kind:
            hiding.append((start, end))
        else:
            failing.append(start)
        # One hint may lie in another. None begins where another does, nor goes on matching from its second byte.
        found = search(data, start + 1)
    return Marks(data, failing, hiding)


@lru_cache
def _engines() -> tuple[Any, Any]:
    # Imported here: a compiled library of several megabytes that only big outputs need.
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes are bytes: no text is too broken to be looked at
    options.never_capture = True
    options.max_mem = _ENGINE_BYTES
    secret = signs.pattern()
    patterns = (f"(?m){failures.PATTERN}|{secret}", secret)
    both, alone = (re2.compile(pattern.encode(), options) for pattern in patterns)
    return both, alone
