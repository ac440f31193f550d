"""The servers behind `limpet gateway`, from a file: JSON as clients have it (`mcpServers`), or the same in TOML.

A server has a `command` with `args`, or a `url` with `headers`. A command gets the few variables every program needs,
what its `env` says and what `pass_env` names, and nothing else: a key meant for one server is not for the others.
`${NAME}` in a value stands for an environment variable, so that no secret has to be in the file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from limpet import errors, settings
from limpet.doors.proxy import http_rules as http

SERVERS = ("mcpServers", "servers")
# What a program needs to run at all, to find its files, and to speak the user's language.
PASSED: tuple[str, ...] = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
)
PASSED += ("LC_MESSAGES", "LC_TIME", "LC_NUMERIC", "LC_COLLATE", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")
NAME = re.compile(
    r"[A-Za-z0-9](?:[_-]?[A-Za-z0-9])*"
)  # no `__`, and no `_` at the end: the name of a tool tells its server
NAME_MAX_CHARS = 40  # clients put their own words before names of tools, and models take 64 to 128 characters in all
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class Command(NamedTuple):
    """A server that is started."""

    name: str
    argv: tuple[str, ...]
    env: dict[str, str]
    folder: str | None = None


class Address(NamedTuple):
    """A server that listens somewhere."""

    name: str
    place: http.Place
    headers: dict[str, str]


Spec = Command | Address


def load(path: str) -> tuple[Spec, ...]:
    """The servers of a file, or BadInput that names the entry and what is wrong with it."""
    value = _read(path)
    tables = next((value[key] for key in SERVERS if key in value), None)
    if not isinstance(tables, dict) or not tables:
        raise _bad(path, "empty", f"it must name servers in a table {SERVERS[0]}")
    found = [_spec(path, name, entry) for name, entry in tables.items()]
    return tuple(spec for spec in found if spec is not None)


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o002:
                raise _bad(path, "open to everybody", "only you may be able to write a file that names programs to run")
            data = file.read()
    except OSError as problem:
        raise _bad(path, "unreadable", problem.strerror or "it cannot be read") from None
    try:
        if path.endswith(".toml"):
            import tomllib  # late: most have JSON

            return tomllib.loads(data.decode())
        value = json.loads(data, object_pairs_hook=_no_twins)
    except (ValueError, RecursionError) as problem:
        raise _bad(path, "unreadable", f"it must be JSON, or TOML if its name ends in .toml ({problem})") from None
    return value if isinstance(value, dict) else {}


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


def _spec(path: str, name: str, entry: Any) -> Spec | None:
    if NAME.fullmatch(name) is None or len(name) > NAME_MAX_CHARS:
        rule = f"letters, digits, single - and _ between them, at most {NAME_MAX_CHARS} characters"
        raise _bad(path, name, f"the name of a server is made of {rule}")
    if not isinstance(entry, dict):
        raise _bad(path, name, "a server is a table with a command or a url")
    if entry.get("disabled") is True or entry.get("enabled") is False:
        return None

    def text(key: str, value: Any) -> str:
        if not isinstance(value, str):
            raise _bad(path, f"{name}.{key}", "it must be text")
        return _filled(value)

    def table(key: str) -> dict[str, str]:
        value = entry.get(key, {})
        if not isinstance(value, dict):
            raise _bad(path, f"{name}.{key}", "it must be a table of texts")
        return {word: text(f"{key}.{word}", one) for word, one in value.items()}

    if isinstance(entry.get("url"), str) and "command" not in entry:
        headers = dict(http.header(*pair) for pair in table("headers").items())
        return Address(name, http.place_of(text("url", entry["url"])), headers)
    if not isinstance(entry.get("command"), str) or not entry["command"] or "url" in entry:
        raise _bad(path, name, "a server has either a command or a url")
    return _command(path, name, entry, text, table)


def _command(
    path: str,
    name: str,
    entry: Mapping[str, Any],
    text: Callable[[str, Any], str],
    table: Callable[[str], dict[str, str]],
) -> Command:
    lists = {key: entry.get(key, []) for key in ("args", "pass_env")}
    for key, value in lists.items():
        if not isinstance(value, list):
            raise _bad(path, f"{name}.{key}", "it must be a list of texts")
    argv = (text("command", entry["command"]), *(text("args", one) for one in lists["args"]))
    passed = settings.environment((*PASSED, *(text("pass_env", one) for one in lists["pass_env"])))
    folder = text("cwd", entry["cwd"]) if "cwd" in entry else None
    return Command(name, argv, {**passed, **table("env")}, folder)


def _filled(value: str) -> str:
    def one(found: re.Match[str]) -> str:
        if found[2] is not None and found[1] not in settings.environment((found[1],)):
            return found[2]
        return settings.variable(found[1])

    return _VARIABLE.sub(one, value)


def _bad(path: str, what: str, why: str) -> errors.BadInput:
    return errors.bad_setting(f"file {path}", what, why)
