"""A conversation of many turns in two languages, with kills, compactions and forks: the transcript is what was said."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import limpet
from journeys import turns
from journeys.stdio import environment
from limpet.api import Limpet
from limpet.window import transcript
from limpet.window.messages import Message
from limpet.window.plan.serialise import digest

PROGRAM = str(Path(turns.__file__))


def kept(hold: Limpet, session: str) -> list[str]:
    return [stored.digest for stored in transcript.messages(hold.context(session))]


def digests(messages: list[Message]) -> list[str]:
    return [digest(message) for message in messages]


@pytest.mark.parametrize(
    ("count", "kills", "compactions", "forks"),
    [
        (40, 3, 2, 1),
        pytest.param(1_000, 30, 40, 5, marks=[pytest.mark.slow, pytest.mark.timeout(1_800)]),
    ],
)
def test_a_conversation_through_kills_compactions_and_forks_is_kept_as_it_was(
    tmp_path: Path, count: int, kills: int, compactions: int, forks: int
) -> None:
    store, plan = str(tmp_path / "limpet.db"), turns.Plan.of(count, kills, forks)
    for first in (0, *(turn + 1 for turn in sorted(plan.kills))):
        arguments = [PROGRAM, store, *map(str, (count, kills, forks, first))]
        process = subprocess.run([sys.executable, *arguments], capture_output=True, env=environment(), check=False)
        is_last = first > max(plan.kills)
        assert process.returncode == (0 if is_last else -signal.SIGKILL), process.stderr.decode()[-3_000:]
    warned: dict[str, set[int]] = {}
    for line in Path(f"{store}.warnings").read_text().splitlines():
        session, _, number = line.partition(" ")
        warned.setdefault(session, set()).add(int(number))
    with limpet.open(store, project="demo", session="hall") as hold:
        assert kept(hold, "hall") == digests(turns.conversation(plan, count, warned["hall"]))
        folds = [fold["how"] for fold in hold.call("list_folds", {})["folds"]]
        assert folds.count("compact") >= compactions
        children = [info for info in hold.sessions(include_archived=True, limit=100) if info.parent == "hall"]
        assert len(children) == forks
        for child in children:
            n = int(child.task.rpartition(" ")[2])
            said = turns.conversation(plan, n + 1, warned["hall"])
            for turn in (turns.forked_turn(n, number) for number in range(turns.FORK_TURNS)):
                said += turns.turn(turn, warned=turn in warned.get(child.id, ()))
            assert kept(hold, child.id) == digests(said)
        assert all(finding.ok for finding in hold.check())
