"""Settings: the reader of the environment and of config files, and every key that people may change.

A value comes from, in this order: an argument, a variable of the environment, the person's config file, what counts of
`.limpet/config.toml` in the project, the default; home/load.py puts them together. Variables exist for what belongs to
a process (VARIABLES); LIMPET_SET serves every key of the config file:
LIMPET_SET="outputs.max_age=30d;window.limit=128000".

The comment of each field is `unit: reason`; docs/make_settings.py writes docs/settings.md from these comments. Numbers
that cannot be changed are in limits.py.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from limpet import errors, limits
from limpet.light import Any, TypeVar, cast
from limpet.model import DataFolder, Folder
from limpet.record import NamedTuple

TENANT = "local"
SWITCH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
WORDS = {"recall.model": ("auto", "static", "transformer")}  # keys that take one of some words
DURATIONS = ("outputs.max_age", "hooks.seconds", "sandbox_seconds")  # keys that take 90s, 15m, 12h and 30d too
PREFIX = "LIMPET_"

# Every variable that is read, with what it sets. Other programs that Limpet starts get none of them.
VARIABLES = {
    "LIMPET_HOME": "the data folder, where every project's memory is kept",
    "LIMPET_STORE": "the store: a path or a postgresql:// address",
    "LIMPET_STORE_REPLICA": "a streaming replica of the store, for searches: a postgresql:// address",
    "LIMPET_PROJECT": "the project's name in the store",
    "LIMPET_TENANT": "the tenant, on a store that several share",
    "LIMPET_SESSION": "the session that calls belong to, unless they name one",
    "LIMPET_FOLDER": "the folder to work in, where a client starts programs somewhere else",
    "LIMPET_TOKEN": "the token that HTTP clients must send",
    "LIMPET_SKILLS": "directories with skills, separated as in PATH; new skills go to the first",
    "LIMPET_STRICT": "`1` blocks tools of other servers that changed since they were pinned",
    "LIMPET_SET": "any key of the config file: `key=value;key=value`",
    "LIMPET_DEBUG": "`1` prints a traceback when something fails inside Limpet",
}


# --- the keys ---------------------------------------------------------------------------------------------------------


class ToolRule(NamedTuple):
    """Exceptions for some tools: a table [outputs.tools."pattern"]."""

    pattern: str  # name: of a tool, or a pattern with * and ?
    keep: str = "auto"  # word: auto stores by size; always and never do not look at it
    threshold_bytes: int = 0  # bytes: 0 means as for all tools
    redact: bool = True  # switch: secrets are masked in the stored text


class OutputRules(NamedTuple):
    """What is kept outside the window, and for how long."""

    enabled: bool = True  # switch: off leaves every result in the window
    threshold_bytes: int = 4_096  # bytes: below this a reference costs more than it saves
    max_age: int = 7 * 86_400  # seconds: since an output was last used; a cited output stays
    max_cache_size: int = 256 << 20  # bytes: of all outputs of a project, before compression
    include_preview: bool = True  # switch: off sends the reference alone
    preview_length: int = 330  # tokens: every output pays for it, and a longer preview answers hardly more
    no_repeats: tuple[str, ...] = ()  # names: tools or patterns (git_*) whose repeated calls are answered in full
    free_tokens: int = 0  # tokens: free in the window, if the caller knows; 0 means unknown, and thresholds stay fixed
    tools: tuple[ToolRule, ...] = ()  # tables: see below


class WindowRules(NamedTuple):
    """When the window is cleared, warned about and compacted. Percentages are of the limit."""

    limit: int = 200_000  # tokens: the model's window when the caller names none
    clear_percent: int = 60  # percent: old results are cleared from here on; earlier, the lost prompt cache costs more
    clear_least_percent: int = 10  # percent: results are cleared if at least this much comes free, for the same reason
    warn_percent: int = 80  # percent: leaves a fifth for the warned turn, its results, and an estimate that is too low
    full_percent: int = 95  # percent: a request of this size is not sent; it is made smaller at once, warned or not
    target_percent: int = 45  # percent: a compaction must get below it, or the next one would follow too soon
    tail_percent: int = 20  # percent: of recent messages that stay word for word: some dozen steps in a usual window
    summary_percent: int = 15  # percent: of the summary that replaces them, which also has a fixed maximum
    keep_results: int = 4  # calls: the most recent ones, whose results stay as long as they can still be sent
    compact_after_tasks: int = 0  # tasks: so many have ended since the last compaction, it is time for one; 0: off


class RecallRules(NamedTuple):
    """What recall searches by."""

    meaning: bool = True  # switch: also finds the same in other words; needs the extra "semantic" or "embed"
    model: str = "auto"  # word: static, transformer, or auto: static until `limpet index` ran with the extra "embed"
    model_path: str = ""  # path: of another transformer's file; empty means the one of the extra "embed"
    background: bool = True  # switch: a thread of a server makes a transformer's vectors; off: `limpet index` alone
    unasked: bool = True  # switch: shows what clearly fits a prompt before the model answers it


class JournalRules(NamedTuple):
    """Where the journal is and how much of it is shown and kept."""

    file: str = "NOTES.md"  # path: from the project's folder
    level_1_tokens: int = 100  # tokens: of recover_journal at level 1, which is read at every start
    level_2_tokens: int = 500  # tokens: of recover_journal at level 2
    rotate_bytes: int = 48 << 10  # bytes: past this, old decisions and log rows move to the archive; 12,000 tokens
    keep_decisions: int = 10  # decisions: that stay when the rest moves
    keep_log_rows: int = 20  # rows: of the log that stay


class HookRules(NamedTuple):
    """What hooks of coding agents may do."""

    enabled: bool = True  # switch: `limpet off` and `limpet on` set it for a project
    seconds: int = 5  # seconds: a hook that is not done by then answers nothing, because agents wait for it
    off_clients: tuple[str, ...] = ()  # names: clients whose hooks do nothing here
    off_tools: tuple[str, ...] = ()  # names: tools or patterns whose results are left as they are


class ServerRules(NamedTuple):
    """What a server for teams allows, and whose access tokens it takes."""

    calls_per_minute: int = 600  # calls: of one token or user, in each process of the server
    calls_at_once: int = 12  # calls: of one token or user; each holds a thread
    quota_entries: int = 0  # entries: of one tenant; 0 means no limit
    quota_bytes: int = 0  # bytes: of one tenant's outputs, before compression; 0 means no limit
    issuer: str = ""  # address: of the identity provider, exactly as in its tokens; empty means no OAuth
    audience: str = ""  # text: the audience its tokens must have; empty means this server's public address
    jwks: str = ""  # address: of the provider's keys, or a file
    scope_prefix: str = "limpet:"  # text: before read, write and admin in its tokens
    tenant_claim: str = ""  # name: of the claim with the tenant; empty means the server's own tenant
    projects_claim: str = "limpet_projects"  # name: of the claim with projects, as a list or as words
    projects: tuple[str, ...] = ()  # names: projects of users whose token has no such claim


class Bounds(NamedTuple):
    """The keys that operations need. The first ones are top-level keys of the config file, the rest are its tables."""

    note_max_chars: int = limits.NOTE_MAX_CHARS  # characters: a note is one thought; longer text is an output
    note_max_tags: int = limits.NOTE_MAX_TAGS  # tags: more than one would ever search by dilute each other
    notepad_budget_tokens: int = limits.NOTEPAD_BUDGET_TOKENS  # tokens: past this a write says what to trim
    digest_budget_tokens: int = limits.DIGEST_BUDGET_TOKENS  # tokens: what memory may cost at the start of a session
    report_duplicates: bool = True  # switch: a write names the entry that says the same already
    sandbox_seconds: int = 5  # seconds: a run that computes for longer is ended; nothing else is answered meanwhile
    sandbox_memory_mb: int = 128  # MiB: enough to take apart 10 MB of JSON, measured; 64 are not
    outputs: OutputRules = OutputRules()
    window: WindowRules = WindowRules()
    recall: RecallRules = RecallRules()
    journal: JournalRules = JournalRules()
    hooks: HookRules = HookRules()
    server: ServerRules = ServerRules()


class Settings(NamedTuple):
    """The settings of one process. Those in TOP_KEYS are keys of the config file."""

    store: str  # address: a path or a postgresql:// address; by default a file in the person's data folder
    project: str  # name: of the project in the store, where several share it
    tenant: str = TENANT  # name: of the tenant, on a store that several share
    session: str | None = None  # name: of the session that calls belong to, unless they name one
    token: str | None = None  # text: what HTTP clients must send
    bounds: Bounds = Bounds()
    skills: tuple[Folder, ...] = ()  # paths: directories with skills; new ones go to the first
    strict: bool = False  # switch: blocks tools of other servers that changed since they were pinned
    root: str = "."  # path: the project's folder, where the journal is
    store_replica: str | None = None  # address: a streaming replica of the store, for searches
    name: str = ""  # name: of the project for people, at most 60 plain characters; by default its folder's
    data: DataFolder | None = None  # folder: of the project, in the data folder
    own_store: bool = False  # switch: the store is the default one, in that folder
    ignored: tuple[str, ...] = ()  # keys: of the repository's configuration that do not count
    remarks: tuple[str, ...] = ()  # texts: what was ignored and why, or that a repository was moved


# Keys, and beginnings of keys, whose default does no harm in place of a value that cannot be read: nothing is deleted,
# sent elsewhere, shown or switched on by it.
HARMLESS_DEFAULTS = (
    *("name", "note_max_", "notepad_budget_tokens", "digest_budget_tokens", "report_duplicates", "sandbox_", "window."),
    *("recall.", "journal.level_", "outputs.threshold_bytes", "outputs.include_preview", "outputs.preview_length"),
    *("outputs.no_repeats", "outputs.free_tokens"),
)
TOP_KEYS = ("store", "project", "store_replica", "skills", "strict", "name")  # of Settings, in the config file


def all_keys() -> dict[str, Any]:
    """Every key of the config file with its default, tables as `table.key`."""
    bounds = Bounds()
    flat: dict[str, Any] = {name: Settings._field_defaults.get(name) for name in TOP_KEYS}
    flat |= {name: value for name, value in bounds._asdict().items() if not _is_table(value)}
    for table, rules in bounds._asdict().items():
        if _is_table(rules):
            flat |= {f"{table}.{name}": value for name, value in rules._asdict().items()}
    return flat


def _is_table(value: object) -> bool:
    return hasattr(value, "_fields")


# --- reading them -----------------------------------------------------------------------------------------------------


class Paths(NamedTuple):
    """Where things are by default on this system, before anything is looked at."""

    home: str  # path: the person's home folder
    data: str  # path: the person's data folder
    config: str  # path: the person's config file
    shared: tuple[str, ...]  # paths: folders that hold projects and are none


def process_environment() -> Mapping[str, str]:
    return os.environ


def paths(env: Mapping[str, str], platform: str = sys.platform) -> Paths:
    home = env.get("HOME") or env.get("USERPROFILE") or os.path.expanduser("~")
    if platform == "win32":
        data = os.path.join(env.get("LOCALAPPDATA") or home, "limpet")
        config = os.path.join(env.get("APPDATA") or home, "limpet")
    elif platform == "darwin":
        data = config = os.path.join(home, "Library", "Application Support", "limpet")
    else:
        data = os.path.join(env.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share"), "limpet")
        config = os.path.join(env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "limpet")
    temporary = ("/tmp", "/var/tmp", *(env.get(name) or "/tmp" for name in ("TMPDIR", "TEMP", "TMP")))  # noqa: S108
    return Paths(home, env.get("LIMPET_HOME") or data, os.path.join(config, "config.toml"), (home, *temporary))


def data_folder(environment: Mapping[str, str] | None = None) -> str:
    """Where the data of the user who runs this is."""
    return paths(os.environ if environment is None else environment).data


def check_tenant(name: str) -> str:
    if name.startswith("."):
        raise errors.bad_setting("tenant", name, "names that begin with a dot are reserved for Limpet")
    return name


def check_keys(keys: Iterable[str], place: str) -> None:
    """Refuse a key that does not exist: it is a mistake."""
    known = all_keys()
    for key in keys:
        if key not in known:
            raise errors.unknown_setting(key, _nearest(key, known), place)


def check_file(config: Mapping[str, Any], path: str) -> None:
    """The same for the keys of a config file. A value in place of a table, or in a tool's rules, is refused later."""
    tables = {key.partition(".")[0] for key in all_keys() if "." in key}
    check_keys((key for key, _ in flat(config) if key not in tables and not key.startswith("outputs.tools.")), path)


def check_values(config: Mapping[str, Any]) -> None:
    """Refuse a value of a wrong type."""
    rules_of(Bounds(), config)
    for key in ("store", "project", "store_replica", "name"):
        text_value(key, config.get(key))
    switch_value("strict", config.get("strict", False))
    if config.get("skills") is not None:
        skill_folders(config["skills"], "")


def flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every key of a configuration with its value, tables as `table.key`."""
    for name, value in config.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def skill_folders(value: object, base: str) -> tuple[Folder, ...]:
    """The directories of `skills`, relative to the folder of the file that names them."""
    folders = [value] if isinstance(value, str) else value
    if not isinstance(folders, list) or not all(isinstance(item, str) and item.strip() for item in folders):
        raise errors.bad_setting("skills", value, "it must be a directory or a list of them")
    return tuple(Folder(os.path.join(base, os.path.expanduser(item)), item) for item in folders)


def overrides(text: str) -> dict[str, Any]:
    """LIMPET_SET in the shape of a config file. An unknown key is refused, because it can only be a mistake."""
    config: dict[str, Any] = {}
    for item in filter(None, map(str.strip, text.split(";"))):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
            raise errors.bad_setting("LIMPET_SET", item, "each of its parts must be key=value, with ; between them")
        path = _tool_path(key) if key.startswith("outputs.tools.") else tuple(key.split("."))
        if len(path) < 4:
            check_keys([key], "LIMPET_SET")
        table = config
        for name in path[:-1]:
            table = table.setdefault(name, {})
        if value:  # an empty value is as good as none
            table[path[-1]] = value
    return config


def _tool_path(key: str) -> tuple[str, ...]:
    """outputs.tools.PATTERN.FIELD: the pattern may have dots of its own."""
    pattern, _, field = key.removeprefix("outputs.tools.").rpartition(".")
    return ("outputs", "tools", pattern, field) if pattern else ("outputs", "tools")


def _nearest(key: str, known: Iterable[str]) -> str:
    import difflib  # only a mistake pays for it

    return next(iter(difflib.get_close_matches(key, known, 1, 0)))


def merged(config: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with another one laid over it."""
    result = dict(config)
    for name, value in above.items():
        below = result.get(name)
        if isinstance(value, dict) and isinstance(below, dict):
            result[name] = merged(below, value)
        elif not isinstance(value, dict) or below is None:  # a table that is no table in the file is refused later
            result[name] = value
    return result


# --- checking them ----------------------------------------------------------------------------------------------------

R = TypeVar("R", bound=tuple[Any, ...])


def rules_of(defaults: R, config: Mapping[str, Any], prefix: str = "") -> R:
    """The tuple of settings with the values of a table, each of the type of its default."""
    chosen: dict[str, Any] = {}
    fields = cast(Any, defaults)
    for name, default in fields._asdict().items():
        key, value = prefix + name, config.get(name)
        if _is_table(default):
            chosen[name] = rules_of(default, _table(key, config.get(name, {})), key + ".")
        elif key == "outputs.tools":
            chosen[name] = _tool_rules(config.get(name, {}))
        elif value is not None:
            chosen[name] = _value(key, value, default)
    return cast(R, fields._replace(**chosen))


def _value(key: str, value: object, default: object) -> object:
    if isinstance(default, bool):
        return switch_value(key, value)
    if isinstance(default, int):
        return _whole(key, value)
    if isinstance(default, tuple):
        return _names(key, value)
    text = text_value(key, value)
    if key in WORDS and text not in WORDS[key]:
        raise errors.bad_setting(key, value, f"it must be {', '.join(WORDS[key][:-1])} or {WORDS[key][-1]}")
    return text


def _table(key: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise errors.bad_setting(key, value, "it must be a table of settings")
    return value


def _tool_rules(tables: object) -> tuple[ToolRule, ...]:
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise errors.bad_setting("outputs.tools", tables, "it must be a table for each tool or pattern")
    return tuple(_tool_rule(pattern, table) for pattern, table in tables.items())


def _tool_rule(pattern: str, table: Mapping[str, Any]) -> ToolRule:
    if unknown := table.keys() - set(ToolRule._fields[1:]):
        fields = ", ".join(ToolRule._fields[1:])
        raise errors.bad_setting(f"outputs.tools.{pattern}", min(unknown), f"it takes {fields}")
    keep = table.get("keep", "auto")
    if keep not in ("auto", "always", "never"):
        raise errors.bad_setting(f"keep of {pattern}", keep, "it must be auto, always or never")
    threshold = 0
    if "threshold_bytes" in table:
        threshold = _whole(f"threshold_bytes of {pattern}", table["threshold_bytes"])
    return ToolRule(pattern, keep, threshold, switch_value(f"redact of {pattern}", table.get("redact", True)))


def text_value(key: str, value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise errors.bad_setting(key, value, "it must be a string")
    return value


def switch_value(key: str, value: object) -> bool:
    switch = SWITCH.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(switch, bool):
        raise errors.bad_setting(key, value, "it must be true or false")
    return switch


def _whole(key: str, value: object) -> int:
    number, rule = value, "it must be a whole number above 0"
    if isinstance(value, str):
        digits, unit = value.strip(), 1
        if key in DURATIONS:
            rule = "it must be a whole number of seconds above 0, or one with a unit: 90s, 15m, 12h, 30d"
            unit = SECONDS.get(digits[-1:].lower(), 0)
            digits, unit = (digits[:-1], unit) if unit else (digits, 1)
        number = int(digits) * unit if digits.isdecimal() else value
    if type(number) is not int or number < 1:
        raise errors.bad_setting(key, value, rule)
    return number


def _names(key: str, value: object) -> tuple[str, ...]:
    names = list(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise errors.bad_setting(key, value, "it must be a list of names")
    return tuple(names)


# --- the rest of the environment --------------------------------------------------------------------------------------


def debug() -> bool:
    return bool(os.environ.get("LIMPET_DEBUG"))


def variable(name: str, environment: Mapping[str, str] | None = None) -> str:
    """The value of a variable that a person names as the place of a secret. The variables of Limpet are refused."""
    if name.startswith(PREFIX):
        raise errors.bad_setting("variable", name, "what belongs to Limpet is sent to no other server")
    value = (os.environ if environment is None else environment).get(name)
    if not value:
        raise errors.bad_setting("variable", name, "there is no environment variable of this name, or it is empty")
    return value


def environment(names: Iterable[str], *, own: bool = False) -> dict[str, str]:
    """Those of the named variables that are set, without the variables of Limpet unless `own`."""
    return {name: os.environ[name] for name in names if name in os.environ and (own or not name.startswith(PREFIX))}


def child_environment() -> dict[bytes, bytes]:
    """The environment as the client gave it, without the variables of Limpet, for a process that Limpet starts."""
    env = {name: value for name, value in os.environb.items() if not name.startswith(PREFIX.encode())}
    # In a plain C locale Python sets LC_CTYPE for itself and its children. The client did not.
    if b"LC_CTYPE" in env and sys.platform == "linux":
        with suppress(OSError), open("/proc/self/environ", "rb") as file:
            if not any(entry.startswith(b"LC_CTYPE=") for entry in file.read().split(b"\0")):
                del env[b"LC_CTYPE"]
    return env


def first_set(names: Iterable[str], environment: Mapping[str, str] | None = None) -> str:
    """The value of the first of the named variables that is set, or nothing."""
    env = os.environ if environment is None else environment
    return next((env[name] for name in names if env.get(name)), "")


def any_variable_ends_with(suffix: str) -> bool:
    """Whether the name of a variable ends so."""
    return any(name.endswith(suffix) for name in os.environ)


def passing_machine() -> str:
    """The variable that says that this machine is created for every use; empty if none does."""
    return next(filter(os.environ.get, ("CODESPACES", "GITPOD_WORKSPACE_ID", "CI")), "")


def names_data_folder() -> bool:
    """Whether a person chose where the data folder is."""
    return bool(os.environ.get("LIMPET_HOME"))
