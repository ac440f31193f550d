"""`limpet wrap`: a transparent wrapper of one MCP server, which is a command (`-- command args…`) or a `--url`.

Every line passes unchanged, both ways, with four exceptions: a big result of `tools/call` is kept and replaced by a
preview; the last page of `tools/list` gets two tools that read what is kept; calls of these two are answered here; and
an argument `hold://…` of a call is replaced by the text it refers to. `rewrite` locates the parts of a message,
`backend` is Limpet, and the server is an `upstream.Link`. `limpet gateway` is the same in front of several servers.

One thread reads the client, one reads the upstream. Neither uses the store: workers do, so that progress and
cancellation pass while a result is being kept. The main thread handles signals, gives up on work that takes too long
(the original goes through then), and ends the upstream.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from queue import SimpleQueue

from limpet import errors
from limpet.doors.proxy import bounds, rewrite
from limpet.doors.proxy.backend import Backend
from limpet.doors.proxy.tool_pinning import ToolPinning
from limpet.doors.proxy.upstream import UPSTREAM_ENDED, Events, Link, Pipe, Workers, complain, lines, say, widen
from limpet.protocol.jsonrpc import Json, RpcError, dumps, encode, error, result
from limpet.protocol.revisions import is_modern
from limpet.record import NamedTuple
from limpet.text.json_spans import Edit, edited

KEEP_SECONDS = 10.0  # keeping a result may take so long before the original goes through instead
KEEP_SECONDS_PER_MIB = 0.25  # in addition
HANGING_SECONDS = 1.0  # the same, while the store is known to hang
TOOL_CALL = "tools/call"


class Pending(NamedTuple):
    """A request of the client that the upstream has not answered yet."""

    method: str
    message: bytes = b""  # of a call; it is decoded only if its result is big

    def params(self) -> Json:
        params: Json = json.loads(self.message)["params"]
        return params


OTHER = Pending("")  # neither a call nor a listing


class Job(NamedTuple):
    """A reply that waits for the store."""

    line: bytes  # goes through if that takes too long
    due: float


class Wrapper:
    """One client, one upstream, and what is under way between them."""

    def __init__(self, connect: Callable[[Events], Link], backend: Backend, client_in: int, client_out: int) -> None:
        self._backend = backend
        self._client_in = client_in
        self._events: Events = SimpleQueue()
        self._to_client = Pipe(client_out, lambda: self._events.put("client"))
        self._upstream = connect(self._events)
        for descriptor in (client_in, client_out):
            widen(descriptor)
        self._listing = rewrite.ToolList(keep_schemas=backend.keep_schemas)
        self._pinning = ToolPinning(backend.see_tools, self._upstream.owner, strict=backend.strict)
        self._pending: dict[rewrite.Key, Pending] = {}
        self._waiting: set[rewrite.Key] = set()  # requests that wait for the store and have not reached the upstream
        self._jobs: dict[object, Job] = {}  # the thread that removes a job passes its reply on
        self._unfinished: set[object] = set()  # jobs whose reply is not written yet, and pins not yet compared
        self._hangs = False  # the store did not answer in time, and has not answered since
        self._half_line = False  # the last line sent to the client had no line end
        self._last_line: float | None = 0.0  # when the upstream last sent a line; None while that is passed on
        self._later = Workers().do

    def run(self) -> int:
        """Run until one side ends; the exit code."""
        threading.Thread(target=self._down, daemon=True).start()
        threading.Thread(target=self._up, daemon=True).start()
        self._later(self._backend.tools)  # so that its imports happen while the upstream starts
        end = self._upstream.wait(self, self._to_client)
        # The client must not wait for answers that will not come.
        unanswered = [*self._pending, *self._waiting]
        if unanswered and self._half_line:
            self._to_client.write(b"\n")
        for id in unanswered:
            self._to_client.write(encode(error(RpcError(UPSTREAM_ENDED, end.message), id)) + b"\n")
        if not self._unfinished and not self._waiting:
            self._backend.close()
        return end.code

    # --- for the end (upstream.Work) ----------------------------------------------------------------------------------

    def unanswered(self) -> bool:
        return bool(self._pending or self._waiting or self._unfinished)

    def keeping(self) -> bool:
        return bool(self._unfinished)

    def heard(self) -> float:
        return time.monotonic() if self._last_line is None else self._last_line

    def close_upstream(self) -> bool:
        return not self._waiting and self._upstream.close()

    def give_up_late(self) -> float | None:
        now = time.monotonic()
        for ticket, job in list(self._jobs.items()):
            if job.due <= now and self._jobs.pop(ticket, None) is not None:
                self._hangs = True
                say("the store took too long, so a result went through as it was")
                # In a thread: the main thread must stay free for signals while a client is slow to read.
                threading.Thread(target=self._finish, args=(ticket, job.line), daemon=True).start()
        return min((job.due for job in list(self._jobs.values())), default=None)

    # --- from the client ----------------------------------------------------------------------------------------------

    def _up(self) -> None:
        for line in lines(self._client_in, self._refuse_long):
            try:
                passes = self._look_up(line)
            except Exception as problem:
                complain(problem)
                passes = True
            if passes:
                self._upstream.write(line)
        self._events.put("client")

    def _refuse_long(self, head: bytes, _tail: bytes) -> bytes:
        """Answer a request that is too long to be passed on; there is nothing for the upstream."""
        if (request := rewrite.plain_request(head)) is not None:
            why = f"The message is longer than {bounds.MESSAGE_MAX_BYTES:,} bytes, the limit. Send less at a time."
            self._to_client.write(bounds.refusal(request[0], why))
        return b""

    def _look_up(self, line: bytes) -> bool:
        """Register the requests in a line. Whether the line can pass at once."""
        plain = rewrite.plain_request(line)
        if plain is not None and not (self._pinning.strict and plain[1] == b"tools/call"):
            id, method = plain
            self._pending[id] = Pending(TOOL_CALL, line) if method == b"tools/call" else OTHER
            return True
        if b'"method"' not in line:
            return True
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return True  # the upstream reports what is wrong with it
        messages = [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, dict)]
        refers = any(mark in line for mark in rewrite.REFERENCE_MARKS)
        if any(part.get("method") == TOOL_CALL and (refers or self._to_check(part)) for part in messages):
            keys = {key for part in messages if (key := rewrite.key_of(part.get("id"))) is not None}
            self._waiting |= keys
            self._later(partial(self._work_up, line, keys))
            return False
        if any(part.get("method") == "notifications/cancelled" and self._cancel(part) for part in messages):
            return len(messages) > 1
        for part in messages:
            self._register(part)
        return True

    def _to_check(self, message: Json) -> bool:
        return self._is_read_call(message) or self._pinning.blocks(_name(message))

    def _is_read_call(self, message: Json) -> bool:
        name = _name(message) if message.get("method") == TOOL_CALL else None
        return isinstance(name, str) and self._listing.read_tool(name) is not None

    def _cancel(self, message: Json) -> bool:
        """Forget a cancelled request. True if the upstream has not got it and need not hear of it."""
        params = message.get("params")
        key = rewrite.key_of(params.get("requestId")) if isinstance(params, dict) else None
        if key is None:
            return False
        self._pending.pop(key, None)
        waited = key in self._waiting
        self._waiting.discard(key)
        return waited

    def _register(self, message: Json) -> None:
        method, key, params = message.get("method"), rewrite.key_of(message.get("id")), message.get("params")
        if key is None or not isinstance(method, str):
            return
        arguments: Json = params if isinstance(params, dict) else {}
        if method == "tools/list" and arguments.get("cursor") is None:
            self._listing.restart()
        call = method == TOOL_CALL and isinstance(arguments.get("name"), str)
        self._pending[key] = Pending(method, json.dumps(message).encode()) if call else Pending(method)

    def _work_up(self, line: bytes, keys: set[rewrite.Key]) -> None:
        """Answer calls of the read tools, expand references, and pass the rest on."""
        try:
            text = line.decode("utf-8")
            several = rewrite.batch(text)
            parts = [text] if several is None else [text[part.start : part.stop] for part in several]
            passed = [new for part in parts if (new := self._message_up(part)) is not None]
            if several is None:
                line = "".join(passed).encode("utf-8", "surrogatepass")
            else:
                line = f"[{','.join(passed)}]\n".encode("utf-8", "surrogatepass") if passed else b""
        except Exception as problem:
            complain(problem)
        if line:
            self._upstream.write(line)
        self._waiting -= keys

    def _message_up(self, text: str) -> str | None:
        """The message for the upstream; None if it was answered here or cancelled."""
        message = json.loads(text)
        key = rewrite.key_of(message.get("id")) if isinstance(message, dict) else None
        if key is None:
            return text
        if key not in self._waiting:
            return None
        params = message.get("params")
        try:
            if self._is_read_call(message):
                reply, failed = self._read(params), False
            else:
                is_call = message.get("method") == TOOL_CALL
                if is_call and self._pinning.blocks(_name(message)):
                    self._pinning.refuse(str(_name(message)))
                nodes = list(rewrite.references(text)) if is_call else []
                edits = [(node.start, node.stop, json.dumps(self._backend.expand(node.value))) for node in nodes]
                if key not in self._waiting:
                    return None
                self._register(message)
                return edited(text, edits)
        except errors.LimpetError as problem:
            reply, failed = problem.message, True
        except Exception as problem:
            # The tool must not get the reference in place of the text.
            complain(problem, "The call was not made.")
            reply, failed = "Limpet failed inside; its line on stderr says how. The call was not made.", True
        answer = rewrite.tool_result(reply, failed=failed, modern=is_modern(params))
        if key in self._waiting:
            self._to_client.write(encode(result(key, answer)) + b"\n")
        return None

    def _read(self, params: Json) -> str:
        arguments = params.get("arguments")
        tool = self._listing.read_tool(str(params["name"])) or ""
        if arguments is not None and not isinstance(arguments, dict):
            raise errors.wrong_type(tool, "arguments", arguments, "an object")
        return self._backend.read(tool, arguments or {})

    # --- from the upstream --------------------------------------------------------------------------------------------

    def _down(self) -> None:
        for line in self._upstream.lines():
            self._last_line = None
            try:
                passes = self._look_down(line)
            except Exception as problem:
                complain(problem)
                passes = True
            if passes:
                self._to_client.write(line)
                self._half_line = not line.endswith(b"\n")
            self._last_line = time.monotonic()
        self._events.put("upstream")

    def _look_down(self, line: bytes) -> bool:
        """Find the requests that a line answers. Whether the line can pass at once."""
        key = rewrite.reply_id(line)
        if (why := bounds.problem(line)) is not None:
            self._refuse(key, why)
            return False
        if key is not None:
            request = self._pending.pop(key, OTHER)
            if request is OTHER or (request.message and self._passes(line, request)):
                return True
            requests = [request]
        else:
            requests = self._requests_of(line)
        if len(requests) == 1 and requests[0].method == "tools/list" and not self._pinning.strict:
            self._to_client.write(self._rewritten(line, requests))
            return False
        listed = any(request.method == "tools/list" for request in requests)
        if not listed and not any(request.message and not self._passes(line, request) for request in requests):
            return True
        self._keep(line, requests, self._refused(line) if listed and self._pinning.strict else line)
        return False

    def _refuse(self, key: rewrite.Key | None, why: str) -> None:
        """Drop a message that cannot pass. The request that it answers gets an error."""
        if key is None:
            say(why)
        elif self._pending.pop(key, None) is not None:
            self._to_client.write(bounds.refusal(key, why))

    def _passes(self, line: bytes, request: Pending) -> bool:
        """Whether the reply to a call needs no change, as far as can be seen without decoding it."""
        small = len(line) < self._backend.least and rewrite.FREE_MARK not in request.message
        return small and not (self._pinning.notes and _name(json.loads(request.message)) in self._pinning.notes)

    def _refused(self, line: bytes) -> bytes:
        """The errors that replace a list of tools which could not be compared, in strict mode."""
        why = "Limpet could not compare the tools with their seals, and strict mode lists nothing unchecked."
        value = json.loads(line)
        messages = value if isinstance(value, list) else [value]
        refusals = [error(RpcError(UPSTREAM_ENDED, why), rewrite.key_of(message.get("id"))) for message in messages]
        return encode(refusals if isinstance(value, list) else refusals[0]) + b"\n"

    def _requests_of(self, line: bytes) -> list[Pending]:
        """The requests that a line answers, found by decoding it; one per message of a batch."""
        if not rewrite.may_be_reply(line):
            return []
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return []
        requests = []
        for message in value if isinstance(value, list) else [value]:
            key = rewrite.key_of(message.get("id")) if isinstance(message, dict) and "method" not in message else None
            requests.append(OTHER if key is None else self._pending.pop(key, OTHER))
        return requests

    def _keep(self, line: bytes, requests: list[Pending], fallback: bytes) -> None:
        """Have a reply rewritten by a worker. If that fails or takes too long, the fallback goes through."""
        patience = KEEP_SECONDS + KEEP_SECONDS_PER_MIB * len(line) / (1 << 20)
        ticket = object()
        self._unfinished.add(ticket)
        self._jobs[ticket] = Job(fallback, time.monotonic() + (HANGING_SECONDS if self._hangs else patience))
        self._events.put("job")
        self._later(partial(self._work_down, ticket, line, requests))

    def _work_down(self, ticket: object, line: bytes, requests: list[Pending]) -> None:
        new: bytes | None = None
        try:
            new = self._rewritten(line, requests)
            self._hangs = False
        except Exception as problem:
            complain(problem)
        job = self._jobs.pop(ticket, None)
        if job is not None:
            self._finish(ticket, job.line if new is None else new)

    def _finish(self, ticket: object, line: bytes) -> None:
        self._to_client.write(line)
        self._unfinished.discard(ticket)
        self._events.put("job")

    def _rewritten(self, line: bytes, requests: list[Pending]) -> bytes:
        text = line.decode("utf-8")
        nodes = rewrite.batch(text) if len(requests) != 1 or text.lstrip()[:1] == "[" else None
        if nodes is None:
            new = self._message_down(text, requests[0])
        else:
            edits = [
                (node.start, node.stop, self._message_down(text[node.start : node.stop], request))
                for node, request in zip(nodes, requests, strict=True)
            ]
            new = edited(text, edits)
        return line if new is text else new.encode("utf-8")

    def _message_down(self, text: str, request: Pending) -> str:
        if request.method == "tools/list":
            return self._listing.add_to(text, self._backend.tools(), self._check)
        if not request.message:
            return text
        params = request.params()
        tool = str(params["name"])
        note = self._pinning.notes.pop(tool, None)
        # A text that was read back from another Limpet behind this one is not kept again.
        if self._upstream.owner(tool)[1] not in rewrite.READ_TOOL_NAMES and not self._listing.keeps_schema(tool):
            edits = self._keep_big(text, tool, params)
            text = edited(text, edits) if edits else text
        noted = rewrite.note_at_end(text, note) if note else None
        return edited(text, [noted]) if noted else text

    def _keep_big(self, text: str, tool: str, params: Json) -> list[Edit]:
        """Keep the big texts of a reply; the edits that put references in their place."""
        policy = self._backend.policy(tool, rewrite.free_tokens(params))
        if policy.threshold is None:
            return []
        call = f"{tool} {dumps(params.get('arguments') or {})}"
        reader = self._listing.name(rewrite.READ_TOOLS[0]) or rewrite.READ_TOOLS[0]
        references: dict[str, str] = {}  # by text

        def keep(content: str) -> str:
            if content not in references:
                origin = f"{call}, part {len(references) + 1} of its result" if references else call
                references[content] = self._backend.keep(tool, content, origin, redact=policy.redact, reader=reader)
            return references[content]

        return rewrite.kept(text, policy, keep)

    def _check(self, tools: Mapping[str, Json], complete: bool) -> Collection[str]:
        """Compare a list with the pins: at once in strict mode, else in a worker while the list passes."""
        if self._pinning.strict:
            return self._pinning.compare(tools, complete)
        if complete:
            ticket = object()
            self._unfinished.add(ticket)  # a client that leaves at once has its tools pinned too
            self._later(partial(self._compare, ticket, tools))
        return ()

    def _compare(self, ticket: object, tools: Mapping[str, Json]) -> None:
        self._pinning.compare_later(tools)
        self._unfinished.discard(ticket)
        self._events.put("job")


def _name(message: Json) -> object:
    params = message.get("params")
    name = params.get("name") if isinstance(params, dict) else None
    return name if isinstance(name, str) else None


def serve(connect: Callable[[Events], Link], backend: Backend) -> int:
    """Connect a client on stdin and stdout with the link that `connect` opens; the exit code."""
    nothing = os.open(os.devnull, os.O_RDWR)
    # Both streams belong to the protocol: no other code in this process may read or write them.
    client_in, client_out = os.dup(0), os.dup(1)
    os.dup2(nothing, 0)
    os.dup2(2 if sys.stderr else nothing, 1)
    return Wrapper(connect, backend, client_in, client_out).run()
