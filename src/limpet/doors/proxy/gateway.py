"""`limpet gateway --config FILE`: several MCP servers that look like one, for clients that take a single server.

It is a `Link`, so the wrapper in front of it keeps big results, adds the read tools, expands references and pins
definitions. The gateway routes messages to the right server and back. Requests of the client keep their ids, because
each goes to one server; requests of servers get new ids, because two servers may use the same. A list is requested from
all servers at once and answered with what has arrived in time.

The gateway speaks every revision to clients and to servers. A request of 2026-07-28 is known by its `_meta`, and is
answered in its form. `Member` translates between the two eras. A client of 2026-07-28 takes no requests and no
announcements of servers, so it gets none from those that know the handshake alone.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from queue import SimpleQueue

from limpet import __version__
from limpet.doors.proxy import gateway_rules, rewrite
from limpet.doors.proxy.gateway_rules import Kind
from limpet.doors.proxy.gateway_servers import DISCOVER, HANDSHAKE, Forwarded, Member, Spec
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
from limpet.protocol import revisions
from limpet.protocol.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, Json, RpcError, encode, error, result

WAIT_SECONDS = 8.0  # for a server to start or to list; clients wait 30 to 60 seconds in all
LATE_SECONDS = 1.0  # for a server that was late before and whose list is known
START_FACTOR = 4  # a call waits this many times longer for the start of its server than a list

ALL = ""  # not the name of a server

Lists = dict[str, list[Json]]  # by server


class Gateway:
    """All servers. Everything happens under one lock, and nothing under it blocks."""

    def __init__(self, specs: Sequence[Spec], events: Events, wait: float = WAIT_SECONDS) -> None:
        self.lock = threading.RLock()
        self._events = events
        self._signals = take_signals(events)
        self._wait = wait
        self._to_client: SimpleQueue[bytes | None] = SimpleQueue()
        self._hello: Json = {}  # what servers get in `initialize`
        self._greeted = False  # the client has begun with a handshake, so it takes requests and announcements
        self._modern: dict[rewrite.Key, str] = {}  # requests of 2026-07-28 that are answered here, with their methods
        self._sent: dict[str, Lists] = {}  # the lists the client has, by method
        self._late: set[str] = set()
        self._owners: dict[str, dict[str, str]] = {}  # of resources and templates, by method
        self._refused: set[tuple[str, str]] = set()
        self._server_requests: dict[rewrite.Key, tuple[Member, object]] = {}  # the server, and its own id
        self._tokens: dict[rewrite.Key, tuple[Member, object]] = {}  # the same for progress tokens
        self._count = 0
        self._gathering: list[ListRequest] = []
        self._members = {spec.name: Member(spec, self, wait) for spec in specs}
        with self.lock:
            for member in self._members.values():
                member.launch()

    # --- as a link ----------------------------------------------------------------------------------------------------

    def owner(self, tool: str) -> tuple[str, str]:
        return gateway_rules.parted(tool)

    def lines(self) -> Iterator[bytes]:
        return queued(self._to_client)

    def close(self) -> bool:
        return True

    def write(self, line: bytes) -> None:
        if line.isspace():
            return
        try:
            text = line.decode("utf-8", "surrogatepass")
            several = rewrite.batch(text)
        except (ValueError, IndexError, RecursionError):
            self._to_client.put(encode(error(RpcError(-32700, "The message is not JSON."), None)) + b"\n")
            return
        with self.lock:
            for part in [text] if several is None else [text[node.start : node.stop] + "\n" for node in several]:
                try:
                    self._from_client(part)
                except Exception as problem:
                    complain(problem, "A message was dropped.")

    def wait(self, work: Work, to_client: Pipe) -> End:
        code = until_client_leaves(self._events, self._signals, work, to_client)
        leaving = [threading.Thread(target=member.leave, daemon=True) for member in self._members.values()]
        for thread in leaving:
            thread.start()
        for thread in leaving:
            thread.join()
        self._to_client.put(None)
        return End(code, "The gateway was left before the answer came. Start it again, then repeat the call.")

    # --- from the client ----------------------------------------------------------------------------------------------

    def _from_client(self, text: str) -> None:
        message = json.loads(text)
        if not isinstance(message, dict):
            return
        method, key = message.get("method"), rewrite.key_of(message.get("id"))
        params = message.get("params")
        arguments: Json = params if isinstance(params, dict) else {}
        if not isinstance(method, str):
            self._reply_to_server(text, key)
        elif key is None:
            self._notice(method, arguments, text)
        else:
            self._request(key, method, arguments, text)

    def _request(self, key: rewrite.Key, method: str, params: Json, text: str) -> None:
        modern = method != HANDSHAKE and revisions.is_modern(params)
        if modern and not self._begin_modern(key, method, params):
            return
        if method in gateway_rules.KINDS:
            self._list(key, gateway_rules.KINDS[method])
        elif method in ("tools/call", "prompts/get"):
            self._by_name(key, method, params.get("name"), ("params", "name"), text)
        elif method == "completion/complete":
            self._complete(key, params, text)
        elif method == "resources/read":
            self._by_uri(key, method, params.get("uri"), text)
        elif modern and method == DISCOVER:
            self._welcome(key, gateway_rules.discovered)
        elif modern or not self._request_before_2026(key, method, params, text):
            self._refuse(key, METHOD_NOT_FOUND, f"Method not found: {method[:100]}")

    def _request_before_2026(self, key: rewrite.Key, method: str, params: Json, text: str) -> bool:
        """Answer what revisions with a handshake have and 2026-07-28 has not. False if it is nothing of that."""
        if method == HANDSHAKE:
            self._hello, self._greeted = params, True
            revision = str(params.get("protocolVersion"))
            self._welcome(key, lambda words: gateway_rules.welcome(revision, __version__, words))
        elif method in ("resources/subscribe", "resources/unsubscribe"):
            self._by_uri(key, method, params.get("uri"), text)
        elif method == "ping":
            self._answer(key, {})
        elif method == "logging/setLevel":
            for member in self._members.values():
                if member.ready and member.can("logging") and not member.modern:
                    member.ask(method, params, lambda _reply: None)
            self._answer(key, {})
        else:
            return False
        return True

    def _notice(self, method: str, params: Json, text: str) -> None:
        line = text.encode("utf-8", "surrogatepass")
        if method == "notifications/cancelled":
            key = rewrite.key_of(params.get("requestId"))
            if key is not None:
                self._modern.pop(key, None)
                self._gathering = [gather for gather in self._gathering if gather.key != key]
                any(member.cancel(key, line) for member in self._members.values())
        elif method == "notifications/progress":
            token = rewrite.key_of(params.get("progressToken"))
            if token in self._tokens:
                member, own = self._tokens[token]
                member.write(_edited(text, (("params", "progressToken"), own)))
        elif method != "notifications/initialized":  # each server got that when it was initialised
            for member in self._members.values():
                if member.ready:
                    member.write(line)

    def _reply_to_server(self, text: str, key: rewrite.Key | None) -> None:
        if key in self._server_requests:
            member, own = self._server_requests.pop(key)
            self._tokens.pop(key, None)
            member.write(_edited(text, (("id",), own)))

    def _begin_modern(self, key: rewrite.Key, method: str, params: Json) -> bool:
        """Register a request of 2026-07-28. False if it was refused."""
        meta = params["_meta"]
        if not isinstance(meta, dict):
            return False
        try:
            revisions.named_revision(meta)
        except RpcError as problem:
            self.to_client(encode(error(problem, key)) + b"\n")
            return False
        self._modern[key] = method
        if not self._hello:
            self._hello = gateway_rules.hello_of(meta, __version__)
        return True

    def _welcome(self, key: rewrite.Key, answer: Callable[[Mapping[str, str]], Json]) -> None:
        """Begin with all servers; the client is answered when they have answered, or when the time is up."""

        def done(_lists: Lists) -> None:
            texts = {name: member.result.get("instructions") for name, member in self._members.items() if member.ready}
            self._answer(key, answer({name: text for name, text in texts.items() if isinstance(text, str)}))

        self._gather(key, None, done)

    def _list(self, key: rewrite.Key, kind: Kind) -> None:
        def done(lists: Lists) -> None:
            self._sent[kind.method] = lists
            merged = self._merged(kind, lists)
            missing = {name: self._why_missing(name) for name in self._members if name not in lists}
            answer: Json = {kind.field: merged.items}
            self._answer(key, answer | ({"_meta": {gateway_rules.MISSING_KEY: missing}} if missing else {}))

        self._gather(key, kind, done)

    def _merged(self, kind: Kind, lists: Lists) -> gateway_rules.Merged:
        merged = gateway_rules.merged(kind, lists)
        self._owners[kind.method] = merged.owners
        for refusal in merged.refused:
            if refusal not in self._refused:
                self._refused.add(refusal)
                say(f"{refusal[0]}: left out, because {refusal[1]}", "gateway")
        return merged

    def _why_missing(self, name: str) -> str:
        member = self._members[name]
        if member.starting:
            return "it is still starting"
        return "it did not list in time" if member.ready else member.why

    def _by_name(self, key: rewrite.Key, method: str, name: object, path: tuple[str, ...], text: str) -> None:
        server, own = gateway_rules.parted(name if isinstance(name, str) else "")
        member = self._members.get(server)
        if member is None:
            form = f"server{gateway_rules.SEPARATOR}name"
            why = f"There is no {str(name)[:100]!r}: a name is {form}, and the servers are {', '.join(self._members)}."
            self._refuse(key, INVALID_PARAMS, why)
            return
        self._forward(member, key, method, _edited(text, (path, own)))

    def _complete(self, key: rewrite.Key, params: Json, text: str) -> None:
        ref = params.get("ref")
        reference: Json = ref if isinstance(ref, dict) else {}
        if reference.get("type") == "ref/resource":
            self._by_uri(key, "completion/complete", reference.get("uri"), text)
        else:
            self._by_name(key, "completion/complete", reference.get("name"), ("params", "ref", "name"), text)

    def _by_uri(self, key: rewrite.Key, method: str, uri: object, text: str) -> None:
        """Route a request to the server of a resource. Lists that are not known yet are requested first."""
        kinds = (gateway_rules.RESOURCES, gateway_rules.TEMPLATES)
        unknown = [kind for kind in kinds if kind.method not in self._owners]
        if unknown:

            def again(lists: Lists) -> None:
                self._merged(unknown[0], lists)
                self._by_uri(key, method, uri, text)

            self._gather(key, unknown[0], again)
            return
        owners = [self._owners[kind.method] for kind in kinds]
        server = gateway_rules.owner_of(uri, *owners) if isinstance(uri, str) else None
        capable = [member for member in self._members.values() if member.can("resources")]
        if server is None and len(capable) == 1:
            server = capable[0].name  # a URI from a result: no other server has resources
        if server is None:
            why = f"no server lists the resource {str(uri)[:200]!r}. resources/list names those there are."
            self._refuse(key, INVALID_PARAMS, why)
            return
        self._forward(self._members[server], key, method, text.encode("utf-8", "surrogatepass"))

    def _forward(self, member: Member, key: rewrite.Key, method: str, line: bytes) -> None:
        self._begin(member)
        if member.starting:
            self.later(self._wait * START_FACTOR, member.give_up_queued)
        member.forward(key, Forwarded(method, modern=self._modern.pop(key, None) is not None), line)

    def _begin(self, member: Member) -> None:
        member.initialise(self._hello, modern=not self._greeted)

    # --- lists of all -------------------------------------------------------------------------------------------------

    def _gather(self, key: rewrite.Key, kind: Kind | None, done: Callable[[Lists], None]) -> None:
        """Request a list from every server, or wait until it is initialised; `done` gets what has arrived in time."""
        gather = ListRequest(key, kind, done)
        self._gathering.append(gather)
        gather.waiting.add(ALL)  # the list is not complete before every server has been asked
        for member in self._members.values():
            self._begin(member)
            if member.ready:
                self._ask(member, gather)
            elif member.starting and time.monotonic() < member.due:
                gather.waiting.add(member.name)
        gather.waiting.discard(ALL)
        if gather.waiting:
            lists = (self._last_list(name, kind) for name in gather.waiting)
            late = gather.waiting <= self._late and all(items is not None for items in lists)
            self.later(LATE_SECONDS if late else self._wait, lambda: self._finish(gather))
        else:
            self._finish(gather)

    def _ask(self, member: Member, gather: ListRequest) -> None:
        if gather.kind is None:
            gather.waiting.discard(member.name)
            return
        gather.waiting.add(member.name)
        kind = gather.kind

        def got(items: list[Json] | None) -> None:
            gather.waiting.discard(member.name)
            if items is not None:
                gather.lists[member.name] = items
            if gather.finished:
                if items is not None and self._sent.get(kind.method, {}).get(member.name) != items:
                    self._tell_changed(kind)
            else:
                self._late.discard(member.name)
                self._finish_if_complete(gather)

        member.collect(kind, got)

    def _finish_if_complete(self, gather: ListRequest) -> None:
        if not gather.waiting:
            self._finish(gather)

    def _finish(self, gather: ListRequest) -> None:
        if gather.finished or gather not in self._gathering:
            return
        gather.finished = True
        self._gathering.remove(gather)
        for name in gather.waiting:
            self._late.add(name)
            items = self._last_list(name, gather.kind)
            if items is not None:
                gather.lists[name] = items
        order = [name for name in self._members if name in gather.lists]
        gather.done({name: gather.lists[name] for name in order})

    def _last_list(self, name: str, kind: Kind | None) -> list[Json] | None:
        return None if kind is None else self._members[name].lists.get(kind.method)

    def later(self, seconds: float, work: Callable[[], object]) -> None:
        def run() -> None:
            with self.lock:
                work()

        timer = threading.Timer(seconds, run)
        timer.daemon = True
        timer.start()

    # --- from the servers ---------------------------------------------------------------------------------------------

    def ready(self, member: Member) -> None:
        for gather in list(self._gathering):
            if member.name in gather.waiting:
                self._ask(member, gather)
                self._finish_if_complete(gather)
        for method, lists in self._sent.items():
            if member.name not in lists:
                self._tell_changed(gateway_rules.KINDS[method])

    def gone(self, member: Member) -> None:
        for gather in list(self._gathering):
            if member.name in gather.waiting:
                gather.waiting.discard(member.name)
                self._finish_if_complete(gather)
        for calls in (self._server_requests, self._tokens):
            for key in [key for key, (server, _) in calls.items() if server is member]:
                del calls[key]

    def from_server(self, member: Member, line: bytes) -> None:
        text = line.decode("utf-8", "surrogatepass")
        message = json.loads(text)
        params = message.get("params")
        arguments: Json = params if isinstance(params, dict) else {}
        if not (self._greeted or member.modern or message["method"] == "notifications/progress"):
            if "id" in message:
                why = "The client takes no requests of servers."
                member.write(encode(error(RpcError(METHOD_NOT_FOUND, why), message["id"])) + b"\n")
        elif "id" in message:
            self._request_of_server(member, message["id"], arguments, text)
        elif message["method"] == "notifications/cancelled":
            cancelled = (member, arguments.get("requestId"))
            key = next((key for key, request in self._server_requests.items() if request == cancelled), None)
            if key is not None:
                self.to_client(_edited(text, (("params", "requestId"), key)))
        else:
            if message["method"] == gateway_rules.RESOURCES.changed:
                for kind in (gateway_rules.RESOURCES, gateway_rules.TEMPLATES):
                    self._owners.pop(kind.method, None)
            self.to_client(line if line.endswith(b"\n") else line + b"\n")

    def _request_of_server(self, member: Member, id: object, params: Json, text: str) -> None:
        self._count += 1
        key = f"{member.name}-{self._count}"
        self._server_requests[key] = (member, id)
        changes: list[tuple[tuple[str, ...], object]] = [(("id",), key)]
        meta = params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if token is not None:
            self._tokens[key] = (member, token)
            changes.append((("params", "_meta", "progressToken"), key))
        self.to_client(_edited(text, *changes))

    # --- to the client ------------------------------------------------------------------------------------------------

    def to_client(self, line: bytes) -> None:
        self._to_client.put(line)

    def unanswered(self, key: rewrite.Key, request: Forwarded, why: str) -> None:
        """A call gets a result that the agent can read; everything else an error."""
        if request.modern:
            self._modern[key] = request.method
        if request.method == "tools/call":
            message = f"{why[:1].upper()}{why[1:].rstrip('.')}. The other servers are not affected."
            self._answer(key, rewrite.tool_result(message, failed=True, modern=False))
        else:
            self._refuse(key, UPSTREAM_ENDED, why)

    def _answer(self, key: rewrite.Key, value: Json) -> None:
        method = self._modern.pop(key, None)
        if method is not None:
            value = gateway_rules.modern_result(method, value, __version__)
        self.to_client(encode(result(key, value)) + b"\n")

    def _refuse(self, key: rewrite.Key, code: int, why: str) -> None:
        self._modern.pop(key, None)
        self.to_client(encode(error(RpcError(code, why), key)) + b"\n")

    def _tell_changed(self, kind: Kind) -> None:
        if self._greeted:
            self.to_client(encode({"jsonrpc": "2.0", "method": kind.changed}) + b"\n")


class ListRequest:
    """A list that is being collected from all servers."""

    def __init__(self, key: rewrite.Key, kind: Kind | None, done: Callable[[Lists], None]) -> None:
        self.key = key
        self.kind = kind
        self.done = done
        self.lists: Lists = {}
        self.waiting: set[str] = set()  # servers
        self.finished = False


def _edited(text: str, *changes: tuple[tuple[str, ...], object]) -> bytes:
    line = gateway_rules.replaced(text, changes).encode("utf-8", "surrogatepass")
    return line if line.endswith(b"\n") else line + b"\n"
