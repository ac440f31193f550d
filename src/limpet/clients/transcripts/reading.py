"""A client's file read, whichever of the known clients wrote it.

A line that is not understood is named and passed over. A hook reads the end of a file only, so that it takes no longer
with a long one; an import reads all of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from limpet import limits
from limpet.clients.transcripts import claude_code, codex, copilot, gemini, opencode
from limpet.clients.transcripts.shape import Head, Json, Reader, cleaned
from limpet.window.messages import Message

READERS: tuple[Reader, ...] = (
    claude_code.READER,
    codex.READER,
    copilot.READER,
    gemini.READER,
    opencode.READER,
)


class Unread(NamedTuple):
    line: int
    why: str


class Session(NamedTuple):
    """What a file holds. `client` is empty when it is none of the known clients' files."""

    client: str
    session: str
    folder: str
    messages: tuple[Message, ...]
    lines: int
    unread: tuple[Unread, ...]


def read(lines: Iterable[str]) -> Session:
    """The session in the lines of a file."""
    records: list[tuple[int, Json]] = []
    unread: list[Unread] = []
    number = 0
    for number, record in _records(lines):
        if isinstance(record, str):
            unread.append(Unread(number, record))
        elif record is not None:
            records.append((number, record))
    reader = _whose([record for _, record in records])
    if reader is None:
        return Session("", "", "", (), number, tuple(unread))
    return _session(reader, records, number, unread)


def tail(path: str) -> tuple[Message, ...]:
    """The conversation at the end of a file; empty when there is none."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > limits.TRANSCRIPT_BYTES:
            file.seek(size - limits.TRANSCRIPT_BYTES)
            file.readline()  # the rest of a line whose beginning is not read
        return read(line.decode("utf-8", "replace") for line in file).messages


def heads(lines: Iterable[str]) -> Head:
    """Which session a file is and of which folder, from its beginning."""
    session = folder = ""
    for _, record in _records(lines):
        reader = _whose([record]) if isinstance(record, dict) else None
        if reader is not None and isinstance(record, dict):
            found = reader.head(record)
            session, folder = session or found.session, folder or found.folder
        if session and folder:
            break
    return Head(session, folder)


# --- how --------------------------------------------------------------------------------------------------------------


def _session(reader: Reader, records: Sequence[tuple[int, Json]], lines: int, unread: Sequence[Unread]) -> Session:
    problems = list(unread)
    session = folder = ""
    latest: dict[str, list[Message]] = {}  # what each record said, at the place where its name first stood
    for at, (number, record) in enumerate(records):
        if not reader.mine(record):
            continue
        try:
            found = reader.head(record)
            said = list(cleaned(reader.said(record)))
        except (AttributeError, KeyError, TypeError, ValueError, IndexError, RecursionError):
            problems.append(Unread(number, f"it is not what {reader.client} writes"))
            continue
        session, folder = session or found.session, folder or found.folder
        latest[reader.name(record) or f"#{at}"] = said
    messages = tuple(message for said in latest.values() for message in said)
    return Session(reader.client, session, folder, messages, lines, tuple(sorted(problems)))


def _whose(records: Sequence[Json]) -> Reader | None:
    """The client that wrote most of it."""
    votes = {reader: sum(map(reader.mine, records)) for reader in READERS}
    best = max(READERS, key=lambda reader: votes[reader])
    return best if votes[best] else None


def _records(lines: Iterable[str]) -> Iterator[tuple[int, Json | str | None]]:
    """Each line's record, or why it is none. A document of many lines counts as one record for each message in it."""
    rest = iter(lines)
    first = next(rest, None)
    if first is None:
        return
    if first.strip() in ("{", "["):
        yield from _document("\n".join([first, *rest]))
        return
    for number, line in enumerate(_chain(first, rest), 1):
        found = _parsed(line) if line.strip() else None
        inner = found.get("messages") if isinstance(found, dict) else None
        if isinstance(found, dict) and isinstance(inner, list):
            yield number, {name: value for name, value in found.items() if name != "messages"}
            yield from ((number, _object(one)) for one in inner)
        else:
            yield number, found


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _document(text: str) -> Iterator[tuple[int, Json | str | None]]:
    found = _parsed(text)
    if isinstance(found, str):
        yield 1, found
        return
    inner = found.get("messages")
    yield 1, {name: value for name, value in found.items() if name != "messages"}
    for number, one in enumerate(inner if isinstance(inner, list) else (), 1):
        yield number, _object(one)


def _object(value: object) -> Json | str:
    return value if isinstance(value, dict) else "it is not a JSON object"


def _parsed(line: str) -> Json | str:
    try:
        return _object(json.loads(line))
    except RecursionError:
        return "it is nested too deeply"
    except ValueError:
        return "it is not JSON"  # a client may be writing it just now
