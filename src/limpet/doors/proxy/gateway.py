"""`limpet gateway --config FILE`: many MCP servers that look like one, for clients with one place for a server.

It is a Link, so the wrapper stands in front of it and does what it does everywhere: keeps big results, adds the read
tools, puts texts in the place of references, watches over definitions. Here messages are only led to the right server
and back. Requests keep the client's ids, because each goes to one server; requests of servers get ids of our own,
because two servers may use the same. Lists are asked of all servers at once and answered with what has come in time.

The gateway speaks the revisions that begin with a handshake; clients of 2026-07-28 fall back to one of these.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue

from limpet import __version__
from limpet.doors.proxy import gateway_rules as many
from limpet.doors.proxy import rewrite as rules
from limpet.doors.proxy.gateway_config import Spec
from limpet.doors.proxy.gateway_member import Member
from limpet.doors.proxy.gateway_rules import Kind
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
from limpet.protocol.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, Json, RpcError, encode, error, result

WAIT_SECONDS = 8.0  # for a server to start or to list; clients wait 30 to 60 seconds for all of it
LATE_SECONDS = 1.0  # … for one that was late before and whose list is known
START_FACTOR = 4  # a call waits for the start of its server so many times longer than a list

ALL = ""  # no server is called so

Lists = dict[str, list[Json]]  # by server


class Gateway:
    """All servers. Whatever happens happens under one lock, and nothing under it waits."""

    def __init__(self, specs: Sequence[Spec], events: Events, wait: float = WAIT_SECONDS) -> None:
        self.lock = threading.RLock()
        self._events = events
        self._signals = take_signals(events)
        self._wait = wait
        self._heard: SimpleQueue[bytes | None] = SimpleQueue()
        self._hello: Json = {}
        self._given: dict[str, Lists] = {}  # what the client was last told, by method
        self._late: set[str] = set()
        self._owners: dict[str, dict[str, str]] = {}  # of resources and templates, by method
        self._refused: set[tuple[str, str]] = set()
        self._asked_by: dict[rules.Key, tuple[Member, object]] = {}  # requests of servers: whose, and its own id
        self._tokens: dict[rules.Key, tuple[Member, object]] = {}  # the same for tokens of progress
        self._count = 0
        self._gathering: list[Gather] = []
        self._members = {spec.name: Member(spec, self, wait) for spec in specs}
        with self.lock:
            for member in self._members.values():
                member.launch()

    # --- as a link ----------------------------------------------------------------------------------------------------

    def owner(self, tool: str) -> tuple[str, str]:
        return many.parted(tool)

    def lines(self) -> Iterator[bytes]:
        return queued(self._heard)

    def close(self) -> bool:
        return True

    def write(self, line: bytes) -> None:
        if line.isspace():
            return
        try:
            text = line.decode("utf-8", "surrogatepass")
            several = rules.batch(text)
        except (ValueError, IndexError, RecursionError):
            self._heard.put(encode(error(RpcError(-32700, "The message is not JSON."), None)) + b"\n")
            return
        with self.lock:
            for part in [text] if several is None else [text[one.start : one.end] + "\n" for one in several]:
                try:
                    self._from_client(part)
                except Exception as problem:
                    complain(problem, "A message was dropped.")

    def wait(self, work: Work, to_client: Pipe) -> End:
        code = until_client_leaves(self._events, self._signals, work, to_client)
        leaving = [threading.Thread(target=one.leave, daemon=True) for one in self._members.values()]
        for thread in leaving:
            thread.start()
        for thread in leaving:
            thread.join()
        self._heard.put(None)
        return End(code, "The gateway was left before the answer came. Start it again, then repeat the call.")

    # --- from the client ----------------------------------------------------------------------------------------------

    def _from_client(self, text: str) -> None:
        message = json.loads(text)
        if not isinstance(message, dict):
            return
        method, key = message.get("method"), rules.key_of(message.get("id"))
        params = message.get("params")
        given: Json = params if isinstance(params, dict) else {}
        if not isinstance(method, str):
            self._reply_to_server(text, key)
        elif key is None:
            self._notice(method, given, text)
        else:
            self._request(key, method, given, text)

    def _request(self, key: rules.Key, method: str, given: Json, text: str) -> None:
        if method == "initialize":
            self._begin(key, given)
        elif method in many.KINDS:
            self._list(key, many.KINDS[method])
        elif method in ("tools/call", "prompts/get"):
            self._by_name(key, method, given.get("name"), ("params", "name"), text)
        elif method == "completion/complete":
            self._complete(key, given, text)
        elif method in ("resources/read", "resources/subscribe", "resources/unsubscribe"):
            self._by_uri(key, method, given.get("uri"), text)
        elif method == "ping":
            self._answer(key, {})
        elif method == "logging/setLevel":
            for member in self._members.values():
                if member.ready and member.can("logging"):
                    member.ask(method, given, lambda _reply: None)
            self._answer(key, {})
        else:
            self._refuse(key, METHOD_NOT_FOUND, f"Method not found: {method[:100]}")

    def _notice(self, method: str, params: Json, text: str) -> None:
        line = text.encode("utf-8", "surrogatepass")
        if method == "notifications/cancelled":
            key = rules.key_of(params.get("requestId"))
            if key is not None:
                self._gathering = [one for one in self._gathering if one.key != key]
                any(member.cancel(key, line) for member in self._members.values())
        elif method == "notifications/progress":
            token = rules.key_of(params.get("progressToken"))
            if token in self._tokens:
                member, own = self._tokens[token]
                member.write(_edited(text, (("params", "progressToken"), own)))
        elif method != "notifications/initialized":  # each server was told that when it was greeted
            for member in self._members.values():
                if member.ready:
                    member.write(line)

    def _reply_to_server(self, text: str, key: rules.Key | None) -> None:
        if key in self._asked_by:
            member, own = self._asked_by.pop(key)
            self._tokens.pop(key, None)
            member.write(_edited(text, (("id",), own)))

    def _begin(self, key: rules.Key, params: Json) -> None:
        """Greet all servers; the client is answered when they have answered, or when it has waited long enough."""
        self._hello = params
        for member in self._members.values():
            member.greet(params)

        def done(_lists: Lists) -> None:
            texts = {name: one.result.get("instructions") for name, one in self._members.items() if one.ready}
            words = {name: text for name, text in texts.items() if isinstance(text, str)}
            self._answer(key, many.welcome(str(params.get("protocolVersion")), __version__, words))

        self._gather(key, None, done)

    def _list(self, key: rules.Key, kind: Kind) -> None:
        def done(lists: Lists) -> None:
            self._given[kind.method] = lists
            found = self._merged(kind, lists)
            missing = {name: self._why_missing(name) for name in self._members if name not in lists}
            answer: Json = {kind.field: found.items}
            self._answer(key, answer | ({"_meta": {many.MISSING_KEY: missing}} if missing else {}))

        self._gather(key, kind, done)

    def _merged(self, kind: Kind, lists: Lists) -> many.Merged:
        found = many.merged(kind, lists)
        self._owners[kind.method] = found.owners
        for refusal in found.refused:
            if refusal not in self._refused:
                self._refused.add(refusal)
                say(f"{refusal[0]}: left out, because {refusal[1]}", "gateway")
        return found

    def _why_missing(self, name: str) -> str:
        member = self._members[name]
        if member.starting:
            return "it is still starting"
        return "it did not list in time" if member.ready else member.why

    def _by_name(self, key: rules.Key, method: str, name: object, path: tuple[str, ...], text: str) -> None:
        server, own = many.parted(name if isinstance(name, str) else "")
        member = self._members.get(server)
        if member is None:
            known = ", ".join(self._members)
            told = f"There is no {str(name)[:100]!r}: a name is server{many.BETWEEN}name, and the servers are {known}."
            self._refuse(key, INVALID_PARAMS, told)
            return
        self._forward(member, key, method, _edited(text, (path, own)))

    def _complete(self, key: rules.Key, params: Json, text: str) -> None:
        ref = params.get("ref")
        about: Json = ref if isinstance(ref, dict) else {}
        if about.get("type") == "ref/resource":
            self._by_uri(key, "completion/complete", about.get("uri"), text)
        else:
            self._by_name(key, "completion/complete", about.get("name"), ("params", "ref", "name"), text)

    def _by_uri(self, key: rules.Key, method: str, uri: object, text: str) -> None:
        """Lead a request to the server whose resource it is. Lists that nobody asked for yet are asked for first."""
        unknown = [kind for kind in (many.RESOURCES, many.TEMPLATES) if kind.method not in self._owners]
        if unknown:

            def again(lists: Lists) -> None:
                self._merged(unknown[0], lists)
                self._by_uri(key, method, uri, text)

            self._gather(key, unknown[0], again)
            return
        known = [self._owners[kind.method] for kind in (many.RESOURCES, many.TEMPLATES)]
        server = many.owner_of(uri, *known) if isinstance(uri, str) else None
        having = [one for one in self._members.values() if one.can("resources")]
        if server is None and len(having) == 1:
            server = having[0].name  # an address that came with a result; there is only one it can be from
        if server is None:
            told = f"no server lists the resource {str(uri)[:200]!r}. resources/list names those there are."
            self._refuse(key, INVALID_PARAMS, told)
            return
        self._forward(self._members[server], key, method, text.encode("utf-8", "surrogatepass"))

    def _forward(self, member: Member, key: rules.Key, method: str, line: bytes) -> None:
        member.greet(self._hello)
        if member.starting:
            self._later(self._wait * START_FACTOR, member.give_up_held)
        member.forward(key, method, line)

    # --- lists of all -------------------------------------------------------------------------------------------------

    def _gather(self, key: rules.Key, kind: Kind | None, done: Callable[[Lists], None]) -> None:
        """Ask every server for a list, or wait for its greeting; `done` gets what there is when time is up."""
        gather = Gather(key, kind, done)
        self._gathering.append(gather)
        gather.waiting.add(ALL)  # it is not complete before everybody has been asked
        for member in self._members.values():
            member.greet(self._hello)
            if member.ready:
                self._ask(member, gather)
            elif member.starting and time.monotonic() < member.due:
                gather.waiting.add(member.name)
        gather.waiting.discard(ALL)
        if gather.waiting:
            late = gather.waiting <= self._late and all(self._known(name, kind) is not None for name in gather.waiting)
            self._later(LATE_SECONDS if late else self._wait, lambda: self._finish(gather))
        else:
            self._finish(gather)

    def _ask(self, member: Member, gather: Gather) -> None:
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
                if items is not None and self._given.get(kind.method, {}).get(member.name) != items:
                    self._tell_changed(kind)
            else:
                self._late.discard(member.name)
                self._finish_if_complete(gather)

        member.collect(kind, got)

    def _finish_if_complete(self, gather: Gather) -> None:
        if not gather.waiting:
            self._finish(gather)

    def _finish(self, gather: Gather) -> None:
        if gather.finished or gather not in self._gathering:
            return
        gather.finished = True
        self._gathering.remove(gather)
        for name in gather.waiting:
            self._late.add(name)
            known = self._known(name, gather.kind)
            if known is not None:
                gather.lists[name] = known
        order = [name for name in self._members if name in gather.lists]
        gather.done({name: gather.lists[name] for name in order})

    def _known(self, name: str, kind: Kind | None) -> list[Json] | None:
        return None if kind is None else self._members[name].known.get(kind.method)

    def _later(self, seconds: float, work: Callable[[], object]) -> None:
        def run() -> None:
            with self.lock:
                work()

        timer = threading.Timer(seconds, run)
        timer.daemon = True
        timer.start()

    # --- from the servers ---------------------------------------------------------------------------------------------

    def arrived(self, member: Member) -> None:
        for gather in list(self._gathering):
            if member.name in gather.waiting:
                self._ask(member, gather)
                self._finish_if_complete(gather)
        for method, lists in self._given.items():
            if member.name not in lists:
                self._tell_changed(many.KINDS[method])

    def gone(self, member: Member) -> None:
        for gather in list(self._gathering):
            if member.name in gather.waiting:
                gather.waiting.discard(member.name)
                self._finish_if_complete(gather)
        for calls in (self._asked_by, self._tokens):
            for key in [key for key, (whose, _) in calls.items() if whose is member]:
                del calls[key]

    def from_server(self, member: Member, line: bytes) -> None:
        text = line.decode("utf-8", "surrogatepass")
        message = json.loads(text)
        params = message.get("params")
        given: Json = params if isinstance(params, dict) else {}
        if "id" in message:
            self._request_of_server(member, message["id"], given, text)
        elif message["method"] == "notifications/cancelled":
            whose = (member, given.get("requestId"))
            key = next((key for key, asked in self._asked_by.items() if asked == whose), None)
            if key is not None:
                self.to_client(_edited(text, (("params", "requestId"), key)))
        else:
            if message["method"] == many.RESOURCES.changed:
                for kind in (many.RESOURCES, many.TEMPLATES):
                    self._owners.pop(kind.method, None)
            self.to_client(line if line.endswith(b"\n") else line + b"\n")

    def _request_of_server(self, member: Member, id: object, params: Json, text: str) -> None:
        self._count += 1
        key = f"{member.name}-{self._count}"
        self._asked_by[key] = (member, id)
        changes: list[tuple[tuple[str, ...], object]] = [(("id",), key)]
        meta = params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if token is not None:
            self._tokens[key] = (member, token)
            changes.append((("params", "_meta", "progressToken"), key))
        self.to_client(_edited(text, *changes))

    # --- to the client ------------------------------------------------------------------------------------------------

    def to_client(self, line: bytes) -> None:
        self._heard.put(line)

    def unanswered(self, key: rules.Key, method: str, why: str) -> None:
        """A call gets a result that the agent can read; everything else an error."""
        if method == "tools/call":
            told = f"{why[:1].upper()}{why[1:].rstrip('.')}. The other servers are not affected."
            self._answer(key, rules.tool_result(told, failed=True, modern=False))
        else:
            self._refuse(key, UPSTREAM_ENDED, why)

    def _answer(self, key: rules.Key, value: Json) -> None:
        self.to_client(encode(result(key, value)) + b"\n")

    def _refuse(self, key: rules.Key, code: int, why: str) -> None:
        self.to_client(encode(error(RpcError(code, why), key)) + b"\n")

    def _tell_changed(self, kind: Kind) -> None:
        self.to_client(encode({"jsonrpc": "2.0", "method": kind.changed}) + b"\n")


class Gather:
    """One list that is being put together."""

    def __init__(self, key: rules.Key, kind: Kind | None, done: Callable[[Lists], None]) -> None:
        self.key = key
        self.kind = kind
        self.done = done
        self.lists: Lists = {}
        self.waiting: set[str] = set()  # servers
        self.finished = False


def _edited(text: str, *changes: tuple[tuple[str, ...], object]) -> bytes:
    line = many.replaced(text, changes).encode("utf-8", "surrogatepass")
    return line if line.endswith(b"\n") else line + b"\n"
