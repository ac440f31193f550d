"""What every goal shares: how it reports, and a store that is written to and judged."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import limpet
from journeys.stdio import environment
from limpet.api import Limpet

TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
CHILD = str(Path(__file__).with_name("child.py"))
PROJECT = "demo"
SEED = 20_260_303
TIMED = "waits over 2 s"  # a miss that a busy machine alone can cause


class Outcome(NamedTuple):
    """What came out of a goal. A miss is a promise that was broken, in a few words."""

    cases: str
    figure: str
    misses: tuple[str, ...] = ()
    skipped: str = ""  # why nothing could be tried here


class Goal(NamedTuple):
    """`run` gets an empty folder and how often to try."""

    name: str
    promise: str
    run: Callable[[Path, int], Outcome]
    ci: int
    minutes: int
    full: int


class Tally:
    """Counts what went wrong, and remembers the first few in words."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.words: list[str] = []

    def miss(self, kind: str, words: object = "") -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if len(self.words) < 5:
            self.words.append(f"{kind}: {words}"[:300])

    def absorb(self, counts: Mapping[str, int], words: list[str]) -> None:
        """Add what another tally counted."""
        for kind, number in counts.items():
            self.counts[kind] = self.counts.get(kind, 0) + number
        self.words += words[: 5 - len(self.words)]

    def figure(self, *kinds: str) -> str:
        return ", ".join(f"{self.counts.get(kind, 0):,} {kind}" for kind in (*kinds, *(self.counts.keys() - {*kinds})))

    def outcome(self, cases: str, *kinds: str, more: str = "") -> Outcome:
        figure = self.figure(*kinds)
        return Outcome(cases, f"{figure}; {more}" if more else figure, tuple(self.words))


def digest(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def opened(store: str | Path, session: str = "check") -> Limpet:
    """The project in its own folder, so that its journal is there too."""
    folder = None if str(store).startswith("postgresql") else str(Path(store).parent)
    return limpet.open(str(store), project=PROJECT, session=session, folder=folder)


def child(*args: object, **more: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command(*args), **pipes(), **more)  # type: ignore[call-overload,no-any-return]


def command(*args: object) -> list[str]:
    return [sys.executable, CHILD, *map(str, args)]


def pipes() -> dict[str, object]:
    return {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": surroundings()}


def surroundings() -> dict[str, str]:
    """What children see: these tests beside whichever source of ours this process uses."""
    source = str(Path(limpet.__file__).resolve().parent.parent)
    return {**environment(), "PYTHONPATH": os.pathsep.join([source, str(TESTS), str(ROOT)])}


def acknowledged(said: bytes) -> list[tuple[str, ...]]:
    """The whole lines of a child: what follows the last line break was not said to the end."""
    return [tuple(line.decode().split(" ")) for line in said.split(b"\n")[:-1] if line]


def judge(hold: Limpet, told: Mapping[str, str], tally: Tally) -> None:
    """Every note that was acknowledged is there with the text it had."""
    for id, wanted in told.items():
        entry = hold.store.entries.read(hold.scope, "note", id)
        if entry is None:
            tally.miss("lost", id)
        elif digest(entry.content) != wanted:
            tally.miss("wrong", id)


def sound(hold: Limpet, tally: Tally) -> None:
    for finding in hold.check():
        if not finding.ok:
            tally.miss("corrupt", f"{finding.name}: {finding.detail}")


def verify(store: Path, lines: list[tuple[str, ...]], tally: Tally, *, check: bool = True) -> None:
    """Everything a child said it had written is there."""
    for words in (line[1:] for line in lines if line[0] == "crashed"):
        tally.miss("crashed", " ".join(words))
    with opened(store, "after") as hold:
        judge(hold, {id: wanted for kind, id, wanted in (line for line in lines if line[0] == "note")}, tally)
        for _, id, wanted in (line for line in lines if line[0] == "output"):
            found = hold.store.outputs.find(hold.scope, id)
            if found is None:
                tally.miss("lost", f"output {id}")
            elif digest(hold.store.outputs.read_bytes(hold.scope, id, 0, found.size)) != wanted:
                tally.miss("wrong", f"output {id}")
        journal = store.parent / "NOTES.md"
        text = journal.read_text(encoding="utf-8") if journal.exists() else ""
        for line in (line[1] for line in lines if line[0] == "line"):
            if f"{line.replace('_', ' ')}?" not in text:
                tally.miss("lost", f"{line} in the journal")
        if not text.strip() and journal.exists():
            tally.miss("corrupt", "the journal is empty")
        if check:
            sound(hold, tally)
        hold.session("after").notes.add("still writable")
