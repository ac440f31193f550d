"""One pass over the bytes of an output that says where a failure or a secret may be.

Keeping an output must cost little more than writing it. A look at each line, or a search for each of many words, costs
many times that, so both questions are asked at once of RE2, which reads each byte once however many alternatives the
pattern has. The results are candidates: redaction and the failure finder check them with exact patterns.
"""

from __future__ import annotations

from functools import lru_cache

from limpet.light import Any
from limpet.record import NamedTuple

_ENGINE_BYTES = 64 << 20  # memory RE2 may use for its automata; ordinary texts need a hundredth of it


class Marks(NamedTuple):
    """A text as bytes, the starts of possible failures in it, and the spans of possible secrets."""

    data: bytes
    failures: list[int]
    secrets: list[tuple[int, int]]


def find_marks(data: bytes, *, failure: str = "", secret: str = "") -> Marks:
    """All candidates in the order of the text, for one or both of the patterns."""
    either, secret_only = _engines(failure, secret)
    failures: list[int] = []
    secrets: list[tuple[int, int]] = []
    kinds: dict[bytes, bool] = {}  # whether matched bytes are a secret; the same ones turn up again and again
    search = either.search
    match = search(data)
    while match is not None:
        start, end = match.span()
        words = data[start:end]
        is_secret = kinds.get(words)
        if is_secret is None:
            is_secret = kinds[words] = secret_only is not None and secret_only.fullmatch(words) is not None
        if is_secret:
            secrets.append((start, end))
        else:
            failures.append(start)
        # One candidate may overlap another. No two begin at the same byte, and none matches from its second byte on.
        match = search(data, start + 1)
    return Marks(data, failures, secrets)


@lru_cache
def _engines(failure: str, secret: str) -> tuple[Any, Any]:
    """Both patterns as one, and that of secrets alone."""
    either = "|".join(part for part in (f"(?m){failure}" if failure else "", secret) if part)
    return engine(either), engine(secret) if secret else None


def engine(pattern: str) -> Any:
    """A pattern for bytes, compiled by RE2."""
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes are bytes: no text is too broken to be searched
    options.never_capture = True
    options.max_mem = _ENGINE_BYTES
    return re2.compile(pattern.encode(), options)
