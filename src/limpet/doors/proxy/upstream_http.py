"""The upstream of `limpet wrap --url` and `limpet gateway` at an address: MCP's streamable HTTP as lines.

Each message is one POST. One thread sends them in their order; an answer is read by a thread of its own, because it
may take long and bring other messages before it. What the server says by itself comes over a GET that stays open.
Nothing of this is seen outside: lines go in, lines come out, and a request that can get no answer gets an error.

The standard library's client is used: it is there, and starts six times faster than the others.
"""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from queue import SimpleQueue
from typing import Any, NamedTuple

from limpet import __version__
from limpet.doors.proxy import http_rules as http
from limpet.doors.proxy import rewrite as rules
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

CONNECT_SECONDS = 20.0  # until a server has taken the connection; an answer may take as long as it likes
NOTICE_SECONDS = 10.0  # until a server has taken what needs no answer; the next message waits for that
LEAVE_SECONDS = 2.0  # for saying goodbye; clients grant two seconds and then send us SIGTERM
TAIL_SECONDS = 0.5  # a stream whose answer has come is read on for so long, so that the connection can be used again
RETRY_SECONDS = 1.0  # before a stream is taken up again, unless the server names a time
RETRY_MOST_SECONDS = 30.0
RESUME_TRIES = 4  # failures in a row before a stream is given up
READ_BYTES = 1 << 18
SHOWN_CHARS = 300  # of a body that is no answer, in the error that stands for it
AGAIN_ID = "limpet-again"  # of the initialize that we send ourselves when a session is gone
BROKEN = (OSError, HTTPException, ValueError, AttributeError)  # the last two: a connection closed under its reader


class Connection(NamedTuple):
    """A connection and its socket, which http.client lets go of while the last answer is still being read."""

    http: HTTPConnection
    socket: socket.socket

    def request(self, verb: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> None:
        self.http.request(verb, path, body, dict(headers))
        # Many servers send the head and the body of an answer apart and wait in between until we have said that the
        # head is here, which Linux puts off for 40 ms.
        with suppress(OSError, AttributeError):
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def usable(self) -> bool:
        """Whether it can be used again. Anything to read while nobody asks means that the server has closed it."""
        return self.http.sock is not None and not select.select([self.socket], [], [], 0)[0]

    def patience(self, seconds: float | None) -> None:
        with suppress(OSError):
            self.socket.settimeout(seconds)

    def drop(self) -> None:
        with suppress(OSError):
            # A thread that reads from it wakes up; closing alone would leave it waiting.
            self.socket.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            self.http.close()


class Flight:
    """One POST: the requests in it that are not answered yet, and the connection it is on."""

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


class Http:
    """A server at an address."""

    def __init__(self, place: http.Place, headers: Mapping[str, str], name: str, events: Events | None = None) -> None:
        self._place = place
        self._headers = {"User-Agent": f"limpet/{__version__}", **headers}
        self._name = name
        self._events = events
        self._signals = [] if events is None else take_signals(events)
        self._to_send: SimpleQueue[bytes | None] = SimpleQueue()
        self._heard: SimpleQueue[bytes | None] = SimpleQueue()
        self._session: str | None = None
        self._revision: str | None = None  # agreed by a handshake
        self._hello: bytes | None = None  # the client's initialize, to begin anew when the server forgot us
        self._mirrored: dict[str, http.Mirror] = {}
        self._flights: dict[rules.Key, Flight] = {}
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
        return queued(self._heard)

    def close(self) -> bool:
        return True

    def wait(self, work: Work, to_client: Pipe) -> End:
        if self._events is None:
            raise RuntimeError("a link without events has nobody to wait for")
        code = until_client_leaves(self._events, self._signals, work, to_client)
        self.leave()
        return End(code, f"{self._place.shown} was left before it answered. Start again, then repeat the call.")

    def leave(self) -> None:
        """Tell the server that the session is over, and close everything."""
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
        for open_one in (*(flight.connection for flight in self._flights.values()), *self._idle, self._stream):
            _drop(open_one)
        self._heard.put(None)

    # --- sending ------------------------------------------------------------------------------------------------------

    def _send_all(self) -> None:
        for line in queued(self._to_send):
            if line.isspace():
                continue
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None  # the server shall say what is wrong with it
            flight = Flight(line, message)
            try:
                if not self._cancels(flight):
                    self._send(flight)
            except Exception as problem:
                complain(problem, "A message was not sent.")
                self._give_up(flight, "Limpet failed inside")

    def _cancels(self, flight: Flight) -> bool:
        """From 2026-07-28 on a request over HTTP is cancelled by closing its stream, and no message says so."""
        if flight.method != "notifications/cancelled":
            return False
        params = flight.message.get("params")
        key = rules.key_of(params.get("requestId")) if isinstance(params, dict) else None
        other = None if key is None else self._flights.get(key)
        if other is None:
            return self._revision is None
        if other.modern:
            other.cancelled = True
            _drop(other.connection)
        return other.modern

    def _send(self, flight: Flight) -> None:
        flight.tries += 1
        flight.session = self._session
        if flight.method == "initialize":
            self._session = self._revision = None
            self._hello = flight.line
        try:
            connection = flight.connection = self._connection()
            if not flight.ids:
                connection.patience(NOTICE_SECONDS)
            for key in flight.ids:
                self._flights[key] = flight
            headers = {"Content-Type": "application/json", **http.message_headers(flight.message, self._mirrored)}
            connection.request("POST", self._place.path, self._all_headers(headers), flight.line.strip())
        except BROKEN as problem:
            _drop(flight.connection)
            self._give_up(flight, f"it cannot be reached ({_why(problem)})")
            return
        if flight.ids:
            threading.Thread(target=self._receive, args=(connection, flight), daemon=True).start()
        else:
            self._receive(connection, flight)
        if flight.method == "notifications/initialized":
            self._listen()

    def _all_headers(self, more: Mapping[str, str]) -> dict[str, str]:
        found = {**self._headers, "Accept": "application/json, text/event-stream"}
        if self._session is not None:
            found["Mcp-Session-Id"] = self._session
        if self._revision is not None and self._revision >= http.VERSION_HEADER_SINCE:
            found["MCP-Protocol-Version"] = self._revision
        return {**found, **more}

    def _connection(self) -> Connection:
        """One that was used before and is still open, or a new one."""
        while self._idle:
            with suppress(IndexError):
                connection = self._idle.pop()
                if connection.usable():
                    return connection
                connection.drop()
        connection = self._connected(CONNECT_SECONDS)
        connection.patience(None)
        return connection

    def _connected(self, seconds: float) -> Connection:
        place = self._place
        if place.secure:
            from http.client import HTTPSConnection  # late: encryption takes a while to load
            from ssl import create_default_context

            made: HTTPConnection = HTTPSConnection(
                place.host, place.port, timeout=seconds, context=create_default_context()
            )
        else:
            made = HTTPConnection(place.host, place.port, timeout=seconds)
        made.connect()
        raw: socket.socket = made.sock
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return Connection(made, raw)

    # --- receiving ----------------------------------------------------------------------------------------------------

    def _receive(self, connection: Connection, flight: Flight) -> None:
        why = "the connection ended before the answer came"
        again = reusable = False
        try:
            response = connection.http.getresponse()
            why, again = self._take(response, connection, flight)
            reusable = response.isclosed() and not response.will_close
        except BROKEN as problem:
            why = f"the connection broke before the answer came ({_why(problem)})"
        except Exception as problem:
            complain(problem, "An answer was lost.")
        if flight.connection is not connection:
            _drop(flight.connection)
        if reusable and connection.http.sock is not None and not self._closed:
            connection.patience(None)
            self._idle.append(connection)
        else:
            _drop(connection)
        if again:
            self._send(flight)
        else:
            self._give_up(flight, why)

    def _take(self, response: HTTPResponse, connection: Connection, flight: Flight) -> tuple[str, bool]:
        """Hand on what a response holds. Why a request in it may have got no answer, and whether to send it again."""
        kind = response.headers.get_content_type()
        if response.status == 200 and kind == "text/event-stream":
            self._take_session(response, flight)
            return self._take_stream(response, connection, flight), False
        body = response.read()
        if response.status == 200:
            self._take_session(response, flight)
            if body.strip():
                self._hear(body, flight)
            return f"its answer has no reply in it ({kind}): {_shown(body)}" if flight.asks else "", False
        if response.status in (202, 204):
            return "it took the request and will not answer it" if flight.asks else "", False
        return self._take_refusal(response, body, flight)

    def _take_refusal(self, response: HTTPResponse, body: bytes, flight: Flight) -> tuple[str, bool]:
        if flight.tries == 1:
            if response.status in (307, 308):
                there = http.redirected(self._place, response.headers.get("Location", ""))
                if there is not None:
                    self._place = there
                    return "", True
            if response.status == 404 and flight.session is not None and flight.method != "initialize":
                return "its session is gone and could not be begun anew", self._begin_anew(flight.session)
        if self._hear_error(body, flight):
            return "", False
        hint = " Give it credentials with --header-env." if response.status in (401, 403) else ""
        where = f" It points to {response.headers.get('Location', '')[:200]}." if response.status // 100 == 3 else ""
        return f"it answered HTTP {response.status} {response.reason}: {_shown(body)}{hint}{where}", False

    def _take_session(self, response: HTTPResponse, flight: Flight) -> None:
        if flight.method == "initialize":
            self._session = response.headers.get("Mcp-Session-Id")

    def _take_stream(self, response: HTTPResponse, connection: Connection, flight: Flight) -> str:
        """All of a stream. If it breaks off before the answer, it is taken up again where the server can do that."""
        last: str | None = None
        retry = RETRY_SECONDS
        tries = 0
        while True:
            heard = False
            try:
                for event in http.events(_chunks(response)):
                    heard = True
                    last, retry = event.id or last, _seconds(event.retry, retry)
                    if event.data:
                        self._hear(event.data, flight)
                    if not flight.ids:
                        connection.patience(TAIL_SECONDS)
            except BROKEN:
                pass
            tries = 0 if heard else tries + 1
            if not flight.ids or last is None or flight.modern or self._closed or tries > RESUME_TRIES:
                return "the stream ended before the answer came"
            time.sleep(retry)
            with suppress(*BROKEN):
                _drop(connection)
                connection = flight.connection = self._connection()
                connection.request("GET", self._place.path, self._all_headers({"Last-Event-ID": last}))
                response = connection.http.getresponse()
                if response.status != 200:
                    _drop(connection)
                    return f"the stream broke off and could not be taken up again (HTTP {response.status})"

    def _hear(self, data: bytes, flight: Flight | None) -> None:
        line = http.one_line(data)
        answers = http.answered(line)
        if answers is None:
            say(f"{self._place.shown} sent something that is no message: {_shown(data)}")
            return
        if flight is not None and answers:
            if flight.method == "initialize":
                self._agree(line)
            if flight.modern and b'"x-mcp-header"' in line:
                self._mirrored |= http.mirrored_arguments(json.loads(line))
            if answers <= {AGAIN_ID} and AGAIN_ID in flight.ids:
                flight.ids.clear()
                return
            flight.ids -= answers
            for key in answers:
                self._flights.pop(key, None)
        self._heard.put(line)

    def _agree(self, line: bytes) -> None:
        result = json.loads(line).get("result")
        agreed = result.get("protocolVersion") if isinstance(result, dict) else None
        self._revision = agreed if isinstance(agreed, str) and agreed.isprintable() and agreed.isascii() else None

    def _hear_error(self, body: bytes, flight: Flight) -> bool:
        """Hand on the error in the body of a response that is one itself."""
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return False
        if not isinstance(value, dict) or not isinstance(value.get("error"), dict):
            return False
        for key in list(flight.ids):
            self._hear(body if value.get("id") == key else encode({**value, "id": key}), flight)
        return True

    def _give_up(self, flight: Flight, why: str) -> None:
        """Answer what can get no answer any more; nobody waits for the rest, so it is only said."""
        if self._closed or flight.cancelled or not why:
            return
        told = f"The server at {self._place.shown} did not answer: {why.rstrip('.')}."
        for key in flight.ids:
            self._flights.pop(key, None)
            if key != AGAIN_ID:
                self._heard.put(encode(error(RpcError(UPSTREAM_ENDED, told), key)) + b"\n")
        if not flight.asks:
            say(f"{self._place.shown} did not take {flight.method or 'a message'}: {why}")

    # --- sessions and the stream of the server ------------------------------------------------------------------------

    def _begin_anew(self, gone: str) -> bool:
        """The server forgot the session, because it was started again or waited too long: shake hands once more."""
        with self._handshake:
            if self._session not in (gone, None):
                return True  # somebody else has done it meanwhile
            if self._hello is None:
                return False
            hello = {**json.loads(self._hello), "id": AGAIN_ID}
            flight = Flight(encode(hello), hello)
            self._session = self._revision = None
            with suppress(*BROKEN):
                flight.connection = self._connection()
                headers = self._all_headers({"Content-Type": "application/json"})
                flight.connection.request("POST", self._place.path, headers, flight.line)
                self._receive(flight.connection, flight)
            if flight.ids:
                return False
            notice = encode({"jsonrpc": "2.0", "method": "notifications/initialized"})
            self._send(Flight(notice, json.loads(notice)))
            return True

    def _listen(self) -> None:
        """Open the stream for what the server says by itself. From 2026-07-28 on a request asks for that."""
        if not self._listening and not self._closed:
            self._listening = True
            threading.Thread(target=self._listen_on, daemon=True).start()

    def _listen_on(self) -> None:
        last: str | None = None
        retry, pause = RETRY_SECONDS, RETRY_SECONDS
        while not self._closed:
            begun, heard = time.monotonic(), False
            try:
                self._stream = connection = self._connection()
                more = {"Accept": "text/event-stream", **({} if last is None else {"Last-Event-ID": last})}
                connection.request("GET", self._place.path, self._all_headers(more))
                response = connection.http.getresponse()
                if response.status != 200 or response.headers.get_content_type() != "text/event-stream":
                    _drop(connection)
                    break  # it has no such stream, or not for us
                for event in http.events(_chunks(response)):
                    heard = True
                    last, retry = event.id or last, _seconds(event.retry, retry)
                    if event.data:
                        self._hear(event.data, None)
            except BROKEN:
                pass
            _drop(self._stream)
            # A stream that ends as soon as it is opened, or cannot be opened at all, is tried ever more seldom.
            useful = heard or time.monotonic() > begun + RETRY_MOST_SECONDS
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
