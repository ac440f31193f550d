"""`python -m bench [names…] [--quick] [--peers] [--story FILE] [--write FILE]`: every figure beside its floor.

Nothing here passes or fails. A goal is printed beside its figure, with whether this run met it on this machine.
"""

from __future__ import annotations

import argparse
import compileall
import inspect
import os
import platform
import re
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import apsw

import limpet
from bench import (
    adding,
    answers,
    corpus,
    dashboard,
    hooks,
    journal,
    keeping,
    notes,
    outputs,
    redaction,
    resume,
    start,
    stdio,
    survival,
    writers,
)
from bench.figures import taken
from bench.measure import OUT, ROOT, Sizes, clear_out
from bench.page import write
from bench.peers import operations
from bench.recall import quality, speed


def _adapters(sizes: Sizes) -> None:
    """What Limpet costs inside a framework's own loop, and what it saves there."""
    from bench import adapters  # late: it imports the frameworks, and what is measured before should not pay for them

    adapters.run(sizes)


def _under_load(sizes: Sizes) -> None:
    """Fifty agents at once over HTTP on PostgreSQL, beside plain SQL behind the same stack."""
    from bench import load  # late: it imports a server and a database driver

    load.run(sizes)


def _growing(sizes: Sizes) -> None:
    """What a call costs as a store grows, on both stores."""
    from bench import growth  # late, as above

    growth.run(sizes)


def _choices(sizes: Sizes) -> None:
    """Which tools a small real model takes, with ours and with those of 0.1.0."""
    from bench import choices  # late: it is measured where somebody gives a model

    choices.run(sizes)


def _tasks(sizes: Sizes) -> None:
    """What a small real model solves across a wipe, with Limpet, with files and with nothing."""
    from bench import tasks  # late, as above

    tasks.run(sizes)


def _replica(sizes: Sizes) -> None:
    """Processor time of the primary for each question, with a read replica and without."""
    from bench import replica  # late, as above

    replica.run(sizes)


SUBJECTS: dict[str, Callable[[Sizes], None]] = {
    "start": start.run,
    "hooks": hooks.run,
    "adding": adding.run,
    "notes": notes.run,
    "answers": answers.run,
    "recall": speed.run,
    "retrieval": quality.run,
    "stdio": stdio.run,
    "writers": writers.run,
    "keeping": keeping.run,
    "outputs": outputs.run,
    "survival": survival.run,
    "resume": resume.run,
    "journal": journal.run,
    "redaction": redaction.run,
    "adapters": _adapters,
    "dashboard": dashboard.run,
    "load": _under_load,
    "growth": _growing,
    "replica": _replica,
    "choices": _choices,
    "tasks": _tasks,
    "peers": operations.run,
}


LONG = (
    "load",
    "growth",
    "replica",
)  # a quick look at everything leaves these out: they start servers and fill databases


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Limpet beside its floors.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"what to measure: {', '.join(SUBJECTS)}")
    parser.add_argument("--quick", action="store_true", help="few notes and few rounds, under a minute")
    parser.add_argument("--peers", action="store_true", help="also install and measure other tools (needs pip and npm)")
    parser.add_argument(
        "--story", metavar="FILE", help="of survival: tell this story alone (docs/window.md has the form)"
    )
    parser.add_argument("--write", metavar="FILE", help="put what was measured on this page; other subjects stay")
    given = parser.parse_args()
    for name in given.names:
        if name not in SUBJECTS:
            parser.error(f"there is no {name!r}; choose from {', '.join(SUBJECTS)}")
    story = Path(given.story) if given.story else None
    sizes = Sizes(given.quick, given.peers, (ROOT / given.write).parent if given.write else None, story)
    OUT.mkdir(parents=True, exist_ok=True)
    # As an installer does. Without it every start would also measure the compiler.
    compileall.compile_dir(os.path.dirname(limpet.__file__), quiet=2)
    _header(sizes)
    try:
        for name in given.names or [name for name in SUBJECTS if not (given.quick and name in LONG)]:
            began, load = time.perf_counter(), _load()
            taken()
            print(f"\n## {name}")
            SUBJECTS[name](sizes)
            took = time.perf_counter() - began
            print(f"\n({name} took {took:.0f} s)", flush=True)
            if given.write:
                where = _where(sizes, load, took)
                write(ROOT / given.write, name, _about(SUBJECTS[name]), taken(), where, list(SUBJECTS))
    finally:
        clear_out()


def _header(sizes: Sizes) -> None:
    print(f"# Limpet, measured on {datetime.now(UTC):%Y-%m-%d %H:%M} UTC{' (quick)' if sizes.quick else ''}\n")
    print(
        f"- machine: {_processor()}, {os.cpu_count()} cores, load {_load()}; {platform.system()} {platform.release()}"
    )
    print(f"- disk: {_disk()}")
    print(f"- Python {platform.python_version()}; SQLite {apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})")
    print("- durability: every add survives a power cut on both sides (WAL, synchronous=FULL)")
    print(f"- notes: {corpus.origin()}")
    print("- each figure is the best of several rounds taken in turns; the floor is measured in the same rounds")


def _where(sizes: Sizes, load: str, took: float) -> str:
    """When and where a subject was measured, and how busy it was there before and after."""
    quick = "**Quick: few entries, few rounds.** " if sizes.quick else ""
    busy = "**A busy machine: times are rough.** " if _is_busy(load) or _is_busy(_load()) else ""
    return (
        f"{quick}{busy}{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {took:.0f} s, load {load} before and {_load()} after; "
        f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, {_disk()}; "
        f"Limpet {limpet.__version__}, Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}."
    )


def _about(subject: Callable[[Sizes], None]) -> str:
    """What is measured: the first paragraph of what the subject's module says of itself, without how it is called."""
    said = inspect.getdoc(subject if subject.__module__ == __name__ else sys.modules[subject.__module__]) or ""
    first = re.sub(r"^`[^`]*`: ", "", " ".join(said.partition("\n\n")[0].split()))
    return first[:1].upper() + first[1:]


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "not known"


def _is_busy(load: str) -> bool:
    """Whether more wanted to run than there are cores, with one of them for the run itself."""
    return load != "not known" and float(load) > (os.cpu_count() or 1) + 1


def _disk() -> str:
    """The file system the stores lie on: on one in memory, syncs cost nothing and figures mean little."""
    try:
        with open("/proc/mounts", encoding="utf-8") as file:
            mounts = [line.split()[1:3] for line in file]
    except OSError:
        return "not known"
    place = str(OUT)
    above = [(point, kind) for point, kind in mounts if place == point or place.startswith(point.rstrip("/") + "/")]
    return max(above, key=lambda mount: len(mount[0]))[1] if above else "not known"


if __name__ == "__main__":
    main()
