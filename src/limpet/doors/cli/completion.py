"""What a shell completes values to: ids, keys, tags, sessions, clients and other words that exist here.

Nothing is made and no error is shown: a shell asks while a person types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from typing import Any

from click.shell_completion import CompletionItem

from limpet import clients
from limpet.catalogue.operation import EVERY
from limpet.catalogue.table import PROFILES, find
from limpet.doors.cli import render
from limpet.doors.cli.commands import Command
from limpet.doors.cli.run import Invocation
from limpet.errors import LimpetError
from limpet.home.load import project_names
from limpet.limits import LIST_MAX
from limpet.model import KINDS
from limpet.recall.recall import CHOICES
from limpet.upkeep import paging

Json = dict[str, Any]
# A shell puts a value on the command line as it is, and runs what `$(…)` in it says. Agents choose keys: other values
# than these are left to people to type, in quotes.
HARMLESS = re.compile(r"[\w.,:/@+][\w.,:/@+%=#-]*")
HELP_CHARS = 50  # of a text that a shell shows beside an id
Pairs = Iterable[tuple[str, str]]  # a value, and what it is


def _rows(operation: str, field: str, name: str, about: str, **arguments: Any) -> Callable[[Invocation], Pairs]:
    session = EVERY if find(operation).every_session else None

    def read(cli: Invocation) -> Pairs:
        return [(str(row[name]), str(row.get(about, ""))) for row in cli.call(operation, arguments, session)[field]]

    return read


def _words(words: Iterable[str]) -> Callable[[Invocation], Pairs]:
    return lambda cli: [(word, "") for word in words]


def _handoffs(cli: Invocation) -> Pairs:
    return [(entry.key, entry.content) for entry in paging.handoffs(cli.hold.context())]


def _state_keys(cli: Invocation) -> Pairs:
    return [(key, "") for key in cli.call("agent_state", {"action": "keys"})["keys"]]


NOTES = _rows("list_notes", "notes", "id", "content", limit=LIST_MAX)
MEMORIES = _rows("list_memory", "memories", "key", "content", limit=LIST_MAX)
SESSIONS = _rows("list_sessions", "sessions", "id", "task", limit=LIST_MAX)
OUTPUTS = _rows("list_outputs", "entries", "id", "tool", limit=LIST_MAX)
TAGS = _rows("list_tags", "tags", "tag", "")
SKILLS = _rows("list_skills", "skills", "name", "description")
CHANGES = _rows("history", "events", "seq", "operation", limit=LIST_MAX)

STORELESS = ("client", "profile", "project", "kind", "kinds")
# By the name of a parameter, in every command; and by the first word of a command and the name.
ANYWHERE: dict[str, Callable[[Invocation], Pairs]] = {
    "session": SESSIONS,
    "tag": TAGS,
    "tags": TAGS,
    "tags_any": TAGS,
    "profile": _words(PROFILES),
    "client": _words([*clients.names(), "generic"]),
    "project": lambda cli: [(name, "") for name in project_names()],
    "kinds": _words(CHOICES),
    "kind": _words(KINDS),
}
IN: dict[tuple[str, str], Callable[[Invocation], Pairs]] = {
    ("note", "id"): NOTES,
    ("memory", "key"): MEMORIES,
    ("memory", "id"): MEMORIES,
    ("session", "id"): SESSIONS,
    ("output", "id"): OUTPUTS,
    ("handoff", "id"): _handoffs,
    ("skill", "name"): SKILLS,
    ("state", "key"): _state_keys,
    ("project", "id"): lambda cli: [(name, "") for name in project_names()],
    ("undo", "seq"): CHANGES,
}


def complete(row: Command, name: str, parent: Invocation | None, incomplete: str) -> list[CompletionItem]:
    """The values of this parameter of the command that begin so."""
    read = IN.get((row.words.split()[0], name)) or ANYWHERE.get(name)
    cli = Invocation()
    if parent is not None:
        cli.take({"store": parent.store, "project": parent.project})
    cli.command = Command("status", "")  # a look, which makes nothing
    with suppress(LimpetError, OSError), closing(cli):
        if read is not None and (name in STORELESS or render.exists(cli.settings.store)):
            pairs = [(value, render.one_line(about)[:HELP_CHARS]) for value, about in read(cli)]
            return [CompletionItem(value, help=about) for value, about in pairs if _fits(value, incomplete)]
    return []


def _fits(value: str, incomplete: str) -> bool:
    return value.startswith(incomplete) and HARMLESS.fullmatch(value) is not None
