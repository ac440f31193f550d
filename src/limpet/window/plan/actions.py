"""Deeds: what a call of a tool did, as far as its name, its arguments and its result tell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from limpet.previews import failure_lines
from limpet.window.messages import Call, Message, Result, Text

READ, COMMAND, EFFECT, OTHER = "read", "command", "effect", "other"
LOOKED_AT = 20_000  # characters of a result in which failures are looked for, half at each end
_PATHS = ("path", "file_path", "filepath", "filename", "file", "notebook_path", "uri", "url")
_COMMANDS = ("command", "cmd", "script", "code")
_CHANGES = re.compile(
    r"(?:^|[_\W])(?:write|edit|create|delete|remove|update|patch|apply|move|rename|insert|replace|append|commit|push"
    r"|send|post|put|deploy|install|publish|merge|upload|set)(?:$|[_\W])"
)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
# Our own tools write to our own store, which keeps what they wrote; to list them again would only repeat it.
_OURS = re.compile(r"note|memory|handoff|scratch|_task$|uncompact|recall|show_window")


class Deed(NamedTuple):
    kind: str
    what: str  # a path, a command, or the call itself
    call: str  # the tool's name
    failed: str  # what went wrong, in one line; empty when nothing did


def deeds(unit: Sequence[Message]) -> Iterator[Deed]:
    """The calls of one unit with their outcomes."""
    results = {result.call_id: result for message in unit for result in message.results()}
    for message in unit:
        for call in message.calls():
            yield _deed(call, results.get(call.id))


def _deed(call: Call, result: Result | None) -> Deed:
    given = _given(call.arguments)
    name = _HUMP.sub("_", call.name).lower()
    command = next((line for key in _COMMANDS if (line := _line(given.get(key)))), "")
    failed = "" if result is None else _failure(result, whole=bool(command))
    if command:
        return Deed(COMMAND, _one_line(command, 160), call.name, failed)
    path = next((given[key] for key in _PATHS if isinstance(given.get(key), str)), "")
    if _OURS.search(name):
        return Deed(OTHER, "", call.name, failed)
    if _CHANGES.search(name):
        return Deed(EFFECT, _one_line(f"{call.name} {path or _first(given)}", 160), call.name, failed)
    if path:
        return Deed(READ, _one_line(path, 160), call.name, failed)
    return Deed(OTHER, _one_line(f"{call.name} {_first(given)}", 160), call.name, failed)


def _line(command: object) -> str:
    """A command as it is typed; some tools take its words one by one."""
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        return " ".join(command)
    return command if isinstance(command, str) else ""


def _given(arguments: str) -> dict[str, Any]:
    try:
        given = json.loads(arguments) if arguments else {}
    except ValueError:
        return {}
    return given if isinstance(given, dict) else {}


def _first(given: dict[str, Any]) -> str:
    return next((str(value) for value in given.values() if isinstance(value, str | int | float)), "")


def _failure(result: Result, *, whole: bool) -> str:
    """What went wrong. Only what a command printed is searched for it: a file may well speak of errors."""
    if not (whole or result.error):
        return ""
    text = "\n".join(part.text for part in result.parts if isinstance(part, Text))
    if len(text) > LOOKED_AT:
        text = f"{text[: LOOKED_AT // 2]}\n{text[-LOOKED_AT // 2 :]}"
    lines = failure_lines(text)
    if lines:
        return _one_line(lines[0].text, 160)
    return (_one_line(text, 160) or "it failed") if result.error else ""


def _one_line(text: str, most: int) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"
