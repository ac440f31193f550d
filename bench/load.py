"""A team's load: fifty agents at once over HTTP on PostgreSQL, beside plain SQL behind the same HTTP stack.

Everything runs on this machine: the agents (one lean process), the server that is measured and PostgreSQL. So what a
call costs in processor time, wherever it is spent, decides how many there are in a second, and it is printed for each
of the three.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench import corpus, growth_page, load_floor, stores
from bench.figures import MORE, compare
from bench.load_client import MIX, Plan
from bench.load_postgres import Cluster, cluster
from bench.load_tables import GOAL, OURS, tables
from bench.measure import Sizes, clean_environment, cpu_of, percentile, resident, table, verdict
from limpet.api import Limpet, wall_clock
from limpet.model import Scope
from limpet.recall.embeddings import catch_up
from limpet.upkeep import access_tokens
from limpet.wiring import choose_embeddings, choose_store

AGENTS = 50
TENANT = "team"
RATE = "10000000"  # calls a minute that a token may make: agents that never think make more than the default


class Contestant(NamedTuple):
    name: str
    port: int
    agents: list[dict[str, str]]
    process: int
    path: str = "/mcp"
    tools: str = "limpet"
    postgres: bool = True
    store: str = ""  # its address


class Round(NamedTuple):
    """What one run of the load gave: seconds a call by operation, and seconds of processor time a call."""

    times: dict[str, list[float]]
    seconds: float
    server: float
    postgres: float
    client: float

    @property
    def every(self) -> list[float]:
        return [one for times in self.times.values() for one in times]

    @property
    def rate(self) -> float:
        return len(self.every) / self.seconds


def run(sizes: Sizes) -> None:
    where = growth_page.machine()
    found = measured(sizes)
    for title, heads, rows in tables(found):
        table(title, heads, rows)
    for one in found:
        _tell(one["servers"], f"{one['agents']} agents in {one['projects']} project{'s' * (one['projects'] > 1)}")
    growth_page.kept(sizes, "load", where, found)


def _tell(servers: Sequence[Mapping[str, Any]], who: str) -> None:
    floor, ours, *peers = servers
    for one in (floor, *peers):
        goal = verdict(floor["rate"] / ours["rate"], GOAL, f"≥ 1/{GOAL}") if one is floor else ""
        beside, peer = one["name"], one is not floor
        compare(f"{who}: calls a second", ours["rate"], beside, one["rate"], goal, show=_rate, better=MORE, peer=peer)
        compare(f"{who}: p99", ours["p99"], beside, one["p99"], peer=peer)


def _rate(number: float) -> str:
    return f"{number:,.0f}"


def measured(sizes: Sizes) -> list[dict[str, Any]]:
    mix = ", ".join(f"{share} % {name}" for name, share in MIX.items())
    print(
        f"\n{AGENTS} agents, each with a token, a connection and a session; no pause between calls. Of the calls {mix}."
    )
    loaded = sizes.pick(5_000, 1_000)
    with cluster() as server:
        print(f"PostgreSQL {server.version()}, fsync and synchronous_commit on; {loaded:,} notes are there already.")
        return [_compare(server, sizes, loaded, projects) for projects in ((10,) if sizes.quick else (10, 1))]


def _compare(server: Cluster, sizes: Sizes, loaded: int, projects: int) -> dict[str, Any]:
    with ExitStack() as stack:
        ours = stack.enter_context(limpet_served(server, loaded, projects))
        floor = stack.enter_context(_floor_served(server, loaded, projects))
        contestants = [floor, ours]
        if sizes.peers:
            from bench.load_peers import memory_service

            contestants += stack.enter_context(memory_service(AGENTS))
        found = measure(server, contestants, sizes, loaded)
        memory = {one.name: resident(one.process) for one in contestants}
    servers = [_shown(name, one, memory[name]) for name, one in found.items()]
    return {"agents": AGENTS, "projects": projects, "servers": servers}


def _shown(name: str, one: Round, memory: tuple[float, float] | None) -> dict[str, Any]:
    def both(times: list[float]) -> tuple[float, float]:
        return percentile(times, 0.5), percentile(times, 0.99)

    p50, p99 = both(one.every)
    shown = {"name": name, "rate": one.rate, "p50": p50, "p99": p99, "server": one.server, "postgres": one.postgres}
    operations = {operation: both(times) for operation, times in one.times.items() if times}
    return shown | {"client": one.client, "memory": memory[1] if memory else None, "operations": operations}


def measure(server: Cluster, contestants: Sequence[Contestant], sizes: Sizes, loaded: int) -> dict[str, Round]:
    """The best round of each, taken in turns."""
    rounds: dict[str, list[Round]] = {one.name: [] for one in contestants}
    for turn in range(sizes.pick(3, 1)):
        for one in contestants[:: 1 if turn % 2 == 0 else -1]:
            rounds[one.name].append(_round(server, one, sizes, loaded, turn))
    return {name: max(all_of, key=lambda one: one.rate) for name, all_of in rounds.items()}


def _round(server: Cluster, one: Contestant, sizes: Sizes, loaded: int, turn: int) -> Round:
    seconds, warm = (2, 0.5) if sizes.quick else (20, 4)
    plan = Plan(one.port, one.path, one.agents, seconds, warm, loaded, turn, one.tools)
    command = [sys.executable, "-m", "bench.load_client"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=clean_environment(), **pipes) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(json.dumps(plan._asdict()) + "\n")
        client.stdin.flush()
        spent: dict[str, tuple[float, float]] = {}
        for said in client.stdout:
            if said.startswith("{"):
                break
            spent[said.strip()] = cpu_of(one.process) or 0.0, server.cpu() or 0.0
        else:
            raise RuntimeError(f"{one.name}: the agents stopped")
    found = json.loads(said)
    if found["errors"]:
        raise RuntimeError(f"{one.name}: {found['errors']} calls failed; the first: {found['first_error']}")
    times = {name: [number / 1e9 for number in numbers] for name, numbers in found["times"].items()}
    count = sum(map(len, times.values()))
    own, postgres = (after - before for before, after in zip(spent["counted"], spent["ended"], strict=True))
    return Round(times, seconds, own / count, postgres / count, found["cpu"] / count)


# --- servers ----------------------------------------------------------------------------------------------------------


@contextmanager
def limpet_served(
    server: Cluster, loaded: int, projects: int, agents: int = AGENTS, workers: int = 1
) -> Iterator[Contestant]:
    """`limpet serve --team` on a database of its own, with notes and a token for each agent."""
    url = server.database("ours")
    names = _projects(projects)
    store, index = choose_store(url), choose_embeddings().static
    try:
        for at, name in enumerate(names):
            hold = Limpet(store, Scope(TENANT, name), session="loaded")
            hold.import_lines(stores.export_of(corpus.notes(loaded)[at::projects]))
            if index is not None:  # else the first questions would make the vectors of all that was loaded
                catch_up(index, store, hold.scope, loaded)
        secrets = [_token(store, f"agent-{number}", names[number % projects]) for number in range(agents)]
    finally:
        store.close()
    place = stores.folder("load")
    command = [sys.executable, "-m", "limpet", "serve", "--team", "--store", url, "--project", "home", "--port", "0"]
    more = {"LIMPET_TENANT": TENANT, "LIMPET_SET": f"server.calls_per_minute={RATE}"}
    command += ["--workers", str(workers), "--profile", "full", "--json"]
    with _running(command, place, more) as (process, said):
        port = int(json.loads(said)["url"].removesuffix("/mcp").rpartition(":")[2])
        headers = [
            {"Authorization": f"Bearer {secret}", **_place(number, projects)} for number, secret in enumerate(secrets)
        ]
        yield Contestant(OURS, port, headers, process, store=url)


def _token(store: Any, name: str, project: str) -> str:
    now = wall_clock()
    wanted = access_tokens.token_request(name, TENANT, "write", (project,), "1d", now)
    return access_tokens.create(store, wanted, by="person/bench", now=now).secret


@contextmanager
def _floor_served(server: Cluster, loaded: int, projects: int) -> Iterator[Contestant]:
    url = server.database("floor")
    load_floor.make(url, _projects(projects), corpus.notes(loaded))
    command = [sys.executable, "-m", "bench.load_floor", url]
    with _running(command, stores.folder("load-floor"), {}) as (process, said):
        agents = [_place(number, projects) for number in range(AGENTS)]
        yield Contestant("plain SQL (floor)", int(said), agents, process)


def _projects(count: int) -> list[str]:
    return [f"project-{number}" for number in range(count)]


def _place(number: int, projects: int) -> dict[str, str]:
    return {"Limpet-Project": f"project-{number % projects}", "Limpet-Session": f"session-{number}"}


@contextmanager
def _running(command: Sequence[str], place: Path, more: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """A server process, and the first line it says."""
    with open(place / "log", "w+", encoding="utf-8") as log:
        env = {**clean_environment(), **more}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=env, cwd=place)
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            if not said:
                raise RuntimeError(f"{command[:4]} did not start: {(place / 'log').read_text()[-2_000:]}")
            yield process.pid, said
        finally:
            process.terminate()
            process.communicate(timeout=30)
