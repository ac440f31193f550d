"""Hooks: `limpet hook` from start to end, on a store with many notes, beside an interpreter that does nothing.

A coding agent waits for one of these at every prompt and after every tool, so the start of the process is what counts.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from bench.corpus import notes
from bench.figures import compare
from bench.measure import OUT, Sizes, clean_environment, percentile, ratio, repository, span, table, verdict
from limpet import wiring
from limpet.home.load import load

GOAL = 4.0  # times the interpreter
SESSION = "bench"
LINE = "a line of a long result, number "
CALLS: dict[str, dict[str, object]] = {
    "session-start": {"hook_event_name": "SessionStart", "source": "resume"},
    "prompt": {"hook_event_name": "UserPromptSubmit", "prompt": "go on"},
    "after-tool, small result": {
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_response": {"stdout": "x"},
    },
    "after-tool, 1 MB kept": {"hook_event_name": "PostToolUse", "tool_name": "Bash"},
}


def run(sizes: Sizes) -> None:
    folder = OUT / "hooks"
    shutil.rmtree(folder, ignore_errors=True)
    count = sizes.pick(10_000, 200)
    chosen = load(folder=str(repository(folder)), environment=clean_environment())
    with wiring.open_with(chosen) as hold:
        session = hold.session(SESSION)
        for note in notes(count):
            session.notes.add(note.content, note.tags)
        session.notepad.write("- [ ] an open item\n" * 20)
        hold.memory.write("style", "Tabs, never spaces.")
    floor = "python -I -c pass"
    times: dict[str, list[float]] = {name: [] for name in (floor, *CALLS)}
    for number in range(sizes.pick(40, 5)):
        times[floor].append(_once([sys.executable, "-I", "-c", "pass"], b""))
        for name, payload in CALLS.items():
            times[name].append(_once(_command(name), _event(folder, name, payload, number)))
    least = min(times[floor])
    lines = []
    for name, found in times.items():
        goal = verdict(min(found) / least, GOAL, f"≤ {GOAL:.0f}x") if name != floor and "1 MB" not in name else ""
        if name != floor:
            compare(f"{name}, {count:,} notes", min(found), floor, least, goal)
        lines.append([name, span(min(found)), ratio(min(found), least), goal, span(percentile(found, 0.5))])
    table(f"`limpet hook`, a new process each, {count:,} notes", ("event", "best", "x floor", "goal", "p50"), lines)


def _command(name: str) -> list[str]:
    return [str(Path(sys.executable).with_name("limpet")), "hook", "--client", "claude-code", name.partition(",")[0]]


def _event(folder: Path, name: str, payload: dict[str, object], number: int) -> bytes:
    if "1 MB" in name:  # another one each time: the same again would not be written
        text = f"{number}\n" + "\n".join(f"{LINE}{at}" for at in range((1 << 20) // (len(LINE) + 6)))
        payload = {**payload, "tool_response": {"stdout": text}}
    return json.dumps({"session_id": SESSION, "cwd": str(folder), **payload}).encode()


def _once(command: list[str], content: bytes) -> float:
    """Seconds from start to end of a process."""
    began = time.perf_counter()
    subprocess.run(command, input=content, cwd=OUT, env=clean_environment(), stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began
