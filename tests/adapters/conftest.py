"""A memory for each story, and no event loop that outlives it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import limpet

pytest.register_assert_rewrite("adapters.stories")  # before it is imported by a test


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[limpet.Limpet]:
    with limpet.open(str(tmp_path / "limpet.db"), folder=str(tmp_path)) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _loop() -> Iterator[None]:
    """Frameworks that run without await make an event loop and leave it open; the next test would be blamed for it."""
    loops = [asyncio.new_event_loop()]
    asyncio.set_event_loop(loops[0])
    yield
    with suppress(RuntimeError):  # there is none any more
        loops.append(asyncio.get_event_loop_policy().get_event_loop())
    asyncio.set_event_loop(None)
    for loop in loops:
        loop.close()
