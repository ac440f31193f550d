"""What MCP's streamable HTTP asks of a client, as pure functions: addresses, headers, and streams of events."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from limpet import errors
from limpet.doors.proxy import rewrite as rules

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"  # in `_meta`, from 2026-07-28 on
VERSION_HEADER_SINCE = "2025-06-18"  # earlier revisions know no header for the revision
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}  # what Mcp-Name repeats
# Headers that are ours to set. Everything else people may add.
OWN_HEADERS = frozenset(
    ("accept", "connection", "content-length", "content-type", "host", "last-event-id", "transfer-encoding")
)
OWN_PREFIX = "mcp-"
Mirror = dict[tuple[str, ...], str]  # where an argument stands in a call, and the header that repeats it
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


# --- where ------------------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Where a server listens. `shown` is for messages and has no query, because people put keys there."""

    secure: bool
    host: str
    port: int
    path: str

    @property
    def shown(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.port == (443 if self.secure else 80)
        path = self.path.partition("?")[0]
        return f"{'https' if self.secure else 'http'}://{host}{'' if usual else f':{self.port}'}{path}"


def place_of(url: str) -> Place:
    """The place an address names, or BadInput."""
    from urllib.parse import urlsplit  # late: a wrapper of a command needs none of this

    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as problem:
        raise errors.bad_setting("url", url, f"it is not an address ({problem})") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise errors.bad_setting("url", url, "it must begin with http:// or https:// and name a host")
    if parts.username is not None or parts.password is not None:
        why = "a password in an address ends up in logs; use --header-env Authorization=VARIABLE"
        raise errors.bad_setting("url", f"{parts.scheme}://…@{parts.hostname}", why)
    secure = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not url.isascii() or any(one <= " " or one == "\x7f" for one in url):
        raise errors.bad_setting("url", url, "it must be plain ASCII without spaces; write other characters as %XX")
    return Place(secure, parts.hostname, port or (443 if secure else 80), path)


def redirected(place: Place, location: str) -> Place | None:
    """Where a redirect leads, if that is the same server: nobody else is to get our headers and arguments."""
    from urllib.parse import urljoin

    try:
        there = place_of(urljoin(f"{place.shown}", location))
    except errors.LimpetError:
        return None
    return there if there[:3] == place[:3] else None


def header(name: str, value: str) -> tuple[str, str]:
    """A header people add, or BadInput. The value is a secret as often as not, so no message shows it."""
    name, value = name.strip(), value.strip()
    if _TOKEN.fullmatch(name) is None:
        raise errors.bad_setting("header", name, "a header is written 'Name: value', and its name is one word")
    if name.lower() in OWN_HEADERS or name.lower().startswith(OWN_PREFIX):
        raise errors.bad_setting("header", name, "this header belongs to the protocol and is set by Limpet")
    if any(ord(one) < 0x20 or ord(one) == 0x7F or ord(one) > 0xFF for one in value):
        raise errors.bad_setting("header", name, "its value must be one line of Latin letters, digits and signs")
    return name, value


# --- what goes with a message -----------------------------------------------------------------------------------------


def modern_revision(message: Mapping[str, Any]) -> str | None:
    """The revision a message names itself, as every request does from 2026-07-28 on."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    found = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    return found if isinstance(found, str) and _PLAIN.fullmatch(found) else None


def message_headers(message: Mapping[str, Any], mirrored: Mapping[str, Mirror]) -> dict[str, str]:
    """The headers that repeat what a message of 2026-07-28 says. Earlier revisions have none of these.

    `mirrored` has, for each tool that asks for it, the arguments that are repeated and the names they get.
    """
    revision = modern_revision(message)
    method = message.get("method")
    if revision is None or not isinstance(method, str):
        return {}
    params: Mapping[str, Any] = message["params"]
    found = {"MCP-Protocol-Version": revision, "Mcp-Method": header_value(method)}
    name = params.get(NAMED.get(method, ""))
    if isinstance(name, str):
        found["Mcp-Name"] = header_value(name)
        for path, word in mirrored.get(name, {}).items() if method == "tools/call" else ():
            value = _at(params.get("arguments"), path)
            if isinstance(value, str | int | float):
                shown = str(value).lower() if isinstance(value, bool) else str(value)
                found[f"Mcp-Param-{word}"] = header_value(shown)
    return found


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def header_value(text: str) -> str:
    """A text as the value of a header: as it is where that is safe, else in base64, marked as MCP says."""
    if _PLAIN.fullmatch(text) and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode()}?="


def mirrored_arguments(listed: Any) -> dict[str, Mirror]:
    """For each tool of a decoded reply to tools/list: the arguments whose schema asks for a header of their own."""
    found: dict[str, Mirror] = {}
    result = listed.get("result") if isinstance(listed, dict) else None
    tools = result.get("tools") if isinstance(result, dict) else None
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            words = dict(_asks(tool.get("inputSchema"), ()))
            if words:
                found[tool["name"]] = words
    return found


def _asks(schema: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    members = schema.get("properties") if isinstance(schema, dict) else None
    for name, member in members.items() if isinstance(members, dict) else ():
        word = member.get("x-mcp-header") if isinstance(member, dict) else None
        if isinstance(word, str) and _TOKEN.fullmatch(word):
            yield (*path, name), word
        yield from _asks(member, (*path, name))


def requests_in(value: object) -> set[rules.Key]:
    """The ids of the requests in a decoded message or batch."""
    found = set()
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, dict) and isinstance(part.get("method"), str):
            key = rules.key_of(part.get("id"))
            if key is not None:
                found.add(key)
    return found


# --- what comes back --------------------------------------------------------------------------------------------------


class Event(NamedTuple):
    """One event of a stream. Any part may be missing."""

    data: bytes
    id: str | None
    retry: int | None  # milliseconds


def sse_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a stream, without their ends, which are LF, CR or CRLF."""
    parts: list[bytes] = []
    after_cr = False
    for chunk in chunks:
        text = chunk[1:] if after_cr and chunk[:1] == b"\n" else chunk
        if chunk:
            after_cr = chunk[-1:] == b"\r"
        *whole, rest = re.split(rb"\r\n|\r|\n", text) if b"\r" in text else text.split(b"\n")
        for line in whole:
            yield b"".join((*parts, line))
            parts = []
        if rest:
            parts.append(rest)


def events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """The events of a stream. One that was cut off before its blank line is dropped, as the standard says."""
    data: list[bytes] = []
    id: str | None = None
    retry: int | None = None
    kind = b"message"
    for line in sse_lines(chunks):
        if not line:
            if kind == b"message" and (data or id is not None or retry is not None):
                yield Event(b"\n".join(data), id, retry)
            data, id, retry, kind = [], None, None, b"message"
            continue
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"id" and b"\0" not in value:
            id = value.decode("utf-8", "replace")
        elif name == b"event":
            kind = value or b"message"
        elif name == b"retry" and value.isdigit():
            retry = int(value)


def one_line(data: bytes) -> bytes:
    """A message as one line. Line ends stand only between the parts of JSON, never inside a string of it."""
    text = data.strip()
    if b"\n" in text or b"\r" in text:
        text = text.replace(b"\r", b" ").replace(b"\n", b" ")
    return text + b"\n"


def answered(line: bytes) -> set[rules.Key] | None:
    """The ids a message answers, none for a request or notification; None when it is no JSON message at all."""
    key = rules.reply_id(line)
    if key is not None:
        return {key}
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    found = set()
    for part in value if isinstance(value, list) else [value]:
        if not isinstance(part, dict):
            return None
        key = rules.key_of(part.get("id")) if "method" not in part else None
        if key is not None:
            found.add(key)
    return found
