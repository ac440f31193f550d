"""How the work grows with what is kept: add, search and window at 10,000, 100,000 and 1,000,000 entries.

All entries are notes of one project, a hundred to a session, or, in another store, all of one session and of this week.
What is searched is a project; a kept output comes with a hundred of them.
Each store of each size is filled and measured by processes of their own (growth_child.py). How it grows is
printed: the exponent b of time = a·entries^b, fitted to the medians. 0 does not grow, 1 grows as fast as what is kept.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import psycopg

from bench import growth_page, stores
from bench.figures import compare, plot
from bench.growth_tables import ONE_SESSION, POSTGRES, SQLITE, Point, ends, tables
from bench.load_postgres import Cluster, cluster
from bench.measure import OUT, ROOT, Sizes, clean_environment, percentile, table

SECONDS, QUICK_SECONDS = 10.0, 0.2  # for one kind of operation at one size


def run(sizes: Sizes) -> None:
    counts = (1_000, 10_000) if sizes.quick else (10_000, 100_000, 1_000_000)
    where = growth_page.machine()
    found = measured(counts, QUICK_SECONDS if sizes.quick else SECONDS)
    for title, heads, rows in tables(found):
        table(title, heads, rows)
    for store, name, few, many, goal in ends(found):
        what = f"{store}: {name}, {many.entries:,} entries"
        compare(what, many.times[name][0], f"the same of {few.entries:,}", few.times[name][0], goal)
    for path in growth_page.kept(sizes, "growth", where, [point._asdict() for point in found]):
        plot(f"{path.stem}: median of one call by entries in one project", str(path.relative_to(ROOT)))


def measured(counts: Sequence[int], seconds: float) -> list[Point]:
    """A point for each store and size."""
    found: list[Point] = []
    for store in (SQLITE, ONE_SESSION, POSTGRES):
        with ExitStack() as stack:
            server = stack.enter_context(cluster()) if store == POSTGRES else None
            for count in counts:
                began = time.perf_counter()
                made = _sqlite(store, count, seconds) if server is None else _postgres(server, count, seconds)
                found.append(made)
                filled, took = found[-1].load_seconds, time.perf_counter() - began
                print(f"{store}, {count:,} entries: filled in {filled:.0f} s, all in {took:.0f} s", flush=True)
    return found


def _sqlite(store: str, count: int, seconds: float) -> Point:
    place = stores.folder("grown")
    path, shape = place / "grown.db", "one" if store == ONE_SESSION else "many"
    loaded = _child("load", str(path), count, shape=shape)
    size = sum(file.stat().st_size for file in place.iterdir())
    point = _point(store, count, loaded, size, _child("measure", str(path), count, seconds, shape))
    stores.folder("grown")  # a million entries take gigabytes
    return point


def _postgres(server: Cluster, count: int, seconds: float) -> Point:
    url = server.database("grown")
    loaded = _child("load", url, count)
    with psycopg.connect(url, autocommit=True) as con:
        con.execute("VACUUM ANALYZE")  # as autovacuum does within minutes
        size = int(con.execute("SELECT pg_database_size(current_database())").fetchall()[0][0])
        name = con.info.dbname
    point = _point(POSTGRES, count, loaded, size, _child("measure", url, count, seconds))
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {name}")
    return point


def _child(what: str, store: str, count: int, seconds: float = 0.0, shape: str = "many") -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.growth_child", what, store, str(count), str(seconds), shape]
    done = subprocess.run(command, env=clean_environment(), stdout=subprocess.PIPE, text=True, check=True, cwd=OUT)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _point(store: str, count: int, loaded: Mapping[str, Any], size: int, found: Mapping[str, Any]) -> Point:
    times, counts = {}, {}
    for name, rounds in found["times"].items():
        # Other programs only ever make a round worse.
        p50, p99 = (min(percentile(one, share) for one in rounds) for share in (0.5, 0.99))
        times[name] = p50, p99, min(found["cpu"][name])
        counts[name] = sum(map(len, rounds))
    return Point(store, count, times, counts, loaded["seconds"], size, found["empty_mb"], found["rss_mb"])
