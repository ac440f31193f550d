"""Ten compactions in a row, and processes killed in the middle of one: nothing that matters is lost."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import limpet
from journeys.stdio import environment
from journeys.survival import Run
from limpet.model import FOLD, MESSAGE
from limpet.settings import WindowRules
from limpet.store import Listing
from limpet.text import tokens
from limpet.window.plan.controller import Compact
from limpet.window.plan.rules import unpaired

WORKER = str(Path(__file__).parent / "worker.py")
KILLS_OF_A_SESSION = 12


def test_ten_compactions_lose_nothing_that_matters(store_url: str) -> None:
    with limpet.open(store_url, project="demo", session="long") as hold:
        run = Run(hold.session(), limit=12_000, items=200)
        seen: list[Compact] = []
        run.compactions(10, seen.append)
        assert run.problems == []
        assert len(seen) == 10
        assert run.warnings == 10
        assert all(step.warned for step in seen)
        assert len(run.planted) == 200
        count = run.count()
        assert count.kept == 1
        assert count.in_window >= 190  # those on the notepad, and the others because these are not said again
        assert hold.store.entries.tally(hold.scope, MESSAGE, "long").total == len(run.talk)
        asked = run.talk[0].text()
        assert asked in seen[-1].messages[0].text()  # what it all began with


def test_what_is_taken_off_the_notepad_comes_back_into_the_summary(tmp_path: Path) -> None:
    with limpet.open(str(tmp_path / "limpet.db"), project="demo", session="long") as hold:
        run = Run(hold.session(), limit=12_000, items=40)
        run.compactions(1)
        noted = [item for item in run.planted if item.noted and item.kind != "rule"]  # those are a part of requests too

        def said() -> int:
            return sum(item.needle in run.steps[-1].messages[0].text() for item in noted)

        assert run.steps[-1].messages[0].text()  # the fold
        assert said() == 0
        run.session.notepad.write("")
        run.compactions(1)
        assert said() == len(noted)


def test_a_models_summary_is_not_cut_while_there_is_room(tmp_path: Path) -> None:
    told = "\n".join(f"Line {number} of what the model had to say about it." for number in range(150))
    with limpet.open(str(tmp_path / "limpet.db"), project="demo", session="long") as hold:
        run = Run(hold.session(), limit=12_000, items=10, summarise=lambda messages: told)
        run.compactions(1)
        assert tokens.count(told) > 12_000 * WindowRules().summary_percent // 100
        assert told in run.steps[-1].messages[0].text()
        assert run.steps[-1].gauge.used <= 12_000 * WindowRules().target_percent // 100
        assert run.problems == []


def test_each_compaction_can_be_taken_back(tmp_path: Path) -> None:
    with limpet.open(str(tmp_path / "limpet.db"), project="demo", session="long") as hold:
        session = hold.session()
        run = Run(session, limit=8_000, items=40)
        run.compactions(3)
        session.window.uncompact(1, len(run.talk))
        shown = session.window.messages()
        assert shown == run.talk
        assert unpaired(shown) == frozenset()


def killed(store: str, session: str, delay: float) -> None:
    process = subprocess.Popen(
        [sys.executable, WORKER, "compact", store, session],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (-signal.SIGKILL, b"")


def was_compacted(store: str, session: str) -> bool:
    with limpet.open(store, project="demo", session=session) as hold:
        return any(event.operation == "compact" for event in hold.history(kind=FOLD, limit=1_000))


def whole(store: str, session: str) -> None:
    """Every message is there, the window can be sent, and all of it can be brought back."""
    with limpet.open(store, project="demo", session=session) as hold:
        window = hold.session().window
        total = hold.store.entries.tally(hold.scope, MESSAGE, session).total
        positions = [
            int(entry.key.rpartition("#")[2])
            for entry in hold.store.entries.list(hold.scope, Listing((MESSAGE,), session, limit=100_000)).entries
        ]
        assert sorted(positions) == list(range(total))
        assert unpaired(window.messages()) == frozenset()
        folds = hold.store.entries.list(hold.scope, Listing((FOLD,), session, limit=1_000)).entries
        for fold in folds:
            assert fold.extra["last"] <= total
        if any(fold.extra["how"] == "compact" for fold in folds):
            window.uncompact(1, total)
            assert len(window.messages()) == total


@pytest.mark.parametrize("kills", [12, pytest.param(150, marks=pytest.mark.slow)])
def test_a_kill_leaves_the_old_window_or_the_new_one(tmp_path: Path, kills: int) -> None:
    """The worker compacts without end. Whenever it dies, a new process finds a window that is whole.

    After each kill all is read and brought back, and folded again by the next worker. So a session is killed a number
    of times, and the store goes on with another: in one session, the last kill would cost as much as all the others.
    """
    store, session = str(tmp_path / "limpet.db"), ""
    chance = random.Random(20_260_303)
    for number in range(kills):
        session = f"killed{number // KILLS_OF_A_SESSION}"
        killed(store, session, chance.uniform(0.0, 0.25))
        whole(store, session)
    with limpet.open(store, project="demo", session=session) as hold:
        assert all(finding.ok for finding in hold.check())
    for seconds in (0, 1, 10, 60):  # on a slow machine a worker needs longer to come to its first compaction
        if not was_compacted(store, session):
            killed(store, session, seconds)
    assert was_compacted(store, session)
