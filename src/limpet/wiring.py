"""Wiring: `open` chooses the store and the embedding model. Each is imported when chosen; the others cost nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from limpet import clients, errors, settings
from limpet.catalogue.late import resolve
from limpet.home.load import load
from limpet.model import Scope

TYPE_CHECKING = False  # see limpet/__init__.py
if TYPE_CHECKING:
    from limpet.api import Clock, Limpet
    from limpet.model import DataFolder
    from limpet.recall.embedding_model import EmbeddingIndex
    from limpet.store import Store

SERVER = ("postgresql://", "postgres://")


def open(
    store: str | None = None,
    *,
    project: str | None = None,
    session: str | None = None,
    folder: str | None = None,
    clock: Clock | None = None,
) -> Limpet:
    """A project's memory.

    `store` is a path or a postgresql:// address; without one, a file in the person's data folder, which the project of
    the folder (by default the current one) has for itself. `project` names a project: one of the store, or without a
    store one of the data folder. `session` is the session of calls that name none.
    """
    return open_with(load(store, project, folder=folder), session=session, clock=clock)


def open_with(
    chosen: settings.Settings, *, session: str | None = None, clock: Clock | None = None, even_broken: bool = False
) -> Limpet:
    """`even_broken`: a store that cannot be opened is no error yet, but every call will be one."""

    def opener() -> Store:
        return choose_store(chosen.store, chosen.store_replica, chosen.data if chosen.own_store else None)

    try:
        store = opener()
    except errors.LimpetError:
        if not even_broken:
            raise
        store = cast("Store", LateStore(opener))
    limpet: Limpet = resolve("api:Limpet")(
        store,
        Scope(chosen.tenant, chosen.project),
        session=session or chosen.session or clients.session_id(),
        bounds=chosen.bounds,
        clock=clock or resolve("api:wall_clock"),
        skills=chosen.skills,
        root=chosen.root,
        data=chosen.data,
        embeddings=resolve("recall.embeddings:Embeddings")(choose_embeddings),
    )
    return limpet


class LateStore:
    """In place of a store that could not be opened: every use tries again, and is the error that says why not."""

    def __init__(self, opener: Callable[[], Store]) -> None:
        self._opener = opener
        self._store: Store | None = None

    def __getattr__(self, name: str) -> object:
        if self._store is None:
            self._store = self._opener()
        return getattr(self._store, name)

    def close(self) -> None:
        if self._store is not None:
            self._store.close()


def choose_store(
    address: str, replica: str | None = None, data: DataFolder | None = None, *, lock_wait: float | None = None
) -> Store:
    """The store at an address. The one in a project's data folder is made with its folder, by the first write.

    `lock_wait`: seconds that a write waits for other processes, where the store is a file.
    """
    if replica and not (address.startswith(SERVER) and replica.startswith(SERVER)):
        rule = "it is a postgresql:// address, for a store that is one too"
        raise errors.bad_setting("store_replica", f"{replica.partition('://')[0]}…", rule)  # the rest may be a password
    if address.startswith(SERVER):
        try:
            server = resolve("stores.postgres.store:PostgresStore")
        except ImportError as problem:
            raise errors.not_installed("a PostgreSQL store", "postgres") from problem
        database: Store = server(address, replica)
        return database
    if "://" in address and not address.startswith("sqlite://"):
        raise errors.bad_setting("store", address, "it must be a path or a postgresql:// address")
    path = address.removeprefix("sqlite://")
    store: Store = resolve("stores.sqlite.store:SqliteStore")(path, data, lock_wait=lock_wait)
    return store


def open_foreign(path: str) -> Store:
    """A copy of a store that may come from anybody, to be read."""
    store: Store = resolve("stores.sqlite.backup:open_foreign")(path)
    return store


def choose_embeddings() -> EmbeddingIndex | None:
    """The embedding model, where its extra is installed. Called at the first question."""
    try:
        load, kind = resolve("recall.embedding_model:load"), resolve("recall.embedding_model:EmbeddingIndex")
    except ImportError:  # numpy is missing
        return None
    model = load()
    index: EmbeddingIndex | None = kind(model) if model else None
    return index
