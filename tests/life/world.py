"""The world of a composed story: a computer, its projects, the doors, and beside them what must be true.

What must be true is plain lists and dictionaries (`Truth`). Steps change the world through doors and write down what
was acknowledged; `World.look` reads everything back through doors and compares.
"""

from __future__ import annotations

import copy
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2

import limpet
from life.kit import COMMAND, LISTENING, TOKEN, Computer
from life.pace import Pace
from limpet.catalogue.table import find

CALLS = str(Path(__file__).with_name("calls.py"))
REFERENCE = re.compile(r"Output cached: ([0-9a-f]{12,64})")
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "story", "version": "1"}}
DISK_BYTES = 64 << 20
PROFILE = "agent"  # of every server
# Where the machine has time (`Pace`). Nothing that a story does takes so long, but waiting for a lock.
SLOW_SECONDS = 30.0  # of a call
PROGRAM_SECONDS = 100.0  # of a program that does several things
HOOK_SECONDS = 5  # after which a hook gives up, because the agent waits for it
HANGS_SECONDS = 900.0  # however slow the machine is
Json = dict[str, Any]
Call = tuple[str, Any, str]  # operation, arguments, session


class Broken(Exception):
    """Something that must be true is not."""


class Refused(Exception):
    """A door refused a call; its words."""


class Truth:
    """What must be true of one project."""

    def __init__(self) -> None:
        self.notes: dict[str, tuple[str, tuple[str, ...], bool]] = {}  # id: text, tags, done
        self.replaced: set[str] = set()  # notes that have a correction, which is what may be corrected from then on
        self.memory: dict[str, str] = {}
        self.notepads: dict[str, str] = {}
        self.state: dict[str, Any] = {}
        self.outputs: dict[str, str] = {}
        self.pins: dict[str, dict[str, str]] = {}  # session: id: text
        self.said: dict[str, list[str]] = {}  # session: texts of its conversation
        self.journals: dict[str, list[str]] = {}  # folder: lines that its NOTES.md has
        # Sent and not acknowledged: each may have happened or not. Resolved by what is there at the next look.
        self.unsure_notes: dict[str, tuple[str, ...]] = {}  # text: tags
        self.unsure_memory: dict[str, list[str]] = {}  # key: texts it may have
        self.unsure_notepads: dict[str, list[str]] = {}
        self.unsure_said: dict[str, list[str]] = {}
        self.unsure_outputs: dict[str, str] = {}
        self.unsure_lines: dict[str, list[str]] = {}


class Project:
    def __init__(self, name: str, folder: Path, *, git: bool) -> None:
        self.name, self.folder, self.git = name, folder, git
        self.worktrees: list[Path] = []
        self.truth = Truth()
        self.buffers: dict[str, str] = {}  # folder: NOTES.md as somebody has it open in an editor

    @property
    def places(self) -> list[Path]:
        return [self.folder, *self.worktrees]

    def sessions(self) -> list[str]:
        return sorted({*self.truth.notepads, "monday", "tuesday"})


class Machine(Computer):
    """A computer on which programs can be watched, cut off and started with other limits."""

    timeout = HANGS_SECONDS

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.pace = Pace(self._simplest)

    @property
    def environment(self) -> dict[str, str]:
        source = str(Path(limpet.__file__).resolve().parent.parent)
        # `World.hook` says whether one took too long. On a busy machine it shall not give up.
        patient = {"LIMPET_SET": f"hooks.seconds={HANGS_SECONDS:.0f}"}
        return {**super().environment, **patient, "PYTHONPATH": source, "PYTHONDONTWRITEBYTECODE": "1"}

    def _simplest(self) -> None:
        """What a call does at least, where it waits for nobody: a program starts, and its change is on the disk."""
        alone = self.folder / "alone"
        alone.mkdir(exist_ok=True)
        words, environment = (*COMMAND, "state", "set", "--json", "--", "pace", "-"), {"HOME": str(alone)}
        process = self.popen(*words, where=alone, env=self.environment | environment)
        process.communicate(str(time.time_ns()), timeout=self.timeout)

    def popen(self, *command: str, where: Path, **more: Any) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        options = {"cwd": where, "env": self.environment, "text": True, "encoding": "utf-8", **more}
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, **options)

    def finish(self, process: subprocess.Popen[str], stdin: str = "") -> tuple[int, str, str]:
        with self.pace.watched(f"{process.args!r}", PROGRAM_SECONDS):
            try:
                out, err = process.communicate(stdin, timeout=self.timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                raise Broken(f"did not end within {self.timeout:.0f} s: {process.args!r}") from None
        if "Traceback (most recent call last)" in err:
            raise Broken(f"a traceback of {process.args!r}: {err[-800:]}")
        return process.returncode, out, err

    def answer(self, *words: str, where: Path, stdin: str = "", **more: Any) -> Json:
        """The values that a command with --json prints."""
        code, out, err = self.finish(self.popen(*COMMAND, *words, where=where, **more), stdin)
        if code:
            raise Refused(err or out)
        return dict(json.loads(out))


class Server:
    """`limpet mcp` in a process of its own, spoken to in lines, that lives as long as its client wants."""

    def __init__(self, machine: Machine, where: Path, session: str = "", **more: Any) -> None:
        named = ("--session", session) if session else ()
        words = (*COMMAND, "mcp", "--profile", PROFILE, "--structured", *named)
        self.where, self.session, self.asked = where, session, 0
        self.process = machine.popen(*words, where=where, **more)
        self.instructions = str(self.request("initialize", HELLO)["result"]["instructions"])
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message: Json) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: Json) -> int:
        self.asked += 1
        self.send({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params})
        return self.asked

    def read(self) -> Json:
        """The next answer; what comes in between is notices and questions of the server."""
        assert self.process.stdout is not None
        while True:
            line = self.process.stdout.readline()
            if not line.endswith("\n"):
                self.process.kill()
                raise Broken(f"the MCP server went away: {self.process.communicate()[1][-800:]}")
            message = dict(json.loads(line))
            if "id" in message and "method" not in message:
                return message

    def request(self, method: str, params: Json) -> Json:
        id = self.ask(method, params)
        message = self.read()
        if message["id"] != id:
            raise Broken(f"an answer to {message['id']} in place of {id}")
        return message

    def call(self, tool: str, arguments: Json) -> Json:
        return values_of(self.request("tools/call", {"name": tool, "arguments": arguments}))

    def end(self, how: signal.Signals | None = None) -> None:
        """The client leaves, or something ends the server."""
        if how is not None:
            self.process.send_signal(how)
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None
        try:
            _, err = self.process.communicate(timeout=HANGS_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Broken("the MCP server stayed behind after its client had left") from None
        if "Traceback (most recent call last)" in err:
            raise Broken(f"a traceback of the MCP server: {err[-800:]}")


def values_of(message: Json) -> Json:
    if "error" in message:
        raise Refused(str(message["error"]))
    result = message["result"]
    if result.get("isError"):
        raise Refused(result["content"][0]["text"])
    return dict(result["structuredContent"])


class World:
    def __init__(
        self, folder: Path, log: Callable[[str], None] = lambda words: None, *, full_disks: bool = False
    ) -> None:
        self.machine = Machine(folder)
        self.folder = folder
        self.log = log
        self.projects: list[Project] = []
        self.servers: list[tuple[Project, Server]] = []
        self.forbidden: list[tuple[str, Path]] = []  # what must not come to be, and why
        self.secrets: list[str] = []  # texts that must be in no file
        self.disk: Path | None = None  # a file system of its own that can be filled up
        self.numbers = 0
        self._stack = ExitStack()
        if full_disks:
            self.disk = self._stack.enter_context(small_disk(self.machine.home))
        self.new_project(git=True)

    def close(self) -> None:
        for _, server in self.servers:
            server.process.kill()
            server.process.communicate()
        self._stack.close()

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    # --- projects -----------------------------------------------------------------------------------------------------

    def new_project(self, *, git: bool) -> Project:
        name = f"{'repo' if git else 'plain'}{self.number()}"
        if git:
            folder = self.machine.repository(name)
        else:
            folder = self.folder / name
            folder.mkdir()
        return self.added(Project(name, folder, git=git))

    def added(self, project: Project) -> Project:
        self.projects.append(project)
        return project

    def serving(self, chance: random.Random, project: Project, where: Path, session: str) -> Server:
        """A server of an agent in this session that is there already, or a new one."""
        running = [
            server for of, server in self.servers if (of, server.where, server.session) == (project, where, session)
        ]
        if running and chance.random() < 0.7:
            return chance.choice(running)
        if len(self.servers) >= 4:
            self.servers.pop(0)[1].end()
        server = Server(self.machine, where, session)
        self.servers.append((project, server))
        return server

    def leave(self, where: Path) -> None:
        """All agents that work in a folder are closed."""
        for of, server in list(self.servers):
            if server.where == where:
                self.servers.remove((of, server))
                server.end()

    # --- doors --------------------------------------------------------------------------------------------------------

    def call(
        self,
        chance: random.Random,
        project: Project,
        operation: str,
        arguments: Json,
        session: str = "",
        *,
        where: Path | None = None,
        doors: Sequence[str] = ("command", "stdio", "library", "http"),
    ) -> Json:
        """An operation through some door. Raises Refused with what the door says."""
        place = where or chance.choice(project.places)
        able = [door for door in doors if has(door, operation, arguments, session)]
        weights = [{"http": 1, "library": 2}.get(door, 3) for door in able]
        door = chance.choices(able, weights)[0]
        self.log(f"    {door} {operation} {json.dumps(arguments, ensure_ascii=False)[:100]} in {place.name}")
        with self.machine.pace.watched(f"{operation} through {door}", SLOW_SECONDS):
            return self._through(door, chance, project, place, (operation, arguments, session))

    def _through(self, door: str, chance: random.Random, project: Project, place: Path, call: Call) -> Json:
        operation, arguments, session = call
        named = arguments | ({"session_id": session} if session and in_session(operation) else {})
        if door == "stdio":
            return self.serving(chance, project, place, session).call(operation, arguments)
        if door == "library":
            return self.library(place, [call])[0]
        if door == "http":
            with self.served(place) as http:
                answer = http.post(f"/api/v1/operations/{operation}", json=named)
            if answer.status_code >= 500:
                raise Broken(f"{operation} over HTTP: {answer.status_code} {answer.text[:300]}")
            if answer.status_code >= 400:
                raise Refused(answer.text)
            return dict(answer.json())
        words = command(operation, arguments, session)
        assert words is not None
        return self.machine.answer(*words[0], "--json", *words[1], where=place, stdin=words[2])

    def library(self, where: Path, calls: Sequence[Call], clock: float = 0.0) -> list[Json]:
        """A new process that uses the library. All of the calls must be answered."""
        process = self.machine.popen(sys.executable, CALLS, where=where)
        _, out, err = self.machine.finish(process, program(where, calls, clock))
        answers = [json.loads(line) for line in out.splitlines()]
        if len(answers) != len(calls):
            raise Broken(f"the program was answered {len(answers)} of {len(calls)} times: {err[-500:]}")
        for answer in answers:
            if "refused" in answer:
                raise Refused(answer["refused"])
        return [answer["values"] for answer in answers]

    @contextmanager
    def served(self, where: Path) -> Iterator[httpx2.Client]:
        words = (*COMMAND, "serve", "--port", "0", "--profile", PROFILE, "--token", TOKEN)
        options = {"cwd": where, "env": self.machine.environment, "text": True}
        server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **options)  # type: ignore[call-overload]
        try:
            found = next(filter(None, map(LISTENING.search, server.stdout)), None)
            if found is None:
                raise Broken("limpet serve did not start")
            headers = {"Authorization": f"Bearer {TOKEN}"}
            with httpx2.Client(base_url=found[1], headers=headers, timeout=HANGS_SECONDS) as client:
                client.headers["X-Process"] = str(server.pid)
                yield client
        finally:
            server.terminate()
            server.communicate(timeout=HANGS_SECONDS)

    def hook(self, event: str, where: Path, session: str, **payload: object) -> Json:
        """An event of Claude Code. It is answered, whatever happens, and in time if the machine has time."""
        given = {"session_id": session, "cwd": str(where), **payload}
        words = (*COMMAND, "hook", "--client", "claude-code", event)
        with self.machine.pace.watched(f"the hook {event}", HOOK_SECONDS):
            code, out, err = self.machine.finish(self.machine.popen(*words, where=where), json.dumps(given))
        if code or err:
            raise Broken(f"the hook {event} ended with {code}: {err[-500:]}")
        return dict(json.loads(out)) if out.strip() else {}

    # --- what must be true --------------------------------------------------------------------------------------------

    def look(self, project: Project, *, reading_alone: bool = False) -> None:
        """Everything that was acknowledged is there, and nothing else."""
        truth = project.truth

        def read(calls: Sequence[Call]) -> list[Json]:
            return self.library(project.folder, calls)

        sessions, keys, pads = sorted(truth.pins), sorted(truth.state), sorted(truth.notepads)
        memories = sorted(truth.memory.keys() | truth.unsure_memory.keys())
        everything = {"include_done": True, "include_replaced": True, "limit": 1000}
        answers = iter(
            read(
                [
                    ("list_notes", everything, ""),
                    ("list_memory", {"limit": 1000, "include_replaced": True}, ""),
                    ("agent_state", {"action": "keys"}, ""),
                    ("list_outputs", {"limit": 1000}, ""),
                    *[("read_notepad", {}, session) for session in pads],
                    *[("agent_state", {"action": "get", "key": key}, "") for key in keys],
                    *[("list_pins", {}, session) for session in sessions],
                ]
            )
        )
        self._same_notes(truth, next(answers)["notes"])
        listed = {memory["key"]: memory for memory in next(answers)["memories"]}
        self._same_memory(project, read, listed, memories)
        same("keys of the state", set(next(answers)["keys"]), set(keys))
        self._same_outputs(truth, next(answers)["entries"])
        for session in pads:
            text, unsure = next(answers)["content"], truth.unsure_notepads.pop(session, [])
            truth.notepads[session] = settled(f"the notepad of {session}", text, truth.notepads[session], unsure)
        for key in keys:
            same(f"the state {key}", next(answers)["value"], truth.state[key])
        for session in sessions:
            pins = {pin["id"]: pin["content"] for pin in next(answers)["pins"]}
            same(f"the pins of {session}", pins, truth.pins[session])
        if not reading_alone:
            for folder in sorted(truth.journals):
                self._same_journal(project, Path(folder))
        for why, path in self.forbidden:
            if path.exists():
                raise Broken(f"{why}: {path.name}")

    def _same_notes(self, truth: Truth, notes: list[Json]) -> None:
        there = {note["id"]: (note["content"], tuple(note["tags"]), bool(note.get("done"))) for note in notes}
        for id, (text, tags, done) in list(there.items()):
            if id not in truth.notes and truth.unsure_notes.get(text) == tags and not done:
                del truth.unsure_notes[text]
                truth.notes[id] = there[id]
        truth.unsure_notes.clear()
        for id in sorted(there.keys() | truth.notes.keys()):
            same(f"the note {id}", there.get(id), truth.notes.get(id))

    def _same_memory(
        self, project: Project, read: Callable[[Sequence[Call]], list[Json]], listed: dict[str, Json], keys: list[str]
    ) -> None:
        truth = project.truth
        found = [key for key in keys if key in listed]
        values = read([("read_memory", {"key": key}, "") for key in found]) if found else []
        there = {key: value["content"] for key, value in zip(found, values, strict=True)}
        for key in keys:
            unsure = truth.unsure_memory.pop(key, [])
            text = settled(f"the memory {key}", there.get(key), truth.memory.get(key), unsure)
            if text is not None:
                truth.memory[key] = text
        same("the keys of memory", set(listed), set(truth.memory))

    def _same_outputs(self, truth: Truth, entries: list[Json]) -> None:
        there = {entry["id"]: entry["size"] for entry in entries}
        for id, text in list(truth.unsure_outputs.items()):
            if id in there:
                truth.outputs[id] = text
        truth.unsure_outputs.clear()
        same("the outputs", there, {id: len(text.encode()) for id, text in truth.outputs.items()})

    def _same_journal(self, project: Project, folder: Path) -> None:
        """The next change puts together what agents and people wrote; then all of it must be in the file, once."""
        truth = project.truth
        self.ask_in_journal(project, folder, f"Looked at {self.number()}")
        lines = Counter((folder / "NOTES.md").read_text(encoding="utf-8").split("\n"))
        for line in truth.unsure_lines.pop(str(folder), []):
            if lines[line]:
                truth.journals[str(folder)].append(line)
        for line in truth.journals[str(folder)]:
            same(f"how often {line!r} is in NOTES.md", lines[line], 1)

    def ask_in_journal(self, project: Project, folder: Path, question: str) -> None:
        self.library(folder, [("update_journal", {"section": "question", "text": question}, "")])
        project.truth.journals.setdefault(str(folder), []).append(f"- [ ] {question}")

    def look_at_messages(self, project: Project) -> None:
        """What was said in each session is kept, once."""
        code, out, err = self.machine.finish(self.machine.popen(*COMMAND, "export", where=project.folder))
        if code:
            raise Broken(f"export failed: {err[-300:]}")
        entries = [json.loads(line).get("entry", {}) for line in out.splitlines()]
        truth = project.truth
        for session in sorted(truth.said.keys() | truth.unsure_said.keys()):
            kept = [
                entry["content"] for entry in entries if entry.get("kind") == "message" and entry["session"] == session
            ]
            times = {text: sum(text in content for content in kept) for text in truth.said.get(session, [])}
            for text, number in times.items():
                same(f"how often {text[:60]!r} is kept in {session}", number, 1)
            for text in truth.unsure_said.pop(session, []):
                number = sum(text in content for content in kept)
                if number > 1:
                    raise Broken(f"{text[:60]!r} is kept {number} times in {session}")
                if number:
                    truth.said.setdefault(session, []).append(text)

    def look_at_all(self) -> None:
        for project in self.projects:
            self.look(project)
            if project.truth.said or project.truth.unsure_said:
                self.look_at_messages(project)
            for id, text in sorted(project.truth.outputs.items()):
                self.read_whole(project, id, text)
            findings = self.machine.answer("doctor", "--json", where=project.folder)["findings"]
            damaged = [one for one in findings if one["state"] == "problem" and one["name"] != "data folder"]
            if damaged:
                raise Broken(f"doctor says: {damaged}")
        kept = list(self.machine.home.rglob("*"))
        for secret in self.secrets:
            for path in kept:
                if path.is_file() and secret.encode() in path.read_bytes():
                    raise Broken(f"a secret is in {path.name}")

    def read_whole(self, project: Project, id: str, text: str) -> None:
        """An output read page by page is what the tool had said."""
        (answer,) = self.library(project.folder, [("read_all", {"id": id}, "")])
        if answer["content"] != text:
            raise Broken(f"the output {id} of {len(text):,} characters reads as {len(answer['content']):,} others")

    def twin(self, project: Project, folder: Path) -> Project:
        """A copy of a project elsewhere: what must be true of it is the same, but for its journal and conversations."""
        other = Project(folder.name, folder, git=False)
        other.truth = copy.deepcopy(project.truth)
        other.truth.journals = {}
        return self.added(other)


def program(where: Path, calls: Sequence[Call], clock: float = 0.0) -> str:
    return json.dumps({"folder": str(where), "clock": clock, "calls": list(calls)})


def same(what: str, there: object, wanted: object) -> None:
    if there != wanted:
        raise Broken(f"{what}: {shortened(there)} where {shortened(wanted)} must be")


def settled(what: str, there: Any, known: Any, unsure: list[str]) -> Any:
    """A text that may be what is known or one of those that were not acknowledged."""
    if there not in (known, *unsure):
        raise Broken(f"{what}: {shortened(there)} where {shortened(known)} must be, or one of {len(unsure)} unanswered")
    return there


def shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:200]}…{text[-80:]} ({len(text):,} characters)"


def has(door: str, operation: str, arguments: Json, session: str) -> bool:
    """Whether it can be done through this door: an agent has its profile, and most operations have a command."""
    if door == "stdio":
        return PROFILE in find(operation).profiles
    return door != "command" or command(operation, arguments, session) is not None


def in_session(operation: str) -> bool:
    """Whether it takes the session as an argument."""
    return "session_id" in find(operation).input_schema()["properties"]


# The words of a command before and after --json, and its standard input.
Words = tuple[list[str], list[str], str]
LISTS = {"include_done": ["--all"], "include_replaced": ["--include-replaced"], "limit": ["--limit", "1000"]}


def command(operation: str, arguments: Json, session: str) -> Words | None:
    """None where this cannot be said as a command."""
    if any(mark in str(arguments.get("content", "")) for mark in "\0\r\v\f"):
        return None
    named = ["--session", session] if session and in_session(operation) else []
    form, takes = COMMANDS.get(operation, (None, frozenset()))
    return form(arguments, named) if form is not None and takes >= set(arguments) else None


def _add_note(given: Json, named: list[str]) -> Words:
    tags = [word for tag in given.get("tags", ()) for word in ("--tag", tag)]
    return ["note", "add", *tags, *named], ["--", given["content"]], ""


def _update_note(given: Json, _named: list[str]) -> Words:
    done = ["--done" if given["done"] else "--open"] if "done" in given else []
    return ["note", "update", *done], ["--", given["id"], *([given["content"]] if "content" in given else [])], ""


def _list_of(what: str) -> Callable[[Json, list[str]], Words]:
    return lambda given, _named: ([what, "list", *(word for name in given for word in LISTS[name])], [], "")


COMMANDS: dict[str, tuple[Callable[[Json, list[str]], Words], frozenset[str]]] = {
    "add_note": (_add_note, frozenset(["content", "tags"])),
    "update_note": (_update_note, frozenset(["id", "content", "done"])),
    "delete_note": (lambda given, _: (["note", "delete"], ["--", given["id"]], ""), frozenset(["id"])),
    "write_memory": (
        lambda given, named: (["memory", "write", *named], ["--", given["key"], given["content"]], ""),
        frozenset(["key", "content"]),
    ),
    "delete_memory": (
        lambda given, named: (["memory", "delete", *named], ["--", given["key"]], ""),
        frozenset(["key"]),
    ),
    "write_notepad": (
        lambda given, named: (["pad", "write", *named], ["--", "-"], given["content"]),
        frozenset(["content"]),
    ),
    "agent_state": (
        lambda given, named: (["state", "set", *named], ["--", given["key"], "-"], json.dumps(given["value"])),
        frozenset(["action", "key", "value"]),
    ),
    "write_session_handoff": (
        lambda given, named: (["handoff", "write", *named], ["--", given["content"]], ""),
        frozenset(["content"]),
    ),
    "list_notes": (_list_of("note"), frozenset(LISTS)),
    "list_memory": (_list_of("memory"), frozenset(["limit", "include_replaced"])),
}


@contextmanager
def small_disk(place: Path) -> Iterator[Path | None]:
    """A file system of its own, in memory, that can be filled up; None where nothing may be mounted."""
    mount = shutil.which("mount")
    words = [str(mount), "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", str(place)]
    if mount is None or subprocess.run(words, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], capture_output=True, check=False)


def killed(process: subprocess.Popen[str]) -> str:
    """End a program as the system does when it has no memory left; what it had said in whole lines."""
    os.kill(process.pid, signal.SIGKILL)
    out, _ = process.communicate()
    return out.rpartition("\n")[0]
