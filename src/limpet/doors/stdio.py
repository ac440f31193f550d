"""The MCP server on stdin and stdout: one line in, at most one line out.

Every client starts this at every launch and waits for it, so it imports little: it is a loop over lines, and the
replies come from `protocol.mcp_server`. Requests are answered one after another, in order. A request is therefore
finished before a `notifications/cancelled` for it can be read, which the protocol allows.

Standard output belongs to the protocol. The loop takes the descriptor and points descriptor 1 at standard error, so
that a stray print cannot break a message.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from limpet.protocol import jsonrpc
from limpet.protocol.mcp_server import ClientState, Surface, finished, revision_of

if TYPE_CHECKING:
    from types import FrameType

    from limpet.api import Limpet

# The one revision with batches: earlier and later ones send one message at a time.
_BATCHES = "2025-03-26"


class _Stop(BaseException):
    """Raised by the signal handler while the loop waits for a line. No `except Exception` may catch it."""


class Loop:
    """Answers the messages of one client."""

    def __init__(self, surface: Surface, client: ClientState) -> None:
        self._surface = surface
        self._client = client
        self._idle = False  # nothing is lost when the loop is left now
        self._stopping = False

    def run(self, reader: BinaryIO, writer: BinaryIO) -> None:
        """Run until the client goes away or the process gets a signal to stop."""
        try:
            while not self._stopping:
                self._idle = True
                reply = self._next(reader)
                if reply is None:
                    return
                if reply:
                    # A client that has stopped reading can block this write; a signal ends it too.
                    self._idle = True
                    writer.write(reply)
                    writer.flush()
        except (_Stop, ConnectionError):
            return
        finally:
            self._idle = False

    def stop(self, _signal: int, _frame: FrameType | None) -> None:
        """A signal handler. A request under way is finished and answered first; a second signal does not wait."""
        again, self._stopping = self._stopping, True
        if self._idle or again:
            raise _Stop

    def _next(self, reader: BinaryIO) -> bytes | None:
        """The reply to the next line: empty when none is due, None when there are no more lines."""
        try:
            line = jsonrpc.read_line(reader)
            self._idle = False
        except jsonrpc.RpcError as problem:
            return jsonrpc.encode(jsonrpc.error(problem)) + b"\n"
        return None if line is None else self.answer(line)

    def answer(self, line: bytes) -> bytes:
        """The reply to one line, with its newline; empty when none is due."""
        try:
            value = jsonrpc.decode(line)
            reply = self._batch(value) if isinstance(value, list) else self._reply(value)
        except jsonrpc.RpcError as problem:
            reply = jsonrpc.encode(jsonrpc.error(problem))
        return reply + b"\n" if reply else b""

    def _batch(self, values: list[object]) -> bytes:
        if self._client.revision != _BATCHES:
            raise jsonrpc.RpcError(
                jsonrpc.INVALID_REQUEST, f"Only protocol version {_BATCHES} has batches. Send one message a line."
            )
        if not values:
            raise jsonrpc.RpcError(jsonrpc.INVALID_REQUEST, "The batch is empty. Send at least one message in it.")
        replies = [reply for reply in map(self._reply, values) if reply]
        return b"[" + b",".join(replies) + b"]" if replies else b""

    def _reply(self, value: object) -> bytes:
        """The reply to one message, empty when none is due. This is the outermost frame of the door."""
        request: jsonrpc.RpcMessage | None = None
        try:
            request = jsonrpc.message(value)
            if request is None or request.id is None:
                return b""  # an unexpected reply or a notification: neither changes anything
            revision = revision_of(request.method, request.params, self._client)
            handler = self._surface.handler(request.method, request.params, revision)
            reply = finished(request.method, handler(request.params, self._client, revision), revision)
            return jsonrpc.encode(jsonrpc.result(request.id, reply))
        except jsonrpc.RpcError as problem:
            return jsonrpc.encode(jsonrpc.error(problem, request.id if request else None))
        except Exception as problem:
            _log(problem)
            broken = jsonrpc.RpcError(jsonrpc.INTERNAL_ERROR, jsonrpc.FAILED_INSIDE)
            return jsonrpc.encode(jsonrpc.error(broken, request.id if request else None))


def _log(problem: Exception) -> None:
    # Imported here to keep the start fast: it is needed after an unexpected error.
    import traceback

    traceback.print_exception(problem, file=sys.stderr)
    sys.stderr.flush()


def _own(descriptor: int, stand_in: int) -> int:
    """Take a standard stream, and leave `stand_in` in its place for all other code."""
    copy = os.dup(descriptor)
    os.dup2(stand_in, descriptor)
    return copy


def serve(hold: Limpet, profile: str, session: str | None = None, *, handoff: bool = True) -> None:
    """Speak MCP on stdin and stdout until the client closes them or the process gets SIGTERM or SIGINT.

    `session` is the user's choice and wins over what a client says in the `_meta` of a call. Without
    both, calls work in the session `hold` was opened with. Without `handoff` the instructions leave
    it out, for a client whose hooks give it.
    """
    loop = Loop(Surface(hold, profile, session=session, handoff=handoff), ClientState())
    nothing = os.open(os.devnull, os.O_RDWR)
    # A child process such as git must not read the client's messages, and no other code may write replies.
    reader = os.fdopen(_own(0, nothing), "rb")
    writer = os.fdopen(_own(1, 2 if sys.stderr else nothing), "wb")
    previous = {which: signal.signal(which, loop.stop) for which in (signal.SIGTERM, signal.SIGINT)}
    try:
        loop.run(reader, writer)
    finally:
        for which, handler in previous.items():
            signal.signal(which, handler)
        _close(reader)
        _close(writer)
        os.close(nothing)


def _close(stream: BinaryIO) -> None:
    # What is still in the buffer of a broken pipe has no reader any more.
    with suppress(ConnectionError):
        stream.close()
