"""What a finder of secrets hands back, and which of two overlapping findings counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Span(NamedTuple):
    """A place to mask. `token` is what the placeholder's hash is made from; None for what could be guessed."""

    start: int
    end: int
    kind: str
    token: str | None = None


def settle(spans: Iterable[Span]) -> list[Span]:
    """In order and without overlaps; everything that any of them covers stays covered.

    The wider one counts, and of two equally wide ones the one that can be told by its own look.
    """
    settled: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end, span.token is None, span.kind)):
        if settled and span.start < settled[-1].end:
            if span.end > settled[-1].end:
                settled[-1] = settled[-1]._replace(end=span.end)
            continue
        settled.append(span)
    return settled
