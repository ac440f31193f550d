"""What goals run in processes of their own: `python child.py WHAT STORE …`. It answers in lines."""

from __future__ import annotations

import contextlib
import itertools
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from functools import partial

from limpet import errors
from limpet.journal import file
from limpet.journal.document.edit import add_question
from limpet.journal.document.entries import Item
from limpet.journal.state import of_project
from limpet.model import MEMORY, NOTE, Draft, Entry, Scope, Stamp
from limpet.wiring import choose_store
from torture.kit import PROJECT, digest, opened

FROZEN = 1_772_445_600_000


def say(*words: object) -> None:
    os.write(1, " ".join(map(str, words)).encode() + b"\n")


def count_on(before: Entry | None) -> Draft:
    return Draft(str(int(before.content if before else "0") + 1))


def turns(store: str, name: str, count: int, hold: float = 0.0) -> None:
    """Count on and add a note, so many times; say when each write was asked for and done, and which failed.

    With `hold` each takes that many seconds while it has its turn, so that whoever else writes has to wait.
    """

    lines: list[str] = []

    def add_note(_before: Entry | None) -> Draft:
        time.sleep(hold)
        return Draft(f"{name} {len(lines)}", name)

    kept, scope, stamp = choose_store(store), Scope("local", PROJECT), Stamp("agent/test", "test", name, 1_000)
    say("ready")
    os.read(0, 1)
    for _ in range(count):
        for kind, key, decide in (
            (MEMORY, "counter", count_on),
            (NOTE, None, add_note),
        ):
            asked = time.monotonic()
            try:
                kept.entries.edit(scope, kind, key, decide, stamp)
                lines.append(f"wrote {asked} {time.monotonic()}")
            except errors.LimpetError as problem:
                lines.append(f"error {problem.code} {time.monotonic() - asked}")
    say("\n".join(lines))
    kept.close()


def ids(store: str, name: str, count: str) -> None:
    """Add notes while the clock stands still; say each id."""
    import limpet

    say("ready")
    sys.stdin.readline()
    with limpet.open(store, project=PROJECT, session=name, clock=lambda: FROZEN) as hold:
        for number in range(int(count)):
            say(hold.session().notes.add(f"{name} {number}").id)


def mixed(store: str, name: str, led: str) -> None:
    """Notes, outputs and questions in the journal for ever, each acknowledged; when led, each after a byte of input."""

    def told(*words: object) -> None:
        say(*words)
        if led and not os.read(0, 1):
            os._exit(0)  # nobody leads any more

    hold = opened(store, name)
    work = hold.session()
    work.journal.init()
    for number in itertools.count():
        text = f"{name} {number} " + "word " * (number % 50)
        told("note", work.notes.add(text).id, digest(text))
        if number % 3 == 0:
            body = f"{name} {number} line\n" * 400
            kept = work.outputs.keep("shell", body).output
            told("output", kept.id if kept else "-", digest(body))
        if led:
            # The file alone: a change of the store right after it would sync what it should have synced itself.
            place = file.find(os.path.dirname(store), "NOTES.md", of_project(os.path.dirname(store)))
            file.update(place, partial(add_question, entry=Item(f"{name} {number}?")))
        elif number % 4 == 0:
            work.journal.add("question", f"{name} {number}?")
        else:
            continue
        told("line", f"{name}_{number}")


def step(store: str) -> None:
    """One of each kind of change, each acknowledged or refused in words of ours. Nothing else may come out."""
    try:
        hold = opened(store, "step")
    except errors.LimpetError as problem:
        say("refused", problem.code)
        return
    work, body = hold.session(), "a line\n" * 900
    changes: tuple[Callable[[], object], ...] = (
        lambda: ("note", work.notes.add("a step").id, digest("a step")),
        lambda: ("output", _kept(work.outputs.keep("shell", body)), digest(body)),
        lambda: (work.notepad.write("a plan\n"), "pad")[1:],
        lambda: (work.journal.add("question", "step 0?"), "line", "step_0")[1:],
        lambda: ("note", work.notes.add("the last step").id, digest("the last step")),
    )
    for number, change in enumerate(changes):
        try:
            said = change()
            say(*(said if isinstance(said, tuple) else ()))
        except errors.LimpetError as problem:
            say("refused", problem.code, number)
    with contextlib.suppress(errors.LimpetError):
        hold.close()


def _kept(shown: object) -> str:
    output = getattr(shown, "output", None)
    return str(output.id) if output else "-"


def full(store: str, size: str) -> None:
    """Write until files may not grow any more, then with room again; say what was acknowledged and what refused."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    most = int(size)
    if most:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    refused = 0
    hold = None
    for number in range(3_000):
        text = f"full {number} " + "word " * 100
        try:
            hold = hold or opened(store, "full")
            say("note", hold.session().notes.add(text).id, digest(text))
        except errors.LimpetError as problem:
            refused += 1
            say("refused", problem.code)
            if refused == 3:
                break
    if most:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        hold = hold or opened(store, "full")
        say("note", hold.session().notes.add("room again").id, digest("room again"))
    if hold:
        hold.close()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
