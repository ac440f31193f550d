"""Texts that wait for the word index, and an index that is not synced: what was acknowledged is found after every kill
and every power cut, what was deleted is not, and the index has every text once."""

from __future__ import annotations

import itertools
import random
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from torture.child import say
from torture.disk import cut_off
from torture.kills import Lines, killed
from torture.kit import Outcome, Tally, acknowledged, opened, sound
from torture.lanes import Forked

CUT_EVERY = 5  # of the cases one is a power cut


def index(folder: Path, cases: int) -> Outcome:
    """Kills and power cuts of writers that search in between."""
    cuts = max(1, cases // CUT_EVERY)
    kills = folder / "kills"
    kills.mkdir()
    first = killed(kills, cases - cuts, _killed, each=2, look=found)
    second = cut_off(folder, cuts, _cut, look=found)
    if second.skipped:
        return first
    return Outcome(f"{first.cases}; {second.cases}", f"{first.figure}; {second.figure}", first.misses + second.misses)


def writes(store: str | Path, name: str) -> None:
    """Notes with a word of their own for ever, some changed, some deleted, some looked for; each acknowledged."""
    hold = opened(store, name)
    notes = hold.session().notes
    for number in itertools.count():
        word = f"{name}x{number}"
        id = notes.add(f"{word} " + "of many " * (number % 40)).id
        say("word", id, word)
        if number % 7 == 3:
            hold.call("search_notes", {"query": word, "limit": 1})
        if number % 5 == 4:
            say("change", id, word)
            notes.update(id, f"{word}b instead")
            say("word", id, f"{word}b")
        if number % 9 == 8:
            say("change", id, word)
            notes.delete(id)
            say("gone", id, word)


def _killed(store: str, name: str, chance: random.Random) -> tuple[int, Lines]:
    writers = [Forked(partial(writes, store, f"{name}w{n}")) for n in range(2)]
    lines: Lines = []
    for writer in writers:
        if chance.random() < 0.7:
            writer.line()
        time.sleep(chance.uniform(0.0, 0.150))
        said, _ = writer.end(signal.SIGKILL)
        lines += acknowledged(said)
    return len(writers), lines


def _cut(store: Path, number: int, chance: random.Random, cut: Callable[[Forked], Lines]) -> Lines:
    writer = Forked(partial(writes, store, f"cut{number}"))
    writer.line()
    time.sleep(chance.uniform(0.0, 0.150))
    return cut(writer)


def found(store: Path, lines: Lines, tally: Tally, *, check: bool = True) -> None:
    """Whether a search finds each note by the word that it has now, and no note that is gone."""
    last = {line[1]: line for line in lines if line[0] in ("word", "change", "gone")}
    with opened(store, "after") as hold:
        for kind, id, word in last.values():
            if kind == "change":
                continue  # it may have been made or not
            answer = hold.call("search_notes", {"query": word, "limit": 5})
            there = id in [note["id"] for note in answer["notes"]]
            if there != (kind == "word"):
                tally.miss("lost", f"{word} is {'not ' * (kind == 'word')}found")
        for words in (line[1:] for line in lines if line[0] == "crashed"):
            tally.miss("crashed", " ".join(words))
        if check:
            sound(hold, tally)
        hold.session("after").notes.add("still writable")
