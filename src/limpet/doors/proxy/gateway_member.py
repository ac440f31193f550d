"""One server behind `limpet gateway`: started, greeted, listed, and started again when it has ended.

Nothing in here waits. Everything that can take long is a thread of the link; what comes of it is handed on under the
gateway's lock.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Protocol

from limpet.doors.proxy import rewrite as rules
from limpet.doors.proxy import upstream
from limpet.doors.proxy.gateway_config import Command, Spec
from limpet.doors.proxy.gateway_rules import Kind
from limpet.doors.proxy.upstream import Pipe, queued, say
from limpet.protocol.jsonrpc import Json, encode

LEAVE_SECONDS = 2.0  # what a server has to end by itself, and then after SIGTERM
AGAIN_MOST_SECONDS = 60.0  # between two attempts to start a server that never came up
PAGES_MOST = 100  # of one list: a server that has more is taken to go round in circles
OURS = f"limpet-{os.urandom(4).hex()}-"  # begins the ids of our own requests, and nobody else's

Then = Callable[[Json | None], None]  # the whole reply, or None when there will be none


class Server(Protocol):
    """What a member needs of a server: a process here, or an address (wrap_http.Http)."""

    def write(self, line: bytes) -> None: ...
    def lines(self) -> Iterator[bytes]: ...
    def leave(self) -> None: ...


class Process:
    """A server that is started. A thread of its own writes to it, because it may not read."""

    def __init__(self, spec: Command) -> None:
        self._process = subprocess.Popen(
            spec.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=spec.env, cwd=spec.folder, bufsize=0
        )
        self._to_send: SimpleQueue[bytes | None] = SimpleQueue()
        threading.Thread(target=self._send_all, daemon=True).start()

    def write(self, line: bytes) -> None:
        self._to_send.put(line)

    def lines(self) -> Iterator[bytes]:
        return upstream.lines(self._process.stdout.fileno()) if self._process.stdout else iter(())

    def _send_all(self) -> None:
        if self._process.stdin is None:
            return
        pipe = Pipe(self._process.stdin.fileno(), lambda: None)
        for line in queued(self._to_send):
            pipe.write(line)
        with suppress(OSError):
            self._process.stdin.close()

    def how(self) -> str:
        """How it ended, once its output has."""
        try:
            code = self._process.wait(LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return "closed its output"
        finally:
            if self._process.stdout is not None:
                self._process.stdout.close()
        return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"

    def leave(self) -> None:
        self._to_send.put(None)
        for end in (None, self._process.terminate, self._process.kill):
            if end is not None:
                end()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(LEAVE_SECONDS)
                return


class Hub(Protocol):
    """What a member needs of the gateway."""

    lock: threading.RLock

    def from_server(self, member: Member, line: bytes) -> None:
        """A request or a notification of the server."""

    def to_client(self, line: bytes) -> None: ...
    def unanswered(self, key: rules.Key, method: str, why: str) -> None:
        """A request of the client that gets no answer any more."""

    def arrived(self, member: Member) -> None:
        """It has been greeted and can be asked."""

    def gone(self, member: Member) -> None:
        """It could not be reached, or has ended."""


class Member:
    """One server. All methods are called under the gateway's lock."""

    def __init__(self, spec: Spec, hub: Hub, patience: float) -> None:
        self.name = spec.name
        self.ready = self.starting = False
        self.why = "it has not been started"
        self.result: Json = {}  # of initialize
        self.due = 0.0  # until then its start is waited for
        self.known: dict[str, list[Json]] = {}  # its lists by method, as last heard
        self._spec = spec
        self._hub = hub
        self._patience = patience
        self._server: Server | None = None
        self._waiting: dict[rules.Key, Then] = {}  # our own requests
        self._forwarded: dict[rules.Key, str] = {}  # those of the client, with their methods
        self._held: list[tuple[rules.Key, str, bytes]] = []  # … that wait for the start
        self._count = self._failures = 0
        self._again_at = 0.0

    # --- life ---------------------------------------------------------------------------------------------------------

    def launch(self) -> None:
        """Start the process, or get ready to connect."""
        try:
            if isinstance(self._spec, Command):
                self._server = Process(self._spec)
            else:
                from limpet.doors.proxy.upstream_http import Http  # late: only where there is an address

                self._server = Http(self._spec.place, self._spec.headers, self.name)
        except OSError as problem:
            self._failed(f"it cannot be started: {problem.strerror}")
            return
        self.due = time.monotonic() + self._patience
        threading.Thread(target=self._read, args=(self._server,), daemon=True).start()

    def greet(self, hello: Json) -> None:
        """Start it if it is not there and it is time to try, and shake hands."""
        if self.ready or self.starting or (self._server is None and time.monotonic() < self._again_at):
            return
        if self._server is None:
            self.launch()
        if self._server is not None:
            self.starting = True
            self.ask("initialize", hello, self._greeted)

    def _greeted(self, reply: Json | None) -> None:
        result = None if reply is None else reply.get("result")
        if reply is None:
            return  # it has ended, which is looked after elsewhere
        if not isinstance(result, dict):
            problem = reply.get("error")
            self._failed(str(problem.get("message") if isinstance(problem, dict) else "it refused to begin"))
            return
        self.starting, self.ready, self.result, self._failures = False, True, result, 0
        self.write(encode({"jsonrpc": "2.0", "method": "notifications/initialized"}) + b"\n")
        for key, method, line in self._held:
            self.forward(key, method, line)
        self._held = []
        self._hub.arrived(self)

    def _failed(self, why: str) -> None:
        was_ready, server = self.ready, self._server
        self.ready = self.starting = False
        if why != self.why:
            say(f"{self.name}: {why}", "gateway")
        self._server, self.why, self.known = None, why, {}
        self._failures += not was_ready
        # One that worked is started again when it is next needed; one that never came up, ever more seldom.
        wait = 0.0 if was_ready else min(2.0 ** (self._failures - 1), AGAIN_MOST_SECONDS)
        self._again_at = time.monotonic() + wait
        if server is not None:
            threading.Thread(target=server.leave, daemon=True).start()
        for key, method in [*self._forwarded.items(), *((key, method) for key, method, _ in self._held)]:
            self._hub.unanswered(key, method, f"the server {self.name} is not there: {why}")
        waiting, self._waiting, self._forwarded, self._held = self._waiting, {}, {}, []
        for then in waiting.values():
            then(None)
        self._hub.gone(self)

    def can(self, capability: str) -> bool:
        found = self.result.get("capabilities")
        return isinstance(found, dict) and capability in found

    def leave(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.leave()

    # --- asking -------------------------------------------------------------------------------------------------------

    def write(self, line: bytes) -> None:
        if self._server is not None:
            self._server.write(line)

    def ask(self, method: str, params: Json, then: Then) -> None:
        self._count += 1
        key = f"{OURS}{self._count}"
        self._waiting[key] = then
        self.write(encode({"jsonrpc": "2.0", "id": key, "method": method, "params": params}) + b"\n")

    def forward(self, key: rules.Key, method: str, line: bytes) -> None:
        """Hand on a request of the client, once the server is there."""
        if self.ready:
            self._forwarded[key] = method
            self.write(line)
        elif self.starting:
            self._held.append((key, method, line))
        else:
            self._hub.unanswered(key, method, f"the server {self.name} is not there: {self.why}")

    def give_up_held(self) -> None:
        """Answer what waits for a start that takes too long. The server may still come."""
        held, self._held = self._held, []
        for key, method, _ in held:
            self._hub.unanswered(
                key, method, f"the server {self.name} has not started within {self._patience:g} seconds"
            )

    def cancel(self, key: rules.Key, line: bytes) -> bool:
        """Hand on that a request is cancelled; False when it is not with this server."""
        waits = len(self._held)
        self._held = [one for one in self._held if one[0] != key]
        if key in self._forwarded:
            self.write(line)
            return True
        return len(self._held) < waits

    def collect(self, kind: Kind, then: Callable[[list[Json] | None], None]) -> None:
        """A whole list, page by page; None when the server did not give it."""
        if not self.can(kind.capability):
            then([])
            return
        found: list[Json] = []

        def page(reply: Json | None, left: int = PAGES_MOST) -> None:
            result = None if reply is None else reply.get("result")
            if not isinstance(result, dict) or not isinstance(result.get(kind.field), list):
                # One that says it has tools may still have no templates of resources.
                problem = {} if reply is None else reply.get("error")
                then([] if isinstance(problem, dict) and problem.get("code") == -32601 else None)
                return
            found.extend(item for item in result[kind.field] if isinstance(item, dict))
            cursor = result.get("nextCursor")
            if isinstance(cursor, str) and left:
                self.ask(kind.method, {"cursor": cursor}, lambda more: page(more, left - 1))
                return
            self.known[kind.method] = found
            then(found)

        self.ask(kind.method, {}, page)

    # --- hearing ------------------------------------------------------------------------------------------------------

    def _read(self, server: Server) -> None:
        for line in server.lines():
            with self._hub.lock:
                if server is self._server:
                    try:
                        self._take(line)
                    except Exception as problem:
                        say(
                            f"{self.name} said something that was dropped ({type(problem).__name__}: {problem})",
                            "gateway",
                        )
        how = server.how() if isinstance(server, Process) else "was left"
        with self._hub.lock:
            if server is self._server:
                self._failed(f"it {how}")

    def _take(self, line: bytes) -> None:
        key = rules.reply_id(line)
        if key is not None and key in self._forwarded:
            del self._forwarded[key]
            self._hub.to_client(line)
            return
        value: Any = json.loads(line)
        if isinstance(value, list):
            for part in value:
                self._take(encode(part) + b"\n")
            return
        if not isinstance(value, dict):
            raise TypeError("no message")
        if "method" in value:
            self._hub.from_server(self, line)
            return
        key = rules.key_of(value.get("id"))
        if key in self._waiting:
            self._waiting.pop(key)(value)
        elif key in self._forwarded:
            del self._forwarded[key]
            self._hub.to_client(line)
        else:
            say(f"{self.name} answered something that nobody asked it", "gateway")
