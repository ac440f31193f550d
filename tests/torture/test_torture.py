"""Each goal at its smallest, and that the seeded bugs still fit the source they are put into."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from torture.goals import GOALS
from torture.kit import ROOT, TIMED
from torture.seeded import BUGS, Bug, patched


@pytest.mark.parametrize("name", [name for name, goal in GOALS.items() if goal.ci])
def test_a_promise_is_kept_in_a_few_cases(tmp_path: Path, name: str) -> None:
    made = GOALS[name].run(tmp_path, GOALS[name].ci)
    if made.skipped:
        pytest.skip(made.skipped)
    assert [words for words in made.misses if not words.startswith(TIMED)] == []


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_seeded_bug_fits_the_source(tmp_path: Path, bug: Bug) -> None:
    for name, _, _ in bug.edits:
        target = tmp_path / "limpet" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "src" / "limpet" / name, target)
    patched(tmp_path, bug)
    for name, _, _ in bug.edits:
        compile((tmp_path / "limpet" / name).read_text(encoding="utf-8"), name, "exec")
    assert bug.goal in GOALS


def test_there_are_thirty_of_them() -> None:
    assert len({bug.name for bug in BUGS}) == 30
