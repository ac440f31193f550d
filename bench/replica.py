"""What a read replica takes off the primary: questions asked with and without one, on two real servers.

Processor time is that of the servers' living processes. Both ways keep their connections from the first round on.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from bench import corpus, stores
from bench.figures import compare
from bench.measure import ROOT, Sizes, cpu_of, percentile, span, table
from limpet.api import Limpet
from limpet.model import Scope
from limpet.recall.embeddings import Embeddings, catch_up
from limpet.stores.postgres.store import PostgresStore
from limpet.wiring import choose_embeddings

sys.path.append(str(ROOT / "tests"))  # where the tests' own way of starting a primary and a standby is
from own_postgres import Node, Pair, pair

SCOPE = Scope("bench", "home")
HEADS = ("questions", "CPU of the primary", "CPU of the replica", "p50", "p99", "by the replica")


class Way:
    """Questions put to a store, and what they cost."""

    def __init__(self, servers: Pair, replica: str | None) -> None:
        self.store = PostgresStore(servers.primary.url, replica)
        self._hold = Limpet(self.store, SCOPE, embeddings=Embeddings(choose_embeddings))
        self._servers = servers
        self.times: list[float] = []
        self.primary = self.standby = 0.0

    def ask(self, questions: list[str]) -> None:
        before = cpu(self._servers.primary), cpu(self._servers.standby)
        for question in questions:
            began = time.perf_counter()
            self._hold.recall(question)
            self.times.append(time.perf_counter() - began)
        self.primary += cpu(self._servers.primary) - before[0]
        self.standby += cpu(self._servers.standby) - before[1]

    def forget(self) -> None:
        self.times, self.primary, self.standby = [], 0.0, 0.0


def cpu(server: Node) -> float:
    inside = str(server.home)
    spent = 0.0
    for path in Path("/proc").iterdir():
        try:
            if path.name.isdecimal() and os.readlink(path / "cwd").startswith(inside):
                spent += cpu_of(int(path.name)) or 0.0
        except OSError:
            continue
    return spent


def run(sizes: Sizes) -> None:
    """Processor time of the primary for each question, with a read replica and without."""
    count, rounds, ops = sizes.pick(20_000, 1_000), sizes.pick(6, 2), sizes.pick(50, 20)
    with pair(synchronous=False) as servers:
        ways = {"with a replica": Way(servers, servers.standby.url), "without one": Way(servers, None)}
        try:
            _fill(ways["without one"].store, count)
            servers.primary.ask_store("ANALYZE")
            servers.caught_up()
            _measure(ways, [one.text for one in corpus.questions("eight", count, rounds * ops)], rounds)
        finally:
            for way in ways.values():
                way.store.close()


def _fill(store: PostgresStore, count: int) -> None:
    Limpet(store, SCOPE, session="loaded").import_lines(stores.export_of(corpus.notes(count)))
    if (
        index := choose_embeddings().static
    ) is not None:  # else the first questions would make the vectors of all of it
        catch_up(index, store, SCOPE, count)


def _measure(ways: dict[str, Way], questions: list[str], rounds: int) -> None:
    for way in ways.values():
        way.ask(questions[:3])  # makes connections, plans and vectors
        way.forget()
    for turn in range(rounds):
        for way in [*ways.values()][:: 1 if turn % 2 else -1]:
            way.ask(questions[turn::rounds])
    ours, alone = ways.values()
    lines = []
    for name, way in ways.items():
        asked = len(way.times)
        answered = f"{way.store.searches().get('replica', 0):,}"
        spent = [span(one / asked) for one in (way.primary, way.standby)]
        lines.append([name, *spent, *(span(percentile(way.times, share)) for share in (0.5, 0.99)), answered])
    table(f"{len(questions):,} questions of eight words", HEADS, lines)
    asked = len(questions)
    compare("primary's CPU for a question, with a replica", ours.primary / asked, "without one", alone.primary / asked)
    middle = [percentile(way.times, 0.5) for way in ways.values()]
    compare("a question, with a replica", middle[0], "without one", middle[1])
