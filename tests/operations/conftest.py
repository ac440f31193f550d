"""What the tests of operations share: a clock that stands still until told otherwise, and a project on either store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import limpet
from limpet.api import Limpet

NOON = 1_772_539_200_000  # 2026-03-03T12:00:00Z
DAY_MS = 86_400_000


class Clock:
    """Milliseconds that move only when a test says so."""

    def __init__(self, now: int = NOON) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def pass_by(self, ms: int = 1_000) -> None:
        self.now += ms


Opener = Callable[..., Limpet]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opened(store_url: str, clock: Clock, tmp_path: Path) -> Iterator[Opener]:
    """Opens the store of the test, again if asked, as another process would; all are closed at the end."""
    holds: list[Limpet] = []

    def opener(session: str = "one", project: str = "demo") -> Limpet:
        holds.append(limpet.open(store_url, project=project, session=session, folder=str(tmp_path), clock=clock))
        return holds[-1]

    yield opener
    for hold in holds:
        hold.close()


@pytest.fixture
def hold(opened: Opener) -> Limpet:
    return opened()
