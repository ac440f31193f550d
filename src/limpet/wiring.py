"""Wiring: `open` is the only chooser of a store. A store is imported when chosen, so nobody pays for the other."""

from __future__ import annotations

import builtins
import os

from limpet import clients, errors, settings
from limpet.model import Scope

TYPE_CHECKING = False  # see limpet/__init__.py
if TYPE_CHECKING:
    from limpet.api import Clock, Limpet
    from limpet.recall.embeddings import Meaning
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
    from limpet.api import Limpet, wall_clock  # late: a hook needs a store and a few operations, not all
    from limpet.recall.semantics import Semantics

    return Limpet(
        choose_store(chosen.store, chosen.store_replica),
        Scope(chosen.tenant, chosen.project),
        session=session or chosen.session or clients.session_id(),
        bounds=chosen.bounds,
        clock=clock or wall_clock,
        skills=chosen.skills,
        root=chosen.root,
        semantics=Semantics(choose_meaning),
    )


def choose_store(address: str, replica: str | None = None) -> Store:
    if replica and not (address.startswith(SERVER) and replica.startswith(SERVER)):
        rule = "it is a postgresql:// address, for a store that is one too"
        raise errors.bad_setting("store_replica", f"{replica.partition('://')[0]}…", rule)  # the rest may be a password
    if address.startswith(SERVER):
        try:
            from limpet.stores.postgres.store import PostgresStore
        except ImportError as problem:
            raise errors.not_installed("a PostgreSQL store", "postgres") from problem
        return PostgresStore(address, replica)
    if "://" in address and not address.startswith("sqlite://"):
        raise errors.bad_setting("store", address, "it must be a path or a postgresql:// address")
    from limpet.stores.sqlite.store import SqliteStore

    path = address.removeprefix("sqlite://")
    store = SqliteStore(path)
    _keep_out_of_git(os.path.dirname(os.path.abspath(path)))
    return store


def choose_meaning() -> Meaning | None:
    """The model of what texts are about, where the extra for it is installed. Called when the first question comes."""
    try:
        from limpet.recall import embedding_model, embeddings
    except ImportError:  # numpy is not there
        return None
    model = embedding_model.load()
    return embeddings.Meaning(model) if model else None


def _keep_out_of_git(folder: str) -> None:
    """What agents write down is not for the repository: our own folder tells git to pass it over."""
    note = os.path.join(folder, ".gitignore")
    if os.path.basename(folder) == settings.FOLDER and not os.path.exists(note):
        try:
            with builtins.open(note, "x", encoding="utf-8") as file:
                file.write("# Limpet keeps this project's working memory here.\n*\n")
        except OSError:
            return  # another process was faster, or the folder is read-only; the store itself is what matters
