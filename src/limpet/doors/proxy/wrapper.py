"""`limpet wrap`: a transparent wrapper of one MCP server, which is a command (`-- command args…`) or a `--url`.

Every line passes as the bytes it came in, both ways, whatever it holds. Four things are looked at and nothing else:
big results of `tools/call` are kept and a preview goes on in their place; the last page of `tools/list` gets our two
read tools; calls of these two are answered here; and `hold://…` among the arguments of a call becomes the text it
stands for. wrap_rules.py says how, wrap_memory.py is Limpet as it is used here, and what stands behind us is a Link
(wrap_link.py): this file carries the lines between them. `limpet gateway` is the same in front of many.

One thread reads the client, one reads the upstream. Neither ever touches the store: that is done by workers, so that
progress and cancellation pass while something is being kept. The main thread takes signals, gives up on work that
takes too long (the original goes through then), and ends what is to be ended.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from limpet import errors
from limpet.doors.proxy import rewrite as rules
from limpet.doors.proxy.tool_guard import Guard
from limpet.doors.proxy.upstream import UPSTREAM_ENDED, Events, Link, Pipe, Workers, complain, lines, say, widen
from limpet.protocol.jsonrpc import Json, RpcError, dumps, encode, error, result

if TYPE_CHECKING:
    from limpet.upkeep.tool_pins import Seal

KEEP_SECONDS = 10.0  # what keeping one result may take before the original goes through instead
KEEP_SECONDS_A_MIB = 0.25  # … and as much more for each MiB
IMPATIENT_SECONDS = 1.0  # the same, while the store is known to hang


class Memory(Protocol):
    """What the wrapper needs from Limpet. Every method may raise anything; the original goes through then."""

    strict: bool
    least: int  # bytes: smaller results are never kept, unless the call says how much of the window is free

    def tools(self) -> Sequence[Json]: ...
    def see(self, server: str, tools: Mapping[str, Json], complete: bool) -> tuple[Seal, ...]: ...
    def threshold(self, tool: str, free: int | None) -> int | None: ...
    def keep(self, tool: str, content: str, call: str, free: int | None) -> str: ...
    def expand(self, uri: str) -> str: ...
    def read(self, tool: str, arguments: Mapping[str, Any]) -> Json: ...
    def close(self) -> None: ...


class Asked(NamedTuple):
    """A request of the client that the upstream has not answered yet."""

    method: str
    message: bytes = b""  # of a call; it is decoded only when its result is big

    def params(self) -> Json:
        found: Json = json.loads(self.message)["params"]
        return found


TOOL_CALL = "tools/call"
OTHER = Asked("")  # neither a call nor a listing


class Job(NamedTuple):
    """A reply that waits for the store."""

    line: bytes  # what goes through if that takes too long
    due: float


class Wrapper:
    """One client, one upstream, and what is under way between them."""

    def __init__(self, connect: Callable[[Events], Link], memory: Memory, client_in: int, client_out: int) -> None:
        self._memory = memory
        self._client_in = client_in
        self._events: Events = SimpleQueue()
        self._to_client = Pipe(client_out, lambda: self._events.put("client"))
        self._upstream = connect(self._events)
        for descriptor in (client_in, client_out):
            widen(descriptor)
        self._listing = rules.Listing()
        self._guard = Guard(memory.see, self._upstream.owner, strict=memory.strict)
        self._asked: dict[rules.Key, Asked] = {}
        self._held: set[rules.Key] = set()  # requests that wait for the store and have not reached the upstream
        self._jobs: dict[object, Job] = {}  # whoever takes a job out of it hands the reply on
        self._unfinished: set[object] = set()  # jobs whose reply is not with the client yet, and seals not yet compared
        self._hangs = False  # the store did not answer in time, and has not answered since
        self._half = False  # the last thing sent to the client had no line end
        self._heard: float | None = 0.0  # when the upstream last said something; None while that is handed on
        self._later = Workers().do

    def run(self) -> int:
        """Until one of both sides ends; the exit code."""
        threading.Thread(target=self._down, daemon=True).start()
        threading.Thread(target=self._up, daemon=True).start()
        self._later(self._memory.tools)  # its imports then happen while the upstream starts
        end = self._upstream.wait(self, self._to_client)
        # The client must not wait for answers that cannot come any more.
        waiting = [*self._asked, *self._held]
        if waiting and self._half:
            self._to_client.write(b"\n")
        for id in waiting:
            self._to_client.write(encode(error(RpcError(UPSTREAM_ENDED, end.told), id)) + b"\n")
        if not self._unfinished and not self._held:
            self._memory.close()
        return end.code

    # --- what the end has to know -------------------------------------------------------------------------------------

    def unanswered(self) -> bool:
        return bool(self._asked or self._held or self._unfinished)

    def keeping(self) -> bool:
        return bool(self._unfinished)

    def heard(self) -> float:
        return time.monotonic() if self._heard is None else self._heard

    def close_upstream(self) -> bool:
        return not self._held and self._upstream.close()

    def give_up_late(self) -> float | None:
        now = time.monotonic()
        for ticket, job in list(self._jobs.items()):
            if job.due <= now and self._jobs.pop(ticket, None) is not None:
                self._hangs = True
                say("the store took too long, so a result went through as it was")
                # Not from here: the main thread must stay free for signals while a client is slow to read.
                threading.Thread(target=self._finish, args=(ticket, job.line), daemon=True).start()
        return min((job.due for job in list(self._jobs.values())), default=None)

    # --- from the client ----------------------------------------------------------------------------------------------

    def _up(self) -> None:
        for line in lines(self._client_in):
            try:
                passes = self._look_up(line)
            except Exception as problem:
                complain(problem)
                passes = True
            if passes:
                self._upstream.write(line)
        self._events.put("client")

    def _look_up(self, line: bytes) -> bool:
        """Take note of what the client asks for. Whether the line goes on right now."""
        plain = rules.plain_request(line)
        if plain is not None and not (self._guard.strict and plain[1] == b"tools/call"):
            id, method = plain
            self._asked[id] = Asked(TOOL_CALL, line) if method == b"tools/call" else OTHER
            return True
        if b'"method"' not in line:
            return True
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return True  # the upstream shall say what is wrong with it
        messages = [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, dict)]
        refers = any(mark in line for mark in rules.REFERENCE_MARKS)
        if any(part.get("method") == TOOL_CALL and (refers or self._to_look_at(part)) for part in messages):
            keys = {key for part in messages if (key := rules.key_of(part.get("id"))) is not None}
            self._held |= keys
            self._later(partial(self._work_up, line, keys))
            return False
        if any(part.get("method") == "notifications/cancelled" and self._cancel(part) for part in messages):
            return len(messages) > 1
        for part in messages:
            self._note(part)
        return True

    def _to_look_at(self, message: Json) -> bool:
        return self._is_ours(message) or self._guard.blocks(_name(message))

    def _is_ours(self, message: Json) -> bool:
        name = _name(message) if message.get("method") == TOOL_CALL else None
        return isinstance(name, str) and self._listing.ours(name) is not None

    def _cancel(self, message: Json) -> bool:
        """Forget a cancelled request. True when the upstream has never seen it and need not hear of this."""
        params = message.get("params")
        key = rules.key_of(params.get("requestId")) if isinstance(params, dict) else None
        if key is None:
            return False
        self._asked.pop(key, None)
        held = key in self._held
        self._held.discard(key)
        return held

    def _note(self, message: Json) -> None:
        method, key, params = message.get("method"), rules.key_of(message.get("id")), message.get("params")
        if key is None or not isinstance(method, str):
            return
        given: Json = params if isinstance(params, dict) else {}
        if method == "tools/list" and given.get("cursor") is None:
            self._listing.restart()
        call = method == TOOL_CALL and isinstance(given.get("name"), str)
        self._asked[key] = Asked(method, json.dumps(message).encode()) if call else Asked(method)

    def _work_up(self, line: bytes, keys: set[rules.Key]) -> None:
        """Answer calls of our tools, put texts in the place of references, and hand on the rest."""
        try:
            text = line.decode("utf-8")
            several = rules.batch(text)
            parts = [text] if several is None else [text[part.start : part.end] for part in several]
            passed = [new for part in parts if (new := self._one_up(part)) is not None]
            if several is None:
                line = "".join(passed).encode("utf-8", "surrogatepass")
            else:
                line = f"[{','.join(passed)}]\n".encode("utf-8", "surrogatepass") if passed else b""
        except Exception as problem:
            complain(problem)
        if line:
            self._upstream.write(line)
        self._held -= keys

    def _one_up(self, text: str) -> str | None:
        """One message as the upstream is to see it; None when it has been answered here or was cancelled."""
        message = json.loads(text)
        key = rules.key_of(message.get("id")) if isinstance(message, dict) else None
        if key is None:
            return text
        if key not in self._held:
            return None
        params = message.get("params")
        try:
            if self._is_ours(message):
                told, failed = dumps(self._read(params)), False
            else:
                called = message.get("method") == TOOL_CALL
                if called and self._guard.blocks(_name(message)):
                    self._guard.refuse(str(_name(message)))
                places = list(rules.references(text)) if called else []
                edits = [(place.start, place.end, json.dumps(self._memory.expand(place.value))) for place in places]
                if key not in self._held:
                    return None
                self._note(message)
                return rules.edited(text, edits)
        except errors.LimpetError as problem:
            told, failed = problem.message, True
        except Exception as problem:
            # A tool that is given the reference instead of the text would do the wrong thing with it.
            complain(problem, "The call was not made.")
            told, failed = "Limpet failed inside; its line on stderr says how. The call was not made.", True
        answer = rules.tool_result(told, failed=failed, modern=rules.is_modern(params))
        if key in self._held:
            self._to_client.write(encode(result(key, answer)) + b"\n")
        return None

    def _read(self, params: Json) -> Json:
        arguments = params.get("arguments")
        tool = self._listing.ours(str(params["name"])) or ""
        if arguments is not None and not isinstance(arguments, dict):
            raise errors.wrong_type(tool, "arguments", arguments, "an object")
        return self._memory.read(tool, arguments or {})

    # --- from the upstream --------------------------------------------------------------------------------------------

    def _down(self) -> None:
        for line in self._upstream.lines():
            self._heard = None
            try:
                passes = self._look_down(line)
            except Exception as problem:
                complain(problem)
                passes = True
            if passes:
                self._to_client.write(line)
                self._half = not line.endswith(b"\n")
            self._heard = time.monotonic()
        self._events.put("upstream")

    def _look_down(self, line: bytes) -> bool:
        """Find out what a line answers. Whether it goes on as it is, right now."""
        key = rules.reply_id(line)
        if key is not None:
            asked = self._asked.pop(key, OTHER)
            if asked is OTHER or (asked.message and self._passes(line, asked)):
                return True
            found = [asked]
        else:
            found = self._answered(line)
        if len(found) == 1 and found[0].method == "tools/list" and not self._guard.strict:
            self._to_client.write(self._rewritten(line, found))
            return False
        listed = any(asked.method == "tools/list" for asked in found)
        if not listed and not any(asked.message and not self._passes(line, asked) for asked in found):
            return True
        self._keep(line, found, self._closed(line) if listed and self._guard.strict else line)
        return False

    def _passes(self, line: bytes, asked: Asked) -> bool:
        """Whether the reply to a call can hold nothing to be kept or said, which is seen without decoding it."""
        small = len(line) < self._memory.least and rules.FREE_MARK not in asked.message
        return small and not (self._guard.notes and _name(json.loads(asked.message)) in self._guard.notes)

    def _closed(self, line: bytes) -> bytes:
        """What stands in place of a list of tools that could not be checked, where it must be."""
        told = "Limpet could not compare the tools with their seals, and strict mode lists nothing unchecked."
        value = json.loads(line)
        several = value if isinstance(value, list) else [value]
        refusals = [error(RpcError(UPSTREAM_ENDED, told), rules.key_of(one.get("id"))) for one in several]
        return encode(refusals if isinstance(value, list) else refusals[0]) + b"\n"

    def _answered(self, line: bytes) -> list[Asked]:
        """The same by decoding, for what is not written the usual way. An item for each message of a batch."""
        if not rules.may_be_reply(line):
            return []
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return []
        found = []
        for message in value if isinstance(value, list) else [value]:
            key = rules.key_of(message.get("id")) if isinstance(message, dict) and "method" not in message else None
            found.append(OTHER if key is None else self._asked.pop(key, OTHER))
        return found

    def _keep(self, line: bytes, found: list[Asked], otherwise: bytes) -> None:
        """Have a reply rewritten by a worker. If that fails or takes too long, the other line goes through."""
        patience = KEEP_SECONDS + KEEP_SECONDS_A_MIB * len(line) / (1 << 20)
        ticket = object()
        self._unfinished.add(ticket)
        self._jobs[ticket] = Job(otherwise, time.monotonic() + (IMPATIENT_SECONDS if self._hangs else patience))
        self._events.put("job")
        self._later(partial(self._work_down, ticket, line, found))

    def _work_down(self, ticket: object, line: bytes, found: list[Asked]) -> None:
        new: bytes | None = None
        try:
            new = self._rewritten(line, found)
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

    def _rewritten(self, line: bytes, found: list[Asked]) -> bytes:
        text = line.decode("utf-8")
        several = rules.batch(text) if len(found) != 1 or text.lstrip()[:1] == "[" else None
        if several is None:
            new = self._one_down(text, found[0])
        else:
            pairs = zip(several, found, strict=True)
            new = rules.edited(
                text, [(at.start, at.end, self._one_down(text[at.start : at.end], asked)) for at, asked in pairs]
            )
        return line if new is text else new.encode("utf-8")

    def _one_down(self, text: str, asked: Asked) -> str:
        if asked.method == "tools/list":
            return self._listing.add_to(text, self._memory.tools(), self._check)
        if not asked.message:
            return text
        params = asked.params()
        tool = str(params["name"])
        note = self._guard.notes.pop(tool, None)
        edits = [edit for edit in [note and rules.note_at_end(text, note)] if edit]
        # What was read back from another Limpet behind us is not kept once more.
        if self._upstream.owner(tool)[1] not in rules.OUR_NAMES:
            edits += self._kept(text, tool, params)
        return rules.edited(text, edits) if edits else text

    def _kept(self, text: str, tool: str, params: Json) -> list[rules.Edit]:
        """Keep what is big in a reply; what goes in its place."""
        free = rules.free_tokens(params)
        threshold = self._memory.threshold(tool, free)
        if threshold is None:
            return []
        call = f"{tool} {dumps(params.get('arguments') or {})}"
        kept: dict[str, str] = {}
        edits = []
        for part in rules.big_texts(text, threshold, self._listing.schema(tool)):
            if part.value not in kept:
                made_by = f"{call}, part {len(kept) + 1} of its result" if kept else call
                shown = self._memory.keep(tool, part.value, made_by, free)
                kept[part.value] = self._with_real_name(shown, part.value)
            if kept[part.value] != part.value:
                edits.append((part.start, part.end, dumps(kept[part.value])))
        return edits

    def _check(self, tools: Mapping[str, Json], complete: bool) -> Collection[str]:
        """Compare a list with the seals: at once where that decides, else by a worker while the list goes on."""
        if self._guard.strict:
            return self._guard.look(tools, complete)
        if complete:
            ticket = object()
            self._unfinished.add(ticket)  # even a short visit is to leave its seals
            self._later(partial(self._look, ticket, tools))
        return ()

    def _look(self, ticket: object, tools: Mapping[str, Json]) -> None:
        self._guard.look_later(tools)
        self._unfinished.discard(ticket)
        self._events.put("job")

    def _with_real_name(self, shown: str, content: str) -> str:
        """A reference ends with the tool that reads it, which may have another name in front of this upstream."""
        name = self._listing.name(rules.READ_TOOLS[0])
        if shown is content or name in (None, rules.READ_TOOLS[0]):
            return shown
        before, _, after = shown.rpartition(f"{rules.READ_TOOLS[0]}(")
        return f"{before}{name}({after}" if before else shown


def _name(message: Json) -> object:
    params = message.get("params")
    name = params.get("name") if isinstance(params, dict) else None
    return name if isinstance(name, str) else None


def serve(connect: Callable[[Events], Link], memory: Memory) -> int:
    """Stand between a client on stdin and stdout and what `connect` gives; the exit code."""
    nothing = os.open(os.devnull, os.O_RDWR)
    # Both streams belong to the protocol: nobody else in this process may read or write them.
    client_in, client_out = os.dup(0), os.dup(1)
    os.dup2(nothing, 0)
    os.dup2(2 if sys.stderr else nothing, 1)
    return Wrapper(connect, memory, client_in, client_out).run()
