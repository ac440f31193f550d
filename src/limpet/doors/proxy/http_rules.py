"""The client side of MCP's streamable HTTP, as pure functions: addresses, headers and event streams."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from limpet import errors
from limpet.doors.proxy import bounds, rewrite
from limpet.protocol.revisions import VERSION_KEY
from limpet.record import NamedTuple

VERSION_HEADER_SINCE = "2025-06-18"  # earlier revisions have no header for the revision
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}  # the parameter that Mcp-Name repeats
# Headers that Limpet sets. People may add any other.
OWN_HEADERS = frozenset(
    ("accept", "connection", "content-length", "content-type", "host", "last-event-id", "transfer-encoding")
)
OWN_PREFIX = "mcp-"
Mirror = dict[tuple[str, ...], str]  # the path of an argument, and the header that repeats it
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


# --- addresses --------------------------------------------------------------------------------------------------------


class ServerAddress(NamedTuple):
    """The address of a server. `shown` is for messages and has no query, because people put keys there."""

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


def address_of(url: str) -> ServerAddress:
    """The address that a URL names, or BadInput."""
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
    if not url.isascii() or any(character <= " " or character == "\x7f" for character in url):
        raise errors.bad_setting("url", url, "it must be plain ASCII without spaces; write other characters as %XX")
    return ServerAddress(secure, parts.hostname, port or (443 if secure else 80), path)


def redirected(address: ServerAddress, location: str) -> ServerAddress | None:
    """The target of a redirect, if it is on the same server: no other server may get the headers and arguments."""
    try:
        target = address_of(urljoin(f"{address.shown}", location))
    except errors.LimpetError:
        return None
    return target if target[:3] == address[:3] else None


def header(name: str, value: str) -> tuple[str, str]:
    """A header that a person adds, or BadInput. The value may be a secret, so no message shows it."""
    name, value = name.strip(), value.strip()
    if _TOKEN.fullmatch(name) is None:
        raise errors.bad_setting("header", name, "a header is written 'Name: value', and its name is one word")
    if name.lower() in OWN_HEADERS or name.lower().startswith(OWN_PREFIX):
        raise errors.bad_setting("header", name, "this header belongs to the protocol and is set by Limpet")
    if any(ord(character) < 0x20 or ord(character) == 0x7F or ord(character) > 0xFF for character in value):
        raise errors.bad_setting("header", name, "its value must be one line of Latin letters, digits and signs")
    return name, value


# --- headers of a message ---------------------------------------------------------------------------------------------


def modern_revision(message: Mapping[str, Any]) -> str | None:
    """The revision that a message names, as every request does from 2026-07-28 on."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    revision = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    return revision if isinstance(revision, str) and _PLAIN.fullmatch(revision) else None


def message_headers(message: Mapping[str, Any], mirrored: Mapping[str, Mirror]) -> dict[str, str]:
    """The headers that repeat members of a message of 2026-07-28. Earlier revisions have none of these.

    `mirrored` has, per tool, the arguments that are repeated and the names of their headers.
    """
    revision = modern_revision(message)
    method = message.get("method")
    if revision is None or not isinstance(method, str):
        return {}
    params: Mapping[str, Any] = message["params"]
    headers = {"MCP-Protocol-Version": revision, "Mcp-Method": header_value(method)}
    name = params.get(NAMED.get(method, ""))
    if isinstance(name, str):
        headers["Mcp-Name"] = header_value(name)
        for path, word in mirrored.get(name, {}).items() if method == "tools/call" else ():
            value = _at(params.get("arguments"), path)
            if isinstance(value, str | int | float):
                text = str(value).lower() if isinstance(value, bool) else str(value)
                headers[f"Mcp-Param-{word}"] = header_value(text)
    return headers


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def header_value(text: str) -> str:
    """A text as the value of a header: unchanged where that is safe, else in base64 with MCP's prefix."""
    if _PLAIN.fullmatch(text) and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode()}?="


def mirrored_arguments(listed: Any) -> dict[str, Mirror]:
    """Per tool of a decoded reply to tools/list: the arguments whose schema asks for a header."""
    mirrored: dict[str, Mirror] = {}
    result = listed.get("result") if isinstance(listed, dict) else None
    tools = result.get("tools") if isinstance(result, dict) else None
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            headers = dict(_header_names(tool.get("inputSchema"), ()))
            if headers:
                mirrored[tool["name"]] = headers
    return mirrored


def _header_names(schema: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    members = schema.get("properties") if isinstance(schema, dict) else None
    for name, member in members.items() if isinstance(members, dict) else ():
        word = member.get("x-mcp-header") if isinstance(member, dict) else None
        if isinstance(word, str) and _TOKEN.fullmatch(word):
            yield (*path, name), word
        yield from _header_names(member, (*path, name))


def requests_in(value: object) -> set[rewrite.Key]:
    """The ids of the requests in a decoded message or batch."""
    keys = set()
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, dict) and isinstance(part.get("method"), str):
            key = rewrite.key_of(part.get("id"))
            if key is not None:
                keys.add(key)
    return keys


# --- responses --------------------------------------------------------------------------------------------------------


class TooLong(Exception):
    """A message of the server is longer than the limit."""

    def __init__(self) -> None:
        super().__init__(f"its answer is longer than {bounds.MESSAGE_MAX_BYTES:,} bytes, which is the limit")


class StreamEvent(NamedTuple):
    """An event of a stream. Any part may be missing."""

    data: bytes
    id: str | None
    retry: int | None  # milliseconds


def sse_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a stream without their ends, which are LF, CR or CRLF."""
    parts: list[bytes] = []
    size = 0
    after_cr = False
    for chunk in chunks:
        text = chunk[1:] if after_cr and chunk[:1] == b"\n" else chunk
        if chunk:
            after_cr = chunk[-1:] == b"\r"
        *full_lines, rest = re.split(rb"\r\n|\r|\n", text) if b"\r" in text else text.split(b"\n")
        for line in full_lines:
            yield b"".join((*parts, line))
            parts = []
            size = 0
        if rest:
            parts.append(rest)
            size += len(rest)
            if size > bounds.MESSAGE_MAX_BYTES:
                raise TooLong


def events(chunks: Iterable[bytes]) -> Iterator[StreamEvent]:
    """The events of a stream. An event without its blank line was cut off and is dropped, as the standard says."""
    data: list[bytes] = []
    id: str | None = None
    retry: int | None = None
    kind = b"message"
    size = 0
    for line in sse_lines(chunks):
        if not line:
            if kind == b"message" and (data or id is not None or retry is not None):
                yield StreamEvent(b"\n".join(data), id, retry)
            data, id, retry, kind, size = [], None, None, b"message", 0
            continue
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
            size += len(value)
            if size > bounds.MESSAGE_MAX_BYTES:
                raise TooLong
        elif name == b"id" and b"\0" not in value:
            id = value.decode("utf-8", "replace")
        elif name == b"event":
            kind = value or b"message"
        elif name == b"retry" and value.isdigit():
            retry = int(value)


def one_line(data: bytes) -> bytes:
    """A message as one line. A JSON string contains no line ends, so they can become spaces."""
    text = data.strip()
    if b"\n" in text or b"\r" in text:
        text = text.replace(b"\r", b" ").replace(b"\n", b" ")
    return text + b"\n"


def answered(line: bytes) -> set[rewrite.Key] | None:
    """The ids that a message answers, none for a request or notification; None if it is not a JSON message."""
    key = rewrite.reply_id(line)
    if key is not None:
        return {key}
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    keys = set()
    for part in value if isinstance(value, list) else [value]:
        if not isinstance(part, dict):
            return None
        key = rewrite.key_of(part.get("id")) if "method" not in part else None
        if key is not None:
            keys.add(key)
    return keys
