"""Bits that flip on disk, and backups made while others write."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from contract.outputs_kit import log
from journeys.test_writers import WORKER
from limpet import errors
from limpet.api import Limpet
from limpet.model import NOTE
from limpet.store import EventQuery
from torture.kit import SEED, Outcome, Tally, acknowledged, opened, pipes, sound

FILES = ("limpet.db", "limpet.db-wal")


class Truth:
    """What was written, to compare every read with."""

    def __init__(self, hold: Limpet) -> None:
        work = hold.session("flip")
        self.notes: dict[str, set[str]] = {}  # every version: an older one may come back from a log cut short
        for number in range(40):
            text = f"note {number} " + "precious " * (number % 30)
            self.notes[work.notes.add(text, ["tag"]).id] = {text}
        for id, texts in list(self.notes.items())[::4]:
            texts.add(f"changed {id}")
            work.notes.update(id, content=f"changed {id}")
        self.outputs = {}
        for number in range(3):
            body = log(30_000, number)
            kept = work.outputs.keep("shell", body.decode()).output
            assert kept is not None
            self.outputs[kept.id] = body


def flips(folder: Path, count: int) -> Outcome:
    """One bit at a time: in the database, in its log, and in the pages that hold outputs."""
    tally, seen = Tally(), {"refused": 0, "nothing to see": 0, "older": 0}
    whole = folder / "whole"
    whole.mkdir()
    with opened(whole / "limpet.db") as hold:
        truth = Truth(hold)
        shutil.copytree(whole, folder / "logged")  # while it is open, so that the log still holds everything
    places = {"database": whole / FILES[0], "log": folder / "logged" / FILES[1]}
    sizes = {name: path.stat().st_size for name, path in places.items()}
    chance = random.Random(SEED)
    for number in range(count):
        name = "log" if number % 6 == 5 else "database"
        here = folder / "flipped"
        shutil.rmtree(here, ignore_errors=True)
        shutil.copytree(places[name].parent, here)
        (here / "limpet.db-shm").unlink(missing_ok=True)
        at, bit = chance.randrange(sizes[name]), chance.randrange(8)
        with open(here / places[name].name, "r+b") as file:
            file.seek(at)
            (byte,) = file.read(1)
            file.seek(at)
            file.write(bytes([byte ^ 1 << bit]))
        seen[_look(here / FILES[0], truth, f"{name} byte {at} bit {bit}", name, tally)] += 1
    more = ", ".join(f"{value:,} {key}" for key, value in seen.items())
    return tally.outcome(f"{count:,} flips, one in six in the log", "silent wrong reads", "crashes", more=more)


def _look(store: Path, truth: Truth, where: str, file: str, tally: Tally) -> str:  # noqa: PLR0912 - one look, whole
    """Read everything. What is not as written must be refused, or at least be found by a check."""
    refused, gone = False, []
    try:
        with opened(store) as hold:
            for id, texts in truth.notes.items():
                try:
                    entry = hold.store.entries.read(hold.scope, NOTE, id)
                    if entry is None or entry.content not in texts:
                        gone.append(id)
                    if entry is not None and entry.content not in texts:
                        tally.miss("silent wrong reads", f"{where}: {id}")
                except errors.LimpetError:
                    refused = True
            for id, body in truth.outputs.items():
                try:
                    if hold.store.outputs.find(hold.scope, id) is None:
                        gone.append(id)
                    elif hold.store.outputs.read_bytes(hold.scope, id, 0, len(body)) != body:
                        tally.miss("silent wrong reads", f"{where}: {id}")
                except errors.LimpetError:
                    refused = True
            try:
                found = [finding for finding in hold.check() if not finding.ok]
            except errors.LimpetError:
                refused = True
            else:
                refused = refused or bool(found)
    except errors.LimpetError:
        return "refused"
    except Exception as problem:  # noqa: BLE001 - the point is that there is none
        tally.miss("crashes", f"{where}: {problem!r}")
        return "refused"
    if gone and not refused and file == "log":
        return "older"  # SQLite's own checksums cut the log there: an earlier moment, and all of it true
    if gone and not refused:
        tally.miss("silent wrong reads", f"{where}: {gone[:2]} not found, and no check says so")
    return "refused" if refused else "nothing to see"


def backups(folder: Path, count: int) -> Outcome:
    """Backups while four processes write: each is a moment of the store, with all that was acknowledged before it."""
    store, tally, compared = folder / "limpet.db", Tally(), 0
    with opened(store) as hold:
        hold.session().begin()
        writers = [
            subprocess.Popen([sys.executable, WORKER, "acknowledge", str(store), f"w{n}"], **pipes())  # type: ignore[call-overload]
            for n in range(4)
        ]
        try:
            for writer in writers:
                writer.stdout.readline()
            for writer in writers:
                os.set_blocking(writer.stdout.fileno(), False)
            for number in range(count):
                said = [line[0] for writer in writers for line in acknowledged(writer.stdout.read() or b"")]
                target = folder / f"{number}" / "limpet.db"
                target.parent.mkdir()
                hold.backup(str(target))
                compared += _compare(hold, target, said, tally)
        finally:
            for writer in writers:
                writer.send_signal(signal.SIGKILL)
                writer.communicate()
    return tally.outcome(f"{count:,} backups under four writers, {compared:,} changes compared", "lost", "differences")


def _compare(hold: Limpet, target: Path, said: list[str], tally: Tally) -> int:
    with opened(target) as copy:
        sound(copy, tally)
        query = EventQuery(limit=1_000_000)
        there = copy.store.entries.events(copy.scope, query)
        newest = there[0].seq if there else 0
        live = [event for event in hold.store.entries.events(hold.scope, query) if event.seq <= newest]
        if [event._replace(after=None) for event in there] != [event._replace(after=None) for event in live]:
            tally.miss("differences", f"{target.parent.name}: {len(there)} changes of {len(live)}")
        for id in said:
            if len(id.split("_")) == 2 and copy.store.entries.read(copy.scope, NOTE, id) is None:
                tally.miss("lost", f"{id} was acknowledged before the backup began")
    try:
        hold.backup(str(target))
        tally.miss("overwritten", target)
    except errors.LimpetError:
        pass  # a backup never writes over anything
    shutil.rmtree(target.parent)
    return len(there)
