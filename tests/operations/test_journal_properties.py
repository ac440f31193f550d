"""Any schedule of changes, saves of old buffers, kills and checkouts: no entry is lost or moves to another branch."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from unittest.mock import patch

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from limpet import limits
from limpet.journal import file as journal_file
from limpet.journal.document import edit, entries
from limpet.journal.document.entries import Item
from limpet.journal.document.markup import scan
from limpet.journal.document.sections import template
from limpet.journal.file import find, update
from limpet.journal.state import of_project
from profiles import fewer_examples

WHO = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main")
STEPS = ("os.fdatasync", "os.fsync", "os.pwrite", "os.rename", "_write", "_swap", "_sync", "_exchange_names")
ADD, OPEN, CHECKOUT, COMMIT = "add", "open", "checkout", "commit"

changes = st.just((ADD, 0))
opened = st.just((OPEN, 0))
saves = st.tuples(st.sampled_from(["save", "save more"]), st.integers(0, 9))
kills = st.tuples(st.sampled_from(STEPS), st.integers(1, 4))
moves = st.sampled_from([(CHECKOUT, 0), (COMMIT, 0)])
at_home = st.lists(st.one_of(changes, opened, saves, kills), min_size=1, max_size=30)
in_branches = st.lists(st.one_of(changes, changes, opened, saves, kills, moves), min_size=1, max_size=16)


class Killed(BaseException):
    """Ends a change where a signal would."""


class Project:
    """A journal, and what must and may be in it on each branch."""

    def __init__(self, root: Path, git: bool) -> None:
        self.root = root
        self.place = find(str(root), "NOTES.md", of_project(str(root)))
        self.branch, self.count = "main", 0
        self.acknowledged: dict[str, set[str]] = {"main": set()}
        self.allowed: dict[str, set[str]] = {"main": set()}
        self.buffers: list[str] = []
        if git:
            self.git("init", "-q")
            (root / ".gitignore").write_text(".limpet\n")
            self.place = find(str(root), "NOTES.md", of_project(str(root)))
        update(self.place, lambda text: f"{text}\n## By hand\n", template)
        if git:
            self.git("add", "--all")
            self.git("commit", "-qm", "begin")

    def git(self, *words: str) -> bytes:
        return subprocess.run(["git", "-C", str(self.root), *WHO, *words], check=True, capture_output=True).stdout

    def entries(self) -> set[str]:
        return {one.entry.text for one in entries.questions(scan((self.root / "NOTES.md").read_text()))}

    def do(self, what: str, number: int) -> None:
        if what == ADD:
            self.add()
            self.check()
        elif what == OPEN:
            self.buffers.append((self.root / "NOTES.md").read_text())
        elif what in ("save", "save more"):
            self.save(number, what == "save more")
        elif what in (CHECKOUT, COMMIT):
            self.commit()
            if what == CHECKOUT:
                self.switch()
        else:
            self.killed(what, number)

    def add(self) -> None:
        self.count += 1
        entry = f"entry {self.count}"
        self.allowed[self.branch].add(entry)
        update(self.place, lambda text: edit.add_question(text, Item(entry)), template)
        self.acknowledged[self.branch].add(entry)

    def save(self, number: int, more: bool) -> None:
        if self.buffers:
            text = self.buffers[number % len(self.buffers)]
            self.count += more
            (self.root / "NOTES.md").write_text(f"{text}by hand {self.count}\n" if more else text)

    def killed(self, step: str, number: int) -> None:
        owner, name = (os, step.removeprefix("os.")) if step.startswith("os.") else (journal_file, step)
        real, calls = getattr(owner, name), []

        def dies(*args: object, **more: object) -> object:
            calls.append(1)
            if len(calls) == number:
                raise Killed
            return real(*args, **more)

        try:
            with patch.object(owner, name, dies):
                self.add()
        except Killed:
            pass

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "-qm", "notes", "--allow-empty")

    def switch(self) -> None:
        # An old buffer that is committed and left before the next change is what git has on that branch.
        there = self.entries()
        self.acknowledged[self.branch] &= there
        self.allowed[self.branch] |= there
        old, self.branch = self.branch, "side" if self.branch == "main" else "main"
        is_new = self.branch not in self.allowed
        self.git("checkout", "-q", *(["-b"] if is_new else []), self.branch)
        if is_new:
            self.acknowledged[self.branch] = set(self.acknowledged[old])
            self.allowed[self.branch] = set()
        if self.git("rev-parse", f"{old}:NOTES.md") == self.git("rev-parse", f"{self.branch}:NOTES.md"):
            # git leaves the file alone, and entries that are not committed go along with it.
            self.allowed[self.branch] |= self.allowed[old]

    def check(self) -> None:
        there = self.entries()
        assert not self.acknowledged[self.branch] - there, "lost"
        assert not there - self.allowed[self.branch], "of another branch"


def play(schedule: list[tuple[str, int]], *, git: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, patch.object(limits, "JOURNAL_STATES", 6):
        project = Project(Path(os.path.realpath(folder)), git)
        for what, number in schedule:
            project.do(what, number)
        update(project.place, lambda text: text, template)
        project.check()
        assert not list(project.root.glob(".NOTES*"))


@given(at_home)
@example([(ADD, 0), (OPEN, 0), *[(ADD, 0)] * 3, ("save more", 0), ("_swap", 1), (ADD, 0)])
@example([("_sync", 1), *[(ADD, 0)] * 20])
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_no_schedule_of_changes_saves_and_kills_loses_an_entry(schedule: list[tuple[str, int]]) -> None:
    play(schedule, git=False)


@given(in_branches)
@example([(CHECKOUT, 0), (ADD, 0), (CHECKOUT, 0), (ADD, 0)])
@example([(CHECKOUT, 0), (ADD, 0), (OPEN, 0), (CHECKOUT, 0), ("save more", 0), (ADD, 0)])
@example([(OPEN, 0), (ADD, 0), ("save", 0), (CHECKOUT, 0)])
@settings(max_examples=fewer_examples(8), suppress_health_check=[HealthCheck.too_slow])
def test_no_schedule_with_checkouts_moves_an_entry_to_another_branch(schedule: list[tuple[str, int]]) -> None:
    play(schedule, git=True)
