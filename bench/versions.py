"""Two checkouts side by side: `python -m bench.versions OLD [--package NAME]` measures this one against an older one.

Each subject runs in processes of its own, old and new in turns, and the best and the median of all rounds are compared.
Wall time on a busy machine moves, so CPU time (user and system, of the process and its children) is printed beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent.parent
NOTE = {"name": "add_note", "arguments": {"content": "casts"}}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
STEPS = "".join(f"2026-03-03 12:00:00 INFO step {n} of the build, file src/{n % 97}.c\n" for n in range(2000))
TRANSCRIPT = "transcript.jsonl"
RECORDS = [
    {"type": role, "message": {"role": role, "content": [{"type": "text", "text": f"{text} {n}"}]}}
    for n in range(20)
    for role, text in (("user", "Repair the cast, number"), ("assistant", "The grammar was changed in file"))
]
# What a store holds before a hook runs: a handoff and the notepad of the session, and some of the rest.
CONTENT = (
    ("handoff", "write", "Parser done. Next: casts, see the notepad.", "--session", "earlier"),
    ("pad", "write", "- [ ] an open item\n" * 20, "--session", "bench"),
    ("note", "add", "Casts break LL(1)", "--session", "bench"),
    ("memory", "write", "style", "Tabs, never spaces."),
)


def rpc(number: int, method: str, params: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


# A program prints how many seconds of wall and CPU one unit of its work took.
LIBRARY = """
import sys, time, importlib, tempfile, os
package = importlib.import_module(sys.argv[1])
hold = package.open(os.path.join(sys.argv[2], "bench.db"))
session = hold.session("bench")
{prepare}
n = 10**6  # once before, so that what is imported at the first call does not count
{work}
began, cpu = time.perf_counter(), time.process_time()
for n in range({times}):
    {work}
print((time.perf_counter() - began) / {times}, (time.process_time() - cpu) / {times})
"""
LOG = "''.join(f'2026-03-03 12:00:00 INFO step {n} of the build, file src/{n % 97}.c\\n' for n in range(16000))"
WORDS = (
    *("lexer", "parser", "grammar", "token", "cast", "branch", "release"),
    *("index", "commit", "stream", "buffer", "window", "ledger", "anchor"),
)
FILL = (
    f"words = {WORDS!r}\n"
    "for n in range(1000): session.notes.add(' '.join(words[(n * k) % 14] for k in range(1, 9)) + f' number {n}')"
)
STDIO = """
import subprocess, sys, time, json, os
server = subprocess.Popen([sys.executable, "-m", sys.argv[1], "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True)
def ask(line):
    server.stdin.write(line); server.stdin.flush()
    return server.stdout.readline()
def used():
    fields = open(f"/proc/{server.pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
ask(HELLO)
ask(NOTE)  # reading makes no store
params = {"name": "list_tags", "arguments": {}}
line = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
for n in range(50): ask(line + "\\n")
began, cpu = time.perf_counter(), used()
for n in range(2000): ask(line + "\\n")
print((time.perf_counter() - began) / 2000, (used() - cpu) / 2000)
server.stdin.close(); server.wait()
"""
STDIO = STDIO.replace("HELLO", repr(rpc(1, "initialize", HELLO))).replace("NOTE", repr(rpc(3, "tools/call", NOTE)))


class Subject(NamedTuple):
    name: str
    command: tuple[str, ...] = ()  # a command line of the package: what is measured is the process
    stdin: str = ""
    program: str = ""  # or a program that measures itself
    prepare: tuple[tuple[str, ...], ...] = ()  # command lines of the package that run before, in the same folder


def hook(name: str, event: str, client_event: str, *prepare: tuple[str, ...], **members: object) -> Subject:
    payload = {"session_id": "bench", "hook_event_name": client_event, "transcript_path": TRANSCRIPT, **members}
    return Subject(f"start: hook {name}", ("hook", "--client", "claude-code", event), json.dumps(payload), "", prepare)


def result(text: str) -> dict[str, object]:
    response = {"stdout": text, "stderr": "", "interrupted": False}
    return {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": response}


def library(name: str, work: str, times: int, prepare: str = "") -> Subject:
    return Subject(name, program=LIBRARY.format(work=work, times=times, prepare=prepare))


SUBJECTS = (
    Subject("start: mcp to initialize", ("mcp",), rpc(1, "initialize", HELLO)),
    Subject("start: mcp to tools/list", ("mcp",), rpc(1, "initialize", HELLO) + rpc(2, "tools/list", {})),
    hook("after a small result", "after-tool", "PostToolUse", **result("a\nb\n")),
    hook("after a big result", "after-tool", "PostToolUse", *CONTENT, **result(STEPS)),
    hook("at session start, no store", "session-start", "SessionStart", source="startup"),
    hook("at session start", "session-start", "SessionStart", *CONTENT, source="startup"),
    hook("before a prompt", "prompt", "UserPromptSubmit", *CONTENT[:1], prompt="go on"),
    hook("before a prompt, a new notepad", "prompt", "UserPromptSubmit", *CONTENT, prompt="go on"),
    hook("after a turn", "stop", "Stop", *CONTENT),
    hook("before a compaction", "before-compact", "PreCompact", *CONTENT, trigger="auto"),
    hook("at session end", "session-end", "SessionEnd", *CONTENT, reason="exit"),
    Subject("start: note list", ("note", "list")),
    Subject("start: --version", ("--version",)),
    Subject("a trivial call over stdio", program=STDIO),
    library("add a note", "session.notes.add(f'A note about casts and number {n}', tags=['grammar'])", 300, FILL),
    library("search notes", "session.notes.search(words[n % 14] + ' ' + words[(n * 3) % 14])", 300, FILL),
    library("recall", "hold.recall('which ' + words[n % 14] + ' and ' + words[(n * 3) % 14] + ' number')", 100, FILL),
    library("keep 1 MB", "session.outputs.keep('log', str(n) + text)", 10,
            "text = " + LOG),
)  # fmt: skip


def measured(subject: Subject, source: Path, package: str, folder: Path, cache: str) -> tuple[float, float]:
    """Wall and CPU seconds. Byte code is cached, as it is after an installation."""
    env = {**os.environ, "PYTHONPATH": str(source), "HOME": str(folder), "PYTHONPYCACHEPREFIX": cache}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    if subject.program:
        command = [sys.executable, "-c", subject.program, package, str(folder)]
        wall, cpu = run(command, env, folder).split()[-2:]
        return float(wall), float(cpu)
    for words in subject.prepare:
        run([sys.executable, "-m", package, *words], env, folder)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run([sys.executable, "-m", package, *subject.command], env, folder, subject.stdin)
    wall_seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if (log := next(folder.rglob("hooks.log"), None)) is not None:  # a hook ends with 0 whatever happens
        raise RuntimeError(f"{subject.name}: {log.read_text()}")
    return wall_seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(command: list[str], env: dict[str, str], folder: Path, stdin: str = "") -> str:
    done = subprocess.run(command, env=env, cwd=folder, input=stdin, capture_output=True, text=True, check=True)
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path, help="the checkout to compare with")
    parser.add_argument("--package", default="limpet", help="what the package is called there")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="subjects whose name contains this")
    chosen = parser.parse_args()
    sides = {"old": (chosen.old / "src", chosen.package), "new": (HERE / "src", "limpet")}
    print(f"{'':44}{'old best':>11}{'new best':>11}{'ratio':>8}{'median':>8}{'CPU best':>10}{'CPU median':>11}")
    with tempfile.TemporaryDirectory() as cache:
        for subject in SUBJECTS:
            if chosen.only in subject.name:
                compare(subject, sides, chosen.rounds, cache)


def compare(subject: Subject, sides: dict[str, tuple[Path, str]], rounds: int, cache: str) -> None:
    figures: dict[str, list[tuple[float, float]]] = {"old": [], "new": []}
    for turn in range(-1, rounds):  # the first turn fills the cache of byte code and does not count
        for side in ("old", "new") if turn % 2 else ("new", "old"):
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / ".git").mkdir()
                (Path(folder) / TRANSCRIPT).write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
                figures[side].append(measured(subject, *sides[side], Path(folder), cache))
    figures = {side: rows[1:] for side, rows in figures.items()}
    best = {side: [min(column) for column in zip(*rows, strict=True)] for side, rows in figures.items()}
    middle = {side: [statistics.median(c) for c in zip(*rows, strict=True)] for side, rows in figures.items()}
    ratios = [values["new"][at] / values["old"][at] for at in (0, 1) for values in (best, middle)]
    print(
        f"{subject.name:44}{1e3 * best['old'][0]:9.3f}ms{1e3 * best['new'][0]:9.3f}ms"
        f"{ratios[0]:8.2f}{ratios[1]:8.2f}{ratios[2]:10.2f}{ratios[3]:11.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
