"""The exports of chat programs: every conversation in them as messages, for a session each.

Both programs give a ZIP file with `conversations.json` in it, or that file alone. A conversation that was taken up
again at an earlier message has several ends; the one that the program showed last is read.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from limpet import errors, limits
from limpet.clients.base import a_text
from limpet.importers.facts import Unread
from limpet.importers.transcripts import Transcript, milliseconds_of
from limpet.platform import open_ordinary
from limpet.record import NamedTuple
from limpet.window.messages import ASSISTANT, USER, Message, Text

Json = Mapping[str, Any]
FILE = "conversations.json"
NAME = re.compile(r"[\w.-]{1,100}")  # of a conversation


class Said(NamedTuple):
    role: str
    text: str
    at: int


class ReadChats(NamedTuple):
    talks: list[Transcript]
    unread: list[Unread]


def read(app: str, path: str) -> ReadChats:
    """The conversations of an export, oldest first. Raises BadInput if the file is none."""
    try:
        with open_ordinary(path) as file:
            body = _conversations(file, path)
            document = json.loads(body)
    except (ValueError, RecursionError):
        raise errors.peer_not_readable(app, path, f"{FILE} is not JSON") from None
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as problem:
        raise errors.peer_not_readable(app, path, getattr(problem, "strerror", None) or str(problem)) from None
    if not isinstance(document, list):
        raise errors.peer_not_readable(app, path, "it is not a list of conversations")
    result = ReadChats([], [])
    for number, record in enumerate(document, 1):
        talk = _talk(app, record)
        if isinstance(talk, Transcript):
            result.talks.append(talk)
        else:
            result.unread.append(Unread(f"conversation {number:,}", talk))
    if not result.talks:
        raise errors.peer_not_readable(app, path, "no conversation in it can be read")
    result.talks.sort(key=lambda talk: max(talk.times, default=0))
    return result


def _conversations(file: IO[bytes], path: str) -> bytes:
    """The bytes of `conversations.json`, which may be in a ZIP file. A small file may unpack to a huge one."""
    most = limits.CHATS_MAX_BYTES
    if file.read(4) == b"PK\3\4":
        with zipfile.ZipFile(file) as export:
            name = next((name for name in export.namelist() if name.rpartition("/")[2] == FILE), None)
            if name is None:
                raise zipfile.BadZipFile(f"there is no {FILE} in it")
            with export.open(name) as inner:
                body = inner.read(most + 1)
    else:
        file.seek(0)
        body = file.read(most + 1)
    if len(body) > most:
        raise zipfile.BadZipFile(f"its {FILE} has more than {most:,} bytes")
    return body


def _talk(app: str, record: object) -> Transcript | str:
    """A conversation, or why there is none."""
    if not isinstance(record, dict):
        return "it is not a JSON object"
    title, said_in = APPS[app]
    id = a_text(record.get("conversation_id")) or a_text(record.get("uuid")) or a_text(record.get("id"))
    if not NAME.fullmatch(id):
        return "nothing says which it is"
    try:
        parts = [words for words in said_in(record) if words.text.strip()]
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return f"it is not what {app} writes"
    if not parts:
        return "nothing was said in it"
    messages = tuple(Message(words.role, (Text(words.text),)) for words in parts)
    name = " ".join(a_text(record.get(title)).split())
    return Transcript(app, f"{app}-{id}", "", messages, 0, (), name, tuple(w.at for w in parts))


def _chatgpt(record: Json) -> Iterator[Said]:
    """The messages on the way to the last end, in order. Those of tools and of the program are left out."""
    nodes = record["mapping"]
    at: object = record.get("current_node")
    way: list[Any] = []
    if at not in nodes:
        at = next((name for name in reversed(list(nodes)) if not nodes[name].get("children")), None)
    while at in nodes and len(way) <= len(nodes):
        way.append(nodes[at].get("message"))
        at = nodes[at].get("parent")
    for message in reversed(way):
        role = ((message or {}).get("author") or {}).get("role")
        if role in (USER, ASSISTANT) and not (message.get("metadata") or {}).get(
            "is_visually_hidden_from_conversation"
        ):
            parts = (message.get("content") or {}).get("parts") or []
            yield Said(role, "\n".join(filter(None, map(_part, parts))), milliseconds_of(message.get("create_time")))


def _part(part: object) -> str:
    if isinstance(part, dict):
        return a_text(part.get("text")) or f"[{a_text(part.get('content_type')) or 'file'}, not kept]"
    return a_text(part)


def _claude(record: Json) -> Iterator[Said]:
    for message in record["chat_messages"]:
        role = {"human": USER, "assistant": ASSISTANT}.get(message.get("sender"))
        if role:
            texts = [a_text(part.get("text")) for part in message.get("content") or () if part.get("type") == "text"]
            names = [a_text(file.get("file_name")) for file in message.get("attachments") or ()]
            files = [f"[{name}, not kept]" for name in names if name]
            text = "\n".join(filter(None, texts)) or a_text(message.get("text"))
            yield Said(role, "\n".join(filter(None, [text, *files])), milliseconds_of(message.get("created_at")))


# The programs: which member is a conversation's title, and what was said in it.
APPS: Mapping[str, tuple[str, Callable[[Json], Iterator[Said]]]] = {
    "chatgpt": ("title", _chatgpt),
    "claude-chat": ("name", _claude),
}
