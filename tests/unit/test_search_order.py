"""The order of memory that holds a query."""

from __future__ import annotations

import pytest

from limpet.memory.memory import memory_score


@pytest.mark.parametrize(
    ("query", "score"),
    [
        ("goal", 6 + 3),
        ("GOAL", 6 + 3),
        ("desktop agent", 5 + 1 + 1),
        ("agent desktop", 1 + 1),
        ("project-goal", 6 + 3),
        ("agent agent", 1),
        ("nothing", 0),
    ],
)
def test_how_well_a_memory_fits(query: str, score: int) -> None:
    assert memory_score(query, "project-goal", "Build a reliable desktop agent.") == score


def test_memory_scores_know_other_scripts() -> None:
    assert memory_score("STRASSE", "k", "die Straße") == memory_score("Straße", "k", "die STRASSE") == 6
