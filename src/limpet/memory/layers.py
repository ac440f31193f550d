"""Layers of memory: the project's own, the shared files of its repository (team), and the person's.

Each layer is a store of its own, read by the same functions with another context. The person's is in the data folder of
the user who runs this, also when the project has a store on a server. With one key in two layers the project's text is
shown, and the other layer is named.

What an agent writes to the person's layer is a proposal (memory/review.py). Behind HTTP there is a person on a local
server; a token's calls have no layer of a person.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock

from limpet import errors
from limpet.catalogue.late import LateModule
from limpet.catalogue.operation import Context
from limpet.home.place import FOLDER as PLAIN
from limpet.home.place import GIT
from limpet.light import TYPE_CHECKING
from limpet.model import MAIN_LINE, MEMORY, PERSON, Entry, Memory, Scope, Validity, as_memory
from limpet.record import NamedTuple
from limpet.store import Listing

if TYPE_CHECKING:
    from limpet.home.folders import Home, ProjectFolder
    from limpet.memory import shared_files
    from limpet.memory.shared_files import SharedFolder
    from limpet.model import DataFolder
    from limpet.store import Store
else:
    shared_files = LateModule("memory.shared_files")  # most repositories have none

PROJECT, TEAM = "project", "team"
LAYERS = (PROJECT, TEAM, PERSON)  # the names that `layer` takes
FOLDER, STORE = "person", "limpet.db"
PERSON_SCOPE = Scope("local", "person")


def shared_at(root: str, data: ProjectFolder) -> SharedFolder | None:
    """The shared files of a working tree, if there is one."""
    if data.place.kind not in (GIT, PLAIN):
        return None
    folder: SharedFolder = shared_files.SharedFolder(root, data.home, data.place.key)
    return folder


class Layer(NamedTuple):
    """A layer below the project's, and the context in which it is read."""

    name: str
    ctx: Context


class PersonFolder:
    """The folder of the person's own store. The first write makes it."""

    line = MAIN_LINE

    def __init__(self, home: Home) -> None:
        self._home = home

    @property
    def store(self) -> str:
        return os.path.join(self._home.path, FOLDER, STORE)

    @property
    def path(self) -> str | None:
        folder = os.path.dirname(self.store)
        return folder if os.path.isdir(folder) else None

    def make(self) -> str:
        return self._home.make(FOLDER)


class LayerStores:
    """The stores of the layers below the project's, each opened at its first use."""

    def __init__(
        self, home: Home, open_store: Callable[[str, DataFolder], Store], shared: SharedFolder | None = None
    ) -> None:
        self._folder = PersonFolder(home)
        self.shared = shared
        self._open = open_store
        self._store: Store | None = None
        self._lock = Lock()

    @property
    def has_person(self) -> bool:
        """Whether the person ever kept anything. Most have not, and pay for one look at the file system."""
        return self._store is not None or os.path.exists(self._folder.store)

    def person(self) -> Store:
        with self._lock:
            if self._store is None:
                self._store = self._open(self._folder.store, self._folder)
            return self._store

    def close(self) -> None:
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None


def person(ctx: Context, *, even_new: bool = False) -> Context | None:
    """The context of the person's layer. None where a call has no person, and, unless `even_new`, where that
    person has kept nothing."""
    stores = ctx.layers
    if not isinstance(stores, LayerStores) or ctx.by.count("/") > 1:  # the subject of a token
        return None
    if not (even_new or stores.has_person):
        return None
    # Its texts cite no file, because they are read in every project.
    return ctx._replace(store=stores.person(), scope=PERSON_SCOPE, root="", data=None, embeddings=None, layers=None)


def team(ctx: Context) -> Context | None:
    """The context of the shared files' index, as they are now; None where there are none that count."""
    shared = shared_folder(ctx)
    if shared is None or not shared.opted_in:
        return None
    index = _index_context(ctx, shared)
    shared_files.index(index.store, shared, ctx.now)
    return index


def shared_folder(ctx: Context) -> SharedFolder | None:
    """The folder of shared files where this call works."""
    shared = ctx.layers.shared if isinstance(ctx.layers, LayerStores) else None
    return shared if shared is not None and ctx.root == shared.root else None


def files_of(ctx: Context) -> SharedFolder:
    """The same, where a call needs them."""
    if (shared := shared_folder(ctx)) is None:
        raise errors.no_team()
    return shared


def _index_context(ctx: Context, shared: SharedFolder) -> Context:
    if not isinstance(ctx.layers, LayerStores):
        raise errors.no_team()
    store = ctx.layers.person()
    return ctx._replace(store=store, scope=shared.scope, data=None, embeddings=None, layers=None)


def remarks(ctx: Context) -> tuple[str, ...]:
    """What of the repository's shared files is left out, and why."""
    shared = shared_folder(ctx)
    if shared is None:
        return ()
    if not shared.opted_in:
        files = len(shared.read())
        what = "1 file of shared memory does" if files == 1 else f"{files:,} files of shared memory do"
        return (f"{what} not count; `limpet trust` shows what is new there",) if files else ()
    return shared_files.index(_index_context(ctx, shared).store, shared, ctx.now)


def named(ctx: Context, layer: str | None) -> Context:
    """The context of the layer that a call names."""
    if layer in (None, PROJECT):
        return ctx
    if layer == TEAM:
        shared = shared_folder(ctx)
        if shared is not None and ctx.who == PERSON and not shared.opted_in and not shared.read():
            shared.opt_in()  # the person begins with shared files here
        chosen = team(ctx)
        if chosen is None:
            raise errors.no_team()
        return chosen
    chosen = person(ctx, even_new=True)
    if chosen is None:
        raise errors.no_layer(layer)
    return chosen


def below(ctx: Context) -> Iterator[Layer]:
    """The layers that are read besides the project's."""
    if (files := team(ctx)) is not None:
        yield Layer(TEAM, files)
    if (own := person(ctx)) is not None:
        yield Layer(PERSON, own)


class Below(NamedTuple):
    """The memory of one layer below the project's."""

    layer: Layer
    entries: tuple[Entry, ...]  # pinned first, then newest
    hidden: frozenset[str]  # keys that a layer above has another text for


def entries_below(ctx: Context, limit: int, *, include_replaced: bool = False) -> list[Below]:
    """The memory of each layer below, without what a layer above has under the same key."""
    layers = []
    above = [ctx]
    for layer in below(ctx):
        which = Listing((MEMORY,), limit=limit, include_replaced=include_replaced, now=ctx.now)
        entries = layer.ctx.store.entries.list(layer.ctx.scope, which).entries
        hidden = hidden_keys(above, (entry.key for entry in entries))
        above.append(layer.ctx)
        if entries:
            own = (entry for entry in entries if entry.key not in hidden)
            layers.append(Below(layer, tuple(sorted(own, key=lambda entry: not entry.pinned)), frozenset(hidden)))
    return layers


def also_in(ctx: Context, memory: Memory) -> Memory:
    """The memory, with the names of the layers below that have another text under its key."""
    others = tuple(layer.name for layer in below(ctx) if _is_open(layer.ctx, memory.key))
    return memory._replace(also_in=others) if others else memory


def read(ctx: Context, key: str) -> Memory | None:
    """The text under a key of a layer below; the nearest layer first."""
    for layer in below(ctx):
        entry = layer.ctx.store.entries.read(layer.ctx.scope, MEMORY, key)
        if entry is not None:
            return as_memory(entry)._replace(layer=layer.name)
    return None


def refuse_of_another(ctx: Context, key: str) -> None:
    """Refuse a change of what the project has not, and a layer below it has: it is listed, so it is not missing."""
    below_it = None if ctx.store.entries.read(ctx.scope, MEMORY, key) is not None else read(ctx, key)
    if below_it is not None:
        raise errors.of_another_layer(key, below_it.layer)


def hidden_keys(above: Sequence[Context], keys: Iterable[str]) -> set[str]:
    """Those of a layer's keys that a layer above it has a text for that holds: the project's, or one before this."""
    return {key for key in keys if any(_is_open(ctx, key) for ctx in above)}


def _is_open(ctx: Context, key: str) -> bool:
    entry = ctx.store.entries.read(ctx.scope, MEMORY, key)
    return entry is not None and not entry.done and not Validity.of(entry.extra).expired(ctx.now)
