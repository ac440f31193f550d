"""Settings: the only reader of the environment and of config files. Read once, then passed down.

A value comes from, in this order: the environment (LIMPET_NAME), `.limpet/config.toml` of the project, the default.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from limpet import errors
from limpet.limits import Bounds, HookRules, JournalRules, OutputRules, RecallRules, ServerRules, ToolRule, WindowRules
from limpet.model import Folder

FOLDER = ".limpet"
ROOT_MARKS = (FOLDER, ".git", ".hg", "pyproject.toml", "package.json", "Cargo.toml", "go.mod")
TENANT = "local"
SWITCH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
# Where coding agents put the id of their own session, so that a server they start belongs to it.
SESSION_NAMES = ("LIMPET_SESSION", "CLAUDE_CODE_SESSION_ID", "COPILOT_AGENT_SESSION_ID", "AGENT_SESSION_ID")

# A variable that a coding agent sets for what it starts: which agent that is. Several also set that of Claude Code.
AGENT_NAMES = {
    "COPILOT_CLI": "copilot",
    "CURSOR_VERSION": "cursor",
    "GEMINI_CLI": "gemini",
    "GEMINI_SESSION_ID": "gemini",
    "CLAUDE_PROJECT_DIR": "claude-code",
}
OFF = "off"  # a file of this name beside the store: hooks do nothing in the project

Rules = Bounds | OutputRules | WindowRules | RecallRules | JournalRules | HookRules | ServerRules
TABLES = (OutputRules, WindowRules, RecallRules, JournalRules, HookRules, ServerRules)


class Settings(NamedTuple):
    store: str  # a path or a postgresql:// address
    project: str
    tenant: str = TENANT
    session: str | None = None
    token: str | None = None  # what HTTP clients must send
    bounds: Bounds = Bounds()
    skills: tuple[Folder, ...] = ()  # directories with skills; new ones go to the first
    strict: bool = False  # tools of other servers that changed since they were pinned are blocked
    root: str = "."  # the project's folder, where the journal is
    store_replica: str | None = None  # the address of a streaming replica of the store, for searches


def load(
    store: str | None = None,
    project: str | None = None,
    *,
    folder: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Settings for work in a folder. Arguments win over everything."""
    env = os.environ if environment is None else environment
    here = folder or env.get("LIMPET_FOLDER") or os.getcwd()  # a client may start us anywhere
    root = project_root(here)
    config = _config(os.path.join(root, FOLDER, "config.toml")) if root else {}
    place = store or env.get("LIMPET_STORE") or _text(config, "store") or _default_store(root, env)
    name = project or env.get("LIMPET_PROJECT") or _text(config, "project") or _default_project(root, place)
    return Settings(
        place,
        name,
        _tenant(env.get("LIMPET_TENANT") or TENANT),
        next((env[known] for known in SESSION_NAMES if env.get(known)), None),
        env.get("LIMPET_TOKEN") or None,
        _switched(_bounds(config, env), root, env),
        _skills(config, env, root),
        _switch("strict", env.get("LIMPET_STRICT") or config.get("strict", False)),
        root or os.path.abspath(here),
        env.get("LIMPET_STORE_REPLICA") or _text(config, "store_replica") or None,
    )


def _tenant(name: str) -> str:
    if name.startswith("."):
        raise errors.bad_setting("tenant", name, "names with a dot in front are Limpet's own")
    return name


def variable(name: str, environment: Mapping[str, str] | None = None) -> str:
    """The value of an environment variable that somebody names as the place of a secret. Ours go to nobody else."""
    if name.startswith("LIMPET_"):
        raise errors.bad_setting("variable", name, "what belongs to Limpet is sent to no other server")
    value = (os.environ if environment is None else environment).get(name)
    if not value:
        raise errors.bad_setting("variable", name, "there is no environment variable of this name, or it is empty")
    return value


def environment(names: Iterable[str]) -> dict[str, str]:
    """Those of the named environment variables that are set; never any of our own."""
    return {name: os.environ[name] for name in names if name in os.environ and not name.startswith("LIMPET_")}


def project_root(folder: str) -> str | None:
    """The nearest folder upwards that looks like a project; one with a .limpet folder wins over all others."""
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
        return os.path.join(base, "limpet")
    if os.name == "nt":
        return os.path.join(env.get("LOCALAPPDATA") or os.path.expanduser("~"), "limpet")
    return os.path.join(env.get("HOME") or os.path.expanduser("~"), ".local", "share", "limpet")


def coding_agent(environment: Mapping[str, str] | None = None) -> str:
    """The coding agent that started us, as far as the environment tells; else nothing."""
    env = os.environ if environment is None else environment
    return next((name for variable, name in AGENT_NAMES.items() if env.get(variable)), "")


def by_plugin(environment: Mapping[str, str] | None = None) -> bool:
    """Whether a coding agent runs us for a plugin of its own."""
    return bool((os.environ if environment is None else environment).get("CLAUDE_PLUGIN_ROOT"))


def off_file(folder: str, environment: Mapping[str, str] | None = None) -> str:
    """The file that switches hooks off in the project of a folder."""
    return _off_file(project_root(folder), os.environ if environment is None else environment)


def _off_file(root: str | None, env: Mapping[str, str]) -> str:
    return os.path.join(data_folder(env) if root is None else os.path.join(root, FOLDER), OFF)


def _switched(bounds: Bounds, root: str | None, env: Mapping[str, str]) -> Bounds:
    if not os.path.exists(_off_file(root, env)):
        return bounds
    return bounds._replace(hooks=bounds.hooks._replace(enabled=False))


def _default_store(root: str | None, env: Mapping[str, str]) -> str:
    folder = data_folder(env) if root is None else os.path.join(root, FOLDER)
    return os.path.join(folder, "limpet.db")


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


def _skills(config: Mapping[str, Any], env: Mapping[str, str], root: str | None) -> tuple[Folder, ...]:
    """The directories of `skills`, seen from the project's root; by default one beside the store."""
    given = env.get("LIMPET_SKILLS", "").split(os.pathsep) if env.get("LIMPET_SKILLS") else config.get("skills")
    wanted = [given] if isinstance(given, str) else given
    if wanted is None:
        wanted = [f"{FOLDER}/skills" if root else "skills"]
    if not isinstance(wanted, list) or not all(isinstance(item, str) and item.strip() for item in wanted):
        raise errors.bad_setting("skills", given, "it must be a directory or a list of them")
    base = root or data_folder(env)
    return tuple(Folder(os.path.join(base, os.path.expanduser(item)), item) for item in wanted)


def _bounds(config: Mapping[str, Any], env: Mapping[str, str]) -> Bounds:
    table = _table(config, "outputs")
    outputs = OutputRules(**_fields(OutputRules(), table, env, "OUTPUTS_"), tools=_tool_rules(table.get("tools", {})))
    window = WindowRules(**_fields(WindowRules(), _table(config, "window"), env, "WINDOW_"))
    recall = RecallRules(**_fields(RecallRules(), _table(config, "recall"), env, "RECALL_"))
    journal = JournalRules(**_fields(JournalRules(), _table(config, "journal"), env, "JOURNAL_"))
    hooks = HookRules(**_fields(HookRules(), _table(config, "hooks"), env, "HOOKS_"))
    server = ServerRules(**_fields(ServerRules(), _table(config, "server"), env, "SERVER_"))
    tables = {"outputs": outputs, "window": window, "recall": recall, "journal": journal, "hooks": hooks}
    tables["server"] = server
    return Bounds(**{**_fields(Bounds(), config, env, ""), **tables})


def _table(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    rules = config.get(name, {})
    if not isinstance(rules, dict):
        raise errors.bad_setting(name, rules, "it must be a table of settings")
    return rules


def _tool_rules(tables: object) -> tuple[ToolRule, ...]:
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise errors.bad_setting("outputs.tools", tables, "it must be a table for each tool or pattern")
    found = []
    for pattern, table in tables.items():
        unknown = table.keys() - set(ToolRule._fields[1:])
        if unknown:
            known = ", ".join(ToolRule._fields[1:])
            raise errors.bad_setting(f"outputs.tools.{pattern}", min(unknown), f"it takes {known}")
        keep = table.get("keep", "auto")
        if keep not in ("auto", "always", "never"):
            raise errors.bad_setting(f"keep of {pattern}", keep, "it must be auto, always or never")
        most = table.get("threshold_bytes", 0)
        if type(most) is not int or (most < 1 and "threshold_bytes" in table):
            raise errors.bad_setting(f"threshold_bytes of {pattern}", most, "it must be a whole number above 0")
        found.append(ToolRule(pattern, keep, most, _switch(f"redact of {pattern}", table.get("redact", True))))
    return tuple(found)


def _switch(name: str, value: object) -> bool:
    found = SWITCH.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise errors.bad_setting(name, value, "it must be true or false")
    return found


def _fields(defaults: Rules, config: Mapping[str, Any], env: Mapping[str, str], prefix: str) -> dict[str, Any]:
    """The fields of a settings tuple that are set somewhere, each of the type of its default."""
    found: dict[str, Any] = {}
    for name, default in defaults._asdict().items():
        value = env.get(f"LIMPET_{prefix}{name.upper()}") or config.get(name)
        if value is None or name == "tools" or isinstance(default, TABLES):
            continue
        if isinstance(default, str):
            found[name] = _text({name: value}, name)
            continue
        if isinstance(default, bool):
            found[name] = _switch(name, value)
        elif isinstance(default, tuple):
            found[name] = tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value
            if not isinstance(found[name], list | tuple) or not all(isinstance(part, str) for part in found[name]):
                raise errors.bad_setting(name, value, "it must be a list of names")
            found[name] = tuple(found[name])
        else:
            found[name] = int(value) if isinstance(value, str) and value.strip().isdecimal() else value
            if type(found[name]) is not int or found[name] < 1:
                raise errors.bad_setting(name, value, "it must be a whole number above 0")
    return found
