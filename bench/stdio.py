"""The MCP server on real pipes: a trivial call, launch to the first `tools/list`, and memory, beside a bare loop."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from bench import corpus, stores
from bench.figures import alone, compare, remark
from bench.measure import (
    OUT,
    ROOT,
    Sample,
    Sizes,
    best,
    clean_environment,
    cpu_of,
    percentile,
    ratio,
    resident,
    span,
    table,
    verdict,
)
from bench.stores import SESSION

CALL, LAUNCH = 2.0, 3.0  # times the loop
FIRST = 1.5  # times a bare server on the official SDK
IDLE_MB, FULL_MB = 30, 45
PEER = "@modelcontextprotocol/server-memory"
BY_HAND = (
    "import sys, limpet\nfrom limpet.doors.stdio import serve\n"
    f"serve(limpet.open(sys.argv[1], project='bench', session={SESSION!r}), 'core')"
)
REVISION = "2025-06-18"


class Contestant(NamedTuple):
    """A server: how it is started on a store, and its trivial call."""

    name: str
    command: Callable[[Path], list[str]]
    tool: str
    environment: Callable[[Path], dict[str, str]] = lambda path: {}


class Server:
    """A server as a child process, spoken to one line at a time."""

    def __init__(self, contestant: Contestant, store: Path) -> None:
        self.tool = contestant.tool
        self.process = subprocess.Popen(
            contestant.command(store),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=OUT,
            env=clean_environment() | contestant.environment(store),
        )
        self._in = cast(IO[bytes], self.process.stdin)
        self._out = cast(IO[bytes], self.process.stdout)

    def send(self, message: dict[str, Any]) -> None:
        self._in.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._in.flush()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.send({"id": 1, "method": method, "params": params})
        return _result(method, self._out.readline())

    def first(self) -> None:
        client = {"name": "bench", "version": "1"}
        self.ask("initialize", {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client})

    def begin(self) -> None:
        self.first()
        self.send({"method": "notifications/initialized"})
        self.ask("tools/list", {})

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return self.ask("tools/call", {"name": name, "arguments": arguments})

    def trivial(self, ops: int) -> Sample:
        return self.timed({}, ops)

    def timed(self, arguments: dict[str, Any], ops: int) -> Sample:
        """The round trip as the client sees it, on bytes made beforehand, and the server's own CPU time."""
        params = {"name": self.tool, "arguments": arguments}
        line = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).encode() + b"\n"
        times, reply = [], b""
        cpu = cpu_of(self.process.pid)
        for _ in range(ops):
            began = time.perf_counter_ns()
            self._in.write(line)
            self._in.flush()
            reply = self._out.readline()
            times.append(time.perf_counter_ns() - began)
        spent = ((cpu_of(self.process.pid) or 0) - (cpu or 0)) / ops
        _result(self.tool, reply)  # an error would be quick, too
        return Sample(percentile(times, 0.5) / 1e9, percentile(times, 0.99) / 1e9, spent)

    def close(self) -> None:
        self._in.close()
        self.process.wait(10)
        self._out.close()


def _result(what: str, line: bytes) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(line)
    if "result" not in reply or reply["result"].get("isError"):
        raise RuntimeError(f"{what}: {reply}")
    return cast(dict[str, Any], reply["result"])


def ours() -> Contestant:
    command = Path(sys.executable).with_name("limpet")
    if find_spec("limpet.doors.cli") and command.exists():
        # The project of the stores that are filled beforehand: in another one the server would find nothing.
        return Contestant(
            "limpet mcp",
            lambda path: [str(command), "mcp"],
            "read_notepad",
            lambda path: {"LIMPET_STORE": str(path), "LIMPET_PROJECT": "bench"},
        )
    by_hand = Contestant("serve(), by hand", lambda path: [sys.executable, "-c", BY_HAND, str(path)], "read_notepad")
    remark("The `limpet` command is not there: the stdio server is started by hand.")
    return by_hand


def floor() -> Contestant:
    return Contestant("bare loop", lambda path: [sys.executable, str(ROOT / "bench" / "loop.py")], "read_notepad")


def bare_sdk() -> Contestant:
    return Contestant("bare server, SDK", lambda path: [sys.executable, str(ROOT / "bench" / "sdk_server.py")], "")


def peers() -> list[Contestant]:
    """npm's server-memory, installed below bench/out."""
    from bench.peers.environment import installed

    there = installed(PEER)
    if there is None:
        return []
    script = there.folder / "dist" / "index.js"

    def kept(path: Path) -> dict[str, str]:
        return {"MEMORY_FILE_PATH": f"{path}.jsonl"}

    return [Contestant(f"{PEER} {there.version}", lambda path: ["node", str(script)], "read_graph", kept)]


def run(sizes: Sizes) -> None:
    contestants = [ours(), floor(), *(peers() if sizes.peers else [])]
    place = stores.folder("stdio")
    for name in ("call", "launch", "idle"):  # reading makes no store
        with stores.open_ours(place / f"{name}.db") as hold:
            hold.store.create()
    _calling(contestants, place, sizes)
    _launching(contestants, place, sizes)
    _answering(place, sizes)
    _weighing(contestants, place, sizes)


def _calling(contestants: Sequence[Contestant], place: Path, sizes: Sizes) -> None:
    servers = {one.name: Server(one, place / "call.db") for one in contestants}
    for server in servers.values():
        server.begin()
        server.trivial(100)
    rounds: dict[str, list[Sample]] = {name: [] for name in servers}
    for _ in range(sizes.pick(12, 3)):
        for name, server in servers.items():
            rounds[name].append(server.trivial(sizes.pick(1_000, 200)))
    for server in servers.values():
        server.close()
    found = {name: best(samples) for name, samples in rounds.items()}
    least = found[contestants[1].name]
    lines = []
    for at, (name, one) in enumerate(found.items()):
        goal = verdict(one.p50 / least.p50, CALL, f"≤ {CALL:.0f}x") if at == 0 else ""
        cpu = one.cpu or None
        if at:
            mine = found[contestants[0].name]
            _beside("a trivial call", at, name, mine.p50, one.p50, verdict(mine.p50 / one.p50, CALL, f"≤ {CALL:.0f}x"))
        shown = [span(one.p50), ratio(one.p50, least.p50), goal, span(one.p99), span(cpu), ratio(cpu, least.cpu)]
        lines.append([name, *shown])
    heads = ("server", "p50", "x loop", "goal", "p99", "server's CPU", "x loop")
    table("A trivial call over pipes (read_notepad of an empty notepad)", heads, lines)


def _launching(contestants: Sequence[Contestant], place: Path, sizes: Sizes) -> None:
    times: dict[str, list[float]] = {one.name: [] for one in contestants}
    cpus: dict[str, list[float]] = {one.name: [] for one in contestants}
    for _ in range(sizes.pick(25, 4)):
        for one in contestants:
            began = time.perf_counter()
            server = Server(one, place / "launch.db")
            server.begin()
            times[one.name].append(time.perf_counter() - began)
            cpus[one.name].append(cpu_of(server.process.pid) or 0)
            server.close()
    least = {name: min(found) for name, found in times.items()}
    loop = contestants[1].name
    lines = []
    for at, one in enumerate(contestants):
        goal = (
            verdict(least[one.name] / least[loop], LAUNCH, f"≤ {LAUNCH:.0f}x, ahead of every peer") if at == 0 else ""
        )
        middle = percentile(times[one.name], 0.5)
        if at:
            mine = least[contestants[0].name]
            bar = verdict(mine / least[one.name], LAUNCH, f"≤ {LAUNCH:.0f}x")
            _beside("from launch to the first tools/list", at, one.name, mine, least[one.name], bar)
        shown = [span(least[one.name]), ratio(least[one.name], least[loop]), goal, span(middle)]
        cpu = min(cpus[one.name]) or None
        lines.append([one.name, *shown, span(cpu), ratio(cpu, min(cpus[loop]))])
    heads = ("server", "best", "x loop", "goal", "p50", "server's CPU", "x loop")
    table("From launch to the first tools/list (the store exists)", heads, lines)


def _answering(place: Path, sizes: Sizes) -> None:
    """Clients give a server only so long for its first answer; most servers are made with the official SDK."""
    contestants = (ours(), floor(), bare_sdk())
    times: dict[str, list[float]] = {one.name: [] for one in contestants}
    for _ in range(sizes.pick(15, 3)):
        for one in contestants:
            began = time.perf_counter()
            server = Server(one, place / "launch.db")
            server.first()
            times[one.name].append(time.perf_counter() - began)
            server.close()
    least = {name: min(found) for name, found in times.items()}
    sdk = least[contestants[-1].name]
    lines = []
    for at, (name, found) in enumerate(times.items()):
        goal = verdict(least[name] / sdk, FIRST, f"≤ {FIRST}x") if at == 0 else ""
        if at == 0:
            compare("from launch to the answer to initialize", least[name], contestants[-1].name, sdk, goal)
        lines.append([name, span(least[name]), ratio(least[name], sdk), goal, span(percentile(found, 0.5))])
    table("From launch to the answer to initialize", ("server", "best", "x SDK", "goal", "p50"), lines)


def _weighing(contestants: Sequence[Contestant], place: Path, sizes: Sizes) -> None:
    count = sizes.pick(100_000, 1_000)
    lines = []
    idle = 0.0
    for at, one in enumerate(contestants):
        server = Server(one, place / "idle.db")
        server.begin()
        held, _ = resident(server.process.pid) or (0.0, 0.0)
        idle = held if at == 0 else idle
        if at and held:
            goal = verdict(idle, IDLE_MB, f"≤ {IDLE_MB} MB")
            _beside("resident memory, idle", at, one.name, idle, held, goal, show="{:.1f} MB".format)
        lines.append([f"{one.name}, idle", *_weight(server, IDLE_MB if at == 0 else None)])
        server.close()
    server = Server(contestants[0], _full(count))
    server.begin()
    _use(server, count)
    now, most, goal = _weight(server, FULL_MB)
    alone(f"resident memory, {count:,} notes, in use", now, goal)
    lines.append([f"{contestants[0].name}, {count:,} notes, in use", now, most, goal])
    server.close()
    table("Resident memory", ("server", "now", "at most", "goal"), lines)


def _beside(
    what: str, at: int, name: str, ours: float, theirs: float, goal: str, show: Callable[[float], str] = span
) -> None:
    """The first of the others is the floor, which the goal is about; the rest are peers."""
    compare(what, ours, name, theirs, goal if at == 1 else "", peer=at > 1, show=show)


def _full(count: int) -> Path:
    path, _ = stores.loaded(count)
    return path


def _use(server: Server, count: int) -> None:
    """Some of everything that touches many notes."""
    for kind in ("rare", "two", "tagged", "eight", "asked"):
        for question in corpus.questions(kind, count, 10):
            tags = {"tags": [question.tag]} if question.tag else {}
            server.call("search_notes", {"query": question.text, **tags})
    for note in corpus.notes(200):
        server.call("add_note", {"content": note.content, "tags": note.tags})


def _weight(server: Server, goal: int | None) -> list[str]:
    found = resident(server.process.pid)
    if found is None:
        return ["not measured", "not measured", f"≤ {goal} MB" if goal else ""]
    shown = verdict(found[0], goal, f"≤ {goal} MB") if goal else ""
    return [f"{found[0]:.1f} MB", f"{found[1]:.1f} MB", shown]
