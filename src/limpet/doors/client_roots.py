"""Where a client works, asked of the client: MCP's roots, for a server that was started in no project.

The question goes out after the handshake, so neither that nor the list of tools waits for the answer. Requests that
need a project do, for a bounded time. A client of 2026-07-28 takes no question of a server: its first request that
needs a project is answered with one, and it repeats the request with its answer. The first root that is a folder
counts, once, unless it is `/` or the home.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Protocol
from urllib.parse import unquote, urlsplit

from limpet.api import Limpet
from limpet.errors import LimpetError
from limpet.home.place import is_nowhere
from limpet.protocol import jsonrpc, revisions

ID = "limpet-roots"
QUESTION = jsonrpc.encode({"jsonrpc": "2.0", "id": ID, "method": "roots/list"}) + b"\n"
WAIT_SECONDS = 5.0  # then calls are done in the personal project
NEED_A_PROJECT = ("tools/call", "resources/read", "prompts/get")


class Door(Protocol):
    """What the server does with the answer."""

    def send(self, reply: bytes) -> None: ...

    def handle(self, value: object) -> None:
        """Answer a message that has waited."""

    def settle(self, hold: Limpet | None, problem: LimpetError | None) -> None:
        """Work in another project from now on, or where it was; with a problem, refuse calls."""


class ClientRoots:
    def __init__(self, door: Door, open_in: Callable[[str], Limpet], home: str) -> None:
        self._door = door
        self._open_in = open_in
        self._home = home
        self._offered = False
        self._is_asked = False
        self._settled = False
        self._waiting: list[object] = []
        self._lock = threading.Lock()

    def take(self, value: object) -> bool:
        """Whether this message was the answer, or waits for it."""
        if not isinstance(value, dict):
            return False
        method = value.get("method")
        if revisions.is_modern(value.get("params")):
            return not self._settled and method in NEED_A_PROJECT and self._take_modern(value)
        if method == "initialize":
            self._offered = offers_roots(value.get("params"))
        if not self._offered or self._settled:
            return False
        if value.get("id") == ID and method is None:
            self.settle(value.get("result"))
            return True
        if method == "notifications/initialized" or method in NEED_A_PROJECT:
            self._ask()
        if method not in NEED_A_PROJECT:
            return False
        with self._lock:
            if not self._settled:
                self._waiting.append(value)
            return not self._settled

    def _take_modern(self, request: dict[str, object]) -> bool:
        """Answer a request of 2026-07-28 with the question; False if it is to be done, now that it has an answer."""
        params, key = request.get("params"), request.get("id")
        if key is None or not offers_roots(params):
            return False
        answers = params.get("inputResponses") if isinstance(params, dict) else None
        if answers is None:
            asked = {"resultType": "input_required", "inputRequests": {ID: {"method": "roots/list"}}}
            self._door.send(jsonrpc.encode({"jsonrpc": "2.0", "id": key, "result": asked}) + b"\n")
            return True
        self._offered = True
        self.settle(answers.get(ID) if isinstance(answers, dict) else None)
        return False

    def settle(self, answer: object = None) -> None:
        """Decide by the client's answer, or without one; then do what has waited."""
        with self._lock:
            if self._settled or not self._offered:
                return
            self._settled = True
        folder = next(self._folders(answer), None)
        try:
            self._door.settle(None if folder is None else self._open_in(folder), None)
        except LimpetError as problem:
            self._door.settle(None, problem)
        for value in self._waiting:
            self._door.handle(value)

    def _ask(self) -> None:
        if self._is_asked:
            return
        self._is_asked = True
        self._door.send(QUESTION)
        timer = threading.Timer(WAIT_SECONDS, self.settle)
        timer.daemon = True
        timer.start()

    def _folders(self, answer: object) -> Iterator[str]:
        roots = answer.get("roots") if isinstance(answer, dict) else None
        for root in roots if isinstance(roots, list) else ():
            path = _path_of(root.get("uri") if isinstance(root, dict) else None)
            if path and os.path.isdir(path) and not is_nowhere(path, self._home):
                yield path


def offers_roots(params: object) -> bool:
    """Whether a client says that it has roots: in its handshake, or in each request."""
    capabilities = params.get("capabilities") if isinstance(params, dict) else None
    if isinstance(params, dict) and revisions.is_modern(params):
        capabilities = params["_meta"].get(revisions.CAPABILITIES_KEY)
    return isinstance(capabilities, dict) and isinstance(capabilities.get("roots"), dict)


def _path_of(uri: object) -> str:
    """The path of a file:// address on this machine; empty for others."""
    if not isinstance(uri, str):
        return ""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    path = unquote(parts.path)
    if os.name == "nt":
        path = path.lstrip("/")
    is_here = parts.scheme == "file" and parts.netloc in ("", "localhost")
    return path if is_here and os.path.isabs(path) and "\0" not in path else ""
