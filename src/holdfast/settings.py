"""Settings: the only reader of the environment and of config files. Read once, then passed down.

A value comes from, in this order: the environment (HOLDFAST_NAME), `.holdfast/config.toml` of the project, the default.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from holdfast import errors
from holdfast.limits import Bounds, JournalRules, OutputRules

FOLDER = ".holdfast"
ROOT_MARKS = (FOLDER, ".git", ".hg", "pyproject.toml", "package.json", "Cargo.toml", "go.mod")
TENANT = "local"
SWITCH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
# Where coding agents put the id of their own session, so that a server they start belongs to it.
SESSION_NAMES = ("HOLDFAST_SESSION", "CLAUDE_CODE_SESSION_ID", "COPILOT_AGENT_SESSION_ID", "AGENT_SESSION_ID")


class Settings(NamedTuple):
    store: str  # a path or a postgresql:// address
    project: str
    tenant: str = TENANT
    session: str | None = None
    token: str | None = None  # what HTTP clients must send
    bounds: Bounds = Bounds()
    root: str = "."  # the project's folder, where the journal is


def load(
    store: str | None = None,
    project: str | None = None,
    *,
    folder: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Settings for work in a folder. Arguments win over everything."""
    env = os.environ if environment is None else environment
    here = folder or env.get("HOLDFAST_FOLDER") or os.getcwd()  # a client may start us anywhere
    root = project_root(here)
    config = _config(os.path.join(root, FOLDER, "config.toml")) if root else {}
    place = store or env.get("HOLDFAST_STORE") or _text(config, "store") or _default_store(root, env)
    name = project or env.get("HOLDFAST_PROJECT") or _text(config, "project") or _default_project(root, place)
    return Settings(
        place,
        name,
        env.get("HOLDFAST_TENANT") or TENANT,
        next((env[known] for known in SESSION_NAMES if env.get(known)), None),
        env.get("HOLDFAST_TOKEN") or None,
        _bounds(config, env),
        root or os.path.abspath(here),
    )


def project_root(folder: str) -> str | None:
    """The nearest folder upwards that looks like a project; one with a .holdfast folder wins over all others."""
    here, marked = os.path.abspath(folder), None
    while True:
        if os.path.isdir(os.path.join(here, FOLDER)):
            return here
        if marked is None and any(os.path.exists(os.path.join(here, mark)) for mark in ROOT_MARKS):
            marked = here
        above = os.path.dirname(here)
        if above == here:
            return marked
        here = above


def data_folder(env: Mapping[str, str]) -> str:
    """Where a user's data lives when there is no project."""
    if base := env.get("XDG_DATA_HOME"):
        return os.path.join(base, "holdfast")
    if os.name == "nt":
        return os.path.join(env.get("LOCALAPPDATA") or os.path.expanduser("~"), "holdfast")
    return os.path.join(env.get("HOME") or os.path.expanduser("~"), ".local", "share", "holdfast")


def _default_store(root: str | None, env: Mapping[str, str]) -> str:
    folder = data_folder(env) if root is None else os.path.join(root, FOLDER)
    return os.path.join(folder, "holdfast.db")


def _default_project(root: str | None, store: str) -> str:
    # A store inside the project serves that project alone, wherever the folder is moved to. A shared one needs names.
    inside = root is not None and os.path.abspath(store).startswith(os.path.join(root, FOLDER) + os.sep)
    return "default" if root is None or inside else os.path.basename(root) or "default"


def _config(path: str) -> dict[str, Any]:
    if not os.path.isfile(path):
        return {}
    import tomllib  # only those who have a config file pay for it

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except ValueError as problem:  # not TOML, or not even UTF-8
        raise errors.bad_setting("file " + path, "unreadable", f"it must be TOML ({problem})") from None


def _text(config: Mapping[str, Any], name: str) -> str | None:
    value = config.get(name)
    if value is not None and not isinstance(value, str):
        raise errors.bad_setting(name, value, "it must be a string")
    return value


def _bounds(config: Mapping[str, Any], env: Mapping[str, str]) -> Bounds:
    outputs = OutputRules(**_fields(OutputRules(), _table(config, "outputs"), env, "OUTPUTS_"))
    journal = JournalRules(**_fields(JournalRules(), _table(config, "journal"), env, "JOURNAL_"))
    plain = _fields(Bounds(), config, env, "")
    return Bounds(**{**plain, "outputs": outputs, "journal": journal})


def _table(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = config.get(name, {})
    if not isinstance(found, dict):
        raise errors.bad_setting(name, found, "it must be a table of settings")
    return found


def _fields(
    defaults: Bounds | OutputRules | JournalRules, config: Mapping[str, Any], env: Mapping[str, str], prefix: str
) -> dict[str, Any]:
    """The fields of a settings tuple that are set somewhere, each of the type of its default."""
    found: dict[str, Any] = {}
    for name, default in defaults._asdict().items():
        value = env.get(f"HOLDFAST_{prefix}{name.upper()}") or config.get(name)
        if value is None or isinstance(default, tuple):
            continue
        if isinstance(default, str):
            found[name] = _text({name: value}, name)
            continue
        if isinstance(default, bool):
            found[name] = SWITCH.get(value.lower()) if isinstance(value, str) else value
            if type(found[name]) is not bool:
                raise errors.bad_setting(name, value, "it must be true or false")
        else:
            found[name] = int(value) if isinstance(value, str) and value.strip().isdecimal() else value
            if type(found[name]) is not int or found[name] < 1:
                raise errors.bad_setting(name, value, "it must be a whole number above 0")
    return found
