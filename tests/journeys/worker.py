"""What the journeys run in processes of their own: `python worker.py WHAT STORE …`. It answers in lines."""

from __future__ import annotations

import hashlib
import itertools
import mmap
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import limpet
from limpet.api import Limpet, Tool
from limpet.model import MESSAGE, NOTE, Draft, Entry, Stamp
from limpet.window.plan.context import is_injected

PROJECT = "demo"


def say(line: str) -> None:
    """One write to the pipe, so that a kill cannot leave half a line behind a whole one."""
    os.write(1, line.encode() + b"\n")


def open_store(store: str, session: str) -> Limpet:
    return limpet.open(store, project=PROJECT, session=session)


def write(store: str, name: str, count: str) -> None:
    """Wait for the start, then write so many notes as fast as possible."""
    say("ready")
    sys.stdin.readline()
    with open_store(store, name) as hold:
        notes = hold.session().notes
        for number in range(int(count)):
            notes.add(f"{name} {number}", [name])


def first_moment(folder: str, rounds: str) -> None:
    """Eight processes that open a store which does not exist, in the same microsecond, again and again."""
    with open_store(str(Path(folder) / "warm.db"), "warm") as warm:
        warm.session().notes.add("so that everything is imported before the start")
    for number in range(int(rounds)):
        store = str(Path(folder) / str(number) / "limpet.db")
        start = mmap.mmap(-1, 1)
        children = []
        for name in range(8):
            child = os.fork()
            if not child:
                while start[0] == 0:
                    pass
                with open_store(store, f"writer{name}") as hold:
                    hold.session().notes.add("x")
                os._exit(0)
            children.append(child)
        time.sleep(0.01)
        start[0] = 1
        failed = [child for child in children if os.waitpid(child, 0)[1]]
        assert not failed, f"{len(failed)} of 8 failed in round {number}"
        with open_store(store, "check") as hold:
            assert hold.call("list_notes", {"session_id": "*"})["note_count"] == 8


def acknowledge(store: str, name: str) -> None:
    """Write notes for ever and say the id and the hash of each once it is kept."""
    hold = open_store(store, name)
    notes = hold.session().notes
    for number in itertools.count():
        text = f"{name} {number} " + "word " * (number % 50)
        id = notes.add(text).id
        say(f"{id} {hashlib.sha256(text.encode()).hexdigest()}")


def fork_plain(store: str) -> None:
    """Open, write, fork; both sides go on writing."""
    hold = open_store(store, "one")
    hold.session().notes.add("before")
    child = os.fork()
    name = "parent" if child else "child"
    for number in range(20):
        hold.session().notes.add(f"{name} {number}")
    if not child:
        hold.close()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    hold.session().notes.add("after")
    hold.close()


def fork_gone(store: str) -> None:
    """Fork with a store whose folder was removed, and one that was closed before its folder was."""
    hold = open_store(store, "one")
    kept = []
    for name, closed in (("removed", False), ("closed", True)):
        folder = Path(store).with_name(name)
        folder.mkdir()
        other = open_store(str(folder / "limpet.db"), "one")
        other.session().notes.add("before")
        if closed:
            other.close()
        shutil.rmtree(folder)
        kept.append(other)
    hold.session().notes.add("before")
    for number in range(2):
        child = os.fork()
        hold.session().notes.add(f"{'parent' if child else 'child'} {number}")
        if not child:
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
    hold.close()
    assert not Path(store).with_name("closed").exists()


def fork_close(store: str) -> None:
    """Fork and close on the parent's side, which then has the last connection it knows of; the child goes on."""
    hold = open_store(store, "one")
    hold.session().notes.add("before")
    child_wrote, tell_parent = os.pipe()
    parent_closed, tell_child = os.pipe()
    child = os.fork()
    if not child:
        hold.session().notes.add("child 0")
        os.write(tell_parent, b"x")
        os.read(parent_closed, 1)
        for number in range(1, 20):
            hold.session().notes.add(f"child {number}")
        os._exit(0)
    os.read(child_wrote, 1)
    hold.session().notes.add("parent")
    hold.close()
    os.write(tell_child, b"x")
    _, status = os.waitpid(child, 0)
    assert status == 0, status


def fork_writing(store: str) -> None:
    """Fork while one thread is in the middle of a write and another waits behind it."""
    hold = open_store(store, "one")
    hold.session().begin()
    writing, go_on = threading.Event(), threading.Event()

    def slowly(before: Entry | None) -> Draft:
        writing.set()
        go_on.wait(30)
        return Draft("slow", "one")

    stamp = Stamp("test", "add_note", "one", 0)
    threads = [
        threading.Thread(target=lambda: hold.store.entries.edit(hold.scope, NOTE, None, slowly, stamp)),
        threading.Thread(target=lambda: hold.session().notes.add("waiting")),
    ]
    threads[0].start()
    assert writing.wait(30)
    threads[1].start()
    time.sleep(0.3)  # until it waits
    threading.Timer(0.5, go_on.set).start()
    child = os.fork()
    if not child:
        hold.session().notes.add("child")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    for thread in threads:
        thread.join()
    hold.close()


def fork_importing(_: str) -> None:
    """Fork while another thread imports a part of Limpet for the first time, on a disk that takes its time."""
    from limpet.catalogue import late

    importing = threading.Event()

    class SlowDisk:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "limpet.memory.skills":
                importing.set()
                time.sleep(0.5)

    assert "limpet.memory.skills" not in sys.modules
    sys.meta_path.insert(0, SlowDisk())
    thread = threading.Thread(target=late.load, args=["memory.skills"])
    thread.start()
    assert importing.wait(10)
    child = os.fork()
    if not child:
        late.load("memory.skills")
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert status == 0, status
    thread.join()
    late.load("memory.notes")  # this side imports as before


def fork_in_import(_: str) -> None:
    """A signal ends the wait of a fork, an import forks, and an import waits for a thread that imports."""
    from limpet.catalogue import late

    late.FORK_WAIT_SECONDS = 0.5
    importing = threading.Event()
    outcomes: list[object] = []

    def forked() -> int:
        child = os.fork()
        if not child:
            return 0
        outcomes.append(os.waitpid(child, 0)[1])
        return child

    def slow() -> None:
        importing.set()
        time.sleep(0.3)

    def waiting() -> None:
        other = threading.Thread(target=late.load, args=["upkeep.purge"])
        other.start()
        other.join()

    def forking() -> None:
        outcomes.append("forked" if forked() else "child")

    work = {"limpet.memory.skills": slow, "limpet.memory.review": forking, "limpet.upkeep.audit": waiting}

    class Parts:
        """Parts of Limpet that do something of their own when they are imported."""

        def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
            return spec_from_loader(name, self) if name in work else None  # type: ignore[arg-type]

        def create_module(self, _: ModuleSpec) -> None:
            pass

        def exec_module(self, module: ModuleType) -> None:
            work[module.__name__]()

    sys.meta_path.insert(0, Parts())
    if not forked():  # so that there was a fork that had waited
        os._exit(0)
    thread = threading.Thread(target=late.load, args=["memory.skills"])
    thread.start()
    assert importing.wait(10)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    sys.unraisablehook = lambda problem: outcomes.append(type(problem.exc_value))
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    if not forked():
        os._exit(0)
    thread.join()
    late.load("memory.review")
    if outcomes[-1] == "child":
        late.load("memory.uses")
        os._exit(0)
    late.load("upkeep.audit")
    assert outcomes == [0, KeyboardInterrupt, 0, 0, "forked"], outcomes
    assert late._importing.lock.acquire(timeout=0)  # nobody holds it any more


def compact(store: str, session: str) -> None:
    """Run a window without end, small enough to be cleared and compacted all the time."""
    from limpet.window.messages import Call, assistant, result, user

    hold = open_store(store, session)
    window = hold.session().window
    talk = window.messages() or [user("go on for ever")]
    window.next(talk, limit=3_000)
    say("ready")
    for number in itertools.count(hold.store.entries.tally(hold.scope, MESSAGE, session).total):
        call = Call(f"c{number}", "shell", '{"command": "ls"}')
        talk = [*talk, assistant(f"Step {number}.", call), result(call.id, f"line {number}\n" * 100)]
        talk = [message for message in window.next(talk, limit=3_000).messages if not is_injected(message)]


def dying_tool(store: str) -> None:
    """An agent whose tool does its work and is killed before it can say so."""
    from limpet.agent import Agent
    from limpet.window.messages import Call, assistant

    def deploy(arguments: Mapping[str, Any]) -> str:
        say("deployed")
        os.kill(os.getpid(), signal.SIGKILL)
        return "never said"

    tool = Tool("deploy", "Deploy it.", {"type": "object"}, deploy)
    with open_store(store, "killed") as hold:
        reply = assistant("Deploying now.", Call("d1", "deploy", '{"to": "production"}'))
        Agent(hold.session(), lambda messages, tools: reply, tools=[tool]).run("Deploy it.")


def audited(store: str, folder: str) -> None:
    """Do everything there is to do, and say which of the database's files Python itself opened."""
    from limpet.doors.cli import main

    own = {store, f"{store}-wal", f"{store}-shm"}

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            path = os.path.abspath(os.fsdecode(arguments[0]))
            if path in own:
                exclusive = isinstance(arguments[2], int) and arguments[2] & os.O_EXCL
                say(f"{'created' if exclusive else 'opened'} {path}")

    sys.addaudithook(hook)
    with open_store(store, "one") as hold:
        work = hold.session()
        id = work.notes.add("a note", ["tag"]).id
        work.notes.search("note")
        work.notes.update(id, done=True)
        work.notepad.write("pad")
        work.notepad.restore(1)
        work.memory.write("k", "v")
        work.memory.search("v")
        work.handoff.write("next")
        later = hold.session("two")
        later.context()
        later.used()
        hold.undo()
        lines = list(hold.export_lines())
        hold.check()
        hold.backup(str(Path(folder) / "backup.db"))
    with limpet.open(store, project="copy") as copy:
        copy.import_lines(lines)
    here = ("--store", store, "--project", PROJECT, "--session", "one")
    for args in (
        ("note", "add", "x"),
        ("doctor",),
        ("backup", str(Path(folder) / "again.db")),
        ("context",),
        ("history",),
    ):
        assert main([*here, *args]) == 0, args


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
