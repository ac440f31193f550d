"""Stories composed at random: a few of them, and that the composer notices, repeats and shortens what fails."""

from __future__ import annotations

import random
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from life import composed, pace
from life import world as world_of_stories
from life.composed import Step, shortest, tell
from life.kinds import KINDS, Kind
from life.pace import Slow
from life.world import Broken, World

LOCKED_SECONDS = 4.0
# A short story of many kinds through every door, which takes some seconds.
SHORT = (
    "note_added memory_written notepad_written worktree_added foreign_language server_killed handoff_left "
    "mistake_undone journal_written newer_version_came"
)


def test_a_story_of_many_kinds_comes_true() -> None:
    assert tell([Step(name, number) for number, name in enumerate(SHORT.split())]) == ""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", list(KINDS))
def test_each_kind_of_step_comes_true_after_others(name: str) -> None:
    before = ("note_added", "memory_written", "notepad_written", "output_kept", "journal_written", "worktree_added")
    steps = [Step(before_name, number) for number, before_name in enumerate(before)]
    assert tell([*steps, *(Step(name, seed) for seed in range(3))]) == ""


def loses_a_note(world: World, _chance: random.Random) -> None:
    """A fault for the composer to notice: a note that was acknowledged is gone."""
    notes = world.projects[0].truth.notes
    if notes:
        world.library(world.projects[0].folder, [("delete_note", {"id": next(iter(notes))}, "")])


def test_what_fails_is_noticed_and_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "loses_a_note", Kind("loses_a_note", 1, loses_a_note))
    steps = tuple(Step(name, 7) for name in ("state_set", "note_added", "plain_folder", "loses_a_note"))
    words = tell(steps)
    assert "at the last look: Broken: the note note_" in words
    failure = shortest(steps, words)
    assert [step.kind for step in failure.steps] == ["note_added", "loses_a_note"]
    assert "Broken: the note note_" in failure.words


@contextmanager
def held(store: str) -> Iterator[None]:
    """Somebody has the write lock of a store for a while."""
    con = sqlite3.connect(store, isolation_level=None, check_same_thread=False)
    con.execute("BEGIN IMMEDIATE")
    letting_go = threading.Timer(LOCKED_SECONDS, con.execute, ("ROLLBACK",))
    letting_go.start()
    try:
        yield
    finally:
        letting_go.join()
        con.close()


@pytest.mark.parametrize("machine", ["quick", "slow"])
def test_a_call_that_waits_for_a_lock_is_told_from_a_slow_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    monkeypatch.setattr(world_of_stories, "SLOW_SECONDS", LOCKED_SECONDS / 2)
    world, chance = World(tmp_path), random.Random(1)
    try:
        project = world.projects[0]
        world.call(chance, project, "add_note", {"content": "before the lock"}, doors=("library",))
        store = world.machine.answer("project", "show", "--json", where=project.folder)["store"]
        waiting = threading.Event()
        # In place of the simplest command: one that is done at once, and one that needs far longer than usual.
        world.machine.pace.simplest = (lambda: None) if machine == "quick" else (lambda: waiting.wait(LOCKED_SECONDS))
        monkeypatch.setattr(pace, "USUAL_SECONDS", LOCKED_SECONDS / 1_000)
        with held(store), pytest.raises(Slow) if machine == "quick" else nullcontext():
            world.call(chance, project, "add_note", {"content": "after the lock"}, doors=("library",))
    finally:
        world.close()


def test_the_simplest_command_shares_nothing_with_the_stories(tmp_path: Path) -> None:
    world = World(tmp_path)
    try:
        world.machine.pace.simplest()
        assert list((tmp_path / "alone").rglob("*.db"))
        assert not list(world.machine.home.rglob("*.db"))
    finally:
        world.close()


def test_a_story_is_its_number() -> None:
    assert composed.composed(5) == composed.composed(5) != composed.composed(6)
    assert {step.kind for story in range(200) for step in composed.composed(story)} == set(KINDS)


def test_a_failure_says_how_to_tell_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaks(_world: World, _chance: random.Random) -> None:
        raise Broken("on purpose")

    for name in list(KINDS):
        monkeypatch.setitem(KINDS, name, Kind(name, 1, breaks))
    assert composed.many(1.0, 3, keep_going=False) == 1
    said = capsys.readouterr().out
    (step,) = composed.told(3).steps  # type: ignore[union-attr]
    assert f"Story 3 fails at {step}: Broken: on purpose\n  with {step}\n" in said
    assert "1 failed." in said
