"""Starting: commands beside an interpreter that does nothing, the MCP server beside a bare loop over lines, and what
`import limpet` brings along. The goals of the server and of `note list` are for processor time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from bench.corpus import notes
from bench.figures import alone, compare
from bench.measure import (
    OUT,
    Sizes,
    clean_environment,
    compiled,
    launcher,
    percentile,
    ratio,
    repository,
    span,
    table,
    verdict,
)
from limpet import wiring
from limpet.home.load import load

VERSION = 3.0  # times the interpreter
NOTE_LIST, SERVER = 4.0, 2.0  # times the interpreter's processor time, and that of a bare loop
HELLO = (
    {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}}},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
)
LOOP = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = {"tools": []} if asked["method"] == "tools/list" else {"protocolVersion": "2025-06-18"}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
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
    compiled()
    script = launcher()
    folder = _store(sizes.pick(1_000, 100))
    commands["limpet --version"] = [str(script), "--version"]
    commands["limpet note list"] = [str(script), "note", "list"]
    commands["a bare loop: tools/list"] = [sys.executable, "-I", "-c", LOOP]
    commands["limpet mcp: tools/list"] = [str(script), "mcp"]
    commands["import limpet"] = [sys.executable, "-c", "import limpet"]
    commands["limpet.open"] = [sys.executable, "-c", "import limpet; limpet.open"]
    walls, cpus = _launch(commands, folder, sizes.pick(40, 5))
    lines = []
    for name in commands:
        wall, cpu = min(walls[name]), min(cpus[name])
        goal = verdict(wall / min(walls[floor]), VERSION, f"≤ {VERSION:.0f}x") if name == "limpet --version" else ""
        if name == "limpet note list":
            goal = verdict(cpu / min(cpus[floor]), NOTE_LIST, f"≤ {NOTE_LIST:.0f}x CPU")
            compare(f"{name}, CPU", cpu, floor, min(cpus[floor]), goal)
        elif name == "limpet mcp: tools/list":
            least = min(cpus["a bare loop: tools/list"])
            goal = verdict(cpu / least, SERVER, f"≤ {SERVER:.0f}x CPU of the loop")
            compare(f"{name}, CPU", cpu, "a bare loop", least, goal)
        elif name not in (floor, "a bare loop: tools/list"):
            compare(name, wall, floor, min(walls[floor]), goal)
        shown = [span(wall), ratio(wall, min(walls[floor])), goal, span(percentile(walls[name], 0.5))]
        lines.append([name, *shown, span(cpu), ratio(cpu, min(cpus[floor]))])
    table("Starting", ("command", "best", "x floor", "goal", "p50", "CPU", "x floor"), lines)
    _modules()


def _store(count: int) -> Path:
    """A folder with notes, a notepad and memory."""
    folder = repository(OUT / "start")
    with wiring.open_with(load(folder=str(folder), environment=clean_environment())) as hold:
        session = hold.session("bench")
        for note in notes(count):
            session.notes.add(note.content, note.tags)
        session.notepad.write("- [ ] an open item\n")
        hold.memory.write("style", "Tabs, never spaces.")
    return folder


def _launch(
    commands: Mapping[str, Sequence[str]], folder: Path, rounds: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    walls: dict[str, list[float]] = {name: [] for name in commands}
    cpus: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            wall, cpu = _once(command, folder)
            walls[name].append(wall)
            cpus[name].append(cpu)
    return walls, cpus


def _once(command: Sequence[str], folder: Path) -> tuple[float, float]:
    """Seconds on the clock and of CPU from start to end of a process, which is sent the beginning of a conversation."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write("".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in HELLO).encode())
        process.stdin.close()
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
