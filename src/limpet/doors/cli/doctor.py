"""What `limpet doctor` looks at. It reads and never makes anything: a store that is not there stays so."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import NamedTuple

from limpet import __version__, settings
from limpet.doors.cli.context import BY, OWN_SESSION, State
from limpet.doors.cli.store_address import file_of, shown_place
from limpet.errors import LimpetError
from limpet.settings import Bounds, OutputRules, WindowRules

OK, PROBLEM, INFO = "ok", "problem", "info"
PACKAGES = ("apsw", "PyStemmer", "psycopg", "mcp", "click", "rich")  # apsw carries SQLite and has its number
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700


class Found(NamedTuple):
    """One line of the report."""

    state: str
    name: str
    detail: str


def examine(state: State) -> list[Found]:
    found = [Found(INFO, "version", f"limpet {__version__}, Python {platform.python_version()}, {_packages()}")]
    try:
        found += _settings(state)
    except LimpetError as problem:
        return [*found, Found(PROBLEM, "settings", problem.message)]
    store = state.settings.store
    path = file_of(store)
    if not exists(store):
        if _origin(state, "store") != "default":
            why = "there is none, though the settings name this place. Check the name, or make it with `limpet init`."
            return [*found, Found(PROBLEM, "store", why)]
        return [*found, Found(INFO, "store", "there is none yet; `limpet init` or the first write makes it.")]
    if path:
        found += _permissions(path)
    return found + _health(state)


def exists(store: str) -> bool:
    """Whether a store that is a file is there. A server is taken to be there; reaching it is looked at later."""
    path = file_of(store)
    return path is None or os.path.lexists(path)


def _settings(state: State) -> list[Found]:
    chosen = state.settings
    session = state.session or chosen.session
    named = f"{session} (named)" if session else f"none named: notes go to {OWN_SESSION}, every session is searched"
    replica = [Found(INFO, "replica place", shown_place(chosen.store_replica))] if chosen.store_replica else []
    return [
        Found(INFO, "store place", f"{shown_place(chosen.store)} (from: {_origin(state, 'store')})"),
        *replica,
        Found(INFO, "project", f"{chosen.project} (from: {_origin(state, 'project')})"),
        Found(INFO, "session", named),
        Found(INFO, "bounds", _values(chosen.bounds)),
        Found(INFO, "outputs", _values(chosen.bounds.outputs)),
        Found(INFO, "window", _values(chosen.bounds.window)),
    ]


def _origin(state: State, name: str) -> str:
    """Where a setting comes from, found by leaving one source after the other out."""
    if getattr(state, name):
        return f"--{name}"
    store = state.store if name == "project" else None
    chosen = getattr(state.settings, name)
    if getattr(settings.load(store, environment={}), name) != chosen:
        return "environment"
    root = settings.project_root(os.getcwd())
    default = os.path.join(root, settings.FOLDER, "limpet.db") if root else chosen
    if name == "store":
        return "default" if chosen == default else f"{settings.FOLDER}/config.toml"
    plain = {"default", os.path.basename(root) if root else "default"}
    return "default" if chosen in plain else f"{settings.FOLDER}/config.toml"


def _permissions(path: str) -> list[Found]:
    """Memory can hold anything an agent has seen, so nobody else on the machine should be able to read it."""
    wanted = [(path + end, PRIVATE_FILE) for end in ("", "-wal", "-shm", ".lock")]
    folder = os.path.dirname(path)
    if os.path.basename(folder) in (settings.FOLDER, "limpet"):
        wanted.append((folder, PRIVATE_FOLDER))
    found = []
    for place, most in wanted if os.name == "posix" else ():
        try:
            mode = os.stat(place).st_mode & 0o777
        except FileNotFoundError:
            continue
        except OSError as problem:
            found.append(Found(PROBLEM, "permissions", f"{place} cannot be looked at: {problem.strerror}."))
            continue
        if mode & ~most:
            advice = f"{place} is open to others (mode {mode:o}). Close it: chmod {most:o} '{place}'"
            found.append(Found(PROBLEM, "permissions", advice))
    return found or [Found(OK, "permissions", "only you can read it")]


def _health(state: State) -> list[Found]:
    try:
        hold = state.hold
        found = [Found(OK, "opens", _schema(state))]
        found += [Found(OK if one.ok else PROBLEM, one.name, one.detail) for one in hold.check()]
        reply = hold.call("list_sessions", {"limit": 1}, by=BY)
        newest = ", ".join(one["id"] for one in reply["sessions"]) or "none"
        return [*found, Found(INFO, "newest session", newest)]
    except LimpetError as problem:
        return [Found(PROBLEM, "store", problem.message)]


def _schema(state: State) -> str:
    if file_of(state.settings.store) is None:
        return "the server answers"
    from limpet.stores.sqlite.database import SCHEMA

    return f"schema {SCHEMA}, which is the newest"  # opening brings an older one up to it and refuses a newer one


def _packages() -> str:
    named = []
    for name in PACKAGES:
        try:
            named.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            named.append(f"{name} not installed")
    return ", ".join(named)


def _values(bounds: Bounds | OutputRules | WindowRules) -> str:
    plain = {name: value for name, value in bounds._asdict().items() if isinstance(value, int)}
    return ", ".join(f"{name} {value if isinstance(value, bool) else f'{value:,}'}" for name, value in plain.items())
