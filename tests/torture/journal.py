"""NOTES.md over the life of one project: writers that are killed or lose their power, and people with old buffers.

An entry counts as acknowledged when its writer said so. At the end, and after every few kills, each of them must be in
the file. Lines that people saved are counted too.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import subprocess
import time
from functools import partial
from pathlib import Path

from limpet import errors, limits
from limpet.journal import file
from limpet.journal.document.edit import add_question
from limpet.journal.document.entries import Item
from limpet.journal.document.sections import template
from limpet.journal.state import of_project
from torture import disk
from torture.kit import Outcome, Tally, acknowledged
from torture.lanes import Forked, Made, Share, in_memory, spread

STATES = 24  # texts that the log keeps here, so that old ones are dropped all the time
BUFFERS = 40  # texts that people still have open
MOST_ENTRIES = 400  # then old entries are taken out, as rotation does
LOOK_EVERY = 5


def journal(folder: Path, kills: int) -> Outcome:
    """`kills` of writers in memory, and half as many power cuts on a disk of their own."""
    with in_memory(folder) as memory:
        (memory / "kills").mkdir()
        tally, numbers = spread(_killed, memory / "kills", kills, most=kills)
        cuts, skipped = max(1, kills // 2), ""
        with disk.mounted(memory, ["-t", "tmpfs", "none"]) as may:
            if disk.MKFS is None or may is None:
                cuts, skipped = 0, "; no power cuts: nothing can be mounted here"
        if cuts:
            (memory / "cuts").mkdir()
            more, counted = spread(_cut, memory / "cuts", cuts, most=cuts)
            tally.absorb(more.counts, more.words)
            numbers = {name: numbers.get(name, 0) + counted.get(name, 0) for name in {*numbers, *counted}}
    cases = (
        f"{numbers['kills']:,} kills, {numbers.get('cuts', 0):,} cuts, {numbers['saves']:,} saves by people, "
        f"{numbers['acknowledged']:,} entries acknowledged"
    )
    return tally.outcome(f"{cases}{skipped}", "lost", "doubled", "lines of people lost", "crashed")


def place_in(home: Path) -> file.JournalFile:
    return file.find(str(home), "NOTES.md", of_project(str(home)))


def write(home: Path, name: str) -> None:
    """Add entries for ever, each acknowledged."""
    limits.JOURNAL_STATES = STATES
    place = place_in(home)
    for number in itertools.count():
        file.update(place, partial(add_question, entry=Item(f"{name} {number}")))
        os.write(1, f"line {name} {number}\n".encode())


class Life:
    """One project: its journal, what was acknowledged, and the buffers that people have open."""

    def __init__(self, home: Path, chance: random.Random, tally: Tally) -> None:
        self.home, self.chance, self.tally = home, chance, tally
        self.entries: list[str] = []  # acknowledged and not taken out
        self.lines: list[str] = []  # of people
        self.buffers: list[str] = []
        self.numbers = {"kills": 0, "cuts": 0, "acknowledged": 0, "saves": 0}
        self.numbered = itertools.count()

    def begin(self) -> None:
        limits.JOURNAL_STATES = STATES
        file.update(place_in(self.home), lambda text: f"{text}\n## By hand\n", template)

    def said(self, lines: list[tuple[str, ...]]) -> None:
        for line in lines:
            if line[0] == "line":
                self.entries.append(" ".join(line[1:]))
                self.numbers["acknowledged"] += 1
            else:
                self.tally.miss("crashed", " ".join(line))

    def save(self) -> None:
        """Somebody opens the file, or saves a text they opened earlier, as it was or with a line more."""
        path = self.home / "NOTES.md"
        if self.lines and self.lines[-1] not in file.last_seen(place_in(self.home)):
            return  # a save over a save that nobody has read yet is a loss between people
        if self.chance.random() < 0.6 or not self.buffers:
            self.buffers = [*self.buffers, path.read_text(encoding="utf-8")][-BUFFERS:]
            return
        buffer = self.chance.choice(self.buffers)
        if self.chance.random() < 0.7:
            line = f"- by hand {next(self.numbered)}"
            buffer = f"{buffer}{line}\n"
            self.lines.append(line)
            self.buffers.append(buffer)
        beside = path.with_suffix(".swp")
        beside.write_text(buffer, encoding="utf-8")
        os.replace(beside, path)
        self.numbers["saves"] += 1

    def look(self) -> None:
        """The next change puts everything together; then all of it must be in the file, once."""
        place = place_in(self.home)
        try:
            text = file.update(place, lambda text: text).text
        except errors.LimpetError as problem:
            self.tally.miss("crashed", problem.message)
            return
        lines = text.split("\n")
        there = set(lines)
        for entry in self.entries:
            if f"- [ ] {entry}" not in there:
                self.tally.miss("lost", entry)
        for line in self.lines:
            if line not in there:
                self.tally.miss("lines of people lost", line)
        questions = [line for line in lines if line.startswith("- [ ] ")]
        if len(questions) != len(set(questions)):
            self.tally.miss("doubled", len(questions) - len(set(questions)))
        self.entries = [entry for entry in self.entries if f"- [ ] {entry}" in there]
        self.lines = [line for line in self.lines if line in there]
        if len(self.entries) > MOST_ENTRIES:
            self.shorten(place)

    def shorten(self, place: file.JournalFile) -> None:
        """Take out the older half, and let people open the file again."""
        half = len(self.entries) // 2
        gone = {f"- [ ] {entry}" for entry in self.entries[:half]} | {*self.lines[: len(self.lines) // 2]}
        file.update(place, lambda text: "\n".join(line for line in text.split("\n") if line not in gone))
        self.entries, self.lines = self.entries[half:], self.lines[len(self.lines) // 2 :]
        self.buffers = []


def _killed(share: Share) -> Made:
    """One to three writers at a time, killed at any moment, while people save what they have open."""
    chance, tally = random.Random(share.seed), Tally()
    home = share.folder / "project"
    home.mkdir()
    life = Life(home, chance, tally)
    life.begin()
    rounds = 0
    while life.numbers["kills"] < share.cases and sum(tally.counts.values()) < 100:
        rounds += 1
        names = [f"run{rounds} w{number}" for number in range(chance.choice((1, 1, 2, 3)))]
        writers = [Forked(partial(write, home, name)) for name in names]
        for writer in writers:
            if chance.random() < 0.5:
                writer.line()
            for _ in range(chance.randrange(3)):
                life.save()
                time.sleep(chance.uniform(0.0, 0.02))
            time.sleep(chance.uniform(0.0, 0.08))
            said, _ = writer.end(signal.SIGKILL)
            life.said(acknowledged(said))
            life.numbers["kills"] += 1
        if rounds % LOOK_EVERY == 0:
            life.look()
    life.look()
    return Made(tally.counts, tally.words, life.numbers)


def _cut(share: Share) -> Made:
    """Power cuts on one file system, one after the other; what a cut leaves is what the next writer begins with."""
    chance, tally = random.Random(share.seed), Tally()
    image = share.folder / "image"
    with open(image, "wb") as made:
        made.truncate(disk.IMAGE_BYTES)
    subprocess.run([str(disk.MKFS), "-q", "-E", "lazy_itable_init=0", str(image)], check=True, capture_output=True)
    options = ["-o", "loop,commit=60", str(image)]
    place = share.folder / "disk" / "project"
    life = Life(place, chance, tally)
    for number in range(share.cases):
        with disk.mounted(share.folder, options) as mounted:
            assert mounted is not None
            if not number:
                place.mkdir()
                life.begin()
            else:
                life.look()
            for _ in range(chance.randrange(3)):
                life.save()
            disk.synced(mounted)  # what people and looks did is not what is tried here
            writer = Forked(partial(write, place, f"cut{number} w"))
            if number % 3:
                writer.line()
            time.sleep(chance.uniform(0.0, 0.060))
            life.said(disk.shut_down(mounted, writer))
        life.numbers["cuts"] += 1
        if sum(tally.counts.values()) > 100:
            break
    with disk.mounted(share.folder, options) as mounted:
        assert mounted is not None
        life.look()
    shutil.rmtree(share.folder / "image", ignore_errors=True)
    return Made(tally.counts, tally.words, life.numbers)
