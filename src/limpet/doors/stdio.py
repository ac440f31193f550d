"""The MCP server on stdin and stdout: one line in, at most one line out.

Every client starts this at every launch and waits for it, so it imports little: it is a loop over lines, and the
replies come from `protocol.mcp_server`. Requests are answered one after another, in order, with one exception: a write
that has to wait for the lock of the store goes on in its own thread, and the requests after it are answered meanwhile.
Writes stay in order among themselves. A request is usually finished before a `notifications/cancelled` for it can be
read, which the protocol allows.

Standard output belongs to the protocol. The loop takes the descriptor and points descriptor 1 at standard error, so
that a stray print cannot break a message.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from limpet import errors, limits
from limpet.light import TYPE_CHECKING, BinaryIO
from limpet.protocol import jsonrpc
from limpet.protocol.mcp_server import ClientState, Surface, finished, refused_call, revision_of
from limpet.record import NamedTuple

if TYPE_CHECKING:
    from types import FrameType

    from limpet.api import Instructions, Limpet
    from limpet.doors.client_roots import ClientRoots

# The one revision with batches: earlier and later ones send one message at a time.
_BATCHES = "2025-03-26"


_OTHER, _CALL, _WRITE = range(3)  # messages: a call is of a tool that reads
_PROGRESS_SECONDS = 1  # between two notes that a call is still at work
_PATIENCE_SECONDS = 1.0  # for a write, before the next line is read; slow machines need more than milliseconds


class _Stop(BaseException):
    """Raised by the signal handler while the loop waits for a line. No `except Exception` may catch it."""


class _Job:
    """A request that writes. `refuse` answers it without trying, because others have waited in vain."""

    __slots__ = ("began", "done", "refuse", "work")

    def __init__(self, work: Callable[[], bytes], refuse: Callable[[int], bytes]) -> None:
        self.work = work
        self.refuse = refuse
        self.began = time.monotonic()
        self.done = threading.Event()


class _Writes:
    """A thread that does writes in order and sends their replies. It is started with the first one."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._jobs: deque[_Job] = deque()
        self._some = threading.Semaphore(0)
        self._thread: threading.Thread | None = None

    def do(self, work: Callable[[], bytes], refuse: Callable[[int], bytes]) -> None:
        """Returns when the reply was sent; or soon, if it or one before it has to wait."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        job, first = _Job(work, refuse), not self._jobs
        self._jobs.append(job)
        self._some.release()
        if first:
            job.done.wait(_PATIENCE_SECONDS)

    def finish(self) -> None:
        """Wait until all are answered."""
        while self._jobs:
            with suppress(IndexError):
                self._jobs[-1].done.wait()

    def _run(self) -> None:
        while True:
            self._some.acquire()
            job = self._jobs[0]
            # The store waits for its lock for so long. One that has waited half of that behind others does not try.
            late = time.monotonic() - job.began > limits.LOCK_WAIT_SECONDS / 2
            try:
                reply = job.refuse(len(self._jobs)) if late else job.work()
                self._send(reply)
            except (OSError, ValueError):
                pass  # the client is gone, or the stream closed; the write was made nevertheless
            finally:
                self._jobs.popleft()
                job.done.set()


class _Progress:
    """Tells a client that asked for it, once a second, that its call is still at work."""

    def __init__(self, send: Callable[[bytes], None], token: object) -> None:
        self._send = send
        self._token = token
        self._seconds = 0
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def __enter__(self) -> None:
        if isinstance(self._token, (str, int)):
            self._wait()

    def __exit__(self, *exception: object) -> None:
        with self._lock:  # none may follow the reply
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _wait(self) -> None:
        self._timer = threading.Timer(_PROGRESS_SECONDS, self._tell)
        self._timer.daemon = True
        self._timer.start()

    def _tell(self) -> None:
        with self._lock:
            if self._timer is None:
                return
            self._seconds += _PROGRESS_SECONDS
            params = {"progressToken": self._token, "progress": self._seconds, "message": "Still at work."}
            with suppress(OSError, ValueError):  # the client is gone: the call ends all the same
                self._send(
                    jsonrpc.encode({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}) + b"\n"
                )
                self._wait()


class Loop:
    """Answers the messages of one client."""

    def __init__(self, surface: Surface, client: ClientState) -> None:
        self._surface = surface
        self._client = client
        self._idle = False  # nothing is lost when the loop is left now
        self._stopping = False
        self._writer: BinaryIO | None = None
        self._sending = threading.Lock()
        self._writes = _Writes(self.send)
        self.roots: ClientRoots | None = None  # asks the client where it works, if nothing else says so
        self._problem: errors.LimpetError | None = None  # why calls are refused

    def run(self, reader: BinaryIO, writer: BinaryIO) -> None:
        """Run until the client goes away or the process gets a signal to stop."""
        self._writer = writer
        with suppress(_Stop):  # a second signal, while the last writes are waited for
            try:
                while not self._stopping:
                    self._idle = True
                    reply = self._next(reader)
                    if reply is None:
                        break
                    if reply:
                        # A client that has stopped reading can block this write; a signal ends it too.
                        self._idle = True
                        self.send(reply)
            except (_Stop, ConnectionError):
                pass
            finally:
                self._idle = False
            if self.roots is not None:
                self.roots.settle()
            self._writes.finish()
            self._idle = True
            with suppress(errors.LimpetError):  # what it wrote is kept all the same, in a session under way
                self._surface.end()

    def settle(self, hold: Limpet | None, problem: errors.LimpetError | None) -> None:
        self._problem = problem
        self._surface = self._surface.begin(hold, self._client)

    def handle(self, value: object) -> None:
        self.send(self._answer(value))

    def send(self, reply: bytes) -> None:
        with self._sending:
            if reply and self._writer is not None:
                self._writer.write(reply)
                self._writer.flush()

    def stop(self, _signal: int, _frame: FrameType | None) -> None:
        """A signal handler. A request under way is finished and answered first; a second signal does not wait."""
        again, self._stopping = self._stopping, True
        if self._idle or again:
            raise _Stop

    def _next(self, reader: BinaryIO) -> bytes | None:
        """The reply to the next line: empty when none is due now, None when there are no more lines."""
        try:
            line = jsonrpc.read_line(reader)
            self._idle = False
        except jsonrpc.RpcError as problem:
            return jsonrpc.encode(jsonrpc.error(problem)) + b"\n"
        return None if line is None else self._read(line)

    def _read(self, line: bytes) -> bytes:
        """The reply to one line, with its newline; empty when none is due, or a thread sends it later."""
        try:
            value = jsonrpc.decode(line)
        except jsonrpc.RpcError as problem:
            return jsonrpc.encode(jsonrpc.error(problem)) + b"\n"
        return b"" if self.roots is not None and self.roots.take(value) else self._answer(value)

    def _answer(self, value: object) -> bytes:
        kind = max(map(self._kind, value), default=_OTHER) if isinstance(value, list) else self._kind(value)
        if kind != _OTHER and self._problem is not None:
            return self._line(value, self._problem)
        if kind == _WRITE:
            self._writes.do(lambda: self._written(value), lambda count: self._line(value, errors.writes_waiting(count)))
            return b""
        if kind == _CALL and self._client.unused is not None:
            # A handoff is used up by this call. That is a write, and a call that reads must not wait for it.
            unused, self._client.unused = self._client.unused, None
            self._writes.do(lambda: self._mark_used(unused), lambda _count: self._mark_used(unused))
        reply = self._line(value)
        if self._client.record_shown is not None:
            self._writes.do(self._mark_shown, lambda _count: b"")
        return reply

    def _written(self, value: object) -> bytes:
        """The reply to a call that writes."""
        reply = self._line(value)
        self._mark_shown()
        return reply

    def _mark_shown(self) -> bytes:
        """Record which handoffs the model now has, for sessions that begin beside it."""
        record, self._client.record_shown = self._client.record_shown, None
        if record is not None:
            with suppress(errors.LimpetError):  # the call itself was answered
                record()
        return b""

    def _mark_used(self, unused: Instructions) -> bytes:
        try:
            unused.used()
        except errors.LimpetError:
            self._client.unused = unused  # the next call tries again
        return b""

    def _kind(self, value: object) -> int:
        if not isinstance(value, dict) or value.get("method") != "tools/call":
            return _OTHER
        params = value.get("params")
        return _WRITE if isinstance(params, dict) and self._surface.writes(params) else _CALL

    def _line(self, value: object, refusal: errors.LimpetError | None = None) -> bytes:
        try:
            reply = self._batch(value, refusal) if isinstance(value, list) else self._reply(value, refusal)
        except jsonrpc.RpcError as problem:
            reply = jsonrpc.encode(jsonrpc.error(problem))
        return reply + b"\n" if reply else b""

    def _batch(self, values: list[object], refusal: errors.LimpetError | None) -> bytes:
        if self._client.revision != _BATCHES:
            raise jsonrpc.RpcError(
                jsonrpc.INVALID_REQUEST, f"Only protocol version {_BATCHES} has batches. Send one message a line."
            )
        if not values:
            raise jsonrpc.RpcError(jsonrpc.INVALID_REQUEST, "The batch is empty. Send at least one message in it.")
        replies = [reply for value in values if (reply := self._reply(value, refusal))]
        return b"[" + b",".join(replies) + b"]" if replies else b""

    def _reply(self, value: object, refusal: errors.LimpetError | None) -> bytes:
        """The reply to one message, empty when none is due. This is the outermost frame of the door."""
        request: jsonrpc.RpcMessage | None = None
        try:
            request = jsonrpc.message(value)
            if request is None or request.id is None:
                return b""  # an unexpected reply or a notification: neither changes anything
            revision = revision_of(request.method, request.params, self._client)
            handler = self._surface.handler(request.method, request.params, revision)
            if refusal is None:
                with _Progress(self.send, _progress_token(request)):
                    result = handler(request.params, self._client, revision)
            else:
                result = refused_call(refusal)
            reply = finished(request.method, result, revision)
            return jsonrpc.encode(jsonrpc.result(request.id, reply))
        except jsonrpc.RpcError as problem:
            return jsonrpc.encode(jsonrpc.error(problem, request.id if request else None))
        except Exception as problem:
            _log(problem)
            broken = jsonrpc.RpcError(jsonrpc.INTERNAL_ERROR, jsonrpc.FAILED_INSIDE)
            return jsonrpc.encode(jsonrpc.error(broken, request.id if request else None))


def _progress_token(request: jsonrpc.RpcMessage) -> object:
    meta = request.params.get("_meta") if request.method == "tools/call" else None
    return meta.get("progressToken") if isinstance(meta, dict) else None


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


class Serving(NamedTuple):
    """How a client is served."""

    handoff: bool = True  # False: the instructions leave it out, for a client whose hooks give it
    remark: str = ""  # says that it works in no folder
    structured: bool = False  # results of tools are values too, with schemas


def serve(
    hold: Limpet,
    profile: str,
    session: str | None = None,
    how: Serving = Serving(),  # noqa: B008  It is frozen.
    *,
    ask: Callable[[Loop], ClientRoots] | None = None,
) -> None:
    """Speak MCP on stdin and stdout until the client closes them or the process gets SIGTERM or SIGINT.

    `session` is the user's choice and wins over what a client says in the `_meta` of a call. Without both, calls work
    in the session `hold` was opened with. `ask` asks clients for the folder they work in.
    """
    late = ask is not None
    surface = Surface(hold, profile, session=session, late_project=late, **how._asdict())
    # Agents that tell their servers no session have hooks that name it in each call, or in the model's context.
    named_in_calls = not (how.handoff or session or hold.has_named_session)
    loop = Loop(surface, ClientState(since=hold.clock(), lists_session=named_in_calls))
    loop.roots = ask(loop) if ask is not None else None
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
