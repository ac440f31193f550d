"""Many agents at once, from one lean process: what is left of the machine's time belongs to the server.

A plan comes as JSON on standard input, what was measured goes to standard output. Each agent has a connection and an
MCP session of its own and sends its next call when the answer to the last one is there. Requests are HTTP as any client
sends it, but put together by hand: an HTTP library would take more of the processor than the server's own work does.
"""

from __future__ import annotations

import json
import random
import re
import selectors
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from bench import corpus

NUMBER = re.compile(r"\[([0-9a-f]{10})\]")
REVISION = "2025-11-25"
MIX = {
    "read_notepad": 25,
    "add_note": 20,
    "search_notes": 15,
    "list_notes": 10,
    "write_notepad": 10,
    "search_memory": 10,
    "recall": 5,
    "write_memory": 5,
}
SHOWN = 10
PAD_NOTES = 8  # notes that make up what is written to a notepad: about 2,000 characters
MEMORY_KEYS = 200  # of a project; later writes replace
WARM_ANSWERS = 4  # to each agent, before anything is counted
FRESH, QUESTIONS = 5_000, 1_000  # different texts to add, and to ask for
Call = tuple[str, dict[str, Any]]


class Plan(NamedTuple):
    port: int
    path: str
    agents: list[dict[str, str]]  # the headers of each
    seconds: float
    warm: float  # seconds at least that are not counted
    loaded: int  # notes that are there already
    seed: int
    tools: str = "limpet"  # whose tools are called


class Texts(NamedTuple):
    """What the agents write and ask, made before the first of them connects."""

    notes: list[corpus.Note]
    few: list[corpus.Question]
    many: list[corpus.Question]


def texts(plan: Plan) -> Texts:
    few, many = (corpus.questions(kind, plan.loaded, QUESTIONS) for kind in ("two", "eight"))
    return Texts(corpus.notes(plan.loaded + FRESH)[plan.loaded :], few, many)


def calls(plan: Plan, number: int, known: Texts) -> Iterator[Call]:
    """What one agent does, without an end."""
    chance = random.Random(f"{plan.seed} {number}")
    names, weights = list(MIX), list(MIX.values())
    while True:
        name = chance.choices(names, weights)[0]
        yield name, _arguments(name, chance.choice(known.notes), known, chance)


def _arguments(name: str, note: corpus.Note, known: Texts, chance: random.Random) -> dict[str, Any]:
    if name == "add_note":
        # A number of its own, so that no two are the same text.
        return {"content": f"{note.content} [{chance.getrandbits(40):010x}]", "tags": note.tags}
    if name == "write_notepad":
        return {"content": f"- [ ] plan [{chance.getrandbits(40):010x}]\n" + f"{note.content}\n" * PAD_NOTES}
    if name == "write_memory":
        key = f"topic-{chance.randrange(MEMORY_KEYS)}"
        return {"key": key, "content": f"{note.content} [{chance.getrandbits(40):010x}]"}
    if name == "list_notes":
        return {"limit": SHOWN}
    if name == "read_notepad":
        return {}
    return {"query": chance.choice(known.many if name == "recall" else known.few).text, "limit": SHOWN}


def for_memory_service(call: Call, session: str) -> Call:
    """The nearest that mcp-memory-service has. A notepad is a memory with a tag, which it can only add to."""
    name, given = call
    if name in ("add_note", "write_notepad", "write_memory"):
        tags = [*given.get("tags", []), session]
        # Without a conversation it would refuse what it takes for a duplicate.
        return "memory_store", {"content": given["content"], "conversation_id": session, "metadata": {"tags": tags}}
    if name in ("list_notes", "read_notepad"):
        return "memory_list", {"page": 1, "page_size": SHOWN if name == "list_notes" else 1, "tags": [session]}
    return "memory_search", {"query": given["query"], "limit": SHOWN}


class Agent:
    def __init__(self, plan: Plan, number: int, known: Texts) -> None:
        self._port = plan.port
        self._path = plan.path
        self._given = dict(plan.agents[number])
        self._calls = calls(plan, number, known)
        self._named: Callable[[Call], Call] = (
            (lambda call: call) if plan.tools == "limpet" else lambda call: for_memory_service(call, f"s{number}")
        )
        self._id = 0
        self._buffer = bytearray()
        self._next, self._ahead = "", b""  # the call after this one
        self.number = ""  # by which the text is known that it writes, if it writes one
        self.operation = ""
        self.began = 0
        self.socket = self._connected()
        self._begin()
        self.prepare()

    def _connected(self) -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self._port), timeout=60)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def _begin(self) -> None:
        hello = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        head, _ = self._exchange({"method": "initialize", "params": hello})
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"mcp-session-id":
                self._given["Mcp-Session-Id"] = value.strip().decode()
        self._given["Mcp-Protocol-Version"] = REVISION
        self._exchange({"method": "notifications/initialized"})

    def _exchange(self, message: dict[str, Any]) -> tuple[bytes, bytes]:
        self.socket.sendall(self._request(message))
        while (found := self._answer()) is None:
            if not (part := self.socket.recv(65_536)):
                raise ConnectionError("the server closed the connection")
            self._buffer += part
        return found

    def _request(self, message: dict[str, Any]) -> bytes:
        self._id += 1
        number = {} if message["method"].startswith("notifications/") else {"id": self._id}
        body = json.dumps({"jsonrpc": "2.0", **number, **message}).encode()
        lines = [f"POST {self._path} HTTP/1.1", f"Host: 127.0.0.1:{self._port}", f"Content-Length: {len(body)}"]
        lines += ["Content-Type: application/json", "Accept: application/json, text/event-stream"]
        lines += [f"{name}: {value}" for name, value in self._given.items()]
        return "\r\n".join([*lines, "", ""]).encode() + body

    def prepare(self) -> None:
        """Put the next call together while the answer to this one is under way."""
        call = next(self._calls)
        self._next = call[0]
        marks = NUMBER.findall(call[1].get("content", ""))
        self.number = marks[0 if call[0] == "write_notepad" else -1] if marks else ""
        tool, arguments = self._named(call)
        self._ahead = self._request({"method": "tools/call", "params": {"name": tool, "arguments": arguments}})

    def connect_again(self) -> None:
        """A server closes connections that nothing comes from for some seconds, and others began after this one."""
        self.socket.close()
        self.socket = self._connected()

    def send(self) -> None:
        self.operation, self.began = self._next, time.perf_counter_ns()
        self.socket.sendall(self._ahead)

    def received(self) -> bytes | None:
        """The body of the answer, once all of it is there. What is not 200 is an error."""
        part = self.socket.recv(262_144)
        if not part:
            raise ConnectionError("the server closed the connection")
        self._buffer += part
        found = self._answer()
        return None if found is None else found[1]

    def _answer(self) -> tuple[bytes, bytes] | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self._buffer[:end])
        at = head.lower().find(b"content-length:")
        if at >= 0:
            length = int(head[at + 15 :].split(b"\r\n", 1)[0])
            if len(self._buffer) < end + 4 + length:
                return None
            body = bytes(self._buffer[end + 4 : end + 4 + length])
            del self._buffer[: end + 4 + length]
        else:  # in chunks, which end with an empty one
            if not self._buffer.endswith(b"0\r\n\r\n"):
                return None
            body = bytes(self._buffer[end + 4 :])
            self._buffer.clear()
        if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 202")):
            raise RuntimeError(f"{head!r} {body[:300]!r}")
        return head, body


def drive(plan: Plan) -> dict[str, Any]:
    known = texts(plan)
    agents = [Agent(plan, number, known) for number in range(len(plan.agents))]
    waiting = selectors.DefaultSelector()
    for agent in agents:
        agent.connect_again()
        waiting.register(agent.socket, selectors.EVENT_READ, agent)
        agent.send()
        agent.prepare()
    times: dict[str, list[int]] = {name: [] for name in MIX}
    errors: list[str] = []
    warm = time.perf_counter_ns() + int(plan.warm * 1e9)
    began = end = cpu = answers = 0
    while not end or time.perf_counter_ns() < end:
        for key, _ in waiting.select(1):
            agent = key.data
            body = agent.received()
            if body is None:
                continue
            done = time.perf_counter_ns()
            answers += 1
            if b'"isError":true' in body or b'"error":{' in body:
                errors.append(body[:300].decode(errors="replace"))
            elif began and done <= end:
                times[agent.operation].append(done - agent.began)
            agent.send()
            agent.prepare()
        # Counting begins when the server is warm: what it does once (a model, a plan) is not what it does all day.
        if not end and answers >= WARM_ANSWERS * len(agents) and (now := time.perf_counter_ns()) >= warm:
            began, end, cpu = now, now + int(plan.seconds * 1e9), time.process_time_ns()
            print("counted", flush=True)
    spent = time.process_time_ns() - cpu
    print("ended", flush=True)
    # What is still under way is waited for, so that the next run does not meet it.
    for agent in agents:
        while agent.received() is None:
            pass
        agent.socket.close()
    return {"times": times, "errors": len(errors), "first_error": errors[:1], "cpu": spent / 1e9}


if __name__ == "__main__":
    print(json.dumps(drive(Plan(**json.loads(sys.stdin.readline())))))
