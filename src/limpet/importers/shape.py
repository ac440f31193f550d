"""What a reader gives: facts under keys, each a text for keyed memory, and the parts that nobody could read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from limpet import limits
from limpet.importers.memories import Fact
from limpet.text import terminal

Json = Mapping[str, Any]
MARK = "…"


class Unread(NamedTuple):
    """A part that was passed over: where it stands, and why."""

    part: str
    why: str


class File(NamedTuple):
    """A file of a folder: its path there, with slashes, and its bytes, or why these were not read."""

    path: str
    body: bytes | str


class Reader(NamedTuple):
    """How one tool keeps things. It reads the bytes of a file, or the files of a folder; facts may share a key."""

    tool: str
    folder: bool
    read: Callable[[bytes], Iterator[Fact | Unread]] | Callable[[Iterable[File]], Iterator[Fact | Unread]]


def fact(tool: str, name: str, text: str, tags: Iterable[str] = ()) -> Fact | Unread:
    """A fact under a key that people can type and that no key of ours can be, or why it cannot be kept."""
    shown = " ".join(terminal.visible(name, keep_newlines=False).split())
    if not shown:
        return Unread("a part without a name", "nothing says what it is called")
    if not text.strip():
        return Unread(shown, "it is empty")
    if why := terminal.problem(text):
        return Unread(shown, f"it holds {why}")
    return Fact(a_key(f"{tool}/{shown}"), text.strip(), a_few(tags))


def a_key(name: str) -> str:
    """The name, or as much of it as a key may have, with a hash in place of the rest."""
    name = "".join(letter if letter.isprintable() else MARK for letter in name)
    room = limits.KEY_MAX_CHARS - limits.PEER_PART_CHARS
    if len(name) <= room:
        return name
    return f"{name[: room - 14]}{MARK}{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def a_few(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags as ours have to be: each once, none blank or long, and not more than a note may have."""
    kept: dict[str, str] = {}
    for tag in tags:
        name = " ".join(tag.split()).removeprefix("#")
        if name and len(name) <= limits.TAG_MAX_CHARS and not terminal.problem(name):
            kept.setdefault(name.casefold(), name)
    return tuple(kept.values())[: limits.NOTE_MAX_TAGS]


def a_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def texts_of(value: object) -> list[str]:
    """The texts of a list; a single text is a list of one."""
    if isinstance(value, str):
        return [value]
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def records(body: bytes) -> Iterator[tuple[str, object]]:
    """The values of a JSON document or of JSON Lines, each with where it stands; what is neither is a ValueError there.

    A text is a document if all of it is JSON. Otherwise each line is read for itself, so that one bad line costs one.
    """
    text = body.decode("utf-8-sig", "surrogateescape")
    whole = parsed(text)
    if not isinstance(whole, ValueError):
        yield "the file", whole
        return
    lines = text.split("\n")
    if not any(isinstance(parsed(line), dict) for line in lines if line.strip()):
        yield "the file", whole
        return
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield f"line {number:,}", parsed(line)


def parsed(text: str) -> object:
    try:
        return json.loads(text)
    except RecursionError:
        return ValueError("it is nested too deeply")
    except ValueError:
        return ValueError("it is not JSON")
