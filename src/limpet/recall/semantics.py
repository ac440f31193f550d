"""What texts are about, for recall: vectors are made when a question comes, never when a text is written.

The model is an extra (`limpet[semantic]`). It is looked for when the first question comes; where it is not installed,
words alone are searched, and the first answer says so.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from limpet import errors, limits

if TYPE_CHECKING:
    from limpet.model import Scope
    from limpet.recall.embeddings import Asked, Meaning
    from limpet.store import Store

HINT = "Only words are compared: texts that say the same in other words are found with the extra limpet[semantic]."
BATCH = 2_000  # texts that are in memory at once


class Semantics:
    """The model of one store's user, if there is one, and whether anybody was told that there is none."""

    def __init__(self, load: Callable[[], Meaning | None]) -> None:
        self._load = load
        self._found: tuple[Meaning | None] | None = None
        self._told = False

    def meaning(self) -> Meaning | None:
        if self._found is None:
            self._found = (self._load(),)
        return self._found[0]

    def hint(self) -> str:
        """What to tell whoever asks without the model: once."""
        if self._told or self.meaning() is not None:
            return ""
        self._told = True
        return HINT


def asked(semantics: Semantics | None, store: Store, scope: Scope) -> Asked | None:
    """What a question can be compared with, after the vectors that were missing are made; None without a model."""
    meaning = semantics.meaning() if semantics else None
    if meaning is None:
        return None
    with suppress(errors.StoreReadOnly):  # what has a vector already can still be found
        catch_up(meaning, store, scope)
    table = meaning.table(scope)
    table.learn(store.vectors.after(scope, table.last))
    return meaning.asked(scope)


def catch_up(meaning: Meaning, store: Store, scope: Scope, most: int = limits.VECTORS_CATCH_UP) -> int:
    """Make the vectors that texts wait for, the newest first, as many as a question may wait for. How many."""
    made = 0
    while made < most:
        batch = min(BATCH, most - made)
        texts = store.vectors.missing(scope, meaning.model.name, batch)
        if not texts:
            break
        vectors = [(text, meaning.kept(text.text)) for text in texts]
        if not store.vectors.keep(scope, meaning.model.name, vectors):
            break  # somebody else is at it
        made += len(texts)
        if len(texts) < batch:
            break  # these were all
    return made
