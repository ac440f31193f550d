"""Starting: `limpet --version` beside an interpreter that does nothing, and what `import limpet` brings along."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from bench.figures import alone, compare, remark
from bench.measure import OUT, Sizes, clean_environment, percentile, ratio, span, table, verdict

VERSION = 3.0  # times the interpreter
# Libraries that only doors and stores may bring, when they are used; and the heavy parts of the standard library.
HEAVY = {
    "apsw",
    "psycopg",
    "psycopg_pool",
    "mcp",
    "starlette",
    "uvicorn",
    "anyio",
    "httpx",
    "pydantic",
    "click",
    "rich",
}
HEAVY |= {"Stemmer", "asyncio", "ssl", "http", "email", "urllib", "sqlite3", "ctypes", "multiprocessing", "concurrent"}
HEAVY |= {"logging", "inspect", "dataclasses"}
IMPORTS = {
    "import limpet": "import limpet",
    "limpet.open": "import limpet; limpet.open",
    "the stdio server": "import limpet.doors.stdio",
}


def run(sizes: Sizes) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    floor = "python -I -c pass"
    commands: dict[str, list[str]] = {floor: [sys.executable, "-I", "-c", "pass"]}
    script = Path(sys.executable).with_name("limpet")
    if find_spec("limpet.doors.cli") and script.exists():
        commands["limpet --version"] = [str(script), "--version"]
    else:
        remark("The `limpet` command is not there: its --version is not measured.")
    commands["import limpet"] = [sys.executable, "-c", "import limpet"]
    commands["limpet.open"] = [sys.executable, "-c", "import limpet; limpet.open"]
    walls, cpus = _launch(commands, sizes.pick(40, 5))
    lines = []
    for name in commands:
        wall, cpu = min(walls[name]), min(cpus[name])
        goal = verdict(wall / min(walls[floor]), VERSION, f"≤ {VERSION:.0f}x") if name == "limpet --version" else ""
        if name != floor:
            compare(name, wall, floor, min(walls[floor]), goal)
        shown = [span(wall), ratio(wall, min(walls[floor])), goal, span(percentile(walls[name], 0.5))]
        lines.append([name, *shown, span(cpu), ratio(cpu, min(cpus[floor]))])
    table("Starting", ("command", "best", "x floor", "goal", "p50", "CPU", "x floor"), lines)
    _modules()


def _launch(
    commands: Mapping[str, Sequence[str]], rounds: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    walls: dict[str, list[float]] = {name: [] for name in commands}
    cpus: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            wall, cpu = _once(command)
            walls[name].append(wall)
            cpus[name].append(cpu)
    return walls, cpus


def _once(command: Sequence[str]) -> tuple[float, float]:
    """Seconds on the clock and of CPU from start to end of a process."""
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=OUT, env=clean_environment(), stdout=subprocess.DEVNULL)
    if not hasattr(os, "wait4"):
        process.wait()
        return time.perf_counter() - began, 0.0
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command} ended with {process.returncode}")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime


def _modules() -> None:
    lines = []
    bare = _loaded("pass")
    for name, statement in IMPORTS.items():
        found = _loaded(statement) - bare
        outside = {module.partition(".")[0] for module in found} & HEAVY
        if name == "import limpet":
            alone(f"{name}: heavy modules", str(len(outside)), verdict(len(outside), 0, "none"))
        lines.append([name, str(len(found)), ", ".join(sorted(outside)) or "none"])
    table("What an import brings along", ("import", "modules", "heavy ones (none expected for import limpet)"), lines)


def _loaded(statement: str) -> set[str]:
    program = f"{statement}\nimport sys\nprint(' '.join(sys.modules))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=OUT, env=clean_environment(), capture_output=True, text=True, check=True)
    return set(done.stdout.split())
