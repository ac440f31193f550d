"""Rules and decisions stay in the window in any language, and the rest is there or one recall away."""

from __future__ import annotations

from pathlib import Path

import pytest

import limpet
from journeys.story import IN_WINDOW, STORIES, Telling, load


@pytest.mark.parametrize("language", ["zh", "hi", *(pytest.param(one, marks=pytest.mark.slow) for one in ("de", "ar"))])
def test_what_matters_survives_in_other_languages(tmp_path: Path, language: str) -> None:
    with limpet.open(str(tmp_path / "limpet.db"), project="demo", session="told") as hold:
        telling = Telling(hold.session(), load(STORIES / f"{language}.toml"), limit=32_000)
        telling.tell(least_tokens=60_000, least_compactions=3)
        counts = telling.counts()
        for kind in IN_WINDOW:
            assert counts[kind].in_window == counts[kind].planted, kind
        kept = sum(count.kept * count.planted for count in counts.values())
        assert kept >= 0.95 * sum(count.planted for count in counts.values()), telling.lost()
        # Most of what the user said is neither a rule nor a wish; the score says that it did not all fit.
        assert telling.compactions[-1].score is not None
        assert 0.3 < telling.compactions[-1].score < 1
