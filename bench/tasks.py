"""`python -m bench tasks`: what a small real model solves across a wipe, with Limpet, with files and with nothing.

Each of twenty tasks (`tasks.toml`) has two sessions of at most four calls. Between them the context is gone; what is
left is what the agent wrote down, or what was kept for it. With Limpet the agent has what a coding agent gives it: the
tools and instructions of `limpet mcp`, and the hooks at the start of a session, at a prompt and after a command. With
files it has a folder that outlives the session and is told to look there and to write down what will be needed; a big
result is cut, as clients cut it. With nothing it has the prompt alone. `model.py` says which model plays the agent.

All of it takes the better part of an hour of a core. With `BENCH_KEPT=file` what is done is kept there, and the next
run goes on; the file is for one version of Limpet.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, cast

from bench.figures import compare, remark
from bench.measure import OUT, Sizes, clean_environment, repository, table
from bench.model import ABSENT, Said, call_schema, for_model, given, listing

TASKS = Path(__file__).with_name("tasks.toml")
APART = 7  # tasks of a kind, or one fewer
CALLS = 4  # of tools in one session
SHOWN = 2_000  # characters at each end of a big result, where nothing keeps it
READ = 6_000  # characters of one answer that the model is shown
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "claude-code", "version": "1"}}
# What is the same for all tasks stands first: the model has it in its cache.
SYSTEM = """You are a coding agent. You work for one person in short sessions. When a session ends, you forget all that
was said in it. {tools}
Answer with one JSON object: {{"name": …, "arguments": …}} to call a function, or {{"answer": …}} to answer the person.
You may call at most four functions; then answer.
{memory}"""
FUNCTIONS = "You may call these functions, one at a time:\n<tools>\n{tools}\n</tools>"
FOLDER = (
    "A folder of files outlives the session. Look into it before you answer what you do not know, and write into it "
    "what will be needed later."
)
ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


class Task(NamedTuple):
    kind: str
    first: str
    then: str
    wanted: tuple[str, ...]
    any_of: bool  # whether one of them is enough
    command: str
    output: str

    def is_solved_by(self, answer: str) -> bool:
        found = [value.casefold() in answer.casefold() for value in self.wanted]
        return any(found) if self.any_of else all(found)


class Memory(Protocol):
    """What an agent has beside its context."""

    tools: list[dict[str, Any]]

    def begin(self, session: str) -> str:
        """What the agent is told at the start of a session."""

    def heard(self, text: str) -> str:
        """What a prompt becomes."""

    def printed(self, command: str, text: str) -> str:
        """What the agent sees of a result."""

    def call(self, name: str, arguments: dict[str, Any]) -> str: ...

    def end(self) -> None: ...


class Nothing:
    """A context, and nothing after it."""

    def __init__(self, folder: Path) -> None:
        self.tools: list[dict[str, Any]] = []

    def begin(self, session: str) -> str:
        return ""

    def heard(self, text: str) -> str:
        return text

    def printed(self, command: str, text: str) -> str:
        return text if len(text) <= 2 * SHOWN else f"{text[:SHOWN]}\n… (cut) …\n{text[-SHOWN:]}"

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        return "There is no such function."

    def end(self) -> None:
        pass


class Files(Nothing):
    """A folder with three functions."""

    def __init__(self, folder: Path) -> None:
        self.tools = [
            _function("list_files", "The names of all files in the folder."),
            _function("read_file", "The text of a file in the folder.", "name"),
            _function("write_file", "Write a text into a file in the folder; what was in it goes.", "name", "text"),
        ]
        self.files: dict[str, str] = {}

    def begin(self, session: str) -> str:
        return FOLDER

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        file = str(arguments.get("name", ""))
        if name == "list_files":
            return "\n".join(sorted(self.files)) or "The folder is empty."
        if name == "write_file":
            self.files[file] = str(arguments.get("text", ""))
            return "Written."
        return self.files.get(file, "There is no such file.")


def _function(name: str, description: str, *arguments: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {argument: {"type": "string"} for argument in arguments},
        "required": list(arguments),
        "additionalProperties": False,
    }
    return {"name": name, "description": description, "parameters": schema}


class Limpet:
    """The MCP server and the hooks, as a coding agent starts them."""

    def __init__(self, folder: Path) -> None:
        self.tools: list[dict[str, Any]] = []
        self.folder = repository(folder)
        self.environment = clean_environment() | {"LIMPET_HOME": str(folder.parent / f"{folder.name}-home")}
        self.session = ""

    def begin(self, session: str) -> str:
        self.session = session
        self.server = subprocess.Popen(
            [sys.executable, "-m", "limpet", "mcp", "--session", session],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=self.folder,
            env=self.environment,
        )
        told = self._ask("initialize", HELLO)
        self.tools = [for_model(tool) for tool in self._ask("tools/list", {})["tools"]]
        start = self._hook("session-start", {"hook_event_name": "SessionStart", "source": "startup"})
        return "\n\n".join(filter(None, [str(told.get("instructions", "")), start.get("additionalContext", "")]))

    def heard(self, text: str) -> str:
        added = self._hook("prompt", {"hook_event_name": "UserPromptSubmit", "prompt": text})
        return "\n\n".join(filter(None, [text, str(added.get("additionalContext", ""))]))

    def printed(self, command: str, text: str) -> str:
        event = {
            "hook_event_name": "PostToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": command},
            "tool_response": {"stdout": text, "stderr": "", "interrupted": False, "isImage": False},
        }
        kept = self._hook("after-tool", event).get("updatedToolOutput")
        return str(kept["stdout"]) if kept else text

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        answer = self._ask("tools/call", {"name": name, "arguments": arguments})
        return "\n".join(part.get("text", "") for part in answer["content"])

    def end(self) -> None:
        self._hook("session-end", {"hook_event_name": "SessionEnd", "reason": "other"})
        self.server.communicate()

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        to, back = cast(IO[str], self.server.stdin), cast(IO[str], self.server.stdout)
        print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), file=to, flush=True)
        while "id" not in (reply := json.loads(back.readline())):
            pass
        if "error" in reply:
            return {"content": [{"text": str(reply["error"]["message"])}]}
        result: dict[str, Any] = reply["result"]
        return result

    def _hook(self, event: str, said: dict[str, Any]) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "limpet", "hook", "--client", "claude-code", event],
            input=json.dumps({"session_id": self.session, "cwd": str(self.folder), **said}),
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment,
            check=True,
        )
        answer: dict[str, Any] = json.loads(done.stdout or "{}")
        specific: dict[str, Any] = answer.get("hookSpecificOutput", {})
        return specific


ARMS: dict[str, Callable[[Path], Memory]] = {"Limpet": Limpet, "files": Files, "nothing": Nothing}


class Outcome(NamedTuple):
    answer: str
    read: int
    written: int
    calls: list[str]
    said: list[str]  # of both sessions, to be read by people


def run(sizes: Sizes) -> None:
    shutil.rmtree(OUT / "tasks", ignore_errors=True)
    _reaching([(number, task) for number, task in enumerate(tasks()) if not number % sizes.pick(1, APART)])
    model = given()
    if model is None:
        print(ABSENT)
        return
    asked = tasks()
    # Of each kind in turn, with all arms, so that a part of it can be looked at.
    order = [number for first in range(sizes.pick(APART, 1)) for number in range(first, len(asked), APART)]
    results: dict[str, list[tuple[Task, Outcome]]] = {name: [] for name in ARMS}
    kept = _kept()
    with model:
        for number in order:
            for slot, (name, arm) in enumerate(ARMS.items()):
                task, folder = asked[number], OUT / "tasks" / f"{number}-{name}"
                outcome = kept.get((number, name)) or _played(task, arm(folder), partial(model.ask, slot=slot))
                results[name].append((task, outcome))
                if (number, name) not in kept:
                    _keep(number, name, outcome)
                mark = "solved" if task.is_solved_by(outcome.answer) else "not"
                print(f"{number} {task.kind}, {name}: {mark}, {outcome.calls}, {outcome.answer[:100]!r}", flush=True)
    _report(results)


def _reaching(asked: Sequence[tuple[int, Task]]) -> None:
    """Without a model: what the second session is shown, where the first kept what it was told by the right call."""
    kinds = list(dict.fromkeys(task.kind for _, task in asked))
    found = {kind: [0, 0, 0] for kind in kinds}
    for number, task in asked:
        memory = Limpet(OUT / "tasks" / f"{number}-reaching")
        memory.begin("monday")
        memory.heard(task.first)
        if task.kind == "output":
            memory.printed(task.command, task.output)
        elif task.kind == "rule":
            memory.call("write_memory", {"key": "rule", "content": task.first})
        else:
            memory.call("add_note", {"content": task.first})
        memory.end()
        shown = memory.begin("tuesday"), memory.heard(task.then), memory.call("recall", {"query": task.then})
        memory.end()
        for place, text in enumerate(shown):
            found[task.kind][place] += task.first in text or task.is_solved_by(text)
    rows = [[kind, f"{sum(task.kind == kind for _, task in asked)}", *map(str, found[kind])] for kind in kinds]
    heads = ("what was told", "tasks", "shown at the start", "shown with the prompt", "found by one recall")
    table("What reaches the next session, without a model", heads, rows)


def _kept() -> dict[tuple[int, str], Outcome]:
    """What earlier runs have done."""
    path = Path(os.environ.get("BENCH_KEPT", ""))
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {(number, name): Outcome(*outcome) for number, name, outcome in map(json.loads, lines)}


def _keep(number: int, name: str, outcome: Outcome) -> None:
    if path := os.environ.get("BENCH_KEPT"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps([number, name, outcome]) + "\n")


def tasks() -> list[Task]:
    return [_task(told) for told in tomllib.loads(TASKS.read_text(encoding="utf-8"))["task"]]


def _task(told: dict[str, Any]) -> Task:
    lines = [told["filler"].format(n=number) for number in range(told.get("lines", 0))]
    if lines:
        lines.insert(len(lines) // 2, told["planted"])
    wanted, command = tuple(told["wanted"]), told.get("command", "")
    return Task(told["kind"], told["first"], told["then"], wanted, told.get("any", False), command, "\n".join(lines))


def _played(task: Task, memory: Memory, ask: Callable[..., Said]) -> Outcome:
    outcomes = []
    for session, words in (("monday", task.first), ("tuesday", task.then)):
        told = memory.begin(session)
        with ExitStack() as ending:
            ending.callback(memory.end)
            prompt = memory.heard(words)
            if session == "monday" and task.command:
                prompt += f"\n\nResult of `{task.command}`:\n{memory.printed(task.command, task.output)}"
            outcomes.append(_session(told, prompt, memory, ask))
    first, then = outcomes
    calls, said = first.calls + then.calls, first.said + then.said
    return Outcome(then.answer, first.read + then.read, first.written + then.written, calls, said)


def _session(told: str, prompt: str, memory: Memory, ask: Callable[..., Said]) -> Outcome:
    tools = FUNCTIONS.format(tools=listing(memory.tools)) if memory.tools else ""
    messages = [
        {"role": "system", "content": SYSTEM.format(memory=told, tools=tools)},
        {"role": "user", "content": prompt},
    ]
    read = written = 0
    calls: list[str] = []
    while True:
        choices = [ANSWER, *map(call_schema, memory.tools)] if len(calls) < CALLS else [ANSWER]
        said = ask(messages, {"anyOf": choices})
        read, written = read + said.read, written + said.written
        answer = said.answer
        if "answer" in answer or len(calls) == CALLS:
            spoken = [*(f"{one['role']}: {one['content']}" for one in messages), f"assistant: {said.text}"]
            return Outcome(str(answer.get("answer", "")), read, written, calls, spoken)
        name = str(answer.get("name"))
        calls.append(name)
        result = memory.call(name, answer.get("arguments") or {})
        messages += [
            {"role": "assistant", "content": said.text},
            {"role": "user", "content": f"Result of {name}:\n{result[:READ]}"},
        ]


def _report(results: dict[str, list[tuple[Task, Outcome]]]) -> None:
    kinds = list(dict.fromkeys(task.kind for played in results.values() for task, _ in played))
    rows = [
        [
            name,
            *(_solved([one for one in played if one[0].kind == kind]) for kind in kinds),
            _solved(played),
            f"{sum(outcome.read for _, outcome in played) / len(played):,.0f}",
            f"{sum(outcome.written for _, outcome in played) / len(played):,.0f}",
            f"{sum(len(outcome.calls) for _, outcome in played) / len(played):.1f}",
        ]
        for name, played in results.items()
    ]
    heads = ("memory", *kinds, "solved", "tokens read a task", "tokens written", "calls")
    table("Tasks across a wipe, by a small model", heads, rows)
    for other in ("files", "nothing"):
        ours, theirs = _share(results["Limpet"]), _share(results[other])
        compare(
            f"tasks solved of {len(results['Limpet'])}",
            ours,
            other,
            theirs,
            show=lambda share: f"{share:.0%}",
            better=" ↑",
        )
    remark("One small model, greedy; tokens read count the whole prompt of every call, also what it had in its cache.")


def _share(played: Sequence[tuple[Task, Outcome]]) -> float:
    return sum(task.is_solved_by(outcome.answer) for task, outcome in played) / len(played)


def _solved(played: Sequence[tuple[Task, Outcome]]) -> str:
    return f"{sum(task.is_solved_by(outcome.answer) for task, outcome in played)} of {len(played)}"
