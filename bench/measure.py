"""How things are measured: two or more ways of doing the same work, in turns, and the best round of each.

Other programs on the machine only ever make a figure worse, so the best of several rounds is the nearest to the truth,
and CPU time beside it shows what waiting for the disk hides.
"""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shutil import rmtree, which
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
OUT = Path(os.environ.get("BENCH_OUT") or ROOT / "bench" / "out")  # on a real disk, unlike /tmp on many machines
# Public data that is not ours to pass on (LoCoMo, outputs of tools); beside the repository unless a place is named.
DATA = Path(os.environ.get("BENCH_DATA") or ROOT.parent / "shared" / "bench")
Work = Callable[[int], object]


def clear_out() -> None:
    """Remove the stores of a run. Installed peers stay, for the next one."""
    for path in OUT.iterdir():
        if path.name == "peers":
            continue
        if path.is_dir():
            rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


class Sample(NamedTuple):
    """Seconds an operation, each the best of all rounds."""

    p50: float
    p99: float
    cpu: float


class Sizes(NamedTuple):
    """How much is measured: all of it, or what a quick look allows."""

    quick: bool
    peers: bool
    folder: Path | None = None  # of the page that is written, if one is; what else a subject writes goes there too
    story: Path | None = None  # the only story that survival tells

    def pick(self, full: int, quick: int) -> int:
        return quick if self.quick else full


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def in_turns(ways: Mapping[str, Work], rounds: int, ops: int) -> dict[str, Sample]:
    """Every way does `ops` operations a round, one way after the other; the order turns from round to round."""
    gc.collect()
    gc.freeze()  # what is only there to feed the measurement must not be walked through during it
    found: dict[str, list[Sample]] = {name: [] for name in ways}
    names = list(ways)
    for turn in range(rounds):
        for name in names if turn % 2 == 0 else reversed(names):
            found[name].append(_block(ways[name], range(turn * ops, (turn + 1) * ops)))
    gc.unfreeze()
    return {name: best(samples) for name, samples in found.items()}


def _block(work: Work, numbers: range) -> Sample:
    times = []
    cpu = time.process_time_ns()
    for number in numbers:
        began = time.perf_counter_ns()
        work(number)
        times.append(time.perf_counter_ns() - began)
    spent = time.process_time_ns() - cpu
    return Sample(percentile(times, 0.5) / 1e9, percentile(times, 0.99) / 1e9, spent / len(numbers) / 1e9)


def best(samples: Sequence[Sample]) -> Sample:
    return Sample(*(min(column) for column in zip(*samples, strict=True)))


# --- processes --------------------------------------------------------------------------------------------------------


def clean_environment() -> dict[str, str]:
    """The environment without anything that would change what a Limpet process does or how fast it starts."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LIMPET_", "COVERAGE_"))}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
    return kept | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "LIMPET_HOME": str(OUT / "home")}


def launcher() -> Path:
    """The `limpet` command as uv, pipx and pip write it today: older ones import `re` first."""
    path = OUT / "bin" / "limpet"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\nimport sys\nfrom limpet.doors.cli import main\nsys.exit(main())\n")
    path.chmod(0o755)
    return path


def compiled() -> None:
    """Compile the package, as installing does."""
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(ROOT / "src")], env=clean_environment(), check=False)


def repository(folder: Path) -> Path:
    """Make a folder a git repository. Without that, one below OUT belongs to the project of this checkout."""
    (folder / ".git" / "objects").mkdir(parents=True, exist_ok=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


def cpu_of(pid: int) -> float | None:
    """CPU seconds of a process's threads so far; None where the system does not tell."""
    try:
        spent = [int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    except (OSError, ValueError, IndexError):
        return None
    return sum(spent) / 1e9 if spent else None


def resident(pid: int) -> tuple[float, float] | None:
    """Megabytes of memory a process holds now and held at most; None where the system does not tell."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    now, most = (re.search(rf"{name}:\s+(\d+) kB", status) for name in ("VmRSS", "VmHWM"))
    return (int(now[1]) / 1024, int(most[1]) / 1024) if now and most else None


MARK = "/limpet-bench-mark"  # a path nobody has: looking for it leaves a line in the trace


def mark() -> None:
    """Where counting begins and ends, for a process that is being traced."""
    os.access(MARK, os.F_OK)


def syncs(arguments: Sequence[str]) -> dict[str, int] | None:
    """How often a Python process (`-m bench.child …`) syncs each file between its two marks; None without strace."""
    if which("strace") is None:
        return None
    trace = OUT / "trace.txt"
    calls = "fsync,fdatasync,?sync_file_range,?msync,?access,?faccessat,?faccessat2"
    command = ["strace", "-f", "-y", "-o", str(trace), "-e", f"trace={calls}", sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=clean_environment(), capture_output=True, check=False)
    if done.returncode != 0:
        return None
    counted: dict[str, int] = {}
    inside = False
    for line in trace.read_text(errors="replace").splitlines():
        if MARK in line:
            inside = not inside
        elif inside and (call := re.search(r"\b(?:f(?:data)?sync|sync_file_range|msync)\(\d+<([^>]*)>", line)):
            counted[Path(call[1]).name] = counted.get(Path(call[1]).name, 0) + 1
    return counted


# --- showing ----------------------------------------------------------------------------------------------------------


def span(seconds: float | None) -> str:
    """A time with a unit that suits it."""
    if seconds is None:
        return "not measured"
    for factor, unit in ((1e6, "µs"), (1e3, "ms")):
        if seconds * factor < 1000:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.2f} s"


def ratio(ours: float | None, floor: float | None) -> str:
    return f"{ours / floor:.2f}x" if ours is not None and floor else "-"


class Verdict(str):
    """A goal with whether it was met, as it is printed; and both apart, for the page."""

    __slots__ = ("goal", "met")
    goal: str
    met: bool


def verdict(value: float | None, most: float, goal: str) -> str:
    """The goal, and whether this run met it."""
    if value is None:
        return goal
    met = value <= most
    said = Verdict(f"{goal}: {'met' if met else 'MISSED'}")
    said.goal, said.met = goal, met
    return said


class Table(NamedTuple):
    title: str
    heads: Sequence[str]
    lines: Sequence[Sequence[str]]


TABLES: list[Table] = []  # that were printed, for whoever makes a page of a run


def table(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """A table in Markdown, with columns that line up."""
    TABLES.append(Table(title, heads, lines))
    widths = [max(len(row[at]) for row in [heads, *lines]) for at in range(len(heads))]
    print(f"\n### {title}\n")
    for at, row in enumerate([heads, *lines]):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |")
        if at == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    sys.stdout.flush()
