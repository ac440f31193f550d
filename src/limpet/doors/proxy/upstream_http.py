"""A server at an address, for `limpet wrap --url` and `limpet gateway`: MCP's streamable HTTP as lines.

Each message is one POST. One thread sends them in order; another thread per request reads the answer, which may take
long and may follow other messages. Messages that the server sends on its own come over a GET that stays open. A request
that cannot be answered gets an error.

The client is that of the standard library: it needs no dependency, and starts six times faster than the others.
"""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from queue import SimpleQueue
from typing import Any

from limpet import __version__
from limpet.doors.proxy import bounds, rewrite
from limpet.doors.proxy import http_rules as http
from limpet.doors.proxy.upstream import (
    UPSTREAM_ENDED,
    End,
    Events,
    Pipe,
    Work,
    complain,
    queued,
    say,
    take_signals,
    until_client_leaves,
)
from limpet.protocol.jsonrpc import RpcError, encode, error
from limpet.record import NamedTuple

CONNECT_SECONDS = 20.0  # until a server accepts the connection; an answer may take any time
NOTICE_SECONDS = 10.0  # until a server accepts a notification; the next message waits for that
LEAVE_SECONDS = 2.0  # to end the session; clients allow two seconds and then send SIGTERM
TAIL_SECONDS = 0.5  # to read a stream to its end after the answer, so that the connection can be reused
RETRY_SECONDS = 1.0  # before a stream is resumed, unless the server names a time
RETRY_MOST_SECONDS = 30.0
RESUME_TRIES = 4  # consecutive failures before a stream is given up
READ_BYTES = 1 << 18
SHOWN_CHARS = 300  # of a body that is not an answer, in the error
NEW_SESSION_ID = "limpet-again"  # of the `initialize` that is sent again after the server lost the session
BROKEN = (OSError, HTTPException, ValueError, AttributeError)  # the last two: a connection closed under its reader


class Connection(NamedTuple):
    """A connection and its socket, which http.client releases while the last answer is still being read."""

    http: HTTPConnection
    socket: socket.socket

    def request(self, verb: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> None:
        self.http.request(verb, path, body, dict(headers))
        # Many servers send the head and the body of an answer separately and wait for the acknowledgement of the head
        # in between, which Linux delays for 40 ms.
        with suppress(OSError, AttributeError):
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def usable(self) -> bool:
        """Whether it can be reused. If an idle connection is readable, the server has closed it."""
        return self.http.sock is not None and not select.select([self.socket], [], [], 0)[0]

    def set_timeout(self, seconds: float | None) -> None:
        with suppress(OSError):
            self.socket.settimeout(seconds)

    def drop(self) -> None:
        with suppress(OSError):
            # This wakes a thread that reads from it; closing alone would not.
            self.socket.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            self.http.close()


class Post:
    """One POST: its requests that are not answered yet, and its connection."""

    def __init__(self, line: bytes, message: object) -> None:
        self.line = line
        self.message: Mapping[str, Any] = message if isinstance(message, dict) else {}
        self.ids = http.requests_in(message)
        self.asks = bool(self.ids)
        self.modern = http.modern_revision(self.message) is not None
        self.tries = 0
        self.session: str | None = None  # the one it was sent in
        self.connection: Connection | None = None
        self.cancelled = False

    @property
    def method(self) -> object:
        return self.message.get("method")


class HttpLink:
    """A server at an address."""

    def __init__(
        self, place: http.ServerAddress, headers: Mapping[str, str], name: str, events: Events | None = None
    ) -> None:
        self._place = place
        self._headers = {"User-Agent": f"limpet/{__version__}", **headers}
        self._name = name
        self._events = events
        self._signals = [] if events is None else take_signals(events)
        self._to_send: SimpleQueue[bytes | None] = SimpleQueue()
        self._received: SimpleQueue[bytes | None] = SimpleQueue()
        self._session: str | None = None
        self._revision: str | None = None  # agreed by a handshake
        self._hello: bytes | None = None  # the client's `initialize`, to repeat when the server lost the session
        self._mirrored: dict[str, http.Mirror] = {}
        self._posts: dict[rewrite.Key, Post] = {}
        self._idle: list[Connection] = []
        self._stream: Connection | None = None
        self._handshake = threading.Lock()
        self._listening = self._closed = False
        threading.Thread(target=self._send_all, daemon=True).start()

    # --- as a link ----------------------------------------------------------------------------------------------------

    def owner(self, tool: str) -> tuple[str, str]:
        return self._name, tool

    def write(self, line: bytes) -> None:
        self._to_send.put(line)

    def lines(self) -> Iterator[bytes]:
        return queued(self._received)

    def close(self) -> bool:
        return True

    def wait(self, work: Work, to_client: Pipe) -> End:
        if self._events is None:
            raise RuntimeError("a link without events cannot wait")
        code = until_client_leaves(self._events, self._signals, work, to_client)
        self.leave()
        return End(code, f"{self._place.shown} was left before it answered. Start again, then repeat the call.")

    def leave(self) -> None:
        """End the session at the server, and close everything."""
        if self._closed:
            return
        self._closed = True
        self._to_send.put(None)
        if self._session is not None:
            with suppress(*BROKEN):
                connection = self._connected(LEAVE_SECONDS)
                connection.request("DELETE", self._place.path, self._all_headers({}))
                connection.http.getresponse().read()
                connection.drop()
        for connection_ in (*(post.connection for post in self._posts.values()), *self._idle, self._stream):
            _drop(connection_)
        self._received.put(None)

    # --- sending ------------------------------------------------------------------------------------------------------

    def _send_all(self) -> None:
        for line in queued(self._to_send):
            if line.isspace():
                continue
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None  # the server reports what is wrong with it
            post = Post(line, message)
            try:
                if not self._cancels(post):
                    self._send(post)
            except Exception as problem:
                complain(problem, "A message was not sent.")
                self._give_up(post, "Limpet failed inside")

    def _cancels(self, post: Post) -> bool:
        """From 2026-07-28 on, a request over HTTP is cancelled by closing its stream, without a message."""
        if post.method != "notifications/cancelled":
            return False
        params = post.message.get("params")
        key = rewrite.key_of(params.get("requestId")) if isinstance(params, dict) else None
        cancelled = None if key is None else self._posts.get(key)
        if cancelled is None:
            return self._revision is None
        if cancelled.modern:
            cancelled.cancelled = True
            _drop(cancelled.connection)
        return cancelled.modern

    def _send(self, post: Post) -> None:
        post.tries += 1
        post.session = self._session
        if post.method == "initialize":
            self._session = self._revision = None
            self._hello = post.line
        try:
            connection = post.connection = self._connection()
            if not post.ids:
                connection.set_timeout(NOTICE_SECONDS)
            for key in post.ids:
                self._posts[key] = post
            headers = {"Content-Type": "application/json", **http.message_headers(post.message, self._mirrored)}
            connection.request("POST", self._place.path, self._all_headers(headers), post.line.strip())
        except BROKEN as problem:
            _drop(post.connection)
            self._give_up(post, f"it cannot be reached ({_why(problem)})")
            return
        if post.ids:
            threading.Thread(target=self._receive, args=(connection, post), daemon=True).start()
        else:
            self._receive(connection, post)
        if post.method == "notifications/initialized":
            self._listen()

    def _all_headers(self, more: Mapping[str, str]) -> dict[str, str]:
        headers = {**self._headers, "Accept": "application/json, text/event-stream"}
        if self._session is not None:
            headers["Mcp-Session-Id"] = self._session
        if self._revision is not None and self._revision >= http.VERSION_HEADER_SINCE:
            headers["MCP-Protocol-Version"] = self._revision
        return {**headers, **more}

    def _connection(self) -> Connection:
        """An idle connection that is still open, or a new one."""
        while self._idle:
            with suppress(IndexError):
                connection = self._idle.pop()
                if connection.usable():
                    return connection
                connection.drop()
        connection = self._connected(CONNECT_SECONDS)
        connection.set_timeout(None)
        return connection

    def _connected(self, seconds: float) -> Connection:
        place = self._place
        if place.secure:
            from http.client import HTTPSConnection  # late: encryption takes a while to load
            from ssl import create_default_context

            connection: HTTPConnection = HTTPSConnection(
                place.host, place.port, timeout=seconds, context=create_default_context()
            )
        else:
            connection = HTTPConnection(place.host, place.port, timeout=seconds)
        connection.connect()
        raw: socket.socket = connection.sock
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return Connection(connection, raw)

    # --- receiving ----------------------------------------------------------------------------------------------------

    def _receive(self, connection: Connection, post: Post) -> None:
        why = "the connection ended before the answer came"
        again = reusable = False
        try:
            response = connection.http.getresponse()
            why, again = self._take(response, connection, post)
            reusable = response.isclosed() and not response.will_close
        except http.TooLong as problem:
            why = str(problem)
        except BROKEN as problem:
            why = f"the connection broke before the answer came ({_why(problem)})"
        except Exception as problem:
            complain(problem, "An answer was lost.")
        if post.connection is not connection:
            _drop(post.connection)
        if reusable and connection.http.sock is not None and not self._closed:
            connection.set_timeout(None)
            self._idle.append(connection)
        else:
            _drop(connection)
        if again:
            self._send(post)
        else:
            self._give_up(post, why)

    def _take(self, response: HTTPResponse, connection: Connection, post: Post) -> tuple[str, bool]:
        """Pass on the messages of a response. Why a request may be unanswered, and whether to send it again."""
        kind = response.headers.get_content_type()
        if response.status == 200 and kind == "text/event-stream":
            self._take_session(response, post)
            return self._take_stream(response, connection, post), False
        body = response.read(bounds.MESSAGE_MAX_BYTES + 1)
        if len(body) > bounds.MESSAGE_MAX_BYTES:
            raise http.TooLong
        if response.length:
            raise IncompleteRead(body, response.length)
        if response.status == 200:
            self._take_session(response, post)
            if body.strip():
                self._hear(body, post)
            return f"its answer has no reply in it ({kind}): {_shown(body)}" if post.asks else "", False
        if response.status in (202, 204):
            return "it took the request and will not answer it" if post.asks else "", False
        return self._take_refusal(response, body, post)

    def _take_refusal(self, response: HTTPResponse, body: bytes, post: Post) -> tuple[str, bool]:
        if post.tries == 1:
            if response.status in (307, 308):
                target = http.redirected(self._place, response.headers.get("Location", ""))
                if target is not None:
                    self._place = target
                    return "", True
            # The protocol says 404 for a session that is gone. Several servers say 400 after a restart.
            if response.status in (400, 404) and post.session is not None and post.method != "initialize":
                return "its session is gone and could not be begun anew", self._renew_session(post.session)
        if self._hear_error(body, post):
            return "", False
        hint = " Give it credentials with --header-env." if response.status in (401, 403) else ""
        where = f" It points to {response.headers.get('Location', '')[:200]}." if response.status // 100 == 3 else ""
        return f"it answered HTTP {response.status} {response.reason}: {_shown(body)}{hint}{where}", False

    def _take_session(self, response: HTTPResponse, post: Post) -> None:
        if post.method == "initialize":
            self._session = response.headers.get("Mcp-Session-Id")

    def _take_stream(self, response: HTTPResponse, connection: Connection, post: Post) -> str:
        """Read a stream to its end. If it breaks off before the answer, it is resumed if the server can do that."""
        last: str | None = None
        retry = RETRY_SECONDS
        tries = 0
        while True:
            received = False
            try:
                for event in http.events(_chunks(response)):
                    received = True
                    last, retry = event.id or last, _seconds(event.retry, retry)
                    if event.data:
                        self._hear(event.data, post)
                    if not post.ids:
                        connection.set_timeout(TAIL_SECONDS)
            except BROKEN:
                pass
            tries = 0 if received else tries + 1
            if not post.ids or last is None or post.modern or self._closed or tries > RESUME_TRIES:
                return "the stream ended before the answer came"
            time.sleep(retry)
            with suppress(*BROKEN):
                _drop(connection)
                connection = post.connection = self._connection()
                connection.request("GET", self._place.path, self._all_headers({"Last-Event-ID": last}))
                response = connection.http.getresponse()
                if response.status != 200:
                    _drop(connection)
                    return f"the stream broke off and could not be taken up again (HTTP {response.status})"

    def _hear(self, data: bytes, post: Post | None) -> None:
        line = http.one_line(data)
        answers = http.answered(line)
        if answers is None:
            say(f"{self._place.shown} sent something that is no message: {_shown(data)}")
            return
        if post is not None and answers:
            if post.method == "initialize":
                self._agree(line)
            if post.modern and b'"x-mcp-header"' in line:
                self._mirrored |= http.mirrored_arguments(json.loads(line))
            if answers <= {NEW_SESSION_ID} and NEW_SESSION_ID in post.ids:
                post.ids.clear()
                return
            post.ids -= answers
            for key in answers:
                self._posts.pop(key, None)
        self._received.put(line)

    def _agree(self, line: bytes) -> None:
        result = json.loads(line).get("result")
        agreed = result.get("protocolVersion") if isinstance(result, dict) else None
        self._revision = agreed if isinstance(agreed, str) and agreed.isprintable() and agreed.isascii() else None

    def _hear_error(self, body: bytes, post: Post) -> bool:
        """Pass on the JSON-RPC error in the body of an HTTP error."""
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return False
        if not isinstance(value, dict) or not isinstance(value.get("error"), dict):
            return False
        for key in list(post.ids):
            self._hear(body if value.get("id") == key else encode({**value, "id": key}), post)
        return True

    def _give_up(self, post: Post, why: str) -> None:
        """Answer requests with an error; for a notification, report it on standard error."""
        if self._closed or post.cancelled or not why:
            return
        message = f"The server at {self._place.shown} did not answer: {why.rstrip('.')}."
        for key in post.ids:
            self._posts.pop(key, None)
            if key != NEW_SESSION_ID:
                self._received.put(encode(error(RpcError(UPSTREAM_ENDED, message), key)) + b"\n")
        if not post.asks:
            say(f"{self._place.shown} did not take {post.method or 'a message'}: {why}")

    # --- sessions and the stream of the server ------------------------------------------------------------------------

    def _renew_session(self, gone: str) -> bool:
        """Initialise again after the server lost the session, because it was restarted or waited too long."""
        with self._handshake:
            if self._session not in (gone, None):
                return True  # another thread has done it meanwhile
            if self._hello is None:
                return False
            hello = {**json.loads(self._hello), "id": NEW_SESSION_ID}
            post = Post(encode(hello), hello)
            self._session = self._revision = None
            with suppress(*BROKEN):
                post.connection = self._connection()
                headers = self._all_headers({"Content-Type": "application/json"})
                post.connection.request("POST", self._place.path, headers, post.line)
                self._receive(post.connection, post)
            if post.ids:
                return False
            notice = encode({"jsonrpc": "2.0", "method": "notifications/initialized"})
            self._send(Post(notice, json.loads(notice)))
            return True

    def _listen(self) -> None:
        """Open the stream for the server's own messages. From 2026-07-28 on, a request of the client does that."""
        if not self._listening and not self._closed:
            self._listening = True
            threading.Thread(target=self._listen_on, daemon=True).start()

    def _listen_on(self) -> None:
        last: str | None = None
        retry, pause = RETRY_SECONDS, RETRY_SECONDS
        while not self._closed:
            start, received = time.monotonic(), False
            try:
                self._stream = connection = self._connection()
                more = {"Accept": "text/event-stream", **({} if last is None else {"Last-Event-ID": last})}
                connection.request("GET", self._place.path, self._all_headers(more))
                response = connection.http.getresponse()
                if response.status != 200 or response.headers.get_content_type() != "text/event-stream":
                    _drop(connection)
                    break  # it offers no such stream
                for event in http.events(_chunks(response)):
                    received = True
                    last, retry = event.id or last, _seconds(event.retry, retry)
                    if event.data:
                        self._hear(event.data, None)
            except http.TooLong as problem:
                say(f"{self._place.shown}: {problem}")
            except BROKEN:
                pass
            _drop(self._stream)
            # The pause grows for a stream that ends at once or cannot be opened.
            useful = received or time.monotonic() > start + RETRY_MOST_SECONDS
            pause = retry if useful else min(pause * 2, RETRY_MOST_SECONDS)
            time.sleep(pause)
        self._listening = False


def _chunks(response: HTTPResponse) -> Iterator[bytes]:
    while data := response.read1(READ_BYTES):
        yield data


def _seconds(milliseconds: int | None, otherwise: float) -> float:
    return otherwise if milliseconds is None else min(milliseconds / 1000, RETRY_MOST_SECONDS)


def _drop(connection: Connection | None) -> None:
    if connection is not None:
        connection.drop()


def _why(problem: Exception) -> str:
    return str(getattr(problem, "strerror", None) or problem) or type(problem).__name__


def _shown(body: bytes) -> str:
    return " ".join(body[: SHOWN_CHARS * 2].decode("utf-8", "replace").split())[:SHOWN_CHARS] or "(nothing)"
