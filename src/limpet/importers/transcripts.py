"""Transcripts: the session files that coding agents write, as messages.

The agent that wrote a file is recognised by its records; `clients/` knows the format of each. These formats belong to
other programs and change without notice, so a line that is not understood is reported and skipped. A hook reads
the end of a file, so that a long one takes no more time; an import reads all of it.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import isfinite

from limpet import clients, limits
from limpet.clients.base import CodingAgent, a_text
from limpet.light import Any, json, re
from limpet.model import LAST_MS, milliseconds
from limpet.platform import open_ordinary
from limpet.record import NamedTuple
from limpet.window.formats import anthropic, openai_responses
from limpet.window.messages import ASSISTANT, SYSTEM, TOOL, USER, Call, Media, Message, Part, Result, Text

Record = Mapping[str, Any]
TIMES = ("timestamp", "created_at", "createdAt", "create_time", "updated_at")
LAST_SECONDS = 1 << 35  # a number above it counts milliseconds: as seconds it would be after the year 3000

# What agents and hooks insert into the messages of a user.
_INSERTED = re.compile(r"<(system-reminder|limpet|hook_context)>.*?</\1>", re.DOTALL)
_NOT_BY_USER = (
    *("<local-command", "<command-", "<environment_context", "<user_instructions", "<turn_aborted", "# AGENTS.md"),
    *("Caveat: The messages below", "This session is being continued from a previous conversation", "<session_context"),
)


class UnreadLine(NamedTuple):
    line: int
    why: str


class Transcript(NamedTuple):
    """The content of a file. `client` is empty if no known agent wrote it."""

    client: str
    session: str
    folder: str
    messages: tuple[Message, ...]
    lines: int
    unread: tuple[UnreadLine, ...]
    title: str = ""  # by which the agent lists the session
    times: tuple[int, ...] = ()  # when each message was said, in milliseconds; 0 where nothing says so


class MessageCollector:
    """Collects the messages of one record, in any of the formats that agents use."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def user(self, text: object) -> None:
        self._text(USER, text)

    def assistant(self, text: object) -> None:
        self._text(ASSISTANT, text)

    def call(self, id: object, name: object, arguments: object) -> None:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        self.messages.append(Message(ASSISTANT, (Call(a_text(id), a_text(name) or "tool", text),)))

    def result(self, id: object, text: str, *, error: bool = False) -> None:
        self.messages.append(Message(TOOL, (Result(a_text(id), (Text(text),), error),)))

    def anthropic(self, message: dict[str, Any]) -> None:
        self.messages += anthropic.read([message])

    def openai_responses(self, item: dict[str, Any]) -> None:
        self.messages += openai_responses.read([item])

    def _text(self, role: str, text: object) -> None:
        if isinstance(text, str) and text.strip():
            self.messages.append(Message(role, (Text(text),)))


def read(lines: Iterable[str], writer: CodingAgent | None = None) -> Transcript:
    """The session in the lines of a file. `writer` is the agent that says it wrote them, so that others load later."""
    records: list[tuple[int, Record]] = []
    unread: list[UnreadLine] = []
    number = 0
    for number, record in _records(lines):
        if isinstance(record, str):
            unread.append(UnreadLine(number, record))
        elif record is not None:
            records.append((number, record))
    plain = [record for _, record in records]
    client = (_writer((writer,), plain) if writer else None) or _writer(clients.every(), plain)
    if client is None:
        return Transcript("", "", "", (), number, tuple(unread))
    return _transcript(client, records, number, unread)


def tail(path: str, writer: CodingAgent | None = None) -> Transcript:
    """The end of a file; without messages if it holds no conversation."""
    with open_ordinary(path) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(size - limits.TRANSCRIPT_BYTES, 0))
        content = io.BytesIO(file.read(limits.TRANSCRIPT_BYTES))
    if size > limits.TRANSCRIPT_BYTES:
        content.readline()  # the rest of a line whose beginning is not read
    return read((line.decode("utf-8", "replace") for line in content), writer)


def session_of(lines: Iterable[str]) -> tuple[str, str]:
    """The session and the folder of a file, from its beginning."""
    session = folder = ""
    candidates = clients.every()
    for _, record in _records(lines):
        if isinstance(record, dict) and (client := _writer(candidates, [record])) is not None:
            named = client.session_of(record)
            session, folder = session or named[0], folder or named[1]
        if session and folder:
            break
    return session, folder


# --- messages ---------------------------------------------------------------------------------------------------------


def cleaned(messages: Sequence[Message]) -> Iterator[Message]:
    """The messages without system prompts, thinking, text that agents and hooks inserted, and the bytes of media."""
    for message in messages:
        if message.role == SYSTEM:
            continue
        parts = [clean for part in message.parts if (clean := _clean(part, message.role)) is not None]
        if parts:
            yield Message(message.role, tuple(parts))


def _clean(part: Part, role: str) -> Part | None:
    match part:
        case Text():
            text = _INSERTED.sub("", part.text).strip() if role == USER else part.text
            return Text(text) if text.strip() and not (role == USER and text.startswith(_NOT_BY_USER)) else None
        case Media():
            return _placeholder(part)
        case Call():
            return Call(part.id, part.name, part.arguments)
        case Result():
            inner = tuple(_placeholder(item) if isinstance(item, Media) else Text(item.text) for item in part.parts)
            return Result(part.call_id, inner, part.error)
    return None


def _placeholder(media: Media) -> Text:
    return Text(f"[{media.kind}, not kept]")


# --- records ----------------------------------------------------------------------------------------------------------


def _transcript(
    client: CodingAgent, records: Sequence[tuple[int, Record]], lines: int, unread: Sequence[UnreadLine]
) -> Transcript:
    skipped = list(unread)
    session = folder = ""
    latest: dict[str, list[tuple[Message, int]]] = {}  # by record id, in the order of first appearance
    title = ""
    for index, (number, record) in enumerate(records):
        title = client.title_of(record) or title
        if not client.is_record(record):
            continue
        collector = MessageCollector()
        try:
            named = client.session_of(record)
            client.collect(record, collector)
            messages = list(cleaned(collector.messages))
        except (AttributeError, KeyError, TypeError, ValueError, IndexError, RecursionError):
            skipped.append(UnreadLine(number, f"it is not what {client.name} writes"))
            continue
        session, folder = session or named[0], folder or named[1]
        at = time_of(record)
        latest[client.record_id(record) or f"#{index}"] = [(message, at) for message in messages]
    ordered = [pair for pairs in latest.values() for pair in pairs]
    talk, times = tuple(message for message, _ in ordered), tuple(at for _, at in ordered)
    return Transcript(client.name, session, folder, talk, lines, tuple(sorted(skipped)), title, times)


def time_of(record: Record) -> int:
    """When a record was written, in milliseconds: by the names that programs give to times. 0 where nothing says so."""
    inner = record.get("info")
    for place in (record, inner if isinstance(inner, dict) else {}):
        times = place.get("time")
        dated = [times.get("created")] if isinstance(times, dict) else [times]
        for value in (*(place.get(name) for name in TIMES), *dated):
            if at := milliseconds_of(value):
                return at
    return 0


def milliseconds_of(value: object) -> int:
    """A time as programs write it: ISO 8601, or seconds or milliseconds since 1970. 0 for anything else."""
    if isinstance(value, str):
        try:
            at = milliseconds(value)
        except (ValueError, OverflowError):
            return 0
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value):
        at = int(value if value > LAST_SECONDS else value * 1_000)
    else:
        return 0
    return at if 0 < at <= LAST_MS else 0


def _writer(candidates: Sequence[CodingAgent], records: Sequence[Record]) -> CodingAgent | None:
    """The agent that wrote most of the records."""
    votes = [(sum(map(client.is_record, records)), client) for client in candidates]
    most, client = max(votes, key=lambda vote: vote[0])
    return client if most else None


def _records(lines: Iterable[str]) -> Iterator[tuple[int, Record | str | None]]:
    """The record of each line, or why there is none. A document of many lines has one record per message in it."""
    rest = iter(lines)
    first = next(rest, None)
    if first is None:
        return
    if first.strip() in ("{", "["):
        yield from _document("\n".join([first, *rest]))
        return
    for number, line in enumerate(chain([first], rest), 1):
        record = _parsed(line) if line.strip() else None
        messages = record.get("messages") if isinstance(record, dict) else None
        if isinstance(record, dict) and isinstance(messages, list):
            yield number, {name: value for name, value in record.items() if name != "messages"}
            yield from ((number, _object(message)) for message in messages)
        else:
            yield number, record


def _document(text: str) -> Iterator[tuple[int, Record | str | None]]:
    document = _parsed(text)
    if isinstance(document, str):
        yield 1, document
        return
    messages = document.get("messages")
    yield 1, {name: value for name, value in document.items() if name != "messages"}
    for number, message in enumerate(messages if isinstance(messages, list) else (), 1):
        yield number, _object(message)


def _object(value: object) -> Record | str:
    return value if isinstance(value, dict) else "it is not a JSON object"


def _parsed(line: str) -> Record | str:
    try:
        return _object(json.loads(line))
    except RecursionError:
        return "it is nested too deeply"
    except ValueError:
        return "it is not JSON"  # the agent may be writing it at this moment
