"""Repositories that mean harm, and everything a person or a coding agent can start in them.

Each repository is put together at random from traps (repository_traps.py), and doors are opened in it one after the
other: every event of every coding agent's hooks, every command of the command line (asked of the program, so that a new
one is tried by itself), an MCP server whose tools are all called, and the programs that a client's configuration in the
repository names. What must not happen is counted after each.
"""

from __future__ import annotations

import json
import os
import pkgutil
import random
import resource
import shutil
import signal
import socket
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import limpet
from doors.hook_kit import ran, started
from limpet import clients
from limpet.doors.cli import commands, main
from limpet.doors.cli.commands import CONFIRM, COUNT, FLAG, NUMBER, REST, SWITCH, Command, Parameter
from limpet.doors.hooks.triage import TRIAGE
from operations.test_tools import CALLS
from torture.kit import Outcome, Tally
from torture.lanes import Forked, Made, Share, spread
from torture.repository_traps import CANARY, OBEY, OBEY_FILE, OBEY_NAME, Trap, make_git, set_traps

PRIVATE = "what-the-victim-asked-and-ran"  # in prompts and results of tools
DATA = ".local/share/limpet"
STEPS = 12  # doors that are opened in one repository
SECONDS = 40.0  # for any process, on a busy machine; agents wait for 20
SERVING_SECONDS = 2.0
MEMORY_BYTES = 3 << 30
SMALL_BYTES = 1 << 20
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
SERVING = ("serve", "dashboard")  # until they are told to end
PLANS = {"trust", "install", "uninstall", "import"}  # show what the person asked to see of the repository
OFTEN = ("journal heal", "journal verify", "status")  # they ask git, or read what a repository has most traps in
SETTINGS = ("project split",)  # writes the person's settings
# Options that a person decides with, that listen, or that reach out: none of them is the repository's doing.
LEFT_OUT = {
    *("--yes", "--user/--project-only", "--url", "--header", "--header-env", "--traces", "--host", "--workers"),
    *("--team", "--port", "--store", "--token", "--no-token", "--all", "--threshold", "--wait"),
}
KINDS = ("connected", "written outside", "shown", "programs run", "too slow", "failed inside")


class Door(NamedTuple):
    """A process to start, as the words of a command, and what it is given."""

    words: tuple[str, ...]
    stdin: bytes = b""
    kind: str = "command"  # or "hook", "mcp"
    of_project: bool = False  # started by a coding agent, with the repository's folder in the payload

    @property
    def name(self) -> str:
        return " ".join(self.words)[:100]


class World:
    """A victim's computer with a private project, and an author who waits for what comes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home, self.spoils, self.work = folder / "home", folder / "spoils", folder / "work"
        self.templates, self.out, self.tmp = folder / "templates", folder / "out", folder / "tmp"
        for path in (self.home, self.spoils, self.templates, self.out, self.tmp):
            path.mkdir(parents=True)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TMPDIR": str(self.tmp),
            "LANG": "C.UTF-8",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        self._furnish()

    def _furnish(self) -> None:
        for name in (".bashrc", ".ssh/key", ".claude/settings.json", ".claude/skills/own/SKILL.md"):
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text(f"{{}} {CANARY}\n")
        (self.home / ".claude" / "settings.json").write_text("{}\n")
        (self.home / "Daily").mkdir()
        for day in range(40):
            (self.home / "Daily" / f"{day}.md").write_text(f"# Diary\n{CANARY}\n")
        talk = {"type": "user", "message": {"role": "user", "content": PRIVATE}}
        (self.home / "talk.jsonl").write_text(json.dumps(talk) + "\n")
        make_git(self.home / "private", self.env, f"# Notes\n{CANARY}\n")
        make_git(self.folder / "plain", self.env, f"# Notes\n{OBEY_FILE}\n")
        shutil.move(self.folder / "plain" / ".git", self.templates / "git")
        private = self.home / "private"
        self.must("handoff", "write", f"Private: {CANARY}", where=private)
        shutil.move(self.home / DATA, self.templates / "data")
        author, own = self.folder / "author", self.folder / "own"
        for path in (author, own):
            path.mkdir()
        self.must("note", "add", "a note of one's own", where=own)
        self.must("backup", str(self.out / "own.db"), where=own)
        for words in (("handoff", "write"), ("note", "add"), ("memory", "write", "rule"), ("pad", "write")):
            self.must(*words, OBEY, where=author)
        self.must("memory", "pin", "rule", where=author)
        self.must("backup", str(self.templates / "store.db"), where=author)
        servers = {"mcpServers": {"x": {"command": sys.executable, "args": ["-c", "pass"]}}}
        (self.out / "servers.json").write_text(json.dumps(servers))
        (self.out / "servers.json").chmod(0o600)
        (self.out / "code.py").write_text("print(1)\n")

    def must(self, *words: str, where: Path) -> None:
        ended = self.run(Door(words), where)
        assert ended.code == 0, (words, ended)

    def clean(self) -> None:
        """As it was before anybody worked in the repository."""
        for path in (self.home / DATA, self.home / ".config", self.work):
            shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.templates / "data", self.home / DATA)

    def run(self, door: Door, where: Path) -> Ended:
        """A process of the command line, forked, so that it need not start Python."""
        given, said, complained = (self.tmp / name for name in ("stdin", "stdout", "stderr"))
        given.write_bytes(door.stdin)

        def live() -> None:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            os.chdir(where)
            os.environ.clear()
            os.environ.update(self.env)
            create = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            for number, (path, flags) in enumerate(((given, os.O_RDONLY), (said, create), (complained, create))):
                handle = os.open(path, flags, 0o600)
                os.dup2(handle, number)
                os.close(handle)
            sys.stdin, sys.stdout, sys.stderr = os.fdopen(0, "r"), os.fdopen(1, "w"), os.fdopen(2, "w")
            code = 1
            try:
                code = main(list(door.words))
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)

        process = Forked(live)
        code = self._wait(process, SERVING_SECONDS if door.words[:1] in [(word,) for word in SERVING] else SECONDS)
        return Ended(code, said.read_text(errors="replace"), complained.read_text(errors="replace"))

    def _wait(self, process: Forked, seconds: float) -> int | None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            done, status = os.waitpid(process.pid, os.WNOHANG)
            if done:
                process.close()
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.002)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.close()
        os.waitpid(process.pid, 0)
        return None


class Ended(NamedTuple):
    code: int | None  # None: it had to be ended
    out: str
    err: str


# --- doors ------------------------------------------------------------------------------------------------------------


def doors(chance: random.Random, world: World, root: Path) -> list[Door]:
    """Everything that can be started, each with other arguments every time."""
    some = [Door(words(chance, world, root, row), b"A text\n") for row in every_command()]
    some += [Door(tuple(line.split(" "))) for line in OFTEN for _ in range(6)]
    for name in clients.names():  # each writes other files
        some += [Door(("install", name, "--guidance", "--skill")), Door(("install", name)), Door(("uninstall", name))]
    for client in (*clients.names(), "unknown"):
        some += [hook(chance, world, root, client, event) for event in TRIAGE]
    some += [Door(("mcp", "--profile", name), conversation(), "mcp") for name in ("core", "coding", "full", "full")]
    return [*some, *configured(world)]


def every_command() -> Iterator[Command]:
    for row in commands.every():
        if isinstance(row, Command) and row.words not in ("hook", "mcp"):
            yield row


def words(chance: random.Random, world: World, root: Path, row: Command) -> tuple[str, ...]:
    """The command with arguments that fit their kinds, and some of its options."""
    line = row.words.split(" ")
    for param in row.params:
        chosen = param.flags and param.flags not in LEFT_OUT and chance.random() < 0.3
        if param.kind == CONFIRM or (param.flags and param.required) or chosen:
            line += option(chance, world, root, param)
    if row.words in SERVING:
        line += ["--port", "0", *(["--no-open"] if row.words == "dashboard" else [])]
    if chance.random() < 0.2:
        line.append("--json")
    if row.words == "import":
        return (*line, *chance.choice(imports(world, root)))
    if row.words == "restore":
        return (*line, str(world.out / "own.db"))
    line.append("--") if row.words == "wrap" else None
    for param in row.params:
        if not param.flags and (param.required or chance.random() < 0.7):
            line += [value(chance, world, root, param)] if param.kind != REST else [sys.executable, "-c", "pass"]
    return tuple(line)


def option(chance: random.Random, world: World, root: Path, param: Parameter) -> list[str]:
    if param.kind in (FLAG, SWITCH, CONFIRM):
        return [chance.choice(param.flags.split("/"))]
    return [param.flags, value(chance, world, root, param)]


def value(chance: random.Random, world: World, root: Path, param: Parameter) -> str:
    if param.kind in (NUMBER, COUNT):
        return "1"
    if param.choices:
        return chance.choice(param.choices)
    chosen = {
        "client": chance.choice(clients.names()),
        "config": str(world.out / "servers.json"),
        "origin": chance.choice(("import", "tool", "agent")),
        "scope": "write",
        "outcome": "completed",
        "folder": chance.choice((str(root), ".")),
        "file": str(world.out / ("code.py" if param.kind == "file" else f"new-{chance.randrange(10**9)}")),
        "evidence": chance.choice(("NOTES.md:1-2 > Notes", "src/deep/x.py:1 > pass", "user: so be it")),
    }
    texts = ("x", "1", "NOTES.md", "../private/NOTES.md", "what comes next?", "one", "rule")
    return chosen.get(param.name) or chance.choice(texts)


def imports(world: World, root: Path) -> list[tuple[str, ...]]:
    store = (root / ".limpet" / "limpet.db", world.templates / "store.db")
    files = [("store", str(path)) for path in store if path.is_file() and not path.is_symlink()]
    return [*files, ("store", str(world.out / "none.db")), ("transcript", "claude-code"), ("basic-memory", str(root))]


def hook(chance: random.Random, world: World, root: Path, client: str, event: str) -> Door:
    """An event as the agent sends it. Members that an event does not need are there too, as of a new version."""
    session = chance.choice(("one", "two"))
    talk = str(world.home / "talk.jsonl")
    payload: dict[str, Any] = {
        "cwd": str(chance.choice((root, root / "src" / "deep"))),
        "transcript_path": talk,
        "transcriptPath": talk,
        "prompt": PRIVATE,
        "trigger": "auto",
        **started(client, session, chance.choice(("startup", "resume", "compact"))),
    }
    if event in ("before-tool", "after-tool"):
        payload |= ran(client, session, chance.choice(("Bash", "mcp__limpet__read_notepad")), f"{PRIVATE}\n" * 900)
    line = ("hook", "--client", client, event) if client != "unknown" else ("hook", event)
    return Door(line, json.dumps(payload).encode(), "hook", of_project=True)


def conversation() -> bytes:
    """A client that calls every tool and then hangs up."""
    asked: list[tuple[str, dict[str, Any]]] = [("initialize", HELLO), ("tools/list", {}), ("resources/list", {})]
    asked += [("tools/call", {"name": name, "arguments": arguments}) for name, arguments in CALLS]
    lines = [{"jsonrpc": "2.0", "id": at, "method": name, "params": more} for at, (name, more) in enumerate(asked)]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def configured(world: World) -> list[Door]:
    """What a client would start that believes the configuration in the repository."""
    stores = (f"{world.spoils}/mcp.db", f"postgresql://x:y@127.0.0.1:{world.port}/x")
    names = [*(("--store", store) for store in stores), ("--project", "private")]
    start = json.dumps({"session_id": "one", "hook_event_name": "SessionStart", "source": "startup"}).encode()
    some: list[Door] = []
    for more in names:
        some.append(Door(("mcp", *more), conversation(), "mcp"))
        some.append(Door((*more, "mcp"), conversation(), "mcp"))
        some.append(Door(("wrap", *more, "--", sys.executable, "-c", "pass")))
        some.append(Door(("gateway", *more, "--config", str(world.out / "servers.json"))))
        some += [Door(("hook", *more, "--client", "claude-code", event), start, "hook") for event in TRIAGE]
        some.append(Door((*more, "hook", "--client", "claude-code", "session-start"), start, "hook"))
    return some


# --- what must not happen ---------------------------------------------------------------------------------------------


def snapshot(*folders: Path) -> dict[str, tuple[object, ...]]:
    """Everything below the folders, without reading it."""
    seen: dict[str, tuple[object, ...]] = {}
    for top in folders:
        for folder, names, files in os.walk(top):
            for name in (*names, *files):
                path = os.path.join(folder, name)
                with suppress(FileNotFoundError):
                    info = os.lstat(path)
                    is_folder = stat.S_ISDIR(info.st_mode)
                    target = os.readlink(path) if stat.S_ISLNK(info.st_mode) else ""
                    changes = () if is_folder else (info.st_size, info.st_mtime_ns)
                    seen[path] = (info.st_mode, info.st_uid, target, *changes)
    return seen


def has_canary(path: str) -> bool:
    """Whether a file of the repository has got a text of the victim."""
    if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path) > SMALL_BYTES:
        return False
    text = Path(path).read_bytes()
    return CANARY.encode() in text or PRIVATE.encode() in text


class Judge:
    """Compares the computer before and after each process."""

    def __init__(self, world: World, root: Path, traps: list[str], tally: Tally) -> None:
        self.world, self.root, self.tally = world, root, tally
        self.traps = ", ".join(traps)
        self.imported = False
        self.missed = False
        self.before = self._look()

    def _look(self) -> dict[str, tuple[object, ...]]:
        return snapshot(self.world.home, self.world.spoils, self.world.work)

    def miss(self, kind: str, door: Door, what: object) -> None:
        self.missed = True
        self.tally.miss(kind, f"{door.name}: {what} (in {self.root.name!r}: {self.traps})")

    def after(self, door: Door, ended: Ended) -> None:
        self.imported = self.imported or door.words[0] in ("import", "restore")
        self._judge_end(door, ended)
        self._judge_files(door)
        self._judge_words(door, ended)
        with suppress(BlockingIOError):
            connection, _ = self.world.listener.accept()
            connection.close()
            self.miss("connected", door, "to the author")

    def _judge_end(self, door: Door, ended: Ended) -> None:
        if ended.code is None and door.words[0] not in SERVING:
            self.miss("too slow", door, f"over {SECONDS:.0f} s")
        broken = ended.code == 1 or (ended.code is not None and ended.code < 0) or "Traceback" in ended.err
        if broken or "went wrong inside" in ended.err or (door.kind == "hook" and ended.code not in (0, 2)):
            self.miss("failed inside", door, (ended.code, ended.err[-200:]))

    def _judge_files(self, door: Door) -> None:
        now = self._look()
        for path in sorted(path for path in {*now, *self.before} if now.get(path) != self.before.get(path)):
            if path == str(self.world.spoils / "ran"):
                self.miss("programs run", door, path)
            elif not self._may_change(door, Path(path)):
                self.miss("written outside", door, path)
            elif path.startswith(str(self.world.work)) and has_canary(path):
                self.miss("shown", door, f"a private file, in {path}")
        self.before = now

    def _may_change(self, door: Door, path: Path) -> bool:
        of_ours = path.is_relative_to(self.world.home / DATA) or path in (self.world.home / DATA).parents
        if of_ours or (door.words[0] in ("install", "uninstall") and self._is_of_a_client(path)):
            return True
        if path.is_relative_to(self.world.home / ".config"):
            return " ".join(door.words).startswith(SETTINGS)
        if not path.is_relative_to(self.world.work):
            return False
        inside = path.relative_to(self.world.work)
        if inside.parts[-2:] == (".git", "limpet-id"):
            return True
        if ".limpet" in inside.parts or ".git" in inside.parts:
            return False
        is_journal = path.name.endswith(".md") or ".md.limpet-" in path.name or path.is_dir()
        return is_journal or door.words[0] in ("install", "uninstall")

    def _is_of_a_client(self, path: Path) -> bool:
        """Where coding agents keep what is a person's: Claude Code the servers of a project, others all they have."""
        names = {name for client in clients.every() for name in (client.home_folder, client.skills_folder) if name}
        folders = [self.world.home / name for name in names]
        inside = any(path.is_relative_to(folder) or path in folder.parents for folder in folders)
        return path == self.world.home / ".claude.json" or (inside and path.is_relative_to(self.world.home))

    def _judge_words(self, door: Door, ended: Ended) -> None:
        said = ended.out + ended.err
        if CANARY in said and not door.name.startswith("install"):
            self.miss("shown", door, f"a private file: {around(said, CANARY)}")
        if "\x1b" in said:
            self.miss("shown", door, f"an escape sequence: {around(said, chr(27))}")
        if OBEY in said and door.words[0] not in PLANS and not self.imported:
            self.miss("shown", door, f"what never counts: {around(said, OBEY)}")
        if door.kind == "hook" and (bare := unquoted(ended.out)):
            self.miss("shown", door, f"as if it were ours: {bare!r:.150}")
        if door.kind == "mcp" and (bare := unquoted(ended.out.partition("\n")[0])):
            self.miss("shown", door, f"in instructions: {bare!r:.150}")
        lines = [line for answer in ended.out.split("\n") for text in strings(answer) for line in text.splitlines()]
        if any(line.startswith(OBEY_NAME) for line in lines if door.kind == "mcp"):
            self.miss("shown", door, f"a name as a line: {around(ended.out, OBEY_NAME)}")


def around(text: str, word: str) -> str:
    at = text.find(word)
    return repr(text[max(0, at - 80) : at + 60])


def unquoted(answer: str) -> str:
    """The first line of a hook's or server's answer that has text of the repository and is not marked as data."""
    for line in "\n".join(strings(answer)).split("\n"):
        if (OBEY in line or OBEY_FILE in line) and not line.startswith("> "):
            return line
        if line.startswith(OBEY_NAME):
            return line
        if OBEY_FILE in line and any(mark in line for mark in "\r\u2028\u2029\x85\x0b\x0c\x1b\x1c"):
            return line  # a program may take this for the beginning of a line
    return ""


def strings(answer: str) -> Iterator[str]:
    """Every text in a JSON answer."""
    try:
        rest: list[Any] = [json.loads(answer)]
    except ValueError:
        yield answer
        return
    while rest:
        value = rest.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, (dict, list)):
            rest += value.values() if isinstance(value, dict) else value


# --- the goal ---------------------------------------------------------------------------------------------------------


NAMES = ("tool", f"{OBEY_NAME} \x1b[2J", f"x\n\n{OBEY_NAME}", "-rf", "ünï", "a b", "'; touch x; '")


def repositories(folder: Path, processes: int) -> Outcome:
    for module in pkgutil.walk_packages(limpet.__path__, "limpet."):
        if not module.name.startswith(("limpet.adapters", "limpet.__main__")):
            with suppress(ImportError):
                import_module(module.name)
    tally, numbers = spread(_opened, folder, processes, most=600)
    cases = f"{numbers['processes']:,} processes in {numbers['repositories']:,} hostile repositories"
    return tally.outcome(f"{cases}, {numbers['doors'] // numbers['shares']} doors", *KINDS)


def _opened(share: Share) -> Made:
    """Doors are taken in turn, so that all of them are tried before one is tried again."""
    tally, chance = Tally(), random.Random(share.seed)
    world = World(share.folder / "world")
    left: list[int] = []
    count = repositories = number_of_doors = 0
    while count < share.cases:
        world.clean()
        root = world.work / "above" / chance.choice(NAMES)
        root.parent.mkdir(parents=True)
        traps = set_traps(Trap(chance, root, world.home, world.spoils, world.port, world.templates))
        judge = Judge(world, root, traps, tally)
        repositories += 1
        for _ in range(min(STEPS, share.cases - count)):
            choice = doors(chance, world, root)
            number_of_doors = len(choice)
            left = left or chance.sample(range(number_of_doors), number_of_doors)
            door = choice[left.pop()]
            where = world.home if door.of_project and chance.random() < 0.5 else root
            judge.after(door, world.run(door, where))
            count += 1
            if judge.missed:
                break  # whatever comes now may be of the same making
    world.listener.close()
    shutil.rmtree(share.folder, ignore_errors=True)
    return Made(
        tally.counts,
        tally.words,
        {"processes": count, "repositories": repositories, "doors": number_of_doors, "shares": 1},
    )
