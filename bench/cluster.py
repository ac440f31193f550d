"""Calls on two stores in turns: on a plain PostgreSQL and on a Citus cluster of the same version, or on any two.

    python -m bench.cluster plain=postgresql://one/bench citus=postgresql://coordinator/bench

Each gets a project of its own with 1,000 notes. The time is that of the caller.
"""

from __future__ import annotations

import random
import sys
import time
import uuid
from collections.abc import Callable

from bench import corpus, stores
from bench.measure import percentile, span, table
from limpet.api import Limpet
from limpet.model import Scope
from limpet.wiring import choose_store

NOTES, ROUNDS, EACH = 1_000, 4, 10


def main(addresses: dict[str, str]) -> None:
    """Time of a call on each store, and how many times that of the first."""
    scope = Scope(f"bench {uuid.uuid4().hex[:8]}", "home")
    holds = {name: Limpet(choose_store(address), scope, session="loaded") for name, address in addresses.items()}
    times: dict[str, dict[str, list[float]]] = {}
    lines = list(stores.export_of(corpus.notes(NOTES)))
    texts = [note.content for note in corpus.notes(NOTES)]
    for name, hold in holds.items():
        began = time.perf_counter()
        hold.import_lines(lines)
        print(f"{name}: {NOTES / (time.perf_counter() - began):,.0f} notes/s imported", flush=True)
    for round_number in range(ROUNDS):
        for name, hold in holds.items():
            for operation, call in _calls(hold, texts, random.Random(round_number)).items():
                spent = times.setdefault(operation, {}).setdefault(name, [])
                for _ in range(EACH):
                    began = time.perf_counter()
                    call()
                    spent.append(time.perf_counter() - began)
    first = next(iter(holds))
    rows = []
    for operation, by_store in times.items():
        floor = percentile(by_store[first], 0.5)
        for name, spent in by_store.items():
            p50 = percentile(spent, 0.5)
            rows.append((operation, name, span(p50), span(percentile(spent, 0.99)), f"{p50 / floor:.2f}x"))
    table("calls", ("operation", "store", "p50", "p99", f"x {first}"), rows)
    for hold in holds.values():
        hold.close()


def _calls(hold: Limpet, texts: list[str], chance: random.Random) -> dict[str, Callable[[], object]]:
    def some(count: int) -> str:
        return " ".join(chance.choice(texts).split()[:count])

    return {
        "add_note": lambda: hold.call("add_note", {"content": f"{some(30)} {chance.random()}", "tags": ["a", "b"]}),
        "search_notes, a word": lambda: hold.call("search_notes", {"query": some(3).split()[-1]}),
        "search_notes, two words": lambda: hold.call("search_notes", {"query": some(2)}),
        "recall, eight words": lambda: hold.call("recall", {"query": some(8)}),
        "list_notes": lambda: hold.call("list_notes", {}),
    }


if __name__ == "__main__":
    main(dict(argument.split("=", 1) for argument in sys.argv[1:]))
