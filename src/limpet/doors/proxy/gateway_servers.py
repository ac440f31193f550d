"""The servers behind `limpet gateway`: read from a file, started, initialised, listed, and restarted after an end.

The file is JSON as clients have it (`mcpServers`), or the same in TOML. A server has a `command` with `args`, or a
`url` with `headers`. A command gets the few variables that every program needs, those of its `env` and those that
`pass_env` names, so that a key for one server does not reach the others. `${NAME}` in a value is that of an environment
variable, so that no secret has to be in the file.

No method of `Member` blocks. A thread of the link does what can take long, and passes the result on under the gateway's
lock.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

from limpet import errors, settings
from limpet.catalogue.late import LateModule
from limpet.doors.proxy import gateway_rules, http_rules, rewrite, upstream
from limpet.doors.proxy.gateway_rules import Kind
from limpet.doors.proxy.upstream import Pipe, queued, say
from limpet.protocol import revisions
from limpet.protocol.jsonrpc import Json, encode
from limpet.record import NamedTuple

if TYPE_CHECKING:
    from limpet.doors.proxy import upstream_http
else:
    upstream_http = LateModule("doors.proxy.upstream_http")  # most servers are processes

SERVERS = ("mcpServers", "servers")
# What every program needs to run, to find its files, and to use the user's language.
PASSED_VARIABLES = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE"),
    *("LC_MESSAGES", "LC_TIME", "LC_NUMERIC", "LC_COLLATE", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
)
# Without `__`, and without `_` at the end, so that the name of a tool shows its server.
NAME = re.compile(r"[A-Za-z0-9](?:[_-]?[A-Za-z0-9])*")
NAME_MAX_CHARS = 40  # clients add a prefix to the names of tools, and models allow 64 to 128 characters in all
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
LEAVE_SECONDS = 2.0  # for a server to end by itself, and then after SIGTERM
RETRY_MOST_SECONDS = 60.0  # between two attempts to start a server that has never started
PROBE_SECONDS = 2.0  # for an answer to `server/discover`: older servers may leave an unknown method unanswered
PAGES_MOST = 100  # of one list: a server that has more is probably repeating itself
HANDSHAKE, DISCOVER = "initialize", "server/discover"  # the ways a server begins, one of each era
ID_PREFIX = f"limpet-{os.urandom(4).hex()}-"  # of the gateway's own requests

OnReply = Callable[[Json | None], None]  # gets the reply, or None if there will be none


# --- the file ---------------------------------------------------------------------------------------------------------


class Command(NamedTuple):
    """A server that is a process."""

    name: str
    argv: tuple[str, ...]
    env: dict[str, str]
    folder: str | None = None


class Address(NamedTuple):
    """A server at an address."""

    name: str
    place: http_rules.ServerAddress
    headers: dict[str, str]


Spec = Command | Address


def load(path: str) -> tuple[Spec, ...]:
    """The servers of a file. Raises BadInput, which names the entry and the problem."""
    value = _read(path)
    tables = next((value[key] for key in SERVERS if key in value), None)
    if not isinstance(tables, dict) or not tables:
        raise _bad(path, "empty", f"it must name servers in a table {SERVERS[0]}")
    specs = [_spec(path, name, entry) for name, entry in tables.items()]
    return tuple(spec for spec in specs if spec is not None)


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o002:
                raise _bad(path, "open to everybody", "only you may be able to write a file that names programs to run")
            data = file.read()
    except OSError as problem:
        raise _bad(path, "unreadable", problem.strerror or "it cannot be read") from None
    try:
        if path.endswith(".toml"):
            return tomllib.loads(data.decode())
        value = json.loads(data, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as problem:
        raise _bad(path, "unreadable", f"it must be JSON, or TOML if its name ends in .toml ({problem})") from None
    return value if isinstance(value, dict) else {}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return value


def _spec(path: str, name: str, entry: Any) -> Spec | None:
    if NAME.fullmatch(name) is None or len(name) > NAME_MAX_CHARS:
        rule = f"letters, digits, single - and _ between them, at most {NAME_MAX_CHARS} characters"
        raise _bad(path, name, f"the name of a server is made of {rule}")
    if not isinstance(entry, dict):
        raise _bad(path, name, "a server is a table with a command or a url")
    if entry.get("disabled") is True or entry.get("enabled") is False:
        return None

    def text(key: str, value: Any) -> str:
        if not isinstance(value, str):
            raise _bad(path, f"{name}.{key}", "it must be text")
        return _filled(value)

    def table(key: str) -> dict[str, str]:
        value = entry.get(key, {})
        if not isinstance(value, dict):
            raise _bad(path, f"{name}.{key}", "it must be a table of texts")
        return {word: text(f"{key}.{word}", item) for word, item in value.items()}

    if isinstance(entry.get("url"), str) and "command" not in entry:
        headers = dict(http_rules.header(*pair) for pair in table("headers").items())
        return Address(name, http_rules.address_of(text("url", entry["url"])), headers)
    if not isinstance(entry.get("command"), str) or not entry["command"] or "url" in entry:
        raise _bad(path, name, "a server has either a command or a url")
    return _command(path, name, entry, text, table)


def _command(
    path: str,
    name: str,
    entry: Mapping[str, Any],
    text: Callable[[str, Any], str],
    table: Callable[[str], dict[str, str]],
) -> Command:
    lists = {key: entry.get(key, []) for key in ("args", "pass_env")}
    for key, value in lists.items():
        if not isinstance(value, list):
            raise _bad(path, f"{name}.{key}", "it must be a list of texts")
    argv = (text("command", entry["command"]), *(text("args", item) for item in lists["args"]))
    passed = settings.environment((*PASSED_VARIABLES, *(text("pass_env", item) for item in lists["pass_env"])))
    folder = text("cwd", entry["cwd"]) if "cwd" in entry else None
    return Command(name, argv, {**passed, **table("env")}, folder)


def _filled(value: str) -> str:
    def variable(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if default is not None and name not in settings.environment((name,)):
            return str(default)
        return settings.variable(name)

    return _VARIABLE.sub(variable, value)


def _bad(path: str, what: str, why: str) -> errors.BadInput:
    return errors.bad_setting(f"file {path}", what, why)


# --- a server ---------------------------------------------------------------------------------------------------------


class Connection(Protocol):
    """The connection to a server: `Process`, or `upstream_http.HttpLink`."""

    def write(self, line: bytes) -> None: ...
    def lines(self) -> Iterator[bytes]: ...
    def leave(self) -> None: ...


class Process:
    """A server that is a process. A thread writes to it, because writing blocks while it does not read."""

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

    def ending(self) -> str:
        """How it ended, after its output has."""
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
    """The gateway, as its servers use it."""

    lock: threading.RLock

    def from_server(self, member: Member, line: bytes) -> None:
        """A request or a notification of the server."""

    def to_client(self, line: bytes) -> None: ...
    def unanswered(self, key: rewrite.Key, request: Forwarded, why: str) -> None:
        """A request of the client will get no answer."""

    def later(self, seconds: float, work: Callable[[], object]) -> None:
        """Do something under the lock when the time has passed."""

    def ready(self, member: Member) -> None:
        """The server is initialised and can be asked."""

    def gone(self, member: Member) -> None:
        """The server could not be reached, or has ended."""


class Forwarded(NamedTuple):
    """A request of the client that a server has."""

    method: str
    modern: bool = False  # it is of 2026-07-28, and so is the reply that the client expects


class Member:
    """A server. All methods are called under the gateway's lock."""

    def __init__(self, spec: Spec, hub: Hub, patience: float) -> None:
        self.name = spec.name
        self.ready = self.starting = False
        self.modern = False  # it began without a handshake
        self.why = "it has not been started"
        self.result: Json = {}  # of initialize or server/discover
        self.due = 0.0  # how long to wait for its start
        self.lists: dict[str, list[Json]] = {}  # by method, as last received
        self._spec = spec
        self._hub = hub
        self._patience = patience
        self._server: Connection | None = None
        self._waiting: dict[rewrite.Key, OnReply] = {}  # requests of the gateway
        self._forwarded: dict[rewrite.Key, Forwarded] = {}
        self._queued: list[tuple[rewrite.Key, Forwarded, bytes]] = []  # requests that wait for the start
        self._opening = ""  # the request with which it is to begin
        self._meta: Json = {}  # of requests, if it is modern
        self._only_handshake = False  # it did not answer the other way before
        self._count = self._failures = 0
        self._retry_at = 0.0

    # --- start and end ------------------------------------------------------------------------------------------------

    def launch(self) -> None:
        """Start the process, or get ready to connect."""
        try:
            if isinstance(self._spec, Command):
                self._server = Process(self._spec)
            else:
                self._server = upstream_http.HttpLink(self._spec.place, self._spec.headers, self.name)
        except OSError as problem:
            self._failed(f"it cannot be started: {problem.strerror}")
            return
        self.due = time.monotonic() + self._patience
        threading.Thread(target=self._read, args=(self._server,), daemon=True).start()

    def initialise(self, hello: Json, *, modern: bool) -> None:
        """Start it if it is not running and it is time to try, and have it begin: first in the era of the client."""
        if self.ready or self.starting or (self._server is None and time.monotonic() < self._retry_at):
            return
        if self._server is None:
            self.launch()
        if self._server is not None:
            self.starting = True
            self._meta = gateway_rules.modern_hello(hello)
            ways = [HANDSHAKE] if self._only_handshake else [HANDSHAKE, DISCOVER]
            self._begin(ways[::-1] if modern else ways, hello)

    def _begin(self, ways: Sequence[str], hello: Json, problem: str = "it refused to begin") -> None:
        """Ask it to begin in the first of these ways; if that is refused, or unknown to it, in the next."""
        way, *others = ways
        key = self._opening = f"{ID_PREFIX}{self._count + 1}"

        def got(reply: Json | None) -> None:
            if reply is None or not self.starting:
                return  # it has ended, and `_read` handles that; or it began in the other way
            result, refusal = reply.get("result"), reply.get("error")
            if isinstance(result, dict) and (way == HANDSHAKE or _is_modern(result)):
                self._only_handshake &= way == HANDSHAKE  # it was slow, not silent
                self._begun(result, modern=way == DISCOVER)
                return
            if key != self._opening:
                return  # it was asked in the other way since
            self._only_handshake |= way == DISCOVER
            said = str(refusal.get("message")) if isinstance(refusal, dict) and way == HANDSHAKE else problem
            if others:
                self._begin(others, hello, said)
            else:
                self._failed(said)

        def silent() -> None:
            if self.starting and key == self._opening:
                self._only_handshake = True
                self._begin(others, hello)

        self.ask(way, hello if way == HANDSHAKE else {"_meta": self._meta}, got)
        if way == DISCOVER and others:
            self._hub.later(PROBE_SECONDS, silent)

    def _begun(self, result: Json, *, modern: bool) -> None:
        self.starting, self.ready, self.result, self._failures = False, True, result, 0
        self.modern, self._opening = modern, ""
        if not modern:
            self.write(encode({"jsonrpc": "2.0", "method": "notifications/initialized"}) + b"\n")
        for key, request, line in self._queued:
            self.forward(key, request, line)
        self._queued = []
        self._hub.ready(self)

    def _failed(self, why: str) -> None:
        was_ready, server = self.ready, self._server
        self.ready = self.starting = self.modern = False
        if why != self.why:
            say(f"{self.name}: {why}", "gateway")
        self._server, self.why, self.lists = None, why, {}
        self._failures += not was_ready
        # A server that worked is restarted when it is next needed; for one that never started, the waits grow.
        wait = 0.0 if was_ready else min(2.0 ** (self._failures - 1), RETRY_MOST_SECONDS)
        self._retry_at = time.monotonic() + wait
        if server is not None:
            threading.Thread(target=server.leave, daemon=True).start()
        for key, request in [*self._forwarded.items(), *((key, request) for key, request, _ in self._queued)]:
            self._hub.unanswered(key, request, f"the server {self.name} is not there: {why}")
        waiting, self._waiting, self._forwarded, self._queued = self._waiting, {}, {}, []
        for then in waiting.values():
            then(None)
        self._hub.gone(self)

    def can(self, capability: str) -> bool:
        capabilities = self.result.get("capabilities")
        return isinstance(capabilities, dict) and capability in capabilities

    def leave(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.leave()

    # --- asking -------------------------------------------------------------------------------------------------------

    def write(self, line: bytes) -> None:
        if self._server is not None:
            self._server.write(line)

    def ask(self, method: str, params: Json, then: OnReply) -> None:
        self._count += 1
        key = f"{ID_PREFIX}{self._count}"
        self._waiting[key] = then
        if self.modern:
            params = {**params, "_meta": self._meta}
        self.write(encode({"jsonrpc": "2.0", "id": key, "method": method, "params": params}) + b"\n")

    def forward(self, key: rewrite.Key, request: Forwarded, line: bytes) -> None:
        """Pass on a request of the client, in the server's era, as soon as the server is ready."""
        if self.ready:
            self._forwarded[key] = request
            self.write(line if self.modern == request.modern else self._in_its_era(line))
        elif self.starting:
            self._queued.append((key, request, line))
        else:
            self._hub.unanswered(key, request, f"the server {self.name} is not there: {self.why}")

    def _in_its_era(self, line: bytes) -> bytes:
        text = line.decode("utf-8", "surrogatepass")
        text = gateway_rules.to_modern_server(text, self._meta) if self.modern else gateway_rules.to_older_server(text)
        return text.encode("utf-8", "surrogatepass")

    def _answered(self, key: rewrite.Key, line: bytes) -> None:
        request = self._forwarded.pop(key)
        if request.modern and not self.modern:
            text = line.decode("utf-8", "surrogatepass")
            line = gateway_rules.to_modern_client(text, request.method).encode("utf-8", "surrogatepass")
        self._hub.to_client(line)

    def give_up_queued(self) -> None:
        """Answer the requests that wait for a start which takes too long. The server may still start."""
        queued_requests, self._queued = self._queued, []
        for key, request, _ in queued_requests:
            self._hub.unanswered(
                key, request, f"the server {self.name} has not started within {self._patience:g} seconds"
            )

    def cancel(self, key: rewrite.Key, line: bytes) -> bool:
        """Pass on that a request is cancelled; False if it is not with this server."""
        count = len(self._queued)
        self._queued = [request for request in self._queued if request[0] != key]
        if key in self._forwarded:
            self.write(line)
            return True
        return len(self._queued) < count

    def collect(self, kind: Kind, then: Callable[[list[Json] | None], None]) -> None:
        """All pages of a list; None if the server did not send it."""
        if not self.can(kind.capability):
            then([])
            return
        items: list[Json] = []

        def page(reply: Json | None, left: int = PAGES_MOST) -> None:
            result = None if reply is None else reply.get("result")
            if not isinstance(result, dict) or not isinstance(result.get(kind.field), list):
                # A server with resources may still have no templates of them.
                problem = {} if reply is None else reply.get("error")
                then([] if isinstance(problem, dict) and problem.get("code") == -32601 else None)
                return
            items.extend(item for item in result[kind.field] if isinstance(item, dict))
            cursor = result.get("nextCursor")
            if isinstance(cursor, str) and left:
                self.ask(kind.method, {"cursor": cursor}, lambda more: page(more, left - 1))
                return
            self.lists[kind.method] = items
            then(items)

        self.ask(kind.method, {}, page)

    # --- its messages -------------------------------------------------------------------------------------------------

    def _read(self, server: Connection) -> None:
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
        how = server.ending() if isinstance(server, Process) else "was left"
        with self._hub.lock:
            if server is self._server:
                self._failed(f"it {how}")

    def _take(self, line: bytes) -> None:
        key = rewrite.reply_id(line)
        if key is not None and key in self._forwarded:
            self._answered(key, line)
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
        key = rewrite.key_of(value.get("id"))
        if key in self._waiting:
            self._waiting.pop(key)(value)
        elif key is not None and key in self._forwarded:
            self._answered(key, line)
        else:
            say(f"{self.name} answered something that nobody asked it", "gateway")


def _is_modern(result: Json) -> bool:
    versions = result.get("supportedVersions")
    return isinstance(versions, list) and any(version in versions for version in revisions.MODERN)
