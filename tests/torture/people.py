"""People who save NOTES.md while agents write to it, and files outside of the project that nobody may read."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from limpet import errors
from limpet.journal import evidence, file
from limpet.journal.file import find
from limpet.journal.state import of_project
from operations.editor import STYLES
from operations.test_journal_file import race
from operations.test_shared_files import HISTORY_ROUNDS, histories
from torture.kit import Outcome, Tally


def clones(folder: Path, number: int) -> Outcome:
    """Two clones whose shared memory files are changed at random and merged by git, compared with a merge by key."""
    tally = Tally()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIMPET_HOME", str(folder / "home"))
        merges = _merged(folder, number, tally)
    return tally.outcome(f"{number:,} histories, {merges:,} merges", "texts lost or doubled")


def _merged(folder: Path, number: int, tally: Tally) -> int:
    merges = 0
    for seed in range(number):
        try:
            merges += histories(folder / str(seed), folder, seed, HISTORY_ROUNDS)
        except AssertionError as problem:
            tally.miss("texts lost or doubled", f"history {seed}: {problem}")
    return merges


SECRET = "the secret of somebody else"


def editors(folder: Path, saves: int) -> Outcome:
    tally, each = Tally(), max(3, saves // len(STYLES))
    for style in STYLES:
        home = folder / style
        home.mkdir()
        by_hand, agent = race(find(str(home), "NOTES.md", of_project(str(home))), style, each, 1)
        for line in by_hand:
            tally.miss("lines of people lost", f"{style}: {line}")
        for line in agent:
            tally.miss("lines of agents lost", f"{style}: {line}")
    cases = f"{len(STYLES)} ways to save, {each * len(STYLES):,} saves racing as many changes"
    return tally.outcome(cases, "lines of people lost", "lines of agents lost")


def paths(folder: Path, tries: int) -> Outcome:
    """Names that lead out of the project, and a file that is swapped for a link between a look and a read."""
    tally, home, beside = Tally(), folder / "home", folder / "home-of-others"
    home.mkdir()
    beside.mkdir()
    (beside / "NOTES.md").write_text(f"{SECRET}\n")
    (home / "out").symlink_to(beside)
    (home / "plain.txt").write_text("ours\n")
    ways = ("../home-of-others/NOTES.md", "out/NOTES.md", str(beside / "NOTES.md"), "x/../../home-of-others/NOTES.md")
    for way in ways:
        if evidence.source(str(home), way) is not None:
            tally.miss("read outside", way)
        try:
            place = find(str(home), way, of_project(str(home)))
            tally.miss("let outside", place.path)
        except errors.LimpetError:
            pass
    over = threading.Event()
    swapped, spare, link = home / "swapped.txt", home / "spare", home / "link"
    swapped.write_text("ours\n")

    def swap() -> None:
        while not over.is_set():
            link.symlink_to(beside / "NOTES.md")
            os.replace(link, swapped)
            spare.write_text("ours\n")
            os.replace(spare, swapped)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(tries):
            text = evidence.source(str(home), "swapped.txt")
            if text is not None and SECRET in text:
                tally.miss("read outside", "through a link put there in between")
    finally:
        over.set()
        thread.join()
    (home / "NOTES.md").symlink_to(beside / "NOTES.md")
    try:
        file.read(find(str(home), "NOTES.md", of_project(str(home))))
        tally.miss("let outside", "a link in the journal's place")
    except errors.LimpetError:
        pass
    return tally.outcome(
        f"{len(ways) + 1} ways out, {tries:,} reads of a file being swapped", "read outside", "let outside"
    )
