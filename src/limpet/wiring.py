"""Wiring: `open` chooses the store and the embedding model. Each is imported when chosen; the others cost nothing."""

from __future__ import annotations

from collections.abc import Callable

from limpet import clients, errors, settings
from limpet.catalogue.late import resolve
from limpet.home.folders import ProjectFolder
from limpet.home.load import load
from limpet.light import cast
from limpet.model import Scope

TYPE_CHECKING = False  # see limpet/__init__.py
if TYPE_CHECKING:
    from limpet.api import Clock, Limpet
    from limpet.memory.layers import LayerStores
    from limpet.model import DataFolder
    from limpet.recall.embeddings import Models
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
        embeddings=resolve("recall.embeddings:Embeddings")(lambda: choose_embeddings(chosen.bounds.recall)),
        layers=_layers(chosen),
    )
    return limpet


def _layers(chosen: settings.Settings) -> LayerStores | None:
    """The layers of memory below the project's, in the person's data folder."""
    if not isinstance(chosen.data, ProjectFolder):
        return None
    layers: LayerStores = resolve("memory.layers:LayerStores")(
        chosen.data.home,
        lambda path, folder: choose_store(path, None, folder),
        resolve("memory.layers:shared_at")(chosen.root, chosen.data),
    )
    return layers


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
    """A copy of a store of unknown origin, to be read."""
    store: Store = resolve("stores.sqlite.backup:open_foreign")(path)
    return store


def choose_embeddings(rules: settings.RecallRules | None = None) -> Models:
    """The embedding models whose extras are installed, as far as the settings want them. Called at the first question.

    A model that cannot be used is reported, and recall goes on with what there is.
    """
    rules = rules or settings.RecallRules()
    models: Models = resolve("recall.embeddings:Models")(prefer=rules.model)
    try:
        new_table = resolve("recall.vector_table:VectorTable")
    except ImportError:  # numpy is missing
        return models if rules.model == "auto" else models._replace(problem=_missing(rules.model))
    index = resolve("recall.embeddings:EmbeddingIndex")
    if static := resolve("recall.static_model:load")():
        models = models._replace(static=index(static, new_table))
    if rules.model != "static":
        try:
            transformer = resolve("recall.transformer:chosen")(rules.model_path)
        except errors.LimpetError as bad:
            return models._replace(problem=bad)
        if transformer is not None:
            transformer.static = static
            models = models._replace(transformer=index(transformer, new_table))
    absent = (rules.model == "static" and not models.static) or (
        rules.model == "transformer" and not models.transformer
    )
    return models._replace(problem=_missing(rules.model)) if absent else models


def _missing(model: str) -> errors.LimpetError:
    extra = "semantic" if model == "static" else "embed"
    return errors.not_installed(f"recall.model = {model}", extra)
