"""A thousand agents that think between two calls, on two worker processes and PostgreSQL, for as long as is asked.

    python -m bench.crowd --seconds 3600

Each agent has a token, a project that nine others share, and an MCP session, and calls as in the load of fifty
(load.py), but pauses between two calls: some seconds, exponentially distributed. What was acknowledged is looked up in
the database afterwards. Memory is that of all processes of the server, at a quarter of the time and at the end.
"""

from __future__ import annotations

import argparse
import heapq
import random
import selectors
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psycopg

from bench import growth_page
from bench.load import limpet_served
from bench.load_client import MIX, NUMBER, Agent, Plan, texts
from bench.load_postgres import Cluster, cluster
from bench.measure import OUT, cpu_of, percentile, resident, span, table

AGENTS, PROJECT_AGENTS, WORKERS = 1_000, 10, 2
LOADED = 20_000  # notes that are there already
THINKING = 10.0  # seconds between two calls of an agent, on average
IDLE = 3.0  # seconds after which an agent connects anew: a server closes connections that nothing comes from
SAMPLE_SECONDS = 5.0
GROWTH_MOST = 0.1  # of memory, from a quarter of the time to its end
MINUTE = 60


class Crowd(NamedTuple):
    """What a run gave. Times are seconds, memory is megabytes, `server` and `postgres` processor seconds."""

    agents: int
    seconds: float
    thinking: float
    times: dict[str, list[float]]
    errors: list[str]
    lost: list[str]  # numbers of acknowledged texts that are not in the database
    acknowledged: int
    memory: list[float]  # sampled over the run
    server: float
    postgres: float

    @property
    def calls(self) -> int:
        return sum(map(len, self.times.values()))

    @property
    def growth(self) -> float:
        """Of memory: the last tenth of the run against the tenth after its first quarter, when every worker is warm."""
        tenth = max(1, len(self.memory) // 10)
        start = self.memory[len(self.memory) // 4 :][:tenth]
        return sum(self.memory[-tenth:]) / sum(start) * len(start) / tenth - 1


def measured(seconds: float, agents: int = AGENTS, thinking: float = THINKING, loaded: int = LOADED) -> Crowd:
    OUT.mkdir(parents=True, exist_ok=True)
    with (
        cluster() as server,
        limpet_served(server, loaded, max(1, agents // PROJECT_AGENTS), agents, WORKERS) as ours,
    ):
        plan = Plan(ours.port, ours.path, ours.agents, seconds, 0, loaded, 1)
        before = _spent(server, ours.process)
        done = threading.Event()
        memory: list[float] = []
        watch = threading.Thread(target=_watch, args=(ours.process, memory, done))
        watch.start()
        try:
            times, errors, acknowledged = _drive(plan, thinking)
        finally:
            done.set()
            watch.join()
        after = _spent(server, ours.process)
        lost = sorted(acknowledged - _stored(ours.store))
        spent = [late - early for early, late in zip(before, after, strict=True)]
    return Crowd(agents, seconds, thinking, times, errors, lost, len(acknowledged), memory, *spent)


def _spent(server: Cluster, process: int) -> tuple[float, float]:
    return sum(cpu_of(one) or 0.0 for one in _family(process)), server.cpu() or 0.0


def _family(process: int) -> list[int]:
    """A process and those that it started."""
    found = [process]
    for one in found:
        children = Path(f"/proc/{one}/task/{one}/children")
        found += map(int, children.read_text().split()) if children.exists() else []
    return found


def _watch(process: int, memory: list[float], done: threading.Event) -> None:
    while not done.wait(SAMPLE_SECONDS):
        memory.append(sum((resident(one) or (0.0,))[0] for one in _family(process)))


def _stored(url: str) -> set[str]:
    """The numbers in everything that is stored, and in its earlier versions."""
    with psycopg.connect(url) as con, con.cursor(name="stored") as cursor:
        cursor.execute("SELECT content FROM entries UNION ALL SELECT before FROM events WHERE before IS NOT NULL")
        return {number for (text,) in cursor for number in NUMBER.findall(str(text))}


def _drive(plan: Plan, thinking: float) -> tuple[dict[str, list[float]], list[str], set[str]]:
    """All agents from one thread: the one whose pause ends next calls next."""
    chance, known = random.Random(plan.seed), texts(plan)
    agents = [Agent(plan, number, known) for number in range(len(plan.agents))]
    waiting = selectors.DefaultSelector()
    now = time.monotonic()
    pauses = [(now + chance.uniform(0, thinking), number) for number in range(len(agents))]
    heapq.heapify(pauses)
    used = dict.fromkeys(range(len(agents)), 0.0)
    times: dict[str, list[float]] = {name: [] for name in MIX}
    errors: list[str] = []
    acknowledged: set[str] = set()
    written: dict[int, str] = {}
    end, under_way = now + plan.seconds, 0
    while (now := time.monotonic()) < end or under_way:
        while pauses and pauses[0][0] <= now < end:
            _, number = heapq.heappop(pauses)
            agent = agents[number]
            if now > used[number] + IDLE:
                agent.connect_again()
            written[number] = agent.number
            agent.send()
            agent.prepare()
            waiting.register(agent.socket, selectors.EVENT_READ, number)
            under_way += 1
        for key, _ in waiting.select(min(0.05, max(0.0, pauses[0][0] - now)) if pauses else 0.05):
            agent, number = agents[key.data], key.data
            try:
                body = agent.received()
            except (OSError, RuntimeError) as problem:
                body = f'"error":{{{problem}'.encode()
                used[number] = 0.0
            if body is None:
                continue
            waiting.unregister(key.fileobj)
            under_way -= 1
            used[number] = time.monotonic()
            if b'"isError":true' in body or b'"error":{' in body:
                errors.append(f"{agent.operation}: {body[:300].decode(errors='replace')}")
            else:
                times[agent.operation].append((time.perf_counter_ns() - agent.began) / 1e9)
                acknowledged.update([written[number]] if written[number] else [])
            heapq.heappush(pauses, (time.monotonic() + chance.expovariate(1 / thinking), number))
    for agent in agents:
        agent.socket.close()
    return times, errors, acknowledged


def tell(found: Crowd, show: Callable[[str], object] = print) -> None:
    every = [one for times in found.times.values() for one in times]
    rate = found.calls / found.seconds
    who = f"{found.agents:,} agents that think {found.thinking:.0f} s on average"
    show(f"\n{who}, {found.seconds / MINUTE:.1f} minutes, {WORKERS} workers; {growth_page.machine()}")
    rows = [
        (name, f"{len(times):,}", span(percentile(times, 0.5)), span(percentile(times, 0.99)), span(max(times)))
        for name, times in {**found.times, "all": every}.items()
        if times
    ]
    table("A crowd", ("operation", "calls", "p50", "p99", "longest"), rows)
    show(f"calls: {found.calls:,}, {rate:.0f} a second; errors: {len(found.errors)}")
    show(f"acknowledged texts: {found.acknowledged:,}, of which {len(found.lost)} are lost")
    tenths = [found.memory[len(found.memory) * at // 10 - 1] for at in range(1, 11)]
    show(f"memory of the server in tenths of the time: {', '.join(f'{one:.0f}' for one in tenths)} MB")
    show(f"memory since a quarter of the time: {found.growth:+.1%}")
    show(sizing(found))


def sizing(found: Crowd) -> str:
    """Cores for a number of agents, from what a call cost here."""
    server, postgres = found.server / found.calls, found.postgres / found.calls
    per_agent = (server + postgres) / found.thinking
    costs = f"a call takes {span(server)} of the server's processor time and {span(postgres)} of PostgreSQL's"
    who = f"agents that think {found.thinking:.0f} s"
    return f"{costs}, so {who} need {1_000 * per_agent:.2f} busy cores for each thousand; plan for twice as many"


def trouble(found: Crowd) -> list[str]:
    """What must not be, whatever the machine."""
    return [
        *(f"an error: {one}" for one in found.errors[:3]),
        *(f"acknowledged and lost: {one}" for one in found.lost[:3]),
        *([f"memory grew by {found.growth:.0%}"] if found.growth > GROWTH_MOST else []),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.crowd", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3_600)
    parser.add_argument("--agents", type=int, default=AGENTS)
    parser.add_argument("--thinking", type=float, default=THINKING, help="seconds between two calls, on average")
    parser.add_argument("--loaded", type=int, default=LOADED, help="notes that are there already")
    found = measured(**vars(parser.parse_args()))
    tell(found)
    for problem in trouble(found):
        print(problem)
    return 1 if trouble(found) else 0


if __name__ == "__main__":
    sys.exit(main())
