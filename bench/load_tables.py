"""What was measured under load, as tables. Pure: the same figures give the same text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.measure import ratio, span, verdict

GOAL = 1.5
OURS = "Limpet"
HEADS = ("server", "calls/s", "p50", "p99", "x floor", "goal", "CPU a call: server", "PostgreSQL", "agents")
MORE = ("agents' share", "cores busy", "memory of the server")
Table = tuple[str, tuple[str, ...], list[list[str]]]  # title, heads, rows


def tables(found: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Two tables for each setting: all calls, and each operation."""
    made: list[Table] = []
    for one in found:
        servers, many = one["servers"], f"{one['projects']} project{'s' * (one['projects'] > 1)}"
        floor = servers[0]["rate"]
        title = (
            f"A mixed load of {one['agents']} agents in {many} (floor: one plain SQL statement behind the same stack)"
        )
        made.append((title, (*HEADS, *MORE), [_row(server, floor) for server in servers]))
        heads = ("operation", *(f"{server['name']}: p50 / p99" for server in servers))
        rows = [
            [name, *(_times(server["operations"].get(name)) for server in servers)]
            for name in dict.fromkeys(name for server in servers for name in server["operations"])
        ]
        made.append((f"The same by operation, in {many}", heads, rows))
    return made


def _times(both: Sequence[float] | None) -> str:
    return "none ended in time" if both is None else " / ".join(map(span, both))


def _row(server: Mapping[str, Any], floor: float) -> list[str]:
    rate, parts = server["rate"], (server["server"], server["postgres"], server["client"])
    cores = sum(parts) * rate
    goal = verdict(floor / rate, GOAL, f"≤ {GOAL}x") if server["name"] == OURS else ""
    held = server["memory"]
    return [
        *(server["name"], f"{rate:,.0f}", span(server["p50"]), span(server["p99"]), ratio(floor, rate), goal),
        *map(span, parts),
        *(f"{server['client'] * rate / cores:.0%}", f"{cores:.2f}", f"{held:.0f} MB" if held else "-"),
    ]
