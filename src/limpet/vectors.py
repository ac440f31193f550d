"""The part of the Store contract that keeps what texts are about, as vectors. See store.py for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from limpet.model import Scope


class Unmeant(NamedTuple):
    """A text that has no vector yet. `hash` is that of its entry: what changed since is not what was read."""

    doc: int
    hash: bytes
    text: str


class Vector(NamedTuple):
    """What a text is about, as a model made it. Those kept together have one number; numbers grow within a project."""

    number: int
    doc: int
    body: bytes


class VectorStore(Protocol):
    """The part of a store that keeps what texts are about. Whoever asks makes the vectors, never who writes.

    A deleted or changed text loses its vector in the same transaction; what is new or changed waits for one.
    """

    def without_vector(self, scope: Scope, model: str, most: int) -> tuple[Unmeant, ...]:
        """Texts that wait for a vector, the newest first. When the vectors that are there came from another model, they
        go, and all texts wait."""

    def keep_vectors(self, scope: Scope, model: str, made: Sequence[tuple[Unmeant, bytes]]) -> int:
        """Keep vectors of texts that still say the same. How many were kept. A power cut may take the newest back;
        their texts wait again then."""

    def vectors(self, scope: Scope, after: int) -> Sequence[Vector]:
        """Those with a higher number, in order."""
