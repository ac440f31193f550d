"""A thousand agents that think between two calls, for an hour: `python -m bench.crowd` prints what it found."""

from __future__ import annotations

import os

import pytest

from bench import crowd

SECONDS = float(os.environ.get("CROWD_SECONDS", "3600"))


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 1_800)
def test_a_crowd_loses_nothing_and_takes_no_more_memory() -> None:
    found = crowd.measured(SECONDS)
    crowd.tell(found)
    assert crowd.trouble(found) == []
    assert found.calls > found.agents


def test_what_must_not_be_is_named() -> None:
    found = crowd.Crowd(2, 10, 1, {"add_note": [0.1]}, ["add_note: full"], ["00000000ff"], 1, [100.0] * 30, 1, 1)
    assert crowd.trouble(found) == ["an error: add_note: full", "acknowledged and lost: 00000000ff"]
    grown = found._replace(errors=[], lost=[], memory=[100.0] * 20 + [112.0] * 10)
    assert crowd.trouble(grown) == ["memory grew by 12%"]
    assert "2000.00 busy cores" in crowd.sizing(grown)
