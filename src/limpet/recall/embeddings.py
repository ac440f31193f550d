"""Embeddings for recall: vectors are computed when a question comes, so that a write does not wait for them.

The model is an extra (`limpet[semantic]`) and is loaded with the first question. Where it is not installed, recall
searches by words, and the first answer says so. embedding_model.py has the model, which needs numpy; this module does
not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from limpet import errors, limits

if TYPE_CHECKING:
    from limpet.model import Scope
    from limpet.recall.embedding_model import Comparison, EmbeddingIndex
    from limpet.store import Store

HINT = "Only words are compared: texts that say the same in other words are found with the extra limpet[semantic]."
BATCH = 2_000  # texts that are in memory at once


class Embeddings:
    """The embedding index of one opened store, loaded when it is needed, if there is a model."""

    def __init__(self, load: Callable[[], EmbeddingIndex | None]) -> None:
        self._load = load
        self._loaded: tuple[EmbeddingIndex | None] | None = None
        self._hinted = False

    def index(self) -> EmbeddingIndex | None:
        if self._loaded is None:
            self._loaded = (self._load(),)
        return self._loaded[0]

    def hint(self) -> str:
        """A sentence for the first answer without a model."""
        if self._hinted or self.index() is not None:
            return ""
        self._hinted = True
        return HINT


def compare(embeddings: Embeddings | None, store: Store, scope: Scope) -> Comparison | None:
    """Compares a question with the texts of a project, after missing vectors were computed; None without a model."""
    index = embeddings.index() if embeddings else None
    if index is None:
        return None
    with suppress(*errors.UNWRITABLE):  # texts that have a vector can still be found
        catch_up(index, store, scope)
    table = index.table(scope)
    table.load(store.vectors.after(scope, table.last))
    return index.compare(scope)


def catch_up(index: EmbeddingIndex, store: Store, scope: Scope, most: int = limits.VECTORS_CATCH_UP) -> int:
    """Compute missing vectors, the newest texts first, as many as a question may wait for. Returns how many."""
    count = 0
    while count < most:
        batch = min(BATCH, most - count)
        texts = store.vectors.missing(scope, index.model.name, batch)
        if not texts:
            break
        vectors = [(text, index.stored(text.text)) for text in texts]
        if not store.vectors.keep(scope, index.model.name, vectors):
            break  # another process is doing it
        count += len(texts)
        if len(texts) < batch:
            break  # these were all
    return count
