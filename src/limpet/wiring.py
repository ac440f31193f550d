"""Wiring: `open` chooses the store and the embedding model. Each is imported when chosen; the others cost nothing."""

from __future__ import annotations

import builtins
import os

from limpet import clients, errors, settings
from limpet.catalogue.late import resolve
from limpet.model import Scope

TYPE_CHECKING = False  # see limpet/__init__.py
if TYPE_CHECKING:
    from limpet.api import Clock, Limpet
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

    `store` is a path or a postgresql:// address; without one, `.limpet/limpet.db` in the project the folder (by
    default the current one) belongs to, else the user's data folder. `session` is the session of calls that name none.
    """
    return open_with(settings.load(store, project, folder=folder), session=session, clock=clock)


def open_with(chosen: settings.Settings, *, session: str | None = None, clock: Clock | None = None) -> Limpet:
    limpet: Limpet = resolve("api:Limpet")(
        choose_store(chosen.store, chosen.store_replica),
        Scope(chosen.tenant, chosen.project),
        session=session or chosen.session or clients.session_id(),
        bounds=chosen.bounds,
        clock=clock or resolve("api:wall_clock"),
        skills=chosen.skills,
        root=chosen.root,
        embeddings=resolve("recall.embeddings:Embeddings")(choose_embeddings),
    )
    return limpet


def choose_store(
    address: str, replica: str | None = None, *, create: bool = True, lock_wait: float | None = None
) -> Store:
    """The store at an address. Without `create` it must exist: reading makes none.

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
        database: Store = server(address, replica, create=create)
        return database
    if "://" in address and not address.startswith("sqlite://"):
        raise errors.bad_setting("store", address, "it must be a path or a postgresql:// address")
    path = address.removeprefix("sqlite://")
    store: Store = resolve("stores.sqlite.store:SqliteStore")(path, create=create, lock_wait=lock_wait)
    _keep_out_of_git(os.path.dirname(os.path.abspath(path)))
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


def _keep_out_of_git(folder: str) -> None:
    """Tell git to ignore Limpet's folder: what agents write down does not belong in the repository."""
    note = os.path.join(folder, ".gitignore")
    if os.path.basename(folder) == settings.FOLDER and not os.path.exists(note):
        try:
            with builtins.open(note, "x", encoding="utf-8") as file:
                file.write("# Limpet keeps this project's working memory here.\n*\n")
        except OSError:
            return  # another process was faster, or the folder cannot be written; the store itself is what matters
