"""Hooks: `limpet hook` from start to end, on a store with many notes, beside an interpreter that does nothing.

A coding agent waits for one of these at every prompt and after every tool, so the start of the process is what counts.
The goals are for processor time, which other programs on the machine change least.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.corpus import notes
from bench.figures import compare
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

SESSION = "bench"
LINE = "a line of a long result, number "
GOALS = {"after-tool, small result": 2.5, "session-start": 3.0, "stop": 4.0}  # times the interpreter's processor time
CALLS: dict[str, dict[str, object]] = {
    "session-start": {"hook_event_name": "SessionStart", "source": "startup"},
    "prompt": {"hook_event_name": "UserPromptSubmit", "prompt": "go on"},
    "after-tool, small result": {
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_response": {"stdout": "x"},
    },
    "stop": {"hook_event_name": "Stop"},
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
    (folder / "talk.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in _talk(40)))
    compiled()
    floor = "python -I -c pass"
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in (floor, *CALLS)}
    for number in range(sizes.pick(40, 5)):
        times[floor].append(_once([sys.executable, "-I", "-c", "pass"], b""))
        for name, payload in CALLS.items():
            times[name].append(_once(_command(name), _event(folder, name, payload, number)))
    least = tuple(map(min, zip(*times[floor], strict=True)))
    lines = []
    for name, found in times.items():
        wall, cpu = map(min, zip(*found, strict=True))
        most = GOALS.get(name)
        goal = verdict(cpu / least[1], most, f"≤ {most:g}x") if most else ""
        if name != floor:
            compare(f"{name}, {count:,} notes, CPU", cpu, floor, least[1], goal)
        p50 = percentile([wall for wall, _ in found], 0.5)
        lines.append([name, span(cpu), ratio(cpu, least[1]), goal, span(wall), ratio(wall, least[0]), span(p50)])
    heads = ("event", "CPU", "x floor", "goal", "best", "x floor", "p50")
    table(f"`limpet hook`, a new process each, {count:,} notes", heads, lines)


def _talk(turns: int) -> Iterator[dict[str, object]]:
    """A conversation as Claude Code writes it down, with a tool called in every turn."""
    for turn in range(turns):
        call = {"type": "tool_use", "id": f"t{turn}", "name": "Bash", "input": {"command": f"make part-{turn}"}}
        ended = "1 failed, 3 passed\n" if turn % 10 == 0 else "4 passed\n"
        result = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": f"{LINE}{turn}\n" * 20 + ended}
        said = f"Part {turn} is built. It needs src/part_{turn}.py, and takes {turn} seconds."
        for role, content in (
            ("user", f"Go on with part {turn}."),
            ("assistant", [call]),
            ("user", [result]),
            ("assistant", [{"type": "text", "text": said}]),
        ):
            yield {"type": role, "sessionId": SESSION, "message": {"role": role, "content": content}}


def _command(name: str) -> list[str]:
    return [str(launcher()), "hook", "--client", "claude-code", name.partition(",")[0]]


def _event(folder: Path, name: str, payload: dict[str, object], number: int) -> bytes:
    if "1 MB" in name:  # another one each time: the same again would not be written
        text = f"{number}\n" + "\n".join(f"{LINE}{at}" for at in range((1 << 20) // (len(LINE) + 6)))
        payload = {**payload, "tool_response": {"stdout": text}}
    if name == "stop":
        payload = {**payload, "transcript_path": str(folder / "talk.jsonl")}
    # Each start is of a session of its own, which gets the context.
    session = f"{SESSION}-{number}" if name == "session-start" else SESSION
    return json.dumps({"session_id": session, "cwd": str(folder), **payload}).encode()


def _once(command: list[str], content: bytes) -> tuple[float, float]:
    """Seconds on the clock and of CPU from start to end of a process."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=OUT, env=clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert process.stdin is not None
    process.stdin.write(content)
    process.stdin.close()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command} ended with {process.returncode}")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime
